#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Line mode on a terminal: editing, history and completion by readline, words that are not broken, stopped
# answers.
. "$(dirname "$0")/lib.sh"
need_tmux
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/model.gguf" \
    "script=one _two _three _four _five _six _seven _eight _nine _ten _eleven _twelve" \
    "chat_template={% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}" ||
    skip "mktiny is not built"
# rows: the screen without its empty lines.
rows() { screen | sed 's/ *$//' | grep -v '^$'; }
ends_with() { [ "$(rows | tail -n 1)" = "$1" ]; }
last_row() {
    if [ -s "$work/before" ]; then
        [ "$(sed 's/ *$//' "$work/before" | grep -v '^$' | tail -n 1)" != "$1" ] ||
            echo "plain.sh after '$pressed': ${waited:+then }the last line is $1" >>"$QSF_EARLY"
        waited=yes
    fi
    wait_for ends_with "$1" || { fail "the last line is not \"$1\""; finish; }
}

start 44 24 "'$chat' --plain --seed 1 '$work/model.gguf'"
last_row '>'
# ---- editing, and an answer that is broken between words
keys 'second' Home 'first ' C-e ' third' BSpace BSpace Enter
see '^> first second thi$'
last_row '>'
rows | grep -qE '(one|two|three|four|five|six|seven|eight|nine|ten|eleven)$' ||
    { rows; fail "no line ends with a word"; }
rows | tr '\n' ' ' | grep -q 'one two three four five six seven eight nine ten eleven twelve' ||
    { rows; fail "words are broken, or lost"; }
rows | awk 'length > 44 { exit 1 }' || fail "a line is longer than the terminal"
# ---- history: the last line, and what ^C has taken
keys Up
last_row '> first second thi'
keys C-u
keys 'a draft'
last_row '> a draft'
keys C-c
see '^\^C again, or \^D, leaves; Up brings the text$'
last_row '>'
keys Up
last_row '> a draft'
keys C-c
last_row '>'
keys C-r 'second'
see "reverse-i-search.*second.: first second thi"
keys C-c
last_row '>'
# ---- completion: as far as it is clear, then a list with what the choices mean
keys C-u '/kv pol' Tab
last_row '> /kv policy'
keys 's' Tab
see 'snapkv +the same, judged'
see '^sliding'
last_row '> /kv policy s'
keys 'n' Tab
last_row '> /kv policy snapkv'
keys C-u
# ---- a line break in a message: sent as one
keys 'two' M-Enter 'lines' Enter
see '^lines$'
last_row '>'
keys "/export $work/lines.md" Enter
see '^qsf-chat: wrote'
last_row '>'
keys C-d
see 'rc=0'
grep -qx two "$work/lines.md" && grep -qx lines "$work/lines.md" || fail "a message of two lines"
[ "$(grep -c 'first second thi' "$XDG_STATE_HOME/qsf/history")" = 1 ] || fail "the history was not written"
grep -q 'a draft' "$XDG_STATE_HOME/qsf/history" && fail "the history has what was not sent"

# ---- a stopped answer is marked; what was typed before comes back to the input, and is not sent by itself
make_slow
start 60 24 "'$chat' --plain --no-save --ignore-eos -c 8192 --cpu-mask ref --threads 1 '$slow'"
last_row '>'
keys 'go on' Enter
# answers: text follows the name of the model.
answers() { rows | sed '1,/^tiny random llama:/d' | grep -q '^[a-z]'; }
wait_for answers || fail "no answer"
keys '/show license' Enter 'two words' Left Enter 'half a li'
see 'half a li'
# Another size of the window puts no prompt into the answer.
size 50 24
resized() { [ "$(stty size <"$(tm display-message -p -t t '#{pane_tty}')")" = '24 50' ]; }
wait_for resized || fail "the window keeps its size"
keys C-c
see '^\[stopped\]$'
screen | sed '/^\[stopped\]$/,$d' | grep '^>' | grep -v '^> go on$' && fail "a prompt in the answer"
last_row '> /show license'
keys C-u '/show system' Enter
last_row '> two words'
keys C-u Enter
last_row '> half a li'
# ---- ^C at the prompt: once more leaves, unless another key comes between
keys C-c
see '^\^C again, or \^D, leaves; Up brings the text back$'
last_row '>'
keys x BSpace
last_row '>'
keys C-l
see_gone 'Up brings'
keys C-c
see '^\^C again, or \^D, leaves$'
last_row '>'
keys C-c
see 'rc=130'

# ---- the same without readline
start 60 24 "TERM=dumb '$chat' --plain --no-save --ignore-eos -c 8192 --cpu-mask ref --threads 1 '$slow'"
last_row '>'
keys 'go on' Enter
wait_for answers || fail "no answer"
keys '/show license' Enter 'next one' Enter
see 'next one'
keys C-c
see '^not run: /show license$'
see '^queued: 1; an empty line sends the next one'
last_row '>'
keys '/queue drop all' Enter
see '^> /queue drop all'
keys C-c
see '^\^C again, or \^D, leaves$'
keys '/show system' Enter
see 'no system prompt'
last_row '>'
keys C-c
said_twice() { [ "$(screen | grep -c '^\^C again, or \^D, leaves$')" = 2 ]; }
wait_for said_twice || fail "the next ^C says nothing"
keys C-c
see 'rc=130'

# ---- the end of the input, typed during an answer, is not lost
start 60 24 "'$chat' --plain --no-save --ignore-eos -n 50 --cpu-mask ref --threads 1 '$slow'"
last_row '>'
keys 'go on' Enter
wait_for answers || fail "no answer"
keys C-d
see 'rc=0'

# ---- the editor: its text is the line
cat >"$work/editor" <<END
#!/bin/sh
cp "\$1" '$work/given'
printf 'from\nthe editor\n' >"\$1"
END
chmod +x "$work/editor"
start 60 24 "VISUAL='$work/editor' TMPDIR='$work' XDG_RUNTIME_DIR= '$chat' --plain '$work/model.gguf'"
last_row '>'
keys 'half a' C-o
see '^> from$'
last_row 'the editor'
[ "$(cat "$work/given")" = 'half a' ] || fail "the editor got another text"
keys C-_
last_row '> half a'
keys C-x C-e
last_row 'the editor'
keys Enter
see 'twelve$'
last_row '>'
keys "/export $work/edited.md" Enter
see '^qsf-chat: wrote'
last_row '>'
keys C-d
see 'rc=0'
grep -qx 'the editor' "$work/edited.md" || fail "the text of the editor was not sent"
start 60 24 "VISUAL= EDITOR= '$chat' --plain '$work/model.gguf'"
last_row '>'
keys 'stays' C-o
see '^no editor: set VISUAL or EDITOR$'
last_row '> stays'
keys C-u C-d
see 'rc=0'

# ---- what commands print is broken at words, too
start 80 100 "'$chat' --plain '$work/model.gguf'"
last_row '>'
keys '/help' Enter
see '^ """ ... """'
last_row '>'
rows | tr -s ' \n' '  ' | grep -q 'show the positions in the cache and what a token takes in each kind of layer' ||
    { rows; fail "/help breaks words"; }
keys C-l
see_gone '^ """ ... """'
keys '/help io' Enter
see 'bypass the page cache$'
last_row '>'
rows | tr -s ' \n' '  ' | grep -q 'direct on|off|auto: bypass the page cache' || { rows; fail "/help io breaks words"; }
keys C-d
see 'rc=0'

# ---- so is --help: the same words, whatever the width
for program in chat run get convert; do
    [ -x "$QSF_BUILDDIR/qsf-$program" ] || continue
    for width in 40 80; do
        start $width 900 "'$QSF_BUILDDIR/qsf-$program' --help"
        see 'rc=0'
        rows | grep -v '^rc=0$' | tr -s ' \n' '  ' >"$work/words"
        "$QSF_BUILDDIR/qsf-$program" --help | tr -s ' \n' '  ' | diff -q - "$work/words" >"$work/differ" ||
            { rows; fail "qsf-$program --help has other words at $width columns"; }
    done
done

# ---- quiet: neither prompt nor mark
start 60 24 "'$chat' --plain -q --seed 1 '$work/model.gguf'"
keys 'Hi' Enter
see 'twelve'
[ "$(rows | uniq | head -n 2)" = "Hi
one two three four five six seven eight nine ten eleven" ] || { rows; fail "-q: more than the answer"; }
keys C-d
see 'rc=0'
finish
