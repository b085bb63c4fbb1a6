# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads back what gguf.py and export.py write. Layout: ggml-org/ggml docs/gguf.md."""
from math import prod

from .gguf import ALIGN, BLOCK, F16, F32, Q8_0
from .guidefile import GuideFile


class Reader(GuideFile):
    """A GGUF file of version 3 with weights in f32, f16 and Q8_0."""

    def __init__(self, path):
        super().__init__(path)
        magic, version, n_tensors, n_meta = self.take('4sIQQ')
        if magic != b'GGUF' or version != 3:
            raise ValueError(f'{path}: not a GGUF file of version 3')
        self.meta = self.pairs(n_meta)
        self.tensors = {}
        for _ in range(n_tensors):
            name = self.text()
            shape = self.take(f'{self.take("I")[0]}Q')[::-1]
            self.tensors[name] = (shape, *self.take('IQ'))
        self.base = -(-self.at // ALIGN) * ALIGN

    def numbers(self, name, shape):
        if name not in self.tensors or self.tensors[name][0] != tuple(shape):
            raise ValueError(f'{self.path}: no tensor {name} of {" x ".join(map(str, shape))}: another shape than the recipe\'s')
        _, kind, offset = self.tensors[name]
        n = prod(shape)
        self.at = self.base + offset
        if kind == Q8_0:
            return self.eights(n // BLOCK)
        if kind not in (F32, F16):
            raise ValueError(f'{self.path}: tensor {name} is of type {kind}; f32, f16 and Q8_0 are read')
        return list(self.take(f'{n}{"e" if kind == F16 else "f"}'))
