#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Markdown on the screen: an answer of a model that follows a script, at three sizes; its source by /raw, and
# in pipes; links in a terminal that has them.
. "$(dirname "$0")/lib.sh"
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$mktiny" ] || skip "mktiny is not built"

# Each word is a token, "_" is a blank.
# shellcheck disable=SC2016 # backquotes are Markdown
answer='#_Plan

 Some_**bold **_text,_`code` _and_[docs](http ://x.y/z).

 -_one
-_two
__-_[x ]_done

10._ten

 |_name_|_n_|
 |---|--:|
|_a_|_1_|

 ```c
int_x;
 ```

>_quote'
"$mktiny" "$work/md.gguf" "script=$answer" \
    'chat_template={% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>' || fail "mktiny"

# ---- pipes have the source
printf 'Hi\n/raw\n' | chat_lines 0 "$work/md.gguf"
grep -qx '# Plan' "$work/out" && grep -qxF '  - [x] done' "$work/out" && grep -qxF '|---|--:|' "$work/out" ||
    { cat "$work/out"; fail "a pipe does not have the source"; }
for width in 19 2001 -1 x ''; do
    chat_lines 2 --width "$width" "$work/md.gguf" </dev/null
    err_has '(--width must be 20 to 2000|needs a value|empty)'
done

need_tmux
run="FORCE_HYPERLINK=0 $chat --no-save $work/md.gguf"
# ask COLUMNS ROWS: the model has answered.
ask() {
    start "$1" "$2" "$run"
    see '^>'
    keys Hi Enter
    see '│ quote'
}

ask 100 30
see '^ Plan *(│|$)'
see 'Some bold text, code and docs \(http://x\.y/z\)\.'
see '^ • one '
see '^   ☑ done '
see '^ 10\. ten '
see '^ name │ n '
see '^ a    │ 1 '
see '^ ┌─ c  \[1\] ──'
see '^ │ int x; '
not_see '\*\*|```|^ #'
wide_enough 100
keys /raw Enter
see '^ # Plan '
see '\*\*bold\*\*'
keys '/raw off' Enter
see_gone '\*\*bold'
size 80 24
keys PPage
see 'docs \(http://x\.y/z\)\.'
keys NPage
see '^ │ int x;'
wide_enough 80
size 40 12
see 'ctx7%'
wide_enough 40

ask 40 12
keys PPage
see '^     a    │ 1'
keys PPage
see '^     Some bold text, code and docs$'
keys PPage
see '^ai > Plan'
wide_enough 40

# ---- a terminal with links: their URLs are in control sequences, not on the screen
start 80 24 "FORCE_HYPERLINK=1 script -qfc '$chat --no-save $work/md.gguf' $work/typescript"
if have script; then
    see '^>'
    keys Hi Enter
    see 'code and docs\.'
    wait_for grep -qF ';http://x.y/z' "$work/typescript" || fail "no link was written"
fi

# ---- narrower text in a wide window
start 120 30 "$chat --no-save --width 20 $work/md.gguf"
see '^>'
keys Hi Enter
see '^ Some bold text, code  '
finish
