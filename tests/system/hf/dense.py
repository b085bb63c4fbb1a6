# SPDX-License-Identifier: GPL-3.0-or-later
"""Dense architectures: names and keys of huggingface/transformers (modeling and configuration files of each),
and what ggml-org/llama.cpp conversion/*.py does to them."""

from .config import base, layer_types, scaling
from .gguf import Tensor, cat
from .model import HOW, NoName

EMBED = """
token_embd M.embed_tokens
output_norm M.norm
output lm_head
"""
NORMS = """
B.attn_norm L.input_layernorm
B.ffn_norm L.post_attention_layernorm
"""
# Pairs of rows as the model has them, or reordered for GGUF.
ATTN = """
B.attn_q L.self_attn.q_proj
B.attn_k L.self_attn.k_proj
B.attn_v L.self_attn.v_proj
B.attn_output L.self_attn.o_proj
"""
ATTN_PAIRS = """
B.attn_q L.self_attn.q_proj q
B.attn_k L.self_attn.k_proj k
B.attn_v L.self_attn.v_proj
B.attn_output L.self_attn.o_proj
"""
HEAD_NORMS = """
B.attn_q_norm L.self_attn.q_norm
B.attn_k_norm L.self_attn.k_norm
"""
MLP = """
B.ffn_gate L.mlp.gate_proj
B.ffn_up L.mlp.up_proj
B.ffn_down L.mlp.down_proj
"""


def join(*tables):
    return "\n".join(t.strip() for t in tables)


def minus_one(table):
    return "\n".join(line + " -1" if line.split()[0].endswith("norm") else line
        for line in table.strip().split("\n"))


def llama(m):
    if m.has("blk.0.attn_qkv.weight"):
        raise NoName("LlamaForCausalLM has no fused q, k and v")
    c = base(m, "LlamaForCausalLM", "llama")
    c["attention_bias"] = m.has("blk.0.attn_q.bias")
    c["mlp_bias"] = m.has("blk.0.ffn_up.bias")
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def mistral3(m):
    rope = dict(
        scaling(m), mscale=1.0, mscale_all_dim=m.key("rope.scaling.yarn_log_multiplier"),
        llama_4_scaling_beta=m.key("attention.temperature_scale"),
    )
    m.old = False
    c = base(m, "Ministral3ForCausalLM", "ministral3", rope=rope)
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def granite(m):
    c = base(m, "GraniteForCausalLM", "granite", head_dim=False)
    c.update(
        embedding_multiplier=m.key("embedding_scale"), residual_multiplier=m.key("residual_scale"),
        attention_multiplier=m.key("attention.scale"), logits_scaling=m.key("logit_scale"),
    )
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def smollm3(m):
    c = base(m, "SmolLM3ForCausalLM", "smollm3", head_dim=False)
    c.update(no_rope_layer_interval=4, no_rope_layers=[int((i + 1) % 4 != 0) for i in range(m.layers)])
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def arcee(m):
    c = base(m, "ArceeForCausalLM", "arcee", act="relu2")
    m.table(join(EMBED, NORMS, ATTN_PAIRS, MLP))
    return c


def olmo(m):
    c = base(m, "OlmoForCausalLM", "olmo", head_dim=False)
    del c["rms_norm_eps"]
    c["clip_qkv"] = m.key("attention.clamp_kqv")
    m.table(join(EMBED, ATTN_PAIRS, MLP))
    return c


def plain(arch, model_type, tables=(EMBED, NORMS, ATTN, HEAD_NORMS, MLP), head_dim=True, **more):
    def write(m):
        c = base(m, arch, model_type, head_dim=head_dim)
        c.update(more)
        m.table(join(*tables))
        return c

    return write


def qwen2vl(m):
    if m.old:
        c = base(m, "Qwen2VLForConditionalGeneration", "qwen2_vl", rope={"rope_type": "default"},
            head_dim=False)
        c["rope_scaling"] = {"type": "mrope", "mrope_section": m.key("rope.dimension_sections")[:3]}
        m.table(join(EMBED, NORMS, ATTN, MLP))
        return c
    rope = {"rope_type": "default", "mrope_section": m.key("rope.dimension_sections")[:3]}
    text = base(m, "", "qwen2_vl_text", rope=rope, head_dim=False)
    return nested(m, text, "Qwen2VLForConditionalGeneration", "qwen2_vl", join(EMBED, NORMS, ATTN, MLP))


def nested(m, text, arch, model_type, table):
    """A model of text and images: text_config, and names below model.language_model."""
    m.table(table, root="model.language_model.")
    del text["architectures"]
    top = {"architectures": [arch], "model_type": model_type, "text_config": text,
        "vision_config": {"depth": 2}}
    return dict(top, tie_word_embeddings=text["tie_word_embeddings"])


def qwen3vl(m):
    rope = {"rope_type": "default", "mrope_section": m.key("rope.dimension_sections")[:3],
        "mrope_interleaved": True}
    text = base(m, "", "qwen3_vl_text", rope=rope)
    return nested(m, text, "Qwen3VLForConditionalGeneration", "qwen3_vl",
        join(EMBED, NORMS, ATTN, HEAD_NORMS, MLP))


def seed_oss(m):
    c = base(m, "SeedOssForCausalLM", "seed_oss")
    c.update(attention_bias=m.has("blk.0.attn_q.bias"), attention_out_bias=m.has("blk.0.attn_output.bias"),
        mlp_bias=False)
    table = join(EMBED, "B.attn_norm L.input_layernorm", "B.post_attention_norm L.post_attention_layernorm",
        ATTN, MLP)
    m.table(table)
    return c


POST_NORMS = """
B.post_attention_norm L.post_attention_layernorm
B.post_ffw_norm L.post_feedforward_layernorm
"""


def olmo2(m):
    table = join(EMBED, POST_NORMS, ATTN, HEAD_NORMS, MLP)
    if not m.key("attention.sliding_window"):
        c = base(m, "Olmo2ForCausalLM", "olmo2", head_dim=False)
    else:
        c = base(m, "Olmo3ForCausalLM", "olmo3", head_dim=False)
        c.update(sliding_window=m.key("attention.sliding_window"),
            layer_types=layer_types(m, lambda i: (i + 1) % 4 != 0))
    m.table(table)
    return c


def exaone4(m):
    c = base(m, "Exaone4ForCausalLM", "exaone4")
    window = m.key("attention.sliding_window")
    kinds = layer_types(m, lambda i: window is not None and (i + 1) % 4 != 0)
    c.update(sliding_window=window, layer_types=kinds, sliding_window_pattern="LLLG" if window else None)
    m.table(join(EMBED, POST_NORMS, ATTN, HEAD_NORMS, MLP))
    return c


def glm4(m):
    c = base(m, "Glm4ForCausalLM", "glm4", partial=True)
    c["attention_bias"] = m.has("blk.0.attn_q.bias")
    norms = """
B.attn_norm L.input_layernorm
B.post_attention_norm L.post_self_attn_layernorm
B.ffn_norm L.post_attention_layernorm
B.post_ffw_norm L.post_mlp_layernorm
"""
    m.table(join(EMBED, norms, ATTN, "B.ffn_up L.mlp.gate_up_proj", "B.ffn_down L.mlp.down_proj"))
    return c


def phi3(m):
    c = base(m, "Phi3ForCausalLM", "phi3", head_dim=False)
    original = m.key("rope.scaling.original_context_length")
    c.update(original_max_position_embeddings=original, sliding_window=None)  # this engine applies none
    mats = """
B.attn_qkv L.self_attn.qkv_proj
B.attn_output L.self_attn.o_proj
B.ffn_up L.mlp.gate_up_proj
B.ffn_down L.mlp.down_proj
"""
    m.table(join(EMBED, NORMS, mats))
    return c


def qkv_parts(m, n):
    kv = m.kv_heads[n] * m.head_dim
    return m.heads[n] * m.head_dim, kv, kv


HOW["qkv"] = lambda m, t, n: t.split(*qkv_parts(m, n))


def phi2(m):
    c = base(m, "PhiForCausalLM", "phi", act="gelu_new", partial=True, norm="layer_norm_eps", head_dim=False)
    mats = """
token_embd M.embed_tokens
output_norm M.final_layernorm
output lm_head
B.attn_norm L.input_layernorm
B.attn_qkv L.self_attn.q_proj|L.self_attn.k_proj|L.self_attn.v_proj qkv
B.attn_output L.self_attn.dense
B.ffn_up L.mlp.fc1
B.ffn_down L.mlp.fc2
"""
    m.table(mats)
    return c


def cohere(m):
    two = m.arch == "cohere2"
    arch = "Cohere2ForCausalLM" if two else "CohereForCausalLM"
    c = base(m, arch, "cohere2" if two else "cohere", norm="layer_norm_eps", head_dim=two)
    c["logit_scale"] = m.key("logit_scale")
    if two:
        c.update(sliding_window=m.key("attention.sliding_window"), rotary_pct=1.0)
        c["layer_types" if not m.old else "sliding_window_pattern"] = layer_types(m,
            lambda i: (i + 1) % 4 != 0) if not m.old else 4
    else:
        c["use_qk_norm"] = False
    m.table(join(EMBED, "B.attn_norm L.input_layernorm", ATTN, MLP))
    return c


def gemma(m):
    c = base(m, "GemmaForCausalLM", "gemma", act="gelu")
    c["hidden_activation"] = "gelu_pytorch_tanh"
    m.table(minus_one(join(EMBED, NORMS, ATTN, MLP)))
    return c


GEMMA_NORMS = """
B.attn_norm L.input_layernorm
B.post_attention_norm L.post_attention_layernorm
B.ffn_norm L.pre_feedforward_layernorm
B.post_ffw_norm L.post_feedforward_layernorm
"""


def gemma2(m):
    c = base(m, "Gemma2ForCausalLM", "gemma2", act="gelu_pytorch_tanh")
    c["hidden_activation"] = "gelu_pytorch_tanh"
    c.update(
        attn_logit_softcapping=m.key("attn_logit_softcapping"),
        final_logit_softcapping=m.key("final_logit_softcapping"),
        query_pre_attn_scalar=m.head_dim, sliding_window=m.key("attention.sliding_window"),
    )
    if not m.old:
        c["layer_types"] = layer_types(m, lambda i: i % 2 == 0)
    m.table(minus_one(join(EMBED, GEMMA_NORMS, ATTN, MLP)))
    return c


def gemma3(m):
    full = scaling(m)
    c = base(m, "Gemma3ForCausalLM", "gemma3_text", act="gelu_pytorch_tanh", rope=full)
    theta = m.key("rope.freq_base", 1000000.0)
    c.update(
        hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=m.head_dim,
        sliding_window=m.key("attention.sliding_window"),
    )
    if m.old:
        c.update(rope_theta=theta, rope_local_base_freq=10000.0, sliding_window_pattern=6)
    else:
        local = {"rope_type": "default", "rope_theta": m.key("rope.freq_base_swa", 10000.0)}
        c["rope_parameters"] = {"full_attention": dict(full, rope_theta=theta), "sliding_attention": local}
        c["layer_types"] = layer_types(m, lambda i: (i + 1) % 6 != 0)
    m.table(minus_one(join(EMBED, GEMMA_NORMS, ATTN, HEAD_NORMS, MLP)))
    return c


def gpt2(m):
    heads = m.heads[0]
    c = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
        "n_embd": m.hidden,
        "n_head": heads, "n_layer": m.layers, "n_positions": m.key("context_length"),
        "n_ctx": m.key("context_length"),
        "layer_norm_epsilon": m.key("attention.layer_norm_epsilon"),
        "tie_word_embeddings": not m.has("output.weight"),
        "vocab_size": m.gguf.place["token_embd.weight"][1].shape[0],
    }
    if m.key("feed_forward_length") != 4 * m.hidden:
        c["n_inner"] = m.key("feed_forward_length")
    m.table("""
token_embd M.wte
position_embd M.wpe
output_norm M.ln_f
output lm_head
B.attn_norm M.h.#.ln_1
B.attn_qkv M.h.#.attn.c_attn TW
B.attn_output M.h.#.attn.c_proj TW
B.ffn_norm M.h.#.ln_2
B.ffn_up M.h.#.mlp.c_fc TW
B.ffn_down M.h.#.mlp.c_proj TW
""".replace("M.h.#.", "L."), root="transformer.")
    m.out = {n.replace("transformer.layers.", "transformer.h."): t for n, t in m.out.items()}
    if m.old:  # the files of the first models: no prefix, and the mask of each block
        m.out = {n.replace("transformer.", ""): t for n, t in m.out.items()}
        for n in range(m.layers):
            m.put("h.%d.attn.bias" % n, Tensor("F32", [1, 1, 4, 4], bytes(64)))
    return c


def per_head(m, t, n):
    """Rows q, k, v of all heads to q, k, v of each head."""
    parts = t.split(*qkv_parts(m, n))
    d = m.head_dim
    return cat([p.pick(range(h * d, h * d + d)) for h in range(m.heads[n]) for p in parts])


HOW["head"] = per_head


def gptneox(m):
    c = base(m, "GPTNeoXForCausalLM", "gpt_neox", act="gelu", norm="layer_norm_eps", head_dim=False,
        rope={"rope_type": "default"})
    c["use_parallel_residual"] = m.key("use_parallel_residual", True)
    theta = m.key("rope.freq_base", 10000.0)
    if m.old:
        c.update(rotary_pct=m.rot / m.head_dim, rotary_emb_base=theta)
        del c["rope_theta"], c["rope_scaling"]
    else:
        c["rope_parameters"]["partial_rotary_factor"] = m.rot / m.head_dim
    m.table("""
token_embd M.embed_in
output_norm M.final_layer_norm
output embed_out
B.attn_norm L.input_layernorm
B.ffn_norm L.post_attention_layernorm
B.attn_qkv L.attention.query_key_value head
B.attn_output L.attention.dense
B.ffn_up L.mlp.dense_h_to_4h
B.ffn_down L.mlp.dense_4h_to_h
""", root="gpt_neox.")
    return c


def nemotron(m):
    c = base(m, "NemotronForCausalLM", "nemotron", act="relu2", partial=True, norm="norm_eps")
    norms = []
    for name in [n for n in m.left if n.endswith("norm.weight")]:
        m.name = name
        t = HOW["-1"](m, m.left[name][1], 0)
        m.left[name] = (0, t)
        norms.append(name)
    m.table(join(EMBED, NORMS, ATTN, MLP))
    return c


def apertus(m):
    c = base(m, "ApertusForCausalLM", "apertus", act="xielu", head_dim=False)
    m.table(join(EMBED, "B.attn_norm L.attention_layernorm", "B.ffn_norm L.feedforward_layernorm", ATTN,
        HEAD_NORMS, MLP))
    for key in ("alpha_n", "alpha_p", "beta", "eps"):
        values = m.key("xielu." + key)
        for n, v in enumerate(values if isinstance(values, list) else [values] * m.layers):
            t = Tensor("F32", [1], bytes(4)).map(lambda x, v=v: v)
            m.put("model.layers.%d.mlp.act_fn.%s" % (n, key), t if key.startswith("alpha") else t.reshape())
    return c


def hunyuan(m):
    c = base(m, "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense")
    norms = "B.attn_q_norm L.self_attn.query_layernorm\nB.attn_k_norm L.self_attn.key_layernorm"
    m.table(join(EMBED, NORMS, ATTN, norms, MLP))
    return c


def starcoder2(m):
    c = base(m, "Starcoder2ForCausalLM", "starcoder2", act="gelu_pytorch_tanh", norm="norm_epsilon",
        head_dim=False)
    c.update(use_bias=True, sliding_window=None)
    m.table(join(EMBED, NORMS, ATTN, "B.ffn_up L.mlp.c_fc", "B.ffn_down L.mlp.c_proj"))
    return c


def stablelm(m):
    c = base(m, "StableLmForCausalLM", "stablelm", partial=True, norm="layer_norm_eps", head_dim=False)
    parallel = not m.has("blk.0.ffn_norm.weight")
    c.update(use_qkv_bias=m.has("blk.0.attn_q.bias"), use_parallel_residual=parallel, qk_layernorm=False)
    if m.has("blk.0.attn_q_norm.weight"):
        c["qk_layernorm"] = True
    norms = "B.attn_q_norm L.self_attn.q_layernorm.norms.# E\nB.attn_k_norm L.self_attn.k_layernorm.norms.# E"
    m.table(join(EMBED, NORMS, ATTN, norms, MLP))
    return c


TABLE = {
    "llama": llama, "mistral3": mistral3, "granite": granite, "smollm3": smollm3, "arcee": arcee,
    "olmo": olmo,
    "qwen2": plain("Qwen2ForCausalLM", "qwen2", head_dim=False), "qwen3": plain("Qwen3ForCausalLM", "qwen3"),
    "ernie4_5": plain("Ernie4_5ForCausalLM", "ernie4_5", use_bias=False), "qwen2vl": qwen2vl,
    "qwen3vl": qwen3vl,
    "seed_oss": seed_oss, "olmo2": olmo2, "exaone4": exaone4, "glm4": glm4, "phi3": phi3, "phi2": phi2,
    "command-r": cohere,
    "cohere2": cohere, "gemma": gemma, "gemma2": gemma2, "gemma3": gemma3, "gpt2": gpt2, "gptneox": gptneox,
    "nemotron": nemotron, "apertus": apertus, "hunyuan-dense": hunyuan, "starcoder2": starcoder2,
    "stablelm": stablelm,
}
