#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-get against a hub on the loopback that speaks HTTPS: servers are checked, with the certificates that
# SSL_CERT_FILE names. QSF_GET: another qsf-get than that of this build.
. "$(dirname "$0")/lib.sh"
get=${QSF_GET:-$QSF_BUILDDIR/qsf-get} mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$get" ] || skip "qsf-get is not built (libcurl, nettle)"
[ -x "$mktiny" ] || skip "mktiny is not built"
have python3 && have openssl || skip "no python3, or no openssl to make a certificate with"

mkdir "$work/hub"
"$mktiny" "$work/m.gguf" || fail "mktiny"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost >"$work/log" 2>&1 || { cat "$work/log"; skip "this openssl makes no certificate"; }
cat "$work/key" "$work/cert" >"$work/both"
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/hub.py" "$work/m.gguf" "$work/hub" "$work/both" &
hub=$!
trap 'kill $hub 2>/dev/null; rm -rf "$work"' EXIT
while ! [ -s "$work/hub/port" ]; do
    kill -0 $hub 2>/dev/null || { fail "the hub ended"; finish; }
    sleep 0.02
done
unset HF_TOKEN HF_TOKEN_PATH HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HUB_OFFLINE XDG_CACHE_HOME CURL_CA_BUNDLE \
    http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
port=$(cat "$work/hub/port")
export HF_ENDPOINT="https://localhost:$port/" HF_HOME="$work/hf" HOME="$work" no_proxy='*'

# This certificate is signed by itself; and a file of certificates that is not there has none.
unset SSL_CERT_FILE
expect 1 '[Cc]ert|SSL' "$get" hf:t/good
expect 1 '[Cc]ert|SSL' env SSL_CERT_FILE="$work/missing" "$get" hf:t/good
[ ! -d "$work/hf" ] || [ -z "$(find "$work/hf" -type f -o -type l)" ] ||
    fail "something came from a server that was not checked"
expect 0 '' env SSL_CERT_FILE="$work/cert" "$get" hf:t/good
cmp -s "$(cat "$work/out")" "$work/m.gguf" || fail "another file"
expect 0 '' env CURL_CA_BUNDLE="$work/cert" "$get" "https://localhost:$port/t/url/resolve/main/url.gguf"
# The name of the server is checked too.
expect 1 '[Cc]ert|CN_MISMATCH|SSL' env SSL_CERT_FILE="$work/cert" HF_ENDPOINT="https://127.0.0.1:$port/" \
    "$get" hf:t/gitname
finish
