#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Pictures: --svg of --plan and --bench, and those of docs/pictures, of which most are drawn from the tables
# beside them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
cd "$work" || exit 1

# well_formed FILE WORDS...: XML without scripts and links, with all of these texts.
well_formed() {
    have python3 || return 0
    file=$1
    shift
    py - "$file" "$@" <<'PY' || fail "$file is not a picture as it should be"
import sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
space = '{http://www.w3.org/2000/svg}'
allowed = 'svg title desc style rect line polyline polygon circle text'.split()
for e in root.iter():
    if e.tag.removeprefix(space) not in allowed or any(':' in k or k.startswith('on') for k in e.keys()):
        sys.exit('%s %s' % (e.tag, e.keys()))
text = '\n'.join(''.join(e.itertext()) for e in root.iter())
for word in sys.argv[2:]:
    if word not in text:
        sys.exit('missing: ' + word)
PY
}

# Usage.
expect 2 '--svg requires --plan or --bench' "$run" --svg x.svg "$tiny" -p a
expect 2 '--svg requires --plan or --bench' "$run" --svg x.svg --inspect "$tiny"
expect 2 'empty' "$run" --plan --svg= "$tiny"
expect 2 'both write to stdout' "$run" --plan --svg - --json "$tiny"
expect 2 'neither -p nor -n may be 0' "$run" --bench -p 0 --svg x.svg "$tiny"
expect 2 'svg /dev/null: is not a regular file' "$run" --plan --svg /dev/null "$tiny"
expect 2 'writes the same file' "$run" --plan --svg both -o both "$tiny"
expect 1 'nowhere/x.svg' "$run" --plan --svg nowhere/x.svg "$tiny"
expect 1 'nowhere/x.svg' "$run" --bench -p 4 -n 1 -r 1 --svg nowhere/x.svg "$tiny"
cp "$tiny" model.gguf
ln -s model.gguf link.svg
expect 2 'is the model' "$run" --plan --svg link.svg model.gguf
cmp -s "$tiny" model.gguf || fail "the model was replaced by a picture"

# The text is printed, too; the name of the file is not markup.
name=$(printf 'a <b>&"\033\n.gguf')
cp "$tiny" "$name"
expect 0 '' "$run" --plan --svg plan.svg "$name"
grep -q '^budget' out || fail "--plan --svg prints no plan"
well_formed plan.svg 'What a RAM budget buys' 'a <b>&"??.gguf' 'chosen' '200'
expect 0 '' "$run" --plan --json --svg json.svg "$tiny"
grep -q '^{"budget"' out || fail "--plan --json --svg prints no JSON"

# On standard output there is nothing else.
expect 0 '' "$run" --plan --svg - "$tiny"
well_formed out 'What a RAM budget buys'
expect 0 '--svg: prompts of 8 to .* tokens, [0-9]+ round' "$run" --bench -p 8 -n 2 -r 1 --svg - "$tiny"
well_formed out 'Prefill, tokens per second' 'Decoding, tokens per second' 'attention output' '256'

# The budgets ascend, and each is one that works.
budgets=$(sed -n 's/.*y="618"[^>]*>\([0-9,]*\)<.*/\1/p' plan.svg | tr -d ,)
[ "$(echo "$budgets" | wc -l)" -ge 2 ] || fail "too few budgets: $budgets"
[ "$budgets" = "$(echo "$budgets" | sort -n -u)" ] || fail "budgets do not ascend: $budgets"
for mb in $budgets; do
    "$run" --plan --ram-budget "$mb" "$tiny" >/dev/null 2>&1 || fail "a budget of $mb MB does not work"
done

# What exists is replaced by a complete picture only. -r 1000 takes longer than the signal.
echo old >kept.svg
chmod 640 kept.svg
"$run" --bench -p 8 -n 64 -r 1000 --log-file log --svg kept.svg "$tiny" >out 2>err &
pid=$!
until grep -qs loaded log || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -INT $pid
wait $pid
[ $? = 130 ] || { cat err; fail "a signal does not end --bench --svg with 130"; }
[ "$(cat kept.svg)" = old ] || fail "a picture that was not finished replaced a file"
(ulimit -f 1; "$run" --plan --svg kept.svg "$tiny" >/dev/null 2>err)
[ $? = 1 ] && grep -q 'kept.svg' err || { cat err; fail "no error for a disk that is full"; }
[ "$(cat kept.svg)" = old ] || fail "a failed write replaced a file"
[ -z "$(find . -name '*qsf-part*')" ] || fail "temporary files are left"
expect 0 '' "$run" --plan --svg kept.svg "$tiny"
well_formed kept.svg 'chosen'

# The documents.
mkdir drawn
"$QSF_SRCDIR/tools/pictures" "$QSF_BUILDDIR" drawn >err 2>&1 || { cat err; fail "tools/pictures failed"; }
for new in drawn/*.svg; do
    cmp "$new" "$QSF_SRCDIR/docs/pictures/${new#*/}" >err 2>&1 ||
        { cat err; fail "${new#*/} differs from its table: run tools/pictures"; }
done
for svg in "$QSF_SRCDIR"/docs/pictures/*.svg; do
    well_formed "$svg"
    grep -q "pictures/${svg##*/})" "$QSF_SRCDIR/README.md" "$QSF_SRCDIR"/docs/*.md ||
        fail "no document shows ${svg##*/}"
done
grep -ho 'pictures/[a-z0-9-]*\.svg' "$QSF_SRCDIR/README.md" "$QSF_SRCDIR"/docs/*.md >shown
[ "$(wc -l <shown)" -gt 7 ] || fail "too few pictures in the documents"
while read -r svg; do
    [ -f "$QSF_SRCDIR/docs/$svg" ] || fail "a document shows $svg, which does not exist"
done <shown

finish
