#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Finding text in the conversation: in lines, and on the screen with keys; the mouse.
. "$(dirname "$0")/lib.sh"
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
turns='{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}'
[ -x "$mktiny" ] || skip "mktiny is not built"
"$mktiny" "$work/model.gguf" "script=Hello _world" \
    "chat_template=$turns{% if add_generation_prompt %}<|assistant|>{% endif %}" || fail "mktiny"
printf 'A zebra\nNo zebras\n/search ZEBRA\n/search zebra|world$\n/search (\n' | chat_lines 1 "$work/model.gguf"
err_has '/search: not found: ZEBRA'
err_has '^#1  A zebra$'
err_has '^#2  Hello world$'
err_has '^#3  No zebras$'

need_tmux
start 80 24 "'$chat' '$work/model.gguf' --no-save"
see 'is ready'
n=1
while [ $n -le 9 ]; do
    keys "animal number $n" Enter
    see "^ .* animal number $n\$"
    n=$((n + 1))
done
see '#18'
keys C-f
see '^> /search'
keys 'number [123]$' Enter
see '3/3 number'
see 'animal number 3$'
keys n
see '2/3 number'
see 'animal number 2$'
keys N
see '3/3 number'
keys N
see '1/3 number'
see 'animal number 1$'
keys Escape
see_gone '1/3 number'
keys '/search zebra' Enter
see 'not found: zebra'
# Another key ends it and is typed.
keys '/search number 9' Enter
see '1/1 number 9'
keys x
see '^> x'
see_gone '1/1 number'
keys C-u
# The wheel, as the terminal reports it.
tm send-keys -t t -l "$(printf '\033[<64;10;5M\033[<64;10;5M\033[<64;10;5M')"
see 'lines below'
tm send-keys -t t -l "$(printf '\033[<65;10;5M\033[<65;10;5M\033[<65;10;5M\033[<65;10;5M')"
see_gone 'lines below'
screen | grep -q '64;10;5\|65;10;5' && fail "a report of the mouse was typed"
keys M-Up
see 'line.* below'
# In the help.
keys F1
see 'searches'
keys / 'reasoning' Enter
see '1/[0-9]* reasoning'
keys n
see '2/[0-9]* reasoning'
keys N N
see_gone '2/[0-9]* reasoning'
keys Escape
see 'of [0-9]* .*searches'
keys q
see_gone 'searches'
# Without blocks of code.
keys M-PPage
see 'no block of code above'
keys C-d
see 'rc=0'
finish
