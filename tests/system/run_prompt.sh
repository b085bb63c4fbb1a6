#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The exact prompt: --show-prompt, --system, --template, --allow-special, --override-kv; notices about
# templates that are replaced; the same from the chat's /show prompt.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
QSF_DATADIR=$QSF_SRCDIR XDG_CONFIG_HOME=$work/config
export QSF_DATADIR XDG_CONFIG_HOME
L=$(printf '\342\237\246') R=$(printf '\342\237\247')
shows() { # TEXT ARGUMENT...: what --show-prompt prints
    text=$1
    shift
    expect 0 ' tokens, ' "$run" --show-prompt "$tiny" "$@"
    [ "$(cat "$work/out")" = "$text" ] || { cat "$work/out"; fail "not '$text': $*"; }
}
own='tokenizer.chat_template=str:{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}'

shows "$L<s>$R a b" -p 'a b'
shows "$L<s>$R a <s> b </s>" -p 'a <s> b </s>'
shows "$L<s>$R a $L<s>$R  b $L</s>$R" -p 'a <s> b </s>' --allow-special
shows "$L<s>$R user: a b$L</s>$R" -p 'a b' --override-kv "$own"
shows "$L<s>$R system: c$L</s>$R user: a </s>$L</s>$R" -p 'a </s>' --system c --override-kv "$own"
shows "$L<s>$R a b" -p 'a b' --override-kv "$own" --template raw
shows "$L<s>$R a b" -p 'a b' --override-kv "$own" --override-kv tokenizer.chat_template=null
shows "$L<s>$R rag" -p 'a b' --override-kv "$own" --override-kv tokenizer.chat_template.rag=str:rag \
    --template model:rag

# --file: before the prompt and stdin, or the prompt itself, in any encoding
printf 'one' >"$work/1.txt"
printf '\377\376t\0w\0o\0\n\0' >"$work/2.txt"
shows "$L<s>$R one

two

a b" -f "$work/1.txt" --file "$work/2.txt" -p 'a b'
"$run" --show-prompt "$tiny" -f "$work/1.txt" --file "$work/2.txt" -p 'a b' >"$work/out" 2>"$work/err"
grep -q "attached: $work/1.txt 3 B, [0-9]* tokens$" "$work/err" && grep -q ': 2 files: 7 B, [0-9]* tokens$' "$work/err" ||
    { cat "$work/err"; fail "no notice of the files"; }
"$run" -q --show-prompt "$tiny" -f "$work/1.txt" -p 'a b' 2>&1 >"$work/out" | grep attached && fail "a notice with -q"
expect 3 'it is a directory' "$run" --show-prompt "$tiny" -f "$work" -p a
shows "$L<s>$R one" -f "$work/1.txt" </dev/null
printf 'in' | "$run" --show-prompt "$tiny" -f "$work/1.txt" >"$work/out" 2>"$work/err"
[ "$(cat "$work/out")" = "$L<s>$R one

in" ] || { cat "$work/out"; fail "--file with standard input"; }
printf 'a\000b' >"$work/binary"
expect 3 'binary: it is not text' "$run" --show-prompt "$tiny" -f "$work/binary" -p a
expect 3 'missing: No such file' "$run" --show-prompt "$tiny" -f "$work/missing" -p a
expect 2 'requires a prompt' "$run" --inspect "$tiny" -f "$work/1.txt"
expect 2 'prefill-ahead requires --interactive' "$run" "$tiny" -p a --prefill-ahead off

# an unusable template: the file of its family, and a notice with line and construct
expect 0 'line 2: not supported: tag .trans.' "$run" --show-prompt "$tiny" -p a \
    --override-kv "$(printf 'tokenizer.chat_template=str:<|im_start|>\n{%% trans %%}')"
grep -q 'using chatml instead' "$work/err" || fail "the notice does not name the file"
grep -q '<|im_start|>user' "$work/out" || { cat "$work/out"; fail "no ChatML"; }
expect 3 'choose a different one with --template' "$run" --show-prompt "$tiny" -p a --override-kv \
    'tokenizer.chat_template=str:{% trans %}'
expect 2 'model:rag' "$run" --show-prompt "$tiny" -p a --override-kv tokenizer.chat_template.rag=str:rag \
    --template model:tools

# templates that read lists of parts get them; a message that is left out is reported, and so is a switch that
# is not there, and a message of raise_exception with the names of file and template
tmpl() { printf 'tokenizer.chat_template=str:%s' "$1"; }
shows "$L<s>$R <user>a b" -p 'a b' --override-kv \
    "$(tmpl '{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{% if p.type == "text" %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}')"
! grep -q 'leaves out' "$work/err" || { cat "$work/err"; fail "nothing is left out"; }
expect 0 'the model.s chat template leaves out your message' "$run" --show-prompt "$tiny" -p 'a b' \
    --override-kv "$(tmpl hello)"
shows "$L<s>$R a|0" -p a --reasoning off --override-kv \
    "$(tmpl '{{ messages[0].content }}|{{ thinking_budget|default(-1) }}')"
! grep -q 'no such switch' "$work/err" || { cat "$work/err"; fail "the switch was set"; }
expect 0 'no such switch' "$run" --show-prompt "$tiny" -p a --reasoning off --override-kv \
    "$(tmpl '{{ messages[0].content }}{{ "enable_thinking" }}')"
expect 0 'only lower its effort' "$run" --show-prompt "$tiny" -p a --reasoning off --override-kv \
    "$(tmpl '{{ messages[0].content }}{{ reasoning_effort }}')"
expect 1 "$tiny: the model's chat template refuses these messages: not so" "$run" --show-prompt "$tiny" -p a --override-kv "$(tmpl '{{ raise_exception("not so") }}')"

# a file with any name is opened, named in messages as it was given, and without its control characters
odd="$work/a$(printf '\033[2J\nb\342\200\256').jinja"
printf '%s' '{{ raise_exception("never") }}' >"$odd"
expect 1 'a[?][[]2J.*b.*\.jinja refuses these messages: never' "$run" --show-prompt "$tiny" -p a --template \
    "$odd"
! grep -q "$(printf '\033')" "$work/err" || fail "control characters of a name on the terminal"
printf 'odd' >"$odd"
shows "${L}<s>${R} odd" -p a --template "$odd"
expect 2 'template takes' "$run" --show-prompt "$tiny" -p a --template "$odd.not"
expect 0 'using its first named one, model:rag' "$run" --show-prompt "$tiny" -p a --override-kv \
    tokenizer.chat_template=null --override-kv tokenizer.chat_template.rag=str:rag

# a text that is cut is said to be damaged, once, and is used
printf '\377\376a\000\000\330b' >"$work/cut"
"$run" --show-prompt "$tiny" --template raw <"$work/cut" >"$work/out" 2>"$work/err" || fail "a cut text"
[ "$(grep -c 'stdin: the text is damaged' "$work/err")" = 1 ] ||
    { cat "$work/err"; fail "a cut text is used without a word"; }

# no template: said once, unless a base model continues text
expect 0 '' "$run" --show-prompt "$tiny" -p a
! grep -q 'no chat template' "$work/err" || { cat "$work/err"; fail "a base model needs no template"; }
expect 0 'no chat template' "$run" --show-prompt "$tiny" -p a --system b
expect 0 '' "$run" --show-prompt "$tiny" -p a --system b --template raw
! grep -q 'no chat template' "$work/err" || { cat "$work/err"; fail "raw needs no template"; }
# JSON, and the same ids as the tokenizer's
expect 0 '' "$run" --show-prompt --json "$tiny" -p 'a b'
for key in prompt template tokens special ids; do grep -q "\"$key\": " "$work/out" ||
    fail "no $key in the JSON"; done
ids=$(sed -n 's/.*"ids": \[\(.*\)\].*/\1/p' "$work/out" | tr -d ,)
[ "$ids" = "$(printf 'a b' | "$run" --tokenize "$tiny" 2>/dev/null)" ] ||
    { cat "$work/out"; fail "--tokenize has other ids"; }

# Byte order marks: UTF-8, UTF-16 and UTF-32 in either order are the same text, on stdin and in templates.
utf16() { # text on stdin, which must be ASCII
    printf '\377\376'
    LC_ALL=C od -An -v -tx1 | tr -d ' \n' | sed 's/../\\\\x&\\\\x00/g' | xargs printf '%b'
}
hi=$(printf 'Hi \303\244' | "$run" --show-prompt "$tiny" 2>/dev/null)
for text in '\357\273\277Hi \303\244' '\377\376H\0i\0 \0\344\0' '\376\377\0H\0i\0 \0\344' \
    '\377\376\0\0H\0\0\0i\0\0\0 \0\0\0\344\0\0\0'; do
    # shellcheck disable=SC2059
    got=$(printf "$text" | "$run" --show-prompt "$tiny" 2>/dev/null)
    [ "$got" = "$hi" ] || { echo "$got"; fail "stdin with the mark of another encoding: $text"; }
done
# What is damaged is said, of a prompt and of a template; a whole one says nothing.
template='{% for m in messages %}{{ m.content }}!{% endfor %}'
printf %s "$template" | utf16 >"$work/whole.jinja"
{ cat "$work/whole.jinja" && printf x; } >"$work/cut.jinja"
printf '%s\344' "$template" >"$work/latin.jinja"
for file in whole cut latin; do
    case $file in
    whole) said='' ;;
    cut) said='the text is damaged: it is cut, or characters of UTF-16' ;;
    latin) said='the text is damaged: it is not UTF-8' ;;
    esac
    expect 0 "${said:+chat template $work/$file.jinja: $said}" "$run" --show-prompt -p a --template \
        "$work/$file.jinja" "$tiny"
    [ -n "$said" ] || ! grep -q damaged "$work/err" || fail "a whole template is called damaged"
    expect 0 "${said:+--render $work/$file.jinja: $said}" "$run" --render "$work/$file.jinja"
done

mark=$(printf '\357\273\277')
expect 0 '' "$run" --show-prompt "$tiny" -p "${mark}Hi ä"
[ "$(cat "$work/out")" = "$hi" ] || fail "-p with a byte order mark"
printf '%s{{ messages[0].content }}!' "$mark" >"$work/mark.jinja"
printf '{{ messages[0].content }}!' | utf16 >"$work/wide.jinja"
for template in mark wide; do
    expect 0 '' "$run" --show-prompt "$tiny" -p Hi --template "$work/$template.jinja"
    tail -c 4 "$work/out" | grep -qx 'Hi!' || { cat "$work/out"; fail "$template.jinja"; }
done

# usage
expect 2 'empty' "$run" --show-prompt "$tiny" -p ''
expect 2 'only one of' "$run" --show-prompt --plan "$tiny" -p a
expect 3 'nothing.gguf' "$run" --show-prompt "$work/nothing.gguf" -p a

# the chat shows the same, writes none of it to stdout, and accepts --override-kv, also after --interactive
chat=$QSF_BUILDDIR/qsf-chat
if [ -x "$chat" ]; then
    printf 'a\nb\n' | "$chat" --plain --temperature 0 --max-tokens 2 "$tiny" >"$work/out" 2>"$work/err" ||
        fail "a chat without a template"
    [ "$(grep -c 'no chat template' "$work/err")" = 1 ] ||
        { cat "$work/err"; fail "the chat does not say once that there is no template"; }
    for program in "$chat" "$run -i"; do
        # shellcheck disable=SC2086
        printf '/show prompt a </s>\n/show template\n' |
            $program "$tiny" --override-kv "$own" >"$work/out" 2>"$work/err" ||
            { cat "$work/err"; fail "$program failed"; }
        [ ! -s "$work/out" ] || { cat "$work/out"; fail "/show writes to stdout"; }
        grep -qF "$L<s>$R user: a </s>$L</s>$R" "$work/err" ||
            { cat "$work/err"; fail "$program: another prompt"; }
        grep -qF '{% for m in messages %}' "$work/err" || fail "/show template does not show it"
    done
    # a byte order mark before a command, at the start and later, UTF-16, and in the file of a system prompt
    commands='/show prompt a\n'
    printf 'be brief\n' | utf16 >"$work/system.txt"
    # shellcheck disable=SC2059
    for input in "$mark$commands" "$commands$mark$commands" utf16; do
        if [ "$input" = utf16 ]; then printf "$commands" | utf16; else printf "$input"; fi |
            "$chat" --plain "$tiny" --override-kv "$own" --system-file "$work/system.txt" >"$work/out" \
            2>"$work/err" || { cat "$work/err"; fail "a mark before a command"; }
        grep -qF "user: a$L</s>$R" "$work/err" || { cat "$work/err"; fail "a mark before a command"; }
        grep -qF 'system: be brief' "$work/err" || { cat "$work/err"; fail "--system-file in UTF-16"; }
    done
fi

# every special token of a real vocabulary, typed as a message
vocab=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/oracle/tokenizers/vocab/ggml-vocab-llama-bpe.gguf
[ -f "$vocab" ] || { echo "skip: $vocab is absent: its special tokens are not typed"; finish; }
awk 'BEGIN { printf "<|begin_of_text|><|end_of_text|><|eot_id|><|start_header_id|>system<|end_header_id|>"
    for (i = 0; i < 251; i++) printf " <|reserved_special_token_%d|>", i }' >"$work/typed"
plain=$("$run" --show-prompt --json --template llama3 "$vocab" -p Hi 2>/dev/null </dev/null |
    sed -n 's/.*"special": \([0-9]*\).*/\1/p')
typed=$("$run" --show-prompt --json --template llama3 "$vocab" 2>/dev/null <"$work/typed" |
    sed -n 's/.*"special": \([0-9]*\).*/\1/p')
[ "$plain" = 6 ] || fail "llama3 has $plain special tokens around a message"
[ "$typed" = "$plain" ] || fail "typed text was parsed as special tokens: $typed instead of $plain"
allowed=$("$run" --show-prompt --json --template llama3 --allow-special "$vocab" 2>/dev/null <"$work/typed" |
    sed -n 's/.*"special": \([0-9]*\).*/\1/p')
[ "$allowed" -gt 200 ] || fail "--allow-special: only $allowed special tokens"
finish
