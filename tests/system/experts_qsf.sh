#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# In a QSF file the matrices of an expert follow one another: one read for an expert instead of three, fewer
# bytes, the same answers as with the GGUF file at every budget, and the same GGUF file again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
tools=$QSF_BUILDDIR/obj/tests/tools convert=$QSF_BUILDDIR/qsf-convert
[ -x "$convert" ] || skip "qsf-convert is not built"
cd "$work" || exit 1
"$tools/mkbig" sparse.gguf layers=3 hidden=256 heads=4 ffn=256 experts=32 used=4 type=q4_k vocab=300 ||
    fail "mkbig"
expect 0 '' "$convert" --dry-run sparse.gguf together.qsf
grep -q '^blk.0.ffn_down_exps.weight' out || { cat out; fail "the report has no row for all experts"; }
expect 0 '' "$convert" sparse.gguf together.qsf
expect 0 '' "$convert" --quiet --experts stacked sparse.gguf stacked.qsf
expect 0 '' "$convert" --verify together.qsf
[ "$("$convert" --inspect together.qsf | grep -c 'ffn_[a-z]*\.[0-9]*\.weight')" = 288 ] ||
    fail "not 3 x 32 matrices in each layer"

# ask PIN FILE: a greedy answer. What is read ahead in time is not a miss.
ask() { expect 0 '' "$run" --json --temperature 0 --ignore-eos -n 16 -c 64 --expert-ahead off \
    -p 'a b c d' --pin "$1" "$2"; }
# each MISSES READS N: about N reads for each miss.
each() { awk -v m="$1" -v r="$2" -v n="$3" 'BEGIN { exit !(m > 0 && r > 0.99 * n * m && r < 1.01 * n * m) }'; }
weights=$(($(wc -c <sparse.gguf) / 1024))
for part in 0 20 40 60 200; do
    ask $((weights * part / 100))K sparse.gguf
    text=$(answer_text) mb=$(number read_mb_per_token)
    misses=$(number expert_misses_per_token)
    [ $part != 40 ] || each "$misses" "$(number expert_reads_per_token)" 3 ||
        { cat out; fail "not three reads for an expert of a GGUF file"; }
    for file in together stacked; do
        ask $((weights * part / 100))K $file.qsf
        [ "$(answer_text)" = "$text" ] || fail "another answer: $file, $part % of the weights"
        case $part$file in
        40together)
            each "$(number expert_misses_per_token)" "$(number expert_reads_per_token)" 1 ||
                { cat out; fail "not one read for an expert of a QSF file"; }
            [ "$(number expert_misses_per_token)" = "$misses" ] || fail "other misses than with the GGUF file"
            awk -v a="$(number read_mb_per_token)" -v b="$mb" 'BEGIN { exit !(a < b) }' ||
                fail "$(number read_mb_per_token) MB per token instead of less than $mb" ;;
        esac
    done
done

# Back to GGUF: the same tensors, and the same ones from both layouts if they were requantized.
for layout in stacked fused separate; do
    "$tools/mktiny" $layout.gguf experts=$layout shared=1 || fail "mktiny"
    expect 0 '' "$convert" --quiet $layout.gguf a.qsf
    expect 0 '' "$convert" --quiet a.qsf again.gguf
    ! have python3 || py "$QSF_SRCDIR/tests/system/gguf_same.py" $layout.gguf again.gguf ||
        fail "other tensors: $layout"
    expect 0 '' "$convert" --quiet a.qsf b.qsf
    expect 0 '' "$convert" --quiet --experts stacked a.qsf c.qsf
    for file in b c; do
        expect 0 '' "$convert" --quiet $file.qsf b.gguf
        [ "$(wc -c <b.gguf)" -ge "$(wc -c <again.gguf)" ] || fail "tensors are missing: $layout, $file.qsf"
        ask 300K $file.qsf
    done
    expect 0 '' "$convert" --quiet -q q4_0 $layout.gguf a.qsf
    expect 0 '' "$convert" --quiet -q q4_0 --experts stacked $layout.gguf b.qsf
    expect 0 '' "$convert" --quiet a.qsf a.gguf
    expect 0 '' "$convert" --quiet b.qsf b.gguf
    cmp a.gguf b.gguf || fail "requantized experts depend on the layout: $layout"
done

# Fewer bits for those that are seldom used: a smaller file that is intact and runs.
expect 0 '' "$run" --trace-experts trace.txt --temperature 0.8 --seed 1 --ignore-eos -n 100 -c 128 -p 'a b' \
    sparse.gguf
expect 0 '' "$convert" --experts-by-use trace.txt sparse.gguf seldom.qsf
grep -qE '^blk.2.ffn_up_exps.weight +Q4_K +Q4_K .* [0-9]+ of 32 seldom used: 3bit-book' out ||
    { cat out; fail "the report does not name the experts that are seldom used"; }
[ "$(wc -c <seldom.qsf)" -lt "$(wc -c <together.qsf)" ] || fail "the file is not smaller"
expect 0 '' "$convert" --verify seldom.qsf
ask 0 seldom.qsf
text=$(answer_text)
ask $((weights * 40 / 100))K seldom.qsf
[ "$(answer_text)" = "$text" ] || fail "another answer with slots: seldom.qsf"
expect 0 '' "$convert" --quiet seldom.qsf seldom2.qsf
ask 0 seldom2.qsf
[ "$(answer_text)" = "$text" ] || fail "another answer: a copy of seldom.qsf"
# The same by what was kept of answers: the file of the model, by its name or by looking for it.
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
expect 2 'nothing is known yet of sparse.gguf' "$convert" --experts-by-use learned sparse.gguf x.qsf
expect 0 '' "$run" --temperature 0.8 --seed 1 --ignore-eos -n 100 -c 128 -p 'a b' \
    --ram-budget "$(least_budget -c 128 sparse.gguf | awk '{ print $1 + 6 }')" sparse.gguf
expect 0 '' "$convert" --experts-by-use learned sparse.gguf learned.qsf
grep -qE '^blk.2.ffn_up_exps.weight .* [0-9]+ of 32 seldom used: 3bit-book' out ||
    { cat out; fail "the report does not name the experts that are seldom used, of those that were learned"; }
expect 0 '' "$convert" --quiet --experts-by-use "$(echo "$XDG_STATE_HOME"/qsf/experts/*)" sparse.gguf named.qsf
cmp learned.qsf named.qsf || fail "another file by the name of what was learned"
sed 's/ experts 32 / experts 8 /' trace.txt >other.txt
expect 3 'other.txt: line 2: another model' "$convert" --experts-by-use other.txt sparse.gguf x.qsf
expect 2 'no-such.txt: cannot open' "$convert" --experts-by-use no-such.txt sparse.gguf x.qsf
expect 2 'has no experts that are stored one after the other' "$convert" --experts-by-use trace.txt "$tiny" x.qsf
expect 2 'has no experts that are stored' "$convert" --experts stacked --experts-by-use trace.txt sparse.gguf \
    x.qsf
[ ! -e x.qsf ] || fail "a refused conversion leaves a file"
expect 2 'must be one of: together, stacked' "$convert" --experts apart sparse.gguf x.qsf
expect 2 'are for QSF files' "$convert" --experts stacked sparse.gguf x.gguf
finish
