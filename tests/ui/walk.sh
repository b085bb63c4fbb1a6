#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Tokens of an answer: going through them, another version from one of them, styles by probability; also of an
# answer of a resumed session.
. "$(dirname "$0")/lib.sh"
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
turns='{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}'
[ -x "$mktiny" ] || skip "mktiny is not built"
"$mktiny" "$work/model.gguf" "script=Hello _world" \
    "chat_template=$turns{% if add_generation_prompt %}<|assistant|>{% endif %}" || fail "mktiny"

need_tmux
start 80 24 "'$chat' '$work/model.gguf' --session walk"
see 'is ready'
keys M-,
see 'the last message is not an answer'
keys 'hi' Enter
see '^ Hello world$'
see '^ ready .*out +[1-9]'
keys M-,
see 'token 3 of 3 .* no text'
see '>1 \* .*⟦</s>⟧'
keys M-,
see 'token 2 of 3'
see '>1 \* .*" world"'
keys Left
see 'token 1 of 3'
keys M-.
see 'token 2 of 3'
keys Escape
see_gone 'token 2 of 3'
see '^ Hello world$'
# Typing leaves it, too, and is not lost.
keys M-,
see 'token 3 of 3'
keys x
see_gone 'token 3 of 3'
see '^> x'
keys C-u
# After any other token the script begins again.
keys M-, M-,
see 'token 2 of 3'
keys Down Down Down Down Enter
see '^ Hello.*Hello world$'
see '^ ready'
see_gone 'token 2 of'
not_see '#4'
keys '/probs' Enter
see 'marked by probability'
styled() { tm capture-pane -e -p -t t | grep -q "$1"; }
wait_for styled '\[32mHello' || fail "likely tokens are not green"
wait_for styled '\[1m.\[31m' || fail "the chosen token is not red"
# The tokens of a version that was replaced are known, too.
keys '/probs off' Enter M-Left
see 'version 1/2'
keys M-,
see 'token 3 of 3 .* no text'
keys Escape
see_gone 'token 3 of 3'
keys M-Right
see 'version 2/2'
keys M-,
see 'token [0-9]+ of [0-9]+ .* no text'
keys Escape
see_gone 'token [0-9]+ of [0-9]+'
# The model plays the user: its message is put into the input.
keys '/swap' Enter
see '^> Hello world'
not_see '#4'
keys C-u '/quit' Enter
see 'rc=0'

# The tokens of a resumed answer are evaluated again.
start 80 24 "'$chat' '$work/model.gguf' --session walk"
see 'Hello world$'
see 'is ready'
keys M-,
see 'token [0-9]+ of [0-9]+'
keys Escape
see_gone 'token [0-9]+ of'
size 40 12
keys M-,
see 'token [0-9]+ of [0-9]+'
wide_enough 40
keys Escape '/quit' Enter
see 'rc=0'
finish
