#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes tiny GGUF files with random weights, for tests that must run without other data.

usage: tiny.py ARCHITECTURE OUT.gguf"""

import random
import struct
import sys

TEXT = [chr(c) for c in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))]
TOKENS = TEXT + [chr(256 + i) for i in range(68)] + ["ab", "Ġa", "<|end|>"]
BASE = {"context_length": 64, "embedding_length": 32, "block_count": 2, "feed_forward_length": 64,
    "vocab_size": len(TOKENS)}
HEADS = {"attention.head_count": 4, "attention.head_count_kv": 2}
RMS = {"attention.layer_norm_rms_epsilon": 1e-5}
MOE = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32}
# Two heads of 8 + 4 (keys) and 10 (values), a latent of 20; four groups of two experts.
LATENT = {
    "attention.head_count": 2, "attention.head_count_kv": 1, "attention.q_lora_rank": 24,
    "attention.kv_lora_rank": 20,
    "attention.key_length": 24, "attention.value_length": 20, "attention.key_length_mla": 12,
    "attention.value_length_mla": 10,
    "rope.dimension_count": 4, "leading_dense_block_count": 1, "expert_shared_count": 1,
    "expert_weights_scale": 2.5,
    "expert_group_count": 4, "expert_group_used_count": 2,
}
SCAN = {
    "ssm.conv_kernel": 4, "ssm.inner_size": 64, "ssm.state_size": 16, "ssm.time_step_rank": 4,
    "ssm.group_count": 2,
}
TOP = "token_embd.weight V H | output_norm.weight H | output.weight V H | "
NORMS = "B.attn_norm.weight H | B.ffn_norm.weight H | "
ATTN = "B.attn_q.weight H H | B.attn_k.weight 16 H | B.attn_v.weight 16 H | B.attn_output.weight H H | "
MLP = "B.ffn_gate.weight 64 H | B.ffn_up.weight 64 H | B.ffn_down.weight H 64 | "
BIAS = "B.attn_q.bias H | B.attn_k.bias 16 | B.attn_v.bias 16 | "
HEAD_NORMS = "B.attn_q_norm.weight 8 | B.attn_k_norm.weight 8 | "
EXPERTS = "B.ffn_gate_inp.weight 4 H | B.ffn_gate_exps.weight 4 32 H | B.ffn_up_exps.weight 4 32 H | B.ffn_down_exps.weight 4 H 32 | "
MLA = (
    "B.attn_q_a.weight 24 H | B.attn_q_a_norm.weight 24 | B.attn_q_b.weight 24 24 | B.attn_kv_a_mqa.weight 24 H | "
    "B.attn_kv_a_norm.weight 20 | B.attn_k_b.weight 2 20 8 | B.attn_v_b.weight 2 10 20 | B.attn_output.weight H 20 | "
)
GROUPS = "B.ffn_gate_inp.weight 8 H | B.ffn_gate_exps.weight 8 32 H | B.ffn_up_exps.weight 8 32 H | B.ffn_down_exps.weight 8 H 32 | "
SHARED = "B.ffn_gate_shexp.weight 32 H | B.ffn_up_shexp.weight 32 H | B.ffn_down_shexp.weight H 32 | "
DEEPSEEK = TOP + NORMS + MLA + MLP.replace("B.", "blk.0.") + (GROUPS + SHARED).replace("B.", "blk.1.")
MAMBA2 = (
    "B.ssm_in.weight 196 H | B.ssm_conv1d.weight 128 4 | B.ssm_conv1d.bias 128 | B.ssm_dt.bias 4 | B.ssm_a 4 1 | B.ssm_d 4 1 | "
    "B.ssm_norm.weight 2 32 | B.ssm_out.weight H 64 | "
)
POST = "B.attn_norm.weight H | B.post_attention_norm.weight H | B.ffn_norm.weight H | B.post_ffw_norm.weight H | "

# Keys without the architecture's prefix, and tensors in PyTorch's order of dimensions.
MODELS = {
    "llama": (dict(HEADS, **RMS), TOP + NORMS + ATTN + MLP),
    "qwen2": (dict(HEADS, **RMS), TOP + NORMS + ATTN + BIAS + MLP),
    "qwen3": (dict(HEADS, **RMS, **{"attention.key_length": 8, "attention.value_length": 8}),
        TOP + NORMS + ATTN + HEAD_NORMS + MLP),
    "gemma2": (
        dict(HEADS, **RMS, **{
            "attention.key_length": 8, "attention.value_length": 8, "attention.sliding_window": 4,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        }),
        TOP.replace(" | output.weight V H", "") + POST + ATTN + MLP,
    ),
    "phi3": (
        dict(HEADS, **RMS, **{"rope.scaling.original_context_length": 64}),
        TOP + NORMS
            + "B.attn_qkv.weight 64 H | B.attn_output.weight H H | B.ffn_up.weight 128 H | B.ffn_down.weight H 64",
    ),
    "gpt2": (
        {"attention.head_count": 4, "attention.layer_norm_epsilon": 1e-5},
        TOP + "output_norm.bias H | position_embd.weight 64 H | B.attn_norm.weight H | B.attn_norm.bias H | B.ffn_norm.weight H | "
        "B.ffn_norm.bias H | B.attn_qkv.weight 96 H | B.attn_qkv.bias 96 | B.attn_output.weight H H | B.attn_output.bias H | "
        "B.ffn_up.weight 64 H | B.ffn_up.bias 64 | B.ffn_down.weight H 64 | B.ffn_down.bias H",
    ),
    "qwen3moe": (
        dict(HEADS, **RMS, **MOE, **{"attention.key_length": 8, "attention.value_length": 8}),
        TOP + NORMS + ATTN + HEAD_NORMS + EXPERTS,
    ),
    "deepseek2": (
        dict(LATENT, **RMS, **dict(MOE, expert_count=8, expert_used_count=3), expert_gating_func=2,
            expert_weights_norm=True),
        DEEPSEEK + "blk.1.exp_probs_b.bias 8",
    ),
    "deepseek2_v2": (
        dict(LATENT, **RMS, **dict(MOE, expert_count=8, expert_used_count=3), expert_gating_func=1,
            expert_weights_norm=False,
             **{"qsf.expert_group_scores": 1}),
        DEEPSEEK,
    ),
    "lfm2": (
        dict(HEADS, **RMS, **{"attention.head_count_kv": [0, 2], "shortconv.l_cache": 3}),
        "token_embd.weight V H | token_embd_norm.weight H | " + NORMS + MLP
            + "blk.0.shortconv.conv.weight H 3 | "
        "blk.0.shortconv.in_proj.weight 96 H | blk.0.shortconv.out_proj.weight H H | "
            + (ATTN + HEAD_NORMS).replace("B.", "blk.1."),
    ),
    "mamba2": (dict(RMS, **SCAN, feed_forward_length=0, **{"attention.head_count": 0}),
        TOP + "B.attn_norm.weight H | " + MAMBA2),
}


def string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def typed(v):
    if isinstance(v, bool):
        return 7, struct.pack("<?", v)
    if isinstance(v, int):
        return 4, struct.pack("<I", v)
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    if isinstance(v, str):
        return 8, string(v)
    kind = typed(v[0])[0]
    return 9, struct.pack("<IQ", kind, len(v)) + b"".join(typed(x)[1] for x in v)


def values(name, n, rng):
    """On a coarse grid: 1 + weight and the like are exact in F32."""
    if name.endswith("norm.weight"):
        return [1 + rng.randrange(-16, 17) / 64 for _ in range(n)]
    if name.endswith("ssm_a"):
        return [-rng.randrange(8, 64) / 32 for _ in range(n)]
    return [rng.randrange(-32, 33) / 128 for _ in range(n)]


def main():
    name, out = sys.argv[1:]
    keys, names = MODELS[name]
    rng = random.Random(name)
    arch = name.split("_")[0]
    pairs = [("general.architecture", arch), ("general.name", "random weights"),
        ("tokenizer.ggml.model", "gpt2")]
    pairs += [("tokenizer.ggml.pre", "gpt-2"), ("tokenizer.ggml.tokens", TOKENS),
        ("tokenizer.ggml.merges", ["a b", "Ġ a"])]
    pairs += [("tokenizer.ggml.token_type", [1] * (len(TOKENS) - 1) + [3]),
        ("tokenizer.ggml.eos_token_id", len(TOKENS) - 1)]
    pairs += [("tokenizer.ggml.bos_token_id", len(TOKENS) - 1), ("tokenizer.ggml.add_bos_token", False)]
    pairs += [("%s.%s" % (arch, k), v) for k, v in dict(BASE, **keys).items()]
    rows, data = [], b""
    for row in [r.split() for r in names.split("|") if r.strip()]:
        shape = [{"V": len(TOKENS), "H": 32}.get(s) or int(s) for s in row[1:]]
        n = 1
        for size in shape:
            n *= size
        each = [row[0].replace("B.", "blk.%d." % i) for i in range(2)]
        for name in each if row[0].startswith("B.") else [row[0]]:
            v = values(name, n, rng)
            half = len(shape) > 1 and not any(part in name for part in ("norm", "ssm_a", "ssm_d", "conv", "inp"))
            rows.append(string(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape[::-1],
                int(half), len(data)))
            data += struct.pack("<%d%s" % (n, "e" if half else "f"), *v)
            data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs))
    for key, v in pairs:
        kind, payload = typed(v)
        head += string(key) + struct.pack("<I", kind) + payload
    head += b"".join(rows)
    with open(out, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


if __name__ == "__main__":
    main()
