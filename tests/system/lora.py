# SPDX-License-Identifier: GPL-3.0-or-later
"""lora.py BASE DIR: adapters for a GGUF file of F32 weights, in DIR, and what they are to compute.

a.gguf adapts every matrix (rank 3), b.gguf those of attention (rank 5), in F16; a-at-1.gguf and mix.gguf are
BASE with a, and with a at 0.5 and b at -0.75, in its weights. alora.gguf is a, invoked by the tokens 5 6.
wide.gguf has the rank 512, so that it is larger than the model.
control.gguf has a direction for block 1, bias.gguf is BASE with it, twice, as the bias of its ffn_down.
bad-NAME.gguf: adapters that are to be refused. a-peft is a as a PEFT directory of a Llama, where BASE is one.
"""

import json
import os
import random
import struct
import sys

from hf.gguf import Gguf


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def meta(key, value):
    """One entry of the metadata: bytes are 32-bit floats or whole numbers of a list, as they are."""
    if isinstance(value, str):
        return string(key) + struct.pack("<I", 8) + string(value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", 6, value)
    if isinstance(value, list):
        return string(key) + struct.pack("<IIQ%dI" % len(value), 9, 4, len(value), *value)
    return string(key) + struct.pack("<II", 4, value)


def write(path, entries, tensors):
    """entries: encoded; tensors: name -> (shape in GGUF's order, values, 'f' or 'e')."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
    data = b""
    for name, (shape, values, form) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        head += struct.pack("<IQ", {"f": 0, "e": 1}[form], len(data))
        data += values if isinstance(values, bytes) else struct.pack("<%d%s" % (len(values), form), *values)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


def entries_of(path):
    """The metadata of a file, entry by entry."""
    g = Gguf(path)
    g.at = 8
    g.value(10)
    out = []
    for _ in range(g.value(10)):
        start = g.at
        g.value(8)
        g.value(g.value(4))
        out.append(bytes(g.data[start : g.at]))
    return out


def adapter_meta(arch, alpha, **more):
    values = {"general.type": "adapter", "general.architecture": arch, "adapter.type": "lora",
        "adapter.lora.alpha": alpha}
    values.update({k.replace("__", "."): v for k, v in more.items()})
    return [meta(k, v) for k, v in values.items() if v is not None]


def make(base, names, rank, seed, form):
    """Random pairs for some of base's matrices, on a grid that F16 holds exactly."""
    draw = random.Random(seed)
    pairs = {}
    for name in names:
        shape = base[name][0]
        more = shape[2:]
        n = more[0] if more else 1
        a = [draw.randint(-64, 64) / 256 for _ in range(n * rank * shape[0])]
        b = [draw.randint(-64, 64) / 256 for _ in range(n * rank * shape[1])]
        pairs[name + ".lora_a"] = ([shape[0], rank] + more, a, form)
        pairs[name + ".lora_b"] = ([rank, shape[1]] + more, b, form)
    return pairs


def merged(base, pairs, factor):
    out = dict(base)
    for name in {n[:-7] for n in pairs}:
        shape, w, form = out[name]
        a, b, rank = pairs[name + ".lora_a"][1], pairs[name + ".lora_b"][1], pairs[name + ".lora_b"][0][0]
        cols, rows, w = shape[0], shape[1], list(w)
        for row in range(len(w) // cols):
            first = row // rows * rank
            for r in range(rank):
                f = factor * b[row * rank + r] / rank
                from_a = (first + r) * cols
                for i in range(cols):
                    w[row * cols + i] += f * a[from_a + i]
        out[name] = (shape, w, form)
    return out


def unpermuted(values, rank, heads):
    """Rows of lora_b of a Llama, whose halves GGUF stores as pairs, as the original has them."""
    rows = [values[i : i + rank] for i in range(0, len(values), rank)]
    dim = len(rows) // heads
    order = [h * dim + 2 * (i % (dim // 2)) + i // (dim // 2) for h in range(heads) for i in range(dim)]
    return [v for i in order for v in rows[i]]


PEFT = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj"}


def write_peft(path, pairs, alpha, rank, heads):
    os.makedirs(path, exist_ok=True)
    header, data = {}, b""
    for name, (shape, values, form) in pairs.items():
        part, half = name.split(".")[2] if name[0] == "b" else "", name[-1].upper()
        if half == "B" and part in heads:
            values = unpermuted(values, rank, heads[part])
        raw = struct.pack("<%d%s" % (len(values), form), *values)
        layer = "model.layers.%s.%s" % (name.split(".")[1], PEFT[part]) if part else "lm_head"
        header["base_model.model.%s.lora_%s.weight" % (layer, half)] = {
            "dtype": {"f": "F32", "e": "F16"}[form], "shape": shape[::-1],
            "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(os.path.join(path, "adapter_model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(path, "adapter_config.json"), "w") as f:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": ["q_proj"],
            "base_model_name_or_path": "x", "bias": "none", "use_rslora": False}, f)


def main():
    path, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    g, entries = Gguf(path), entries_of(path)
    arch = g.meta["general.architecture"].decode()
    base = {n: (t.shape[::-1], t.floats(), "f") for n, (_, t) in g.place.items()}
    matrices = [n for n, (shape, _, _) in base.items()
        if len(shape) > 1 and "token_embd" not in n and "gate_inp" not in n]
    a = make(base, matrices, 3, 1, "f")
    b = make(base, [n for n in matrices if "attn" in n], 5, 2, "e")

    def put(name, entries, tensors):
        write(os.path.join(out, name), entries, tensors)

    put("a.gguf", adapter_meta(arch, 2.0), a)
    put("b.gguf", adapter_meta(arch, 5.0), b)
    put("a-at-1.gguf", entries, merged(base, a, 2.0))
    put("mix.gguf", entries, merged(merged(base, a, 1.0), b, -0.75 * 5))
    put("alora.gguf", adapter_meta(arch, 2.0, adapter__alora__invocation_tokens=[5, 6]), a)
    direction = [random.Random(3).uniform(-1, 1) for _ in range(g.meta[arch + ".embedding_length"])]
    control = [meta("general.architecture", "controlvector"), meta("controlvector.model_hint", arch)]
    put("control.gguf", control, {"direction.1": ([len(direction)], direction, "f")})
    bias = {"blk.1.ffn_down.bias": ([len(direction)], [2 * v for v in direction], "f")}
    put("bias.gguf", entries, {**base, **bias})
    count = arch + ".attention.head_count"
    heads = {"attn_q": g.meta[count], "attn_k": g.meta[count + "_kv"]}
    if all(n.split(".")[2] in PEFT for n in a if n[0] == "b"):
        write_peft(os.path.join(out, "a-peft"), a, 2.0, 3, heads)

    wide, pattern = {}, struct.pack("<8e", *[random.Random(4).uniform(-0.01, 0.01) for _ in range(8)])
    for n in matrices:
        cols, rows = base[n][0][:2]
        if n[0] == "b" and "exps" not in n:
            wide[n + ".lora_a"] = ([cols, 512], pattern * (cols * 64), "e")
            wide[n + ".lora_b"] = ([512, rows], pattern * (rows * 64), "e")
    put("wide.gguf", adapter_meta(arch, 32.0), wide)
    one = matrices[0]
    rows = base[one][0][1]
    short = {n: v for n, v in a.items() if n.startswith(one)}
    bad = {
        "alpha": (adapter_meta(arch, float("nan")), short), "negative": (adapter_meta(arch, -1.0), short),
        "no-alpha": (adapter_meta(arch, None), short), "arch": (adapter_meta("gpt2", 2.0), short),
        "type": (adapter_meta(arch, 2.0, general__type="model"), short),
        "kind": (adapter_meta(arch, 2.0, adapter__type="vera"), short),
        "token": (adapter_meta(arch, 2.0, adapter__alora__invocation_tokens=[1 << 30]), short),
        "half": (adapter_meta(arch, 2.0), {one + ".lora_a": a[one + ".lora_a"]}),
        "name": (adapter_meta(arch, 2.0), {one: a[one + ".lora_a"]}),
        "other": (adapter_meta(arch, 2.0), {n.replace("blk.0", "blk.77"): v for n, v in short.items()}),
        "norm": (adapter_meta(arch, 2.0),
            {"blk.0.attn_norm.weight.lora_" + h: ([3, 3], [0.0] * 9, "f") for h in "ab"}),
        "value": (adapter_meta(arch, 2.0), {**short, one + ".lora_b": (a[one + ".lora_b"][0],
            [float("inf")] + a[one + ".lora_b"][1][1:], "f")}),
        "rows": (adapter_meta(arch, 2.0), {**short, one + ".lora_b": ([3, 1], [1.0] * 3, "f")}),
        "columns": (adapter_meta(arch, 2.0), {**short, one + ".lora_a": ([1, 3], [1.0] * 3, "f")}),
        "rank": (adapter_meta(arch, 2.0), {**short, one + ".lora_b": ([2, rows], [1.0] * 2 * rows, "f")}),
        "empty": (adapter_meta(arch, 2.0), {}),
        "direction": (control, {"direction.0": ([len(direction)], direction, "f")}),
        "beyond": (control, {"direction.99": ([len(direction)], direction, "f")}),
        "short": (control, {"direction.1": ([4], [0.0] * 4, "f")}),
        "hint": ([control[0], meta("controlvector.model_hint", "gpt2")],
            {"direction.1": ([len(direction)], direction, "f")}),
    }
    for name, (entries, tensors) in bad.items():
        put("bad-%s.gguf" % name, entries, tensors)


if __name__ == "__main__":
    main()
