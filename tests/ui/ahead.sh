#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A message that is evaluated while it is typed: the answer is the same, and nothing of what is not sent is
# saved.
. "$(dirname "$0")/lib.sh"
need_tmux
make_slow
model="'$slow' --ignore-eos --temperature 0 -n 5"
text='the keys rest after this sentence, which is long enough to be worth the effort of reading it now'
session() { cat "$XDG_DATA_HOME/qsf/sessions/$1.jsonl" 2>/dev/null; }
answered() { session "$1" | grep -q '"role":"assistant"'; }
answer() { session "$1" | sed -n 's/.*"role":"assistant","text":"\(.*\)","stop.*/\1/p'; }

# One text is typed and deleted, another one sent.
for mode in on off; do
    start 100 30 "'$chat' $model --session $mode --prefill-ahead $mode"
    see 'is ready'
    keys -l "$text"
    see '^─ 1?[0-9]{2} tokens'
    if [ $mode = on ]; then see ' tokens, [0-9]+ read, room for '; fi
    session $mode | grep -q 'rest after' && fail "$mode: saved before it was sent"
    keys C-u
    see_gone '^─ 1?[0-9]{2} tokens'
    keys -l "now $text"
    see '^─ 1?[0-9]{2} tokens'
    if [ $mode = on ]; then see ' tokens, [0-9]+ read, room for '; else not_see ' read, '; fi
    keys Enter
    wait_for answered $mode || fail "$mode: no answer"
    see ' 5 tok '
    keys '/stats' Enter
    see '^ *prompt +'
    keys C-d
    see '^rc=0'
done
[ -n "$(answer on)" ] || { session on; fail "no answer in the session"; }
[ "$(answer on)" = "$(answer off)" ] || { answer on; answer off; fail "the answers differ"; }
finish
