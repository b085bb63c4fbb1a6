# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by scripts that run the programs: a tiny model that is always there, the real one where it is.
# shellcheck shell=sh
run=$QSF_BUILDDIR/qsf-run
[ -x "$run" ] || skip "qsf-run is not built"
tiny=$work/tiny.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$tiny" ctx=512 || fail "mktiny cannot write a model"
stories=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/models/stories260K.gguf

# expect CODE WORDS COMMAND...: the exit code, and WORDS (an extended expression) on stderr.
# stdout lies in $work/out, stderr in $work/err afterwards.
expect() {
    want=$1 words=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = "$want" ] || { cat "$work/err"; fail "exit $got instead of $want: $*"; }
    [ -z "$words" ] || grep -qE -- "$words" "$work/err" || { cat "$work/err"; fail "no /$words/ on stderr: $*"; }
    if grep -q "Sanitizer\|runtime error:" "$work/err"; then cat "$work/err"; fail "sanitizer report: $*"; fi
}
