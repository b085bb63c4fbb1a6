#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# /source: lines of a file as if they were typed; --log-file: what happened, without texts.
. "$(dirname "$0")/lib.sh"
run=$QSF_BUILDDIR/qsf-run
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/model.gguf" "script=Hello _world" \
    "chat_template={% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}" ||
    skip "mktiny is not built"

# ---- messages, commands, a message of several lines, a file in a file; and then the input again
cat >"$work/first" <<EOS
secret one
/set seed 5
/source $work/second

"""two
lines"""
/export $work/out.md
EOS
printf '/budget 300\n\357\273\277from the second' >"$work/second"
printf '/source %s\nlast\n' "$work/first" | chat_lines 0 "$work/model.gguf" --log-file "$work/log"
[ "$(cat "$work/out")" = "Hello world
Hello world
Hello world
Hello world" ] || { cat "$work/out" "$work/err"; fail "/source: answers"; }
for text in 'secret one' 'from the second' two lines; do
    grep -q "^$text\$" "$work/out.md" || { cat "$work/out.md"; fail "/source: no message \"$text\""; }
done
grep -q last "$work/out.md" && fail "/source: a later line was first"
err_has 'ram-budget 300M'

# ---- errors name file and line, also of a nested file; the rest is read; a circle ends
cat >"$work/wrong" <<EOS
Hi
/nonsense
/source $work/missing
/source $work/inner
Hi
EOS
printf '/source %s\n/set top-k -1\n/source %s\n' "$work/wrong" "$work/inner" >"$work/inner"
printf '/source %s\n' "$work/wrong" | chat_lines 1 "$work/model.gguf"
err_has "^qsf-chat: $work/wrong:2: /nonsense: no such command"
err_has "^qsf-chat: $work/wrong:3: /source: $work/missing: No such file"
err_has "^qsf-chat: $work/inner:1: /source: $work/wrong: it is being read already"
err_has "^qsf-chat: $work/inner:2: .*top-k"
[ "$(grep -c 'Hello world' "$work/out")" = 2 ] || { cat "$work/out"; fail "the rest was not read"; }
for i in 1 2 3 4 5 6 7 8 9; do printf '/source %s\n' "$work/deep$((i + 1))" >"$work/deep$i"; done
printf '/source %s\n' "$work/deep1" | chat_lines 1 "$work/model.gguf"
err_has "deep8:1: /source: $work/deep9: more than 8 files"
printf 'a\000b' >"$work/binary"
printf '/source %s\n/source %s\n/source\n' "$work/binary" "$work" | chat_lines 1 "$work/model.gguf"
err_has 'binary: it is not text'
err_has 'it is a directory'
err_has '/source expects a file'

# ---- the log: appended by both programs, without texts, never a reason to fail
grep -qE 'secret|Hello|from the second' "$work/log" && { cat "$work/log"; fail "the log has texts"; }
"$run" "$work/model.gguf" -q -p "secret two" --log-file "$work/log" </dev/null >"$work/out" 2>"$work/err" ||
    fail "qsf-run --log-file: exit $?"
"$run" "$work/no	such
model.gguf" -p Hi --log-file "$work/log" </dev/null >"$work/out" 2>"$work/err"
[ $? = 3 ] || fail "a model that does not exist"
grep -qE 'secret two' "$work/log" && { cat "$work/log"; fail "the log has texts of qsf-run"; }
LC_ALL=C grep -q '[[:cntrl:]]' "$work/log" && fail "control characters in the log"
stamp='^20[0-9-]{8}T[0-9:.]{12}Z qsf'
for line in 'chat\[[0-9]+\] start ' 'chat\[[0-9]+\] load .*model.gguf$' 'chat.* loaded .* in [0-9.]+ s' \
    'chat.* request answer, message 1$' 'chat.* answer prompt [0-9]+ tokens .*stop eos; seed ' \
    'chat.* notice ram-budget 300M' 'chat.* end exit status 0' 'run.* answer prompt [0-9]+ .*stop eos' \
    'run.* error .*no.such.model.gguf: ' 'run.* end exit status 3'; do
    grep -qE "$stamp-$line" "$work/log" || { cat "$work/log"; fail "no /$line/ in the log"; }
done
[ "$(stat -c %a "$work/log" 2>/dev/null || echo 600)" = 600 ] || fail "others can read the log"
echo Hi | chat_lines 0 "$work/model.gguf" --log-file "$work/no/log"
err_has 'no/log: No such file or directory; nothing is logged'
printf 'QSF1\001\000\000\000' >"$work/binary"
chat_lines 0 --no-save --log-file "$work/binary" -n 1 "$stories" </dev/null
err_has 'binary: is not a text file; nothing is logged'
[ "$(wc -c <"$work/binary")" = 8 ] || fail "a log was appended to a file that is not text"
if [ -w /dev/full ]; then echo Hi | chat_lines 0 "$work/model.gguf" --log-file /dev/full; fi

# ---- on the full screen, and ^C leaves out the rest
need_tmux
make_slow
printf 'Tell me\n/set top-k 7\nMore\n' >"$work/keys"
start 80 24 "cd '$work' && '$chat' --no-save --ignore-eos --cpu-mask ref --threads 1 -c 8192 '$slow'"
see 'is ready'
keys '/source keys' Enter # a long path would break the line
see 'Tell me'
see 'writing .* out'
keys C-c
see 'what follows keys:1'
off_screen 'top-k 7' || fail "a line was run after ^C"
finish
