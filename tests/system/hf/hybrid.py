# SPDX-License-Identifier: GPL-3.0-or-later
"""Architectures with recurrent layers."""

from .config import base
from .dense import ATTN, ATTN_PAIRS, EMBED, MLP, NORMS, join, nested
from .experts import (EXPERTS, MLA, SHARED, deepseek_like, experts, granite_scales, input_linear, kv_b,
                      mla_keys)
from .gguf import cat, stack
from .model import HOW, NoName


def scan(prefix):
    """A Mamba layer, of either kind. A and D of Mamba-2 are columns in GGUF, its norm one row per group."""
    return """
B.ssm_in P.in_proj
B.ssm_conv1d P.conv1d convw
B.ssm_x P.x_proj
B.ssm_dt_norm P.dt_layernorm
B.ssm_b_norm P.b_layernorm
B.ssm_c_norm P.c_layernorm
B.ssm_a P.A_log! Acol
B.ssm_d P.D! flat
B.ssm_norm P.norm flat
B.ssm_out P.out_proj
""".replace("P.", prefix)


def dt(m, prefix):
    """Mamba-1 has a projection with a bias, Mamba-2 a bias alone."""
    if m.key("ssm.group_count"):
        return "B.ssm_dt %sdt_bias!" % prefix
    return "B.ssm_dt %sdt_proj" % prefix


def convw(m, t, n):
    return t.reshape(t.shape[0], 1, t.shape[-1]) if len(t.shape) == 2 else t


def a_col(m, t, n):
    return HOW["A"](m, t.reshape(t.shape[0]) if t.shape[-1] == 1 else t, n)


HOW["convw"], HOW["Acol"] = convw, a_col


def mamba(m):
    two = m.arch == "mamba2"
    inner = m.key("ssm.inner_size")
    c = {
        "architectures": ["Mamba2ForCausalLM" if two else "MambaForCausalLM"], "model_type": m.arch,
        "hidden_act": "silu",
        "hidden_size": m.hidden, "num_hidden_layers": m.layers, "state_size": m.key("ssm.state_size"),
        "conv_kernel": m.key("ssm.conv_kernel"), "expand": inner // m.hidden, "use_bias": False,
        "use_conv_bias": True,
        "layer_norm_epsilon": m.key("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": not m.has("output.weight"),
        "vocab_size": m.gguf.place["token_embd.weight"][1].shape[0],
    }
    if two:
        heads = m.key("ssm.time_step_rank")
        c.update(num_heads=heads, head_dim=inner // heads, n_groups=m.key("ssm.group_count"))
        c["time_step_limit"] = [0.0, float("inf")]  # which is not JSON, but what Python writes
    else:
        c.update(intermediate_size=inner, time_step_rank=m.key("ssm.time_step_rank"))
    top = "token_embd M.embeddings\noutput_norm M.norm_f\noutput lm_head\nB.attn_norm L.norm"
    m.table(join(top, scan("L.mixer."), dt(m, "L.mixer.")), root="backbone.")
    return c


def jamba(m):
    c = base(m, "JambaForCausalLM", "jamba", head_dim=False)
    for key in ("rope_parameters", "rope_theta", "rope_scaling"):
        c.pop(key, None)
    attn = [i for i in range(m.layers) if m.kv_heads[i]]
    moe = [i for i in range(m.layers) if m.has("blk.%d.ffn_gate_inp.weight" % i)]
    c["num_experts"], c["num_experts_per_tok"] = experts(m)
    c.update(
        attn_layer_offset=attn[0], attn_layer_period=m.layers, expert_layer_offset=moe[0],
        expert_layer_period=moe[1] - moe[0],
        mamba_d_conv=m.key("ssm.conv_kernel"), mamba_d_state=m.key("ssm.state_size"),
        mamba_dt_rank=m.key("ssm.time_step_rank"),
        mamba_expand=m.key("ssm.inner_size") // m.hidden, mamba_conv_bias=True, mamba_proj_bias=False,
    )
    names = join(EMBED.replace("M.norm", "M.final_layernorm"), NORMS.replace("post_attention", "pre_ff"),
        ATTN)
    m.table(join(names, scan("L.mamba."), dt(m, "L.mamba."),
        (MLP + EXPERTS).replace("L.mlp.", "L.feed_forward.").replace("feed_forward.gate\n",
            "feed_forward.router\n")))
    return c


def mamba2_keys(m):
    heads, inner = m.key("ssm.time_step_rank"), m.key("ssm.inner_size")
    return {
        "mamba_n_heads": heads, "mamba_d_head": inner // heads, "mamba_n_groups": m.key("ssm.group_count"),
        "mamba_d_state": m.key("ssm.state_size"), "mamba_d_conv": m.key("ssm.conv_kernel"),
        "mamba_expand": inner // m.hidden,
        "mamba_conv_bias": True, "mamba_proj_bias": False,
    }


def granitehybrid(m):
    if m.key("rope.scaling.finetuned"):
        raise NoName("GraniteMoeHybridForCausalLM with recurrent layers has no RoPE")
    c = base(m, "GraniteMoeHybridForCausalLM", "granitemoehybrid", head_dim=False)
    c.update(granite_scales(m), position_embedding_type="nope", **mamba2_keys(m))
    c["layer_types"] = ["attention" if n else "mamba" for n in m.kv_heads]
    count = m.key("expert_count", 0)
    c.update(num_local_experts=count, num_experts_per_tok=m.key("expert_used_count", 0))
    c["shared_intermediate_size"] = m.key("expert_shared_feed_forward_length") if count else m.key(
        "feed_forward_length")
    input_linear(m)
    m.table(join(EMBED, NORMS, ATTN_PAIRS, scan("L.mamba."), dt(m, "L.mamba.")))
    return c


def scaled(factor):
    return lambda m, t, n: exact(m, t, lambda i, x: x / factor)


def exact(m, t, f):
    """Powers of two change no bit of an F16 value but its exponent."""
    v = [f(i, x) for i, x in enumerate(t.floats())]
    return type(t)(t.dtype, t.shape, __import__("struct").pack(
        "<%d%s" % (len(v), {"F32": "f", "F16": "e"}[t.dtype]), *v))


H1 = {
    "embedding_multiplier": 2.0, "lm_head_multiplier": 0.5, "key_multiplier": 0.5,
    "attention_in_multiplier": 2.0,
    "attention_out_multiplier": 0.5, "ssm_in_multiplier": 2.0, "ssm_out_multiplier": 0.5,
    "mlp_multipliers": [2.0, 0.5],
    "ssm_multipliers": [0.5, 2.0, 4.0, 0.25, 0.5],
}


def h1_in(m, t, n):
    inner, g = m.key("ssm.inner_size"), m.key("ssm.group_count") * m.key("ssm.state_size")
    cols, ends = t.shape[1], [inner, 2 * inner, 2 * inner + g, 2 * inner + 2 * g, t.shape[0]]
    part = lambda row: next(i for i, e in enumerate(ends) if row < e)
    return exact(m, t, lambda i, x: x / H1["ssm_in_multiplier"] / H1["ssm_multipliers"][part(i // cols)])


def falcon_h1(m):
    c = base(m, "FalconH1ForCausalLM", "falcon_h1")
    c.update(H1, mamba_d_ssm=m.key("ssm.inner_size"), mamba_rms_norm=m.has("blk.0.ssm_norm.weight"),
        **mamba2_keys(m))
    c.update(mamba_norm_before_gate=False, mamba_use_mlp=True)
    HOW["h1in"] = h1_in
    for how, factor in {
        "emb": H1["embedding_multiplier"], "head": H1["lm_head_multiplier"],
        "att": H1["attention_in_multiplier"],
        "key": H1["attention_in_multiplier"] * H1["key_multiplier"], "out": H1["attention_out_multiplier"],
        "gate": H1["mlp_multipliers"][0], "down": H1["mlp_multipliers"][1], "so": H1["ssm_out_multiplier"],
    }.items():
        HOW["h1" + how] = scaled(factor)
    names = """
token_embd M.embed_tokens h1emb
output_norm M.final_layernorm
output lm_head h1head
B.attn_norm L.input_layernorm
B.ffn_norm L.pre_ff_layernorm
B.attn_q L.self_attn.q_proj h1att
B.attn_k L.self_attn.k_proj h1key
B.attn_v L.self_attn.v_proj h1att
B.attn_output L.self_attn.o_proj h1out
B.ffn_gate L.feed_forward.gate_proj h1gate
B.ffn_up L.feed_forward.up_proj
B.ffn_down L.feed_forward.down_proj h1down
"""
    mixer = scan("L.mamba.").replace("in_proj", "in_proj h1in").replace("out_proj", "out_proj h1so")
    m.table(join(names, mixer, dt(m, "L.mamba.")))
    for n in range(m.layers):  # the only norm without .weight
        m.out["model.layers.%d.pre_ff_layernorm.weight" % n] = m.out.pop(
            "model.layers.%d.pre_ff_layernorm" % n)
    return c


def nemotron_h(m):
    moe = m.arch == "nemotron_h_moe"
    c = base(m, "NemotronHForCausalLM", "nemotron_h", norm="layer_norm_epsilon")
    for key in ("rope_parameters", "rope_theta", "rope_scaling", "hidden_act"):
        c.pop(key, None)
    c["layer_norm_epsilon"] = m.key("attention.layer_norm_rms_epsilon")
    heads, inner = m.key("ssm.time_step_rank"), m.key("ssm.inner_size")
    kinds = ["*" if kv else ("E" if moe else "-") if ffn else "M"
        for kv, ffn in zip(m.kv_heads, m.per_layer("feed_forward_length"))]
    c.update(
        hybrid_override_pattern="".join(kinds), mamba_num_heads=heads, mamba_head_dim=inner // heads,
        n_groups=m.key("ssm.group_count"), ssm_state_size=m.key("ssm.state_size"),
        conv_kernel=m.key("ssm.conv_kernel"),
        time_step_limit=[0.0, float("inf")], expand=2, mlp_hidden_act="relu2", mamba_hidden_act="silu",
        use_conv_bias=True, attention_head_dim=m.head_dim,
    )
    if moe:
        deepseek_like(m, c)
        for key in ("first_k_dense_replace", "scoring_func"):
            del c[key]
        c["moe_shared_expert_intermediate_size"] = m.key("expert_shared_feed_forward_length")
    names = """
token_embd M.embeddings
output_norm M.norm_f
output lm_head
B.attn_norm L.norm
B.ffn_up L.mixer.up_proj
B.ffn_down L.mixer.down_proj
B.exp_probs_b L.mixer.gate.e_score_correction_bias!
"""
    rest = (ATTN_PAIRS.replace("self_attn", "mixer")
        + (EXPERTS + SHARED).replace("L.mlp.", "L.mixer.")).strip()
    m.table(join(names, rest, scan("L.mixer."), dt(m, "L.mixer.")), root="backbone.")
    return c


def lfm2(m):
    moe = m.arch == "lfm2moe"
    c = base(m, "Lfm2MoeForCausalLM" if moe else "Lfm2ForCausalLM", "lfm2_moe" if moe else "lfm2",
        norm="norm_eps", head_dim=False)
    c.update(conv_L_cache=m.key("shortconv.l_cache"), conv_bias=False)
    if m.old:
        c["full_attn_idxs"] = [i for i, kv in enumerate(m.kv_heads) if kv]
    else:
        c["layer_types"] = ["full_attention" if kv else "conv" for kv in m.kv_heads]
    if moe:
        c["num_experts"], c["num_experts_per_tok"] = experts(m)
        c.update(
            moe_intermediate_size=m.key("expert_feed_forward_length"),
            num_dense_layers=m.key("leading_dense_block_count"),
            norm_topk_prob=True, use_expert_bias=True, routed_scaling_factor=1.0,
        )
    else:
        c.update(block_auto_adjust_ff_dim=False, block_ff_dim=c["intermediate_size"], block_multiple_of=256,
            block_ffn_dim_multiplier=1.0)
    names = """
token_embd M.embed_tokens
token_embd_norm M.embedding_norm
output lm_head
B.attn_norm L.operator_norm
B.ffn_norm L.ffn_norm
B.shortconv.conv L.conv.conv convw
B.shortconv.in_proj L.conv.in_proj
B.shortconv.out_proj L.conv.out_proj
B.attn_q_norm L.self_attn.q_layernorm
B.attn_k_norm L.self_attn.k_layernorm
B.ffn_gate L.feed_forward.w1
B.ffn_down L.feed_forward.w2
B.ffn_up L.feed_forward.w3
B.ffn_gate_inp L.feed_forward.gate
B.exp_probs_b L.feed_forward.expert_bias!
B.ffn_gate_exps L.feed_forward.experts.#.w1 E
B.ffn_down_exps L.feed_forward.experts.#.w2 E
B.ffn_up_exps L.feed_forward.experts.#.w3 E
"""
    m.table(join(names, ATTN.replace("o_proj", "out_proj")))
    return c


def delta_keys(m, c):
    heads = m.key("ssm.time_step_rank")
    c.update(
        linear_conv_kernel_dim=m.key("ssm.conv_kernel"), linear_key_head_dim=m.key("ssm.state_size"),
        linear_num_key_heads=m.key("ssm.group_count"), linear_num_value_heads=heads,
        linear_value_head_dim=m.key("ssm.inner_size") // heads,
    )
    step = m.key("full_attention_interval")
    count = c["num_hidden_layers"]
    if m.old:
        c["full_attention_interval"] = step
    else:
        c["layer_types"] = ["linear_attention" if (i + 1) % step else "full_attention" for i in range(count)]


PLUS_ONE = """
output_norm M.norm -1
B.attn_norm L.input_layernorm -1
B.post_attention_norm L.post_attention_layernorm -1
B.attn_q_norm L.self_attn.q_norm -1
B.attn_k_norm L.self_attn.k_norm -1
token_embd M.embed_tokens
output lm_head
"""


def moe_keys(m, c):
    c["num_experts"], c["num_experts_per_tok"] = experts(m)
    c["moe_intermediate_size"] = m.key("expert_feed_forward_length")
    c["shared_expert_intermediate_size"] = m.key("expert_shared_feed_forward_length")


SHARED_EXPERT = SHARED.replace("shared_experts",
    "shared_expert") + "B.ffn_gate_inp_shexp L.mlp.shared_expert_gate row"


def qkvz(m, n):
    """q, k, v and z of each key head together."""
    qkv, z = m.take("blk.%d.attn_qkv.weight" % n), m.take("blk.%d.attn_gate.weight" % n)
    groups, size, inner = m.key("ssm.group_count"), m.key("ssm.state_size"), m.key("ssm.inner_size")
    q, k, v = qkv.split(groups * size, groups * size, inner)
    part = lambda t, g: t.pick(range(g * t.shape[0] // groups, (g + 1) * t.shape[0] // groups))
    return cat([part(t, g) for g in range(groups) for t in (q, k, v, z)])


def qwen3next(m):
    c = base(m, "Qwen3NextForCausalLM", "qwen3_next", partial=True)
    delta_keys(m, c)
    moe_keys(m, c)
    c.update(norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
    for n in range(m.layers):
        if m.has("blk.%d.attn_qkv.weight" % n):
            m.put("model.layers.%d.linear_attn.in_proj_qkvz.weight" % n, qkvz(m, n))
    names = """
B.ssm_ba L.linear_attn.in_proj_ba
B.ssm_conv1d L.linear_attn.conv1d convw
B.ssm_dt L.linear_attn.dt_bias!
B.ssm_a L.linear_attn.A_log! A
B.ssm_norm L.linear_attn.norm
B.ssm_out L.linear_attn.out_proj
"""
    m.table(join(PLUS_ONE, ATTN, names, EXPERTS, SHARED_EXPERT))
    return c


def by_group(m, size):
    """Value heads in GGUF: the first of every key head, then the second; in the model: all of a key head."""
    groups, heads = m.key("ssm.group_count"), m.key("ssm.time_step_rank")
    return [((h % (heads // groups)) * groups + h // (heads // groups)) * size + i for h in range(heads)
        for i in range(size)]


def tiled(m, t, n):
    return t.pick(by_group(m, t.shape[0] // m.key("ssm.time_step_rank")))


def tiled_tail(m, t, n):
    """Behind q and k."""
    head = 2 * m.key("ssm.group_count") * m.key("ssm.state_size")
    qk, v = t.split(head, t.shape[0] - head)
    return cat([qk, tiled(m, v, n)])


HOW.update({
    "tiled": tiled, "tail": tiled_tail, "convtail": lambda m, t, n: convw(m, tiled_tail(m, t, n), n),
    "Atiled": lambda m, t, n: tiled(m, HOW["A"](m, t, n), n),
    "columns": lambda m, t, n: tiled(m, t.transpose(), n).transpose(),
})


def qwen35(m):
    moe = m.arch == "qwen35moe"
    name, kind = ("Qwen3_5Moe", "qwen3_5_moe") if moe else ("Qwen3_5", "qwen3_5")
    nextn = m.key("nextn_predict_layers", 0)
    rope = {"rope_type": "default", "mrope_interleaved": True,
        "mrope_section": m.key("rope.dimension_sections")[:3]}
    m.old = False
    text = base(m, "", kind + "_text", partial=True, rope=rope)
    text["num_hidden_layers"] -= nextn
    if nextn:
        text["mtp_num_hidden_layers"] = nextn
    delta_keys(m, text)
    names = """
B.attn_qkv L.linear_attn.in_proj_qkv tail
B.attn_gate L.linear_attn.in_proj_z tiled
B.ssm_beta L.linear_attn.in_proj_b tiled
B.ssm_alpha L.linear_attn.in_proj_a tiled
B.ssm_conv1d L.linear_attn.conv1d convtail
B.ssm_dt L.linear_attn.dt_bias! tiled
B.ssm_a L.linear_attn.A_log! Atiled
B.ssm_norm L.linear_attn.norm
B.ssm_out L.linear_attn.out_proj columns
B.nextn.eh_proj mtp.fc
B.nextn.enorm mtp.pre_fc_norm_embedding -1
B.nextn.hnorm mtp.pre_fc_norm_hidden -1
B.nextn.shared_head_norm mtp.norm -1
"""
    if moe:
        moe_keys(m, text)
        for n in range(m.layers):
            w = [m.take("blk.%d.ffn_%s_exps.weight" % (n, k)).unstack() for k in ("gate", "up")]
            m.put("model.language_model.layers.%d.mlp.experts.gate_up_proj" % n,
                stack([cat(pair) for pair in zip(*w)]))
        names += "B.ffn_gate_inp L.mlp.gate\nB.ffn_down_exps L.mlp.experts.down_proj!\n" + SHARED_EXPERT
    c = nested(m, text, name + "ForConditionalGeneration", kind, join(PLUS_ONE, ATTN, MLP, names))
    last = "model.language_model.layers.%d." % (m.layers - 1)
    if nextn:
        m.out = {name.replace(last, "mtp.layers.0."): t for name, t in m.out.items()}
    return c


def kimi(m):
    c = base(m, "KimiLinearForCausalLM", "kimi_linear", rope={"rope_type": "default"})
    mla_keys(m, c)
    c["num_key_value_heads"] = c["num_attention_heads"]
    kda = [i + 1 for i in range(m.layers) if not m.kv_heads[i]]
    c["linear_attn_config"] = {
        "kda_layers": kda, "full_attn_layers": [i + 1 for i in range(m.layers) if m.kv_heads[i]],
        "num_heads": m.heads[0],
        "head_dim": m.key("kda.head_dim"), "short_conv_kernel_size": m.key("ssm.conv_kernel"),
    }
    c["num_experts"], c["num_experts_per_token"] = experts(m)
    c.update(
        moe_intermediate_size=m.key("expert_feed_forward_length"),
        num_shared_experts=m.key("expert_shared_count"),
        first_k_dense_replace=m.key("leading_dense_block_count"),
        routed_scaling_factor=m.key("expert_weights_scale"),
        moe_router_activation_func="sigmoid", moe_renormalize=True, mla_use_nope=True, num_expert_group=1,
        topk_group=1,
        moe_layer_freq=1, use_grouped_topk=True,
    )
    for n in range(m.layers):
        kv_b(m, n)
    names = """
B.ssm_conv1d_q L.self_attn.q_conv1d
B.ssm_conv1d_k L.self_attn.k_conv1d
B.ssm_conv1d_v L.self_attn.v_conv1d
B.attn_k L.self_attn.k_proj
B.attn_v L.self_attn.v_proj
B.ssm_f_a L.self_attn.f_a_proj
B.ssm_f_b L.self_attn.f_b_proj
B.ssm_beta L.self_attn.b_proj
B.ssm_a L.self_attn.A_log! Akimi
B.ssm_dt L.self_attn.dt_bias!
B.ssm_g_a L.self_attn.g_a_proj
B.ssm_g_b L.self_attn.g_b_proj
B.ssm_norm L.self_attn.o_norm
B.exp_probs_b L.block_sparse_moe.gate.e_score_correction_bias!
B.ffn_gate_inp L.block_sparse_moe.gate
B.ffn_gate_exps L.block_sparse_moe.experts.#.w1 E
B.ffn_down_exps L.block_sparse_moe.experts.#.w2 E
B.ffn_up_exps L.block_sparse_moe.experts.#.w3 E
"""
    HOW["Akimi"] = lambda m, t, n: HOW["A"](m, t.reshape(1, 1, len(t.data) // 4, 1), n)
    m.table(join(EMBED, NORMS, MLA, MLP, names, SHARED.replace("L.mlp.", "L.block_sparse_moe.")))
    return c


TABLE = {
    "mamba": mamba, "mamba2": mamba, "jamba": jamba, "granitehybrid": granitehybrid, "falcon-h1": falcon_h1,
    "nemotron_h": nemotron_h, "nemotron_h_moe": nemotron_h, "lfm2": lfm2, "lfm2moe": lfm2,
    "qwen3next": qwen3next,
    "qwen35": qwen35, "qwen35moe": qwen35, "kimi-linear": kimi,
}
