#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Reasoning models: reasoning is omitted from pipes, folded on the screen, stored separately in files; stop
# strings.
. "$(dirname "$0")/lib.sh"
run=$QSF_BUILDDIR/qsf-run
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
turns='{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}'
asks='{% if add_generation_prompt %}<|assistant|>{% endif %}'

[ -x "$mktiny" ] || skip "mktiny is not built"
"$mktiny" "$work/closed.gguf" "script=<think> <0x0A> deep _thought </think> Hello _world <end> never" \
    "chat_template=$turns$asks" || fail "mktiny"
"$mktiny" "$work/open.gguf" "script=deep _thought </think> Hello _world +<think>" \
    "chat_template=$turns${asks%\{%*}<think>{% endif %}" || fail "mktiny"
thought='<think>
deep thought</think>'

# ---- qsf-run
for model in closed open; do
    "$run" "$work/$model.gguf" -p Hi </dev/null >"$work/out" 2>"$work/err" || fail "$model: exit $?"
    [ "$(cat "$work/out")" = "Hello world" ] ||
        { cat "$work/out"; fail "$model: the answer is not alone on stdout"; }
    "$run" "$work/$model.gguf" -p Hi --json </dev/null >"$work/out" 2>"$work/err" ||
        fail "$model --json: exit $?"
    out_has '"text": "Hello world".*"reasoning": "deep thought", "reasoning_tokens": [35]'
    "$run" "$work/$model.gguf" -p Hi --stop deep --stop wor </dev/null >"$work/out" 2>"$work/err"
    [ "$(cat "$work/out")" = "Hello " ] || { cat "$work/out"; fail "$model: --stop"; }
    "$run" "$work/$model.gguf" -p Hi -n 2 </dev/null >"$work/out" 2>"$work/err" || fail "$model -n 2: exit $?"
    [ -s "$work/out" ] && fail "$model: reasoning without an answer reached stdout"
    err_has 'still thinking after 2 tokens'
done
"$run" "$work/closed.gguf" -p Hi --show-thinking </dev/null >"$work/out" 2>"$work/err"
[ "$(cat "$work/out")" = "${thought}Hello world" ] || { cat "$work/out"; fail "--show-thinking"; }
"$run" --tokenize --show-thinking "$work/open.gguf" </dev/null >/dev/null 2>"$work/err" &&
    fail "--show-thinking without a prompt"
err_has 'show-thinking requires a prompt'

# ---- a block after the answer has begun is reasoning as well
"$mktiny" "$work/again.gguf" "script=<think> plan </think> <ans> <think> secret </think> <wer> <end>" \
    "chat_template=$turns$asks" || fail "mktiny"
"$run" "$work/again.gguf" -p Hi --json </dev/null >"$work/out" 2>"$work/err" || fail "two blocks: exit $?"
out_has '"text": "<ans><wer>".*"reasoning": "plan\\n\\nsecret", "reasoning_tokens": 6'

# ---- switching reasoning on and off: through variables of the template, with a notice if it has none
"$mktiny" "$work/switch.gguf" "script=Hello" \
    "chat_template=$turns{% if enable_thinking is defined %}[{{ enable_thinking }}]{% endif %}{% if reasoning_effort is defined %}[{{ reasoning_effort }}]{% endif %}" || fail "mktiny"
for is in 'auto:' 'on:[True]' 'off:[False]' 'high:[True][high]'; do
    "$run" "$work/switch.gguf" -p Hi --show-prompt --reasoning "${is%%:*}" </dev/null >"$work/out" \
        2>"$work/err" || fail "--reasoning $is: exit $?"
    sed -n 1p "$work/out" | tr -d '⟦⟧' | grep -qF "Hi<end>${is#*:}" ||
        { cat "$work/out"; fail "--reasoning $is"; }
    grep -q 'no such switch' "$work/err" && fail "--reasoning $is: a needless notice"
done
"$mktiny" "$work/talk.gguf" "script=Hello" "chat_template=You enjoy thinking {{ bos_token }}$turns$asks" ||
    fail "mktiny"
for model in closed talk; do
    "$run" "$work/$model.gguf" -p Hi --reasoning off </dev/null >"$work/out" 2>"$work/err" ||
        fail "$model --reasoning without a switch: exit $?"
    err_has 'no such switch'
done
"$run" "$work/closed.gguf" -p Hi --reasoning maybe </dev/null >"$work/out" 2>"$work/err" &&
    fail "--reasoning maybe"
err_has 'reasoning takes auto, on, off, low, medium or high'
printf '/set reasoning off\nHi\n/retry\n' | chat_lines 0 "$work/closed.gguf"
[ "$(grep -c 'no such switch' "$work/err")" = 1 ] ||
    { cat "$work/err"; fail "the chat does not report exactly once that the template has no switch"; }

# ---- reasoning that is cut
"$mktiny" "$work/long.gguf" "script=<think> one _two _three _four </think> Hello _world" \
    "chat_template=$turns$asks" || fail "mktiny"
"$run" "$work/long.gguf" -p Hi --reasoning-budget 3 --json </dev/null >"$work/out" 2>"$work/err" ||
    fail "--reasoning-budget: exit $?"
out_has '"text": "Hello world".*"reasoning": "one two", "reasoning_tokens": 4, "reasoning_cut": true, "hidden_tokens": 0'
err_has 'thinking was cut after 3 tokens'
"$run" "$work/long.gguf" -p Hi --reasoning-budget 0 --show-thinking </dev/null >"$work/out" 2>"$work/err" ||
    fail "--reasoning-budget 0: exit $?"
[ "$(cat "$work/out")" = '<think></think>Hello world' ] || { cat "$work/out"; fail "--reasoning-budget 0"; }
"$run" "$work/long.gguf" -p Hi --reasoning-budget -2 </dev/null >"$work/out" 2>"$work/err" &&
    fail "--reasoning-budget -2"
err_has 'reasoning-budget takes a whole number from 0 to 1000000000, or -1'
printf '/think 2\nHi\n/think -1\n/retry\n/think now\n' | chat_lines 1 "$work/long.gguf" --show-thinking
[ "$(cat "$work/out")" = '<think>one</think>Hello world
<think>one two three four</think>Hello world' ] || { cat "$work/out"; fail "/think N"; }
err_has 'thinking was cut after 2 tokens'
err_has '/think now: no answer is thinking'

# ---- messages with channels, whose <|end|> does not end the turn; the template names no tag
heads='!<|channel|> analysis !<|message|> deep _thought !<|end|> !<|start|> assistant !<|channel|> final !<|message|>'
message='{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}'
"$mktiny" "$work/channels.gguf" "script=$heads Hello _world !<|return|> +!<|call|>" \
    "chat_template=$message{% if add_generation_prompt %}<|start|>assistant{% endif %}" || fail "mktiny"
"$mktiny" "$work/bare.gguf" "script=$heads Hello _world !<|return|> +!<|call|>" || fail "mktiny"
for model in channels bare; do
    "$run" "$work/$model.gguf" -p Hi --json </dev/null >"$work/out" 2>"$work/err" || fail "$model: exit $?"
    out_has '"text": "Hello world".*"stop": "eos".*"reasoning": "deep thought"'
    "$run" "$work/$model.gguf" -p Hi --reasoning off </dev/null >"$work/out" 2>"$work/err" ||
        fail "$model: exit $?"
    [ "$(cat "$work/out")" = "Hello world" ] ||
        { cat "$work/out"; fail "$model: the answer is not alone on stdout"; }
done
"$run" "$work/channels.gguf" -p Hi --show-thinking </dev/null >"$work/out" 2>"$work/err"
[ "$(cat "$work/out")" = '<|channel|>analysis<|message|>deep thought

Hello world' ] || { cat "$work/out"; fail "channels --show-thinking"; }
# A cut in a head is neither an answer nor reasoning. Each answer of the chat is one line, with text or not.
for n in 1 2 6 8; do
    "$run" "$work/channels.gguf" -p Hi -n $n </dev/null >"$work/out" 2>"$work/err" ||
        fail "channels -n $n: exit $?"
    [ -s "$work/out" ] && fail "a head reached stdout"
    err_has "the answer has no text yet after $n tokens?"
    printf '/set max-tokens %s\nHi\n' $n | chat_lines 0 "$work/channels.gguf"
    err_has 'no text yet'
    printf '\n' | cmp -s - "$work/out" ||
        { od -c "$work/out"; fail "an answer without text is not one newline"; }
done
"$run" "$work/channels.gguf" -p Hi -n 4 </dev/null >"$work/out" 2>"$work/err" || fail "channels -n 4: exit $?"
err_has 'still thinking after 4 tokens'
"$mktiny" "$work/call.gguf" \
    'script=!<|channel|> commentary _to=functions.f !<|constrain|> json !<|message|> [1] !<|call|> +!<|return|> +!<|start|> +!<|end|>' "chat_template=$message" || fail "mktiny"
"$run" "$work/call.gguf" -p Hi </dev/null >"$work/out" 2>"$work/err" || fail "call: exit $?"
[ "$(cat "$work/out")" = '[tool call to=functions.f] [1]' ] || { cat "$work/out"; fail "a tool call"; }
printf 'Hi\n' | chat_lines 0 "$work/call.gguf" --session call
printf '/show prompt More\n' | chat_lines 0 --session call
tr -d '⟦⟧ ' <"$work/err" |
    grep -qF '<|start|>assistant<|channel|>commentaryto=functions.f<|message|>[1]<|call|><|start|>user' ||
    { cat "$work/err"; fail "the call of a resumed session"; }
"$run" "$work/channels.gguf" -p Hi --template gpt-oss --show-prompt </dev/null >"$work/out" 2>"$work/err" ||
    fail "gpt-oss: exit $?"
tr -d '⟦⟧ ' <"$work/out" | grep -q '<|message|>Hi<|end|><|start|>assistant$' ||
    { cat "$work/out"; fail "--template gpt-oss"; }

# ---- an answer cut after tokens that are not shown: it stays, and continues with them, after a resume too
"$mktiny" "$work/hidden.gguf" "script=!<|START-RESPONSE|> <One> <Two>" "chat_template=$turns$asks" ||
    fail "mktiny"
printf '/set max-tokens 1\nHi\n' | chat_lines 0 "$work/hidden.gguf" --session hidden
err_has 'no text yet'
printf '/show prompt\n/continue\n' | chat_lines 0 --session hidden
err_has 'Hi<end><|assistant|>⟦<|START-RESPONSE|>⟧$'
printf '/show prompt\n/set max-tokens 0\n/continue\n/show prompt More\n' | chat_lines 0 --session hidden
[ "$(cat "$work/out")" = '<Two>' ] || { cat "$work/out"; fail "a resumed answer with hidden tokens"; }
err_has '⟦<|START-RESPONSE|>⟧⟦<One>⟧$'
err_has 'Hi<end>.*<Two>.*<end>.*More<end>'
printf '/set max-tokens 1\nFirst\n/show prompt Second\n' | chat_lines 0 "$work/closed.gguf"
err_has 'First⟦<end>.*Second⟦<end>'

# ---- lines
printf 'Hi\n/think show\n/retry\n/stop \\n\n/stop wor\n/think hide\n/retry\n' |
    chat_lines 0 "$work/closed.gguf" --session lines
[ "$(cat "$work/out")" = "Hello world
${thought}Hello world
Hello " ] || { cat "$work/out"; fail "lines"; }
grep -q '"text":"Hello world",.*"reasoning":"<think>\\ndeep thought</think>"' \
    "$XDG_DATA_HOME/qsf/sessions/lines.jsonl" ||
    fail "the session does not store the reasoning separately"
printf '/stop\n' | chat_lines 0 --session lines
grep -qx '\\n' "$work/err" && grep -qx wor "$work/err" ||
    { cat "$work/err"; fail "the session does not restore its stop strings"; }
printf '/stop off\n/stop a\n' | chat_lines 0 --session lines
printf '/stop\n' | chat_lines 0 --session lines --stop b
grep -qx b "$work/err" || { cat "$work/err"; fail "a stop string from the command line does not count"; }
grep -qx '\\n\|wor\|a' "$work/err" &&
    { cat "$work/err"; fail "a stop string from the command line does not replace those of the session"; }
printf '/stop\n' | chat_lines 0 --session lines
grep -qx a "$work/err" && ! grep -qx b "$work/err" ||
    { cat "$work/err"; fail "a stop string from the command line is saved in a session that exists"; }
echo Hi | chat_lines 0 "$work/open.gguf" --stop ' '
[ "$(cat "$work/out")" = Hello ] || { cat "$work/out"; fail "qsf-chat --stop"; }
echo Hi | chat_lines 2 "$work/open.gguf" --stop ''
err_has '--stop: the stop string is empty'

# ---- the screen
need_tmux
start 80 24 "'$chat' '$work/closed.gguf' --session screen"
see 'is ready'
keys 'Hi' Enter
see '^ ▸ thought, 5 tok'
see '^ Hello world'
see '\^T thinking'
screen | grep -q 'deep thought' && fail "the reasoning is not folded"
keys C-t
see '^ ▾ thought'
see '^   deep thought'
keys '/think hide' Enter
see '^ ▸ thought'
not_see 'deep thought'
keys C-d
see 'rc=0'
# After resuming, it is still there.
start 80 24 "'$chat' '$work/closed.gguf' --session screen --show-thinking"
see '^   deep thought'
see '^ Hello world'
keys C-d
see 'rc=0'
start 80 24 "'$chat' '$work/channels.gguf' --no-save"
see 'is ready'
keys 'Hi' Enter
see '^ ▸ thought, 11 tok'
see '^ Hello world'
keys C-t
see '^   deep thought'
screen | grep -q 'channel\|analysis' && fail "the head of a message is shown"
keys C-d
see 'rc=0'
finish
