#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-get against a hub on the loopback: whole files, and servers that cut, throttle, lie about lengths,
# redirect, answer ranges wrongly and serve a wrong hash. Nothing leaves the loopback.
. "$(dirname "$0")/lib.sh"
get=$QSF_BUILDDIR/qsf-get mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$get" ] || skip "qsf-get is not built (libcurl, nettle)"
[ -x "$mktiny" ] || skip "mktiny is not built"
have python3 || skip "no python3"

mkdir "$work/hub" "$work/home"
"$mktiny" "$work/m.gguf" || fail "mktiny"
sha=$(sha256sum "$work/m.gguf" | cut -d ' ' -f 1)
bytes=$(wc -c <"$work/m.gguf")
commit=c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/hub.py" "$work/m.gguf" "$work/hub" &
hub=$!
trap 'kill $hub 2>/dev/null; rm -rf "$work"' EXIT
# until COMMAND...: waits for it, as long as the hub runs.
until_ok() {
    while ! "$@" 2>/dev/null; do
        kill -0 $hub 2>/dev/null || { fail "the hub ended"; finish; }
        sleep 0.02
    done
}
until_ok [ -s "$work/hub/port" ]
unset HF_TOKEN HF_TOKEN_PATH HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HUB_OFFLINE XDG_CACHE_HOME \
    http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
port=$(cat "$work/hub/port")
export HF_ENDPOINT="http://127.0.0.1:$port/" HF_HOME="$work/hf" HOME="$work/home" no_proxy='*'
repo() { echo "$HF_HOME/hub/models--t--$1"; }
# whole NAME [FILE]: the last command printed the path of this file, which is complete, and where it belongs.
whole() {
    path=$(repo "$1")/snapshots/$commit/${2:-$1.gguf}
    grep -qxF "$path" "$work/out" || { cat "$work/out"; fail "$1: another path than $path"; return; }
    cmp -s "$path" "$work/m.gguf" || fail "$1: another file"
    [ "$(readlink "$path")" = "../../blobs/$sha" ] || fail "$1: a link to $(readlink "$path")"
    [ "$(cat "$(repo "$1")/refs/main")" = $commit ] || fail "$1: refs/main"
}
# left NAME: nothing but unfinished files, no name for users.
left() { [ -z "$(find "$(repo "$1")" \( -type l -o -type f \) ! -name '*.incomplete' 2>/dev/null)" ] ||
    fail "$1: left $(find "$(repo "$1")" -type f -o -type l)"; }
requests() { grep -c "$1" "$work/hub/log"; }

# ---- right
expect 0 '' "$get" hf:t/good
whole good
expect 0 '' "$get" --offline hf:t/good
whole good
before=$(requests .)
expect 0 '' "$get" hf:t/good:good.gguf
[ "$(requests .)" = "$before" ] || fail "what is there was asked for again"
expect 0 '' "$get" "http://127.0.0.1:$port/t/url/resolve/main/url.gguf?download=true"
whole url
expect 0 '' "$get" hf:t/gitname
grep -q gitname.gguf "$work/out" || fail "a file that is not in large-file storage"
expect 0 '' "$get" hf:t/shards:q4_k_m
cat "$(repo shards)/snapshots/$commit/q/"*.gguf >"$work/joined"
cmp -s "$work/joined" "$work/m.gguf" || fail "shards"
grep -qx ".*/snapshots/$commit/q/s-Q4_K_M-00001-of-00003.gguf" "$work/out" ||
    fail "shards: the first one is the model"
expect 0 '' "$get" hf:t/folder
grep -qx ".*/snapshots/$commit" "$work/out" || fail "a model with safetensors is a folder"
there=$(cd "$(repo folder)/snapshots/$commit" && echo *)
[ "$there" = 'config.json model.safetensors tokenizer.json' ] || fail "files of a folder: $there"
rm "$(repo folder)/snapshots/$commit/tokenizer.json" # as if it had been stopped before that file
expect 0 '' "$get" hf:t/folder
[ -s "$(repo folder)/snapshots/$commit/tokenizer.json" ] || fail "a folder that lacks a file is taken for whole"

# ---- the choice
export XDG_STATE_HOME="$work/state"
# listed RE: a line of the list, which is the result.
listed() { grep -qE "$1" "$work/out" || { cat "$work/out"; fail "not listed: $1"; }; }
expect 0 '' "$get" --list --room 5000000000 hf:t/types
listed 'streams 3[78] %, disk not measured m-Q8_0'
listed '^[*] .*fits .*m-Q4_K_M.gguf'
[ ! -s "$work/err" ] || fail "--list: something on stderr"
! grep -q mmproj "$work/out" || fail "a projector is offered"
expect 0 '' "$get" --quiet --list --room 1 hf:t/types
grep -q '^[*] .*m-Q4_0_4_4' "$work/out" || fail "the smallest if none fits"
# How fast it would be, from what was measured before: of the disk, and of the type in the name.
mkdir -p "$XDG_STATE_HOME/qsf"
rates() {
    printf 'disk-%s 6000000000\n' "$(stat -c %d "$work/home")"
    printf 'compute-Q8_0-%s 20000000000\ncompute-Q4_0-%s 30000000000\n' "$1" "$1"
}
rates "$("$QSF_BUILDDIR/qsf-run" --plan -t 0 "$work/m.gguf" | sed -n 's/^threads *//p')" >"$XDG_STATE_HOME/qsf/rates"
expect 0 '' "$get" --list --room 5000000000 hf:t/types
listed 'streams 3[78] %, about 2\.[0-9] tok/s  *m-Q8_0'
listed '^[*] .*fits, about [0-9.]* tok/s  *m-Q4_K_M.gguf'
expect 0 '' "$get" --json --list --room 5000000000 hf:t/types
grep -q '"m-Q8_0.gguf", "verdict": "streams 3[78] %, about 2[^"]*", "tokens_per_second": 2\.' "$work/out" ||
    { cat "$work/out"; fail "a speed in JSON"; }
expect 3 'no file or type "Q5_K".* it has ' "$get" hf:t/types:Q5_K
expect 0 '' "$get" --json --list hf:t/types:q4_0
grep -q '"name": "m-Q4_0.gguf", "verdict": "[^"]*", "tokens_per_second": [^,]*, "chosen": true' "$work/out" ||
    { cat "$work/out"; fail "a type"; }
expect 3 'no model: no .gguf file' "$get" hf:t/none
expect 3 'no such repository' "$get" hf:t/missing
expect 1 'not a list of files' "$get" hf:t/notjson
expect 0 '' "$get" hf:t/evil
whole evil
[ "$(find "$work" -name '[xy].gguf' | wc -l)" = 0 ] || fail "a file outside of the cache"
for name in hf: hf:a hf:a/ hf:/b hf:a/b/c hf:a/b: hf:../b hf:a/.. hf:a/b:../c hf:a/b@../c: hf:a--b/c \
    ftp://x/y.gguf x; do
    expect 2 "^qsf-get: " "$get" "$name"
done

# ---- servers at fault
expect 0 'trying again' "$get" hf:t/cut
whole cut
[ "$(requests 'GET .*/cut.gguf bytes=')" -ge 3 ] || fail "cut: not resumed"
for name in noranges badrange norest; do
    expect 0 'trying again' "$get" hf:t/$name
    whole $name
done
expect 0 '' "$get" hf:t/moved
whole moved
for name in busy flaky; do
    expect 0 'HTTP (429|503)' "$get" hf:t/$name
    whole $name
done
expect 3 "checksum is $sha, but the server announced 0000" "$get" hf:t/wrong
left wrong
[ -z "$(find "$(repo wrong)" -name '*.incomplete')" ] || fail "a wrong file is kept"
expect 3 "announced $bytes bytes, and now has" "$get" hf:t/long
left long
expect 3 "announced $bytes bytes, and now has" "$get" hf:t/short
left short
expect 1 '(redirect|HTTP 30)' "$get" hf:t/loop
expect 3 'no such file \(HTTP 404\)' "$get" hf:t/gone

# ---- a token is for the hub alone
expect 3 'not shown without a token .HTTP 401.: set HF_TOKEN, and accept its terms on http://127.*/t/gated if' \
    "$get" hf:t/gated
HF_TOKEN=other expect 3 'not shown with this token .HTTP 401.' "$get" hf:t/gated
HF_ENDPOINT=http://127.0.0.1:1 expect 1 '^qsf-get: hf:t/other: the hub cannot be asked: ' "$get" hf:t/other
export HF_TOKEN=secret
expect 0 '' "$get" hf:t/gated
whole gated
grep -q 'GET localhost /cdn/gated - -$' "$work/hub/log" || fail "the token went to another host"
unset HF_TOKEN
mkdir -p "$HF_HOME" && echo secret >"$HF_HOME/token"
rm -rf "$(repo gated)"
expect 0 '' "$get" hf:t/gated
rm "$HF_HOME/token"

# ---- refused by its header: the second half never comes; a good model of that size is not
edit=$QSF_BUILDDIR/obj/tests/tools/ggufedit
"$mktiny" "$work/hub/large.gguf" layers=8 hidden=256 heads=4 kv_heads=4 ffn=768 rope_freqs=1 || fail "mktiny"
"$edit" "$work/hub/large.gguf" "$work/hub/refused.gguf" 'str=general.architecture=quux' || fail "ggufedit"
expect 3 'refused.gguf: .*quux' "$get" hf:t/refused
left refused
expect 0 '' "$get" hf:t/large
[ -s "$(repo large)/snapshots/$commit/large.gguf" ] || fail "a large model is refused"

# ---- without the network
expect 3 'not on this machine, and --offline' "$get" --offline hf:t/other
HF_HUB_OFFLINE=1 expect 3 'not on this machine' "$get" hf:t/other
HF_ENDPOINT=http://127.0.0.1:1 expect 1 '127.0.0.1' "$get" hf:t/other
expect 0 '' env HF_ENDPOINT=http://127.0.0.1:1 "$get" hf:t/good

# ---- any URL
expect 0 '' "$get" "http://127.0.0.1:$port/plain/a.gguf"
cmp -s "$(cat "$work/out")" "$work/m.gguf" || fail "a file of any URL"
# It is asked whether the file has changed, and what is here is used where that is not known.
plain() { cat "$(cat "$work/out")"; }
gets() { grep -c '^GET .*/plain/' "$work/hub/log"; }
for file in a dated bare; do
    url=http://127.0.0.1:$port/plain/$file.gguf
    rm -f "$work/hub/version"
    expect 0 '' "$get" "$url"
    before=$(gets)
    expect 0 '' "$get" "$url"
    echo v9 >"$work/hub/version"
    expect 0 'HTTP 503; the file that is here is used' "$get" "$url"
    echo v2 >"$work/hub/version"
    expect 0 '' "$get" --offline "$url"
    [ "$(gets)" = "$before" ] || fail "$file: the same version was downloaded again"
    plain | cmp -s - "$work/m.gguf" || fail "$file: another file"
    expect 0 "$file.gguf has changed on the server: it is downloaded again" "$get" "$url"
    [ "$(plain | wc -c)" = $((bytes + 32)) ] || fail "$file: the old version is still there"
    expect 0 '' "$get" "$url"
    [ "$(gets)" = $((before + 1)) ] || fail "$file: the new version was downloaded twice"
done
# Stopped in the middle, the old one stays, and the next download continues it.
url=http://127.0.0.1:$port/plain/a.gguf
echo v3 >"$work/hub/version"
rm -f "$work/hub/go"
"$get" "$url" >"$work/out" 2>"$work/err" &
program=$!
until_ok sh -c '[ -n "$(find "$1" -name a.gguf.incomplete -size +0)" ]' sh "$work/home/.cache/qsf/downloads"
kill -TERM $program
wait $program
expect 0 '' "$get" --offline "$url"
[ "$(plain | wc -c)" = $((bytes + 32)) ] || fail "a download that was stopped has replaced the old version"
: >"$work/hub/go"
expect 0 'has changed' "$get" "$url"
[ -z "$(find "$work/home/.cache/qsf/downloads" -name 'a.gguf.incomplete*')" ] || fail "an unfinished file is left"
rm "$work/hub/version" "$work/hub/go"
expect 2 'does not end with the name of a file' "$get" "http://127.0.0.1:$port/plain/"
expect 3 'HTTP 404' "$get" "http://127.0.0.1:$port/other/a.gguf"

# ---- stopped, killed, and two at once
part=$(repo wait)/blobs/$sha.incomplete
# half N: the Nth request has been made, and half of the file is there.
half() { [ "$(requests 'GET .*/wait.gguf')" = "$1" ] && [ "$(wc -c <"$part")" -ge $((bytes / 2)) ]; }
n=0
for signal in INT TERM KILL; do
    "$get" hf:t/wait >"$work/out" 2>"$work/err" &
    pid=$!
    n=$((n + 1))
    until_ok half $n
    kill -s $signal $pid
    wait $pid
    case $signal:$? in INT:130 | TERM:143 | KILL:137) ;; *) fail "SIG$signal: exit $?" ;; esac
    left wait
    [ "$(wc -c <"$part")" -ge $((bytes / 2)) ] || fail "SIG$signal: what was there is gone"
done
rm "$part"
"$get" hf:t/wait >"$work/one" 2>"$work/err" &
one=$!
until_ok half 4
"$get" hf:t/wait >"$work/two" 2>"$work/waits" &
two=$!
until_ok grep -q 'another program downloads this file' "$work/waits"
touch "$work/hub/go"
wait $one || fail "the first of two"
wait $two || { cat "$work/waits"; fail "the second of two"; }
cp "$work/two" "$work/out"
whole wait
[ "$(requests 'GET .*/wait.gguf')" = 4 ] || fail "two programs downloaded the same bytes"
grep -q "bytes=" "$work/hub/log" || fail "no ranges"

# ---- the other programs
run=$QSF_BUILDDIR/qsf-run chat=$QSF_BUILDDIR/qsf-chat convert=$QSF_BUILDDIR/qsf-convert
if [ -x "$run" ]; then
    "$run" "$work/m.gguf" -p Hi -n 4 --temperature 0 >"$work/want" 2>/dev/null
    expect 0 '' "$run" hf:t/run -p Hi -n 4 --temperature 0
    cmp -s "$work/want" "$work/out" || fail "qsf-run: another answer"
    expect 0 '' "$run" --offline hf:t/run:run.gguf --plan
    expect 3 'not on this machine' "$run" --offline hf:t/other -p Hi
    expect 3 'the server announced 0000' "$run" hf:t/wrong -p Hi
    expect 2 'expected hf:OWNER/NAME' "$run" hf:t -p Hi
    mkdir "$work/bin" && cp "$run" "$work/bin" &&
        PATH=/usr/bin:/bin expect 1 'qsf-get cannot be run' "$work/bin/qsf-run" hf:t/run -p Hi
fi
if [ -x "$convert" ]; then
    expect 0 '' "$convert" hf:t/cut "$work/cut.qsf"
    [ -s "$work/cut.qsf" ] || fail "qsf-convert"
fi
if [ -x "$chat" ]; then
    printf '/model hf:t/chat\nHi\n' >"$work/in"
    "$chat" --max-tokens 4 --temperature 0 <"$work/in" hf:t/run >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "qsf-chat"; }
    [ -s "$(repo chat)/snapshots/$commit/chat.gguf" ] && [ -s "$work/out" ] || fail "/model does not download"
    echo '/model hf:t/wrong' | "$chat" "$work/m.gguf" >"$work/out" 2>"$work/err"
    [ $? = 3 ] || { cat "$work/err"; fail "a failed download in the chat"; }
fi
finish
