#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# tokenizer.json and tokenizer.model give the same ids as the GGUF file of the same vocabulary, for every
# string of the oracle, with and without special tokens, BOS and EOS; unigram vocabularies give those computed
# by a script. Damaged ones are refused with the file's name, without a crash.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/oracle/tokenizers
[ -d "$data" ] || skip "$data is absent"
have python3 || skip "no python3"

# same GGUF OTHER TEXTS: equal ids in every mode
same() {
    for mode in --no-bos '--no-bos --no-special' ''; do
        # shellcheck disable=SC2086
        "$run" --tokenize --jsonl $mode "$1" <"$3" >"$work/want" 2>"$work/err" ||
            { cat "$work/err"; fail "$1"; return; }
        # shellcheck disable=SC2086
        "$run" --tokenize --jsonl $mode "$2" <"$3" >"$work/got" 2>"$work/err" ||
            { cat "$work/err"; fail "$2"; return; }
        cmp -s "$work/want" "$work/got" && continue
        paste -d '\n' "$3" "$work/want" "$work/got" |
            awk 'NR % 3 == 1 { t = $0 } NR % 3 == 2 { w = $0 } NR % 3 == 0 && $0 != w && n++ < 3 { print t; print w; print }' | cut -c1-300
        fail "$2 is not $1 ($mode)"
    done
}

names='gpt-2 llama-bpe deepseek-llm llama-spm phi-3'
[ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || names='gpt-2 phi-3'
for name in $names; do
    gguf=$data/vocab/ggml-vocab-$name.gguf
    [ -f "$gguf" ] || { echo "skip: $gguf is absent"; continue; }
    out=$work/$name
    py "$QSF_SRCDIR/tests/system/vocab_files.py" "$gguf" "$data/pre_tokenizers.json" \
        "$data/ids/$name.jsonl" "$out" ||
        { fail "$name: cannot be written"; continue; }
    same "$gguf" "$out/json" "$out/texts.jsonl"
    [ ! -d "$out/model" ] || same "$gguf" "$out/model/tokenizer.model" "$out/plain.jsonl"
    [ -f "$out/unigram.gguf" ] || continue
    same "$out/unigram.gguf" "$out/unigram-json" "$out/plain.jsonl"
    same "$out/unigram.gguf" "$out/unigram-model" "$out/plain.jsonl"
    "$run" --tokenize --jsonl --no-bos --no-special "$out/unigram.gguf" <"$out/texts.jsonl" >"$work/got" \
        2>/dev/null
    paste "$out/unigram.want" "$work/got" |
        awk -F '\t' '$1 != "skip" && $1 != $2 { print NR ": " $1 " but " $2; n++ } END { exit n > 0 }' |
        cut -c1-300 >"$work/diff"
    [ ! -s "$work/diff" ] ||
        { head -n 5 "$work/diff"; fail "$name as unigram: not what the script computes"; }
done

# a file that is not a vocabulary is refused by name
mkdir "$work/empty" "$work/cut"
expect 3 'tokenizer.json or tokenizer.model' "$run" --tokenize "$work/empty"
for file in "$work/gpt-2/json/tokenizer.json" "$work/phi-3/model/tokenizer.model"; do
    [ -f "$file" ] || continue
    size=$(wc -c <"$file")
    for part in 1 2 7 40 90 99; do
        head -c $((size * part / 100)) "$file" >"$work/cut/${file##*/}"
        expect 3 "${file##*/}" "$run" --tokenize "$work/cut/${file##*/}"
    done
    expect 3 'no weights' "$run" "${file%/*}" -p x
done
finish
