# SPDX-License-Identifier: GPL-3.0-or-later
"""The model that is written: keys and tensors of the GGUF file, and the tensors of the directory. Tables of
names have one row per line, "GGUF HF [how]", where B. is blk.N., L. is model.layers.N., and both stand for
the tensor and its bias."""

import math
import struct

from .gguf import Tensor, cat, f32
from .noname import NoName


class Model:
    def __init__(self, gguf, old=False):
        self.gguf, self.old = gguf, old
        self.arch = gguf.meta["general.architecture"].decode()
        self.left = dict(gguf.place)
        self.out = {}
        self.layers = self.key("block_count")
        self.heads = self.per_layer("attention.head_count")
        self.kv_heads = self.per_layer("attention.head_count_kv", max(self.heads, default=0))
        self.hidden = self.key("embedding_length")
        q = next((n for n in self.heads if n), 0)
        self.head_dim = self.key("attention.key_length", self.hidden // q if q else 0)
        self.rot = self.key("rope.dimension_count", self.head_dim)

    def key(self, name, default=None):
        v = self.gguf.meta.get(name if name.startswith("xielu") else "%s.%s" % (self.arch, name), default)
        return v.decode() if isinstance(v, bytes) else v

    def per_layer(self, name, default=0):
        v = self.key(name, default)
        return v if isinstance(v, list) else [v] * self.layers

    def has(self, name):
        return name in self.left

    def take(self, name):
        return self.left.pop(name)[1]

    def put(self, name, tensor):
        if name in self.out:
            raise ValueError("%s is written twice" % name)
        self.out[name] = tensor

    def twin(self, name, tensor):
        """Changes a value of the GGUF file to one that the directory can express."""
        self.gguf.replace(name, tensor)

    # --- tables

    def table(self, text, layers=None, root="model."):
        """Every row of every block. GGUF names joined by '+' are concatenated, HF names by '|' get a part
        each."""
        rows = [line.split() for line in text.split("\n") if line.strip()]
        for row in rows:
            if not row[0].startswith("B."):
                self.row(row, 0, root)
        for n in layers if layers is not None else range(self.layers):
            for row in rows:
                if row[0].startswith("B."):
                    self.row(row, n, root)

    def row(self, row, n, root):
        how = HOW[row[2]] if len(row) > 2 else None
        for suffix in (".weight", ".bias", ""):
            names = [s.replace("B.", "blk.%d." % n) + suffix for s in row[0].split("+")]
            if not all(self.has(s) for s in names):
                continue
            self.name = names[0]
            t = self.take(names[0]) if len(names) == 1 else cat([self.take(s) for s in names])
            if how is not None:
                t = how(self, t, n)
            hf = row[1].replace("L.", "%slayers.%d." % (root, n)).replace("M.", root)
            bare = hf.endswith("!") # a parameter, not a module
            hf = hf.rstrip("!")
            if isinstance(t, list) and "#" in hf:
                for i, part in enumerate(t):
                    self.put(hf.replace("#", str(i)) + ("" if bare else suffix), part)
            elif isinstance(t, list):
                for name, part in zip(hf.split("|"), t):
                    self.put(name.replace("^", root) + ("" if bare else suffix), part)
            else:
                self.put(hf + ("" if bare else suffix), t)

    def finish(self):
        if self.left:
            raise NoName("no public name for %s" % ", ".join(sorted(self.left)[:4]))


# --- what is done to a tensor: (model, tensor, block) -> tensor, or a list of them


def halves(heads, dim, rot):
    """GGUF's order of rows for rotated pairs (0,1), (2,3).. from the order (i, i + rot/2): where each row is
    taken from, and back."""
    back = []
    for h in range(heads):
        base = h * dim
        back += [base + 2 * i for i in range(rot // 2)] + [base + 2 * i + 1 for i in range(rot // 2)]
        back += list(range(base + rot, base + dim))
    return back


def q_rows(m, t, n):
    return t.pick(halves(m.heads[n], t.shape[0] // m.heads[n], t.shape[0] // m.heads[n]))


def k_rows(m, t, n):
    return t.pick(halves(m.kv_heads[n], t.shape[0] // m.kv_heads[n], t.shape[0] // m.kv_heads[n]))


def minus_one(m, t, n):
    """Readers add 1 in F32."""
    w = t.map(lambda x: f32(x - 1.0))
    m.twin(m.name, w.map(lambda x: f32(x + 1.0)))
    return w


def log_of(a):
    """A_log so that -exp(A_log) is far from the middle between two floats: the same for any good exp."""
    x = f32(math.log(-a))
    for _ in range(64):
        exact = math.exp(x)
        here = f32(exact)
        step = abs(struct.unpack("<f", struct.pack("<I",
            struct.unpack("<I", struct.pack("<f", here))[0] + 1))[0] - here)
        if abs(abs(exact - here) / step - 0.5) > 0.05:
            return x
        x = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", x))[0] + 1))[0]
    raise NoName("no A_log for %g" % a)


def a_log(m, t, n):
    w = t.map(log_of)
    m.twin(m.name, w.map(lambda x: -f32(math.exp(x))))
    return w


def flat(m, t, n):
    return t.reshape(len(t.data) // {"F32": 4, "F16": 2}[t.dtype])


def conv(m, t, n):
    """(channels, 1, kernel), as Conv1d has it."""
    return t.reshape(t.data and len(t.data) // 4 // t.shape[-1], 1, t.shape[-1])


HOW = {
    "q": q_rows,
    "k": k_rows,
    "-1": minus_one,
    "A": lambda m, t, n: a_log(m, t.reshape(*t.shape), n),
    "A1": lambda m, t, n: a_log(m, flat(m, t, n), n),
    "flat": flat,
    "conv": conv,
    "T": lambda m, t, n: t.transpose(),
    "TW": lambda m, t, n: t.transpose() if len(t.shape) == 2 else t,
    "E": lambda m, t, n: t.unstack(),
    "half": lambda m, t, n: t.split(t.shape[0] // 2, t.shape[0] // 2),
}
