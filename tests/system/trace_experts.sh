#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --trace-experts: the file has the format of docs/FORMATS.md, and is the same at every budget and number of
# threads; both programs; files that cannot be written, and models without experts.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
sparse=$work/sparse.gguf trace=$work/t
"$QSF_BUILDDIR/obj/tests/tools/mkbig" "$sparse" layers=3 hidden=256 heads=4 ffn=256 experts=16 used=3 type=q8_0 \
    vocab=1000 || fail "mkbig"
record() {
    expect 0 '' "$run" "$sparse" -c 256 --batch 16 -n 5 --ignore-eos --temperature 0 -p "$(words 20)" \
        --trace-experts "$@"
}

record "$trace" --ram-budget 400M
# Of each pass, its lines come layer by layer; each has three experts.
awk 'NR == 1 { if ($0 != "# experts 1") exit 1; next }
    NR == 2 { if ($0 !~ /^# layers 3 experts 16 used 3 bytes [0-9]+$/) exit 1; next }
    $2 == "pass" { if (NR > 3 && (layer != 2 || pos != last)) exit 1
        first = $3; last = $3 + $4 - 1; layer = 0; pos = first - 1; passes++; tokens += $4; next }
    { if (++pos > last) { layer++; pos = first }
        if (NF != 5 || $1 != pos || $2 != layer || $3 == $4 || $4 == $5 || $3 == $5 || $3 > 15) exit 1 }
    END { if (passes < 6 || tokens < 24) exit 1 }' "$trace" || { head -20 "$trace"; fail "not the format"; }
least=$(least_budget -c 256 --batch 16 "$sparse")
for budget in $((least + 2)) $((least + 5)) $((least + 9)); do
    record "$work/other" --ram-budget "$budget" --threads 2
    cmp -s "$trace" "$work/other" || fail "other choices with $budget MB"
done
[ "$(stat -c %a "$trace")" = 600 ] || fail "others may read the choices"

# A line of the chat.
printf 'one\n/quit\n' | "$QSF_BUILDDIR/qsf-chat" --plain --no-save -n 3 --trace-experts "$work/chat" "$sparse" \
    >"$work/out" 2>"$work/err" || fail "qsf-chat: $?"
grep -q '^# pass 0 ' "$work/chat" || fail "qsf-chat records nothing"

expect 2 'trace-experts /nowhere/t: No such file' "$run" "$sparse" -p a --trace-experts /nowhere/t
expect 2 'this is the model' "$run" "$sparse" -p a --trace-experts "$sparse"
echo 'not a trace' >"$work/notes"
expect 2 'notes: exists and is not a trace; not overwritten' "$run" "$sparse" -p a --trace-experts "$work/notes"
[ "$(cat "$work/notes")" = 'not a trace' ] || fail "another file was overwritten"
expect 2 'trace-experts takes the name of a file' "$run" "$sparse" -p a --trace-experts ''
expect 2 'needs a mode that evaluates' "$run" --plan "$sparse" --trace-experts "$trace"
if [ -c /dev/full ]; then
    expect 0 'no longer recorded: /dev/full: No space left' "$run" "$sparse" -p a -n 3 --trace-experts /dev/full
    printf 'one\n/quit\n' | "$QSF_BUILDDIR/qsf-chat" --plain --no-save -n 3 --trace-experts /dev/full "$sparse" \
        >"$work/out" 2>"$work/err" || fail "qsf-chat with a full disk: $?"
    cat "$work/out" "$work/err" | grep -q 'no longer recorded' || fail "the chat does not say that it is full"
fi
rm -f "$work/none"
expect 0 'the model has no experts' "$run" "$tiny" -p a -n 2 --trace-experts "$work/none"
[ ! -e "$work/none" ] || fail "an empty file of a model without experts"
finish
