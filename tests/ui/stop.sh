#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# During an answer: typing, the queue, live settings, ^C, ^Z, signals; the terminal is always restored.
. "$(dirname "$0")/lib.sh"
need_tmux
make_slow
slow="'$chat' '$slow' --ignore-eos --cpu-mask ref --threads 1 -c 8192 --ram-budget auto --seed 1"

sane() {
    start 80 24 "$1; echo rc=\$?; stty -a | tr -s ' ;' '\n\n' | grep -x -e '-*icanon' -e '-*echo' -e '-*isig'"
}
is_sane() {
    see '^icanon$'
    see '^echo$'
    see '^isig$'
    [ "$(tm display-message -p -t t '#{alternate_on}#{cursor_flag}')" = 01 ] ||
        fail "the alternate screen, or no cursor"
}
chat_pid() { ps -o pid= --ppid "$(tm list-panes -t t -F '#{pane_pid}')" 2>/dev/null | head -1; }

sane "$slow --session run"
see 'is ready'
keys 'Once upon a time' Enter
see '^ writing'
keys 'and then' Enter
see '^ queued 1: and then'
keys 'a third' Enter
see '^ queued 2: a third'
keys Up
see '^> a third'
keys C-u
keys '/queue 1' Enter
see '^> and then'
see_gone '^ queued'
keys Enter
see '^ queued 1: and then'
keys '/temp 0.9' Enter
see 'temperature 0.7 -> 0.9'
see ' out ([4-9][0-9]{2}|[0-9]{4})'
keys PPage
see 'lines? below'
keys Escape
see_gone 'lines? below'
# ^C leaves the queue waiting in the input, Esc Esc stops the answer and sends the next message.
keys C-c
see '^> and then'
see '^ ready'
keys Enter
see '^ writing'
keys 'the last' Enter
see '^ queued 1: the last'
keys Escape
see 'Esc again stops the answer and sends the next message'
keys Escape Escape # both at once: enough, too, when that has disappeared again
see '│ the last'
see '^ writing'
keys C-c
see '^ ready'
keys '/undo' Enter
see 'removed 1 exchange'
keys '/continue' Enter
see '^ writing'
keys C-c
see '^ ready'
keys '/set max-tokens 5' Enter
see 'max-tokens .*-> 5'
keys '/retry' Enter
see ' 5 tok .*length' # with the end of the answer
keys '/undo' Enter
see 'undid .retry'
keys C-d
see '^rc=0'
is_sane
grep -q '"kind":"set".*"name":"temperature"' "$XDG_DATA_HOME/qsf/sessions/run.jsonl" ||
    fail "a live setting is not in the session"
grep -q '"stop":"interrupted"\|"stop":"context"' "$XDG_DATA_HOME/qsf/sessions/run.jsonl" ||
    fail "the stopped answer is not in the session"

# TERM in the middle of an answer: everything is saved, exit status 143, the terminal is restored.
for pair in TERM:143 HUP:129 SEGV:139 ABRT:134; do
    sig=${pair%:*}
    sane "$slow --session sig$sig"
    see 'is ready'
    keys 'Once upon a time' Enter
    see '^ writing .* out [1-9]'
    # A part of the answer is saved each second, by TERM and HUP all of it.
    case $sig in
    SEGV | ABRT) wait_for file_has '"kind":"part"' "$XDG_DATA_HOME/qsf/sessions/sig$sig.jsonl" ;;
    esac
    keys "draft $sig"
    see "^> draft $sig"
    pid=$(tm list-panes -t t -F '#{pane_pid}')
    child=$(ps -o pid= --ppid "$pid" 2>/dev/null | head -1)
    [ -n "$child" ] || { fail "no process found"; continue; }
    kill -"$sig" "$child"
    case $sig:${QSF_SAN:+yes} in
    SEGV:yes | ABRT:yes) see '^rc=' ;;
    *) see "^rc=${pair#*:}" ;;
    esac
    is_sane
    grep -q '"role":"user"' "$XDG_DATA_HOME/qsf/sessions/sig$sig.jsonl" ||
        fail "$sig: the message was not saved"
    grep -q '"kind":"part"\|"role":"assistant"' "$XDG_DATA_HOME/qsf/sessions/sig$sig.jsonl" ||
        fail "$sig: the answer was not saved"
done
# What was being written when the window was closed is in the history.
for sig in TERM HUP; do
    grep -q "^draft $sig\$" "$XDG_STATE_HOME/qsf/history" || fail "$sig: the draft was lost"
done

# Every other signal that ends a program restores the terminal, too, and is what it ends by.
for pair in QUIT:131 USR1:138 USR2:140 ALRM:142 XCPU:152 BUS:135 SYS:159 PWR:158 34:162 64:192; do
    sane "'$chat' '$stories' --session other"
    see 'is ready'
    kill -"${pair%:*}" "$(chat_pid)"
    case $pair:${QSF_SAN:+yes} in
    BUS:135:yes) see '^rc=' ;;
    *) see "^rc=${pair#*:}" ;;
    esac
    is_sane
done
# One that was ignored when the program began stays ignored, and so does a closed pipe.
sane "(trap '' USR1; exec '$chat' '$stories' --no-save)"
see 'is ready'
pid=$(chat_pid)
kill -USR1 "$pid" && kill -PIPE "$pid" && kill -XFSZ "$pid"
keys '/stats' Enter
see 'KV cache keys'
keys C-d
see '^rc=0'

# ^Z releases the terminal, fg takes it again, in the middle of an answer.
start 80 24 "env PS1='shell> ' sh -i"
keys "$slow --no-save" Enter
see 'is ready'
keys 'Once upon a time' Enter
see '^ writing'
keys C-z
see_shell
keys 'stty -a | grep -c " icanon"' Enter
see '^1$'
keys 'fg' Enter
see '│ Once upon a time'
keys C-c
see '^ ready'
keys C-d
see '^shell> *$'
finish
