#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run's contract with scripts: the contents of stdout, prompts from -p and stdin, JSON, tokens, and the
# same answer for any threads, budget, pinning, batch and (greedy) instruction set.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
greedy="--temperature 0 --ignore-eos -n 24"

# shellcheck disable=SC2086
{
answer=$("$run" "$tiny" $greedy -p 'a the in' 2>"$work/err" </dev/null) ||
    { cat "$work/err"; fail "no answer"; }
same() {
    got=$("$run" "$tiny" $greedy "$@" 2>"$work/err" </dev/null) || { cat "$work/err"; fail "failed: $*"; }
    [ "$got" = "$answer" ] || fail "another answer with: $*"
}
same -p 'a the in' -t 1
same -p 'a the in' -t 2
same -p 'a the in' -t 3
same -p 'a the in' --pin 0
same -p 'a the in' --pin 0 -t 1
same -p 'a the in' --pin 300K
same -p 'a the in' --ram-budget auto
same -p 'a the in' --batch 1
same -p 'a the in' --batch 2 --pin 0
same -p 'a the in' --seed 7
for level in ref sse42 avx2 avxvnni avx512 avx512vnni avx512vbmi neon dotprod i8mm; do
    "$run" "$tiny" --cpu-mask $level -n 1 -p a >/dev/null 2>&1 </dev/null &&
        same -p 'a the in' --cpu-mask $level
done

# -p, stdin, both; only the answer is on stdout
[ "$(printf 'a the in' | "$run" "$tiny" $greedy 2>/dev/null)" = "$answer" ] || fail "stdin as the prompt"
both=$(printf 'x y' | "$run" "$tiny" $greedy -p 'a b' 2>/dev/null)
[ "$both" = "$("$run" "$tiny" $greedy -p "$(printf 'a b\n\nx y')" 2>/dev/null </dev/null)" ] ||
    fail "-p and stdin are not joined as TEXT, blank line, stdin"
expect 2 'prompt' "$run" "$tiny" -p ''

# a seed repeats an answer; without one the seed is printed and repeats it
# Recommendations of the model apply where nothing was set.
greedily=$("$run" "$tiny" -n 20 --ignore-eos --temperature 0 -p a 2>/dev/null </dev/null)
advised="--override-kv general.sampling.temp=float:0"
[ "$greedily" = "$("$run" "$tiny" -n 20 --ignore-eos $advised -p a 2>/dev/null </dev/null)" ] ||
    fail "recommendations of the model are ignored"
one=$("$run" "$tiny" -n 20 --ignore-eos --temperature 1.5 --seed 5 -p a 2>/dev/null </dev/null)
[ "$one" != "$greedily" ] &&
    [ "$one" = "$("$run" "$tiny" -n 20 --ignore-eos $advised --temperature 1.5 --seed 5 -p a 2>/dev/null </dev/null)" ] ||
    fail "recommendations of the model override explicit values"
two=$("$run" "$tiny" -n 20 --ignore-eos --temperature 1.5 --seed 5 --pin 0 -t 1 -p a 2>/dev/null </dev/null)
[ "$one" = "$two" ] || fail "the same seed gave two answers"
one=$("$run" "$tiny" -n 20 --ignore-eos --temperature 1.5 -p a 2>"$work/err" </dev/null)
seed=$(sed -n 's/^seed \([0-9]*\)$/\1/p' "$work/err")
[ -n "$seed" ] || fail "a random seed was not printed"
[ "$one" = "$("$run" "$tiny" -n 20 --ignore-eos --temperature 1.5 --seed "$seed" -p a 2>/dev/null </dev/null)" ] || fail "the printed seed does not repeat the answer"
}

has() { grep -qE -- "$1" "$work/out" || { cat "$work/out"; fail "no /$1/ in the output"; }; }
expect 0 '' "$run" "$tiny" -p a -n 5 --ignore-eos --json --seed 3
for key in text prompt_tokens tokens stop seed prefill_tps decode_tps ttft_ms bytes_per_token io_gbps \
    wait_ms peak_rss_mb budget_mb threads backend; do has "\"$key\": "; done
has '"stop": "length"'
has '"seed": 3[,}]'
[ "$(wc -l <"$work/out")" = 1 ] || fail "--json is not one line"
expect 0 '' "$run" --bench --json -p 8 -n 4 -r 2 "$tiny"
for key in prefill_tps decode_tps ttft_ms bytes_per_token io_gbps wait_ms peak_rss_mb budget_mb threads \
    backend; do has "\"$key\": "; done
expect 0 '' "$run" --bench -p 8 -n 4 -r 1 "$tiny"
has '^decode'
# At most 100 % of the speed at which weights can be read, or a reason: the guide fits in most caches.
guide=$QSF_SRCDIR/models/guide.qsf
if [ -f "$guide" ]; then
    expect 0 '' "$run" --bench --json -p 16 -n 32 -r 3 "$guide"
    at_most "$(number bandwidth)" 1 || grep -q 'warning: decoding used' "$work/err" ||
        fail "--bench: a share of $(number bandwidth) of the read speed without a warning"
fi
expect 5 'context' "$run" --bench -p 5000 -n 4 "$tiny"
expect 0 '' "$run" --plan "$tiny"
has 'KV cache'
expect 0 '' "$run" --plan --json "$tiny"
has '"pinned_bytes": '
has '"kv": "f16", "k_type": "f16", "v_type": "f16"'
expect 0 '' "$run" --plan --k-type q8 "$tiny"
has '^KV cache type +q8/f16 .K as set, V the default.'
expect 0 '' "$run" --json --k-type q8 --v-type f32 -n 2 -p a "$tiny"
has '"k_type": "q8", "v_type": "f32"'
expect 0 '' "$run" --json --k-type q6 --v-type q4 -n 2 -p a "$tiny"
has '"k_type": "q[68]", "v_type": "q4"'
expect 2 'v-type takes ' "$run" --v-type q9 -n 2 -p a "$tiny"
expect 0 '' "$run" --inspect "$tiny"
has 'token_embd.weight'
has '^KV cache per token: f32 [0-9]+ bytes, f16 [0-9]+ bytes, q8 [0-9]+ bytes, q6 [0-9]+ bytes, q4 [0-9]+ bytes, q2 [0-9]+ bytes'
# The listing in docs/MODELS.md, of the model that its command makes.
doc=$QSF_SRCDIR/docs/MODELS.md
spec=$(sed -n 's|^obj/tests/tools/mktiny llama.gguf ||p' "$doc")
# shellcheck disable=SC2086
[ -n "$spec" ] && "$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/llama.gguf" $spec || fail "$doc: no command for its model"
expect 0 '' "$run" --inspect "$work/llama.gguf"
sed -n '/^program$/,/^KV cache/{/^KV cache/!p;}' "$work/out" >"$work/printed"
sed -n '/^program$/,/^```/{/^```/!p;}' "$doc" | diff - "$work/printed" || fail "$doc: this is not the program's listing"
expect 0 '' "$run" --inspect --json "$tiny"
has '"general.architecture": "llama"'
has '"kv_bytes_per_token": [{]"f32": [0-9]+,"f16": [0-9]+'
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["unknown_keys"] == [] and d["defaults"]["llama.rope.scaling.type"] == "linear", d["defaults"]
assert {"name": "attn_q.bias", "blocks": [0, 1]} in d["absent_tensors"], d["absent_tensors"]' "$work/out" ||
    fail "--inspect --json: what was defaulted"
set -- --override-kv llama.pretend=int:1 --override-kv llama.vision.size=int:1
expect 0 '' "$run" "$@" --inspect "$tiny"
grep -q '^  llama.rope.scaling.factor  *1$' "$work/out" || fail "--inspect: no default of rope.scaling.factor"
sed -n '/^metadata keys that are not used$/,$p' "$work/out" | grep -qx '  llama.pretend' ||
    fail "--inspect: no unknown keys"
expect 0 'metadata keys that are not used: llama.pretend$' "$run" "$@" --verbose -n 1 "$tiny" -p hello
expect 0 '' "$run" --verbose -n 1 "$tiny" -p hello
grep -q 'not used' "$work/err" && fail "--verbose names keys that are used: $(cat "$work/err")"
expect 0 '' "$run" --help
has '^ +(-[a-z], )?.*--ram-budget'
expect 0 '' "$run" --version
has '^qsf-run [0-9]'

# tokens there and back; a final newline is text
printf 'the in\n' | "$run" --tokenize --no-bos "$tiny" >"$work/ids" 2>/dev/null || fail "--tokenize"
"$run" --detokenize --no-special "$tiny" <"$work/ids" >"$work/out" 2>/dev/null || fail "--detokenize"
[ "$(cat "$work/out")" = '"the in\n"' ] ||
    { cat "$work/ids" "$work/out"; fail "text to ids and back changed it"; }
printf 'x .\n' | "$run" --tokenize --no-bos "$tiny" >"$work/ids" 2>/dev/null || fail "--tokenize"
for clean in '' --clean-spaces; do
    # shellcheck disable=SC2086
    "$run" --detokenize $clean "$tiny" <"$work/ids" >"$work/out" 2>/dev/null || fail "--detokenize $clean"
    case $clean in "") want="\"x .\\n\"" ;; *) want="\"x.\\n\"" ;; esac
    [ "$(cat "$work/out")" = "$want" ] ||
        { cat "$work/out"; fail "--detokenize $clean: spaces before punctuation"; }
done
expect 2 'clean-spaces requires' "$run" --tokenize --clean-spaces "$tiny"
printf '"a"\n"\\u0000 x"\n""\n' | "$run" --tokenize --jsonl --no-bos "$tiny" >"$work/out" 2>/dev/null ||
    fail "--jsonl"
[ "$(wc -l <"$work/out")" = 3 ] || fail "--jsonl: not a line per line"
[ "$(tail -n 1 "$work/out")" = '[]' ] || fail "--jsonl: the empty string is not []"
printf '3 260 999999999\n' | "$run" --detokenize "$tiny" >"$work/out" 2>"$work/err" &&
    fail "an id outside the vocabulary was accepted"
grep -q 'line 1' "$work/err" || fail "an invalid id is reported without its line"

# the real model: its greedy text, resident and streamed
if [ -f "$stories" ]; then
    want=$(cat "${stories%.gguf}.greedy.txt")
    for opts in "" "--pin 0" "-t 1" "--cpu-mask ref" "--kv-type f32" "--exact"; do
        # shellcheck disable=SC2086
        got=$("$run" "$stories" --temperature 0 -n 75 -p 'Once upon a time' $opts 2>"$work/err" </dev/null) \
            || { cat "$work/err"; fail "stories260K $opts"; }
        case $want in
        "Once upon a time$got"*) ;;
        *) case "Once upon a time$got" in "$want"*) ;; *) echo "$got";
        fail "stories260K: not the reference's greedy text ($opts)" ;; esac ;;
        esac
    done
else
    echo "skip: $stories is absent"
fi
finish
