#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives the matrices of the blocks of a GGUF model with F32 weights two-bit codes and a scale for every 32 of
them:
split_scales.py MODEL OUT LAYOUT [WRONG]. LAYOUT: inline (bitnet32f16), or f16 or f32 for split32 with scales
of that type.
The same model gives the same weights. WRONG spoils a split32 file: missing (no scales for one matrix), count
(one scale too many), type (integers), large (a scale beyond float16)."""
import random
import struct
import sys

from hf.gguf import Gguf

SUFFIXES = [".scale", "_scale", ".scales", "_scales", ".weight.scale", ".weight_scale", ".weight.scales"]


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


class Writer:
    def __init__(self):
        self.table, self.data, self.n = [], bytearray(), 0

    def add(self, name, kind, shape, data):
        self.table.append(text(name) + struct.pack("<I%dQ" % len(shape), len(shape), *shape[::-1])
            + struct.pack("<IQ", kind, len(self.data)))
        self.data += data + b"\0" * (-len(data) % 32)

    def write(self, path, pairs, n_pairs):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.table), n_pairs) + pairs + b"".join(self.table)
        with open(path, "wb") as f:
            f.write(head + b"\0" * (-len(head) % 32) + self.data)


def add_matrix(out, i, name, tensor, layout, wrong):
    rows, cols = tensor.shape
    draw = random.Random(i)
    n = rows * cols // 32
    codes = [bytes(draw.randrange(256) for _ in range(8)) for _ in range(n)]
    scales = [draw.randrange(1, 256) / 4096 for _ in range(n)]
    if layout == "inline":
        out.add(name, 36, tensor.shape, b"".join(c + struct.pack("<e", s) for c, s in zip(codes, scales)))
        return
    if wrong == "large":
        scales[-1] = 1e6
    form, kind, shape = ("e", 1, [rows, cols // 32]) if layout == "f16" else ("f", 0, [n])
    data = struct.pack("<%d%s" % (n, form), *scales)
    if wrong == "count":
        shape, data = [n + 1], data + data[-4:]
    if wrong == "type":
        kind = 26
    base = name[: -len(".weight")] + SUFFIXES[i % len(SUFFIXES)]
    if i % 2 and wrong != "missing":  # before the codes, or after them
        out.add(base, kind, shape, data)
    out.add(name, 36, tensor.shape, b"".join(codes))
    if not i % 2 and wrong != "missing":
        out.add(base, kind, shape, data)


def main(path, target, layout, wrong=None):
    g = Gguf(path)
    g.at = 16
    n_pairs = g.value(10)
    start = g.at
    for _ in range(n_pairs):
        g.value(8)
        g.value(g.value(4))
    pairs = bytes(g.data[start : g.at])
    out = Writer()
    matrices = [n for n, (_, t) in g.place.items() if n.startswith("blk.") and len(t.shape) == 2]
    for name, (_, tensor) in g.place.items():
        if name in matrices:
            i = matrices.index(name)
            add_matrix(out, i, name, tensor, layout, wrong if i == 3 else None)
        else:
            out.add(name, 0, tensor.shape, tensor.data)
    out.write(target, pairs, n_pairs)


main(*sys.argv[1:])
