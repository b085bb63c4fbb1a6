# SPDX-License-Identifier: GPL-3.0-or-later
"""Dense architectures with names of their own, most with queries, keys and values in one tensor (as in
dense.py)."""

from .config import base
from .dense import ATTN, ATTN_PAIRS, EMBED, HOW, MLP, NORMS, join, qkv_parts
from .gguf import cat

def per_group(m, t, n):
    """Rows q, k, v of all heads to the queries of a KV head, its key, its value."""
    q, k, v = t.split(*qkv_parts(m, n))
    d, each = m.head_dim, m.heads[n] // m.kv_heads[n]
    rows = []
    for g in range(m.kv_heads[n]):
        rows.append(q.pick(range(g * each * d, (g + 1) * each * d)))
        rows += [x.pick(range(g * d, g * d + d)) for x in (k, v)]
    return cat(rows)


def pairs_back(m, t, n):
    """Rows q, k, v, the first two with pairs for GGUF, to halves."""
    q, k, v = t.split(*qkv_parts(m, n))
    return cat([HOW["q"](m, q, n), HOW["k"](m, k, n), v])


HOW["group"] = per_group
HOW["pairs"] = pairs_back
HOW["pairs_group"] = lambda m, t, n: per_group(m, pairs_back(m, t, n), n)


def rename(m, *pairs):
    for old, new in pairs:
        m.out = {n.replace(old, new): t for n, t in m.out.items()}


def gpt_sizes(m, arch, model_type):
    return {
        "architectures": [arch], "model_type": model_type, "hidden_size": m.hidden, "n_layer": m.layers,
        "n_head": m.heads[0], "layer_norm_epsilon": m.key("attention.layer_norm_epsilon"),
        "vocab_size": m.gguf.place["token_embd.weight"][1].shape[0],
        "tie_word_embeddings": not m.has("output.weight"),
    }


def falcon(m):
    c = gpt_sizes(m, "FalconForCausalLM", "falcon")
    two = m.has("blk.0.attn_norm_2.weight")
    c.update(
        num_hidden_layers=c.pop("n_layer"), num_attention_heads=c.pop("n_head"), alibi=False, bias=False,
        multi_query=True,
        parallel_attn=True, new_decoder_architecture=two, ffn_hidden_size=m.key("feed_forward_length"),
        max_position_embeddings=m.key("context_length"), rope_theta=m.key("rope.freq_base", 10000.0),
    )
    if m.kv_heads[0] > 1:
        c["num_kv_heads"] = m.kv_heads[0]
    m.table("""
token_embd M.word_embeddings
output_norm M.ln_f
output lm_head
B.attn_norm L.%s
B.attn_norm_2 L.ln_attn
B.attn_qkv L.self_attention.query_key_value group
B.attn_output L.self_attention.dense
B.ffn_up L.mlp.dense_h_to_4h
B.ffn_down L.mlp.dense_4h_to_h
""" % ("ln_mlp" if two else "input_layernorm"), root="transformer.")
    rename(m, ("transformer.layers.", "transformer.h."))
    return c


def bloom(m):
    c = gpt_sizes(m, "BloomForCausalLM", "bloom")
    c.update(seq_length=m.key("context_length"), apply_residual_connection_post_layernorm=False)
    if m.key("feed_forward_length") != 4 * m.hidden:
        c["n_inner"] = m.key("feed_forward_length")
    m.table("""
token_embd M.word_embeddings
token_embd_norm M.word_embeddings_layernorm
output_norm M.ln_f
output lm_head
B.attn_norm L.input_layernorm
B.ffn_norm L.post_attention_layernorm
B.attn_qkv L.self_attention.query_key_value head
B.attn_output L.self_attention.dense
B.ffn_up L.mlp.dense_h_to_4h
B.ffn_down L.mlp.dense_4h_to_h
""", root="transformer.")
    rename(m, ("transformer.layers.", "transformer.h."))
    if m.old:
        rename(m, ("transformer.", ""))
    return c


def mpt(m):
    bias = m.key("attention.max_alibi_bias", 0.0)
    c = {
        "architectures": ["MPTForCausalLM"], "model_type": "mpt", "d_model": m.hidden, "n_heads": m.heads[0],
        "n_layers": m.layers, "max_seq_len": m.key("context_length"), "expansion_ratio": 4, "no_bias": True,
        "vocab_size": m.gguf.place["token_embd.weight"][1].shape[0],
        "tie_word_embeddings": not m.has("output.weight"),
        "attn_config": {
            "alibi": bias > 0, "alibi_bias_max": bias or 8, "clip_qkv": m.key("attention.clamp_kqv"),
            "qk_ln": False,
            "softmax_scale": None,
        },
        "layer_norm_epsilon": m.key("attention.layer_norm_epsilon"), "norm_type": "low_precision_layernorm",
    }
    if m.key("feed_forward_length") != 4 * m.hidden:
        c["intermediate_size"] = m.key("feed_forward_length")
    m.table("""
token_embd M.wte
position_embd M.wpe
output_norm M.norm_f
output lm_head
B.attn_norm L.norm_1
B.ffn_norm L.norm_2
B.attn_qkv L.attn.Wqkv
B.attn_output L.attn.out_proj
B.ffn_up L.ffn.up_proj
B.ffn_down L.ffn.down_proj
""", root="transformer.")
    rename(m, ("transformer.layers.", "transformer.blocks."))
    return c


def starcoder(m):
    c = gpt_sizes(m, "GPTBigCodeForCausalLM", "gpt_bigcode")
    c.update(
        n_embd=c.pop("hidden_size"), n_positions=m.key("context_length"), multi_query=True,
        activation_function="gelu_pytorch_tanh", n_inner=m.key("feed_forward_length"),
    )
    m.table("""
token_embd M.wte
position_embd M.wpe
output_norm M.ln_f
output lm_head
B.attn_norm L.ln_1
B.ffn_norm L.ln_2
B.attn_qkv L.attn.c_attn
B.attn_output L.attn.c_proj
B.ffn_up L.mlp.c_fc
B.ffn_down L.mlp.c_proj
""", root="transformer.")
    rename(m, ("transformer.layers.", "transformer.h."))
    return c


def exaone(m):
    c = base(m, "ExaoneForCausalLM", "exaone", head_dim=False)
    c.update(activation_function=c.pop("hidden_act"), num_layers=c.pop("num_hidden_layers"),
        layer_norm_epsilon=c.pop("rms_norm_eps"))
    m.table("""
token_embd M.wte
output_norm M.ln_f
output lm_head
B.attn_norm L.ln_1
B.ffn_norm L.ln_2
B.attn_q L.attn.attention.q_proj
B.attn_k L.attn.attention.k_proj
B.attn_v L.attn.attention.v_proj
B.attn_output L.attn.attention.out_proj
B.ffn_gate L.mlp.c_fc_0
B.ffn_up L.mlp.c_fc_1
B.ffn_down L.mlp.c_proj
""", root="transformer.")
    rename(m, ("transformer.layers.", "transformer.h."))
    return c


def internlm2(m):
    m.old = True
    c = base(m, "InternLM2ForCausalLM", "internlm2", head_dim=False)
    c["rope_scaling"] = {"type": "dynamic", "factor": 2.0}
    c["bias"] = False
    m.table("""
token_embd M.tok_embeddings
output_norm M.norm
output output
B.attn_norm L.attention_norm
B.ffn_norm L.ffn_norm
B.attn_q+B.attn_k+B.attn_v L.attention.wqkv pairs_group
B.attn_output L.attention.wo
B.ffn_gate L.feed_forward.w1
B.ffn_up L.feed_forward.w3
B.ffn_down L.feed_forward.w2
""")
    return c


def minicpm(m):
    m.old = True
    c = base(m, "MiniCPMForCausalLM", "minicpm", head_dim=False)
    embed, residual, logit = m.key("embedding_scale", 12.0), m.key("residual_scale"), m.key("logit_scale")
    depth = 1.4 if residual is None else residual * m.layers**0.5
    c.update(scale_emb=embed, scale_depth=depth,
        dim_model_base=m.hidden**2 / 256 if logit is None else m.hidden / logit)
    if c["rope_scaling"]:
        original = m.key("rope.scaling.original_context_length")
        c["rope_scaling"].update(original_max_position_embeddings=original, attention_factor=1.0)
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def baichuan(m):
    m.old = True
    c = base(m, "BaichuanForCausalLM", "baichuan", head_dim=False)
    c["model_max_length"] = c.pop("max_position_embeddings")
    mats = """
B.attn_q+B.attn_k+B.attn_v L.self_attn.W_pack pairs
B.attn_output L.self_attn.o_proj
"""
    m.table(join(EMBED, NORMS, mats, MLP))
    return c


def bitnet(m):
    c = base(m, "BitNetForCausalLM", "bitnet", head_dim=False)
    norms = "B.attn_sub_norm L.self_attn.attn_sub_norm\nB.ffn_sub_norm L.mlp.ffn_sub_norm"
    m.table(join(EMBED, NORMS, ATTN, norms, MLP))
    return c


TABLE = {
    "falcon": falcon, "bloom": bloom, "mpt": mpt, "starcoder": starcoder, "exaone": exaone,
    "internlm2": internlm2,
    "minicpm": minicpm, "baichuan": baichuan, "bitnet": bitnet,
}
