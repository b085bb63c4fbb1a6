#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-serve: the answers of qsf-run in the forms of OpenAI's interface, and how it treats clients that may not
# ask, go away, or are slow. curl and a client of our own; nothing leaves the loopback.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
serve=$QSF_BUILDDIR/qsf-serve
[ -x "$serve" ] || skip "qsf-serve is not built (libmicrohttpd)"
have python3 || skip "no python3"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY XDG_CONFIG_HOME
export XDG_STATE_HOME="$work/state" work QSF_BUILDDIR
export tiny

py "$QSF_SRCDIR/tests/system/serve.py" || fail "answers"
py "$QSF_SRCDIR/tests/system/serve_prompts.py" || fail "prompts of token ids"
py "$QSF_SRCDIR/tests/system/serve_clients.py" || fail "clients"

# ---- curl, as in the documentation
if have curl; then
    "$serve" --no-config -v --listen 127.0.0.1:0 guide >"$work/first" 2>"$work/err" &
    pid=$!
    until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    url=$(sed -n '1s/^listening on //p' "$work/first")
    curl -sSN "$url/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "Hello"}], "stream": true}' \
        >"$work/out" || fail "curl"
    [ "$(grep -c '^data: ' "$work/out")" -gt 2 ] || { cat "$work/out"; fail "curl got no stream"; }
    [ "$(tail -n 2 "$work/out" | head -n 1)" = 'data: [DONE]' ] || fail "the end of the stream"
    kill $pid
    wait $pid
    [ $? = 143 ] || fail "the status after SIGTERM"
    grep -q '^qsf-serve: prompt [0-9]* tokens' "$work/err" || { cat "$work/err"; fail "no line for the answer"; }
    [ "$(wc -l <"$work/first")" = 1 ] || { cat "$work/first"; fail "more than one line on standard output"; }
else echo "skip: no curl"; fi

# ---- errors before it serves
expect 2 'no MODEL given' "$serve"
expect 2 'only one MODEL' "$serve" a b
expect 2 '^qsf-serve: .*--queue takes a whole number' "$serve" --queue -1 guide
expect 2 '^qsf-serve: .*--body-limit takes a size' "$serve" --body-limit 1K guide
for wrong in a/b gpu.example:80 http://gpu.example '[::1' ''; do
    expect 2 '^qsf-serve: .*--allow-host takes' "$serve" --allow-host "$wrong" guide
done
for wrong in foo http:// http://a/b http://a: '*' ''; do
    expect 2 '^qsf-serve: .*--allow-origin takes' "$serve" --allow-origin "$wrong" guide
done
expect 2 '^qsf-serve: .*--model-name: the name is empty' "$serve" --model-name '' guide
expect 3 '^qsf-serve: .*no-such-model' "$serve" ./no-such-model.gguf
expect 4 'smallest budget that works' "$serve" --ram-budget 1 guide
least=$(sure "$(sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")")
rm -f "$work/first"
"$serve" --no-config --listen 127.0.0.1:0 --ram-budget "${least:-1}" guide >"$work/first" 2>"$work/err" &
pid=$!
until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
[ -s "$work/first" ] || { cat "$work/err"; fail "$least MB is not enough"; }
kill $pid
wait $pid

# ---- the budget that keeps all weights in RAM: it does, and is not larger for a smaller budget
keeps() { # BUDGET: the one that its notice names
    rm -f "$work/first"
    "$serve" --no-config --listen 127.0.0.1:0 --ram-budget "$1" guide >"$work/first" 2>"$work/err" &
    pid=$!
    until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill $pid
    wait $pid
    sed -n 's/.*--ram-budget \([0-9]*\) keeps them in RAM$/\1/p' "$work/err"
}
one=$(keeps "${least:-1}") two=$(keeps $((${least:-1} + 2)))
[ -n "$one" ] && [ $((${two:-$one} - one)) -le "$(sure 1)" ] && [ $((one - ${two:-$one})) -le "$(sure 1)" ] ||
    fail "$one MB keep the weights in RAM, or $two"
[ -z "$(keeps "$(sure "${one:-1}")")" ] || { cat "$work/err"; fail "$one MB do not keep the weights in RAM"; }
finish
