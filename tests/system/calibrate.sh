#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-convert --calibration: the same file for any number of threads and any budget, scores of layers, better
# weights, and no temporary files left.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$mktiny" ] || skip "not built"
cd "$work" || exit 1
guide=$QSF_SRCDIR/models/guide.qsf

"$mktiny" m.gguf hidden=128 heads=4 ffn=256 layers=3 wtype=1 || fail "mktiny"
for i in 1 2 3 4 5 6 7 8 9; do echo "line $i: abc def ghi jkl mno pqr stu vwx yz, abc ABC? $i$i$i and so on";
done >text.txt
echo '{"messages": [{"role": "user", "content": "abc def ghi?"}, {"role": "assistant", "content": "jkl mno pqr stu vwx, yz and so on."}]}' >chats.jsonl

# ---- the same file, however it is made

"$convert" -q 3bit --calibration text.txt -t 1 --json m.gguf a.qsf >report 2>err || fail "$(cat err)"
"$convert" -q 3bit --calibration text.txt -t 2 --ram-budget auto --quiet m.gguf b.qsf &&
    cmp -s a.qsf b.qsf || fail "other bytes with two threads"
"$convert" --verify --quiet a.qsf || fail "not whole"
"$convert" -q 3bit --quiet m.gguf plain.qsf && cmp -s a.qsf plain.qsf &&
    fail "the calibration changed nothing"
expect 2 'text.txt: the output is an input file' "$convert" -q 3bit --calibration text.txt m.gguf text.txt
expect 4 'smallest budget that works' "$convert" --calibration text.txt --ram-budget 1 m.gguf c.qsf
least=$(sure "$(sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p' err)")
"$convert" -q 3bit --calibration text.txt --ram-budget "${least}M" --quiet m.gguf b.qsf &&
    cmp -s a.qsf b.qsf || fail "other bytes with $least MB"
{ printf '\377\376' && sed 's/./&\n/g' text.txt | tr '\n' '\000' &&
    printf '\000\330'; } >damaged.txt # a half of a pair at the end
expect 0 'calibration damaged.txt: the text is damaged: it is cut, or characters of UTF-16' "$convert" -q \
    3bit --calibration damaged.txt --quiet m.gguf x.qsf
rm x.qsf
"$convert" --dry-run -q 3bit --calibration text.txt --json m.gguf x.qsf >dry || fail "--dry-run"
[ ! -e x.qsf ] || fail "--dry-run wrote a file"
grep -q "\"bytes\": $(wc -c <a.qsf)," dry || fail "--dry-run reports another size"

# ---- what is reported and stored in the file

"$convert" --calibration chats.jsonl m.gguf keep.qsf >out 2>err || fail "keep: $(cat err)"
grep -q '^layer  *cosine' out && grep -q '^2  *[01]\.' out || fail "no scores in: $(cat out)"
"$convert" --quiet keep.qsf again.qsf && "$convert" --quiet again.qsf third.qsf &&
    cmp -s again.qsf third.qsf || fail "a converted calibrated file differs"
for f in a.qsf keep.qsf again.qsf; do
    [ "$("$convert" --inspect $f | grep -c ', importance [01]')" = 3 ] ||
        fail "$f: $("$convert" --inspect $f)"
done
if have python3; then
    "$convert" --inspect --json a.qsf >inspected
    python3 - <<'END' || fail "--json: $(cat report)"
import json, math
d, i = json.load(open("report")), json.load(open("inspected"))
layers = d["calibration"]["layers"]
assert len(layers) == 3 and d["calibration"]["tokens"] > 300 and d["calibration"]["skip_tokens"] == 256
for l, s in zip(layers, i["sections"]):
    assert -1 <= l["cosine"] <= 1 and l["skip_kl"] > 0
    assert abs(l["importance"] - (1 - math.exp(-l["skip_kl"]))) < 1e-6 and abs(l["importance"] - s["importance"]) < 1e-6
packed = [t for t in d["tensors"] if "weighted_snr_db" in t]
assert len(packed) == 3 * 7 + 1 and sum(t["weighted_snr_db"] > t["snr_db"] for t in packed) > 11
END
fi

# ---- a directory

mkdir hf d && "$mktiny" hf dir=BF16 hidden=64 ffn=128 layers=2 || fail "mktiny"
echo 'ab a b c d ab a b c d ab a b c d ab a b c d ab a b c d ab a b c d' >letters.txt
"$convert" -q 4bit --calibration letters.txt hf d/o.qsf >out 2>err || fail "directory: $(cat err)"
"$convert" -q keep --quiet hf kept.qsf &&
    "$convert" -q 4bit --calibration letters.txt --quiet kept.qsf k.qsf || fail "the directory as a file"
scores() { "$convert" --inspect "$1" | sed -n 's/.*importance //p'; }
[ -n "$(scores k.qsf)" ] && [ "$(scores k.qsf)" = "$(scores d/o.qsf)" ] ||
    fail "a directory has other scores than its file: $(scores k.qsf) $(scores d/o.qsf)"
expect 3 'few.txt' sh -c "echo ab >few.txt; exec '$convert' --calibration few.txt hf d/o2.qsf"
[ "$(ls d)" = o.qsf ] || fail "temporary files left: $(ls d)"

# ---- bad input

printf 'abc\377' >bytes.txt
: >empty.txt
expect 3 'empty.txt.*is empty' "$convert" --calibration empty.txt m.gguf o.qsf
expect 3 'bytes.txt.*not UTF-8' "$convert" --calibration bytes.txt m.gguf o.qsf
expect 3 'few.txt.*too few' "$convert" --calibration few.txt m.gguf o.qsf
expect 3 'none.txt' "$convert" --calibration none.txt m.gguf o.qsf
expect 2 '--ram-budget requires --calibration' "$convert" --ram-budget 1G m.gguf o.qsf
expect 2 'ram-budget' "$convert" --calibration text.txt --ram-budget much m.gguf o.qsf
expect 2 'do not accept conversion options' "$convert" --inspect --calibration text.txt a.qsf
[ ! -e o.qsf ] || fail "invalid input created a file"

# ---- interrupted: while the model is running

# A text that takes many times as long as the wait, on any machine.
"$mktiny" large.gguf hidden=512 heads=8 ffn=1408 layers=8 || fail "mktiny"
for i in 1 2 3 4 5 6 7 8 9 10; do cat text.txt text.txt >t2 && mv t2 text.txt; done
mkdir i
"$convert" --calibration text.txt -t 1 large.gguf i/o.qsf >out 2>err &
pid=$!
# ticks: what it has computed, in units of at most 10 ms; reading the files takes a tenth of this.
ticks() { sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d ' ' -f 12; }
while kill -0 $pid 2>/dev/null && [ -e "/proc/$pid/stat" ] && [ "$(ticks)" -lt 20 ]; do sleep 0.02; done
kill -INT $pid
wait $pid
code=$?
[ $code = 130 ] || fail "SIGINT: status $code: $(cat err)"
[ -z "$(ls i)" ] || fail "SIGINT left: $(ls i)"

# ---- it helps: 3 bits of the built-in guide, on text other than the calibration text

if [ -f "$guide" ] && have python3 && [ -z "${QSF_TEST_QUICK-}" ]; then
    head -c 3000 "$QSF_SRCDIR/tests/data/guide/perplexity.txt" >held.txt
    cat >asked.jsonl <<'END'
{"messages": [{"role": "user", "content": "how do i make the answers shorter"}, {"role": "assistant", "content": "Type `/set max-tokens 100` for a limit, or ask for a short answer."}]}
{"messages": [{"role": "user", "content": "what is a gguf file"}, {"role": "assistant", "content": "GGUF is a file format that holds a whole model: weights, tokenizer and chat template."}]}
END
    "$run" --perplexity held.txt --kl-save base.kl "$guide" >/dev/null 2>err || fail "$(cat err)"
    "$convert" -q 3bit --quiet "$guide" g.qsf &&
        "$convert" -q 3bit --calibration asked.jsonl --quiet "$guide" gc.qsf || fail "the guide as 3bit"
    # A tied embedding is quantized without the head's weights, which would be wrong for the first layer's
    # input.
    python3 - <<'END' || fail "the calibration changed the embedding, which is the head too"
import struct
def embedding(name):
    data = open(name, 'rb').read()
    at = struct.unpack_from('<Q', data, 64)[0]
    return data[at:at + 16 + struct.unpack_from('<I', data, at + 4)[0]]
assert len(embedding('g.qsf')) > 100000 and embedding('g.qsf') == embedding('gc.qsf')
END
    for f in g.qsf gc.qsf; do "$run" --json --perplexity held.txt --kl-base base.kl $f >$f.json 2>err ||
        fail "$(cat err)"; done
    python3 -c 'import json; a, b = (json.load(open(f))["mean_kl"] for f in ("gc.qsf.json", "g.qsf.json")); assert a < 0.7 * b, (a, b)' || fail "calibration does not improve the guide"
fi
finish
