#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# 64 clients of qsf-serve at a time, slow, aborting and malformed ones among them, at the smallest budget that
# works: the peak that the kernel reports stays below it, nothing is killed in a memory cgroup of that size,
# and the server answers as before. QSF_SERVE_SECONDS: how long, less than QSF_TEST_TIMEOUT.
. "$(dirname "$0")/lib.sh"
serve=$QSF_BUILDDIR/qsf-serve
[ -x "$serve" ] || skip "qsf-serve is not built (libmicrohttpd)"
have python3 || skip "no python3"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY XDG_CONFIG_HOME
: "${QSF_SERVE_SECONDS:=$([ -n "${QSF_TEST_QUICK-}" ] && echo 5 || echo 60)}"
[ -z "${QSF_SAN-}" ] || QSF_SERVE_SECONDS=5
export XDG_STATE_HOME="$work/state"
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null; [ -z "${cg-}" ] || cgroup_close; rm -rf "$work"' EXIT

"$serve" --no-config --ram-budget 1 --body-limit 128K guide >"$work/out" 2>"$work/err" </dev/null
budget=$(sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")
[ -n "$budget" ] || { cat "$work/err"; fail "no smallest budget"; finish; }
[ -z "${QSF_SAN-}" ] || budget=400

# start: in $cg if there is a group; $port, $pid.
start() {
    rm -f "$work/first"
    set -- "$serve" --no-config --listen 127.0.0.1:0 --ram-budget "$budget" --body-limit 128K --timeout 5 \
        --connections 48 --queue 12 guide
    if [ -n "${cg-}" ]; then sh -c "$cgroup_enter" "$cg" "$@" >"$work/first" 2>"$work/err" &
    else "$@" >"$work/first" 2>"$work/err" &
    fi
    pid=$!
    until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    port=$(sed -n '1s/^listening on http:.*:\([0-9]*\)$/\1/p' "$work/first")
    [ -n "$port" ] || { cat "$work/err"; fail "the server does not start at $budget MB"; finish; }
}
# ask: the text of an answer. The queue may still be full of clients that have left, and a client that gets no
# processor may be too slow for the server.
ask() {
    py - "$port" $pid <<'PY'
import http.client, json, os, sys, time
while True:
    try:
        os.kill(int(sys.argv[2]), 0)
        c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        c.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": [{"role": "user", "content": "How do I set the temperature?"}], "temperature": 0}))
        r = c.getresponse()
        text = r.read()
        if r.status not in (408, 429, 503):
            break
    except ProcessLookupError:
        sys.exit("the server ended")
    except (OSError, http.client.HTTPException):
        pass
    time.sleep(0.05)
print(json.loads(text)["choices"][0]["message"]["content"])
PY
}
# load SECONDS
load() {
    start
    before=$(ask)
    [ -n "$before" ] || fail "no answer"
    py "$QSF_SRCDIR/tests/system/serve_load.py" "$port" $pid "$1" >"$work/load" || fail "wrong answers"
    cat "$work/load"
    [ "$(ask)" = "$before" ] || fail "another answer afterwards"
    peak=$(sed -n 's/^peak \([0-9.]*\) MB.*/\1/p' "$work/load")
    [ -n "${QSF_SAN-}" ] || awk -v a="${peak:-1e9}" -v b="$budget" 'BEGIN { exit !(a <= b) }' ||
        fail "a peak of $peak MB at a budget of $budget MB"
    grep -q ' 200: ' "$work/load" || fail "nothing was answered"
    kill $pid
    wait $pid
    [ $? = 143 ] || { cat "$work/err"; fail "the status at the end"; }
    pid=
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report"; }
}

load "$QSF_SERVE_SECONDS"
if [ -z "${QSF_SAN-}" ] && cgroup_open "$budget"; then
    load 3
    [ "$(cgroup_kills)" = 0 ] || fail "killed in a group of $budget MB"
    [ "$(cgroup_swap)" = 0.0 ] || fail "$(cgroup_swap) MB in swap"
    cgroup_close
else echo "skip: no writable memory cgroup"; fi
finish
