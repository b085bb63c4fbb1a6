# SPDX-License-Identifier: GPL-3.0-or-later
"""config.json: the keys that most architectures of huggingface/transformers share, and the parameters of RoPE
(modeling_rope_utils.py), as newer releases write them (rope_parameters) or older ones (rope_theta,
rope_scaling)."""

import math
import struct

from .gguf import Tensor, f32
from .model import NoName

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 512}


def llama3_factors(base, dim):
    out = []
    low = LLAMA3["original_max_position_embeddings"] / LLAMA3["low_freq_factor"]
    high = LLAMA3["original_max_position_embeddings"] / LLAMA3["high_freq_factor"]
    for i in range(0, dim, 2):
        wave = 2 * math.pi * base ** (i / dim)
        if wave < high:
            out.append(1.0)
        elif wave > low:
            out.append(LLAMA3["factor"])
        else:
            smooth = (LLAMA3["original_max_position_embeddings"] / wave - LLAMA3["low_freq_factor"]) / (
                LLAMA3["high_freq_factor"] - LLAMA3["low_freq_factor"]
            )
            out.append(f32(1 / ((1 - smooth) / LLAMA3["factor"] + smooth)))
    return out


def scaling(m):
    """What the GGUF file says about scaled positions."""
    kind = m.key("rope.scaling.type", "none")
    if m.has("rope_freqs.weight"):
        t = m.take("rope_freqs.weight")
        factors = llama3_factors(m.key("rope.freq_base", 10000.0), 2 * t.shape[0])
        m.twin("rope_freqs.weight", Tensor("F32", t.shape, struct.pack("<%df" % len(factors), *factors)))
        return dict(LLAMA3, rope_type="llama3")
    if kind == "none":
        return {"rope_type": "default"}
    if kind == "linear":
        return {"rope_type": "linear", "factor": m.key("rope.scaling.factor")}
    if kind == "yarn":
        p = {
            "rope_type": "yarn", "factor": m.key("rope.scaling.factor"),
            "original_max_position_embeddings": m.key("rope.scaling.original_context_length"),
        }
        for gguf, hf in (("attn_factor", "attention_factor"), ("yarn_beta_fast", "beta_fast"),
            ("yarn_beta_slow", "beta_slow")):
            if m.key("rope.scaling." + gguf) is not None:
                p[hf] = m.key("rope.scaling." + gguf)
        return p
    if kind == "longrope":
        return {
            "rope_type": "longrope", "long_factor": m.take("rope_factors_long.weight").floats(),
            "short_factor": m.take("rope_factors_short.weight").floats(),
            "attention_factor": m.key("rope.scaling.attn_factor"),
        }
    raise NoName("RoPE scaling %s" % kind)


def put_rope(m, c, rope, partial=False):
    """rope: rope_type and its parameters."""
    base = m.key("rope.freq_base", 10000.0)
    part = {"partial_rotary_factor": m.rot / m.head_dim} if partial else {}
    if not m.old:
        c["rope_parameters"] = dict(rope, rope_theta=base, **part)
        return
    c.update(part, rope_theta=base)
    rope = dict(rope)
    kind = rope.pop("rope_type")
    c["rope_scaling"] = None if kind == "default" else dict(rope,
        **{"rope_type" if kind == "llama3" else "type": kind})


def base(m, arch, model_type, act="silu", partial=False, rope=None, norm="rms_norm_eps", head_dim=True):
    """The keys of a llama-like architecture."""
    eps = m.key("attention.layer_norm_rms_epsilon", m.key("attention.layer_norm_epsilon"))
    ffn = m.key("feed_forward_length")
    c = {
        "architectures": [arch], "model_type": model_type, "hidden_act": act, "hidden_size": m.hidden,
        "intermediate_size": max(ffn) if isinstance(ffn, list) else ffn, "num_hidden_layers": m.layers,
        "num_attention_heads": max(m.heads), "num_key_value_heads": max(m.kv_heads), norm: eps,
        "max_position_embeddings": m.key("context_length"),
        "vocab_size": m.gguf.place["token_embd.weight"][1].shape[0],
        "tie_word_embeddings": not m.has("output.weight"), "torch_dtype": "float16",
    }
    if head_dim:
        c["head_dim"] = m.head_dim
    put_rope(m, c, rope if rope is not None else scaling(m), partial)
    return c


def layer_types(m, default):
    """sliding_window_pattern as layer_types; default: for block i, without the key."""
    p = m.key("attention.sliding_window_pattern")
    if isinstance(p, int) and not isinstance(p, bool):
        p = [(i + 1) % p != 0 for i in range(m.layers)]
    if p is None:
        p = [default(i) for i in range(m.layers)]
    return ["sliding_attention" if x else "full_attention" for x in p[: m.layers]]
