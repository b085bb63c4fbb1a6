# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by scripts that run the programs: a tiny model that always exists, the real one if available.
# shellcheck shell=sh
run=$QSF_BUILDDIR/qsf-run
[ -x "$run" ] || skip "qsf-run is not built"
tiny=$work/tiny.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$tiny" ctx=512 || fail "mktiny cannot write a model"
stories=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/models/stories260K.gguf

# big_model: $big, a model of 130 MB in a mixture of formats, written once for all scripts of a build; and
# $big_mb.
big_model() {
    maker=$QSF_BUILDDIR/obj/tests/tools/mkbig
    big=$QSF_BUILDDIR/obj/tests/big.gguf
    if [ ! -f "$big" ] || [ -n "$(find -H "$maker" -newer "$big")" ]; then
        "$maker" "$big.$$" layers=14 type=mixed && mv "$big.$$" "$big" || skip "mkbig cannot write a model"
    fi
    big_mb=$(($(wc -c <"$big") / 1048576 + 1))
}
# number KEY, answer_text: of the JSON object in $work/out.
number() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$work/out"; }
answer_text() { sed -n 's/^{"text": "\(.*\)", "prompt_tokens".*/\1/p' "$work/out"; }
# words N: a prompt of N short words, one token each.
words() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%s%c", i ? " " : "", 97 + i * i % 26 }'; }
# at_most A B: numbers.
at_most() { awk -v a="${1:-1e9}" -v b="$2" 'BEGIN { exit !(a + 0 <= b + 0) }'; }
# least_budget OPTIONS...: the smallest budget that qsf-run names for them, in MB.
least_budget() {
    "$run" --json "$@" --ram-budget 1 -p a >"$work/out" 2>"$work/err" </dev/null
    [ $? = 4 ] && sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err"
}

# mb N: a budget of N MB, and more with the sanitizers, whose programs are that much larger.
mb() { if [ -n "${QSF_SAN-}" ]; then echo $(($1 + 60)); else echo "$1"; fi; }
