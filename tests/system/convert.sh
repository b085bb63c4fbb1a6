#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-convert: the same answers after keep, every format runs, the report is correct, invalid input leaves no
# file.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$mktiny" ] || skip "not built"
cd "$work" || exit 1
guide=$QSF_SRCDIR/models/guide.qsf

ids() { "$run" --json -p 'abc abc' -n 8 --temp 0 --template raw "$1" 2>err |
    sed 's/.*"text": \("[^}]*"\), "prompt_tokens.*/\1/'; }

# ---- unchanged

for spec in 'wtype=0' 'wtype=2 tied=1' 'wtype=8 kv_heads=1'; do
    # shellcheck disable=SC2086 # words
    "$mktiny" m.gguf hidden=128 heads=4 ffn=256 layers=3 $spec || fail "mktiny"
    "$convert" m.gguf m.qsf >out 2>err || fail "$spec: $(cat err)"
    "$convert" --verify m.qsf >out 2>err || fail "$spec: $(cat err)"
    # The header stores values that metadata may omit; converted again, the file has them in both places, and
    # from then on files are identical.
    "$convert" --quiet m.qsf two.qsf && "$convert" --quiet two.qsf three.qsf && cmp -s two.qsf three.qsf ||
        fail "$spec: a converted QSF file differs"
    [ "$(ids m.gguf)" = "$(ids m.qsf)" ] && [ "$(ids m.gguf)" = "$(ids three.qsf)" ] ||
        fail "$spec: other answers"
done
for model in "$QSF_TEST_DATA"/parity/llama "$QSF_TEST_DATA"/parity/quant_q4_k_m \
    "$QSF_TEST_DATA"/parity/quant_tq2_0; do
    [ -f "$model/model.gguf" ] || { echo "skip: no $model"; continue; }
    "$convert" --quiet "$model/model.gguf" p.qsf && "$run" --parity "$model" p.qsf >out 2>err ||
        fail "$model: $(cat out err)"
done
# A model in a cache of another program, by its name.
mkdir -p cache home
mv two.qsf cache/named-model.qsf
(
    export HOME="$work/home" LLAMA_CACHE="$work/cache" OLLAMA_MODELS="$work/none" HF_HOME="$work/none"
    "$convert" --quiet Named-Model four.qsf && cmp -s three.qsf four.qsf || echo "not found"
    "$convert" --inspect named-model | grep -q '^.*/cache/named-model.qsf: QSF' || echo "not inspected"
    "$convert" named-modle five.qsf 2>&1
    echo $?
) >out 2>err
printf 'qsf-convert: named-modle: no such model; did you mean named-model?\n3\n' | cmp -s - out ||
    fail "a model by its name: $(cat out err)"
# Tensors that are fused in the input are split here, and all of them exist.
for model in gpt2 phi2 phi3 qwen2 qwen3moe gemma3 bitnet_i2_s; do
    [ -f "$QSF_TEST_DATA/parity/$model/model.gguf" ] || { echo "skip: no parity/$model"; continue; }
    "$convert" --quiet "$QSF_TEST_DATA/parity/$model/model.gguf" p.qsf &&
        "$convert" --verify --quiet p.qsf || fail "$model"
    "$convert" -q 8bit --quiet p.qsf p8.qsf && "$convert" --verify --quiet p8.qsf || fail "$model as 8bit"
done

# ---- requantized

"$mktiny" m.gguf hidden=256 heads=4 ffn=256 layers=2 wtype=0 || fail "mktiny"
types='mixed 2bit-book 3bit-book 4bit-book 2bit 2bit-asym 3bit 4bit ternary 8bit f16 q4_0 q8_0 q2_k q3_k q4_k q6_k'
[ -z "${QSF_TEST_QUICK-}" ] || types='ternary 3bit-book'
for type in $types; do
    "$convert" -q $type -t 3 --json m.gguf t.qsf >report 2>err || { fail "$type: $(cat err)"; continue; }
    case $type in
    mixed | *book) "$convert" -q $type -t 1 --quiet m.gguf one.qsf && cmp -s t.qsf one.qsf ||
        fail "$type: other bytes with one thread" ;;
    esac
    "$convert" --verify --quiet t.qsf || fail "$type: incomplete"
    [ "$(ids t.qsf | wc -c)" -gt 4 ] || fail "$type does not run: $(cat err)"
    "$convert" --dry-run -q $type --json m.gguf x.qsf >dry || fail "$type: --dry-run"
    [ ! -e x.qsf ] || fail "--dry-run wrote a file"
    bytes=$(wc -c <t.qsf)
    grep -q "\"written\": true, \"bytes\": $bytes," report ||
        fail "$type: the report has another size than $bytes"
    grep -q "\"written\": false, \"bytes\": $bytes," dry ||
        fail "$type: --dry-run reports another size than $bytes"
done
"$convert" -q 3bit-book --quiet m.gguf t.qsf && "$run" --inspect t.qsf >out && grep -q '^  QSB3 ' out ||
    fail "--inspect counts no 3bit-book: $(grep -A4 'weight types' out)"
# Signal to noise ratio in the report (these weights are uniformly distributed): about 6 dB per bit, and the
# search is better than the plain rule.
snr() { "$convert" -q "$1" --rule "$2" m.gguf t.qsf | awk '$1 == "blk.1.attn_q.weight" { print $5 }'; }
awk -v a="$(snr 2bit-asym search)" -v b="$(snr 2bit-asym minmax)" -v c="$(snr 4bit search)" -v \
    d="$(snr q4_k search)" \
    'BEGIN { exit !(a > 9 && a > b + 1.5 && b > 5 && c > 20 && c < 26 && d > c) }' ||
    fail "signal to noise: $(snr 2bit-asym search) $(snr 2bit-asym minmax) $(snr 4bit search) $(snr q4_k search)"
# The built-in guide, requantized from 8 to 4 bits, still answers.
if [ -f "$guide" ] && [ -z "${QSF_TEST_QUICK-}" ]; then
    "$convert" -q q4_k --quiet "$guide" g.qsf || fail "the guide as q4_k"
    "$run" -p 'What is a RAM budget?' -n 40 --temp 0 g.qsf 2>err | grep -qi 'budget' ||
        fail "the guide as q4_k does not mention budgets"
    "$convert" -q f16 "$guide" g.qsf >out || fail "the guide as f16"
    grep -q 'already as small' out || fail "8 bits became 16: $(tail -1 out)"
fi

# ---- rows and groups of 16: each is converted to the other, byte for byte, and both give the same answers

answer() { "$run" "$@" -p 'abc abc' -n 8 --temp 0 --template raw 2>err; }
for type in ternary 3bit-book 8bit f16; do
    "$convert" -q $type --quiet m.gguf t.qsf && "$convert" --layout rows --quiet t.qsf r.qsf &&
        "$convert" --quiet r.qsf x.qsf &&
        "$convert" --layout rows --quiet x.qsf r2.qsf && cmp -s r.qsf r2.qsf ||
        fail "$type: rows, groups, rows differ"
    "$convert" --inspect r.qsf | grep -q x16 && fail "$type: --layout rows left groups"
    "$convert" --inspect x.qsf | grep -q 'flags.* x16' || [ $type = f16 ] || fail "$type: no groups"
    answer r.qsf >out && answer x.qsf >have && cmp -s out have || fail "$type: groups give another answer"
    [ $type = ternary ] || [ -z "${QSF_TEST_QUICK-}" ] || break
done
"$convert" -q q4_k --layout rows --quiet m.gguf r.qsf && "$convert" --quiet r.qsf x.qsf || fail "q4_k"
for level in ref sse42 avx2 avxvnni avx512 neon dotprod i8mm; do
    answer --cpu-mask $level r.qsf >out || continue # not of this machine
    for with in '--pin 0' '--pin 300K --threads 1' '--pin 0 --io mmap'; do
        # shellcheck disable=SC2086 # words
        answer --cpu-mask $level $with x.qsf >have && cmp -s out have ||
            fail "$level $with: groups give another answer: $(cat err)"
    done
done

# ---- a target size

full=$(wc -c <m.gguf)
sizes='0.5 0.8 1.2'
[ -z "${QSF_TEST_QUICK-}" ] || sizes=0.8
for mb in $sizes; do
    "$convert" --target-size $mb m.gguf s.qsf >out 2>err ||
        { fail "--target-size $mb: $(cat err)"; continue; }
    awk -v mb=$mb -v n="$(wc -c <s.qsf)" -v full="$full" \
        'BEGIN { most = mb * 1048576; exit !(n <= most && (n > 0.9 * most || n > full)) }' ||
        fail "--target-size $mb made $(wc -c <s.qsf) bytes"
    "$convert" --verify --quiet s.qsf || fail "--target-size $mb: incomplete"
done
expect 2 'the smallest file for this model has' "$convert" --target-size 0.01 m.gguf s2.qsf
expect 2 'cannot be combined with' "$convert" --target-size 1 -q keep m.gguf s2.qsf

# ---- info and verify

"$convert" --inspect t.qsf >out || fail "--inspect"
grep -q 'layer 1 .*CRC32' out && grep -q 'blk.1.ffn_down.weight' out ||
    fail "--inspect shows no layers: $(cat out)"
if have python3; then
    "$convert" --inspect --json t.qsf |
        python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["layers"] == 2 == len(d["sections"]) and len(d["tensors"]) > 16' || fail "--inspect --json"
    python3 -c 'import json, sys; d = json.load(open("report")); assert all(t["bits"] > 1 for t in d["tensors"])' || fail "--json"
fi
"$convert" --verify - <t.qsf >out 2>err || fail "--verify -: $(cat err)"

# ---- invalid input: a message, and no file left

mkdir d && cd d || exit 1
head -c 200 /dev/zero >zeros
cp ../t.qsf damaged.qsf
printf 'X' | dd of=damaged.qsf bs=1 seek=$(($(wc -c <damaged.qsf) / 2)) conv=notrunc 2>/dev/null
head -c 30000 ../m.gguf >short.gguf
ls >before
expect 3 'zeros' "$convert" zeros o.qsf
expect 3 'short.gguf' "$convert" short.gguf o.qsf
expect 3 'none.gguf' "$convert" none.gguf o.qsf
expect 3 'damaged.qsf.*byte offset' "$convert" --verify damaged.qsf
expect 3 'byte offset' sh -c "head -c 9000 ../t.qsf | '$convert' --verify -"
expect 3 'not a QSF file' "$convert" --inspect ../m.gguf
expect 2 't.qsf: the output is an input file' "$convert" ../t.qsf ../t.qsf
expect 2 'is not a quantization type' "$convert" -q 5bit ../m.gguf o.qsf
expect 2 'must be one of: search, minmax' "$convert" --rule best ../m.gguf o.qsf
expect 2 'must be one of: x16, rows' "$convert" --layout x8 ../m.gguf o.qsf
expect 2 'not a number' "$convert" -t 0 ../m.gguf o.qsf
expect 2 'expected INPUT and OUTPUT' "$convert" ../m.gguf
expect 2 'unknown option' "$convert" --ctx 1 ../m.gguf o.qsf
expect 2 'do not accept conversion options' "$convert" --verify -q 4bit ../t.qsf
expect 1 'nowhere' "$convert" ../m.gguf nowhere/o.qsf
expect 1 'o.qsf' sh -c "ulimit -f 100; exec '$convert' ../m.gguf o.qsf" # a full disk
rm -f out err
ls >../after
cmp -s before ../after || fail "temporary files left: $(cat ../after)"
cd ..

# ---- interrupted or killed: an existing file of that name is still there, and nothing else

"$mktiny" big.gguf hidden=512 heads=8 ffn=1408 layers=8 vocab=1000 wtype=1 || fail "mktiny"
mkdir i && echo old >i/o.qsf
# The new file has no name if the file system supports that: it is visible among the open ones.
writes() { find "/proc/$1/fd" -lname "$work/i/*" 2>/dev/null | grep -q .; }
for sig in INT:130 TERM:143 KILL:137; do
    n=0 code=0
    while [ $code = 0 ] && [ $n -lt 50 ]; do # it may have ended before the signal
        echo old >i/o.qsf
        "$convert" -q q2_k big.gguf i/o.qsf >out 2>err &
        pid=$!
        while ! writes $pid && kill -0 $pid 2>/dev/null; do sleep 0.02; done
        kill -${sig%:*} $pid 2>/dev/null
        wait $pid
        code=$?
        n=$((n + 1))
    done
    [ $code = ${sig#*:} ] || fail "SIG$sig: status $code: $(cat err)"
    [ "$(ls i)" = o.qsf ] && [ "$(cat i/o.qsf)" = old ] || fail "SIG$sig left: $(ls i)"
done
echo dead >i/o.qsf.0123abcd.qsf-part # of a process killed on another file system
"$convert" --quiet m.gguf i/o.qsf && [ "$(ls i)" = o.qsf ] || fail "leftovers were not removed: $(ls i)"
finish
