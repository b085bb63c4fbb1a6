#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The full screen at its three sizes, resized at any time, with help, commands and their completion.
. "$(dirname "$0")/lib.sh"
need_tmux

start 100 30 "'$chat' '$stories' --session big --temp 0 --ignore-eos -n 60"
see 'is ready'
see 'STATE   ready'
see 'RAM budget [0-9]+ MB \(auto\): all weights stay in RAM'
keys 'Once upon a time' Enter
see '^ you  [0-9:]+  #1'
see '│ Once upon a time'
see '60 tok .* t/s'
for part in 'decode +[0-9.]+ t/s' 'prefill +[0-9.]+ t/s' 'CTX [0-9]+/[0-9]+' 'RAM [0-9.]+/[0-9]+ MB' \
    'RSS [0-9.]+ +peak' \
    'temperature 0' 'entropy' ' qsf-chat  big  ' '[12] thread' 'F1 help'; do
    see "$part"
done
wide_enough 100
[ "$(screen | grep -c '')" = 30 ] || fail "not 30 lines"

# The context changes in place, and what it holds is shown.
keys '/ctx 300' Enter
see 'ctx auto -> 300'
see 'CTX [0-9]+/300'
keys '/context' Enter
see '^ *conversation +[0-9]+ of 300 tokens'
see '^ *positions +[0-9]+ kept, 0 evicted, 0 protected'
see '^ *full attention +[0-9]+ layers +[0-9.]+ KB per token'
keys '/clear' Enter
see 'CTX 0/300'
keys 'Once upon a time' Enter
see 'CTX [1-9]'
see 'STATE   ready'

size 80 24
see '^ ready [0-9.]+ t/s out 60/60'
see 'ctx [0-9]+/[0-9]+ [0-9]+%'
not_see 'STATE'
wide_enough 80

size 40 12
see '^you> Once upon a time'
see '^ai > '
see '^[0-9.]+t/s 60/60 ctx[0-9]+% RAM'
not_see 'F1 help'
wide_enough 40

# Each size is one that it has drawn before the next one.
tm pipe-pane -t t "cat >>'$work/drawn'"
drawn() { [ "$(cat "$work/drawn" 2>/dev/null | wc -c)" -gt "$before" ]; }
for wh in '20 5' '19 4' '1 1' '3 2' '200 50' '2 40' '120 3' '80 24'; do
    before=$(cat "$work/drawn" 2>/dev/null | wc -c)
    # shellcheck disable=SC2086
    size $wh
    wait_for drawn || fail "nothing is drawn in a window of $wh"
done
tm pipe-pane -t t
see '│ Once upon a time'

# Help scrolls and closes; the pane is hidden and shown.
keys F1
see '^ ?Keys'
see 'any other key closes'
keys NPage
keys x
see '│ Once upon a time'
see '^> x'
keys C-u
keys F2
see_gone 'ctx [0-9]+/'
keys F2
see 'ctx [0-9]+/'

# Text typed over the help closes it and is not lost; q only closes it.
keys F1
see '^ ?Keys'
keys q
see '│ Once upon a time'
not_see '^> q'

# Commands: all of them after a slash, completion, direct settings, unknown names.
keys /
see '/budget +show'
keys Tab
see ' 1-1[0-9] of [0-9]+, and [0-9]+ more: Tab' # the menu shows a few of them before Tab, too
keys Tab
see ' 1[0-9]-[0-9]+ of [0-9]+, and [0-9]+ more: Tab'
keys Tab
see ' 2[0-9]-[0-9]+ of [0-9]+'
keys BTab BTab BTab # the page before the first one is the last
see '/undo +take back'
see 'Tab: the first ones'
keys se
see '/sessions'
keys C-c
size 40 12
keys /kv Space Tab
see '^  policy '
keys Up
see '^> q2'
keys Up Up Enter
see '^> /kv q6'
keys C-c
size 80 24
keys /kv Space po Tab
see '^  sliding +the oldest'
keys Down Down Enter
see '^> /kv policy sliding'
keys C-c
see '^> *$'
keys /tempe Tab
see '^> /temperature $|^> /temperature$'
keys .5 Enter
see 'temperature 0 -> 0.5'
keys F8
see 'temperature 0 -> 0.55'
keys F6 F7
see 'top-k 40 -> 35'
keys /nonsense Enter
see '/nonsense: no such command'
keys '/set ctx 256' Enter
see 'ctx 300 -> 256'
see 'ctx [0-9]+/256'

# A message over several lines, from keys and from a paste.
keys 'one\' Enter two M-Enter three
see '^  three'
keys C-c
printf 'first\nsecond\n/quit\nthird' >"$work/paste"
tm load-buffer "$work/paste"
tm paste-buffer -p -t t
see '^  third'
keys Enter
see '│ second'
see '│ third'

# A terminal that does not mark pastes.
see '#6 .* tok '
see '^ ready'
tm load-buffer "$work/paste"
tm paste-buffer -t t
see '^  third'
see '^> first'
not_see '^ you  [0-9:]+  #7'
keys C-c
see '^> *$'

# History: Up, and search. ^C clears the line if there is nothing to stop. It is ready just before an answer
# begins, too: a ^C then would cancel the message.
see '#6 .* tok '
see '^ ready'
keys Up
see '^> first'
keys C-c
see '^> *$'
keys C-r Once
see 'reverse-i-search.*Once upon a time'
keys C-g
keys /quit Enter
see '^rc=0'
see '^resume with: qsf-chat --session big$'
[ "$(stat -c %a "$XDG_STATE_HOME/qsf/history")" = 600 ] || fail "the history is readable by others"
grep -qF 'one\ntwo' "$XDG_STATE_HOME/qsf/history" && fail "a line that was cleared is in the history"
grep -qF 'first\nsecond\n/quit\nthird' "$XDG_STATE_HOME/qsf/history" || fail "the history split a message"

# Resumed, with the whole conversation on the screen; earlier input is in the history.
start 80 24 "'$chat' --continue"
see 'is ready'
see '│ third'
keys Up Up
see '^> first'
keys C-c C-c
see '^rc=0'

# A file that is not a session.
start 80 24 "cd '$work' && '$chat' --no-save none.gguf"
see 'none.gguf: cannot open'
see '^ no model │'
keys hello Enter
see 'no model is loaded'
keys C-c
see '^> *$'
keys '/model missing.gguf' Enter
see 'missing.gguf: no such model|missing.gguf: cannot open'
keys "/model $stories" Enter
see 'is ready'
keys C-d
see '^rc=0'

# A window larger than the budget has memory for is used in part; LINES and COLUMNS are not its size. With
# sanitizers the memory of the program is another.
start 80 24 "COLUMNS=100000 LINES=7 '$chat' --no-save --ram-budget ${QSF_SAN:+1}16 '$stories'"
see 'is ready'
wide_enough 80
size 900 300
if [ -z "${QSF_SAN-}" ]; then
    see 'the RAM budget has no memory for all of this window: /budget raises it'
    shell=$(tm list-panes -t t -F '#{pane_pid}')
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$(tr -d ' ' <"/proc/$shell/task/$shell/children")/status")
    [ "$peak" -le $((16 * 1024)) ] || fail "a peak of $peak KB with 16 MB"
fi
size 80 24
see '^> *$'
keys '/budget 200' Enter
see 'budget (16|116)M -> 200M'
keys C-d
see '^rc=0'
finish
