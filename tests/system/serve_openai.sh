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

"$serve" --no-config --listen 127.0.0.1:0 guide >"$work/first" 2>"$work/err" &
pid=$!
until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
(cd "$work/client" && timeout 100 node serve_openai.mjs "$(sed -n '1s/^listening on //p' "$work/first")") >"$work/out" 2>&1
[ "$(tail -n 1 "$work/out")" = ok ] || { cat "$work/out" "$work/err"; fail "OpenAI's client"; }
kill $pid
wait $pid
[ $? = 143 ] || fail "the status at the end"
finish
