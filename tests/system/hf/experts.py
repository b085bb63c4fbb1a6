# SPDX-License-Identifier: GPL-3.0-or-later
"""Architectures with experts. '#' in a name is the number of an expert."""

from . import dense
from .config import base, layer_types, scaling
from .dense import ATTN, ATTN_PAIRS, EMBED, HEAD_NORMS, MLP, NORMS, join, nested
from .gguf import cat, stack
from .model import HOW, NoName

EXPERTS = """
B.ffn_gate_inp L.mlp.gate
B.ffn_gate_exps L.mlp.experts.#.gate_proj E
B.ffn_up_exps L.mlp.experts.#.up_proj E
B.ffn_down_exps L.mlp.experts.#.down_proj E
"""
SHARED = """
B.ffn_gate_shexp L.mlp.shared_experts.gate_proj
B.ffn_up_shexp L.mlp.shared_experts.up_proj
B.ffn_down_shexp L.mlp.shared_experts.down_proj
"""
W123 = """
B.ffn_gate_inp L.block_sparse_moe.gate
B.ffn_gate_exps L.block_sparse_moe.experts.#.w1 E
B.ffn_down_exps L.block_sparse_moe.experts.#.w2 E
B.ffn_up_exps L.block_sparse_moe.experts.#.w3 E
"""
BIAS = "B.exp_probs_b L.mlp.gate.e_score_correction_bias!"
POST = "B.attn_norm L.input_layernorm\nB.post_attention_norm L.post_attention_layernorm"

HOW["row"] = lambda m, t, n: t.reshape(1, t.shape[0])


def experts(m):
    return m.key("expert_count"), m.key("expert_used_count")


def llama(m):
    return mixtral(m) if m.key("expert_count") else dense.llama(m)


def mixtral(m):
    c = base(m, "MixtralForCausalLM", "mixtral")
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    m.table(join(EMBED, NORMS, ATTN_PAIRS, W123))
    return c


def qwen_moe(arch, model_type, norm):
    def write(m):
        c = base(m, arch, model_type, head_dim=model_type != "qwen2_moe")
        c["num_experts"], c["num_experts_per_tok"] = experts(m)
        c.update(moe_intermediate_size=m.key("expert_feed_forward_length"), norm_topk_prob=norm,
            decoder_sparse_step=1)
        c["mlp_only_layers"] = []
        if m.key("expert_shared_feed_forward_length"):
            c["shared_expert_intermediate_size"] = m.key("expert_shared_feed_forward_length")
        shared = SHARED.replace("shared_experts",
            "shared_expert") + "B.ffn_gate_inp_shexp L.mlp.shared_expert_gate row"
        m.table(join(EMBED, NORMS, ATTN, HEAD_NORMS, EXPERTS, shared))
        return c

    return write


def side_by_side(m, n, up_last=True):
    """Gate and up of each expert: (experts, hidden, 2 * size), gate first."""
    gate, up = (m.take("blk.%d.ffn_%s_exps.weight" % (n, k)) for k in ("gate", "up"))
    return stack([cat([g, u]).transpose() for g, u in zip(gate.unstack(), up.unstack())])


def qwen3vlmoe(m):
    rope = {"rope_type": "default", "mrope_section": m.key("rope.dimension_sections")[:3],
        "mrope_interleaved": True}
    text = base(m, "", "qwen3_vl_moe_text", rope=rope)
    text["num_experts"], text["num_experts_per_tok"] = experts(m)
    text.update(moe_intermediate_size=m.key("expert_feed_forward_length"), norm_topk_prob=True,
        decoder_sparse_step=1)
    for n in range(m.layers):
        m.put("model.language_model.layers.%d.mlp.experts.gate_up_proj" % n, side_by_side(m, n))
    table = join(EMBED, NORMS, ATTN, HEAD_NORMS, "B.ffn_gate_inp L.mlp.gate",
        "B.ffn_down_exps L.mlp.experts.down_proj! T")
    return nested(m, text, "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", table)


def olmoe(m):
    c = base(m, "OlmoeForCausalLM", "olmoe", head_dim=False)
    c["num_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(norm_topk_prob=False, clip_qkv=None)
    m.table(join(EMBED, NORMS, ATTN, HEAD_NORMS, EXPERTS))
    return c


def input_linear(m, root="model."):
    """Gate over up, of each expert and of the shared one."""
    for n in range(m.layers):
        at = "%slayers.%d." % (root, n)
        if m.has("blk.%d.ffn_gate_exps.weight" % n):
            gate, up = (m.take("blk.%d.ffn_%s_exps.weight" % (n, k)) for k in ("gate", "up"))
            both = stack([cat([g, u]) for g, u in zip(gate.unstack(), up.unstack())])
            m.put(at + "block_sparse_moe.input_linear.weight", both)
            m.put(at + "block_sparse_moe.output_linear.weight", m.take("blk.%d.ffn_down_exps.weight" % n))
            m.put(at + "block_sparse_moe.router.layer.weight", m.take("blk.%d.ffn_gate_inp.weight" % n))
        for end in ("_shexp", ""):
            if m.has("blk.%d.ffn_gate%s.weight" % (n, end)):
                gate, up = (m.take("blk.%d.ffn_%s%s.weight" % (n, k, end)) for k in ("gate", "up"))
                m.put(at + "shared_mlp.input_linear.weight", cat([gate, up]))
                m.put(at + "shared_mlp.output_linear.weight", m.take("blk.%d.ffn_down%s.weight" % (n, end)))


def granite_scales(m):
    return {
        "embedding_multiplier": m.key("embedding_scale"), "residual_multiplier": m.key("residual_scale"),
        "attention_multiplier": m.key("attention.scale"), "logits_scaling": m.key("logit_scale"),
    }


def granitemoe(m):
    shared = m.key("expert_shared_feed_forward_length")
    name = "GraniteMoeShared" if shared else "GraniteMoe"
    c = base(m, name + "ForCausalLM", name.lower(), head_dim=False)
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(granite_scales(m))
    if shared:
        c["shared_intermediate_size"] = shared
    input_linear(m)
    m.table(join(EMBED, NORMS, ATTN_PAIRS))
    return c


def phimoe(m):
    rope = {
        "rope_type": "longrope", "short_mscale": 1.0, "long_mscale": 1.0,
        "long_factor": m.take("rope_factors_long.weight").floats(),
        "short_factor": m.take("rope_factors_short.weight").floats(),
        "original_max_position_embeddings": m.key("rope.scaling.original_context_length"),
    }
    c = base(m, "PhimoeForCausalLM" if not m.old else "PhiMoEForCausalLM", "phimoe", rope=rope,
        head_dim=False)
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(attention_bias=True, lm_head_bias=True, sliding_window=m.key("attention.sliding_window") or None)
    c["original_max_position_embeddings"] = m.key("rope.scaling.original_context_length")
    m.table(join(EMBED, NORMS, ATTN, W123))
    return c


def deepseek_like(m, c, groups=True):
    c.update(
        n_routed_experts=m.key("expert_count"), num_experts_per_tok=m.key("expert_used_count"),
        n_shared_experts=m.key("expert_shared_count"),
        moe_intermediate_size=m.key("expert_feed_forward_length"),
        first_k_dense_replace=m.key("leading_dense_block_count"),
        routed_scaling_factor=m.key("expert_weights_scale"),
        norm_topk_prob=m.key("expert_weights_norm"),
        scoring_func={1: "softmax", 2: "sigmoid"}[m.key("expert_gating_func", 1)],
    )
    if groups:
        c.update(n_group=m.key("expert_group_count", 1), topk_group=m.key("expert_group_used_count", 1))


def dots1(m):
    c = base(m, "Dots1ForCausalLM", "dots1")
    deepseek_like(m, c)
    m.table(join(EMBED, NORMS, ATTN, HEAD_NORMS, MLP, EXPERTS, SHARED, BIAS))
    return c


def glm4moe(m):
    c = base(m, "Glm4MoeForCausalLM", "glm4_moe", partial=True)
    deepseek_like(m, c)
    del c["scoring_func"]
    c.update(attention_bias=True, use_qk_norm=m.has("blk.0.attn_q_norm.weight"))
    c["num_nextn_predict_layers"] = m.key("nextn_predict_layers", 0)
    c["num_hidden_layers"] -= c["num_nextn_predict_layers"]
    nextn = """
B.nextn.eh_proj L.eh_proj
B.nextn.enorm L.enorm
B.nextn.hnorm L.hnorm
B.nextn.embed_tokens L.embed_tokens
B.nextn.shared_head_norm L.shared_head.norm
B.nextn.shared_head_head L.shared_head.head
"""
    m.table(join(EMBED, POST, ATTN, HEAD_NORMS, MLP, EXPERTS, SHARED, BIAS, nextn))
    return c


def ernie_moe(m):
    c = base(m, "Ernie4_5_MoeForCausalLM", "ernie4_5_moe")
    size = m.key("expert_feed_forward_length")
    shared = m.key("expert_shared_feed_forward_length", 0)
    c.update(
        moe_num_experts=m.key("expert_count"), moe_k=m.key("expert_used_count"), moe_intermediate_size=size,
        moe_layer_interval=m.key("interleave_moe_layer_step"),
        moe_layer_start_index=m.key("leading_dense_block_count"),
        moe_layer_end_index=m.layers - 1, moe_num_shared_experts=shared // size, use_bias=False,
    )
    bias = "B.exp_probs_b L.mlp.moe_statics.e_score_correction_bias! row"
    m.table(join(EMBED, NORMS, ATTN, MLP, EXPERTS, SHARED, bias))
    return c


def hunyuan_moe(m):
    c = base(m, "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe")
    size = m.key("expert_feed_forward_length")
    shared = m.key("expert_shared_feed_forward_length")
    c.update(num_experts=m.key("expert_count"), intermediate_size=shared, use_mixed_mlp_moe=True,
        use_qk_norm=True)
    for key, v in (("moe_topk", m.key("expert_used_count")), ("num_shared_expert", 1),
        ("moe_intermediate_size", size)):
        c[key] = v if m.old else [v] * m.layers
    mats = """
B.attn_q_norm L.self_attn.query_layernorm
B.attn_k_norm L.self_attn.key_layernorm
B.ffn_gate_shexp L.mlp.shared_mlp.gate_proj
B.ffn_up_shexp L.mlp.shared_mlp.up_proj
B.ffn_down_shexp L.mlp.shared_mlp.down_proj
"""
    m.table(join(EMBED, NORMS, ATTN, mats, EXPERTS.replace("L.mlp.gate\n", "L.mlp.gate.wg\n")))
    return c


def minimax(m):
    c = base(m, "MiniMaxM2ForCausalLM", "minimax_m2")
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(
        rotary_dim=m.rot, intermediate_size=m.key("expert_feed_forward_length"), scoring_func="sigmoid",
        use_qk_norm=True,
        use_routing_bias=True, qk_norm_type="per_layer",
    )
    bias = "B.exp_probs_b L.block_sparse_moe.e_score_correction_bias!"
    m.table(join(EMBED, NORMS, ATTN, HEAD_NORMS, W123, bias))
    return c


def llama4(m):
    c = base(m, "Llama4ForCausalLM", "llama4_text")
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(
        intermediate_size=m.key("expert_feed_forward_length"),
        intermediate_size_mlp=m.key("feed_forward_length"),
        interleave_moe_layer_step=m.key("interleave_moe_layer_step"), attention_chunk_size=8192,
        use_qk_norm=True,
        no_rope_layers=[int((i + 1) % 4 != 0) for i in range(m.layers)], attn_temperature_tuning=True,
        floor_scale=8192,
        attn_scale=0.1, layer_types=None,
    )
    for n in range(m.layers):
        if m.has("blk.%d.ffn_gate_exps.weight" % n):
            m.put("model.layers.%d.feed_forward.experts.gate_up_proj" % n, side_by_side(m, n))
    mats = """
B.ffn_gate_inp L.feed_forward.router
B.ffn_down_exps L.feed_forward.experts.down_proj! T
B.ffn_gate_shexp L.feed_forward.shared_expert.gate_proj
B.ffn_up_shexp L.feed_forward.shared_expert.up_proj
B.ffn_down_shexp L.feed_forward.shared_expert.down_proj
"""
    m.table(join(EMBED, NORMS, ATTN, mats, MLP.replace("L.mlp.", "L.feed_forward.")))
    return c


def evens(a, b):
    """Elements of the first dimension by turns."""
    both = cat([a, b])
    n = a.shape[0]
    return both.pick([i // 2 + (i % 2) * n for i in range(2 * n)])


def gpt_oss(m):
    # As published, rope_scaling says "truncate": false, which GGUF cannot say: see t_rope.c.
    c = base(m, "GptOssForCausalLM", "gpt_oss", rope=dict(scaling(m), truncate=True))
    c["num_local_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(
        intermediate_size=m.key("expert_feed_forward_length"),
        sliding_window=m.key("attention.sliding_window"),
        attention_bias=True, swiglu_limit=7.0, layer_types=layer_types(m, lambda i: i % 2 == 0),
    )
    for n in range(m.layers):
        at = "model.layers.%d.mlp.experts." % n
        w = [m.take("blk.%d.ffn_%s_exps.weight" % (n, k)).unstack() for k in ("gate", "up")]
        b = [m.take("blk.%d.ffn_%s_exps.bias" % (n, k)).unstack() for k in ("gate", "up")]
        m.put(at + "gate_up_proj", stack([evens(g, u).transpose() for g, u in zip(*w)]))
        m.put(at + "gate_up_proj_bias", stack([evens(g, u) for g, u in zip(*b)]))
        m.put(at + "down_proj", m.take("blk.%d.ffn_down_exps.weight" % n).transpose())
        m.put(at + "down_proj_bias", m.take("blk.%d.ffn_down_exps.bias" % n))
    m.table(join(EMBED, POST, ATTN, "B.attn_sinks L.self_attn.sinks!", "B.ffn_gate_inp L.mlp.router"))
    return c


def kv_b(m, n, root="model."):
    """k_b and v_b of each head, the rows of one head after each other."""
    if not m.has("blk.%d.attn_k_b.weight" % n):
        return
    k, v = m.take("blk.%d.attn_k_b.weight" % n).transpose().unstack(), m.take(
        "blk.%d.attn_v_b.weight" % n).unstack()
    m.put("%slayers.%d.self_attn.kv_b_proj.weight" % (root, n), cat([t for pair in zip(k, v) for t in pair]))


MLA = """
B.attn_q L.self_attn.q_proj
B.attn_q_a L.self_attn.q_a_proj
B.attn_q_a_norm L.self_attn.q_a_layernorm
B.attn_q_b L.self_attn.q_b_proj
B.attn_kv_a_mqa L.self_attn.kv_a_proj_with_mqa
B.attn_kv_a_norm L.self_attn.kv_a_layernorm
B.attn_output L.self_attn.o_proj
"""


def mla_keys(m, c):
    rot = m.key("rope.dimension_count")
    c.pop("head_dim", None)
    c.update(
        kv_lora_rank=m.key("attention.kv_lora_rank"), q_lora_rank=m.key("attention.q_lora_rank"),
        qk_rope_head_dim=rot,
        qk_nope_head_dim=m.key("attention.key_length_mla") - rot,
        v_head_dim=m.key("attention.value_length_mla"),
        num_key_value_heads=m.heads[0],
    )


def deepseek(m):
    if m.key("attention.key_length_mla") is None:
        raise NoName("deepseek2 without a latent is no public file")
    rope = scaling(m)
    if rope["rope_type"] == "yarn":
        all_dim = round(m.key("rope.scaling.yarn_log_multiplier") * 10, 6)
        rope.update(mscale=all_dim, mscale_all_dim=all_dim)
    three = m.key("expert_gating_func") == 2
    c = base(m, "DeepseekV3ForCausalLM" if three else "DeepseekV2ForCausalLM",
        "deepseek_v3" if three else "deepseek_v2", rope=rope)
    mla_keys(m, c)
    deepseek_like(m, c)
    by_best = m.key("qsf.expert_group_scores", 2) == 1
    c["topk_method"] = "noaux_tc" if three else "group_limited_greedy" if by_best else "greedy"
    c.update(moe_layer_freq=1, attention_bias=False)
    c["num_nextn_predict_layers"] = m.key("nextn_predict_layers", 0)
    c["num_hidden_layers"] -= c["num_nextn_predict_layers"]
    for n in range(m.layers):
        kv_b(m, n)
    nextn = """
B.nextn.eh_proj L.eh_proj
B.nextn.enorm L.enorm
B.nextn.hnorm L.hnorm
B.nextn.embed_tokens L.embed_tokens
B.nextn.shared_head_norm L.shared_head.norm
B.nextn.shared_head_head L.shared_head.head
"""
    m.table(join(EMBED, NORMS, MLA, MLP, EXPERTS, SHARED, BIAS, nextn))
    return c


def mistral4(m):
    beta, all_dim = m.key("attention.temperature_scale"), round(
        m.key("rope.scaling.yarn_log_multiplier") * 10, 6)
    m.old = False
    rope = dict(scaling(m), mscale=all_dim, mscale_all_dim=all_dim, llama_4_scaling_beta=beta)
    text = base(m, "", "mistral4", rope=rope)
    mla_keys(m, text)
    deepseek_like(m, text)
    del text["scoring_func"]
    rot = text["qk_rope_head_dim"]
    text["rope_parameters"]["partial_rotary_factor"] = rot / (rot + text["qk_nope_head_dim"])
    text.update(rope_interleave=True, attention_bias=False)
    for n in range(m.layers):
        kv_b(m, n, "model.language_model.")
        if m.has("blk.%d.ffn_gate_exps.weight" % n):
            w = [m.take("blk.%d.ffn_%s_exps.weight" % (n, k)).unstack() for k in ("gate", "up")]
            m.put("model.language_model.layers.%d.mlp.experts.gate_up_proj" % n,
                stack([cat(pair) for pair in zip(*w)]))
    names = "B.ffn_gate_inp L.mlp.gate\nB.ffn_down_exps L.mlp.experts.down_proj!"
    table = join(EMBED, NORMS, MLA, MLP, names, SHARED, BIAS)
    return nested(m, text, "Mistral3ForConditionalGeneration", "mistral3", table)


TABLE = {
    "mistral4": mistral4,
    "llama": llama,     "qwen2moe": qwen_moe("Qwen2MoeForCausalLM", "qwen2_moe", False),
    "qwen3moe": qwen_moe("Qwen3MoeForCausalLM", "qwen3_moe", True), "qwen3vlmoe": qwen3vlmoe, "olmoe": olmoe,
    "granitemoe": granitemoe, "phimoe": phimoe, "dots1": dots1, "glm4moe": glm4moe, "ernie4_5-moe": ernie_moe,
    "hunyuan-moe": hunyuan_moe, "minimax-m2": minimax, "llama4": llama4, "gpt-oss": gpt_oss,
    "deepseek2": deepseek,
}

