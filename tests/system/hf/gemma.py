# SPDX-License-Identifier: GPL-3.0-or-later
"""Gemma 3n and Gemma 4."""

import struct

from .config import base, layer_types
from .dense import ATTN, EMBED, GEMMA_NORMS, HEAD_NORMS, MLP, join
from .gguf import Tensor
from .model import NoName

PER_LAYER = """
per_layer_token_embd M.embed_tokens_per_layer
per_layer_model_proj M.per_layer_model_projection
per_layer_proj_norm M.per_layer_projection_norm
B.inp_gate L.per_layer_input_gate
B.proj L.per_layer_projection
B.post_norm L.post_per_layer_input_norm
"""


def top(m, text, arch, model_type, table):
    m.table(table, root="model.language_model.")
    del text["architectures"]
    return {
        "architectures": [arch], "model_type": model_type, "text_config": text,
        "vision_config": {"hidden_size": 8},
        "tie_word_embeddings": text["tie_word_embeddings"],
    }


def gemma3n(m):
    rope = {"rope_type": "default"}
    text = base(m, "", "gemma3n_text", rope=rope)
    text["hidden_activation"] = text.pop("hidden_act").replace("silu", "gelu_pytorch_tanh")
    count, full = m.layers, {"rope_type": "default", "rope_theta": m.key("rope.freq_base", 1000000.0)}
    local = {"rope_type": "default", "rope_theta": m.key("rope.freq_base_swa", 10000.0)}
    for key in ("rope_theta", "rope_scaling", "rope_parameters"):
        text.pop(key, None)
    if m.old:
        text.update(rope_theta=full["rope_theta"], rope_local_base_freq=local["rope_theta"],
            rope_scaling=None)
    else:
        text["rope_parameters"] = {"full_attention": full, "sliding_attention": local}
    sizes = m.per_layer("feed_forward_length")
    text.update(
        sliding_window=m.key("attention.sliding_window"),
        layer_types=layer_types(m, lambda i: (i + 1) % 5 != 0),
        hidden_size_per_layer_input=m.key("embedding_length_per_layer_input"),
        vocab_size_per_layer_input=text["vocab_size"],
        altup_num_inputs=m.key("altup.num_inputs"), altup_active_idx=m.key("altup.active_idx"),
        altup_correct_scale=True,
        altup_coef_clip=None, laurel_rank=64, num_kv_shared_layers=max(0, count - 20),
        final_logit_softcapping=30.0,
        activation_sparsity_pattern=[0.95] * min(10, count) + [0.0] * max(0, count - 10),
        intermediate_size=sizes,
    )
    names = """
altup_proj M.altup_projections.# E
altup_unembd_proj M.altup_unembed_projections.# E
B.altup_correct_coef L.altup.correction_coefs
B.altup_correct_scale L.altup.correct_output_scale!
B.altup_predict_coef L.altup.prediction_coefs
B.altup_router L.altup.modality_router
B.altup_router_norm L.altup.router_norm
B.laurel_l L.laurel.linear_left
B.laurel_r L.laurel.linear_right
B.laurel_post_norm L.laurel.post_laurel_norm
"""
    table = join(EMBED, GEMMA_NORMS, ATTN, HEAD_NORMS, MLP, PER_LAYER, names)
    return top(m, text, "Gemma3nForConditionalGeneration", "gemma3n", table)


def gemma4(m):
    m.old = False
    windows = [kind == "sliding_attention" for kind in layer_types(m, lambda i: (i + 1) % 6 != 0)]
    factors = m.take("rope_freqs.weight").floats()
    n = sum(f < 1e20 for f in factors)
    rot = [1.0] * n + [1e30] * (len(factors) - n)
    m.twin("rope_freqs.weight", Tensor("F32", [len(rot)], struct.pack("<%df" % len(rot), *rot)))
    text = base(m, "", "gemma4_text", rope={"rope_type": "default"})
    text["hidden_activation"] = text.pop("hidden_act").replace("silu", "gelu_pytorch_tanh")
    shared = m.key("attention.shared_kv_layers", 0)
    ffn = m.per_layer("feed_forward_length")
    kv = {w: next((k for k, x in zip(m.kv_heads, windows) if x == w), 0) for w in (True, False)}
    same = any(not m.has("blk.%d.attn_v.weight" % i) and m.has("blk.%d.attn_k.weight" % i)
        for i in range(m.layers))
    if m.key("rope.dimension_count_swa") != m.key("attention.key_length_swa"):
        raise NoName("partial rotation of window layers")
    text.update(
        intermediate_size=ffn[0], use_double_wide_mlp=ffn[-1] == 2 * ffn[0], num_kv_shared_layers=shared,
        head_dim=m.key("attention.key_length_swa"), global_head_dim=m.key("attention.key_length"),
        num_key_value_heads=kv[True], sliding_window=m.key("attention.sliding_window"), attention_k_eq_v=same,
        num_global_key_value_heads=kv[False] if kv[False] != kv[True] else None,
        layer_types=["sliding_attention" if w else "full_attention" for w in windows],
        final_logit_softcapping=m.key("final_logit_softcapping"),
        vocab_size_per_layer_input=text["vocab_size"],
        hidden_size_per_layer_input=m.key("embedding_length_per_layer_input", 0),
        enable_moe_block=bool(m.key("expert_count")),
        num_experts=m.key("expert_count"), top_k_experts=m.key("expert_used_count"),
        moe_intermediate_size=m.key("expert_feed_forward_length"),
    )
    text["rope_parameters"] = {
        "full_attention": {
            "rope_type": "proportional", "partial_rotary_factor": 2 * n / m.key("attention.key_length"),
            "rope_theta": m.key("rope.freq_base"),
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": m.key("rope.freq_base_swa")},
    }
    names = """
B.layer_output_scale L.layer_scalar!
B.ffn_gate_inp L.router.proj
B.ffn_gate_inp.scale L.router.scale!
B.ffn_down_exps.scale L.router.per_expert_scale!
B.ffn_gate_up_exps L.experts.gate_up_proj!
B.ffn_down_exps L.experts.down_proj!
B.post_ffw_norm_1 L.post_feedforward_layernorm_1
B.pre_ffw_norm_2 L.pre_feedforward_layernorm_2
B.post_ffw_norm_2 L.post_feedforward_layernorm_2
"""
    table = join(EMBED, GEMMA_NORMS, ATTN, HEAD_NORMS, MLP, PER_LAYER, names)
    return top(m, text, "Gemma4ForConditionalGeneration", "gemma4", table)


TABLE = {"gemma3n": gemma3n, "gemma4": gemma4}
