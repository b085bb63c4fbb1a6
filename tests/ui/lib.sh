# SPDX-License-Identifier: GPL-3.0-or-later
# Shared by the scripts in this directory; sourced, never run. Drives qsf-chat in its own tmux and reads its
# screen.
# shellcheck shell=sh

: "${QSF_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}" "${QSF_BUILDDIR:=$(pwd)}"
: "${QSF_TEST_DATA:=$QSF_SRCDIR/../shared}"
bad=0
skip() { echo "skip: $*"; exit 77; }
fail() { echo "FAIL: $*"; bad=1; }
have() { command -v "$1" >/dev/null 2>&1; }

chat=$QSF_BUILDDIR/qsf-chat
[ -x "$chat" ] || skip "qsf-chat is not built"

work=$(mktemp -d "${TMPDIR:-/tmp}/qsfui.XXXXXX") || exit 1
# Sessions and history of this script only.
export XDG_DATA_HOME="$work/data" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
export LC_ALL=C.UTF-8 HOME="$work"
unset NO_COLOR ACCESSIBLE TMUX QSF_CPU_MASK HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME \
    LLAMA_CACHE
export OLLAMA_MODELS="$work/ollama" # its service would have another place
socket=qsfui$$ windows=0

# Closes the terminal and makes sure that its processes end. The leak check of a sanitizer build may spin
# forever after a hangup; it would occupy a processor during all later tests.
close_windows() {
    programs=$(for p in $(tmux -L "$socket" list-panes -a -F '#{pane_pid}' 2>/dev/null); do
        cat "/proc/$p/task/$p/children" 2>/dev/null
    done)
    tmux -L "$socket" kill-server 2>/dev/null
    for p in $programs; do
        tries=600
        while kill -0 "$p" 2>/dev/null && [ $tries -gt 0 ]; do
            sleep 0.1
            tries=$((tries - 1))
        done
        [ $tries -gt 0 ] || ! kill -9 "$p" 2>/dev/null || [ -n "${QSF_SAN-}" ] ||
            fail "a program outlived its terminal"
    done
}
end() {
    close_windows
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

finish() {
    close_windows
    exit $bad
}

# A small model that answers: the shared one, otherwise one with random weights.
stories=$QSF_TEST_DATA/models/stories260K.gguf
if ! [ -f "$stories" ]; then
    stories=$work/stories260K.gguf # the name that the screens show
    "$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/random.gguf" layers=3 vocab=512 ctx=2048 letters=1 &&
        "$QSF_BUILDDIR/obj/tests/tools/ggufedit" "$work/random.gguf" "$stories" \
            str=general.name=stories260K ||
        skip "mktiny is not built"
    rm "$work/random.gguf"
fi

# A model with random weights that is large enough to be caught in the middle of an answer: $slow. It answers
# with letters and blanks, so that nothing else that is looked for on the screen can be a part of an answer.
make_slow() {
    slow=$work/slow.gguf
    "$QSF_BUILDDIR/obj/tests/tools/mktiny" "$slow" layers=8 hidden=256 heads=4 kv_heads=4 ffn=768 ctx=8192 \
        letters=1 || skip "mktiny is not built"
}

# ---- lines

# sanitized FILE...: do they have the report of a sanitizer? In other builds no process is started for it.
sanitized() { [ -n "${QSF_SAN-}" ] && grep -q 'Sanitizer\|runtime error:' "$@"; }

# chat_lines CODE ARGS...: stdin to qsf-chat; stdout in $work/out, stderr in $work/err.
chat_lines() {
    want=$1
    shift
    "$chat" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got = "$want" ] || { cat "$work/err"; fail "exit $got instead of $want: qsf-chat $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: qsf-chat $*"; }
}
err_has() { grep -qE -- "$1" "$work/err" || { cat "$work/err"; fail "no /$1/ on stderr"; }; }
# peak_within MB: /mem reported a peak that is not above it.
peak_within() {
    [ -n "${QSF_SAN-}" ] && return
    awk -v most="$1" '/^kernel: RSS/ { seen = 1; if ($6 > most) bad = 1 } END { exit bad || !seen }' \
        "$work/err" ||
        { cat "$work/err"; fail "the peak is above $1 MB"; }
}
out_has() { grep -qE -- "$1" "$work/out" || { cat "$work/out"; fail "no /$1/ on stdout"; }; }

# file_has EXPRESSION FILE: one of its lines matches; the file may not be there yet.
file_has() { grep -qsE -- "$1" "$2"; }

# ---- screens

need_tmux() { have tmux || skip "tmux is not installed"; }
tm() { tmux -L "$socket" "$@"; }
# start COLUMNS ROWS COMMAND: a shell command line in a fresh window of that size.
start() {
    close_windows
    # A server that is shutting down refuses sessions: the next one has its own socket.
    windows=$((windows + 1))
    rm -f "$work/before"
    socket=qsfui$$.$windows
    tm -f /dev/null new-session -d -s t -x "$1" -y "$2" "$3; echo rc=\$?; exec sleep 600" ||
        skip "tmux cannot start"
}
screen() { tm capture-pane -p -t t; }
keys() {
    if [ -n "${QSF_EARLY-}" ]; then
        [ ! -s "$work/before" ] || [ -n "$waited" ] ||
            echo "${0##*/} after '$pressed': nothing before '$*'" >>"$QSF_EARLY"
        screen >"$work/before" && pressed="$*" waited=''
    fi
    tm send-keys -t t "$@"
}
size() { tm resize-window -t t -x "$1" -y "$2"; }
on_screen() { screen | grep -qE -- "$1"; }
off_screen() { ! on_screen "$1"; }
# wait_for COMMAND...: until it succeeds; fails if it never does. The limit is for a hanging program: nothing
# depends on it, however slow the machine is.
wait_for() {
    tries=620
    while [ $tries -gt 0 ]; do
        "$@" && return 0
        # Most programs need a moment; for those that need longer it is asked less often.
        if [ $tries -gt 600 ]; then sleep 0.02; else sleep 0.1; fi
        tries=$((tries - 1))
    done
    echo "---- the screen:"
    screen
    return 1
}
# early EXPRESSION [GONE]: a wait is worth nothing after a key if its line was there (GONE: was not there)
# before it: the program may not have read the key yet, and gets it together with the next one, which is
# another input (lines that come at once are a paste). The file $QSF_EARLY gets a list of those; "then": of a
# later wait after that key, where this may be meant.
early() {
    [ -s "$work/before" ] || return 0
    if grep -qE -- "$1" "$work/before"; then was=''; else was=gone; fi
    if [ "$was" = "${2-}" ]; then echo "${0##*/} after '$pressed': ${waited:+then }${2:+$2 }$1" >>"$QSF_EARLY"; fi
    waited=yes
}
# see EXPRESSION: waits until a line of the screen matches.
see() {
    early "$1"
    wait_for on_screen "$1" || { fail "no /$1/ on the screen"; return 1; }
}
# see_gone EXPRESSION: waits until no line matches.
see_gone() {
    early "$1" gone
    wait_for off_screen "$1" || { fail "/$1/ stays on the screen"; return 1; }
}
# not_see EXPRESSION: no line matches once the frame that was seen is whole: its upper lines arrive first.
not_see() { wait_for off_screen "$1" || fail "/$1/ on the screen"; }
# see_shell: after ^Z, until the interactive shell of the window, whose prompt is "shell> ", has the terminal
# again: what is typed before that may be lost.
shell_has_terminal() {
    ! ps -o stat=,comm= -t "$(tm display-message -p -t t '#{pane_tty}')" | grep '^[^ ]*+' | grep -qv 'sh$'
}
see_shell() {
    see '^shell> *$' || return 1
    wait_for shell_has_terminal || fail "the shell does not get the terminal"
}
# wide_enough COLUMNS: no line is longer than the window.
wide_enough() {
    screen | sed 's/./x/g' | awk -v w="$1" 'length($0) > w { bad = 1 } END { exit bad }' ||
        fail "lines longer than $1"
}
