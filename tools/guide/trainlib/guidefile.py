# SPDX-License-Identifier: GPL-3.0-or-later
"""A guide to go on from, as its file says it: what GGUF and QSF files have in common."""
import hashlib
import random
import struct
from pathlib import Path

from .bpe import SPECIALS, byte_letters, topic_token
from .gguf import BLOCK

# types of metadata values that are a single number
PLAIN = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}
STRING, ARRAY = 8, 9


class GuideFile:
    """A file in memory that is read from the byte offset `at` on; ValueError with the offset where it is not as it should be.
    meta is its metadata; numbers(name, shape) gives the flat list of a tensor's numbers."""

    def __init__(self, path):
        self.path, self.data, self.at = path, Path(path).read_bytes(), 0
        self.sha256 = hashlib.sha256(self.data).hexdigest()

    def take(self, form):
        try:
            got = struct.unpack_from('<' + form, self.data, self.at)
        except struct.error:
            raise ValueError(f'{self.path}: ends at byte offset {len(self.data)}, in the middle of what is at {self.at}') from None
        self.at += struct.calcsize('<' + form)
        return got

    def text(self):
        return self.take(f'{self.take("Q")[0]}s')[0].decode()

    def pairs(self, n):
        """So many keys and values."""
        return {self.text(): self.value(self.take('I')[0]) for _ in range(n)}

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

    def eights(self, n):
        """The numbers of n blocks of Q8_0."""
        blocks = (self.take(f'e{BLOCK}b') for _ in range(n))
        return [scale * v for scale, *values in blocks for v in values]

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
        nextn = self.meta.get('llama.nextn_predict_layers', 0)
        return {**value, 'layers': value['layers'] - nextn, 'nextn': nextn, 'vocab': len(self.meta['tokenizer.ggml.tokens'])}
