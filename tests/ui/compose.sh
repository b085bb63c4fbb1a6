#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What is put into a message: the editor, also during an answer and with ^Z.
. "$(dirname "$0")/lib.sh"
need_tmux
make_slow
slow="'$chat' '$slow' --ignore-eos --cpu-mask ref --threads 1 -c 8192 --seed 1"

# An editor that keeps what it was given, waits, and writes two lines.
cat >"$work/editor" <<END
#!/bin/sh
cp "\$1" '$work/given'
until [ -e '$work/go' ]; do sleep 0.05; done
printf 'from\nthe editor\n' >"\$1"
END
chmod +x "$work/editor"
saved() { grep -q '"role":"assistant"' "$XDG_DATA_HOME/qsf/sessions/editor.jsonl" 2>/dev/null; }

# The answer is finished and saved while the editor is open; the screen is what it was.
start 80 24 "EDITOR='$work/editor' TMPDIR='$work' XDG_RUNTIME_DIR= $slow --session editor -n 200"
see 'is ready'
keys 'Once upon a time' Enter
see '^ writing'
keys 'half a'
see '^> half a$'
keys C-j
keys thought
see '^  thought$'
keys C-o
wait_for [ -s "$work/given" ] || fail "the editor was not started"
given_away() { [ "$(tm display-message -p -t t '#{alternate_on}')" = 0 ]; }
wait_for given_away || fail "the editor does not have the terminal"
wait_for saved || fail "the answer does not go on while the editor is open"
: >"$work/go"
see '^> from$'
see '^  the editor$'
see '^ ready'
[ "$(cat "$work/given")" = 'half a
thought' ] || fail "the editor got another text"
set -- "$work"/qsf-chat.*
[ ! -e "$1" ] || fail "$1 remains"
keys C-_
see '^> half a$'
see '^  thought$'
keys C-u C-u C-u C-d
see '^rc=0'

# Without an editor, and with one that fails, the message stays.
start 80 24 "VISUAL= EDITOR= '$chat' '$stories' --no-save"
see 'is ready'
keys hello C-x C-e
see 'no editor: set VISUAL or EDITOR'
see '^> hello$'
keys C-u C-d
see '^rc=0'
start 80 24 "VISUAL=false EDITOR= '$chat' '$stories' --no-save"
see 'is ready'
keys hello C-x C-e
see 'false ended with status 1: the message is unchanged'
see '^> hello$'
keys C-u C-d
see '^rc=0'

# Files: listed with their size and tokens while they are typed, completed with Tab, sent below the message.
mkdir "$work/files" "$work/files/notes"
printf 'int main(void) { return 0; }\n' >"$work/files/main.c"
printf 'a\000b' >"$work/files/binary"
echo one >"$work/files/notes/one.txt"
echo two >"$work/files/notes/two.txt"
start 80 24 "cd '$work/files' && '$chat' '$stories' --session files --temp 0 --ignore-eos -n 5 -f main.c"
see '^> @main.c$'
see '^ attached: main.c 29 B, [0-9]+ tokens$'
keys 'and @no' Tab
see '^> @main.c and @notes/$'
keys o Tab
see '^> @main.c and @notes/one.txt$'
see '^ attached: notes/one.txt 4 B, [0-9]+ tokens +2 files: 33 B, [0-9]+ tokens$'
keys '@binary' Enter
see '^ not attached: binary: it is not text'
see '^> @main.c and @notes/one.txt @binary$'
keys C-w Enter
see '│ @main.c and @notes/one.txt$'
see '│ .attached: main.c 29 B, [0-9]+ tokens.$'
see ' 5 tok '
grep -q 'one.txt:.n```txt.none.n```' "$XDG_DATA_HOME/qsf/sessions/files.jsonl" ||
    fail "the text of a file is not in the session"
keys '/read notes/*' Enter
see '^> @notes/one.txt @notes/two.txt$'
keys C-u C-d
see '^rc=0'

# A long paste folds in the input and is sent whole; the editor has its text.
rm -f "$work/given"
: >"$work/go"
seq 200 >"$work/paste"
start 80 24 "EDITOR='$work/editor' TMPDIR='$work' XDG_RUNTIME_DIR= '$chat' '$stories' --no-save -n 5 -c 2048"
see 'is ready'
tm load-buffer "$work/paste"
tm paste-buffer -p -t t
see '^> .pasted 200 lines, [0-9,]+ tokens.$'
keys C-o
see '^> from$'
[ "$(sed -n 200p "$work/given")" = 200 ] || fail "the editor does not have the paste"
keys C-_
see '^> .pasted 200 lines, [0-9,]+ tokens.$'
keys Enter
see '│ 200$'
keys C-d
see '^rc=0'

# ^Z in the editor returns to the shell; fg resumes both.
cat >"$work/editor" <<END
#!/bin/sh
echo editing
kill -TSTP 0
echo again >"\$1"
END
start 80 24 "env PS1='shell> ' EDITOR='$work/editor' TMPDIR='$work' sh -i"
keys "'$chat' '$stories' --no-save" Enter
see 'is ready'
keys C-o
see 'editing'
see_shell
keys fg Enter
see '^> again$'
keys C-u C-d
see '^shell> *$'
finish
