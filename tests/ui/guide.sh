#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The chat without a model: the built-in guide on the screen and in a pipe, selected again after another
# model, and the messages if its file is damaged or missing.
. "$(dirname "$0")/lib.sh"
[ -f "$QSF_SRCDIR/models/guide.qsf" ] || { fail "models/guide.qsf is not in the source tree"; finish; }

# ---- lines

echo 'How do I load a model?' | chat_lines 0 --temp 0
out_has '/model'
cp "$work/out" "$work/first"
echo 'How do I load a model?' | chat_lines 0 --temp 0 --pin 0 -t 1 guide
cmp -s "$work/out" "$work/first" ||
    { cat "$work/first" "$work/out"; fail "streamed, the guide gives another answer"; }
printf '/model %s\n/model guide\nHow do I load a model?\n' "$stories" | chat_lines 0 --temp 0
cmp -s "$work/out" "$work/first" ||
    { cat "$work/first" "$work/out"; fail "selected again, the guide gives another answer"; }
"$QSF_BUILDDIR/qsf-run" --temp 0 guide -p 'How do I load a model?' >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "qsf-run guide"; }
cmp -s "$work/out" "$work/first" ||
    { cat "$work/first" "$work/out"; fail "qsf-run's guide gives another answer"; }

# A file of that name needs a path.
cp "$stories" "$work/guide"
(cd "$work" && echo hello | "$chat" --verbose -n 2 ./guide) >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "a file called guide"; }
grep -q 'QSF guide' "$work/err" && fail "./guide is mistaken for the built-in guide"

# Damaged: a message and exit 3, or the next command is executed; missing: a notice, and commands work.
mkdir -p "$work/bad/models"
head -c 100000 "$QSF_SRCDIR/models/guide.qsf" >"$work/bad/models/guide.qsf"
QSF_DATADIR=$work/bad
export QSF_DATADIR
echo hello | chat_lines 3
err_has 'bad/models/guide.qsf.*'
err_has 'built-in guide is damaged or missing'
err_has '/model FILE'
printf '/model %s\nhello\n' "$stories" | chat_lines 3 -n 3
[ -s "$work/out" ] || fail "no answer after a damaged guide and a good /model"
unset QSF_DATADIR
here=$chat
mkdir "$work/alone"
cp "$chat" "$work/alone/"
chat=$work/alone/qsf-chat
prefix=$(sed -n 's/^datadir = //p' "$QSF_BUILDDIR/config.mk")
if ! [ -f "$prefix/qsf/models/guide.qsf" ]; then
    echo /help | chat_lines 0
    err_has 'the built-in guide is not installed'
    echo hello | chat_lines 1
    err_has 'no model is loaded: use /model FILE'
    echo hello | chat_lines 3 guide
    err_has 'guide.qsf'
fi
chat=$here

# ---- the screen

need_tmux
for size in '100 30' '80 24' '40 12'; do
    # shellcheck disable=SC2086
    start $size "'$chat' --temp 0"
    see 'QSF guide is ready'
    see 'Tab How do I load a model\?.*  /model PATH$'
    see 'Type a question, or press Tab'
    wide_enough "${size% *}"
    keys C-d
    see '^rc=0'
done

start 100 30 "'$chat' --temp 0 --session first"
see 'I am the built-in guide'
keys Tab
see '^> How do I load a model\?'
keys Tab
see '^> Where are models\?'
keys Tab Tab
see '^> How do I load a model\?'
keys Enter
see '│ How do I load a model\?'
see '[0-9]+ tok .* t/s'
not_see '^ Tab How do I load'
# Tab completes commands again; the guide is among the models.
keys /model Space gui Tab
see '^> /model guide'
keys C-c
keys "/model $stories" Enter
see 'is ready: llama [0-9]+K'
# The conversation stays on the screen, and only there.
see 'new conversation: the messages above were for the guide'
see '^ you .* not in the context'
see 'CTX 0/(512|2048)'
keys "/model guide" Enter
see '^ qsf-chat  first  QSF guide' # the notice of the first load is still there
see '^ Tab How do I load'
keys Tab Tab Enter
see '│ Where are models\?'
see '#4 .*[0-9]+ tok .* t/s'
keys C-d
see '^rc=0'
grep -q '"model".*"guide"' "$XDG_DATA_HOME/qsf/sessions/first.jsonl" ||
    { cat "$XDG_DATA_HOME/qsf/sessions/first.jsonl"; fail "the session does not name the guide"; }

# The session restores it, without offers to a user who has asked already.
start 80 24 "'$chat' --continue"
see 'QSF guide is ready'
see '│ Where are models\?'
see 'ctx [1-9][0-9]*/1024'
not_see '│ How do I load a model'
not_see '^ Tab How do I load'
keys C-d
see '^rc=0'
start 80 24 "QSF_DATADIR='$work/bad' '$chat' --no-save"
see 'damaged' # or missing: with a long path on another line
keys "/model $stories" Enter
see 'is ready'
keys C-d
finish
