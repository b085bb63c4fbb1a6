#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Next-token blocks that an independent engine computed logits for: within the bound of their case, exact and
# as shipped; the same bytes in pieces, token by token, with all weights streamed, of a QSF file, and of a
# Hugging Face directory.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
. "$(dirname "$0")/hf.sh"
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
cases=$data/mtp
pre=$data/oracle/tokenizers/pre_tokenizers.json
echo 5 6 >"$work/tokens.txt"
: >"$work/mtp.f32"
expect 3 'has no next-token block 0, it has 0' "$run" --parity "$work" --nextn 0 "$tiny"
rm "$work/mtp.f32" # the model comes first
expect 3 'has no next-token block 2, it has 0' "$run" --parity "$work" --nextn 2 "$tiny"
expect 3 "logits none.f32: there is no such file in $work, nor here" \
    "$run" --parity "$work" --logits none.f32 "$tiny"
expect 2 'expected the number of a block' "$run" --parity "$work" --nextn -1 "$tiny"
expect 2 'requires --parity' "$run" -p a --nextn 0 "$tiny"
# The matrices of a block are quantized as those of the model.
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/block.gguf" nextn=1 || fail "mktiny"
expect 0 '' "$convert" -q q8_0 --dry-run "$work/block.gguf" "$work/block.qsf"
for matrix in nextn.eh_proj attn_q ffn_down; do
    grep -q "^blk.2.$matrix.weight *F32 *Q8_0 " "$work/out" || { cat "$work/out"; fail "$matrix was not quantized"; }
done
[ -d "$cases" ] || skip "$cases is absent: nothing was compared"

value() { sed -n "s/.*\"$2\": *\([-0-9.e]*\).*/\1/p" "$1" | head -n 1; }
# figures OPTIONS...: what the logits of $dir are compared by, to the last bit that is printed.
figures() {
    "$run" --parity "$dir" --nextn $k --max-kl 1e9 "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "$dir $k: exit $? with $*"; }
    sed 's/, "argmax_match.*//' "$work/out"
}

# same NAME MODEL: a file or directory with the blocks of $dir.
same() {
    got=$("$run" --parity "$dir" "$2" --nextn 0 --max-kl 1e9 2>&1 | sed 's/, "argmax_match.*//')
    [ "$got" = "$logits" ] || fail "$dir as $1: $got instead of $logits"
}

done=0 dirs=0
for dir in "$cases"/*/; do
    dir=${dir%/}
    [ -f "$dir/model.gguf" ] || continue
    about=$dir/about.json
    n=$(value "$about" blocks)
    k=0
    while [ $k -lt "${n:-1}" ]; do
        expect 0 '' "$run" --parity "$dir" --nextn $k --exact --max-kl "$(value "$about" exact_kl)"
        expect 0 '' "$run" --parity "$dir" --nextn $k --max-kl "$(value "$about" default_kl)"
        k=$((k + 1))
        done=$((done + 1))
        # With sanitizers and in a quick run, these are tried with every fourth block.
        [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || [ $((done % 4)) = 0 ] || continue
        k=$((k - 1))
        whole=$(figures)
        for how in '--batch 7' '--batch 1 --threads 1' '--pin 0 --slots 2 --batch 5'; do
            # shellcheck disable=SC2086 # words
            [ "$(figures $how)" = "$whole" ] || fail "$dir $k: other logits with $how"
        done
        k=$((k + 1))
    done
    k=0
    logits=$(figures)
    expect 0 '' "$convert" -q keep --quiet "$dir/model.gguf" "$work/a.qsf"
    same QSF "$work/a.qsf"
    if make_dir "$dir/model.gguf" hf --pre "$pre"; then
        logits=$("$run" --parity "$dir" "$at/model.gguf" --nextn 0 --max-kl 1e9 | sed 's/, "argmax_match.*//')
        same directory "$at/dir"
        dirs=$((dirs + 1))
    fi
    rm -rf "$at" "$work/a.qsf"
    expect 0 '' "$run" --parity "$dir" --exact --max-kl "$(value "$about" exact_kl)"
done
echo "$done blocks, $dirs directories"
[ $dirs -ge 3 ] || fail "only $dirs directories were compared"
[ $done -ge 12 ] || fail "only $done blocks were compared"
finish
