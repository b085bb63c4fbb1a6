#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""train_experts.py MODEL.gguf IDS.txt OUT.gguf [MINUTES]: trains the weights of a sparse llama that mkbig
wrote (type=f16, experts=N used=N) on token ids (qsf-run --tokenize), on one thread for MINUTES of its time,
and writes the file again with them. For measurements of what leaving out experts costs (docs/QUALITY.md);
needs PyTorch."""
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F

SEQ, BATCH, RATE, BALANCE = 96, 16, 4e-3, 0.01


def read_gguf(data):
    """Returns the metadata, {name: (offset, type, shape)}."""
    at = 8
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    codes = {4: "<I", 5: "<i", 6: "<f", 10: "<Q"}

    def take(fmt):
        nonlocal at
        v = struct.unpack_from(fmt, data, at)[0]
        at += struct.calcsize(fmt)
        return v

    def text():
        nonlocal at
        n = take("<Q")
        at += n
        return data[at - n : at].decode()

    def value(kind):
        nonlocal at
        if kind == 8:
            return text()
        if kind == 9:
            of, n = take("<I"), take("<Q")
            return [value(of) for _ in range(n)]
        if kind in codes:
            return take(codes[kind])
        at += sizes[kind]
        return None

    n_tensors, n_pairs = take("<Q"), take("<Q")
    meta = {}
    for _ in range(n_pairs):
        key = text()
        meta[key] = value(take("<I"))
    tensors = {}
    for _ in range(n_tensors):
        name = text()
        shape = [take("<Q") for _ in range(take("<I"))]
        kind = take("<I")
        tensors[name] = (take("<Q"), kind, shape[::-1])
    start = (at + 31) // 32 * 32
    return meta, {k: (o + start, t, s) for k, (o, t, s) in tensors.items()}


def rotate(x, cos, sin):
    """Adjacent pairs, as in files of the architecture llama. x: (batch, heads, seq, dim)."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


class Model:
    def __init__(self, meta, tensors):
        g = {k[6:]: v for k, v in meta.items() if k.startswith("llama.")}
        self.layers, self.heads = g["block_count"], g["attention.head_count"]
        self.kv, self.hidden = g["attention.head_count_kv"], g["embedding_length"]
        self.used, self.w = g["expert_used_count"], {}
        for name, (_, _, shape) in tensors.items():
            deep = 0.3 if "down_exps" in name or "attn_output" in name else 1.0
            w = torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * deep / math.sqrt(shape[-1])
            self.w[name] = (w * (0.7 if name == "token_embd.weight" else 1.0)).requires_grad_()
        dim = self.hidden // self.heads
        angle = torch.outer(torch.arange(SEQ).float(), 10000.0 ** (-torch.arange(0, dim, 2).float() / dim))
        self.cos, self.sin = angle.cos(), angle.sin()
        self.mask = torch.full((SEQ, SEQ), float("-inf")).triu(1)

    def experts(self, x, p):
        """Softmax over the chosen logits, as Mixtral; and the loss that keeps the use of experts even."""
        logits = x @ self.w[p + "ffn_gate_inp.weight"].T
        top, ids = logits.topk(self.used, -1)
        weight, out = torch.softmax(top, -1), torch.zeros_like(x)
        share = torch.zeros(logits.shape[-1]).scatter_add_(0, ids.flatten(), torch.ones(ids.numel()))
        even = (share / ids.numel() * torch.softmax(logits, -1).mean(0)).sum() * logits.shape[-1]
        for e in range(logits.shape[-1]):
            row, k = (ids == e).nonzero(as_tuple=True)
            if len(row) == 0:
                continue
            h = x[row]
            gate, up = (self.w[p + f"ffn_{c}_exps.weight"][e] for c in ("gate", "up"))
            h = F.silu(h @ gate.T) * (h @ up.T)
            h = h @ self.w[p + "ffn_down_exps.weight"][e].T
            out = out.index_add(0, row, h * weight[row, k, None])
        return out, even

    def loss(self, ids):
        b, n = ids.shape[0], SEQ
        x, even = self.w["token_embd.weight"][ids[:, :n]], 0
        for i in range(self.layers):
            p = f"blk.{i}."
            h = norm(x, self.w[p + "attn_norm.weight"])
            q, k, v = (h @ self.w[p + f"attn_{c}.weight"].T for c in "qkv")
            q, k, v = (t.view(b, n, -1, self.hidden // self.heads).transpose(1, 2) for t in (q, k, v))
            q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
            k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
            a = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.mask, -1)
            a = (a @ v).transpose(1, 2).reshape(b, n, -1)
            x = x + a @ self.w[p + "attn_output.weight"].T
            y, more = self.experts(norm(x, self.w[p + "ffn_norm.weight"]).reshape(b * n, -1), p)
            x, even = x + y.view(b, n, -1), even + more
        logits = norm(x, self.w["output_norm.weight"]) @ self.w["output.weight"].T
        nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].reshape(-1))
        return nll, nll + BALANCE * even


def main():
    model_path, ids_path, out_path = sys.argv[1:4]
    minutes = float(sys.argv[4]) if len(sys.argv) > 4 else 5
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(model_path, "rb") as f:
        data = bytearray(f.read())
    meta, tensors = read_gguf(data)
    with open(ids_path) as f:
        ids = torch.tensor([int(x) for x in f.read().replace(",", " ").split()])
    model = Model(meta, tensors)
    opt = torch.optim.AdamW(model.w.values(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    start, step = time.process_time(), 0
    while (done := (time.process_time() - start) / (60 * minutes)) < 1:
        at = torch.randint(0, len(ids) - SEQ - 1, (BATCH,))
        nll, loss = model.loss(torch.stack([ids[a : a + SEQ + 1] for a in at]))
        opt.param_groups[0]["lr"] = RATE * min(1, (step + 1) / 50) * (0.02 + 0.98 * (1 - done))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.w.values(), 1.0)
        opt.step()
        step += 1
        if step % 50 == 0:
            print(f"{step} steps, {done * minutes:.1f} minutes: {nll.item():.3f} nats", flush=True)
    for name, (offset, kind, _) in tensors.items():
        w = model.w[name].detach()
        raw = (w.half() if kind == 1 else w).contiguous().numpy().tobytes()
        data[offset : offset + len(raw)] = raw
    with open(out_path, "wb") as f:
        f.write(data)


main()
