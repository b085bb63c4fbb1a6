#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Keys that arrive in one read, ^C with text, and the modes of the terminal: the wheel does not recall
# history.
. "$(dirname "$0")/lib.sh"
need_tmux

# begin COMMAND: in a window whose output is also written to $work/raw.
begin() {
    rm -f "$work/go" "$work/raw"
    start 80 24 "until [ -e '$work/go' ]; do sleep 0.05; done; $1"
    tm pipe-pane -t t "cat >'$work/raw'"
    : >"$work/go"
}
esc=$(printf '\033')
# counts MODE: how often it was written.
counts() { tr "$esc" '\n' <"$work/raw" | grep -acF -- "$1"; }
# modes OFF ON: the number of times that alternate scroll was switched off and given back. The copy of the
# output may be later than the screen.
has_modes() { [ "$(counts '[?1007s')" -ge "$1" ] && [ "$(counts '[?1007l')" -ge "$1" ] && [ "$(counts '[?1007r')" -ge "$2" ]; }
modes() {
    wait_for has_modes "$1" "$2" && [ "$(counts '[?1007s')" = "$1" ] ||
        fail "alternate scroll was not switched off $1 times"
    [ "$(counts '[?1007r')" = "$2" ] || fail "alternate scroll was not given back $2 times"
}

begin "'$chat' '$stories' --temp 0 -n 5 --session keys"
see 'is ready'
modes 1 0
keys Escape /sta
see '^> /sta$'
keys C-u
keys Escape '/undo' Enter
see 'nothing to undo'
keys Escape Hello
see '^> Hello$'
# ^C keeps the text for Up, and any other key than ^C means to stay.
keys C-c
see '\^C again, or \^D, leaves; Up brings the text back'
keys Up
see '^> Hello$'
see_gone '\^C again'
keys C-c
see '^> *$'
keys NPage
see_gone '\^C again'
# In a search it leaves only the search.
keys C-c && see '\^C again' && keys C-r && see 'reverse-i-search' && see_gone '\^C again'
keys und && see 'search.*: /undo' && keys C-c && see '^> *$' && not_see '\^C again'
keys C-c
see '\^C again, or \^D, leaves'
keys C-c
see '^rc=0'
modes 1 1
if grep -q Hello "$XDG_STATE_HOME/qsf/history"; then fail "text that was not sent is in the history file"; fi

# A paste that does not fit in the RAM budget is not kept, and the keys after it work. The memory of the
# sanitizers alone is more than this budget.
if [ -z "${QSF_SAN-}" ]; then
    echo hello | "$chat" --plain --ram-budget 1 "$stories" >"$work/out" 2>"$work/err"
    budget=$(sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")
    budget=$((${budget:-0} + 1)) # of this machine's program
    start 80 24 "'$chat' '$stories' --no-save --ram-budget $budget"
    see 'is ready'
    head -c 3000000 /dev/zero | tr '\0' p >"$work/paste"
    tm load-buffer "$work/paste"
    tm paste-buffer -p -t t
    see 'not pasted: 2.86 MB, at most [01].[0-9]+ MB fit: /budget [0-9]+ makes room'
    keys '/mem' Enter
    see 'kernel: RSS'
    screen | awk -v most="$budget" '/kernel: RSS/ { if ($6 > most) exit 1 }' || { screen; fail "a paste exceeds the budget"; }
    keys q C-d
    see '^rc='
fi

# A prompt in one batch: the progress moves within it, the time left is known, and keys work.
make_slow
start 80 24 "'$chat' '$slow' --ignore-eos --cpu-mask ref --threads 1 -c 8192 --no-save"
see 'is ready'
seq -s ' ' 700 >"$work/paste"
tm load-buffer "$work/paste"
tm paste-buffer -p -t t
see ' 700$'
keys Enter
see '^ reading [0-9.]+ t/s [1-9][0-9]*/[0-9]{4} eta '
keys /stats Enter
see 'prefill +[0-9.]+ t/s, [0-9]+ of [0-9]+ tokens$'
keys C-c
see '^ ready'
keys /retry Enter
see '^ reading .*/[0-9]{4} eta '
keys C-c
see '^ ready'
keys C-d
see '^rc=0'

# A signal gives the mode back too.
begin "'$chat' '$stories' --no-save"
see 'is ready'
kill -SEGV "$(ps -o pid= --ppid "$(tm list-panes -t t -F '#{pane_pid}')" | head -1)"
see '^rc='
modes 1 1

# ^Z gives it back, fg takes it again.
begin "PS1='shell> ' exec sh -i"
see '^shell>'
keys "'$chat' '$stories' --no-save" Enter
see 'is ready'
keys C-z
see_shell
modes 1 1
keys fg Enter
see 'is ready'
see '^> *$'
keys C-d
see '^shell> *$'
modes 2 2
finish
