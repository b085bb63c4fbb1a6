#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Finding sessions again: titles, --list-sessions, --print-session, the list to choose from, /delete.
. "$(dirname "$0")/lib.sh"
files=$XDG_DATA_HOME/qsf/sessions
tab=$(printf '\t')

# A folder without sessions, and names that are none: no model is loaded, and nothing is created.
chat_lines 0 --list-sessions </dev/null
[ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "a list of no sessions is not empty"
[ ! -e "$files" ] || fail "listing created the folder"
chat_lines 1 --print-session nothing </dev/null
err_has 'there is no session nothing; --list-sessions lists them'
chat_lines 2 --print-session ../x </dev/null
chat_lines 2 --list-sessions '(a' </dev/null
err_has '\(a: '
chat_lines 2 --list-sessions --print-session a </dev/null
chat_lines 2 --list-sessions --session a </dev/null

# /rename survives a kill, and is written for a session whose file comes later.
mkfifo "$work/in"
"$chat" "$stories" -n 3 --session killed <"$work/in" >"$work/killed.out" 2>&1 &
pid=$!
exec 3>"$work/in"
printf 'what is a whale?\n/rename About %s whales\n' "$(printf '\033[31m')" >&3
wait_for file_has '"title"' "$files/killed.jsonl"
kill -9 $pid
wait $pid 2>/dev/null
exec 3>&-
rm "$work/in"
printf '/rename Later\n/rename\na question\n/save later\n/load killed\n/rename\n' | chat_lines 0 "$stories" -n 3
err_has 'the title is now: Later'
err_has 'the title is: Later; /rename TEXT changes it'
err_has 'resumed killed: 2 messages, just now, stories260K'
err_has 'the title is: About \^\[\[31m whales'
printf 'hello\nmore\n' | chat_lines 0 "$stories" -n 3 --session plain
touch -d 2001-01-01 "$files/plain.jsonl"
touch -d '10 minutes ago' "$files/killed.jsonl"

# Fields in a pipe: name, title, model, messages, age in seconds, size in bytes.
chat_lines 0 --list-sessions </dev/null
[ "$(cut -f 1 "$work/out" | tr '\n' ' ')" = 'later killed plain ' ] || { cat "$work/out"; fail "not newest first"; }
out_has "^later${tab}Later${tab}stories260K${tab}2${tab}[0-9]+${tab}[0-9]+\$"
out_has "^killed${tab}About \^\[\[31m whales${tab}stories260K${tab}2${tab}(599|6[0-9][0-9])${tab}[0-9]+\$"
out_has "^plain${tab}hello${tab}stories260K${tab}4${tab}[0-9]{9}${tab}[0-9]+\$"
chat_lines 0 --list-sessions 'whales|more' </dev/null
[ "$(cut -f 1 "$work/out" | tr '\n' ' ')" = 'killed plain ' ] || { cat "$work/out"; fail "the search is wrong"; }
chat_lines 0 'WHALE' --list-sessions </dev/null
[ ! -s "$work/out" ] || fail "a capital letter does not count"

# A session as Markdown, control characters as marks; a session that is in use can be printed.
printf '%s\n' '{"kind":"system","text":"be\u0007brief"}' '{"kind":"message","role":"user","text":"q \u001b[31m\nr"}' \
    '{"kind":"message","role":"assistant","text":"one","reasoning":"<think>why\u009b</think>"}' \
    '{"kind":"message","role":"assistant","text":" two"}' '{"kind":"message","role":"user","text":"gone"}' \
    '{"kind":"undo","n":1}' 'damage' >"$files/odd.jsonl"
chat_lines 0 --print-session odd </dev/null
printf '# odd\n\n## System\n\nbe^Gbrief\n\n## You\n\nq ^[[31m\nr\n\n## Assistant\n\n%s%s%s\n\n' \
    '<details><summary>Thinking</summary>

why\x9b

</details>

' 'one' ' two' | cmp - "$work/out" || { cat "$work/out"; fail "the printed session is wrong"; }
err_has 'session odd: 1 damaged line was skipped'
chat_lines 0 --print-session killed </dev/null
out_has '^# About \^\[\[31m whales$' && out_has '^## You$' && out_has '^what is a whale\?$' && out_has '^## stories260K$'

# An option of the command line replaces what the session has, and says so.
printf '/temp 0.25\nhello\n' | chat_lines 0 "$stories" -n 3 --session own
other=$work/other.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$other" layers=2 vocab=512 ctx=1024 || skip "mktiny is not built"
chat_lines 0 "$other" --session own --temp 0.5 </dev/null
err_has 'the command line replaces: temperature 0.5 \(its own: 0.25\), model .*other.gguf \(its own: .*stories260K.gguf\)'
chat_lines 0 --session own </dev/null
if grep -q 'command line replaces' "$work/err"; then fail "nothing is replaced"; fi
# --continue and /load open it as --session does.
printf '/set temperature\n/model\n' >"$work/ask"
for how in '--continue' '--session own'; do
    # shellcheck disable=SC2086
    chat_lines 0 $how <"$work/ask"
    err_has '^qsf-chat: resumed own: 2 messages|^resumed own: 2 messages'
    err_has '^temperature +0.25'
    err_has 'stories260K.gguf'
done
{ echo '/load own'; cat "$work/ask"; } | chat_lines 0 "$other"
err_has '^temperature +0.25' && err_has 'stories260K.gguf'

# /delete in lines: not the one that is open here or elsewhere.
printf '/delete own\n/delete none\n/delete\n/delete odd\n/sessions\n' | chat_lines 1 "$stories" -n 3 --session own
err_has 'session own is open here'
err_has 'there is no session none'
err_has '/delete needs the name of a session'
err_has 'deleted session odd'
[ ! -e "$files/odd.jsonl" ] || fail "/delete left the file"
[ -e "$files/own.jsonl" ] || fail "/delete removed the open session"

# On the screen: type to filter, choose, load; delete after a question.
need_tmux
start 80 24 "'$chat' '$stories' -n 3"
see 'is ready' && keys '/sessions' Enter
see '^>  ?hello .*own|^> ' && see 'Enter loads  Del deletes  Esc closes' && see '1 of 4'
keys 'whales'
see '^> About \^\[\[31m whales +stories260K +2 msg' && see '1 of 1 \(4 without the filter\)'
keys Enter
see 'resumed killed: 2 messages, .*stories260K' && see '^ qsf-chat  About \^\[\[31m whales  stories260K'
keys '/sessions h[e]llo' Enter
see 'Sessions with h\[e\]llo' && see '1 of 2' && keys 'plain' && see '1 of 1 \(2 without'
keys DC && see 'delete plain, 4 messages\? y deletes' && keys n && see '1 of 1 \(2 without'
[ -e "$files/plain.jsonl" ] || fail "it was deleted without a yes"
keys DC && see 'delete plain' && keys y
see 'no session matches'
keys Escape
see 'deleted session plain'
[ ! -e "$files/plain.jsonl" ] || fail "it was not deleted"
# First words are the title of a session without a name of its own.
keys '/new' Enter && see 'new session' && keys 'tell me about whales' Enter && see '^ qsf-chat  tell me about'
keys '/quit' Enter && see 'rc=0'
# On a terminal the list is in columns, and fits.
start 60 24 "'$chat' --list-sessions"
see '^killed +About .* +stories260K +2 +1. min ago +[0-9.]+ K?B|^killed .* 2 '
wide_enough 60
see 'rc=0'
start 36 24 "'$chat' --list-sessions"
see 'rc=0'
screen | grep -q '^killed  *About' || { screen; fail "no titles at 36 columns"; }
[ "$(screen | sed '/rc=/,$d' | wc -l)" = "$(find "$files" -name '*.jsonl' | wc -l)" ] ||
    { screen; fail "a row takes two lines at 36 columns"; }
finish
