# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what qsf-convert made of a guide, with weights in 8 bits or f16. Layout: qsf-format(5)."""
import struct
import zlib
from math import prod

from .gguf import BLOCK
from .guidefile import GuideFile

# header fields that describe a llama, by offset; metadata need not repeat them
FIELDS = {16: 'block_count', 20: 'embedding_length', 24: 'attention.head_count', 28: 'attention.head_count_kv',
          36: 'context_length', 40: 'feed_forward_length'}
IN_LAYER = ('attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down', 'attn_norm', 'ffn_norm')
OUTPUT_NORM = 32
EIGHTS, PLAIN, SAME = (6, 64 + 8), {7: 'e', 64 + 1: 'e', 8: 'f', 64 + 0: 'f'}, 255
ROWS, X16 = 0, 1
LZ4 = (1, 2)
LINES = 8  # flag: tensors start at multiples of 64


def lz4(block):
    """A raw block, decompressed: literals, then matches in what was written before (lz4/lz4 doc/lz4_Block_format.md)."""
    out, at = bytearray(), 0

    def more(n):
        nonlocal at
        while n >= 15:
            n, at = n + block[at], at + 1
            if block[at - 1] != 255:
                break
        return n
    while True:
        token, at = block[at], at + 1
        n = more(token >> 4)
        out += block[at:at + n]
        at += n
        if at >= len(block):
            return bytes(out)
        back = block[at] | block[at + 1] << 8
        at += 2
        n = more(token & 15) + 4
        if not 0 < back <= len(out):
            raise ValueError(f'a match {back} bytes back, {len(out)} behind the beginning')
        piece = out[-back:] if n >= back else out[-back:len(out) - back + n]
        out += (piece * (n // len(piece) + 1))[:n]


class Reader(GuideFile):
    """A QSF file of version 1 whose head is its embedding. Each checksum that the file has of what is read is held against it."""

    def __init__(self, path):
        super().__init__(path)
        if self.take('4sI') != (b'QSF1', 1):
            raise ValueError(f'{path}: not a QSF file of version 1')
        index, embedding, final, meta, meta_len, meta_crc, self.flags = (
            self.from_offset(form, at)[0] for form, at in (('Q', 56), ('Q', 64), ('Q', 72), ('Q', 100), ('Q', 108), ('I', 116), ('I', 124)))
        self.check('the header', 0, 96, self.from_offset('I', 96)[0])
        self.check('the metadata', meta, meta_len, meta_crc)
        self.at = meta
        self.meta = self.pairs(self.take('Q')[0])
        self.meta.update({f'llama.{name}': self.from_offset('I', at)[0] for at, name in FIELDS.items()})
        self.tensors = {}
        self.final(final)  # up to the end, where decompressed layers are appended
        n_layers = self.meta['llama.block_count']
        self.check('the index', index, 32 * n_layers, self.meta.get('qsf.crc32.index'))
        for i in range(n_layers):
            self.layer(i, *self.from_offset('QIIBBHI', index + 32 * i))
        self.embedding(embedding)

    def from_offset(self, form, at):
        self.at = at
        return self.take(form)

    def check(self, what, at, n, crc):
        if crc is not None and zlib.crc32(self.data[at:at + n]) != crc:
            raise ValueError(f'{self.path}: {what}, {n} bytes at byte offset {at}: another checksum than the file says')

    def layer(self, i, at, size, whole, code, how, n, crc):
        self.check(f'layer {i}', at, size, crc)
        if how in LZ4:
            self.data, at = self.data + self.unpack(i, at, size, whole), len(self.data)
        elif how:
            raise ValueError(f'{self.path}: layer {i} is compressed by method {how}; LZ4 is read')
        end = at + whole
        self.at = at
        for _ in range(n):
            kind = self.tensor(at, code)
            if kind[0] >= len(IN_LAYER):
                raise ValueError(f'{self.path}: layer {i} has a tensor of type {kind[0]}, which no guide has')
            self.tensors[f'blk.{i}.{IN_LAYER[kind[0]]}.weight'] = kind[1:]
        if self.at != end:
            raise ValueError(f'{self.path}: layer {i} has {self.at - at} bytes of tensors, not {whole}')

    def unpack(self, i, at, size, whole):
        try:
            got = lz4(self.data[at:at + size])
        except (ValueError, IndexError) as e:
            raise ValueError(f'{self.path}: layer {i} at byte offset {at}: not LZ4: {e}') from None
        if len(got) != whole:
            raise ValueError(f'{self.path}: layer {i} at byte offset {at} gives {len(got)} bytes, not {whole}')
        return got

    def tensor(self, section, code):
        """(type, shape, code, layout, byte offset of the data) of the next one; the reader then stands behind it."""
        if self.flags & LINES:
            self.at += -(self.at + 16 - section) % 64
        kind, rows, cols, own, layout, zero = self.take('IIIBBH')
        code = code if own == SAME else own
        shape = (rows, cols) if rows > 1 else (cols,)
        if zero or layout > X16 or code not in EIGHTS and (code not in PLAIN or layout):
            raise ValueError(f'{self.path}: tensor at byte offset {self.at - 16}: code {code}, layout {layout}; 8 bits, f16 and f32 are read')
        held = -(-rows // 16) * 16 if layout else rows
        at, blocks = self.at, held * -(-cols // BLOCK)
        self.at += blocks * (2 + BLOCK) if code in EIGHTS else rows * cols * struct.calcsize(PLAIN[code])
        return kind, shape, code, layout, at

    def final(self, at):
        dim = self.meta['llama.embedding_length']
        self.check('the final section', at, len(self.data) - at, self.meta.get('qsf.crc32.final'))
        self.tensors['output_norm.weight'] = (dim,), 7, ROWS, at
        if self.from_offset('B', at + 2 * dim)[0] != 0xFF:
            raise ValueError(f'{self.path}: its head is not its embedding: no guide')
        while self.at < len(self.data):
            kind, *found = self.tensor(at, SAME)
            if kind == OUTPUT_NORM:  # the same, in f32
                self.tensors['output_norm.weight'] = tuple(found)

    def embedding(self, at):
        code, layout, _, size, rows, cols = self.from_offset('BBHIII', at)
        if layout or code not in EIGHTS and code not in PLAIN:
            raise ValueError(f'{self.path}: an embedding of code {code}, layout {layout}; 8 bits, f16 and f32 are read')
        self.check('the embedding', at, 16 + size, self.meta.get('qsf.crc32.embedding'))
        self.tensors['token_embd.weight'] = (rows, cols), code, layout, at + 16

    def numbers(self, name, shape):
        if name not in self.tensors or self.tensors[name][0] != tuple(shape):
            raise ValueError(f'{self.path}: no tensor {name} of {" x ".join(map(str, shape))}: another shape than the recipe\'s')
        _, code, layout, self.at = self.tensors[name]
        if code in EIGHTS:
            n = prod(shape) // BLOCK
            return self.sixteens(shape) if layout else self.eights(n)
        return list(self.take(f'{prod(shape)}{PLAIN[code]}'))

    def sixteens(self, shape):
        """A matrix of 8 bits whose rows are interleaved by 16: 8 planes of 4 numbers for each row, then the scales."""
        rows, blocks = shape[0], shape[1] // BLOCK
        out = []
        for first in range(0, rows, 16):
            group = [self.take(f'{16 * BLOCK}b16e') for _ in range(blocks)]
            for r in range(min(16, rows - first)):
                for b in group:
                    out += [b[16 * BLOCK + r] * v for plane in range(BLOCK // 4) for v in b[64 * plane + 4 * r:64 * plane + 4 * r + 4]]
        return out
