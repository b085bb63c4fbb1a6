#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The facts of the built-in guide agree with the tables of commands, options and keys, and the text to train it on can
# be made from them: enough of it, the same for the same seed, without the questions it is judged by.
. "$(dirname "$0")/lib.sh"
have python3 || skip "no python3: the facts of the built-in guide were not checked"
generate="$QSF_SRCDIR/tools/guide/generate"

"$generate" --check >"$work/check" 2>&1 || { grep -v '^note:' "$work/check"; fail "facts and tables differ"; }

# Twice the same sample, byte for byte, and distinct dialogues only.
"$generate" -n 300 -s 7 >"$work/a.jsonl" || fail "300 dialogues could not be made"
PYTHONHASHSEED=1 "$generate" -n 300 -s 7 >"$work/b.jsonl"
cmp -s "$work/a.jsonl" "$work/b.jsonl" || fail "the same seed gives other dialogues"
[ "$(sort -u "$work/a.jsonl" | wc -l)" = 300 ] || fail "dialogues repeat"

# Every pool of questions counts once without values and slips of the fingers.
count=$("$generate" --count-questions -n 20000) || fail "the questions could not be counted"
[ "${count%% *}" -ge 20000 ] || fail "only $count"

# What is left out stays out.
sed -n '1,40s/.*"user", "content": "\([^"\\]*\)".*/\1/p' "$work/a.jsonl" | sort -u >"$work/held"
[ -s "$work/held" ] || fail "no questions to leave out"
"$generate" -n 300 -s 7 --check-overlap "$work/held" >/dev/null && fail "an overlap was not seen"
"$generate" -n 300 -s 7 --exclude "$work/held" --check-overlap "$work/held" >"$work/overlap" ||
    { cat "$work/overlap"; fail "questions that were left out are there"; }

# A fact that is wrong, and a row without a word of help, are found by file and line.
cp -R "$QSF_SRCDIR/tools/guide/facts" "$QSF_SRCDIR/tools/guide/lists.txt" "$work/"
printf '\n[lie]\na: Type `/nosuch` or press F11.\nmust: /nosuch\n' >>"$work/facts/chat.txt"
lines=$(wc -l <"$work/facts/chat.txt")
"$generate" --check --facts "$work/facts" >"$work/lie" 2>&1 && fail "an invented command passed"
grep -q "facts/chat.txt:$((lines - 2)): .*/nosuch" "$work/lie" || { cat "$work/lie"; fail "an invented command was not named"; }
grep -q 'no key F11' "$work/lie" || fail "an invented key was not named"

mkdir "$work/tree"
(cd "$QSF_SRCDIR" && cp -R ui src templates configure "$work/tree/")
sed 's|^    { "help", "?",|    { "frobnicate", "", "[N]", "turn the knob N times round", UI_ARG_NONE, 0 },\n&|' "$work/tree/ui/commands.c" >"$work/c" &&
    cp "$work/c" "$work/tree/ui/commands.c"
"$generate" --check --root "$work/tree" >"$work/new" 2>&1 || { cat "$work/new"; fail "a new command needs work by hand"; }
"$generate" --root "$work/tree" --intents "$work/intents" -n 10 >/dev/null
grep -q 'turn the knob N times round' "$work/intents" || fail "a new command is not learnt"
sed 's|"turn the knob N times round"|""|' "$work/tree/ui/commands.c" >"$work/c" && cp "$work/c" "$work/tree/ui/commands.c"
"$generate" --check --root "$work/tree" >"$work/new" 2>&1 && fail "a command without help passed"
grep -q 'ui/commands.c:[0-9]*: /frobnicate has no help' "$work/new" || { cat "$work/new"; fail "a command without help was not named"; }
finish
