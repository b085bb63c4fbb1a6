#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A model file that is truncated, changed in place, replaced or deleted while it streams: qsf-run exits with 1
# and names the file, never because of a signal; a deleted file remains usable. The chat survives too, and
# /retry answers when the file is restored.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat
whole=$work/whole.gguf model=$work/model.gguf
"$QSF_BUILDDIR/obj/tests/tools/mkbig" "$whole" layers=2 hidden=512 heads=8 ffn=1536 vocab=4000 type=q8_0 ||
    fail "mkbig"
size=$(wc -c <"$whole")

# What happens to the file. A new file with the old bytes is still another file.
cut_it() { truncate -s $((size / 2)) "$model"; }
change_it() { printf x | dd of="$model" bs=1 seek=$((size * 2 / 3)) conv=notrunc 2>/dev/null; }
replace_it() { cp "$whole" "$model.new" && mv "$model.new" "$model"; }
delete_it() { rm -f "$model"; }

# until_there FILE [WORDS]: waits for output, as long as the program runs.
until_there() {
    while ! grep -qs -- "${2-}" "$1"; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.02
    done
    grep -qs -- "${2-}" "$1" || { cat "$work/err"; fail "no /${2-}/ in ${1##*/}"; }
}
# The reference level is slow enough to be interrupted, on any machine; one thread, too.
slow='--temperature 0 --ignore-eos --pin 0 -t 1 -c 2048 --cpu-mask ref'

# during WAY FAULT WORDS: qsf-run in the middle of a long answer.
during() {
    cp "$whole" "$model"
    : >"$work/out" # output of the last run must not be mistaken for this one's
    # shellcheck disable=SC2086
    "$run" $slow --io "$1" -n 2000 -p 'a b c' "$model" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    until_there "$work/out" .
    "$2"
    wait $pid
    got=$?
    [ $got = 1 ] || { cat "$work/err"; fail "$2 with --io $1: exit $got"; }
    grep -qE "model.gguf.*($3)" "$work/err" ||
        { cat "$work/err"; fail "$2 with --io $1: no '$3' about the file"; }
}
for way in uring pread mmap; do
    during $way cut_it 'ends at byte offset|the file changed'
    during $way change_it 'modified'
    during $way replace_it 'replaced'
done

# Deleted: the answer continues as if nothing had happened.
cp "$whole" "$model"
: >"$work/out"
# shellcheck disable=SC2086
"$run" $slow -n 40 -p 'a b c' "$whole" >"$work/undisturbed" 2>/dev/null </dev/null
# shellcheck disable=SC2086
"$run" $slow -n 40 -p 'a b c' "$model" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until_there "$work/out" .
delete_it
wait $pid || { cat "$work/err"; fail "a deleted file ends the answer"; }
cmp -s "$work/out" "$work/undisturbed" || fail "a deleted file changes the answer"

# ---- the chat
[ -x "$chat" ] || skip "qsf-chat is not built"
cp "$whole" "$model"
# shellcheck disable=SC2086
printf '/set max-tokens 12\nd e f\n' | "$chat" --plain $slow "$model" >"$work/undisturbed" 2>/dev/null
[ -s "$work/undisturbed" ] || fail "no undisturbed answer"
for trouble in cut_it change_it replace_it; do
    cp "$whole" "$model"
    rm -f "$work/in"
    mkfifo "$work/in"
    : >"$work/out"
    : >"$work/err"
    # shellcheck disable=SC2086
    "$chat" --plain $slow "$model" <"$work/in" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 3>"$work/in"
    echo 'd e f' >&3
    until_there "$work/out" .
    $trouble
    until_there "$work/err" 'model.gguf'
    kill -0 $pid || fail "$trouble: the chat has ended"
    cp "$whole" "$model"
    before=$(wc -c <"$work/out")
    printf '/set max-tokens 12\n/retry\n' >&3
    exec 3>&-
    wait $pid
    got=$?
    [ $got -le 1 ] || { cat "$work/err"; fail "$trouble: the chat ends with $got"; }
    tail -c +$((before + 1)) "$work/out" | tail -n "$(grep -c '' "$work/undisturbed")" |
        cmp -s - "$work/undisturbed" ||
        { cat "$work/undisturbed" "$work/out" "$work/err"; fail "$trouble: another answer after /retry"; }
done
finish
