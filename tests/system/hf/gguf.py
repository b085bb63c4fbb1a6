# SPDX-License-Identifier: GPL-3.0-or-later
"""A GGUF file (ggml-org/ggml docs/gguf.md) and tensors in plain Python: bytes, and moves of whole rows."""

import struct

from .noname import NoName

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
DTYPES = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}
SIZES = dict(DTYPES.values(), U8=1)


class Tensor:
    """Elements in row-major order; shape as in PyTorch, the longest stride first."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)
        n = SIZES[dtype]
        for size in self.shape:
            n *= size
        if n != len(self.data):
            raise ValueError("%s %s has %d bytes" % (dtype, shape, len(self.data)))

    def pieces(self):
        """The bytes of each element of the first dimension."""
        size = len(self.data) // self.shape[0]
        return [self.data[i : i + size] for i in range(0, len(self.data), size)]

    def pick(self, order):
        """Elements of the first dimension in this order."""
        p = self.pieces()
        return Tensor(self.dtype, [len(order)] + self.shape[1:], b"".join(p[i] for i in order))

    def reshape(self, *shape):
        return Tensor(self.dtype, shape, self.data)

    def split(self, *sizes):
        if sum(sizes) != self.shape[0]:
            raise ValueError("%s does not split into %s" % (self.shape, sizes))
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return [self.pick(range(a, a + n)) for a, n in zip(starts, sizes)]

    def unstack(self):
        return [Tensor(self.dtype, self.shape[1:], p) for p in self.pieces()]

    def transpose(self):
        """Of the last two dimensions."""
        if len(self.shape) > 2:
            return stack([t.transpose() for t in self.unstack()])
        rows, cols, n = self.shape[0], self.shape[1], SIZES[self.dtype]
        cell = [self.data[i : i + n] for i in range(0, len(self.data), n)]
        return Tensor(self.dtype, [cols, rows],
            b"".join(cell[r * cols + c] for c in range(cols) for r in range(rows)))

    def floats(self):
        if self.dtype == "BF16":
            return [struct.unpack("<f", b"\0\0" + self.data[i : i + 2])[0]
                for i in range(0, len(self.data), 2)]
        form = {"F32": "f", "F16": "e"}[self.dtype]
        return list(struct.unpack("<%d%s" % (len(self.data) // SIZES[self.dtype], form), self.data))

    def map(self, f):
        """f of each value, in F32."""
        v = [f(x) for x in self.floats()]
        return Tensor("F32", self.shape, struct.pack("<%df" % len(v), *v))


def cat(tensors):
    """Along the first dimension."""
    if len({(t.dtype, tuple(t.shape[1:])) for t in tensors}) != 1:
        raise ValueError("tensors of different kinds: %s" % [(t.dtype, t.shape) for t in tensors])
    shape = [sum(t.shape[0] for t in tensors)] + tensors[0].shape[1:]
    return Tensor(tensors[0].dtype, shape, b"".join(t.data for t in tensors))


def stack(tensors):
    return cat([t.reshape(1, *t.shape) for t in tensors])


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Gguf:
    """meta: strings as bytes. place: of each tensor, (offset in the file, Tensor)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        self.at = 8
        n_tensors, n_keys = self.value(10), self.value(10)
        self.meta = {}
        for _ in range(n_keys):
            key = self.value(8).decode()
            self.meta[key] = self.value(self.value(4))
        rows = []
        for _ in range(n_tensors):
            name = self.value(8).decode()
            shape = [self.value(10) for _ in range(self.value(4))][::-1]
            rows.append((name, shape, self.value(4), self.value(10)))
        align = self.meta.get("general.alignment", 32)
        base = -(-self.at // align) * align
        self.place = {name: self.load(base + offset, name, shape, kind) for name, shape, kind, offset in rows}

    def value(self, kind):
        if kind == 8:
            n = self.value(10)
            self.at += n
            return bytes(self.data[self.at - n : self.at])
        if kind == 9:
            elem, n = self.value(4), self.value(10)
            return [self.value(elem) for _ in range(n)]
        v = struct.unpack_from("<" + SCALARS[kind], self.data, self.at)[0]
        self.at += struct.calcsize("<" + SCALARS[kind])
        return v

    def load(self, start, name, shape, kind):
        if kind not in DTYPES:
            raise NoName("tensor %s is of type %d, only F32, F16 and BF16 are written" % (name, kind))
        dtype, n = DTYPES[kind]
        for size in shape:
            n *= size
        return start, Tensor(dtype, shape, self.data[start : start + n])

    def replace(self, name, tensor):
        start, old = self.place[name]
        if (old.dtype, len(old.data)) != (tensor.dtype, len(tensor.data)):
            raise ValueError("%s changes its size" % name)
        self.data[start : start + len(tensor.data)] = tensor.data
        self.place[name] = (start, Tensor(old.dtype, old.shape, tensor.data))
