#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-serve and the package `openai` of npm, which is installed into the test's own folder.
. "$(dirname "$0")/lib.sh"
serve=$QSF_BUILDDIR/qsf-serve
[ -x "$serve" ] || skip "qsf-serve is not built (libmicrohttpd)"
if ! have node || ! have npm; then skip "no node and npm: OpenAI's own client was not tried"; fi
export XDG_STATE_HOME="$work/state" npm_config_cache="$work/npm" npm_config_update_notifier=false
mkdir "$work/client"
cp "$QSF_SRCDIR/tests/system/serve_openai.mjs" "$work/client"
(cd "$work/client" && npm init -y && timeout 120 npm install --ignore-scripts --no-audit --no-fund openai@6) \
    >"$work/log" 2>&1 || { tail -n 5 "$work/log"; skip "npm cannot install the package openai: it was not tried"; }
unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY

cat >"$work/tools.jinja" <<'END'
{% for t in tools or [] %}{{ t | tojson }}
{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}
END
# start NAME OPTIONS...: $pid, $url
start() {
    name=$1
    shift
    "$serve" --no-config --listen 127.0.0.1:0 "$@" guide >"$work/$name" 2>"$work/$name.err" &
    pid=$!
    until [ -s "$work/$name" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    url=$(sed -n '1s/^listening on //p' "$work/$name")
}
start plain
first=$pid
urls=$url
start tools --template "$work/tools.jinja"
# shellcheck disable=SC2086 # two words
(cd "$work/client" && timeout 250 node serve_openai.mjs $urls $url) >"$work/out" 2>&1
[ "$(tail -n 1 "$work/out")" = ok ] || { cat "$work/out" "$work"/*.err; fail "OpenAI's client"; }
for p in $first $pid; do
    kill $p
    wait $p
    [ $? = 143 ] || fail "the status at the end"
done
finish
