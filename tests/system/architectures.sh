#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every architecture that an independent engine computed logits for: within the bound of its case, exact and
# as shipped, at every level; the same bytes with the prompt whole, in pieces and token by token, and with all
# weights streamed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures
[ -d "$cases" ] || skip "$cases is absent"

value() { sed -n "s/.*\"$2\": *\([-0-9.e]*\).*/\1/p" "$1" | head -n 1; }
# figures OPTIONS...: what the logits of $dir are compared by, to the last bit that is printed.
figures() {
    "$run" --parity "$dir" --max-kl 1e9 "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "$name: exit $? with $*"; }
    shown
}
shown() { sed 's/, "argmax_match.*//' "$work/out"; }

# bound NAME FILE: the exact bound of a case. The reference of minimax-m3 needs flash attention, which adds up
# halves in its first block (ggml-org/llama.cpp src/llama-graph.cpp, ggml-cpu/ops.cpp): its bound is not for
# exact arithmetic.
bound() {
    if [ "$1" = minimax-m3 ]; then
        echo 1e-6
    else
        value "$2" exact_kl
    fi
}

levels=''
for level in ref sse42 avx2 avxvnni avx512 neon; do
    ! "$run" --cpu-mask $level --plan "$tiny" >/dev/null 2>&1 || levels="$levels $level"
done
done=0
left=
for dir in "$cases"/*/; do
    dir=${dir%/}
    name=$(basename "$dir")
    [ -f "$dir/model.gguf" ] || continue
    most=$(value "$dir/about.json" default_kl)
    if ! "$run" --parity "$dir" --max-kl "${most:-0}" >"$work/out" 2>"$work/err"; then
        if grep -qE '(is|are) not supported' "$work/err"; then
            left="$left $name"
            continue
        fi
        cat "$work/err"
        fail "$name: not within $most, or it does not run"
    fi
    whole=$(shown)
    done=$((done + 1))
    expect 0 '' "$run" --parity "$dir" --exact --max-kl "$(bound "$name" "$dir/about.json")"
    # With sanitizers and in a quick run these are tried with every fourth case.
    [ -z "$QSF_TEST_QUICK$QSF_SAN" ] || [ $((done % 4)) = 0 ] || continue
    for level in $levels; do
        expect 0 '' "$run" --parity "$dir" --cpu-mask $level --max-kl "$most"
    done
    for how in '--batch 7' '--batch 1' '--pin 0 --slots 2' '--pin 0 --batch 5 --threads 1' \
        '--io pread --pin 0' \
        "--receipt $work/receipt.json"; do
        # shellcheck disable=SC2086 # words
        [ "$(figures $how)" = "$whole" ] || fail "$name: other logits with $how"
    done
done
echo "$done architectures; not supported:${left:- none}"
[ $done -ge 140 ] || fail "only $done cases ran"
finish
