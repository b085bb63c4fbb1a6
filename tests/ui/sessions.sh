#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Sessions of the real program: one that another chat has open, and other files in place of its own.
. "$(dirname "$0")/lib.sh"
files=$XDG_DATA_HOME/qsf/sessions

# --continue opens the newest free session, and starts a new one if none is free.
for name in first second; do
    echo "$name question" | chat_lines 0 "$stories" -n 3 --session $name
    touch -d "$([ $name = first ] && echo 2001-01-01 || echo 2002-02-02)" "$files/$name.jsonl"
done
mkfifo "$work/in"
"$chat" "$stories" -n 3 --session second <"$work/in" >"$work/held" 2>&1 &
pid=$!
exec 3>"$work/in"
echo hello >&3
wait_for file_has hello "$files/second.jsonl"
printf '/export %s\n' "$work/got.txt" | chat_lines 0 --continue "$stories"
err_has 'session second is in use by another program; continuing first'
grep -q 'first question' "$work/got.txt" || fail "--continue took another session"

# The list, as lines if the output is not a terminal, and adapted to a narrow window.
printf '/sessions\n' | chat_lines 0 "$stories"
err_has '^  first  +20[0-9-]+ [0-9:]+ +2 +[0-9.]+ MB +stories260K +first question$'
err_has '^  second .* \[in use\] second question$'

rm "$files/first.jsonl"
echo 'third question' | chat_lines 0 "$stories" -n 3 --continue
err_has 'all sessions are in use'
[ "$(find "$files" -name '2*.jsonl' | wc -l)" = 1 ] || fail "no new session while the other one is in use"
exec 3>&-
wait $pid || fail "the chat whose session was asked for ends with $?"

# Of chats that save under the same name at the same time, one gets it.
for i in 1 2 3 4 5 6; do
    printf 'number %s\n/save together\n' $i | "$chat" "$stories" -n 2 >/dev/null 2>"$work/save$i" &
done
wait
[ "$(grep -l 'saved as together' "$work"/save? | wc -l)" = 1 ] ||
    { cat "$work"/save?; fail "not exactly one chat has the name"; }
[ "$(grep -l 'together.* exists' "$work"/save? | wc -l)" = 5 ] ||
    { cat "$work"/save?; fail "a chat did not say that the name is taken"; }
[ "$(grep -c '"user"' "$files/together.jsonl")" = 1 ] || fail "two chats are in one session"

# Nothing is written with --no-save, except where /save NAME says; /save alone only shows where.
tree() { (cd "$files" && cksum ./*.jsonl); }
tree >"$work/before"
printf '/load together\nsecret\n/temp 1.5\n/system be secret\n/save\n/new hidden\nsecret\n/save\n/clear\n' |
    chat_lines 0 "$stories" -n 3 --no-save --temp 0.3
tree >"$work/after"
cmp "$work/before" "$work/after" || fail "--no-save wrote a session"
err_has 'resumed together: 2 messages, just now, stories260K; what follows is not saved'
[ "$(grep -c 'not saved because of --no-save: /save NAME saves the conversation' "$work/err")" = 2 ] ||
    fail "/save does not say that nothing is saved"
printf 'plain\n/save\nplain\n' | chat_lines 0 "$stories" -n 3
err_has 'not saved: /save NAME saves'
tree | cmp - "$work/before" || fail "/save alone began to save"
printf '/load together\nkept\n/save named\nkept too\n/new\nsecret\n/load named\nsecret\n' |
    chat_lines 0 "$stories" -n 3 --no-save
err_has 'saved as named'
rm -f "$work/got.txt"
printf '/export %s\n' "$work/got.txt" | chat_lines 0 "$stories" --session named
[ "$(grep -c 'kept' "$work/got.txt")" = 2 ] || fail "/save NAME did not save the conversation"
if grep -q secret "$files"/*; then fail "--no-save wrote a conversation"; fi
rm "$files/named.jsonl" "$files/together.jsonl"

# Text written to a session by another program is plain text in an export, whatever it contains.
printf '%s\n' '{"kind":"message","role":"user","text":"q \u001b[31m \ud800"}' \
    '{"kind":"message","role":"user","text":"q \u001b[31m \u0000 \" \\"}' \
    '{"kind":"message","role":"assistant","text":"a","stop":"a\"b\\\u0007","time":1e300}' >"$files/odd.jsonl"
printf '/export %s\n/export %s\n' "$work/odd.json" "$work/odd.txt" | chat_lines 0 "$stories" --session odd
if have python3; then
    python3 -c 'import json, sys; m = json.load(open(sys.argv[1]))["messages"]; sys.exit(m[1]["stop"] != "a\"b\\\a")' \
        "$work/odd.json" || fail "the JSON export differs from the session"
else
    echo "skip: no python3: the JSON export was not parsed"
fi
[ "$(tr -d '\n\t -~' <"$work/odd.txt" | wc -c)" = 0 ] || fail "control characters in a text export"

# /load loads the session's own model and settings: another model's session, one of the guide, and back.
other=$work/other.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$other" layers=2 vocab=512 ctx=1024 || skip "mktiny is not built"
echo 'first question' | chat_lines 0 "$stories" -n 3 --session loadA --temp 0.25 --stop END --kv-type q8 --ignore-eos
echo 'second question' | chat_lines 0 "$other" -n 3 --session loadB
cp "$files/loadB.jsonl" "$work/loadB"
printf '/load loadB\n/model\n/show settings\n/stop\n/load loadA\n/model\n/stop\nmore\n' |
    chat_lines 0 --session loadA -n 3
err_has 'resumed loadB: 2 messages, just now, '
[ "$(grep -c "^$(realpath "$other")\$" "$work/err")" = 1 ] ||
    { cat "$work/err"; fail "/load did not load the session's model"; }
err_has '^temperature +0.7'
err_has '^kv-type +auto'
err_has 'no stop strings are set'
err_has "^$(realpath "$stories")\$"
err_has '^END$'
[ "$(grep -c '"user"' "$files/loadA.jsonl")" = 2 ] || fail "the message after /load is not in its session"
if grep -q '"temperature"\|"kv-type"\|"stop","text"' "$files/loadB.jsonl";
then fail "settings of one session are in the file of another"; fi
if [ -f "$QSF_BUILDDIR/models/guide.qsf" ] || [ -f "$QSF_SRCDIR/models/guide.qsf" ]; then
    printf '/load loadB\n/model\nmore\n' | chat_lines 0 -n 3
    err_has "^$other\$"
    if grep -q 'new conversation' "$work/err"; then cat "$work/err";
    fail "/load started a conversation with the guide"; fi
    [ "$(grep -c '"user"' "$files/loadB.jsonl")" = 2 ] || fail "the message after /load went to the guide"
fi
# Options of the command line apply while the program runs; a session that exists does not get them, whether
# it is opened at the start or later, and one that the program starts does.
printf '/temp 0.6\n/stop wolf\nfirst question\n' | chat_lines 0 "$stories" -n 3 --session own
cp "$files/own.jsonl" "$work/own"
printf '/load own\n/stop\n/system\n/show settings\n' |
    chat_lines 0 "$other" --temperature 1.9 --stop bear --threads 1 --ctx 256 --system 'be evil'
err_has '^bear$' && err_has '^be evil$' && err_has '^temperature +1.9' && err_has '^threads +1 '
printf '/system\n' |
    chat_lines 0 "$other" --temperature 1.9 --stop bear --threads 1 --ctx 256 --system 'be evil' --session own
err_has '^be evil$'
cmp "$files/own.jsonl" "$work/own" ||
    fail "options of the command line are in the file of a session that existed"
printf 'first question\n' | chat_lines 0 "$stories" -n 3 --session started --temperature 1.9 --stop bear
printf '/stop\n/show settings\n' | chat_lines 0 --session started
err_has '^bear$' && err_has '^temperature +1.9'
# Its model is gone: said, and the loaded one answers.
mv "$other" "$other.away"
printf '/load loadB\n/model\n' | chat_lines 1 "$stories" -n 3
err_has "$other: .*No such file"
err_has 'session loadB continues with '
mv "$other.away" "$other"

# Its file, or the whole folder, is removed or emptied under a running chat: said once, written again, exit 0.
# gone NAME COMMAND: what happens after the first answer.
gone() {
    rm -f "$work/in" "$work/out"
    mkfifo "$work/in"
    "$chat" "$stories" -n 3 --session "$1" <"$work/in" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 3>"$work/in"
    echo 'first question' >&3
    wait_for file_has '"role":"assistant"' "$files/$1.jsonl"
    eval "$2"
    printf 'second question\n/undo\nthird question\n' >&3
    exec 3>&-
    wait $pid || { cat "$work/err"; fail "$2: exit $?"; }
    [ "$(grep -c "the file of session $1 was" "$work/err")" = 1 ] ||
        { cat "$work/err"; fail "$2: not said once"; }
    printf '/export! %s\n' "$work/gone.txt" | chat_lines 0 "$stories" --session "$1"
    { grep -q 'first question' "$work/gone.txt" && grep -q 'third question' "$work/gone.txt"; } ||
        { cat "$work/gone.txt"; fail "$2: a message is missing"; }
}
gone removed "rm '$files/removed.jsonl'"
gone emptied ": >'$files/emptied.jsonl'"
cp -R "$files" "$work/kept"
gone folder "rm -r '$files'"
cp "$work/kept"/load* "$files"

# Session files with megabytes of JSON in one line, or with texts that are larger than the budget, are read
# within it.
awk 'BEGIN { printf "{"; for (i = 0; i < 40000; i++) printf "\"k%d\":[[[[[[[[[[1]]]]]]]]]],", i; print "\"k\":1}"
    print "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"hello\"}" }' >"$files/json.jsonl"
awk 'BEGIN { printf "{\"kind\":\"message\",\"role\":\"user\",\"text\":\""; for (i = 0; i < 1000000; i++) printf "words "
    print "\"}"; print "{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"yes\"}" }' >"$files/words.jsonl"
awk 'BEGIN { printf "{\"kind\":\"message\",\"role\":\"user\",\"text\":\""; for (i = 0; i < 7000000; i++) printf "\\u000a"
    print "\"}" }' >"$files/newlines.jsonl"
truncate -s 3G "$files/sparse.jsonl"
if [ -z "${QSF_SAN-}" ]; then
    printf '/load words\n' | chat_lines 0 "$stories" -n 3 --no-save
    err_has '^qsf-chat: ([4-9][0-9]|[0-9]{3,}) MB: all 1 MB of weights pinned' \
        # the automatic budget grows with the text
    printf 'hello\n/sessions\n/load newlines\n/load sparse\n/load words\n/mem\n' |
        chat_lines 1 "$stories" -n 3 --no-save --ram-budget 20
    peak_within 20
    err_has '^  json .* 1 +.*\[1 damaged line\] hello'
    err_has '^  words .* 2 +.*words words'
    err_has '^  sparse .*too large to scan'
    err_has 'session newlines: its messages need [0-9.]+ MB, but [0-9.]+ MB are free in the RAM budget of 20 MB: /budget [0-9]+ makes room'
    err_has 'sparse.jsonl: cannot read the session: it has 3072.0 MB'
    printf '/mem\nhello\n' | chat_lines 4 "$stories" -n 3 --session words --ram-budget 25
    peak_within 25
    err_has 'the text of the conversation .*needs'
    printf 'hello\n' | chat_lines 4 "$stories" -n 3 --session newlines --ram-budget 8
    err_has 'session newlines: its messages need .*--ram-budget [0-9]+ makes room'
    printf '/mem\n' | chat_lines 0 "$stories" -n 3 --session json --ram-budget 20
    peak_within 20
    err_has 'session json: 1 damaged line was skipped'
fi
rm "$files/json.jsonl" "$files/words.jsonl" "$files/newlines.jsonl" "$files/sparse.jsonl"

# Names with line ends and characters that change how others are shown are marks in messages and lists.
evil=$(printf 'ev\342\200\256il\302\205')
printf '%s\n' '{"kind":"message","role":"user","text":"hi"}' \
    '{"kind":"message","role":"assistant","text":"yes"}' >"$files/$evil.jsonl"
printf '/sessions\n/load %s\n/load no%s\n/new %s\n/save %s\n' "$evil" "$evil" "$evil" "$evil" |
    chat_lines 1 "$stories" --session loadA
err_has '^  ev<U\+202E>il\\x85 '
err_has 'resumed ev<U\+202E>il\\x85: 2 messages'
err_has 'there is no session noev<U\+202E>il\\x85;'
err_has 'session ev<U\+202E>il\\x85 exists'
if LC_ALL=C grep -q "$(printf '\342\200\256\|\302\205')" "$work/err";
then fail "a name reaches the terminal raw"; fi
chat_lines 2 "$stories" --session "$(printf 'two\nlines')" </dev/null
err_has "'two\^Jlines'"

# A pipe in place of a file, without a writer.
need_tmux
mkdir -p "$XDG_STATE_HOME/qsf"
mkfifo "$XDG_STATE_HOME/qsf/history"
start 80 24 "'$chat' '$stories' -n 5 --temp 0 --ignore-eos"
see 'is ready' && keys 'hello there' Enter && see '5 tok'
keys '/sessions' Enter
see '^>\*hello there .*stories260K +2 msg +just now'
wide_enough 80
size 40 12
see '^>\*hello there +just now'
wide_enough 40
keys Escape
see_gone '^>\*hello there'
see 't/s 5/5 ctx'
keys '/quit' Enter
see 'rc=0'
rm "$XDG_STATE_HOME/qsf/history"

# The last line on the terminal: how to resume, quoted for a shell, or that nothing was saved.
start 80 24 "'$chat' '$stories' -n 5 --ignore-eos --session \"my chat\""
see 'is ready' && keys 'hello there' Enter && see '5 tok' && keys '/quit' Enter
see "^resume with: qsf-chat --session 'my chat'\$"
start 80 24 "env -u HOME -u XDG_DATA_HOME '$chat' '$stories' -n 5 --ignore-eos"
see 'is ready' && keys 'hello there' Enter && see 'not saved: .*no home directory' && see '5 tok' &&
    keys '/quit' Enter
see '^the conversation was not saved'
not_see 'resume with'
# /load from the guide: the session's model answers, and its settings are in the pane.
if [ -f "$QSF_BUILDDIR/models/guide.qsf" ] || [ -f "$QSF_SRCDIR/models/guide.qsf" ]; then
    start 100 30 "'$chat'"
    see 'guide is ready' && keys '/load loadA' Enter
    see 'stories260K is ready' && see 'temperature .25'
    not_see 'new conversation'
    keys 'once more' Enter && see '#6 .*3 tok' && keys '/quit' Enter && see 'rc=0'
    [ "$(grep -c '"user"' "$files/loadA.jsonl")" = 3 ] || fail "the message after /load is not in its session"
fi
# On the screen: a file that does not fit is refused before the screen is opened, or by /load.
if [ -z "${QSF_SAN-}" ]; then
    awk 'BEGIN { printf "{\"kind\":\"message\",\"role\":\"user\",\"text\":\""; for (i = 0; i < 3000000; i++) printf "\\n"
        print "\"}" }' >"$files/newlines.jsonl"
    start 80 24 "'$chat' '$stories' --session newlines --ram-budget 25"
    see 'session newlines: its messages need' && see 'rc=4'
    start 80 24 "'$chat' '$stories' --ram-budget 25"
    see 'is ready' && keys '/load newlines' Enter && see 'session newlines: its messages need' &&
        keys '/quit' Enter
    see 'rc=0'
    rm "$files/newlines.jsonl"
fi
# In the popup of completion and in the title.
start 100 24 "'$chat' '$stories' --no-save"
see 'is ready' && keys '/load ' && see 'ev<U\+202E>il\\x85' && keys 'ev' Tab Enter
see 'resumed ev<U\+202E>il\\x85: 2 messages' && see '^ qsf-chat  ev<U\+202E>il\\x85 \(not saved\)'
if screen |
    LC_ALL=C grep -q "$(printf '\342\200\256\|\302\205')"; then fail "a name reaches the screen raw"; fi
keys '/quit' Enter && see 'rc=0'
if grep -qs 'load ev' "$XDG_STATE_HOME/qsf/history"; then fail "--no-save wrote the input history"; fi
# A session that is lost, on the screen, too.
start 80 24 "'$chat' '$stories' -n 3 --ignore-eos --session vanished"
see 'is ready' && keys 'first question' Enter && see '#2 .*3 tok'
rm -r "$files"
keys 'second question' Enter && see 'the file of session vanished was removed: the conversation was saved'
keys '/quit' Enter && see '^resume with: qsf-chat --session vanished$' && see 'rc=0'
[ "$(grep -c '"user"' "$files/vanished.jsonl")" = 2 ] || fail "the removed session is not complete"
# A FIFO as its file of bindings does not block readline.
mkfifo "$work/inputrc"
start 80 24 "INPUTRC='$work/inputrc' '$chat' --no-save '$stories'"
see 'is ready'
keys C-d
see '^rc=0'
finish
