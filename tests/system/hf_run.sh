#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A Hugging Face directory runs like a file with the same weights: the same tokens and probabilities for any
# budget, back end and number of threads, and within the budget.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$mktiny" ] || skip "not built"
cd "$work" || exit 1

mkdir hf && "$mktiny" hf dir=BF16 hidden=256 heads=4 ffn=512 layers=6 || fail "mktiny"
"$convert" -q keep --quiet hf kept.qsf || fail "keep"
say() { "$run" "$1" --kv-type f16 -p 'ab a b' -n 12 --temp 0 -c 64 --ignore-eos $2 2>err ||
    fail "$1 $2: $(cat err)"; }
say kept.qsf >want
say hf >got && cmp -s want got || fail "a directory says something else"
for io in uring pread mmap; do
    # Each way to read needs memory of its own.
    least=$("$run" hf --kv-type f16 -p x -n 1 --ram-budget 1 --io $io 2>&1 |
        sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p')
    [ -n "$least" ] || fail "no smallest budget"
    least=$(sure "${least:-1}")
    for o in "--ram-budget ${least}M" "--threads 1" "--ram-budget ${least}M --direct on" \
        "--direct off --threads 2"; do
        say hf "--io $io $o" >got && cmp -s want got || fail "other tokens with --io $io $o"
    done
done
# the kernel's peak is within the budget
if [ -z "${QSF_SAN-}" ]; then
    "$run" hf --kv-type f16 -p 'ab a b' -n 12 --temp 0 -c 64 --ignore-eos --ram-budget "${least}M" --json \
        >out 2>err || fail "$(cat err)"
    peak=$(sed -n 's/.*"peak_rss_mb": \([0-9.]*\).*/\1/p' out)
    awk -v p="$peak" -v b="$least" 'BEGIN { exit !(p > 0 && p <= b) }' || fail "peak of $peak MB at $least MB"
fi
"$run" hf --inspect >out || fail "--inspect"
grep -q 'blk.0.attn_q.weight' out || fail "--inspect: $(cat out)"
"$run" hf --plan >out || fail "--plan"

# end tokens and chat templates are in every file that is made of it
cp -r hf ends && mkdir ends/additional_chat_templates || fail "cp"
echo '{"eos_token_id": [0, 1, 2, 3, 4, 5, 6]}' >ends/generation_config.json
printf 'rag' >ends/additional_chat_templates/rag.jinja
"$convert" -q keep --quiet ends ends.qsf && "$convert" --quiet ends ends.gguf &&
    "$convert" --quiet ends.qsf back.gguf || fail "ends"
for model in ends ends.qsf ends.gguf back.gguf; do
    "$run" "$model" -p 'ab a b' -n 12 --temp 0 -c 64 --json 2>/dev/null |
        grep -q '"tokens": 0, "stop": "eos"' || fail "$model: an end token does not end the answer"
    "$run" "$model" --show-prompt -p x --template model:rag >out 2>err || fail "$model: $(cat err)"
    grep -q 'template model:rag' err || fail "$model has no template rag: $(cat err)"
done

# a damaged part is an error that names the file
cp -r hf cut && truncate -s -64 cut/model.safetensors
expect 3 'cut/model.safetensors.*truncated' "$run" cut -p x -n 1

# each vendor is in the list that the program looks up, and each architecture in the documented one
for file in "$QSF_SRCDIR"/src/file/hf/arch/*.c; do
    vendor=$(basename "$file" .c)
    grep -q "X($vendor)" "$QSF_SRCDIR/src/file/hf/arch/vendors.h" || fail "arch/vendors.h lacks $vendor"
    names=$(sed -n 's/.*\.name = "\([A-Za-z0-9_]*\)".*/\1/p' "$file")
    [ -n "$names" ] || fail "$file has no architectures"
    for name in $names; do
        grep -q "^| .$vendor\.c. | .*\b$name\b" "$QSF_SRCDIR/docs/FORMATS.md" ||
            fail "docs/FORMATS.md lacks $name in $vendor.c"
    done
done

finish
