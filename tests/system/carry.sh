#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every architecture and weight type: GGUF to QSF and back. The same logits from a QSF file in each layout,
# compressed and streamed; the same tensors and metadata in the GGUF file that is made from it; matrices
# without a type are requantized.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$mktiny" ] || skip "not built"
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
same=$QSF_SRCDIR/tests/system/gguf_same.py
cd "$work" || exit 1

layouts='rows:none x16:lz4'
[ -n "${QSF_TEST_QUICK-}" ] || ! grep -q '^#define QSF_HAVE_ZSTD 1' "$QSF_BUILDDIR/config.h" ||
    layouts="$layouts rows:zstd"

# same_gguf A B: without Python, only the tensors as listed.
list() { "$run" --inspect "$1" | sed -n '/^tensors/,/^program/p' | grep -v ' bytes at '; }
same_gguf() {
    if have python3; then py "$same" --no-file-type "$1" "$2"
    else [ "$(list "$1")" = "$(list "$2")" ]; fi
}
# there_and_back GGUF LAYOUT:CODEC: makes m.qsf and back.gguf. Options for the conversion may follow.
there_and_back() {
    from=$1 way=$2
    shift 2
    "$convert" --quiet --layout "${way%:*}" --compress "${way#*:}" "$@" "$from" m.qsf 2>err ||
        { fail "$from as $way: $(cat err)"; return 1; }
    "$convert" --verify --quiet m.qsf 2>err || fail "$from as $way: $(cat err)"
    "$convert" --quiet "$@" m.qsf back.gguf 2>err || { fail "$from as $way, back: $(cat err)"; return 1; }
    same_gguf "$from" back.gguf >out || fail "$from as $way, back: $(cat out)"
}

# ---- models that the tests make

ids() { "$run" --json -p 'abc abc' -n 8 --temp 0 --template raw --ignore-eos "$@" 2>err |
    sed 's/.*"text": \("[^}]*"\), "prompt_tokens.*/\1/'; }

"$mktiny" llama.gguf hidden=128 heads=4 ffn=256 layers=3 wtype=2 || fail "mktiny"
"$mktiny" mamba.gguf mamba=7 || fail "mktiny"
for model in llama mamba; do
    want=$(ids $model.gguf)
    [ "$(printf '%s' "$want" | wc -c)" -gt 4 ] || fail "$model does not answer: $(cat err)"
    for way in $layouts; do
        there_and_back $model.gguf $way || continue
        [ "$(ids m.qsf)" = "$want" ] || fail "$model as $way: another answer"
        [ "$(ids --pin 0 --threads 1 m.qsf)" = "$want" ] || fail "$model as $way, streamed: another answer"
        "$convert" --quiet --layout "${way%:*}" --compress "${way#*:}" back.gguf two.qsf &&
            cmp -s m.qsf two.qsf || fail "$model as $way: back.gguf gives another QSF file"
    done
    "$convert" --quiet -q 8bit $model.gguf q.qsf && "$convert" --quiet q.qsf q.gguf ||
        fail "$model as 8bit: $(cat err)"
    [ "$(ids q.qsf)" = "$(ids q.gguf)" ] || fail "$model as 8bit, back: another answer"
done
"$convert" -q 8bit mamba.gguf q.qsf >out && grep -q '^blk.1.ssm_in.weight *F32 *8bit' out &&
    grep -q '^blk.1.ssm_conv1d.weight *F32 *F32 .*never' out || fail "mamba as 8bit: $(cat out)"
"$convert" --inspect q.qsf | grep -q 'blk.1.ssm_in.weight *8bit *x16' ||
    fail "mamba as 8bit: no groups of 16 rows"
"$convert" --verify - <q.qsf >out || fail "--verify -: $(cat out)"

# ---- what GGUF does not have, and options that do not apply

"$convert" --quiet -q 3bit-book --force llama.gguf q.qsf || fail "3bit-book"
expect 3 "is of type QSF3, which GGUF does not have; convert the model to" "$convert" q.qsf q2.gguf
expect 2 'weights are not changed in a GGUF file' "$convert" -q q8_0 m.qsf q2.gguf
expect 2 'weights are not changed in a GGUF file' "$convert" --compress none m.qsf q2.gguf
expect 2 'the output is an input file' "$convert" llama.gguf llama.gguf
expect 0 '' "$convert" --dry-run m.qsf q2.gguf
expect 1 'q2.gguf' sh -c "ulimit -f 20; exec '$convert' m.qsf q2.gguf" # a full disk
[ ! -e q2.gguf ] || fail "a GGUF file was written"

# ---- reference data

# figures MODEL OPTIONS...: of its logits, to the last digit that is printed
figures() { "$run" --parity "$dir" --max-kl 1e9 "$@" 2>err | sed 's/, "argmax_match.*//'; }

# check_case: the model in $dir, number $n. Rows are the easier layout: only its logits are compared.
check_case() {
    rows=none
    [ $((n % 2)) = 0 ] || rows=${layouts##*:}
    want=$(figures)
    there_and_back "$dir/model.gguf" x16:lz4 || return
    [ -n "$want" ] || return 0 # this version cannot run it
    [ "$(figures m.qsf)" = "$want" ] || fail "$dir as x16: other logits: $(cat err)"
    [ "$(figures --pin 0 --slots 2 --batch 7 m.qsf)" = "$want" ] ||
        fail "$dir as x16, streamed: other logits: $(cat err)"
    [ "$(figures --cpu-mask ref m.qsf)" = "$(figures --cpu-mask ref)" ] ||
        fail "$dir: other logits in plain C"
    "$convert" --quiet --layout rows --compress "$rows" "$dir/model.gguf" m.qsf 2>err ||
        fail "$dir as rows: $(cat err)"
    [ "$(figures --pin 0 m.qsf)" = "$want" ] || fail "$dir as rows, $rows, streamed: other logits: $(cat err)"
    case $dir in */parity/*) return 0 ;; esac
    "$convert" --quiet -q 8bit "$dir/model.gguf" q.qsf 2>err || fail "$dir as 8bit: $(cat err)"
    expect 0 '' "$run" --parity "$dir" --max-kl 0.15 q.qsf # that of another expert, chosen for a position
}

n=0 done=0
for dir in "$data"/architectures/*/ "$data"/parity/*/; do
    dir=${dir%/}
    [ -f "$dir/model.gguf" ] || continue
    n=$((n + 1))
    [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || [ $((n % 8)) = 1 ] || continue
    case $dir in */plamo2 | */plamo3) continue ;; esac # their tokenizer is not supported
    check_case
    done=$((done + 1))
done
[ $done -gt 0 ] || echo "skip: no reference data in $data"
echo "$done cases"
finish
