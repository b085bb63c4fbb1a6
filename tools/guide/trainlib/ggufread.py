# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads back what gguf.py and export.py write: a guide to go on from. Layout: ggml-org/ggml docs/gguf.md."""
import hashlib
import random
import struct
from pathlib import Path

from .bpe import SPECIALS, byte_letters, topic_token
from .gguf import ALIGN, BLOCK, F16, F32, Q8_0

# GGUF's types of metadata values that are one number
PLAIN = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}
STRING, ARRAY = 8, 9


class Reader:
    """Metadata and tensors of a file in memory; ValueError with the byte offset where it is not what gguf.py writes."""

    def __init__(self, path):
        self.path, self.data, self.at = path, Path(path).read_bytes(), 0
        self.sha256 = hashlib.sha256(self.data).hexdigest()
        magic, version, n_tensors, n_meta = self.take('4sIQQ')
        if magic != b'GGUF' or version != 3:
            raise ValueError(f'{path}: not a GGUF file of version 3')
        self.meta = {}
        for _ in range(n_meta):
            key = self.text()
            self.meta[key] = self.value(self.take('I')[0])
        self.tensors = {}
        for _ in range(n_tensors):
            name = self.text()
            shape = self.take(f'{self.take("I")[0]}Q')[::-1]
            self.tensors[name] = (shape, *self.take('IQ'))
        self.base = -(-self.at // ALIGN) * ALIGN

    def take(self, form):
        try:
            got = struct.unpack_from('<' + form, self.data, self.at)
        except struct.error:
            raise ValueError(f'{self.path}: ends at byte offset {len(self.data)}, in the middle of what is at {self.at}') from None
        self.at += struct.calcsize('<' + form)
        return got

    def text(self):
        return self.take(f'{self.take("Q")[0]}s')[0].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            of, n = self.take('IQ')
            return [self.text() for _ in range(n)] if of == STRING else list(self.take(f'{n}{self.letter(of)}'))
        return self.take(self.letter(kind))[0]

    def letter(self, kind):
        if kind not in PLAIN:
            raise ValueError(f'{self.path}: metadata of type {kind} at byte offset {self.at}')
        return PLAIN[kind]

    def numbers(self, name, shape):
        """The flat list of a tensor's numbers."""
        if name not in self.tensors or self.tensors[name][0] != tuple(shape):
            raise ValueError(f'{self.path}: no tensor {name} of {" x ".join(map(str, shape))}: another shape than the recipe\'s')
        _, kind, offset = self.tensors[name]
        n = 1
        for d in shape:
            n *= d
        self.at = self.base + offset
        if kind == Q8_0:
            blocks = [self.take(f'e{BLOCK}b') for _ in range(n // BLOCK)]
            return [b[0] * v for b in blocks for v in b[1:]]
        if kind not in (F32, F16):
            raise ValueError(f'{self.path}: tensor {name} is of type {kind}; f32, f16 and Q8_0 are read')
        return list(self.take(f'{n}{"e" if kind == F16 else "f"}'))

    def rows(self, texts, dim):
        """The flat list of the embedding's rows for tokens of these texts; small random numbers for those that it has not."""
        tokens = self.meta['tokenizer.ggml.tokens']
        flat = self.numbers('token_embd.weight', (len(tokens), dim))
        at = {t: i * dim for i, t in enumerate(tokens)}
        out = []
        for t in texts:
            if t in at:
                out += flat[at[t]:at[t] + dim]
            else:
                rng = random.Random(t)
                out += [rng.gauss(0, 0.02) for _ in range(dim)]
        return out

    def merges(self):
        """The merges of the vocabulary, as pairs of ids; export.vocabulary's way back."""
        tokens = self.meta['tokenizer.ggml.tokens']
        if tuple(tokens[-len(SPECIALS):]) != SPECIALS or tokens[:256] != byte_letters():
            raise ValueError(f'{self.path}: not a vocabulary of the guide')
        ids = {t: i for i, t in enumerate(tokens)}
        return [tuple(ids[part] for part in m.split(' ')) for m in self.meta['tokenizer.ggml.merges']]

    def topics(self):
        """The intents that have a token, in the tokens' order."""
        before, after = topic_token('\n').split('\n')
        return [t[len(before):-len(after)] for t in self.meta['tokenizer.ggml.tokens'] if t.startswith(before) and t.endswith(after)]

    def shape(self):
        """As in recipe.json; export.describe's way back."""
        value = {k: self.meta['llama.' + name] for k, name in (
            ('dim', 'embedding_length'), ('layers', 'block_count'), ('heads', 'attention.head_count'),
            ('kv_heads', 'attention.head_count_kv'), ('ffn', 'feed_forward_length'), ('context', 'context_length'))}
        return {**value, 'vocab': len(self.meta['tokenizer.ggml.tokens'])}
