#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-chat --connect to a server that speaks HTTPS: it is checked, with the certificates that SSL_CERT_FILE
# names, before a key or a message is sent.
. "$(dirname "$0")/lib.sh"
[ -x "$QSF_BUILDDIR/qsf-get" ] || skip "qsf-get is not built (libcurl, nettle)"
have python3 && have openssl || skip "no python3, or no openssl to make a certificate with"
mkdir "$work/server"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost >"$work/log" 2>&1 || { cat "$work/log"; skip "this openssl makes no certificate"; }
cat "$work/key" "$work/cert" >"$work/both"
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/answers.py" "$work/server" "$work/both" &
server=$!
trap 'kill $server 2>/dev/null; end' EXIT
while ! [ -s "$work/server/port" ]; do
    kill -0 $server || { fail "the server ended"; finish; }
    sleep 0.02
done
port=$(cat "$work/server/port")
unset SSL_CERT_FILE CURL_CA_BUNDLE
export OPENAI_API_KEY=secret-key
echo Hello | chat_lines 1 --connect "https://localhost:$port/401"
err_has 'not connected: .*([Cc]ert|SSL|TLS)'
[ ! -s "$work/server/log" ] || { cat "$work/server/log"; fail "something was sent to a server that was not checked"; }
export SSL_CERT_FILE="$work/cert"
echo Hello | chat_lines 0 --connect "https://localhost:$port/401"
out_has '^You said: Hello$'
# The name of the server is checked too.
: >"$work/server/log"
echo Hello | chat_lines 1 --connect "https://127.0.0.1:$port/401"
err_has 'not connected: '
[ ! -s "$work/server/log" ] || fail "something was sent to a server with another name"
# A server without TLS at an address with it.
echo Hello | chat_lines 1 --connect "http://localhost:$port/401"
err_has 'not connected: '
finish
