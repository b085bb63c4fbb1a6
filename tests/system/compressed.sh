#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Compressed layers: the same answers as without, at every budget and I/O mode; damaged ones are refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
convert=$QSF_BUILDDIR/qsf-convert
[ -x "$convert" ] || skip "not built"
cd "$work" || exit 1
"$QSF_BUILDDIR/obj/tests/tools/mkbig" m.gguf twins=1 layers=5 hidden=256 heads=4 ffn=768 vocab=1000 \
    type=mixed || fail "mkbig"

# ask BUDGET FILE OPTIONS...: a greedy answer in $text, and its peak below the budget.
ask() {
    budget=$1 file=$2
    shift 2
    "$run" --kv-type f16 --json --temperature 0 --ignore-eos -n 2 -p a --ram-budget "$budget" "$@" "$file" \
        >out 2>err </dev/null || { cat err; fail "$file at $budget MB: $*"; }
    text=$(answer_text)
    [ -n "${QSF_SAN-}" ] || at_most "$(number peak_rss_mb)" "$budget" ||
        fail "$file: peak of $(number peak_rss_mb) MB at $budget MB: $*"
}

ask 400 m.gguf
whole=$text
[ -n "$whole" ] || fail "no answer"
ways=auto
grep -q '^#define QSF_HAVE_ZSTD 1' "$QSF_BUILDDIR/config.h" && ways='auto zstd'
for how in lz4 $ways; do
    layout=rows # with repetitions that LZ4 finds
    [ $how != zstd ] || layout=x16
    "$convert" --layout $layout --compress $how m.gguf $how.qsf >report || fail "--compress $how"
    grep -q '^5 of 5 layers compressed' report || fail "$how: $(tail -2 report)"
    "$convert" --verify $how.qsf | grep -q '5 of them compressed' || fail "$how: --verify"
    "$convert" --verify - <$how.qsf >/dev/null || fail "$how: --verify -"
    least=$(least_budget --kv-type f16 $how.qsf)
    least=$(sure "${least:-1}")
    ask "$least" $how.qsf
    [ "$text" = "$whole" ] || fail "$how: another answer at $least MB"
    [ $how = lz4 ] || continue
    ask $((least + 2)) $how.qsf
    [ "$text" = "$whole" ] || fail "$how: another answer at $((least + 2)) MB"
    ask 400 $how.qsf
    [ "$text" = "$whole" ] || fail "$how: another answer in RAM"
done
"$convert" --quiet --layout x16 --compress lz4 m.gguf x16.qsf || fail "--layout x16"
for way in '--pin 0' '--cpu-mask ref --pin 0' '--cpu-mask ref'; do
    # shellcheck disable=SC2086 # words
    ask 100 x16.qsf $way
    [ "$text" = "$whole" ] || fail "interleaved: another answer with $way"
done
less=1
[ -z "${QSF_SAN-}" ] || less=8
least=$(least_budget --kv-type f16 lz4.qsf)
expect 4 'smallest budget that works' "$run" --kv-type f16 -n 1 -p a --ram-budget $((least - less - 1)) \
    lz4.qsf
for way in '--io pread --slots 1 -t 1' '--io mmap --pin 0 --slots 3' '--pin 1M --batch 2'; do
    [ -z "${QSF_TEST_QUICK-}" ] || continue
    # shellcheck disable=SC2086 # words
    ask 100 lz4.qsf $way
    [ "$text" = "$whole" ] || fail "another answer with $way"
done
"$run" --plan --pin 0 --ram-budget 100 lz4.qsf >out || fail "--plan"
grep -q 'read per token .* MB, compressed' out || fail "--plan does not report what is read: $(cat out)"

# ---- the file

"$convert" --inspect lz4.qsf | grep -q 'layer 4 .*lz4 of [0-9]* bytes, [45][0-9]\.[0-9] % saved' ||
    fail "--inspect: $("$convert" --inspect lz4.qsf | grep 'layer 4')"
"$convert" --dry-run --compress lz4 m.gguf x.qsf | grep -q '^not written: x.qsf: at most' ||
    fail "--dry-run does not say at most"
"$convert" --quiet --compress none lz4.qsf back.qsf && "$convert" --quiet --compress none m.gguf plain.qsf &&
    "$convert" --quiet --compress none plain.qsf again.qsf || fail "back"
cmp back.qsf again.qsf || fail "decompressed layers differ"
"$convert" --target-size 2 m.gguf s.qsf >report || fail "--target-size"
[ "$(wc -c <s.qsf)" -le $((2 * 1048576)) ] || fail "--target-size 2 made $(wc -c <s.qsf) bytes"
expect 2 'must be one of: none, lz4' "$convert" --compress best m.gguf x.qsf
expect 2 'do not accept conversion options' "$convert" --verify --compress lz4 lz4.qsf
case $ways in auto) expect 2 'configured without zstd' "$convert" --compress zstd m.gguf x.qsf ;; esac

# ---- damage: reported by every program that encounters it

at=$("$convert" --inspect lz4.qsf | sed -n 's/^  layer 2  *at *\([0-9]*\) .*/\1/p')
cp lz4.qsf bad.qsf
printf 'XXXX' | dd of=bad.qsf bs=1 seek=$((at + 1000)) conv=notrunc 2>/dev/null
expect 3 "bad.qsf: layer 2 from byte offset $at" "$convert" --verify bad.qsf
expect 3 "bad.qsf: layer 2 from byte offset $at" "$run" -n 2 -p a bad.qsf
expect 3 "bad.qsf: layer 2 from byte offset $at" "$run" -n 2 -p a --pin 0 bad.qsf
expect 3 'bad.qsf' "$convert" bad.qsf x.qsf
[ ! -e x.qsf ] || fail "a temporary file was left"
finish
