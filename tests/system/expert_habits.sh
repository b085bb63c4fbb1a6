#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What a sparse model learns about its experts: the file of the first run is used by the next one and by
# --plan, not with --no-learn; damaged, foreign or unwritable it changes nothing, and no answer depends on it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
sparse=$work/sparse.gguf other=$work/other.gguf
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
folder=$XDG_STATE_HOME/qsf/experts
for seed in 1 2; do
    [ $seed = 1 ] && file=$sparse || file=$other
    "$QSF_BUILDDIR/obj/tests/tools/mkbig" "$file" layers=2 hidden=256 heads=4 ffn=512 experts=32 used=4 \
        type=q4_k vocab=1000 seed=$seed || fail "mkbig"
done
least=$(least_budget -c 256 "$sparse")
budget=$((least + 10))

# answer OPTION...: the text of an answer; the numbers of --json are in $work/json.
answer() {
    "$run" -p 'tell me about it' -n 40 -c 256 --temperature 0 --ram-budget "$budget" --json "$@" \
        >"$work/json" 2>"$work/err" || { cat "$work/err"; fail "exit $? with $*"; }
    sed 's/.*"text": \("[^"]*"\).*/\1/' "$work/json"
}
# field NAME: of the plan.
field() {
    "$run" --plan --json -c 256 --ram-budget "$budget" "$sparse" 2>"$work/err" |
        sed -n "s/.*\"$1\": \([a-z0-9.]*\).*/\1/p"
}

[ "$(field expert_slots)" -gt 4 ] || fail "no slots for experts with $budget MB: $(field expert_slots)"
[ "$(field expert_hits_known)" = false ] || fail "hits are known before anything was chosen"
first=$(answer "$sparse" --no-learn)
[ ! -e "$folder" ] || fail "--no-learn wrote $(ls "$folder")"
"$run" --bench -p 8 -n 20 -r 1 -c 256 --ram-budget "$budget" "$sparse" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "--bench"; }
[ ! -e "$folder" ] || fail "--bench wrote $(ls "$folder")"

same() { # WHEN
    [ "$(answer "$sparse")" = "$first" ] || fail "another answer $1"
}
same "when it is learned"
[ "$(ls "$folder" | wc -l)" = 1 ] || fail "not one file: $(ls "$folder")"
file=$folder/$(ls "$folder")
[ -n "$(find "$file" -perm 600)" ] || fail "others may read it: $(ls -l "$file")"
[ "$(field expert_hits_known)" = true ] || fail "--plan does not know what was chosen"
usual=$("$run" --plan --no-learn -c 256 --ram-budget "$budget" "$sparse" 2>&1 | grep '^expert slots')
known=$("$run" --plan -c 256 --ram-budget "$budget" "$sparse" 2>&1 | grep '^expert slots')
case $known in *', by earlier conversations') ;; *) fail "--plan says: $known" ;; esac
case $usual in *conversations*) fail "--plan --no-learn says: $usual" ;; esac
same "with what was learned"

# Another model has a file of its own, and that of this one, renamed, is nothing to it.
"$run" -p x -n 20 --ignore-eos -c 256 --ram-budget "$budget" "$other" >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "other"; }
[ "$(ls "$folder" | wc -l)" = 2 ] || fail "not two files: $(ls "$folder")"
for name in "$folder"/*; do [ "$name" = "$file" ] || theirs=$name; done

# reject MESSAGE: the file is ignored, which --verbose alone says, and replaced.
reject() {
    [ "$(field expert_hits_known)" = false ] || fail "hits by a file that $1"
    [ "$(answer "$sparse" -v)" = "$first" ] || fail "another answer with a file that $1"
    grep -q "experts: .*$1.*: ignored" "$work/err" || { cat "$work/err"; fail "not said: $1"; }
    [ "$(field expert_hits_known)" = true ] || fail "a file that $1 was not replaced"
    [ "$(answer "$sparse")" = "$first" ] || fail "another answer"
    [ ! -s "$work/err" ] || ! grep -q experts: "$work/err" || { cat "$work/err"; fail "a word about experts"; }
}
cp "$theirs" "$file"
reject "is of another model"
printf 'x' | dd of="$file" bs=1 seek=300 conv=notrunc 2>/dev/null
reject "is damaged"
dd if=/dev/zero bs=1000 count=3000 2>/dev/null >"$file"
reject "is not a file of habits"
head -c 100 "$theirs" >"$file"
reject "is of another model"

# The chat writes it too, shows what it counted, and forgets it.
rm "$folder"/*
chat=$QSF_BUILDDIR/qsf-chat
if [ -x "$chat" ]; then
    budget=$("$chat" --plain --no-save -c 256 --ram-budget 1 "$sparse" 2>&1 </dev/null |
        sed -n 's/.*smallest budget that works: \([0-9]*\) MB.*/\1/p')
    budget=$((budget + 10))
    printf '%s\n' 'tell me about it' /experts /mem '/experts forget' '/experts forge' |
        "$chat" --plain --no-save -c 256 --max-tokens 100 --ignore-eos --ram-budget "$budget" "$sparse" >"$work/out" 2>&1
    for line in '^experts  64 in 2 layers, ' '^in RAM   [1-9]' '^slots    [1-9]' '^hits     [0-9]* % of ' \
        '^disk     .*/token$' '^waiting  .* % of the last request$' '  1 . [0-9]*/32 .*  2 . [0-9]*/32 ' '^at [0-9]* MB: [0-9]* %, about .* now$' \
        '^experts  .* of .* slots, .* hits expected, .* measured$' 'is forgotten$' 'only "forget" can follow'; do
        grep -q "$line" "$work/out" || { cat "$work/out"; fail "not in what the chat printed: $line"; }
    done
    [ -z "$(ls -A "$folder")" ] || fail "not forgotten: $(ls -A "$folder")"
    budget=$((least + 10))
fi

# Nothing can be written: one note, and the answer. A file in place of the folder stops root, too.
rm -r "$folder"
: >"$folder"
same "without a folder"
[ "$(grep -c 'the usage of experts is not kept' "$work/err")" = 1 ] || { cat "$work/err"; fail "not one note"; }
"$run" -q -p 'tell me' -n 40 -c 256 --ram-budget "$budget" "$sparse" >/dev/null 2>"$work/err" || fail "exit $?"
[ ! -s "$work/err" ] || { cat "$work/err"; fail "--quiet is not"; }
rm "$folder"

# Two at once: whichever writes last, the file is whole.
for i in 1 2 3 4; do
    "$run" -q -p "$i" -n 24 --ignore-eos -c 256 --ram-budget "$budget" "$sparse" >/dev/null 2>"$work/err.$i" &
done
wait
cat "$work"/err.[1-4] >"$work/errs"
[ ! -s "$work/errs" ] || { cat "$work/errs"; fail "processes at the same time"; }
answer "$sparse" -v >/dev/null
! grep -q ignored "$work/err" || { cat "$work/err"; fail "damaged by processes at the same time"; }
[ "$(ls -A "$folder" | wc -l)" = 1 ] || fail "left behind: $(ls -A "$folder")"
finish
