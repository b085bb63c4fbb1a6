#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Versions of answers and branches: in lines, after kill -9, and on the screen.
. "$(dirname "$0")/lib.sh"
files=$XDG_DATA_HOME/qsf/sessions

# begin SESSION MODEL ARGS...: a chat whose input is descriptor 3.
begin() {
    name=$1
    shift
    rm -f "$work/in"
    mkfifo "$work/in"
    "$chat" "$@" --session "$name" <"$work/in" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 3>"$work/in"
}
in_file() { grep -qsE -- "$1" "$work/$2"; }
in_session() { grep -qsE -- "$1" "$files/$name.jsonl"; }
# Waits until the file that belongs to the chat has a line.
await() { wait_for "$@" || { cat "$work/err"; fail "waited in vain: $*"; }; }
die() {
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    exec 3>&-
}

# /retry keeps the answer before, and what it changed is there after kill -9.
begin kept "$stories" -n 4 --temperature 0
printf 'One day\n/retry\n/goto 1/2\nThe end\n/goto 2/2\n/clear\n' >&3
await in_file 'conversation cleared' err
die
err_has 'version 2/2$'
err_has 'version 1/2$'
printf '/undo\n/tree\n/undo\n/undo\n/redo 3\n/tree\n' | chat_lines 0 "$stories" -n 4 --session kept
err_has 'undid /clear'
err_has '^\* 1 you One day$'
err_has '^> └ 3 ai '
err_has '^    4 you The end$'
err_has 'redid /clear'
awk '/^qsf-chat: redid .clear/ { after = 1 } after && /^>/ { bad = 1 } END { exit bad || !after }' \
    "$work/err" || { cat "$work/err"; fail "/redo did not clear the conversation again"; }

# A new version that is being written when the program is killed: the saved part, and the version before.
make_slow
begin half "$slow" -n 4000 --temperature 0 --cpu-mask ref --threads 1 --ignore-eos
printf 'One day\n' >&3
await in_session '"kind":"part"'
kill -INT "$pid"
await in_session '"stop":"interrupted"'
printf '/retry\n' >&3
await in_session '"by":"retry"'
parts=$(grep -c '"kind":"part"' "$files/half.jsonl")
more_parts() { [ "$(grep -c '"kind":"part"' "$files/half.jsonl")" -gt "$parts" ]; }
await more_parts
die
printf '/tree\n/undo\n/export %s\n' "$work/back.txt" | chat_lines 0 "$slow" --session half --ram-budget 100
err_has '^  ├ 2 ai '
err_has '^> └ 3 ai '
err_has 'undid /retry'

# An answer that ends with the program has its seed and its tokens in the file.
begin term "$slow" -n 4000 --seed 77 --cpu-mask ref --threads 1 --ignore-eos
printf 'One day\n' >&3
await in_session '"kind":"part"'
kill -TERM "$pid"
wait "$pid"
exec 3>&-
in_session '"stop":"interrupted","seed":"77","tokens":[1-9]' || { tail -n 1 "$files/term.jsonl" | cut -c1-300
fail "the answer has no seed or no tokens"; }

# Only what differs is evaluated, and /stats and the screen say so.
printf 'A long question of many words about a day\n/retry\n/stats\n' | chat_lines 0 "$stories" -n 4
err_has '^prompt   reused [0-9]+ of [0-9]+ tokens'

# Versions can be changed when the answer has ended, which is when the file says so.
finished() { grep -cs '"stop"' "$files/screen $size.jsonl"; }
one_more() { [ "$(finished)" -gt "$answers" ]; }
need_tmux
for size in '100 30' '80 24' '40 12'; do
    # shellcheck disable=SC2086
    start $size "'$chat' '$stories' -n 4 --session 'screen $size'"
    answers=0
    see 'is ready' && keys 'One day' Enter && see '#2|ai >' && see 'One day' && wait_for one_more
    answers=$(finished)
    keys '/retry' Enter && see '2/2' && wait_for one_more
    keys M-Left && see '1/2' && see 'version 1/2'
    keys M-Left && see 'version 1/2 is the first'
    keys M-Right && see 'version 2/2'
    keys '/branch side' Enter && see 'branch side begins here'
    answers=$(finished)
    keys 'Then' Enter && see 'you.*Then|Then' && wait_for one_more
    keys '/tree' Enter && see '^ *> +5 ai +\[side\]|> +5 ai'
    wide_enough "${size% *}"
    keys Escape
    keys '/goto main' Enter && see 'branch main'
    keys '/undo' Enter && see 'undid /goto'
    keys '/quit' Enter && see 'rc=0'
done
finish
