#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Next-token blocks that an independent engine computed logits for: within the bound of their case, exact and
# as shipped; the same bytes in pieces, token by token, and with all weights streamed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/mtp
echo 5 6 >"$work/tokens.txt"
: >"$work/mtp.f32"
expect 3 'has no next-token block 0, it has 0' "$run" --parity "$work" --nextn 0 "$tiny"
expect 2 'expected the number of a block' "$run" --parity "$work" --nextn -1 "$tiny"
expect 2 'requires --parity' "$run" -p a --nextn 0 "$tiny"
[ -d "$cases" ] || skip "$cases is absent: nothing was compared"

value() { sed -n "s/.*\"$2\": *\([-0-9.e]*\).*/\1/p" "$1" | head -n 1; }
# figures OPTIONS...: what the logits of $dir are compared by, to the last bit that is printed.
figures() {
    "$run" --parity "$dir" --nextn $k --max-kl 1e9 "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "$dir $k: exit $? with $*"; }
    sed 's/, "argmax_match.*//' "$work/out"
}

done=0
for dir in "$cases"/*/; do
    dir=${dir%/}
    [ -f "$dir/model.gguf" ] || continue
    about=$dir/about.json
    n=$(value "$about" blocks)
    k=0
    while [ $k -lt "${n:-1}" ]; do
        expect 0 '' "$run" --parity "$dir" --nextn $k --exact --max-kl "$(value "$about" exact_kl)"
        expect 0 '' "$run" --parity "$dir" --nextn $k --max-kl "$(value "$about" default_kl)"
        whole=$(figures)
        for how in '--batch 7' '--batch 1 --threads 1' '--pin 0 --slots 2 --batch 5'; do
            # shellcheck disable=SC2086 # words
            [ "$(figures $how)" = "$whole" ] || fail "$dir $k: other logits with $how"
        done
        k=$((k + 1))
        done=$((done + 1))
    done
    expect 0 '' "$run" --parity "$dir" --exact --max-kl "$(value "$about" exact_kl)"

done
echo "$done blocks"
[ $done -ge 12 ] || fail "only $done blocks were compared"
finish
