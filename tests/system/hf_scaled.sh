#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# F8 weights with scales of blocks answer like the same weights as BF16, also where heads are cut from a
# matrix and transposed, with heads that begin within a block and a last block that is smaller.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
. "$(dirname "$0")/hf.sh"

# same NAME DIR ROWS COLS
same() {
    rm -rf "$work/fp8" "$work/bf16"
    py "$here/hf/fp8.py" "$2" "$work/fp8" "$work/bf16" "$3" "$4" || { fail "$1: fp8.py"; return; }
    at=$work/fp8
    text=$(answer "$work/bf16")
    case $text in *'"tokens": 12'* | *'"stop": "eos"'*) ;; *) fail "$1: $text" ;; esac
    equal "$1 $3x$4" "$text" answer "$work/fp8"
    equal "$1 $3x$4" "$text" answer "$work/fp8" --pin 0 --slots 2 --io pread --batch 3 --threads 1
    equal "$1 $3x$4" "$(answer "$work/bf16" --exact)" answer "$work/fp8" --exact --io mmap
    if [ -f "$reference/logits.f32" ]; then
        equal "$1 $3x$4" "$(figures "$work/bf16")" figures "$work/fp8"
        equal "$1 $3x$4" "$(figures "$work/bf16" --exact)" figures "$work/fp8" --exact --pin 0 --slots 2
    fi
    "$convert" -q keep --quiet "$work/fp8" "$work/fp8.qsf" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "$1: qsf-convert"; }
    equal "$1 $3x$4" "$text" answer "$work/fp8.qsf"
}

for arch in llama phi3 qwen3moe deepseek2 deepseek2_v2; do
    py "$here/hf/tiny.py" $arch "$work/tiny.$arch.gguf" || { fail "tiny.py $arch"; continue; }
    make_dir "$work/tiny.$arch.gguf" $arch || { fail "$arch: $(tail -n 1 "$work/err")"; continue; }
    same "own $arch" "$work/$arch/dir" 5 7
    [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || continue
    same "own $arch" "$work/$arch/dir" 128 128
done

cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures
[ -d "$cases" ] || skip "$cases is absent"
for name in deepseek2 gptneox; do
    reference=$cases/$name
    make_dir "$reference/model.gguf" "$name" || { fail "$name: $(tail -n 1 "$work/err")"; continue; }
    same "$name" "$work/$name/dir" 24 40
done
finish
