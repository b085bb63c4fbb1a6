#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The chat in line mode: what is written to stdout, what is not, commands, exit codes, signals, a closed and a
# full output.
. "$(dirname "$0")/lib.sh"

printf 'Once upon a time\n' | chat_lines 0 "$stories" --temperature 0 -n 20
[ -s "$work/out" ] || fail "no answer"
[ "$(tail -c 1 "$work/out" | od -An -c | tr -d ' ')" = '\n' ] || fail "the answer does not end with a newline"
[ "$(tail -c 2 "$work/out" | od -An -c | tr -d ' ')" != '\n\n' ] || fail "the answer ends with two newlines"
cp "$work/out" "$work/first"
head -n 1 "$work/err" |
    grep -q 'RAM budget [0-9]* MB (auto): all weights stay in RAM, KV cache f16 (the default); --ram-budget 200 changes it' ||
    { cat "$work/err"; fail "the first line does not name the budget"; }

# A chosen budget is not announced, and auto is announced only where it is used.
echo hello | chat_lines 0 "$stories" -n 2 --ram-budget 100
if grep -q '(auto)' "$work/err"; then fail "a chosen budget is called automatic"; fi
printf 'hello\n/budget 100\n/budget auto\n/mem\n' | chat_lines 0 "$stories" -n 2 --ram-budget 90
err_has '^qsf-chat: 100 MB: all [0-9]+ MB of weights pinned'

# The context changes in place between two answers; what no longer fits is refused until /clear.
printf 'Once upon a time\n/ctx 300\n/context\nOne day\n/ctx 16\n/context\nOne day\n/clear\n/context\nOne\n' |
    chat_lines 5 "$stories" --temperature 0 -n 8
err_has '^conversation +[0-9]+ of 300 tokens'
err_has 'kept, 0 evicted, 0 protected'
err_has '^conversation +[0-9]+ of 16 tokens'
err_has 'more than the context of 16'
err_has '^conversation +0 of 16 tokens'
[ "$(wc -l <"$work/out")" -ge 3 ] || { cat "$work/out"; fail "no answer after /clear"; }
if grep -q 'reload' "$work/err"; then fail "the model was loaded again"; fi

# The types of the cache change in place, too: the conversation stays in it. One that does not exist is
# refused.
printf 'Once upon a time\n/kv type q8\n/context\nOne day\n/kv k-type f32\n/stats\n/kv\n/kv type f16\n/kv type q5\n/kv\nOne\n' |
    chat_lines 1 "$stories" --temperature 0 -n 8
err_has '^KV cache +q8 \(as set\), converted'
err_has '^conversation +[1-9][0-9]* of'
err_has '^KV cache keys f32, values q8'
err_has '^type q8, k-type f32, v-type auto; in use f32/q8'
err_has 'kv-type takes .*, not .q5'
err_has '^type f16, k-type auto, v-type auto; in use f16 \(as set\)'
[ "$(wc -l <"$work/out")" -ge 3 ] || { cat "$work/out"; fail "no answer after another type"; }
if grep -q 'reload' "$work/err"; then fail "the model was loaded again for another type"; fi

# The same message as a block, after commands, through a long pipe: the same answer.
printf '/temp 0\n/set max-tokens 20\n"""\nOnce upon a time"""\n' | chat_lines 0 "$stories"
cmp -s "$work/out" "$work/first" || { cat "$work/first" "$work/out"; fail "a block gives another answer"; }
err_has 'temperature 0'

# Two turns, two answers; nothing but answers on stdout.
printf '/stats\nOne day\n/mem\n/show settings\n/help\nand then\n/quit\nnever\n' |
    chat_lines 0 "$stories" --temperature 0 -n 8
err_has 'RSS'
err_has '/export'
[ "$(grep -c 'RSS\|/export\|decode' "$work/out")" = 0 ] || fail "command output on stdout"

# A failed command does not stop the run, and counts.
printf '/nonsense\n/sho\nhello\n' | chat_lines 1 "$stories" -n 4
err_has '/nonsense: no such command'
err_has 'did you mean /show'
[ -s "$work/out" ] || fail "no answer after a failed command"
printf '/retyr\n' | chat_lines 1 "$stories"
err_has 'did you mean /retry'
printf '/mo\n/set think\n/set retry\n' | chat_lines 1 "$stories"
err_has 'did you mean /model'
err_has 'reasoning on'
err_has "no setting 'retry'; /retry is a command"
printf '/temp 99\n' | chat_lines 1 "$stories"
err_has 'temperature takes'

# Usage, missing and bad models.
chat_lines 2 --frobnicate </dev/null
err_has 'unknown option --frobnicate'
# What users of other programs type.
chat_lines 2 run "$stories" </dev/null
err_has "there is no command 'run': qsf-chat MODEL"
chat_lines 2 "$stories" 'Why is the sky blue?' </dev/null
err_has 'expected one MODEL; qsf-run -p TEXT'
chat_lines 2 --session ../x </dev/null
chat_lines 2 --no-save --continue </dev/null
echo hello | chat_lines 3 "$work/missing.gguf"
err_has 'missing.gguf'
echo text >"$work/text.gguf"
echo hello | chat_lines 3 "$work/text.gguf"
err_has 'text.gguf'
echo hello | chat_lines 4 --ram-budget 1 "$stories"
err_has 'smallest budget that works'
chat_lines 0 "$stories" </dev/null
[ ! -s "$work/out" ] || fail "an empty input gives output"

# A text that does not fit in the budget names the one that it fits in; the other error of a text is the
# context.
smallest() { sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err"; }
# long_text FILE CODE OPTIONS...: refused at the smallest budget of the model; CODE at the one that is then
# named.
long_text() {
    file=$1 then=$2
    shift 2
    echo hello | chat_lines 4 --ram-budget 1 "$@" "$stories"
    chat_lines 4 --ram-budget "$(smallest)" "$@" "$stories" <"$file"
    err_has '^qsf-chat: RAM budget exceeded: '
    budget=$(smallest)
    [ -n "$budget" ] || { cat "$work/err"; fail "a text that was refused names no budget"; return; }
    chat_lines "$then" --ram-budget "$budget" "$@" "$stories" <"$file"
}
head -c 3000000 /dev/zero | tr '\0' a >"$work/line"
long_text "$work/line" 5
err_has 'more than the context of'
# A line that is not kept takes no memory, whatever its length and wherever it ends; what follows is read.
echo hello | chat_lines 4 --ram-budget 1 "$stories"
least=$(smallest)
x() { head -c "$1" /dev/zero | tr '\0' "$2"; }
{ x 3000000 b; printf '\n/mem\n'; } | chat_lines 4 --ram-budget "$least" "$stories"
err_has 'the message has 2.86 MB, and at most 0.[0-9]+ MB fit in the budget of'
peak_within "$least"
{ x 48000000 c; printf '\n/mem\n'; } | chat_lines 1 --ram-budget "$least" "$stories"
err_has 'not sent: a message can have at most 8 MB, and this one has 45.8 MB'
peak_within "$least"
{ printf '"""'; for i in 1 2 3; do x 1000000 "$i"; printf '\n/nonsense\n'; done; printf '"""\n/mem\n'; } |
    chat_lines 4 --ram-budget "$least" "$stories"
err_has 'the message has 2.86 MB'
if grep -q nonsense "$work/err"; then fail "a line of a block that was dropped was a command"; fi
peak_within "$least"
# Texts that were refused are not kept for good.
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x 150000 d; echo; done >"$work/many"
{ cat "$work/many"; printf 'hello\n/mem\n'; } | chat_lines 5 --ram-budget "$least" "$stories" -n 2
[ "$(grep -c 'more than the context of' "$work/err")" = 12 ] ||
    { cat "$work/err"; fail "not all long lines reached the engine"; }
[ -s "$work/out" ] || fail "no answer after long lines"
peak_within "$least"

# Tokenized all the same, because tokens may leave the context; of real words, which are few tokens.
# With the sanitizers the memory of a process differs from run to run by more than such a text needs.
yes 'there was a little girl named Lily and she loved' | head -n 5500 | tr '\n' ' ' >"$work/words"
if [ -n "${QSF_SAN-}" ]; then
    echo "skip: a text that just does not fit, with the sanitizers"
else
    long_text "$work/words" 0 --eviction-policy sliding -n 1 --ctx 512 --batch 512
fi

# Another model can be loaded; after an invalid one the chat continues.
printf '/model %s\n/model %s\nhello\n' "$work/missing.gguf" "$stories" | chat_lines 1 -n 3
[ -s "$work/out" ] || fail "no answer after a failed and a good /model"

# Outputs that are closed.
echo hello | "$chat" "$stories" -n 200 --ignore-eos 2>"$work/err" | head -c 1 >/dev/null
[ ! -s "$work/err" ] || ! grep -qi 'pipe' "$work/err" || fail "a closed pipe must not be reported"
if [ -w /dev/full ]; then
    echo hello | "$chat" "$stories" -n 5 >/dev/full 2>"$work/err"
    [ $? = 1 ] || fail "a full output did not exit with 1"
    err_has '^qsf-chat: stdout: No space left'
    echo hello | "$chat" "$stories" -n 5 -o /dev/full 2>"$work/err"
    [ $? = 1 ] || fail "-o /dev/full did not exit with 1"
    err_has '^qsf-chat: /dev/full: No space left'
    "$QSF_BUILDDIR/qsf-run" "$stories" -n 5 -p hello -o /dev/full 2>"$work/err"
    err_has '^qsf-run: /dev/full: No space left'
fi

# ^C: at the prompt it ends with 130; TERM ends with 143.
for pair in INT:130 TERM:143; do
    mkfifo "$work/in"
    rm -f "$work/out" "$work/err"
    "$chat" "$stories" <"$work/in" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 3>"$work/in"
    echo hello >&3
    wait_for [ -s "$work/out" ]
    printf '/stats\n' >&3
    wait_for file_has decode "$work/err"
    # Background jobs of a plain shell ignore INT; a program can still set its own handler.
    kill -"${pair%:*}" $pid
    wait $pid
    got=$?
    exec 3>&-
    [ $got = "${pair#*:}" ] || fail "${pair%:*} ends with $got"
    rm -f "$work/in"
done

# ^C during an answer keeps it, and the run continues.
mkfifo "$work/in"
make_slow
rm -f "$work/out" "$work/err"
"$chat" "$slow" --session stopped --ignore-eos -c 8192 --cpu-mask ref --threads 1 --ram-budget auto \
    <"$work/in" >"$work/out" 2>"$work/err" &
pid=$!
exec 3>"$work/in"
echo 'Once upon a time' >&3
wait_for [ -s "$work/out" ]
kill -INT $pid
printf '/set max-tokens 5\nmore\n' >&3
exec 3>&-
wait $pid
got=$?
[ $got = 0 ] || { cat "$work/err"; fail "a stopped answer ends the run with $got"; }
grep -q '"stop":"interrupted"' "$XDG_DATA_HOME/qsf/sessions/stopped.jsonl" ||
    fail "the stopped answer was not saved"

# Sessions only on request; a resumed one contains the messages.
rm -rf "$XDG_DATA_HOME"
echo hello | chat_lines 0 "$stories" -n 3
[ ! -d "$XDG_DATA_HOME/qsf" ] || fail "line mode saved a session without a request"
printf '/system be brief\nhello\n' | chat_lines 0 "$stories" -n 3 --session one --temp 0
printf '/export %s\n' "$work/one.json" | chat_lines 0 --continue
grep -q '"content": "hello"' "$work/one.json" || fail "--continue lost the message"
grep -q 'be brief' "$work/one.json" || fail "--continue lost the system prompt"
grep -q '"temperature": "0"' "$work/one.json" || fail "--continue lost a setting"
printf '/export %s\n' "$work/one.json" | chat_lines 1 --continue
err_has 'exists'

# A session that cannot grow (as on a full disk): this is reported, but not for every record (a short one may
# still fit, and the next failure is reported again), and the chat continues.
(
    ulimit -f 1
    printf '/system %0300d\nhello\nagain\n' 7 | "$chat" "$stories" -n 3 --session full 2>&1 >&3 | cat >&4
) 3>"$work/out" 4>"$work/err"
err_has 'not saved'
[ "$(grep -c 'not saved' "$work/err")" -le 3 ] ||
    { cat "$work/err"; fail "a full disk is reported with every record"; }
[ "$(grep -c '' "$work/out")" -ge 2 ] || fail "a full disk stops the chat"

# A context longer than the model was trained for works, with a warning.
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/short.gguf" layers=2 ctx=256 || fail "mktiny"
echo hello | chat_lines 0 "$work/short.gguf" -c 300 -n 2
err_has 'trained for a context of 256 tokens'
echo hello | chat_lines 0 "$work/short.gguf" -c 256 -n 2
if grep -q 'trained for' "$work/err"; then fail "warned about a context within the training length"; fi
"$QSF_BUILDDIR/qsf-run" "$work/short.gguf" -c 300 -n 2 -p hello >"$work/out" 2>"$work/err"
err_has 'trained for a context of 256 tokens'

# Names and state that only a terminal needs are not required: a closed stdin, no TERM.
env -u TERM "$chat" "$stories" -n 2 </dev/null >"$work/out" 2>"$work/err" || fail "without TERM: exit $?"
# Files in messages of a pipe, and -f.
printf 'text of a file\n' >"$work/file.txt"
printf 'about @%s/file.txt\n/show prompt\n' "$work" |
    chat_lines 0 "$stories" --no-save -n 1 --temp 0 --plain -f "$work/file.txt"
err_has '^qsf-chat: attached to the next message: .*file.txt 15 B$|file.txt 15 B, [0-9]+ tokens$'
err_has '^qsf-chat: attached: .*/file.txt 15 B, [0-9]+ tokens$'
err_has '^text of a file$'
chat_lines 2 "$stories" --no-save -f "$work/missing" </dev/null
err_has 'missing: No such file'
# A pattern is as in /read, in both programs; the file of -o is not among its files.
mkdir "$work/parts"
printf 'one\n' >"$work/parts/1.txt"
printf 'two\n' >"$work/parts/2.txt"
printf 'Hi\n/show prompt\n' | chat_lines 0 "$stories" --no-save -n 1 --temp 0 -f "$work/parts/*.txt"
err_has '^qsf-chat: 2 files: 8 B, '
err_has '^two$'
chat_lines 2 "$stories" --no-save -f "$work/parts/*.md" </dev/null
err_has '^qsf-chat: --file: no file is named .*/parts/[*].md$'
"$QSF_BUILDDIR/qsf-run" "$stories" -n 1 -p Hi -f "$work/parts/*.txt" -o "$work/parts/3.txt" 2>"$work/err" ||
    fail "qsf-run -f PATTERN: exit $?"
err_has '^qsf-run: 2 files: 8 B, '
"$QSF_BUILDDIR/qsf-run" "$stories" -n 1 -p Hi -f "$work/no*" 2>"$work/err"
[ $? = 2 ] || fail "qsf-run -f with a pattern of no file"
err_has '^qsf-run: --file: no file is named '
finish
