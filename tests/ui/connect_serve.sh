#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-chat --connect and qsf-serve together: the same answers as without a server, in lines and on the screen;
# an answer that is continued, a key, a unix socket, and ^C, after which the server is free again.
. "$(dirname "$0")/lib.sh"
for program in qsf-get qsf-serve; do
    [ -x "$QSF_BUILDDIR/$program" ] || skip "$program is not built"
done
pids=''
# shellcheck disable=SC2086 # several processes
trap 'kill $pids 2>/dev/null; end' EXIT
# serve NAME ARGS...: a server, and its URL in $url.
serve() {
    name=$1
    shift
    "$QSF_BUILDDIR/qsf-serve" "$@" >"$work/$name.out" 2>"$work/$name.err" &
    pid=$!
    pids="$pids $pid"
    while ! grep -qs '^listening on ' "$work/$name.out"; do
        kill -0 $pid 2>/dev/null || { cat "$work/$name.err"; fail "the server ended"; finish; }
        sleep 0.02
    done
    url=$(sed -n 's/^listening on //p' "$work/$name.out")
}
serve plain --listen 127.0.0.1:0 --snapshots 2 "$stories"
plain=$url

# ---- the same answer as here
for options in '--temp 0' '--seed 5 --temp 0.9 --top-k 20' '--seed 7 --min-p 0.1 --repeat-penalty 1.2'; do
    # shellcheck disable=SC2086 # several words
    echo 'Once upon a time' | chat_lines 0 -q -n 30 $options "$stories"
    mv "$work/out" "$work/here"
    # shellcheck disable=SC2086
    echo 'Once upon a time' | chat_lines 0 -q -n 30 $options --connect "$plain"
    cmp "$work/here" "$work/out" || { cat "$work/here" "$work/out"; fail "another answer with $options"; }
done
# The text of an answer may be nothing or a line end.
answered='^\{"type": "answer", .*"tokens": [1-9]'
# Several messages: what the server evaluated is reused.
printf 'One day\nand then\n' | chat_lines 0 --json -n 10 --temp 0 --ignore-eos --connect "$plain" --session both
out_has '"tokens": 10, .*"prompt_tokens": [0-9]+, "reused_tokens": [1-9]'
# The session continues, and an answer that was cut is continued as it would be here.
echo /continue | chat_lines 0 --json --session both
out_has "$answered"
# What it does not know is said, and left out.
printf '/set allow-special on\n/ctx 100\n' | chat_lines 1 --connect "$plain" --no-save
err_has 'allow-special: no effect on this server'
# Biases and bans of texts: the first token is one that is banned, or another one.
echo 'Once upon a time' | chat_lines 0 -q -n 1 --temp 0 --connect "$plain"
first=$(cat "$work/out")
echo 'Once upon a time' | chat_lines 0 -q -n 1 --temp 0 --connect "$plain" --ban "$first"
[ "$(cat "$work/out")" != "$first" ] || fail "a text that is banned"
echo 'Once upon a time' | chat_lines 0 -q -n 1 --temp 0 --connect "$plain" --logit-bias 'e=100'
out_has '^e$'
echo 'Once upon a time' | chat_lines 0 -q -n 9 --connect "$plain" --regex '[ab]{5,}'
out_has '^[ab]{5,}$'
# Words by rule: the same answer as here.
echo 'Once upon a time' | chat_lines 0 -q -n 20 --seed 5 --only '[bw]\w* the|a' "$stories"
mv "$work/out" "$work/here"
echo 'Once upon a time' | chat_lines 0 -q -n 20 --seed 5 --only '[bw]\w* the|a' --connect "$plain"
cmp "$work/here" "$work/out" || { cat "$work/here" "$work/out"; fail "another answer with --only"; }
# The seed with which it wrote.
echo 'Hello' | chat_lines 0 -n 5 --connect "$plain"
err_has '^qsf-chat: seed [0-9]+$'
# The speed, also of an answer that takes no time that could be measured here.
echo 'Hello' | chat_lines 0 -n 32 --json --ignore-eos --connect "$plain"
out_has '"tokens": 32, .*"tokens_per_second": [1-9]'
# JSON.
printf '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}' >"$work/schema.json"
echo 'Hello' | chat_lines 0 -q -n 60 --connect "$plain" --json-schema "$work/schema.json"
out_has '^\{.*"a": *(true|false).*\}$'

# ---- a key, and a socket
printf 'the-key\n' >"$work/key"
chmod 600 "$work/key"
serve keyed --listen 127.0.0.1:0 --api-key-file "$work/key" "$stories"
echo 'Hello' | chat_lines 1 -n 5 --connect "$url"
err_has 'HTTP 401'
echo 'Hello' | chat_lines 0 -n 5 --json --connect "$url" --api-key-file "$work/key"
out_has "$answered"
serve socket --listen "unix:$work/s" "$stories"
echo 'Hello' | chat_lines 0 -n 5 --json --connect "unix:$work/s"
out_has "$answered"

# ---- the screen: ^C frees the server at once
if have tmux; then
    make_slow
    # Slow enough that no answer fills its context meanwhile.
    compute='--cpu-mask ref --threads 1'
    # shellcheck disable=SC2086 # options
    serve slow --listen 127.0.0.1:0 $compute "$slow"
    start 100 30 "$chat --connect $url --no-save --ignore-eos"
    see '^>'
    keys Hello Enter
    see 'STATE +writing'
    keys C-c
    see 'stopped'
    # what was counted while it wrote is known, though it was stopped
    see ' [0-9]+ tok .*stopped'
    see 'CTX [0-9]+/4096'
    not_see '~ *[0-9.]+ (tok|t/s)|CTX -'
    keys Again Enter
    see 'STATE +writing'
    keys C-c
    see_gone 'STATE +(writing|stopping)'
    keys /quit Enter
    see 'rc=0'
    # ^X: the server is told that the reasoning ends, and the answer follows in the same request.
    printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}{%% if add_generation_prompt %%}<think>\n{%% endif %%}' \
        >"$work/think.jinja"
    # shellcheck disable=SC2086
    serve thinks --listen 127.0.0.1:0 $compute --template "$work/think.jinja" --log-file "$work/serve.log" "$slow"
    start 100 30 "$chat --connect $url --no-save --ignore-eos"
    see '^>'
    keys Hello Enter
    see 'thinking'
    keys C-x
    see 'thought, '
    keys C-c
    see 'stopped'
    see 'thought, .*cut'
    [ "$(grep -c 'answer' "$work/serve.log")" -le 1 ] || fail "the request was sent again"
    keys /quit Enter
    see 'rc=0'
fi
finish
