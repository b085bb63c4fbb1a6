#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs with closed standard streams: no file gets the descriptor of a stream, so nothing hangs and no
# message is written to a file. Open streams get the usual output. Writing to a closed stdout is an error.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat
convert=$QSF_BUILDDIR/qsf-convert
export QSF_DATADIR="$QSF_SRCDIR"
have timeout || skip "no timeout command"

# closed STREAMS CODE COMMAND...: runs it with those of 0, 1 and 2 closed and checks the exit code; open
# streams are in $work/out and err.
closed() {
    streams=$1 want=$2
    shift 2
    : >"$work/out"
    : >"$work/err"
    case $streams in
    0) timeout -s KILL 200 "$@" <&- >"$work/out" 2>"$work/err" ;;
    1) printf 'hello\n' | timeout -s KILL 200 "$@" >&- 2>"$work/err" ;;
    2) printf 'hello\n' | timeout -s KILL 200 "$@" >"$work/out" 2>&- ;;
    01) timeout -s KILL 200 "$@" <&- >&- 2>"$work/err" ;;
    012) timeout -s KILL 200 "$@" <&- >&- 2>&- ;;
    none) printf 'hello\n' | timeout -s KILL 200 "$@" >"$work/out" 2>"$work/err" ;;
    esac
    got=$?
    [ $got = "$want" ] || { cat "$work/err"; fail "streams $streams closed: exit $got instead of $want: $*"; }
}
same_output() { cmp -s "$work/out" "$work/want" ||
    fail "streams $streams closed: another answer than with all open: $1"; }

if [ -x "$chat" ]; then
    set -- "$chat" --plain --temperature 0 -n 8 "$tiny"
    closed none 0 "$@"
    cp "$work/out" "$work/want"
    [ -s "$work/want" ] || fail "qsf-chat gave no answer"
    closed 0 0 "$@"
    [ ! -s "$work/out" ] || fail "qsf-chat answered although stdin is closed"
    closed 1 1 "$@"
    grep -q 'stdout' "$work/err" || fail "qsf-chat did not report the closed stdout"
    closed 2 0 "$@"
    same_output qsf-chat
    closed 012 0 "$@"
    # A session is a file that stays open while answers are written.
    closed 012 0 "$@" --session closed
    closed 2 0 "$@" --session closed2
    same_output "qsf-chat --session"
    session=${XDG_DATA_HOME:-$HOME/.local/share}/qsf/sessions/closed2.jsonl
    grep -qv '^{' "$session" && fail "something other than records is in the session"
fi

set -- "$run" --temperature 0 -n 8 "$tiny" -p hello
closed 0 0 "$@"
cp "$work/out" "$work/want"
[ -s "$work/want" ] || fail "qsf-run gave no answer"
closed 1 1 "$@"
grep -q 'stdout' "$work/err" || fail "qsf-run did not report the closed stdout"
closed 01 1 "$@"
closed 012 1 "$@"
expect 0 '' "$run" --temperature 0 -n 8 "$tiny" -p hello
same_output qsf-run
closed 2 0 "$run" --verbose --temperature 0 -n 8 "$tiny" -p hello
[ -s "$work/out" ] || fail "qsf-run gave no answer without stderr"
closed 0 0 "$run" --tokenize "$tiny"
for program in "$run" ${chat:+"$chat"} ${convert:+"$convert"}; do
    if [ -x "$program" ]; then closed 012 1 "$program" --help; fi
done

if [ -x "$convert" ]; then
    expect 0 '' "$convert" "$tiny" "$work/open.qsf"
    for streams in 0 2 1 01 012; do
        # The file is written in any case; failing to print the report is an error.
        case $streams in *1*) code=1 ;; *) code=0 ;; esac
        closed "$streams" $code "$convert" "$tiny" "$work/$streams.qsf"
        cmp -s "$work/$streams.qsf" "$work/open.qsf" ||
            fail "streams $streams closed: another file from qsf-convert"
    done
    closed 2 0 "$convert" --verify "$work/open.qsf"
fi
finish
