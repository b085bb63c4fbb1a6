#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares two GGUF files: gguf_same.py [--no-file-type] A B. Tensors must have the same names, dimensions,
types and bytes, and metadata the same keys, types and values; order does not matter. Layout of the format:
ggml-org/ggml docs/gguf.md."""
import hashlib
import struct
import sys

SCALARS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'I', 7: 'B', 10: 'Q', 11: 'q', 12: 'Q'}


class File:
    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = f.read()
        self.at = 4
        assert self.data[:4] == b'GGUF' and self.number('I') in (2, 3), path
        n_tensors, n_pairs = self.number('Q'), self.number('Q')
        self.meta = {}
        for _ in range(n_pairs):
            key = self.text()
            assert key not in self.meta, key
            kind = self.number('I')
            self.meta[key] = kind, self.value(kind)
        table = [self.tensor() for _ in range(n_tensors)]
        align = self.meta.get(b'general.alignment', (4, 32))[1]
        start = (self.at + align - 1) // align * align
        self.tensors = {}
        places = sorted(t[3] for t in table) + [len(self.data) - start]
        for name, dims, kind, off in table:
            assert off % align == 0 and name not in self.tensors, name
            end = min(p for p in places if p > off)
            self.tensors[name] = dims, kind, self.data[start + off:start + end]

    def number(self, code):
        v, = struct.unpack_from('<' + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return v

    def text(self):
        n = self.number('Q')
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            return self.number(SCALARS[kind])
        elem, n = self.number('I'), self.number('Q')
        return elem, [self.value(elem) for _ in range(n)]

    def tensor(self):
        name, n = self.text(), self.number('I')
        dims = [self.number('Q') for _ in range(n)]
        return name, dims, self.number('I'), self.number('Q')


def same_bytes(a, b):
    """The bytes up to the next tensor, or to the end: one file may have more padding, which is 0."""
    n = min(len(a), len(b))
    return a[:n] == b[:n] and not any(a[n:]) and not any(b[n:]) and abs(len(a) - len(b)) < 64


def main():
    ignored = {b'general.file_type'} if sys.argv[1] == '--no-file-type' else set()
    a, b = (File(p) for p in sys.argv[-2:])
    bad = ['metadata key %s differs' % k.decode() for k in sorted(set(a.meta) | set(b.meta))
           if k not in ignored and a.meta.get(k) != b.meta.get(k)]
    for name in sorted(set(a.tensors) | set(b.tensors)):
        x, y = a.tensors.get(name), b.tensors.get(name)
        if x is None or y is None:
            bad.append('tensor %s is in one file only' % name.decode())
        elif x[:2] != y[:2]:
            bad.append('tensor %s: %s of type %d, and %s of type %d' % (name.decode(), x[0], x[1], y[0],
                y[1]))
        elif not same_bytes(x[2], y[2]):
            bad.append('tensor %s: other bytes, %s and %s' % (
                name.decode(), hashlib.sha1(x[2]).hexdigest()[:8], hashlib.sha1(y[2]).hexdigest()[:8]))
    print('\n'.join(bad[:10]))
    sys.exit(1 if bad else 0)


main()
