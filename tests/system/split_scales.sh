#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# I2_S weights whose scales are tensors of their own give the answers of the same weights with scales inside:
# for any budget and way to read, and after a conversion to QSF and back. Wrong scales are refused.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run chat=$QSF_BUILDDIR/qsf-chat \
    mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$mktiny" ] || skip "not built"
have python3 || skip "python3 is not installed"
split="py $QSF_SRCDIR/tests/system/split_scales.py"
export PYTHONDONTWRITEBYTECODE=1
cd "$work" || exit 1

ids() { "$run" --json -p 'abc abc' -n 8 --temp 0 --template raw --ignore-eos "$@" 2>err |
    LC_ALL=C sed 's/.*"text": \("[^}]*"\), "prompt_tokens.*/\1/'; }

# Columns of 128 and 256: the latter have the size of qk256, too.
for hidden in 128 256; do
    "$mktiny" base.gguf hidden=$hidden heads=4 ffn=512 layers=3 || fail "mktiny"
    for layout in inline f16 f32; do $split base.gguf $layout.gguf $layout || fail "$layout"; done
    answer=$(ids inline.gguf)
    [ "$(printf '%s' "$answer" | wc -c)" -gt 4 ] || fail "no answer: $(cat err)"
    [ "$(ids base.gguf)" != "$answer" ] || fail "the weights make no difference"
    for model in f16 f32; do
        for way in "" "--pin 0" "--pin 0 --slots 1 --threads 1 --io pread" "--pin 0 --io uring --direct on" \
            "--pin 0 --io mmap --batch 2" "--pin 40K --direct off"; do
            # shellcheck disable=SC2086
            [ "$(ids $way $model.gguf)" = "$answer" ] ||
                fail "$hidden $model $way: another answer: $(cat err)"
        done
        [ "$(ids --exact $model.gguf)" = "$(ids --exact inline.gguf)" ] ||
            fail "$hidden $model --exact: another answer"
        [ "$(ids --i2s-flavor split32 $model.gguf)" = "$answer" ] ||
            fail "$hidden $model --i2s-flavor: another answer: $(cat err)"
        expect 0 '' "$run" --inspect $model.gguf
        grep -q 'blk.0.attn_q.weight *I2_32 ' out || fail "$model --inspect: no I2_32"
        ! grep -q 'blk.*scale' out || fail "$model --inspect lists scales"
        for layout in rows x16; do
            "$convert" --quiet --layout $layout $model.gguf m.qsf 2>err &&
                "$convert" --verify --quiet m.qsf || fail "$model to QSF: $(cat err)"
            [ "$(ids m.qsf)" = "$answer" ] || fail "$model as QSF, $layout: another answer"
            "$convert" --quiet m.qsf back.gguf 2>err || fail "$model back: $(cat err)"
            py "$QSF_SRCDIR/tests/system/gguf_same.py" --no-file-type inline.gguf back.gguf >out ||
                fail "$model back: $(cat out)"
        done
        "$convert" --quiet $model.gguf direct.gguf 2>err && [ "$(ids direct.gguf)" = "$answer" ] ||
            fail "$model to GGUF: $(cat err)"
    done
done
if [ -x "$chat" ]; then
    ask() { printf 'abc\n' | "$chat" --plain --temp 0 -n 8 --ignore-eos "$1" 2>err |
        LC_ALL=C sed "s/$1/MODEL/g"; }
    ask f32.gguf >a || fail "qsf-chat: $(cat err)"
    [ -s a ] || fail "qsf-chat: no answer: $(cat err)"
fi

# ---- refused

q=blk.0.attn_output
for layout in f16 f32; do
    $split base.gguf bad.gguf $layout count
    expect 3 "tensor '${q}[._]scales?' has [0-9]+ elements, expected [0-9]+, a scale for each block of 32 elements of '$q.weight'" "$run" -p a -n 1 bad.gguf
    expect 3 "has [0-9]+ elements, expected" "$convert" bad.gguf bad.qsf
done
$split base.gguf bad.gguf f32 type
expect 3 "tensor '${q}[._]scales?' has the scales of '$q.weight' and is of type I32, expected F16 or F32" \
    "$run" --inspect bad.gguf
$split base.gguf bad.gguf f32 large
expect 3 "tensor '$q.weight': the scale of block [0-9]+ is 1e\+06, expected a value that float16 can represent" "$run" -p a -n 1 bad.gguf
expect 3 "the scale of block" "$run" -p a -n 1 --pin 0 bad.gguf
expect 3 "the scale of block" "$convert" bad.gguf bad.qsf
[ ! -e bad.qsf ] || fail "a QSF file was written"
"$mktiny" base.gguf hidden=128 heads=4 ffn=512 layers=3 && $split base.gguf bad.gguf f16 missing
expect 3 "tensor '$q.weight' of type I2_S \(128 x 128\) has the size of the layout split32, but there is no tensor with its scales" "$run" -p a -n 1 bad.gguf
expect 3 "no tensor with its scales" "$run" -p a -n 1 --i2s-flavor split32 bad.gguf
finish
