#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What qsf-run does not open, qsf-convert neither converts (except with --force) nor verifies; both name the
# file.
. "$(dirname "$0")/lib.sh"
convert=$QSF_BUILDDIR/qsf-convert run=$QSF_BUILDDIR/qsf-run tools=$QSF_BUILDDIR/obj/tests/tools
[ -x "$convert" ] && [ -x "$run" ] && [ -x "$tools/ggufedit" ] || skip "not built"
cd "$work" || exit 1
"$tools/mktiny" good.gguf wtype=0 || fail "mktiny"

# One message on stderr, about the file.
opens() { "$run" -p a -n 1 --temp 0 --template raw "$1" >out 2>err </dev/null; }
names() { grep -q "$1" err || fail "$2: $1 is not named: $(cat err)"; }

# refused INPUT LABEL: by both, and so is the file that --force makes of it.
refused() {
    rm -f o.qsf
    expect 3 "$1" "$convert" --quiet "$1" o.qsf
    [ ! -e o.qsf ] || fail "$2: converted"
    if [ -f "$1" ]; then
        opens "$1"
        [ $? = 3 ] || fail "$2: qsf-run opens it: $(cat err)"
        names "$1" "$2"
    fi
    "$convert" --quiet --force "$1" o.qsf >out 2>err
    code=$?
    [ $code = 3 ] && { [ ! -e o.qsf ] ||
        fail "$2: a temporary file was left"; return; } # QSF cannot represent it
    [ $code = 0 ] || { fail "$2: --force: status $code: $(cat err)"; return; }
    forced=$((forced + 1))
    grep -q "warning: $1" err || fail "$2: --force without a warning: $(cat err)"
    expect 3 'o\.qsf' "$convert" --verify o.qsf
    opens o.qsf
    [ $? = 3 ] || fail "$2: qsf-run opens what was forced: $(cat err)"
    names o.qsf "$2"
}

# ---- GGUF: a valid file with one edit

forced=0
n=0
while read -r edit; do
    [ -n "$edit" ] || continue
    n=$((n + 1))
    "$tools/ggufedit" good.gguf "bad$n.gguf" "$edit" || fail "ggufedit $edit"
    refused "bad$n.gguf" "$edit"
    rm -f "bad$n.gguf"
done <<'EOF'
u32=llama.block_count=4294967295
u32=llama.block_count=4097
u32=llama.block_count=0
u32=llama.block_count=3
u32=llama.block_count=1
drop=llama.block_count
str=llama.block_count=two
u32=llama.embedding_length=0
u32=llama.embedding_length=32
u32=llama.feed_forward_length=4294967295
u32=llama.feed_forward_length=64
u32=llama.attention.head_count=0
u32=llama.attention.head_count=3
u32=llama.attention.head_count_kv=3
u32=llama.attention.head_count_kv=4294967295
u32=llama.attention.key_length=15
u32=llama.attention.value_length=32
u32=llama.context_length=0
f32=llama.attention.layer_norm_rms_epsilon=nan
f32=llama.attention.layer_norm_rms_epsilon=-1
f32=llama.attention.layer_norm_rms_epsilon=inf
drop=llama.attention.layer_norm_rms_epsilon
u32=llama.rope.dimension_count=17
u32=llama.rope.dimension_count=4000000000
f32=llama.rope.freq_base=nan
f32=llama.rope.freq_base=0
str=llama.rope.scaling.type=wavy
str=llama.rope.scaling.type=linear\0
f32=llama.rope.scaling.factor=nan
u32=llama.expert_count=8
bool=llama.attention.causal=0
drop=general.architecture
str=general.architecture=llama\0x
str=tokenizer.ggml.model=llama\0x
str=tokenizer.ggml.model=wordpiece
drop=tokenizer.ggml.model
drop=tokenizer.ggml.tokens
count=tokenizer.ggml.tokens=0
count=tokenizer.ggml.tokens=299
count=tokenizer.ggml.scores=299
count=tokenizer.ggml.scores=301
count=tokenizer.ggml.token_type=299
count=tokenizer.ggml.token_type=301
str=tokenizer.ggml.scores=none
u32=tokenizer.ggml.token_type=1
str=tokenizer.ggml.bos_token_id=one
shape=token_embd.weight=64,299
shape=token_embd.weight=32,300
shape=output.weight=64,301
shape=output_norm.weight=63
shape=blk.0.attn_q.weight=64,63
shape=blk.1.attn_k.weight=32,32
shape=blk.1.attn_v.weight=64,64
shape=blk.0.attn_output.weight=32,64
shape=blk.1.attn_norm.weight=65
shape=blk.0.ffn_down.weight=64,64
shape=blk.1.ffn_gate.weight=64
drop-tensor=token_embd.weight
drop-tensor=output_norm.weight
drop-tensor=blk.1.attn_q.weight
drop-tensor=blk.0.ffn_norm.weight
rename=blk.1.attn_q.weight=blk.1.attn_q.scale
rename=blk.1.ffn_up.weight=blk.2.ffn_up.weight
rename=output.weight=output.bias
EOF
[ $forced -ge 25 ] || fail "only $forced of $n cases were converted with --force"

# A template that fails to run, without a template file to replace it.
"$tools/ggufedit" good.gguf t.gguf 'str=tokenizer.chat_template={% trans %}' || fail "ggufedit"
expect 3 't\.gguf: chat template of the model: line 1' "$run" -p a -n 1 t.gguf
expect 3 't\.gguf: chat template of the model: line 1' "$convert" --quiet t.gguf o.qsf

# ---- directories: a valid one with other members in config.json, or without a file

mkdir dir
"$tools/mktiny" dir dir=F32 || fail "mktiny dir"
"$convert" --quiet dir o.qsf >out 2>err || fail "the directory: $(cat err)"
cp dir/config.json config.json
while read -r members; do
    [ -n "$members" ] || continue
    sed "\$s/}[[:space:]]*\$/,$members}/" config.json >dir/config.json
    refused dir "$members"
done <<'EOF'
"num_hidden_layers":4000000000
"num_hidden_layers":3
"hidden_size":32
"intermediate_size":41
"num_attention_heads":3
"num_key_value_heads":4
"vocab_size":10
"rms_norm_eps":0
"rms_norm_eps":1e300
"rope_theta":0.5
"max_position_embeddings":0
EOF
cp config.json dir/config.json
rm dir/tokenizer.json
refused dir 'no tokenizer.json'

# ---- and valid input is accepted, with any options

for with in '' '-q 8bit' '--layout rows' '--compress lz4' '--dry-run'; do
    # shellcheck disable=SC2086 # words
    "$convert" --quiet $with good.gguf o.qsf >out 2>err || fail "$with: $(cat err)"
    [ ! -s err ] || fail "$with: on stderr: $(cat err)"
done
"$convert" --verify --quiet o.qsf || fail "--verify"
"$convert" --verify --quiet - <o.qsf || fail "--verify -"
"$convert" --quiet --force good.gguf o.qsf >out 2>err && [ ! -s err ] ||
    fail "--force warns about a valid file: $(cat err)"
# The metadata of a stream is checked too.
"$tools/ggufedit" good.gguf b.gguf 'count=tokenizer.ggml.scores=299' &&
    "$convert" --force --quiet b.gguf o.qsf 2>err || fail "--force"
expect 3 'stdin: tokenizer.ggml.scores' sh -c "'$convert' --verify - <o.qsf"
expect 2 'do not accept conversion options' "$convert" --verify --force o.qsf
# An architecture that is not supported yet is converted.
"$tools/ggufedit" good.gguf f.gguf str=general.architecture=parrot &&
    "$tools/ggufedit" f.gguf f2.gguf u32=parrot.block_count=2 \
    u32=parrot.embedding_length=64 u32=parrot.attention.head_count=4 u32=parrot.context_length=64 ||
    fail "ggufedit"
expect 0 "warning: f2.gguf: this version cannot run architecture 'parrot'" "$convert" --quiet f2.gguf o.qsf
expect 0 "warning: o.qsf: this version cannot run architecture 'parrot'" "$convert" --verify o.qsf
"$tools/ggufedit" f2.gguf f3.gguf u32=parrot.block_count=4294967295 || fail "ggufedit"
expect 3 "f3.gguf: metadata key 'parrot.block_count' is 4294967295, expected 1 to 4096" timeout 200 \
    "$convert" --quiet f3.gguf o.qsf
# Errors of the input are not reported for the output.
"$tools/ggufedit" f2.gguf f4.gguf drop-tensor=token_embd.weight drop-tensor=output.weight || fail "ggufedit"
expect 3 "f4.gguf: tensor 'token_embd.weight' is missing" "$convert" --quiet f4.gguf o2.qsf
"$tools/ggufedit" good.gguf f5.gguf drop-tensor=blk.1.attn_q.weight || fail "ggufedit"
expect 0 "warning: f5.gguf: tensor 'blk.1.attn_q.weight' is missing" "$convert" --quiet --force f5.gguf o5.qsf
expect 3 "o5.qsf: tensor 'blk.1.attn_q.weight' is missing" "$convert" --verify o5.qsf
"$tools/ggufedit" good.gguf f6.gguf nan=output_norm.weight || fail "ggufedit"
expect 1 'f6.gguf: the model produced invalid numbers' "$run" -p a -n 1 f6.gguf
# A transformation that is not done is refused by every program that computes, a file that is not a model by
# all.
"$tools/ggufedit" good.gguf f7.gguf u32=prism.hadamard.version=1 || fail "ggufedit"
rotated="f7.gguf: metadata key 'prism.hadamard.version' announces a Hadamard rotation"
expect 3 "$rotated" "$run" -p a -n 1 f7.gguf
expect 3 "$rotated.*; use --force" "$convert" --quiet f7.gguf o7.qsf
expect 0 "$rotated" "$convert" --quiet --force f7.gguf o7.qsf
expect 3 'prism.hadamard.version' "$run" -p a -n 1 o7.qsf
expect 3 'prism.hadamard.version' "$convert" --verify o7.qsf
expect 0 '' "$run" --inspect f7.gguf
expect 0 '' "$run" --tokenize f7.gguf
expect 0 '' "$run" -p a -n 1 f7.gguf --override-kv prism.hadamard.version=null
"$tools/ggufedit" good.gguf f8.gguf str=general.type=adapter || fail "ggufedit"
expect 3 'f8.gguf: is an adapter' "$run" -p a -n 1 f8.gguf
expect 3 'f8.gguf: is an adapter' "$run" --tokenize f8.gguf
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >f9.qsf
for how in --verify --inspect; do expect 3 'f9.qsf: is a Git LFS pointer' "$convert" $how f9.qsf; done
expect 3 'f9.qsf: is a Git LFS pointer' "$run" --perplexity f9.qsf good.gguf
# The names of tensors can be anything: neither reports nor JSON are broken by them.
name=$(printf 'blk.0.a\n"\033[31m.weight')
"$tools/ggufedit" f2.gguf f10.gguf "rename=blk.0.attn_q.weight=$name" || fail "ggufedit"
"$convert" f10.gguf o10.qsf >out 2>err || fail "$(cat err)"
"$convert" --inspect o10.qsf >>out 2>err || fail "$(cat err)"
if grep -q "$(printf '\033')\|^\"" out; then cat out; fail "a tensor's name in a report"; fi
"$convert" --json f10.gguf o10.qsf >out 2>err || fail "$(cat err)"
grep -qF '"name": "blk.0.a\n\"\u001b[31m.weight"' out || { cat out; fail "a tensor's name in JSON"; }
finish
