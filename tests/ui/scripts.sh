#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The chat in scripts: files instead of standard input and output, quiet output, events as JSON.
. "$(dirname "$0")/lib.sh"
run=$QSF_BUILDDIR/qsf-run
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
turns='{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}'
[ -x "$mktiny" ] || skip "mktiny is not built"
"$mktiny" "$work/model.gguf" "script=<think> deep </think> Hello _world" \
    "chat_template=$turns{% if add_generation_prompt %}<|assistant|>{% endif %}" || fail "mktiny"
printf 'Hi\n/show license\n/retry\n' >"$work/script"

# ---- files, and nothing but the answer
chat_lines 0 "$work/model.gguf" --script "$work/script" -o "$work/answers" -q </dev/null
[ -s "$work/out" ] && { cat "$work/out"; fail "-o: something reached stdout"; }
[ "$(cat "$work/answers")" = "Hello world
Hello world" ] || { cat "$work/answers"; fail "-o"; }
grep -q '^qsf-chat:' "$work/err" && { cat "$work/err"; fail "-q prints notices"; }
printf 'Hi\n/nonsense\n' | chat_lines 1 "$work/model.gguf" -q
err_has '^qsf-chat: .*nonsense'
printf 'Hi\n\n"""Two\nlines"""\n/nonsense\n/source %s\n"""\n/system\n' "$work/inner" >"$work/wrong"
printf '/set top-k -1\n' >"$work/inner"
chat_lines 1 "$work/model.gguf" --script "$work/wrong"
err_has "^qsf-chat: $work/wrong:5: /nonsense: no such command"
err_has "^qsf-chat: $work/inner:1: .*top-k"
printf '/system %09000d\nHi\n' 7 >"$work/wrong"
chat_lines 5 "$work/model.gguf" --script "$work/wrong"
err_has "^qsf-chat: $work/wrong:2: .*context of"
chat_lines 5 "$work/model.gguf" --script "$work/wrong" --json
out_has "\"type\": \"error\", \"text\": \"$work/wrong:2: "
chat_lines 2 "$work/model.gguf" --script "$work/missing"
err_has 'missing: No such file'
chat_lines 2 "$work/model.gguf" -o "$work" </dev/null
err_has 'Is a directory'

"$run" "$work/model.gguf" -p Hi -q -o "$work/answer" </dev/null >"$work/out" 2>"$work/err" ||
    fail "qsf-run -o: exit $?"
[ "$(cat "$work/answer")" = 'Hello world' ] || { cat "$work/answer"; fail "qsf-run -o"; }
[ -s "$work/out" ] || [ -s "$work/err" ] && { cat "$work/out" "$work/err"; fail "qsf-run -q prints more"; }
"$run" "$work/model.gguf" -p Hi -o "$work/no/answer" </dev/null >"$work/out" 2>"$work/err"
[ $? = 2 ] || fail "qsf-run -o into a folder that does not exist"

# ---- a file that is read is not written, and a run that fails leaves the old text
cp "$work/model.gguf" "$work/copy.gguf"
echo text >"$work/note"
"$run" "$work/copy.gguf" -p Hi -o "$work/copy.gguf" </dev/null >"$work/out" 2>"$work/err" && fail "-o MODEL"
err_has 'the file is also read'
"$run" "$work/model.gguf" -p Hi -f "$work/note" -o "$work/note" </dev/null >"$work/out" 2>"$work/err" &&
    fail "-o of the file of -f"
chat_lines 2 "$work/copy.gguf" -o "$work/copy.gguf" </dev/null
chat_lines 2 "$work/model.gguf" --script "$work/script" -o "$work/script"
cmp -s "$work/model.gguf" "$work/copy.gguf" && [ "$(cat "$work/note")" = text ] && [ -s "$work/script" ] ||
    fail "-o destroyed a file that is read"
"$run" "$work/model.gguf" -p Hi --ram-budget 1 -o "$work/note" </dev/null >"$work/out" 2>"$work/err" &&
    fail "a budget of 1 MB"
chat_lines 3 "$work/missing.gguf" -o "$work/note" </dev/null
[ "$(cat "$work/note")" = text ] || fail "a run that failed emptied the file of -o"
# ---- a file in another encoding is not attached
printf 'caf\351\n' >"$work/latin"
"$run" "$work/model.gguf" -p Hi -f "$work/latin" </dev/null >"$work/out" 2>"$work/err" && fail "-f of Latin-1"
err_has 'latin: it is not UTF-8'
printf 'see @%s\n' "$work/latin" | chat_lines 1 "$work/model.gguf"
err_has 'it is not UTF-8'

seq 1000 >"$work/long"
"$run" "$work/model.gguf" -p Hi -q -o "$work/long" </dev/null 2>"$work/err" || fail "-o over a longer file"
[ "$(cat "$work/long")" = 'Hello world' ] || fail "-o leaves a part of the old text"

# ---- events
printf 'Hi \033[31m\n/nonsense\n/stop\n/quit\n' | chat_lines 1 "$work/model.gguf" --json --seed 7
[ -s "$work/err" ] && { cat "$work/err"; fail "--json: something reached stderr"; }
LC_ALL=C grep -q '[[:cntrl:]]' "$work/out" && fail "--json: control characters"
sed 's/^{"type": "\([a-z]*\)".*/\1/' "$work/out" | uniq | tr '\n' ' ' >"$work/types"
case $(cat "$work/types") in
'start notice loaded '*'message reasoning text answer error output end ') ;;
*) cat "$work/out"; fail "--json: $(cat "$work/types")" ;;
esac
out_has '^\{"type": "start", "version": 1, "program": "qsf-chat"'
out_has '"type": "message", "number": 1, "text": "Hi \\u001b\[31m"'
out_has '"type": "reasoning", "text": "<think>'
out_has '"type": "answer", "number": 2, "model": "[^"]*", "text": "Hello world", "reasoning": "deep", "stop": "eos", "tokens": [0-9]+, "seed": "7"'
out_has '"type": "end", "status": 1\}$'
if have python3; then
    python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' <"$work/out" ||
        fail "--json: not JSON"
fi
# ---- a session is repeated
printf '/set temperature 1\nOnce\n/set max-tokens 20\nMore\n/continue\n/retry\n/system Be\nLast\n' |
    chat_lines 0 "$stories" --session again -n 30 --ignore-eos
chat_lines 0 --replay again
out_has '^answer 2: the same, 30 tokens$'
out_has '^answer 7: the same, 20 tokens$'
out_has '^[45] answers the same, 0 different, 0 not repeated$'
cp "$XDG_DATA_HOME/qsf/sessions/again.jsonl" "$work/before"
sed -i 's/"role":"assistant","text":"/&x/' "$XDG_DATA_HOME/qsf/sessions/again.jsonl"
chat_lines 1 --replay again
out_has '^answer 2: differs at byte 0: it was "x'
chat_lines 1 --replay missing
err_has 'there is no session missing'
chat_lines 1 --replay again "$work/model.gguf" --system Hi
out_has 'differs at byte 0'
finish
