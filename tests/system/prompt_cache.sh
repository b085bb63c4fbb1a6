#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run --prompt-cache: the same answer with and without, for any threads and budget; files that are
# damaged, foreign, cut, of other settings or cannot be written cost only time, and are reported in one line.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
prompt=$(words 60)
snap=$work/cache.qsfsnap
# ask OPTIONS...: a greedy answer; its text is in $text, the tokens reused in $reused, the lines on stderr in
# $said.
ask() {
    "$run" "$tiny" --temperature 0 --ignore-eos -n 24 --json "$@" >"$work/out" 2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $*"; }
    text=$(answer_text) reused=$(number reused_tokens | sed 's/[^0-9].*//')
    said=$(grep -cv 'KV cache .* would take' "$work/err") # how large q2 is in short contexts
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
}
# same WHAT REUSED OPTIONS...: the answer of a run without a cache, with REUSED tokens from it.
same() {
    what=$1 want=$2
    shift 2
    ask -p "$prompt" --prompt-cache "$snap" "$@"
    [ "$text" = "$plain" ] || fail "$what: another answer"
    [ "$reused" = "$want" ] || { cat "$work/err"; fail "$what: $reused tokens reused instead of $want"; }
}
quiet() { [ "$said" = 0 ] || { cat "$work/err"; fail "$1: something was said"; }; }
# refused WORDS: one line on stderr, with these.
refused() {
    [ "$said" = 1 ] || { cat "$work/err"; fail "$said lines instead of one about $1"; }
    grep -qE -- "$1" "$work/err" || { cat "$work/err"; fail "no /$1/"; }
}
ask -p "$prompt"
plain=$text tokens=$(sed -n 's/.*"prompt_tokens": \([0-9]*\).*/\1/p' "$work/out")
all=$((tokens - 1)) # the last one is evaluated, for its logits
[ -z "$reused" ] || fail "reused_tokens without a cache"

# ---- saved, and used by whatever run
same 'no file' 0
quiet 'no file'
[ "$(stat -c %a "$snap")" = 600 ] || fail "the file is not private: $(stat -c %a "$snap")"
cp "$snap" "$work/good"
for options in '-t 1' '-t 3 --pin 0' '--batch 2' '-c 200' '--ram-budget auto' '--pin 0 --io pread'; do
    # shellcheck disable=SC2086
    same "$options" $all $options
    quiet "$options"
    cmp -s "$snap" "$work/good" || fail "$options: the file has changed although there was nothing to add"
done
ask -p "$prompt" -n 5
[ -n "$text" ] || fail "no answer"
[ -z "$(find "$work" -name '*.qsf-part')" ] || fail "a temporary file is left"
# Another question after the same beginning: only that is evaluated; the file then has the later one.
longer="$prompt a b c"
ask -p "$longer"
other=$text
ask -p "$longer" --prompt-cache "$snap"
[ "$text" = "$other" ] || fail "another answer after a common beginning"
[ "$reused" -ge 40 ] || fail "a common beginning: only $reused tokens reused"
# From a pipe, and interrupted: what was evaluated is saved.
printf %s "$prompt" |
    "$run" "$tiny" --temperature 0 --ignore-eos -n 24 --json --prompt-cache "$work/pipe" >"$work/out" 2>&1 ||
    fail "no answer from a pipe"
[ "$(answer_text)" = "$plain" ] || fail "another answer from a pipe"
printf %s "$prompt" |
    "$run" "$tiny" --temperature 0 --ignore-eos -n 24 --json --prompt-cache "$work/pipe" >"$work/out" 2>&1
[ "$(number reused_tokens | sed 's/[^0-9].*//')" = $all ] || fail "nothing reused from a pipe"

# ---- refused, evaluated and replaced
# refuse WORDS OPTIONS...: with the good file or what was made of it; the next run finds a good one.
refuse() {
    words=$1
    shift
    same "$words" 0 "$@"
    refused "$words; the prompt is evaluated, and the file replaced"
    same "after $words" $all "$@"
    quiet "after $words"
    cp "$work/good" "$snap"
}
cp "$work/good" "$snap"
refuse 'another model' --override-kv general.name=str:other
# f32 has another answer than f16 only by chance: it is compared with its own.
kept=$plain
for options in '--kv-type f32' '--exact' '--cpu-mask ref'; do
    # shellcheck disable=SC2086
    ask -p "$prompt" $options
    plain=$text
    # shellcheck disable=SC2086
    refuse 'made with other settings .KV type, --exact, --cpu-mask.' $options
done
plain=$kept
# A byte of each part: version, model and settings in the header; head, tokens, rows and end of a segment.
bytes=$(wc -c <"$snap")
patch() { # AT
    old=$(dd if="$snap" bs=1 skip="$1" count=1 2>/dev/null | od -An -tu1 | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((old ^ 1)))" | dd of="$snap" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
for at in 16 70 100 319 370 420 1200 $((bytes / 2)); do
    patch $at
    same "damaged at $at" 0
    refused 'the snapshot is damaged; the prompt'
    same "after damage at $at" $all
    quiet "after damage at $at"
    cp "$work/good" "$snap"
done
for at in 9 $((bytes / 3)) $((bytes - 1)); do
    head -c "$at" "$work/good" >"$snap"
    same "cut after $at" 0
    refused 'the snapshot is damaged; the prompt'
    same "after a cut at $at" $all
    quiet "after a cut at $at"
done

# A segment that is whole counts, and the end of the file is told.
cp "$work/good" "$snap"
same 'good' $all
ask -p "$prompt a b c" --prompt-cache "$snap"
head -c -1 "$snap" >"$work/cut"
cp "$work/cut" "$snap"
ask -p "$prompt" --prompt-cache "$snap"
[ "$text" = "$plain" ] || fail "a cut end: another answer"
[ "$reused" -ge 40 ] || fail "a cut end: only $reused tokens reused"
refused 'the end of the snapshot is cut or damaged; the rest of the prompt is evaluated, and the file replaced'
same 'after a cut end' $all
quiet 'after a cut end'

# ---- not touched
# kept WORDS FILE: is refused, and stays what it is.
kept() {
    cp "$2" "$snap"
    same "$1" 0
    refused "$1; the prompt is evaluated\$"
    cmp -s "$2" "$snap" || fail "$1: the file was overwritten"
}
echo 'my notes' >"$work/notes"
kept 'is not a snapshot of a conversation' "$work/notes"
{ head -c 8 "$work/good"; printf '\003'; tail -c +10 "$work/good"; } >"$work/newer"
kept 'is a snapshot of format 3, and this program reads formats up to 2' "$work/newer"
rm -f "$snap"
mkdir "$snap"
same 'a directory' 0
refused 'not a regular file'
rmdir "$snap"
# A name that the user did not give is never written: a symbolic link stays one.
cp "$work/good" "$work/real"
ln -s real "$snap"
ask -p "$prompt z" --prompt-cache "$snap" --kv-type f32
[ -L "$snap" ] || fail "a symbolic link was replaced by a file"
cmp -s "$work/good" "$work/real" && fail "the file behind a symbolic link was not replaced"
rm -f "$snap"

# ---- cannot be written
snap=$work/no/folder
same 'no folder' 0
refused 'cannot write the snapshot: No such file or directory'
snap=/proc/qsf.qsfsnap
same '/proc' 0
refused 'cannot write the snapshot'
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/ro"
    chmod 500 "$work/ro"
    snap=$work/ro/x
    same 'a read-only folder' 0
    refused 'cannot write the snapshot: Permission denied'
fi
# A full disk: nothing is left of a new file, and an old one keeps what it had.
snap=$work/full
full() { (ulimit -f 8 &&
    exec "$run" "$tiny" --temperature 0 --ignore-eos -n 24 --json --prompt-cache "$snap" "$@") >"$work/out" \
    2>"$work/err" </dev/null; }
full -p "$prompt" || { cat "$work/err"; fail "a full disk ended the run"; }
[ "$(answer_text)" = "$plain" ] || fail "a full disk: another answer"
grep -q 'cannot write the snapshot: File too large' "$work/err" ||
    { cat "$work/err"; fail "a full disk was not reported"; }
[ ! -e "$snap" ] || fail "a full disk: a part of a file is left"
ask -p "$prompt" --prompt-cache "$snap" -n 2
before=$(wc -c <"$snap")
blocks=$((before / 512 + 1))
(ulimit -f $blocks &&
    exec "$run" "$tiny" --temperature 0 --ignore-eos -n 60 --prompt-cache "$snap" -p "$prompt") >"$work/out" \
    2>"$work/err" </dev/null ||
    { cat "$work/err"; fail "a full disk ended the run"; }
grep -q 'cannot write the snapshot: File too large' "$work/err" ||
    { cat "$work/err"; fail "a full disk was not reported"; }
[ "$(wc -c <"$snap")" = "$before" ] || fail "a full disk: $(wc -c <"$snap") bytes instead of $before"
same 'after a full disk' $all

# ---- several processes at once
snap=$work/shared
for i in 1 2 3 4; do
    "$run" "$tiny" --temperature 0 --ignore-eos -n 24 --json --prompt-cache "$snap" -p "$prompt" \
        >"$work/out$i" 2>"$work/err$i" </dev/null &
done
wait
for i in 1 2 3 4; do
    cp "$work/out$i" "$work/out"
    [ "$(answer_text)" = "$plain" ] || { cat "$work/err$i"; fail "process $i: another answer"; }
done
same 'after four processes' $all
quiet 'after four processes'

# ---- usage
expect 2 'requires a prompt' "$run" --prompt-cache x --plan "$tiny"
expect 2 'the file name is empty' "$run" --prompt-cache '' -p a "$tiny"

# ---- with an eviction policy, beyond the context
for policy in sliding h2o; do
    snap=$work/$policy options="-c 128 --eviction-policy $policy"
    # shellcheck disable=SC2086
    {
        ask -p "$(words 260)" $options
        plain=$text
        ask -p "$(words 180)" $options --prompt-cache "$snap" -n 2
        prompt=$(words 260)
        ask -p "$prompt" $options --prompt-cache "$snap" -t 1 --pin 0
        [ "$text" = "$plain" ] || fail "$policy: another answer"
        [ "$reused" -gt 128 ] || { cat "$work/err"; fail "$policy: only $reused tokens reused"; }
        [ "$said" = 1 ] || { cat "$work/err"; fail "$policy: more was said than that the context is full"; }
        ask -p "$prompt" -c 144 --eviction-policy $policy --prompt-cache "$snap"
        grep -q 'made with other settings (eviction, context); the prompt is evaluated, and the file replaced' "$work/err" ||
            { cat "$work/err"; fail "$policy: another context was not refused"; }
    }
done
snap=$work/snapkv
ask -p "$prompt" -c 128 --eviction-policy snapkv --prompt-cache "$snap"
grep -q 'no snapshot: what snapkv evicts depends on' "$work/err" ||
    { cat "$work/err"; fail "snapkv was not mentioned"; }
[ ! -e "$snap" ] || fail "a snapshot with snapkv"
snap=$work/short
ask -p "$prompt" -c 128 --eviction-policy sliding --memory-threshold-mb 9999999 --prompt-cache "$snap"
grep -q 'no snapshot: memory was short' "$work/err" ||
    { cat "$work/err"; fail "a shrunken cache was not mentioned"; }
[ ! -e "$snap" ] || fail "a snapshot of a shrunken cache"
prompt=$(words 60)

# ---- kinds of caches
for kind in gemma3 jamba mamba2 rwkv7 deepseek2_lite falcon-h1 lfm2 exaone4_swa; do
    tiny=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures/$kind/model.gguf
    [ -f "$tiny" ] || { echo "skip: no $tiny: snapshots of $kind"; continue; }
    for type in 'f32 f32' 'f16 f16' 'q8 q8' 'q8 f16' 'f32 q8' 'q6 q6' 'q8 q4' 'q4 q4' 'q2 q2' 'f16 q2' \
        'q2 q8'; do
        snap=$work/$kind.$type
        types="--k-type ${type% *} --v-type ${type#* }"
        # shellcheck disable=SC2086
        ask -p "$prompt" $types
        plain=$text
        # shellcheck disable=SC2086
        ask -p "$prompt" $types --prompt-cache "$snap"
        [ "$text" = "$plain" ] || fail "$kind $type: another answer while saving"
        # shellcheck disable=SC2086
        ask -p "$prompt" $types --prompt-cache "$snap" -t 1 --pin 0
        [ "$text" = "$plain" ] || fail "$kind $type: another answer after loading"
        quiet "$kind $type"
        [ "$reused" -gt 60 ] || fail "$kind $type: $reused tokens reused"
    done
done
finish
