#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The configuration file: what it sets for which model and role, the order of sources, and what is refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat
[ -x "$chat" ] || skip "qsf-chat is not built"
export XDG_CONFIG_HOME="$work/xdg" XDG_DATA_HOME="$work/data" XDG_STATE_HOME="$work/state" HOME="$work/home"
mkdir -p "$XDG_CONFIG_HOME/qsf" "$HOME"
file=$XDG_CONFIG_HOME/qsf/config
has() { grep -qE -- "$1" "$work/out" || { cat "$work/out"; fail "no /$1/ on stdout"; }; }

# Every option of these programs is known to all, or only possible on the command line.
serve=$QSF_BUILDDIR/qsf-serve
[ -x "$serve" ] || serve=
for program in "$chat" "$run" $serve; do
    "$program" --help | sed -n 's/^ \{2,6\}\(-., \)\{0,1\}--\([a-z0-9-]*\).*/\2/p'
done | sort -u >"$work/names"
[ "$(wc -l <"$work/names")" -gt 60 ] || fail "no list of options"
while read -r name; do
    printf '%s = x\n' "$name" >"$work/one"
    for program in "$chat" "$run" $serve; do
        case $("$program" --config "$work/one" --print-config 2>&1 </dev/null) in
        *'unknown option'*)
            fail "$(basename "$program") does not know $name in a file: src/cli/config_options.c lists it" ;;
        esac
    done
done <"$work/names"

# refused LINE_OF_THE_FILE WORDS TEXT: exit 2 with the place, by both programs.
refused() {
    printf '%s\n' "$3" >"$work/bad"
    for program in "$chat" "$run"; do
        expect 2 "^$(basename "$program"): $work/bad:$1: .*$2" "$program" --config "$work/bad" --print-config
        [ ! -s "$work/out" ] || fail "something was printed: $3"
    done
}
refused 2 "unknown option 'temperatur': did you mean temperature" "# c
temperatur = 1"
refused 1 "unknown option 'budget': did you mean ram-budget" 'budget = 3'
refused 1 "temperature takes a number from 0 to 5, not '9'" 'temperature = 9'
refused 1 'unknown section \[foo\]: expected \[model PATTERN\], \[role NAME\], \[theme NAME\] or \[qsf-chat\]' '[foo]'
refused 1 'unknown section \[qsf-get\]' '[qsf-get]'
refused 3 'section \[qsf-serve\] is there already, in line 1' '[qsf-serve]
timeout = 5
[qsf-serve]'
refused 2 "unknown option 'temperatur': did you mean temperature" '[qsf-serve]
temperatur = 5'
refused 1 'help is only possible on the command line' 'help = on'
refused 1 'expected NAME = VALUE' 'something'
refused 1 'there is text after a section' '[model x] temperature = 1'
refused 1 "ignore-eos: expected on or off, not 'yes'" 'ignore-eos = yes'
refused 3 'temperature is set already, in line 1' "temperature = 1

temperature = 2"
# An empty line between lines of a value is part of it, one after them is not.
printf 'system = First,\n\n  ; a comment\n  second.\n\n\n  third.\n\nseed = 5\n' >"$work/one"
expect 0 '' "$chat" --config "$work/one" --print-config
has '^system = "First,\\n\\nsecond\.\\n\\n\\nthird\." ; '
printf 'system = "One "\n\n  "line"\n' >"$work/one"
expect 0 '' "$chat" --config "$work/one" --print-config
has '^system = "?One line"? ; '
refused 1 'a quote is not closed' 'system = "one'
refused 1 'text after the closing quote' 'system = "one" two'
refused 2 'remove the blanks before top-k' "temperature = 1
  top-k = 3"
refused 2 'model is only possible before the first section' "[role x]
model = y"
refused 2 'section \[role x\] is there already, in line 1' "[role x]
[role x]"
refused 1 'no section \[role x\]' 'role = x'
refused 1 'the line has [0-9]+ bytes, at most 198 are possible' "system = $(printf '%300s' x)"
refused 1 'the name of a section has 1 to 49 bytes' "[role $(printf '%60s' x)]"
refused 1 'is not UTF-8' "$(printf 'system = \377')"
refused 1 'the value is empty' 'system ='
refused 2 'section \[theme x\] is there already, in line 1' "[theme x]
[theme x]"
refused 3 'user is set already, in line 2' "[theme x]
user = red
user = blue"
# Only qsf-chat has themes.
refused_theme() {
    printf '%s\n' "$3" >"$work/bad"
    expect 2 "^qsf-chat: $work/bad:$1: .*$2" "$chat" --config "$work/bad" --print-config
    expect 0 '' "$run" --config "$work/bad" --print-config
}
refused_theme 2 "unknown role 'anwser': did you mean answer" "[theme x]
anwser = red"
refused_theme 3 "link: 'pink' is not a color or an attribute: expected a color" "[theme x]
user = red
link = pink"
refused_theme 1 'a theme cannot be called dark' '[theme dark]'
refused_theme 2 "base: expected auto, dark, light, ansi or mono, not 'x'" "[theme x]
base = x"
expect 2 "theme 'nobody': expected auto, dark, light, ansi, mono, or a section \[theme nobody\]" "$chat" --theme nobody
printf 'theme = mine\n[theme mine]\nbase = light\nuser = #ffaf00 on 236 bold ; a comment\n' >"$work/themes"
expect 0 '' "$chat" --config "$work/themes" --print-config
grep -q "^theme = mine ; $work/themes:1\$" "$work/out" || fail 'theme is not printed'
sed -n '/^\[theme mine\]$/,$s/ ; .*//p' "$work/out" >"$work/section"
printf 'base = light\nuser = #ffaf00 on 236 bold\n' | cmp - "$work/section" || fail 'the theme is not printed'
# A section with the name of a program is read by that program alone, and replaces what is before it.
cat >"$work/programs" <<END
timeout = 20
temperature = 0.1
color = always
role = one
[qsf-chat]
timeout = 77
temperature = 0.2
no-color = on
api-key-file = ~/chat.key
role = two
[qsf-serve]
timeout = 5
temperature = 0.3
api-key-file = ~/serve.key
allow-host = a
allow-host = b
[qsf-run]
temperature = 0.4
[role one]
top-k = 1
[role two]
top-k = 2
END
expect 0 '' "$chat" --config "$work/programs" --print-config
has "^timeout = 77 ; $work/programs:6 \[qsf-chat\]\$"
has "^temperature = 0.2 ; $work/programs:7 \[qsf-chat\]\$"
has "^api-key-file = $HOME/chat.key ; "
has '^; color is replaced by no-color of \[qsf-chat\]$'
has '^role = two ; ' && has '^top-k = 2 ; '
expect 0 '' "$chat" --config "$work/programs" --print-config --timeout 9 --temp 0.9
has '^timeout = 9 ; command line$' && has '^temperature = 0.9 ; command line$'
expect 0 '' "$run" --config "$work/programs" --print-config
has '^temperature = 0.4 ; ' && has '^role = one ; ' && has '^top-k = 1 ; '
if [ "$serve" ]; then
    expect 0 '' "$serve" --config "$work/programs" --print-config
    has "^timeout = 5 ; $work/programs:12 \[qsf-serve\]\$"
    has '^temperature = 0.3 ; '
    has "^api-key-file = $HOME/serve.key ; "
    has '^allow-host = a ; ' && has '^allow-host = b ; '
fi
refused_chat() {
    printf '%s\n' "$3" >"$work/bad"
    expect 2 "^qsf-chat: $work/bad:$1: .*$2" "$chat" --config "$work/bad" --print-config
}
refused_chat 2 'listen is not an option of qsf-chat' '[qsf-chat]
listen = 127.0.0.1:0'
refused_chat 4 'temperature takes a number from 0 to 5' '[qsf-run]
temperature = 9
[qsf-chat]
temperature = 9'
refused_chat 2 'timeout must be 1 to 86400 seconds' '[qsf-chat]
timeout = 0'
refused_chat 2 'there is no section \[role x\]' '[qsf-chat]
role = x'
expect 2 'nothing: cannot read: No such file' "$chat" --config "$work/nothing"
expect 2 'not a regular file' "$run" --config /dev/null --print-config
expect 2 'no-config cannot be combined with --config' "$run" --no-config --config "$file"
refuse_color='color = red'
printf '%s\n' "$refuse_color" >"$work/bad"
expect 2 'bad:1: --color must be auto, always or never' "$chat" --config "$work/bad" --print-config
expect 0 '' "$run" --config "$work/bad" --print-config # not its option

# The order: defaults, file, model, role, session, command line.
name=$(basename "$tiny")
cat >"$file" <<END
; a comment
temperature = 0.11
top-k = 11
top-p = 0.11   ; another
min-p = 0.11
seed = 11
system = Be brief,
  and kind. ; a comment
color = never

[model *nothing*]
min-p = 0.9
[model ${name%??????}*]
top-k = 22
top-p = 0.22
[role coder]
top-p = 0.33
repeat-penalty = 1.3
system = "You write C.\nNothing else\; really"
  " at all."
stop = END
stop = "two\nlines"
END
printf '{"kind":"model","text":"%s"}\n{"kind":"set","name":"min-p","text":"0.44"}\n' "$tiny" >"$work/session"
mkdir -p "$XDG_DATA_HOME/qsf/sessions"
cp "$work/session" "$XDG_DATA_HOME/qsf/sessions/own.jsonl"
expect 0 '' "$chat" --print-config "$tiny" --seed 55
has "^temperature = 0.11 ; $file:2\$"
has "^top-k = 22 ; $file:14 \[model "
has "^top-p = 0.22 ; $file:15 "
has "^min-p = 0.11 ; $file:5\$"
has '^seed = 55 ; command line$'
has '^repeat-penalty = 1 ; default$'
has "^color = never ; $file:9\$"
has '^system = "Be brief,\\nand kind\." ; '
expect 0 '' "$chat" --print-config "$tiny" --role coder --top-k 7
has "^top-p = 0.33 ; $file:17 \[role coder\]\$"
has '^top-k = 7 ; command line$'
has '^system = "You write C\.\\nNothing else\\; really at all\."'
has '^stop = END ;' && has '^stop = "two\\nlines" ;'
expect 0 '' "$chat" --print-config --session own
has '^min-p = 0.44 ; session own$'
has "^top-k = 22 ; $file:14 "
expect 0 '' "$run" --print-config -m "$tiny"
has "^top-k = 22 ; $file:14 "
expect 0 '' "$chat" --print-config --no-config
has '^temperature = 0.7 ; default$'
has 'no configuration file'
expect 2 'has no such role; it has: coder' "$run" --role nobody "$tiny" -p x

# What is printed can be read again, with the same result; a file without HOME is none.
expect 0 '' "$chat" --print-config "$tiny" --role coder --system "$(printf 'a ; b\n"%400s"' x)"
has '^role = coder ; command line$' && has '^\[role coder\]$'
sed 's/ ; [^;]*$//; /^; /d' "$work/out" | sort >"$work/first"
cp "$work/out" "$work/printed"
expect 0 '' "$chat" --config "$work/printed" --print-config
sed 's/ ; [^;]*$//; /^; /d' "$work/out" | sort | diff - "$work/first" ||
    fail "the printed file means something else"
printf '[qsf-chat]\nrole = r\nconnect = http://127.0.0.1:1\n[role r]\ntop-k = 3\ntemperature = 0.2\n' >"$work/one"
expect 0 '' "$chat" --config "$work/one" --print-config "$tiny" --temp 0.9
has '^; connect is replaced by MODEL$'
cp "$work/out" "$work/printed"
expect 0 '' "$chat" --config "$work/printed" --print-config
has '^role = r ; ' && has '^temperature = 0.9 ; ' && has '^top-k = 3 ; .*\[role r\]$'
if grep -q '^connect' "$work/out"; then fail "a server that is not used is printed"; fi
expect 0 '' env -u HOME -u XDG_CONFIG_HOME "$chat" --print-config
# Lists: in one line or in several, with \, for a comma.
printf '%s\n' 'ban = a\,b,c' 'ban = d,e\,f' >"$work/one"
expect 0 '' "$chat" --config "$work/one" --print-config
has '^ban = a\\,b,c,d,e\\,f ; '

# It takes effect: the same tokens as with the same options; modes ignore options that they do not have.
printf 'temperature = 0\nmax-tokens = 5\nshow-thinking = on\nstop = zzzz\nignore-eos = on\n' >"$file"
expect 0 '' "$run" --no-config "$tiny" -p hello --temperature 0 -n 5 --ignore-eos
cp "$work/out" "$work/want"
expect 0 '' "$run" "$tiny" -p hello
cmp "$work/out" "$work/want" || fail "qsf-run does not use the file"
echo hello | "$chat" "$tiny" >"$work/chat" 2>"$work/err" || { cat "$work/err"; fail "the chat fails"; }
cmp "$work/chat" "$work/want" || fail "qsf-chat does not use the file"
expect 0 '' "$run" --tokenize "$tiny"
expect 0 '' "$run" --plan "$tiny"
printf 'quality = 0.5\n' >"$file"
expect 0 '' "$run" "$tiny" -p hello -n 2 --eviction-policy sliding

# Values of the file are not saved in sessions, and do not replace theirs; a role is, and survives the file.
cat >"$file" <<END
temperature = 0.21
max-tokens = 3
[role coder]
top-k = 5
system = Write C.
stop = END
END
printf '/temp 0.4\nhello\n/role\n/role coder\n/set top-k\n' |
    "$chat" "$tiny" --session roles >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "the chat fails"; }
grep -q 'role coder: system prompt, stop strings, top-k 5' "$work/err" ||
    { cat "$work/err"; fail "/role said nothing"; }
if grep -q 'max-tokens' "$XDG_DATA_HOME/qsf/sessions/roles.jsonl"; then
    fail "the file is saved in the session"; fi
printf '/set temperature\n/set top-k\n/set max-tokens\n/system\n/stop\n' >"$work/ask"
"$chat" --session roles <"$work/ask" >"$work/out" 2>"$work/err"
for line in '^temperature 0.4' '^top-k 5' '^max-tokens 3' '^Write C\.$' '^END$'; do
    grep -q "$line" "$work/err" || { cat "$work/err"; fail "no /$line/ in the session"; }
done
"$chat" --no-config --session roles <"$work/ask" >"$work/out" 2>"$work/err"
for line in '^temperature 0.4' '^top-k 5' '^max-tokens 0' '^Write C\.$' '^END$'; do
    grep -q "$line" "$work/err" || { cat "$work/err"; fail "no /$line/ without the file"; }
done
# A role whose settings exclude each other changes nothing.
printf '[role odd]\nquality = 0.5\neviction-policy = sliding\nsystem = Odd.\n' >"$file"
printf '/role odd\n/set quality\n/system\n' | "$chat" "$tiny" >"$work/out" 2>"$work/err"
if grep -qE '^quality 0.5|^Odd' "$work/err" || ! grep -q '/role odd: ' "$work/err"; then
    cat "$work/err"
    fail "a half of a role applies"
fi
# Another model has its own section, and gives it back.
other=$work/other.gguf
cp "$tiny" "$other"
printf 'top-k = 2\n[model other*]\ntop-k = 3\nmin-p = 0.3\n' >"$file"
printf '/set top-k\n/model %s\n/set top-k\n/set min-p\n/model %s\n/set top-k\n/set min-p\n' "$other" "$tiny" |
    "$chat" "$tiny" >"$work/out" 2>"$work/err"
grep -E '^(top-k|min-p) [0-9.]+$' "$work/err" | tr '\n' ' ' >"$work/got"
[ "$(cat "$work/got")" = 'top-k 2 top-k 3 min-p 0.3 top-k 2 min-p 0 ' ] ||
    { cat "$work/err"; fail "the sections of models: $(cat "$work/got")"; }
finish
