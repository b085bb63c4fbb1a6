#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-chat --connect in lines: servers that people use, every fault of a server, keys, sessions. Against a
# server on the loopback.
. "$(dirname "$0")/lib.sh"
[ -x "$QSF_BUILDDIR/qsf-get" ] || skip "qsf-get is not built (libcurl, nettle)"
have python3 || skip "no python3"
mkdir "$work/server"
"${QSF_PYTHON:-python3}" -E -S "$QSF_SRCDIR/tests/harness/answers.py" "$work/server" &
server=$!
trap 'kill $server 2>/dev/null; end' EXIT
while ! [ -s "$work/server/port" ]; do
    kill -0 $server || { fail "the server ended"; finish; }
    sleep 0.02
done
url="http://127.0.0.1:$(cat "$work/server/port")"
# A proxy of the environment is not used for this machine.
export http_proxy=http://127.0.0.1:9 OPENAI_API_KEY=''
unset no_proxy NO_PROXY
log=$work/server/log
# ask CODE HOW ARGS...: one message to the server that behaves like HOW.
ask() {
    code=$1 how=$2
    shift 2
    : >"$log"
    echo 'Good morning' | chat_lines "$code" --connect "$url/$how" "$@"
}
# sent EXPRESSION: in the requests of the last one.
sent() { grep -qE -- "$1" "$log" || { cat "$log"; fail "no /$1/ was sent"; }; }
not_sent() { ! grep -qE -- "$1" "$log" || { cat "$log"; fail "/$1/ was sent"; }; }

# ---- an answer of each server; nothing is sent that was not set
for how in llama vllm ollama lmstudio qsf other; do
    ask 0 $how
    out_has '^You said: GoodMorning$|^You said: Goodmorning$'
    sent "\"path\": \"/$how/v1/models\""
    sent '"model": "small", "stream": true'
    not_sent 'temperature|top_k|max_tokens|seed'
done
# the size of the context of servers whose lists do not say it: when it is known
rm -f "$work/server/loaded"
printf '/show model\nhello\n/show model\n' | chat_lines 0 --connect "$url/lmstudio" --no-save
[ "$(grep -E '^(context|trained)' "$work/err" | tr -s ' \n' ' ')" = 'trained for 32768 tokens context 6144 tokens trained for 32768 tokens ' ] ||
    { cat "$work/err"; fail "the context of a model that LM Studio has loaded"; }
rm -f "$work/server/loaded"
printf '/show model\nhello\n/show model\n/model tuned\n/show model\n' | chat_lines 0 --connect "$url/ollama" --no-save
err_has '^context  27 tokens$'
err_has '^context  4096 tokens$'
err_has '^trained  for 40960 tokens$'
err_has '^qsf-chat: 24 of 27 tokens of the context are used: Ollama leaves out the oldest messages'
echo '/show model' | chat_lines 0 --connect "$url/llama" --no-save
err_has '^context  4096 tokens$'
echo '/show model' | chat_lines 0 --connect "$url/llama" --model large --no-save
err_has '^context  2048 tokens$' # each of several models has its own
ask 0 other --model large --temp 0.5 --seed 7 -n 50 --stop END
sent '"model": "large:70b"'
sent '"temperature": 0.5'
sent '"seed": 7'
sent '"max_tokens": 50'
sent '"stop": \["END"\]'
ask 0 llama --top-k 5 --dry 0.8 --repeat-penalty 1.1
sent '"top_k": 5'
sent '"dry_multiplier": 0.8'
sent '"repeat_penalty": 1.1'
ask 0 vllm --repeat-penalty 1.1
sent '"repetition_penalty": 1.1'
ask 0 vllm --reasoning-budget 64
sent '"thinking_token_budget": 64'
ask 0 llama --reasoning-budget 64
sent '"reasoning_budget_tokens": 64'
ask 0 lmstudio --repeat-penalty 1.1 --min-p 0.1
sent '"repeat_penalty": 1.1'
err_has '^qsf-chat: min-p: no effect on this server$'
ask 0 lmstudio --reasoning off
err_has '^qsf-chat: reasoning: no effect on this server$'
ask 0 other --reasoning off
sent '"reasoning_effort": "none"'
ask 0 llama --reasoning off
sent '"chat_template_kwargs": \{"enable_thinking": false\}'
[ ! -s "$work/err" ] || { cat "$work/err"; fail "something is said of a setting that has an effect"; }
ask 3 modelless
err_has '/modelless/v1: the server has no models$'
ask 0 names
err_has 'some models of .*/names/v1 are left out: their names'
ask 0 mixed --top-k 5 --dry 0.8 --temp 0.5
err_has '^qsf-chat: top-k, dry: no effect on this server$'
not_sent 'top_k|dry'
sent '"temperature": 0.5'
ask 0 other --ban x --logit-bias a=1 --least 0.1 --quality 0.5 --samplers top-k --expert-top 1 \
    --allow-special --ignore-eos
for name in ban logit-bias least quality samplers expert-top allow-special ignore-eos; do
    err_has "^qsf-chat: .*\<$name\>.*: no effect on this server\$"
done
printf '/temp 0.5\none\n/temp default\ntwo\n' | chat_lines 0 --connect "$url/other" --session unset
err_has '^qsf-chat: temperature default$'
sent '"one"}.*"temperature": 0.5'
tail -n 1 "$log" | grep -q '"temperature"' && fail "a setting that was unset is sent"
: >"$log"
echo three | chat_lines 0 --session unset
not_sent '"temperature"'
# ---- forms of URLs
ask 0 other/v1
ask 0 other/v1/
ask 0 other/v1/chat/completions
"$chat" --connect "127.0.0.1:${url##*:}/llama" -q <<'LINES' >"$work/out" || fail "no scheme"
hello
LINES
out_has 'You said: hello'
echo hello | chat_lines 0 --connect "unix:$work/server/socket"
out_has 'You said: hello'

# ---- reasoning, tool calls, answers in one piece, in bytes
ask 0 think
[ "$(cat "$work/out")" = Forty-two ] || { cat "$work/out"; fail "reasoning is part of the answer"; }
ask 0 think --show-thinking --json
out_has '"type": "reasoning", "text": "<think>Let'
out_has '"text": "Forty-two", "reasoning": "Let me think", "stop": "eos", "tokens": 5'
ask 0 thinking --session s7
err_has 'the model was still thinking: /retry asks again'
echo /continue | chat_lines 1 --session s7
err_has 'not known to continue'
# llama.cpp continues it, also when it is complete.
touch "$work/server/go"
ask 0 llama-think --session s8
err_has 'the model was still thinking: /continue resumes'
: >"$log"
echo /continue | chat_lines 0 --session s8 --show-thinking --json
sent '"role": "assistant", "content": "", "reasoning_content": "Let me think"\}\].*"continue_final_message": true'
out_has '"text": "done", "reasoning": "Let me think and more"'
ask 0 vllm-think --session s9
err_has 'the model was still thinking: /retry asks again'
echo /continue | chat_lines 1 --session s9
err_has 'vLLM continues the text of an answer, not its reasoning'
rm "$work/server/go"
ask 0 inline --show-thinking --json
out_has '"text": "shown text", "reasoning": "hidden thought"'
ask 0 tools
out_has '^\[tool call\] get_weather \{"city": "Paris"\}$'
ask 0 whole
out_has '^All at once\.$'
ask 0 plaintype
out_has '^a stream$'
ask 0 split
out_has 'grüße 世界 😀'
ask 0 forever
out_has '^complete$'
ask 0 uncounted --json
out_has '"tokens": 5, "approximate": true'
ask 0 llama --json
out_has '"tokens": 5, "tokens_per_second": 12.500, "prompt_tokens": 20, "reused_tokens": 5'
ask 0 length --json
out_has '"stop": "length"'

# ---- one that sends nothing, while the others are asked
echo x | "$chat" --connect "$url/silent" --timeout 8 >"$work/silent" 2>&1 &
silent=$!
until grep -qs silent/v1/chat "$log"; do kill -0 $silent 2>/dev/null || break; sleep 0.02; done

# ---- fields that a server refuses: said, and asked again without them
ask 0 refuses --top-k 5 --min-p 0.1 -n 30
out_has 'You said'
err_has 'refuses top_k: it is no longer sent'
err_has 'refuses min_p'
err_has 'refuses max_tokens: it is no longer sent, but max_completion_tokens is$'
sent '"max_completion_tokens": 30'
tail -n 1 "$log" | grep -qE 'top_k|min_p|stream_options' && fail "a refused field was sent again"
ask 0 fastapi --top-k 5
err_has 'refuses top_k'
# A value is not sent until it is another one; a limit of the answer is not dropped.
: >"$log"
printf 'One\nTwo\n/set top-k 5\nThree\n' | chat_lines 0 --connect "$url/range" --top-k 0 --no-save
err_has "refuses this value of top_k: Field 'top_k': Value must be between 1 and 100, but got 0; it is not sent until"
[ "$(grep -c '"top_k": 0' "$log")" = 1 ] || fail "a refused value was sent again"
tail -n 1 "$log" | grep -q '"top_k": 5' || fail "another value was not sent"
ask 1 range -n 300
err_has "HTTP 400: Field 'max_tokens'"
# ---- tokens that are biased or banned
ask 0 llama --logit-bias '#7=2' --logit-bias word=-1 --ban ab --ban 'a longer text'
sent '"path": "/llama/tokenize".*"content": "word", "add_special": false'
sent '"logit_bias": \[\[7, 2(\.0)?\], \[444, -1(\.0)?\], \[195, false\], \[227, false\]\]'
err_has '^qsf-chat: ban: "a longer text" has no effect: it is 3 tokens'
ask 0 vllm --logit-bias word=-1 --ban 'a longer text'
sent '"logit_bias": \{"444": -1(\.0)?\}, "bad_words": \["a longer text"\]'
ask 0 other --ban '#5' --ban x
sent '"logit_bias": \{"5": -100(\.0)?\}'
not_sent tokenize
printf '/ban x\nhello\n/ban off\n/ban\n' | chat_lines 0 --connect "$url/other" --no-save
err_has 'ban.*no effect'
err_has 'nothing is banned'
: >"$log"
printf '/ban ab\none\n/bias word=1\ntwo\n' | chat_lines 0 --connect "$url/llama" --no-save
[ "$(grep -c tokenize "$log")" = 3 ] || { cat "$log"; fail "a text is looked up again"; }
# ---- what an answer has to match
printf 'root ::= "yes" | "no"\n' >"$work/words.gbnf"
ask 0 llama --grammar "$work/words.gbnf"
sent '"grammar": "root ::= '
ask 0 vllm --grammar "$work/words.gbnf"
sent '"structured_outputs": \{"grammar": "root ::= '
ask 1 ollama --grammar "$work/words.gbnf"
err_has 'grammar: Ollama cannot be told'
printf '{"type": "object"}' >"$work/schema.json"
ask 0 other --json-schema "$work/schema.json"
sent '"response_format": \{"type": "json_schema", "json_schema": \{"name": "answer", "schema": \{"type": "object"\}\}\}'
ask 1 other --regex '[a-z]+'
err_has 'regex: .*cannot be told'
not_sent '"messages"'
ask 0 vllm --regex '[a-z]+'
sent '"structured_outputs": \{"regex": "\[a-z\]\+"\}'

# ---- faults
ask 1 401
err_has 'HTTP 401: .*Incorrect API key.*; .*OPENAI_API_KEY'
ask 1 403
err_has 'HTTP 403: .*not for you'
ask 3 404
err_has 'HTTP 404: .*does not exist\.; /models lists'
ask 1 quota
err_has 'HTTP 429: .*Quota is used up; try again in 3600 s'
ask 1 429-late --timeout 40 # a wait of 50 s does not fit
err_has 'HTTP 429: .*Rate limit reached; try again in 50 s'
ask 1 500
err_has 'HTTP 500: the server failed: Bad\?\[31m Gateway$'
ask 1 503
err_has 'HTTP 503: the server is not ready, or too busy: maximum pending requests exceeded; /retry asks again'
ask 1 away
err_has 'HTTP 503: .*no healthy upstream'
ask 5 full
err_has 'exceeds the available context'
ask 1 html
err_has 'not an answer of an OpenAI-compatible server, but text/html: Sign in'
ask 1 nojson
err_has 'not an answer.*: A router\?'
ask 1 badjson
out_has '^a beginning$'
err_has 'not JSON'
ask 1 cut
out_has '^half an$'
err_has 'the answer was cut off: .*; /retry asks again'
ask 1 closed
err_has 'the answer was cut off; /retry asks again'
ask 1 badchunks
err_has 'the answer was cut off'
ask 1 empty
err_has 'an empty answer'
ask 1 midway
out_has '^so far$'
err_has 'out of\?\[2J memory'
ask 1 line
err_has 'a line of more than 4 MB'
ask 1 flood
err_has 'more than 16 MB'
wait $silent
[ $? = 1 ] && grep -q 'no answer: the server sent nothing for 8 s; /retry asks again' "$work/silent" ||
    { cat "$work/silent"; fail "a server that sends nothing"; }
ask 1 longerror
err_has 'HTTP 400: the message is long: x+$'
[ "$(wc -c <"$work/err")" -lt 1000 ] || fail "the whole error is shown"
echo x | chat_lines 1 --connect "unix:$work/no-such-socket"
err_has 'no-such-socket: No such file'
touch "$work/no-socket"
echo x | chat_lines 1 --connect "unix:$work/no-socket"
err_has 'no-socket: not a socket'
ask 1 moved
err_has 'HTTP 307: the server is at http://127.0.0.1:9/elsewhere/v1 now'
ask 1 redirect
err_has 'HTTP 301: '
[ "$(wc -l <"$log")" = 1 ] || fail "a redirect was followed"
ask 3 other --model nothing
err_has 'nothing: the server does not have this model; it has small, large:70b'
ask 0 unlisted --model any/thing
sent '"model": "any/thing"'
echo x | chat_lines 1 --connect http://127.0.0.1:9
err_has 'not connected: .*(refused|connect)'
echo x | no_proxy='*' chat_lines 1 --connect http://no-such-host.invalid
err_has 'not connected: .*[Rr]esolve'
echo x | chat_lines 1 --connect "https://127.0.0.1:${url##*:}"
err_has 'not connected: '
# The chat continues after each of them.
printf 'one\n/retry\n/set temperature 0.1\n' | chat_lines 1 --connect "$url/quota" --no-save
err_has 'temperature 0.1'
touch "$work/server/calm"
echo 'and now' | chat_lines 0 --connect "$url/quota"
# A server that is not ready yet is asked again.
for how in 429 busy llama-loading; do
    rm -f "$work/server/calm"
    { echo hello | "$chat" --connect "$url/$how" --no-save; echo "rc=$?"; } >"$work/out" 2>"$work/err" &
    waiting=$!
    said() { grep -qE 'asking again in 1 s|still loading its model' "$work/err"; }
    wait_for said || { cat "$work/err"; fail "$how: the chat does not say that it waits"; }
    touch "$work/server/calm"
    wait $waiting
    out_has '^You said: hello$'
    out_has '^rc=0$'
done

# ---- the other program: a request that is damaged is refused, and nothing is sent
: >"$log"
for bytes in 'garbage' 'X\001\000\000\000x' 'U\377\377\377\377' 'U\003\000\000\000ht' 'T\001\000\000\000x' ''; do
    # shellcheck disable=SC2059 # the bytes are a format
    printf "$bytes" | "$QSF_BUILDDIR/qsf-get" --request >"$work/reply" && fail "qsf-get takes $bytes"
    grep -q 'the request is damaged' "$work/reply" || fail "qsf-get says nothing about $bytes"
done
[ ! -s "$log" ] || fail "a damaged request was sent"
"$QSF_BUILDDIR/qsf-get" --request hf:x/y </dev/null 2>"$work/err" && fail "--request takes a model"
err_has 'takes no model'

# ---- keys: never on a command line, in a file of ours, or for another host
printf 'secret-key\n' >"$work/key"
chmod 600 "$work/key"
ask 0 401 --api-key-file "$work/key" --session keyed --log-file "$work/chat.log"
sent '"key": "Bearer secret-key"'
[ ! -s "$work/err" ] || { cat "$work/err"; fail "something is said of a key that only its user can read"; }
chmod 644 "$work/key"
ask 0 401 --api-key-file "$work/key"
err_has 'key: other users can read it: chmod 600'
export OPENAI_API_KEY=secret-key
ask 0 401
sent '"key": "Bearer secret-key"'
printf '/model connect:http://localhost:%s/llama\nhello\n' "${url##*:}" |
    chat_lines 0 --connect "$url/401" --no-save
err_has 'no key is sent to http://localhost:[0-9]+/llama/v1'
grep '/llama/v1/chat' "$log" | grep -q secret && fail "the key went to another host"
grep -rqs secret-key "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$work/chat.log" "$work/out" "$work/err" &&
    fail "the key was written somewhere"
OPENAI_API_KEY=''
printf 'two words\n' >"$work/key"
echo x | chat_lines 2 --connect "$url/llama" --api-key-file "$work/key"
err_has 'expected a key'

# ---- sessions remember the server and the model
ask 0 model --model large --session s1
out_has '^large:70b$'
echo more | chat_lines 0 --session s1 # no option: the session knows
out_has '^large:70b$'
echo more | chat_lines 0 --connect "$url/model" --session s1 # the model that it had there
out_has '^large:70b$'
echo more | chat_lines 0 --connect "$url/model" --model small --session s1
out_has '^small$'
"$chat" --list-sessions >"$work/out"
out_has "^s1.*small at 127.0.0.1:${url##*:}/model"
# the context is sent again, and an answer that was cut is continued where that is possible
: >"$log"
printf '/undo\n/continue\n' | chat_lines 1 --session s1
echo x | chat_lines 0 --connect "$url/llama" --session s2
: >"$log"
echo /continue | chat_lines 0 --session s2
[ "$(cat "$work/out")" = ' and more.' ] || { cat "$work/out"; fail "the continued answer begins with what it continues"; }
sent '"continue_final_message": true, "add_generation_prompt": false'
sent '"role": "assistant", "content": "You said: x"\}\]'
ask 0 llama-repeats --session s6
echo /continue | chat_lines 0 --session s6
[ "$(cat "$work/out")" = ' and more.' ] || { cat "$work/out"; fail "a server repeats what it continues"; }
ask 1 cut --session s3
echo /continue | chat_lines 1 --session s3
err_has 'not known to continue'
grep -q 'half an' "$XDG_DATA_HOME/qsf/sessions/s3.jsonl" || fail "the text of a cut answer is lost"

# ---- messages that got no answer stay in the session, and are not sent with later ones
rm -f "$work/server/calm"
echo 'first' | chat_lines 1 --connect "$url/quota" --session s5
echo 'second' | chat_lines 1 --connect "$url/quota" --session s5
touch "$work/server/calm"
: >"$log"
echo 'third' | chat_lines 0 --connect "$url/quota" --session s5
not_sent 'first|second'
echo 'fourth' | chat_lines 0 --session s5
not_sent 'first|second'
"$chat" --print-session s5 >"$work/out" 2>"$work/err" || fail "--print-session"
for text in first second third fourth; do out_has "^$text\$"; done
[ "$("$chat" --list-sessions '^first$' | cut -f 1)" = s5 ] || fail "a message without an answer is not found"

# ---- everything local: files, branches, summaries, the other engine
printf 'text of a file\n' >"$work/notes.txt"
printf '/read %s\nsee\n/retry\n/as user mine\n/export %s\n/models\n/model large\n/show model\n/stats\n' \
    "$work/notes.txt" "$work/x.md" | chat_lines 0 --connect "$url/vllm" --no-save
sent 'text of a file'
grep -q mine "$work/x.md" || fail "the export lacks a message"
err_has '^small +in use$'
err_has '^large:70b +there, context 8192$'
err_has '^server   vLLM$'
printf 'one\ntwo\nthree\n/compact\n/context\n/forget\n/swap\n' | chat_lines 0 --connect "$url/llama" --session s4
sent 'Summarize|summary'
err_has '^context  [0-9]+ tokens after the last answer$'
grep -q '"kind":"forget"' "$XDG_DATA_HOME/qsf/sessions/s4.jsonl" || fail "nothing was compacted"
"$chat" --replay s4 >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err"; fail "--replay"; }
out_has ' 0 different'
printf 'hello\n' >"$work/script"
chat_lines 0 --connect "$url/llama" --script "$work/script"
out_has '^You said: hello$'
for command in /mem /kv '/quality 0.5' /why '/least 0.1' '/show prompt' '/ctx 100' '/think now'; do
    echo "$command" | chat_lines 1 --connect "$url/llama" --no-save
    [ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "$command: not one sentence"; }
done
printf 'hello\n/model %s\n/max-tokens 3\nhello\n/model connect:%s\nhello again\n' "$stories" "$url/llama" |
    chat_lines 0 --connect "$url/llama" --no-save
out_has 'You said: hello$'
out_has 'You said: helloagain$'

# ---- after a load that failed, settings are not taken for those of the user
printf '/model connect:http://127.0.0.1:1\n/model connect:%s\nhello\n' "$url/other" |
    chat_lines 1 --connect "$url/llama" --no-save
err_has 'not connected'
out_has 'You said: hello'
grep -q 'no effect' "$work/err" && fail "settings are named that were not set"
printf '/set regex a+\n/set only a\n' | chat_lines 0 --connect "$url/vllm" --no-save
err_has '^qsf-chat: regex off$'
grep -q 'regex: no effect' "$work/err" && fail "what is off has no effect"
# ---- a command that is another name of a setting; a value that the server has of its own
printf '/quality 0.5\n/set temperature\nhello\n' | chat_lines 0 --connect "$url/qsf" --no-save
err_has '^temperature -$'
sent '"quality": 0.5'
printf '/quality 0.5\n' | chat_lines 1 --connect "$url/llama" --no-save
err_has '/quality: the model runs on a server'
chat_lines 2 --connect '' </dev/null
err_has '^qsf-chat: connect: expected the URL of a server'
# ---- a model of the server that is called guide is not the built-in guide
: >"$log"
printf 'one\n/model #guide\ntwo\n/model guide\n/model\n' | chat_lines 0 --connect "$url/guide" --session called
[ "$(tr '\n' ' ' <"$work/out")" = 'small guide ' ] || { cat "$work/out"; fail "another model answered"; }
err_has '^qsf-chat: guide is the built-in guide; /model #guide is the model of the server$'
err_has '^guide$' # its path
grep -q '"model": "guide".*"one".*"two"' "$log" || fail "the model of the server did not get the conversation"
: >"$log"
echo three | chat_lines 0 --connect "$url/guide" --model guide --no-save
out_has '^guide$'
echo three | chat_lines 0 --connect "$url/guide" --model '#guide' --no-save
out_has '^guide$'
echo '/model #nothing' | chat_lines 1 --connect "$url/guide" --no-save
err_has '#nothing: the server has no such model'
echo '/model #guid' | chat_lines 1 --connect "$url/guide" --no-save
err_has '2 models of the server have this in their names'

# ---- options and the configuration file
for option in '--ram-budget 100' '--ctx 512' '--threads 2' '--top-logprobs 2' '--offline' \
    '--lora x' '--kv-type q8' '--override-kv a=int:1'; do
    # shellcheck disable=SC2086 # options of words
    echo x | chat_lines 2 --connect "$url/llama" --json $option
    err_has "${option%% *} cannot be combined with --connect"
done
chat_lines 2 --connect "$url/llama" --list-models
err_has '^qsf-chat: --list-models cannot be combined with --connect'
echo x | chat_lines 2 --connect "$url/llama" "$stories"
err_has '^qsf-chat: MODEL cannot be combined'
echo x | chat_lines 2 --plan --connect "$url/llama"
echo x | chat_lines 2 --connect ftp://x
echo x | chat_lines 2 --connect "$url/llama" --timeout 0
mkdir -p "$XDG_CONFIG_HOME/qsf"
printf '[qsf-serve]\napi-key-file = /nonexistent\n[qsf-chat]\nconnect = %s/401\napi-key-file = %s\nram-budget = 100\nquiet = on\n' "$url" "$work/key" \
    >"$XDG_CONFIG_HOME/qsf/config"
echo secret-key >"$work/key"
echo hello | chat_lines 0
out_has '^You said: hello$'
echo hello | chat_lines 0 --max-tokens 3 "$stories" # a MODEL replaces it
out_has .
# sections for models are for those of servers, too, which are known when the server has answered
printf '[qsf-chat]\nconnect = %s/llama\n[model small]\ntop-k = 7\nsystem = Be small.\n[model large*]\ntemperature = 0.3\n[model connect:*/llama/*]\nmin-p = 0.25\n' \
    "$url" >"$XDG_CONFIG_HOME/qsf/config"
: >"$log"
printf 'one\n/model large\ntwo\n/model small\nthree\n' | chat_lines 0 --no-save
[ "$(sed -n 's/.*"model": "\([^"]*\)".*"top_k": \([0-9]*\).*/\1 \2/p' "$log" | tr '\n' ' ')" = 'small 7 small 7 ' ] ||
    { cat "$log"; fail "a section for a model of a server"; }
sent '"large:70b".*"temperature": 0.3'
sent '"role": "system", "content": "Be small."'
[ "$(grep -c '"min_p": 0.25' "$log")" = 3 ] || fail "a section for all models of a server"
finish
