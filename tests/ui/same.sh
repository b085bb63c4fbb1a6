#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# One seed, one answer: qsf-run, the chat in a pipe, with --plain and streamed weights, and on the screen.
. "$(dirname "$0")/lib.sh"
options="--seed 3 --temperature 0.6 -n 90 --ignore-eos"
answers=$XDG_DATA_HOME/qsf/sessions

# shellcheck disable=SC2086
{
"$QSF_BUILDDIR/qsf-run" "$stories" $options -p 'One day the dragon' </dev/null 2>/dev/null >"$work/run" ||
    fail "qsf-run"
[ "$(wc -c <"$work/run")" -gt 100 ] || fail "qsf-run answers too little to compare"
echo 'One day the dragon' | chat_lines 0 "$stories" $options
cmp "$work/run" "$work/out" || fail "the chat in a pipe gives another answer than qsf-run"
echo 'One day the dragon' | chat_lines 0 "$stories" $options --plain --pin 0 -t 1 --batch 3 --session plain
cmp "$work/run" "$work/out" || fail "streamed weights and one thread give another answer"
}

need_tmux
start 80 24 "'$chat' '$stories' $options --session screen"
see 'is ready|^>'
keys 'One day the dragon' Enter
see '90 tok'
keys '/quit' Enter
see 'rc=0'
text() { sed -n 's/.*"role":"assistant","text":"\(.*\)","stop".*/\1/p' "$answers/$1.jsonl"; }
[ -n "$(text plain)" ] || fail "the answer of the line mode is not in its session"
[ "$(text plain)" = "$(text screen)" ] || fail "the screen's answer differs from that in line mode"
finish
