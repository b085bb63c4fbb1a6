#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrites the matrices of a Hugging Face directory as F8 with scales of blocks, and writes the same weights
as BF16.

usage: fp8.py DIR FP8_DIR BF16_DIR ROWS COLS

The scales are random: a directory of F8 must give the same bytes as one of the products, rounded to BF16."""

import json
import os
import random
import shutil
import struct
import sys


KEPT = ("embed", "lm_head", "norm", "mlp.gate.weight", "wte", "wpe", "_inp")


def e4m3(code):
    sign, exp, frac = code >> 7, code >> 3 & 15, code & 7
    v = frac / 8 * 2.0**-6 if exp == 0 else (1 + frac / 8) * 2.0 ** (exp - 7)
    return -v if sign else v


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def main():
    src, fp8, plain = sys.argv[1:4]
    block = [int(x) for x in sys.argv[4:6]]
    with open(src + "/model.safetensors", "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    head, body, rng = json.loads(data[8 : 8 + n]), data[8 + n :], random.Random(1)
    codes = [c for c in range(256) if abs(e4m3(c)) <= 30 and c & 0x7F != 0x7F]
    out = {fp8: [], plain: []}
    for name, t in head.items():
        raw = body[t["data_offsets"][0] : t["data_offsets"][1]]
        if len(t["shape"]) != 2 or any(part in name for part in KEPT):
            for d in out.values():
                d.append((name, t["dtype"], t["shape"], raw))
            continue
        rows, cols = t["shape"]
        grid = [-(-rows // block[0]), -(-cols // block[1])]
        scales = [f32(rng.uniform(0.5, 2) * 2.0**-7) for _ in range(grid[0] * grid[1])]
        w = [rng.choice(codes) for _ in range(rows * cols)]
        v = [bf16(e4m3(c) * scales[i // cols // block[0] * grid[1] + i % cols // block[1]])
            for i, c in enumerate(w)]
        out[fp8].append((name, "F8_E4M3", t["shape"], bytes(w)))
        out[fp8].append((name + "_scale_inv", "F32", grid, struct.pack("<%df" % len(scales), *scales)))
        out[plain].append((name, "BF16", t["shape"], struct.pack("<%dH" % len(v), *v)))
    for path, tensors in out.items():
        shutil.copytree(src, path)
        header, at = {}, 0
        for name, dtype, shape, raw in tensors:
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
            at += len(raw)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        os.remove(path + "/model.safetensors")
        with open(path + "/model.safetensors", "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors))
    with open(fp8 + "/config.json") as f:
        config = json.load(f)
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": block}
    with open(fp8 + "/config.json", "w") as f:
        json.dump(config, f)


main()
