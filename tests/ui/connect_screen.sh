#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-chat --connect on the full screen, in sizes: what is shown of a server and what is not, the list of its
# models, ^C, and the same in --plain on a terminal. Against a server on the loopback.
. "$(dirname "$0")/lib.sh"
[ -x "$QSF_BUILDDIR/qsf-get" ] || skip "qsf-get is not built (libcurl, nettle)"
have python3 || skip "no python3"
need_tmux
mkdir "$work/server"
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/answers.py" "$work/server" &
server=$!
trap 'kill $server 2>/dev/null; end' EXIT
while ! [ -s "$work/server/port" ]; do
    kill -0 $server || { fail "the server ended"; finish; }
    sleep 0.02
done
url="http://127.0.0.1:$(cat "$work/server/port")"
gone() { [ -e "$work/server/gone" ]; }

for size in '100 30' '80 24' '40 12'; do
    columns=${size% *}
    # shellcheck disable=SC2086 # two numbers
    start $size "$chat --connect $url/llama --session c$columns"
    see '^>'
    [ "$columns" != 100 ] || see 'CTX -/4096'
    keys Hello Enter
    see 'You said: Hello'
    wide_enough "$columns"
    # nothing about memory, probabilities or layers, and no zeros
    not_see 'RAM|RSS|entropy|H 0|GB/s|0/0'
    if [ "$columns" = 100 ]; then
        see 'CTX 24/4096' # with the end of the answer
        not_see 'CTX -/4096'
        see 'decode +12\.5 t/s'
        see 'prefill +(321|322) t/s'
        see 'temperature - '
        see 'quality n/a'
    fi
    # settings: sent, or without effect
    keys /top-k Space 7 Enter
    see 'top-k default -> 7'
    keys /expert-top Space 2 Enter
    see 'expert-top.* no effect'
    keys /mem Enter
    see 'plans its own'
    # the list of models; another one is chosen
    keys /models Enter
    see '^> small'
    see 'large:70b'
    keys Down Enter
    see 'large:70b is ready'
    keys again Enter
    see 'You said: again'
    grep -q '"model": "large:70b".*"content": "again".*"top_k": 7' "$work/server/log" ||
        fail "the second model did not get the message with top_k"
    keys /retry Enter
    see '2/2'
    keys /quit Enter
    see 'rc=0'

    # ^C ends the request, and the text stays; a message that was queued is sent then
    rm -f "$work/server/gone" "$work/server/go"
    # shellcheck disable=SC2086
    start $size "$chat --connect $url/wait --no-save"
    see '^>'
    keys first Enter
    see 'begun'
    keys C-c
    wait_for gone || fail "the request continues after ^C"
    [ "$columns" = 40 ] || see 'stopped'
    see 'begun'
    touch "$work/server/go"
    keys /retry Enter
    see 'begun now and ended'
    keys /quit Enter
    see 'rc=0'

    # One that counts while it writes: the numbers of an answer that is stopped are known, too
    rm -f "$work/server/gone" "$work/server/go"
    # shellcheck disable=SC2086
    start $size "$chat --connect $url/llama-wait --no-save --quality 0.5"
    see '^>'
    keys first Enter
    see 'begun'
    keys C-c
    wait_for gone || fail "the request continues after ^C"
    if [ "$columns" = 100 ]; then
        see ' 2 tok +12\.5 t/s +stopped'
        see 'CTX 22/4096'
        not_see 'quality +0\.50'
    fi
    keys /quit Enter
    see 'rc=0'

    # A server that fails: the message is kept, /retry asks again
    rm -f "$work/server/calm"
    # shellcheck disable=SC2086
    start $size "$chat --connect $url/quota --no-save"
    see '^>'
    keys patience Enter
    see 'in 3600 s'
    touch "$work/server/calm"
    keys /retry Enter
    see 'You said: patience'
    keys /quit Enter
    see 'rc=0'
    rm -f "$work/server/calm"

    # One that is not ready is asked again; ^C ends the wait
    # shellcheck disable=SC2086
    start $size "$chat --connect $url/429 --no-save"
    see '^>'
    keys patience Enter
    see 'asking again'
    keys C-c
    see_gone 'waiting|stopping'
    see '^>'
    keys again Enter
    see 'waiting'
    touch "$work/server/calm"
    see 'You said: again'
    keys /quit Enter
    see 'rc=0'
    rm -f "$work/server/calm"
    # shellcheck disable=SC2086
    start $size "$chat --connect $url/llama-loading --no-save"
    see 'still loading'
    not_see '#'
    touch "$work/server/calm"
    see 'small is ready'
    keys /quit Enter
    see 'rc=0'
    rm -f "$work/server/calm"
done

# ---- in lines, a message about an answer is not beside the name of the model
start 80 24 "$chat --plain --connect $url/quota --no-save"
see '^>'
keys patience Enter
see '^small:$'
see '^qsf-chat: .*HTTP 429'
keys C-d
see 'rc=1'

# ---- reasoning folds, control characters are shown, a server without counts
start 100 30 "$chat --connect $url/think --no-save"
see '^>'
keys x Enter
see 'Forty-two'
see 'thought'
not_see 'Let me think'
keys C-t
see 'Let me think'
keys /quit Enter
see 'rc=0'
# ^X ends the reasoning, and the answer follows it: of one request the user sees, of two for the server.
for how in llama vllm qsf; do
    : >"$work/server/log"
    start 100 30 "$chat --connect $url/$how-think --no-save --show-thinking -n 50"
    see '^>'
    keys x Enter
    see 'Let me think'
    keys C-x
    see 'Forty-two'
    see 'cut|closed|ended'
    grep -q '"role": "assistant", "content": "", "reasoning_content": "Let me think".*"continue_final_message"' \
        "$work/server/log" || fail "$how did not get the reasoning back"
    grep -q '"continue_final_message".*"max_tokens": 47' "$work/server/log" || fail "the limit counts twice"
    keys /quit Enter
    see 'rc=0'
done
# llama.cpp can be told to end it: the request continues.
: >"$work/server/log"
start 100 30 "$chat --connect $url/llama-control --no-save --show-thinking"
see '^>'
keys x Enter
see 'Let me think'
keys C-x
see 'Forty-two'
see 'no more'
see ', cut'
[ "$(grep -c '"path": "/llama-control/v1/chat/completions"' "$work/server/log")" = 1 ] ||
    fail "the request was sent again"
grep -q '"reasoning_control": true' "$work/server/log" || fail "the server does not expect to be told"
keys /quit Enter
see 'rc=0'
# So can qsf-serve. Reasoning that it wrote before may come late; nothing is asked again for it.
rm -f "$work/server/ended"
start 100 30 "$chat --connect $url/qsf-control --no-save --show-thinking"
see '^>'
keys x Enter
see 'Let me think'
keys C-x
see 'Forty-two'
see ', cut'
[ "$(grep -c '"path": "/qsf-control/v1/chat/completions"' "$work/server/log")" = 1 ] ||
    fail "the request was sent again for reasoning that was late"
keys /quit Enter
see 'rc=0'
start 100 30 "$chat --connect $url/llama-deaf --no-save --show-thinking"
see '^>'
keys x Enter
see 'hm hm'
keys C-x
see 'Forty-two'
keys /quit Enter
see 'rc=0'
# Reasoning between tags is a part of the text, which more servers continue.
start 100 30 "$chat --connect $url/ollama-tags --no-save --show-thinking"
see '^>'
keys x Enter
see 'Let me think'
keys C-x
see 'Forty-two'
grep -qF '"role": "assistant", "content": "<think>\nLet me think\n</think>\n\n"}]' "$work/server/log" ||
    fail "the reasoning did not come back as text"
keys /quit Enter
see 'rc=0'
rm -f "$work/server/go"
start 100 30 "$chat --connect $url/other-think --no-save --show-thinking"
see '^>'
keys x Enter
see 'Let me think'
keys C-x
see 'cannot be told to end its reasoning'
keys C-c
keys /quit Enter
see 'rc=0'
start 100 30 "$chat --connect $url/controls --no-save"
see '^>'
keys x Enter
see 'red \^\[\[31m'
keys /quit Enter
see 'rc=0'
start 100 30 "$chat --connect $url/uncounted --session guessed"
see '^>'
keys x Enter
see '~4 tok'
see 'CTX not known yet'
keys /quit Enter
see 'rc=0'
start 100 30 "$chat --session guessed"
see '~4 tok'
see 'small is ready'
keys /quit Enter
see 'rc=0'

# ---- nothing listens: the screen opens anyway, and says so
start 100 30 "$chat --connect http://127.0.0.1:9 --no-save"
see 'not connected'
see '^>'
keys 'a message' Enter
see 'not connected: /retry connects again'
see '^> a message' # it is not lost
keys C-u
see '^>$'
keys /retry Enter
again() { [ "$(screen | grep -c 'not connected')" -gt 2 ]; }
wait_for again || fail "/retry does not connect"
keys "/model connect:$url/llama" Enter
see 'small is ready'
keys '/model lar' Tab
see '^> /model large:70b'
keys C-u
keys back Enter
see 'You said: back'
keys /quit Enter
see 'rc=0'

# ---- lines on a terminal
for columns in 100 40; do
    start $columns 30 "$chat --plain --connect $url/llama --no-save"
    see '^>'
    keys 'one two three' Enter
    see '^small: You said: one'
    keys /stats Enter
    see 'decode +12\.5 t/s, 6 tokens'
    keys /quit Enter
    see 'rc=0'
done
rm -f "$work/server/gone" "$work/server/go"
start 100 30 "$chat --plain --connect $url/wait --no-save"
see '^>'
keys x Enter
see 'begun'
keys C-c
wait_for gone || fail "the request continues after ^C in lines"
see '^>$'
keys C-d
see 'rc='
# The program ends while an answer is written: the request ends, too.
rm -f "$work/server/gone"
start 100 30 "$chat --connect $url/wait --no-save"
see '^>'
keys x Enter
see 'begun'
keys /quit Enter
see 'rc=0'
wait_for gone || fail "the request outlived the chat"
# The same when it is killed.
rm -f "$work/server/gone"
mkfifo "$work/pipe"
# A key of this run: other tests have keys on their command lines.
OPENAI_API_KEY=key-of-$$ "$chat" --connect "$url/wait" --no-save <"$work/pipe" >"$work/killed" 2>&1 &
killed=$!
exec 5>"$work/pipe"
echo x >&5
has_begun() { grep -q begun "$work/killed"; }
wait_for has_begun || fail "no answer in a pipe"
grep -qa "key-of-$$" /proc/[0-9]*/cmdline 2>/dev/null && fail "a key is on a command line"
kill -KILL $killed
wait_for gone || fail "the request outlived the chat that was killed"
exec 5>&-
finish
