#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run and bad input: a message that names the file or option, and the exit code of the contract.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"

expect 2 'MODEL' "$run"
expect 2 'no-such-option' "$run" --no-such-option "$tiny"
expect 2 'did you mean --temperature' "$run" --temprature 1 "$tiny"
expect 2 'temperature' "$run" --temperature hot "$tiny" -p x
expect 2 'top-p' "$run" --top-p 1.5 "$tiny" -p x
expect 2 'ram-budget' "$run" --ram-budget 12q "$tiny" -p x
expect 2 'cpu-mask' "$run" --cpu-mask fast "$tiny" -p x
for value in 0 1.01 -0.5 nan fast ''; do
    expect 2 'quality takes a number above 0' "$run" --quality "$value" "$tiny" -p x
done
expect 2 '--quality 0.5 does not work with --eviction-policy sliding: ' "$run" --quality 0.5 \
    --eviction-policy sliding "$tiny" -p x
expect 2 'does not work with --eviction-policy h2o' "$QSF_BUILDDIR/qsf-chat" --plain --eviction-policy h2o \
    --quality 0.5 "$tiny"
expect 2 'only one of' "$run" --bench --plan "$tiny"
expect 2 'jsonl' "$run" --jsonl "$tiny" -p x
expect 2 'repeats' "$run" --bench -r 0 "$tiny"
expect 2 'prompt' "$run" --bench -p abc "$tiny"
expect 2 'unexpected argument' "$run" "$tiny" "$tiny" -p x
expect 2 'template' "$run" "$tiny" --template no-such-template -p x
expect 1 '' env QSF_CPU_MASK=neon "$run" "$tiny" -p x
case $(uname -m) in aarch64) ;; *) expect 1 'neon' "$run" --cpu-mask neon "$tiny" -p x ;; esac

expect 3 'absent.gguf.*No such file' "$run" "$work/absent.gguf" -p x
expect 3 "$work: this is a folder" "$run" "$work" -p x
echo "this is a text file, not a model" >"$work/text.gguf"
expect 3 'text.gguf' "$run" "$work/text.gguf" -p x
: >"$work/empty.gguf"
expect 3 'empty.gguf' "$run" "$work/empty.gguf" -p x
mkfifo "$work/fifo.gguf"
expect 3 'fifo.gguf' "$run" "$work/fifo.gguf" -p x
printf 'model\033[31m' >"$work/$(printf 'esc\033]0;x.gguf')"
expect 3 '' "$run" "$work/$(printf 'esc\033]0;x.gguf')" -p x
grep -q "$(printf '\033')" "$work/err" && fail "an escape of a file name reached stderr"

size=$(wc -c <"$tiny")
for cut in 3 10 40 200 1000 $((size / 2)) $((size - 1)); do
    head -c "$cut" "$tiny" >"$work/cut.gguf"
    expect 3 'cut.gguf' "$run" "$work/cut.gguf" -p x
done
sed 's/llama/llamb/g' "$tiny" >"$work/arch.gguf"
expect 3 'arch.gguf.*llamb' "$run" "$work/arch.gguf" -p x
# Bad metadata of real shapes of models: the plan is refused with the key, or the tensor whose shape it makes
# wrong.
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures
[ -d "$cases" ] || echo "skip: $cases is absent"
for case in llama qwen3moe gemma2 deepseek2 mamba2 rwkv7; do
    model=$cases/$case/model.gguf
    [ -f "$model" ] || continue
    for spec in block_count=int:0 block_count=int:4294967295 block_count=int:3 embedding_length=int:0 \
        embedding_length=int:33 \
        context_length=int:0 vocab_size=str:x attention.head_count=int:3 \
        attention.head_count_kv=int:4294967295 \
        attention.key_length=int:4096 expert_count=int:4294967295 ssm.state_size=int:0 wkv.head_size=int:7; do
        "$run" --plan --override-kv "$case.$spec" "$model" >/dev/null 2>"$work/err"
        rc=$?
        [ $rc = 0 ] || [ $rc = 3 ] || fail "exit $rc: $case --override-kv $spec"
        [ $rc = 0 ] || grep -qE "${spec%%=*}|tensor '" "$work/err" ||
            { cat "$work/err"; fail "$case: the message does not name ${spec%%=*}"; }
        "$run" --inspect --override-kv "$case.$spec" "$model" >/dev/null 2>&1 ||
            fail "--inspect: $case --override-kv $spec"
    done
done
expect 3 'tokens.txt' "$run" --parity "$work/no-such-dir" "$tiny"

expect 4 'smallest budget that works: [0-9]+ MB' "$run" --ram-budget 1 "$tiny" -p x
[ ! -s "$work/out" ] || fail "a refusal wrote to stdout"
least=$(tail -n 1 "$work/err" | sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p')
[ -n "$least" ] || { cat "$work/err"; fail "the last line of the refusal is not the smallest budget"; }
if [ -n "$least" ] && [ -z "${QSF_SAN:-}" ]; then
    expect 0 '' "$run" --ram-budget "$least" "$tiny" -p x -n 4 --temperature 0
    # The resident set differs a little between runs, because file pages are mapped in windows that begin at
    # random places (src/plan/pricing.c): the budget in the message may be 1 MB too large, not 2.
    expect 4 'smallest budget' "$run" --ram-budget $((least - 2)) "$tiny" -p x -n 4
    expect 4 'smallest budget' "$run" --ram-budget "$least" -c 500000 "$tiny" -p x -n 4
fi

long=$(awk 'BEGIN { for (i = 0; i < 700; i++) printf "zq " }')
expect 5 "$tiny: the prompt has [0-9]+ tokens, more than the context" "$run" "$tiny" -p "$long"
[ ! -s "$work/out" ] || fail "a prompt that does not fit gave an answer"
# A text that is much longer is not tokenized at all; one that must be, because tokens may leave the context,
# is refused when that takes too much memory: here one long word.
head -c 3000000 /dev/zero | tr '\0' q >"$work/word"
if [ -z "${QSF_SAN:-}" ]; then
    # The transcript of the word takes 18 MB, its tokens 230: far from both, whatever this machine's programs
    # take in memory.
    run_word() { "$run" --ram-budget 100 "$tiny" "$@" <"$work/word"; }
    expect 5 "$tiny: the prompt has more than [0-9]+ tokens, more than the context" run_word
    expect 4 'RAM budget exceeded: tokenizing the text' run_word --eviction-policy sliding
    tail -n 1 "$work/err" | grep -qE '^smallest budget that works: [0-9]+ MB$' ||
        { cat "$work/err"; fail "a refused text names no budget"; }
fi
# A text is only read as far as the budget has memory for it: this one never ends.
some=$(mb 100)
yes | "$run" --ram-budget "$some" "$tiny" >"$work/out" 2>"$work/err"
[ $? = 4 ] || fail "a text without an end: not exit 4"
grep -q "^qsf-run: stdin: more than .* for which the RAM budget of $some MB has no memory" "$work/err" ||
    { cat "$work/err"; fail "a text without an end: another message"; }
head -c 60000000 /dev/zero | tr '\0' ' ' >"$work/long"
expect 4 '--file .*/long: more than .*: raise --ram-budget to [0-9]+' "$run" --ram-budget "$some" "$tiny" -f "$work/long"
tail -n 1 "$work/err" | grep -qE '^smallest budget that works: [0-9]+ MB$' ||
    { cat "$work/err"; fail "a refused file names no budget"; }
rm "$work/long"
# From a pipe, too: the budget that is named reads the text and makes a prompt of it.
some=$(mb 30)
words 4500000 >"$work/piped"
cat "$work/piped" | "$run" --ram-budget "$some" --eviction-policy sliding -n 1 "$tiny" >"$work/out" 2>"$work/err"
[ $? = 4 ] || fail "a long text from a pipe: not exit 4"
works=$(sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")
[ -n "$works" ] || { cat "$work/err"; fail "a refused text from a pipe names no budget"; }
cat "$work/piped" | "$run" --ram-budget "$(sure "${works:-1}")" -n 1 "$tiny" >"$work/out" 2>"$work/err"
[ $? = 5 ] || { cat "$work/err"; fail "the budget named for a text from a pipe does not read it"; }
rm "$work/piped"
# Neither may the headers of a model take more than the budget, or 64 MB if that is less.
mkdir "$work/wide"
cat >"$work/wide/config.json" <<'EOF'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 300,
 "max_position_embeddings": 128, "rms_norm_eps": 1e-6}
EOF
{
    printf '\000\102\144\004\000\000\000\000' # 73679360 bytes of header
    printf '{"__metadata__": {"x": "'
    head -c 73679333 /dev/zero | tr '\0' x
    printf '"}}'
} >"$work/wide/model.safetensors"
expect 4 'wide: opening it takes more than 64 MB for headers and vocabulary: raise --ram-budget' \
    "$run" --ram-budget 40 "$work/wide" -p a
rm -r "$work/wide"
expect 5 'context' "$run" "$tiny" -c 32 -p a -n 0 --ignore-eos
[ -s "$work/out" ] || fail "the text before the context was full was not printed"
expect 6 '' "$run" "$tiny" -p a -n 3 --ignore-eos --fail-on-length
expect 0 '' "$run" "$tiny" -p a -n 3 --ignore-eos

# stdout: a full disk is reported, a closed reader is not.
# full COMMAND...: writing to a full disk is an error with a message.
full() {
    echo 1 | "$@" >/dev/full 2>"$work/err"
    [ $? = 1 ] || fail "a full stdout did not exit with 1: $*"
    grep -qE '^qsf-[a-z]+: (stdout|standard output): ' "$work/err" ||
        { cat "$work/err"; fail "a full stdout gave no message: $*"; }
}
if [ -w /dev/full ]; then
    full "$run" "$tiny" -p a -n 5 --ignore-eos
    full "$run" "$tiny" -p a -n 5 --json
    for option in --help --version; do
        for program in qsf-run qsf-chat qsf-convert qsf-get qsf-serve; do
            [ ! -x "$QSF_BUILDDIR/$program" ] || full "$QSF_BUILDDIR/$program" $option
        done
    done
    for option in --inspect --plan --show-prompt --tokenize --detokenize; do full "$run" "$tiny" $option; done
    full "$run" "$tiny" --bench -p 1 -n 1 -r 1
fi
# A filter ends at a signal wherever it is: here in a write to a full pipe.
mkfifo "$work/pipe"
exec 3<>"$work/pipe"
yes '"one word and another"' | head -n 200000 >"$work/lines"
"$run" --tokenize --jsonl "$tiny" <"$work/lines" >"$work/pipe" 2>"$work/err" &
pid=$!
head -c 1 <&3 >/dev/null # the output has begun; all of it does not fit in a pipe
kill -INT $pid
wait $pid # one that ignores the signal waits for a reader, and this for it
got=$?
exec 3>&-
[ $got = 130 ] || fail "SIGINT during --tokenize: status $got"

# A name cannot add lines to a message.
lines=$(printf 'a\nqsf-run: b')
for words in "--$lines" "$lines.gguf" "$tiny $lines"; do
    # shellcheck disable=SC2086
    (IFS=' '; "$run" $words -p a) >"$work/out" 2>"$work/err"
    [ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "a name adds lines: $words"; }
done
expect 0 'unknown pre-tokenizer "a\^Jqsf-run: b": using' "$run" --tokenize "$QSF_SRCDIR/models/guide.qsf" \
    --override-kv "tokenizer.ggml.pre=str:$lines"

"$run" "$tiny" -p a -n 5 --ignore-eos >&- 2>"$work/err"
[ $? = 1 ] || fail "a closed stdout did not exit with 1"
# A pipe without a reader before the first write. A reader is opened first, because opening a FIFO for writing
# waits for one.
exec 4<>"$work/pipe" 5>"$work/pipe" 4<&-
"$run" "$tiny" -p a -n 5 --ignore-eos >&5 5>&- 2>"$work/err"
rc=$?
exec 5>&-
[ $rc = 1 ] || fail "EPIPE did not exit with 1 but $rc"
grep -v '^seed [0-9]*$' "$work/err" && fail "EPIPE gave a message"
finish
