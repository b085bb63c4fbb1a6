#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The facts of the built-in guide agree with the tables of commands, options and keys, and its training text
# can be generated from them: enough of it, the same for the same seed, without the questions used for
# evaluation.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086 # $plain is two words
have python3 || skip "no python3: the facts of the built-in guide were not checked"
[ -z "${QSF_SAN-}" ] || skip "Python alone: nothing here for the sanitizers"
generate="$QSF_SRCDIR/tools/guide/generate"
pack="$QSF_SRCDIR/tools/guide/pack"

"$generate" --check >"$work/check" 2>&1 || { grep -v '^note:' "$work/check"; fail "facts and tables differ"; }

# The facts without the archive of further questions, where those do not matter: half the time.
mkdir "$work/plain"
cp -R "$QSF_SRCDIR/tools/guide/facts" "$QSF_SRCDIR/tools/guide/lists.txt" "$work/plain/"
plain="--facts $work/plain/facts"

# The same sample twice, byte for byte, with distinct dialogues only.
"$generate" $plain -n 300 -s 7 >"$work/a.jsonl" || fail "300 dialogues could not be made"
PYTHONHASHSEED=1 "$generate" $plain -n 300 -s 7 >"$work/b.jsonl"
cmp -s "$work/a.jsonl" "$work/b.jsonl" || fail "the same seed gives other dialogues"
[ "$(sort -u "$work/a.jsonl" | wc -l)" = 300 ] || fail "dialogues repeat"

# A written fact takes over the questions and follow-ups of the generated ones that it covers.
PYTHONDONTWRITEBYTECODE=1 python3 - "$QSF_SRCDIR/tools/guide" <<'EOF' || fail "covers: has no effect"
import random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from guidelib.derive import settle
from guidelib.dialogue import Corpus
from guidelib.facts import FactError, Intent
from guidelib.thesaurus import Thesaurus
def facts(*more):
    return [Intent('undo', 'f:1', ['Back.'], q=[('q', 'take it back', 'f:2')], covers=['/undo', *more]),
            Intent('new', 'f:8', ['New.'], q=[('q', 'start anew', 'f:9')], then=[('command-undo', 'and back', 'f:10')])]
def made():
    return [Intent('command-undo', 't:1', ['/undo: back.'], rows=['/undo'], derived=True, q=[('q', 'what does /undo do', 't:1')],
                   then=[('undo', 'and how', 't:1'), ('command-show', 'and see', 't:1')]),
            Intent('command-show', 't:2', ['Shows.'], rows=['/show'], derived=True, q=[('q', 'show it', 't:2')])]
undo, new = written = facts()
left = settle(written, made())
assert [i.id for i in left] == ['command-show'], left
assert undo.then == [('command-show', 'and see', 't:1')] and new.then == [('undo', 'and back', 'f:10')], (undo.then, new.then)
corpus = Corpus(written + left, {}, {'do': [], 'what': []}, [], random.Random(1), Thesaurus(Path('none')))
assert sorted(corpus.asked['undo']) == ['take it back', 'what does /undo do'], corpus.asked
for wrong, says in ((facts('/gone'), 'covers /gone, which no generated fact explains'),
                    (facts() + [Intent('back', 'f:20', covers=['/undo'])], 'f:20: [back] covers /undo, as [undo] does')):
    try:
        settle(wrong, made())
    except FactError as e:
        assert says in str(e), e
    else:
        raise AssertionError(says)
EOF

# Every pool of questions counts once, without values and typing errors; the facts alone have enough.
count=$("$generate" $plain --count-questions -n 20000) || fail "the questions could not be counted"
[ "${count%% *}" -ge 20000 ] || fail "only $count"

# Held-out questions stay out.
sed -n '1,40s/.*"user", "content": "\([^"\\]*\)".*/\1/p' "$work/a.jsonl" | sort -u >"$work/held"
[ -s "$work/held" ] || fail "no questions to leave out"
"$generate" $plain -n 300 -s 7 --check-overlap "$work/held" >/dev/null && fail "an overlap was not detected"
"$generate" $plain -n 300 -s 7 --exclude "$work/held" --check-overlap "$work/held" >"$work/overlap" ||
    { cat "$work/overlap"; fail "held-out questions are in the text"; }

# The questions for the final and for the interim evaluation: well formed, each answered correctly by its own
# fact; the former are not in the training text.
held="$QSF_SRCDIR/tests/data/guide/heldout.jsonl" dev="$QSF_SRCDIR/tests/data/guide/dev.jsonl"
score="$QSF_SRCDIR/tools/guide/score.py"
"$generate" --intents "$work/intents.jsonl" -n 3000 --check-overlap "$held" >"$work/overlap" ||
    { cat "$work/overlap"; fail "held-out questions are trained on"; }
for set in "$held" "$dev"; do
    "$score" --held "$set" --check "$work/intents.jsonl" >"$work/set" 2>&1 ||
        { cat "$work/set"; fail "the questions of ${set##*/} are not well formed"; }
done

# Errors in a set are reported by line, and so are answers that are wrong or name things that do not exist.
sed 's/"must": \[\["Ctrl-C"\]\]/"must": [["Ctrl-C", "\/nosuch"]]/' "$held" >"$work/bad.jsonl"
"$score" --held "$work/bad.jsonl" --check "$work/intents.jsonl" 2>"$work/set" &&
    fail "a question that wants an invented command was accepted"
grep -q '^bad.jsonl:[0-9]*: must: no command /nosuch' "$work/set" ||
    { cat "$work/set"; fail "the invented command was not reported"; }
sed -n '2s/$/\n/p;2p' "$held" >"$work/bad.jsonl"
"$score" --held "$work/bad.jsonl" --check "$work/intents.jsonl" 2>"$work/set" &&
    fail "a duplicate question was accepted"
cat >"$work/answers" <<'EOF'
{"id": "stop-answer.1", "answer": "Press ^C, and the answer stops."}
{"id": "set-temperature.1", "answer": "Type `/set temp 0.35`."}
{"id": "set-temperature.2", "answer": "Type `/temp 1.25`."}
{"id": "save-chat.1", "answer": "Type `/save`, or `/archive --deep` and F9."}
EOF
"$score" "$work/answers" >"$work/out" && fail "a low score was accepted"
grep -q '^stop-answer.1:\|^set-temperature.1:' "$work/out" &&
    fail "correct answers in other words were judged wrong"
grep -q '^set-temperature.2: lacks /temp 1.2 ' "$work/out" || fail "a wrong value was judged right"
grep -q '^save-chat.1: invents --deep; invents /archive; invents F9' "$work/out" ||
    fail "invented names were not detected"
grep -q ' right (2 of [0-9]*), 3 invented names' "$work/out" ||
    { tail -1 "$work/out"; fail "the score is wrong"; }

# Errors in a fact, and rows without a help text, are reported by file and line.
cp -R "$QSF_SRCDIR/tools/guide/facts" "$QSF_SRCDIR/tools/guide/lists.txt" "$work/"
printf '\n[lie]\na: Type `/nosuch` or press F11.\nmust: /nosuch\n' >>"$work/facts/chat.txt"
lines=$(wc -l <"$work/facts/chat.txt")
"$generate" --check --facts "$work/facts" >"$work/lie" 2>&1 && fail "an invented command was accepted"
grep -q "facts/chat.txt:$((lines - 2)): .*/nosuch" "$work/lie" ||
    { cat "$work/lie"; fail "an invented command was not reported"; }
grep -q 'no key F11' "$work/lie" || fail "an invented key was not reported"
# Additional questions belong to an existing fact and have no answers. They are read from the archive or,
# unpacked, from the directory; the reported place is the same.
mkdir "$work/questions"
more="$work/questions/more.txt"
printf '[nobody-knows]\nq:\n  is this known\n' >"$more"
"$generate" --facts "$work/facts" -n 1 >/dev/null 2>"$work/err" &&
    fail "questions of a missing fact were accepted"
grep -q 'questions/more.txt:1: no fact \[nobody-knows\]' "$work/err" ||
    { cat "$work/err"; fail "the place was not reported"; }
cp -p "$more" "$work/more.txt"
"$pack" "$work" || fail "the questions were not packed"
[ ! -e "$work/questions" ] || fail "the directory still exists after packing"
"$generate" --facts "$work/facts" -n 1 >/dev/null 2>"$work/archived" &&
    fail "an archive with questions of a missing fact was accepted"
cmp -s "$work/err" "$work/archived" ||
    { cat "$work/archived"; fail "the place in the archive was not reported"; }
cp "$work/questions.tar.xz" "$work/first.tar.xz"
tar xf "$work/questions.tar.xz" -C "$work" && touch -d 2001-01-01 "$more" && chmod 600 "$more" &&
    "$pack" "$work"
cmp -s "$work/first.tar.xz" "$work/questions.tar.xz" ||
    fail "packing the same questions again gave another archive"
"$pack" "$work" 2>"$work/err" && fail "packing without a directory was accepted"
grep -q 'unpack them with: tar xf' "$work/err" ||
    { cat "$work/err"; fail "the error does not say how to unpack"; }
echo 'not an archive' >"$work/questions.tar.xz"
"$generate" --facts "$work/facts" -n 1 >/dev/null 2>"$work/err" && fail "a damaged archive was accepted"
grep -q '^generate: questions.tar.xz: ' "$work/err" ||
    { cat "$work/err"; fail "the damaged archive was not reported"; }
rm "$work/questions.tar.xz"
mkdir "$work/questions"
printf '[undo]\na: Another answer.\n' >"$more"
"$generate" --facts "$work/facts" -n 1 >/dev/null 2>"$work/err" &&
    fail "an answer among the questions was accepted"
mkdir "$work/sound" "$work/sound/questions"
cp -R "$QSF_SRCDIR/tools/guide/facts" "$QSF_SRCDIR/tools/guide/lists.txt" "$work/sound/"
printf '[undo]\nq:\n  ram budget\n' >"$work/sound/questions/more.txt"
"$generate" --check --facts "$work/sound/facts" >"$work/clash" 2>&1 &&
    fail "a question of the directory was not checked"
grep -q "'ram budget' is a question of" "$work/clash" ||
    { cat "$work/clash"; fail "a conflict between two facts was not reported"; }

# Synonyms: they are not used in commands, and an invalid line is reported.
printf '# words\ndoes: doth\nbudget: purse|allotment\ntemp: heat\n' >"$work/plain/thesaurus.txt"
"$generate" $plain -n 2000 -s 7 >"$work/words.jsonl" || fail "no dialogues with synonyms"
grep -q 'doth' "$work/words.jsonl" && grep -q 'purse' "$work/words.jsonl" || fail "no word was replaced"
grep -Eq '[/-](purse|allotment|heat)' "$work/words.jsonl" && fail "a command or option was exchanged"
printf 'one: Two!\n' >"$work/plain/thesaurus.txt"
"$generate" $plain -n 1 >/dev/null 2>"$work/err" && fail "an invalid line was accepted"
grep -q '^generate: thesaurus.txt:1: ' "$work/err" ||
    { cat "$work/err"; fail "the line of the thesaurus was not reported"; }
rm "$work/plain/thesaurus.txt"

mkdir "$work/tree"
(cd "$QSF_SRCDIR" && cp -R ui get src templates configure "$work/tree/")
sed 's|^    { "help", "?",|    { "frobnicate", "", "[N]", "turn the knob N times round", UI_ARG_NONE, 0 },\n&|' "$work/tree/ui/commands.c" >"$work/c" &&
    cp "$work/c" "$work/tree/ui/commands.c"
"$generate" $plain --check --root "$work/tree" >"$work/new" 2>&1 ||
    { cat "$work/new"; fail "a new command needs manual changes"; }
"$generate" $plain --root "$work/tree" --intents "$work/intents" -n 10 >/dev/null
grep -q 'turn the knob N times round' "$work/intents" || fail "a new command is not trained"
sed 's|"turn the knob N times round"|""|' "$work/tree/ui/commands.c" >"$work/c" &&
    cp "$work/c" "$work/tree/ui/commands.c"
"$generate" $plain --check --root "$work/tree" >"$work/new" 2>&1 && fail "a command without help was accepted"
grep -q 'ui/commands.c:[0-9]*: /frobnicate has no help' "$work/new" ||
    { cat "$work/new"; fail "a command without help was not reported"; }
finish
