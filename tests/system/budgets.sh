#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every budget is kept and does not change the answer: 40 of them from the smallest that works to twice the
# file, then long prompts, and other ways to read and to compute.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
big_model
steps=40 long=2000 less=2 \
    # the rounded memory of a process before it plans differs by a MB from run to run (src/plan/pricing.c)
[ -z "${QSF_TEST_QUICK-}" ] || steps=6 long=200
if [ -n "${QSF_SAN-}" ]; then
    echo "skip: peak memory is not compared in a sanitizer build"
    steps=4 long=100 less=8
fi

# ask BUDGET PROMPT OPTIONS...: a greedy answer of $file; its text is $whole, if that is set, and its peak
# below the budget.
ask() {
    budget=$1 prompt=$2
    shift 2
    "$run" --json --temperature 0 --ignore-eos -n 3 -p "$prompt" --kv-type "$type" --ram-budget "$budget" \
        "$@" "$file" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = 0 ] || { cat "$work/err"; fail "exit $got at $budget MB: $*"; return; }
    ! sanitized "$work/err" ||
        { cat "$work/err"; fail "sanitizer report at $budget MB: $*"; }
    [ "$(answer_text)" = "${whole-}" ] || [ -z "${whole-}" ] || fail "another text at $budget MB: $*"
    [ -n "${QSF_SAN-}" ] || at_most "$(number peak_rss_mb)" "$budget" ||
        fail "peak of $(number peak_rss_mb) MB at $budget MB: $*"
}
# answer_types: of K and V in $work/out.
answer_types() { sed -n 's/.*"k_type": "\([a-z0-9]*\)", "v_type": "\([a-z0-9]*\)".*/\1\/\2/p' "$work/out"; }
# resident PROMPT OPTIONS...: sets $whole, with everything in RAM and one thread.
resident() {
    whole=''
    ask $((2 * big_mb + 200)) "$@" -t 1
    whole=$(answer_text)
    [ -n "$whole" ] || fail "no answer with everything resident"
}

file=$big short=$(words 12) type=f16
resident "$short"
least=$(least_budget --kv-type f16 "$big") || fail "1 MB was not refused with exit 4"
[ -n "$least" ] || { cat "$work/err"; fail "the refusal does not end with the smallest budget"; finish; }
least=$(sure "$least")
ask "$least" "$short"
expect 4 'smallest budget that works' "$run" -n 1 -p a --kv-type f16 --ram-budget $((least - less)) "$big"
for i in $(seq 0 $((steps - 1))); do
    ask "$(awk -v a="$least" -v b=$((2 * big_mb)) -v t="$i" -v n=$((steps - 1)) 'BEGIN { printf "%.0f", a * (b / a) ^ (t / n) }')" "$short"
done

if [ -n "${QSF_SAN-}" ] && [ -n "${QSF_TEST_QUICK-}" ]; then
    echo "skip: QSF_TEST_QUICK leaves out other ways and long prompts in a sanitizer build"
    finish
fi

# Other options, at a budget that pins some.
middle=$((big_mb * 45 / 100))
for way in "--io uring --direct on" "--io uring --direct off" "--io pread --direct on --slots 1" \
    "--io pread --direct off --slots 2" \
    "--io mmap --slots 3" "--slots 4 -t 3" "--pin 0 -t 1" "--pin 0 --slots 1 -t 2" "--batch 3" \
    "-t 3 --pin 40M" "--embedding resident" "--embedding lru" "--embedding lru --pin 0"; do
    # shellcheck disable=SC2086
    ask $middle "$short" $way
done
# shellcheck disable=SC2086
for way in "--io uring --slots 1" "--io pread --slots 4" "--io mmap --pin 0" "-t 3"; do
    tight=$(least_budget --kv-type f16 $way "$big")
    ask "$(sure "${tight:-1}")" "$short" $way
done

# A long prompt; its context is given, so it is not lowered.
text=$(words $long)
ctx=$((long + 100))
resident "$text" -c $ctx
[ "$(number prompt_tokens)" -ge $long ] || fail "the long prompt has $(number prompt_tokens) tokens"
tight=$(sure "$(least_budget --kv-type f16 -c $ctx "$big")")
# At the smallest budget one slot of a few kilobytes serves every pass, which takes a minute for such a
# prompt; so one MB more.
for budget in $((${tight:-1} + 1)) $((big_mb * 60 / 100)); do
    ask "$budget" "$text" -c $ctx
done

# While the context is short, its memory holds weights: fewer bytes per token, within the same budget.
if [ "$long" -ge 1000 ]; then
    ask $((big_mb * 60 / 100)) "$text" -c $ctx --slots 1
    late=$(number bytes_per_token)
    resident "$short" -c $ctx
    ask $((big_mb * 60 / 100)) "$short" -c $ctx --slots 1
    early=$(number bytes_per_token)
    awk -v a="$early" -v b="$late" 'BEGIN { exit !(a > 0 && a < b) }' ||
        fail "$early bytes per token at the start, $late when the context is full"
fi

# Embedding and head in one table, other formats.
for keys in "tied=1 type=q4_k layers=4" "tied=1 type=f16 layers=1 vocab=16000" \
    "type=q4_0 layers=5 hidden=512 heads=8 ffn=1536"; do
    file=$work/other.gguf
    # shellcheck disable=SC2086
    "$maker" "$file" $keys || fail "mkbig $keys"
    mb=$(($(wc -c <"$file") / 1048576 + 1))
    resident "$short"
    tight=$(sure "$(least_budget --kv-type f16 "$file")")
    # A sanitizer build is larger than these files: then some of the budgets are too small.
    for budget in "${tight:-1}" $(((${tight:-1} + mb) / 2)) "$mb" $((mb + 20)); do
        [ "$budget" -lt "${tight:-1}" ] || ask "$budget" "$short"
    done
done

# Types that are chosen: f16 where there is memory, fewer bits where a context of this size would not fit
# otherwise. Within the budget, and the same text as with that type.
file=$big type=auto whole=
ctx=1024
roomy=$(least_budget --kv-type f16 -c $ctx "$big")
tight=$(least_budget -c $ctx "$big")
[ "${tight:-0}" -lt "${roomy:-0}" ] || fail "types with fewer bits save nothing: $tight MB, $roomy MB"
ask $((2 * big_mb + 200)) "$short" -c $ctx
[ "$(answer_types)" = f16/f16 ] || fail "$(answer_types) with everything resident"
ask "$(sure "${tight:-1}")" "$short" -c $ctx
chosen=$(answer_types)
[ "$chosen" != f16/f16 ] || fail "f16 at the smallest budget"
grep -q 'KV cache .* instead of f16' "$work/err" ||
    { cat "$work/err"; fail "nothing is said about the type"; }
whole=$(answer_text) type=auto
ask $((2 * big_mb + 200)) "$short" -c $ctx --k-type "${chosen%/*}" --v-type "${chosen#*/}"
finish
