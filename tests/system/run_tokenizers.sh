#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --tokenize on vocabulary-only files; such a file cannot generate.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
vocabs=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/oracle/tokenizers/vocab
[ -d "$vocabs" ] || skip "$vocabs is absent"

for v in "$vocabs"/*.gguf; do
    expect 0 '' "$run" --tokenize "$v"
    printf 'Hello, world! \303\244 \344\270\255' >"$work/text"
    "$run" --tokenize --no-bos "$v" <"$work/text" >"$work/ids" 2>/dev/null || fail "$v: --tokenize"
    "$run" --detokenize "$v" <"$work/ids" >"$work/out" 2>/dev/null || fail "$v: --detokenize"
    grep -q 'Hello, world! ' "$work/out" || { cat "$work/ids" "$work/out"; fail "$v: text to ids and back"; }
    expect 3 "$(basename "$v")" "$run" "$v" -p x
done

# A budget is kept, or refused with one that works: prose, one long word, JSON lines.
head -c 1000000 /dev/zero | tr '\0' a >"$work/word"
yes 'It was a bright cold day in spring.' | head -n 40000 >"$work/prose"
yes '"a text in JSON"' | head -n 40000 >"$work/jsonl"
mkfifo "$work/pipe"
exec 3<>"$work/pipe"
# within VOCABULARY TEXT OPTIONS...: its peak, once it writes ids, is below the budget that a refusal named.
within() {
    vocab=$1 text=$2
    shift 2
    "$run" --tokenize --ram-budget 1 "$@" "$vocab" <"$text" >"$work/out" 2>"$work/err"
    got=$?
    mb=$(sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")
    [ $got = 4 ] && [ -n "$mb" ] || { cat "$work/err"; fail "$vocab: a budget of 1 MB: status $got"; return; }
    [ ! -s "$work/out" ] || fail "$vocab: a refusal wrote ids"
    mb=$(sure "$mb")
    "$run" --tokenize --ram-budget "$mb" "$@" "$vocab" <"$text" >"$work/pipe" 2>"$work/err" &
    pid=$!
    if head -c 1 <&3 >/dev/null && [ -z "${QSF_SAN-}" ]; then # more follows than a pipe holds
        peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")
        [ "${peak:-0}" -le $((mb * 1024)) ] || fail "$vocab: a peak of $peak KB with a budget of $mb MB"
    fi
    dd bs=65536 <&3 >/dev/null 2>&1 &
    drain=$!
    wait $pid
    got=$?
    kill $drain
    wait $drain
    [ $got = 0 ] || { cat "$work/err"; fail "$vocab: status $got with the budget that was named, $mb MB"; }
}
for v in gpt-2 llama-spm; do
    for text in word prose; do within "$vocabs/ggml-vocab-$v.gguf" "$work/$text"; done
    within "$vocabs/ggml-vocab-$v.gguf" "$work/jsonl" --jsonl
done
exec 3>&-
finish
