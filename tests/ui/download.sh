#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# /model hf:OWNER/NAME on the full screen: the download continues in the background, is shown, stopped by ^C,
# and continued; the model is loaded when it is there. Against a hub on the loopback.
. "$(dirname "$0")/lib.sh"
[ -x "$QSF_BUILDDIR/qsf-get" ] || skip "qsf-get is not built (libcurl, nettle)"
have python3 || skip "no python3"
need_tmux
mkdir "$work/hub"
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/m.gguf" || skip "mktiny is not built"
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/hub.py" "$work/m.gguf" "$work/hub" &
hub=$!
trap 'kill $hub 2>/dev/null; end' EXIT
while ! [ -s "$work/hub/port" ]; do
    kill -0 $hub || { fail "the hub ended"; finish; }
    sleep 0.02
done
url="http://127.0.0.1:$(cat "$work/hub/port")"

answered() { grep -qs '"role":"assistant"' "$XDG_DATA_HOME/qsf/sessions/$1.jsonl"; }

for size in '100 30' '80 24' '40 12'; do
    # shellcheck disable=SC2086 # two numbers
    start $size "HF_ENDPOINT=$url HF_HOME=$work/hf${size% *} no_proxy='*' $chat --session get${size% *} --max-tokens 5 $stories"
    see '^>'
    keys '/model hf:t/missing' Enter
    see 'no such'
    keys '/model hf:t/wait' Enter
    see '(^| )get +(50%|0\.2/0\.5 MB)'
    keys Hello Enter
    wait_for answered "get${size% *}" || fail "no answer during the download"
    keys '/model hf:t/cut' Enter
    see 'is being downloaded'
    keys C-c
    see 'continues it'
    keys '/model hf:t/wait' Enter
    see '(^| )get +(50%|0\.2/0\.5 MB)'
    touch "$work/hub/go"
    see 'tiny random llama is ready'
    wait_for off_screen '(^| )get +[0-9.]+(%|/)' || fail "the download does not end"
    rm "$work/hub/go"
    keys /quit Enter
    see 'rc=0'
done

# ---- in line mode: ^C stops the download only, and what is there is continued
start 90 24 "HF_ENDPOINT=$url HF_HOME=$work/hfplain no_proxy='*' $chat --plain --no-save --seed 3 --max-tokens 5 $stories"
see '^>'
keys '/model hf:t/wait' Enter
see '[0-9]+ %.*|[0-9]+%'
keys C-c
see '^qsf-chat: the download was stopped; /model hf:t/wait continues it$'
keys Hello Enter
see '^stories260K: .'
touch "$work/hub/go"
keys '/model hf:t/wait' Enter 'To the new one' Enter
see '^> To the new one$'
see '^tiny random llama: '
rm "$work/hub/go"
keys /quit Enter
see 'rc=0'
# A script that is interrupted has failed, and lines of a file wait for the model.
printf '/model hf:t/lines\nHello\n' >"$work/lines"
touch "$work/hub/go"
printf '/source %s\n' "$work/lines" | HF_ENDPOINT=$url HF_HOME=$work/hflines no_proxy='*' \
    chat_lines 0 --no-save --max-tokens 5 --json "$stories"
out_has '"type": "answer", "number": 2, "model": "tiny random llama"'
finish
