# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide's network in PyTorch (1.13 or newer): what GGUF calls architecture llama, with tied embeddings."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import export

EPS = 1e-5
ROPE_BASE = 10000.0
BLOCK = 128
FUSED = hasattr(F, 'scaled_dot_product_attention')


def rope_table(n, head):
    """exp(i * position * frequency), (n, head / 2): element pairs (2j, 2j+1) are turned together, as GGUF's llama does."""
    f = ROPE_BASE ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
    angle = torch.outer(torch.arange(n, dtype=torch.float64), f)
    return torch.polar(torch.ones_like(angle), angle).to(torch.complex64)


def turn(x, table):
    """RoPE; x: (batch, positions, heads, head)."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * table[:, None]).flatten(-2).to(x.dtype)


def lower_layers(n):
    """How many of n layers find out what is asked; those behind them put it into words."""
    return (n + 1) // 2


def normalized(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * self.weight


class SwiGLU(torch.autograd.Function):
    """silu(gate) * up of (..., 2 * ffn), gate first. PyTorch 1.13's silu of bfloat16 takes as long as the products beside it, and
    its gradient thrice as long."""

    @staticmethod
    def forward(ctx, both):
        ctx.save_for_backward(both)
        gate, up = both.chunk(2, -1)
        return torch.sigmoid(gate).mul_(gate).mul_(up)

    @staticmethod
    def backward(ctx, grad):
        both, = ctx.saved_tensors
        gate, up = both.chunk(2, -1)
        out = torch.empty_like(both)
        of_gate, of_up = out.chunk(2, -1)
        part = torch.sigmoid(gate)
        silu = part * gate
        torch.mul(silu, grad, out=of_up)
        torch.mul(gate.sub(silu).add_(1).mul_(part), up, out=of_gate).mul_(grad)  # silu' = s (1 + x - x s)
        return out


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        dim, self.heads, self.kv = shape['dim'], shape['heads'], shape['kv_heads']
        self.head = dim // self.heads
        self.attn_norm, self.ffn_norm = Norm(dim), Norm(dim)
        self.qkv = nn.Linear(dim, dim + 2 * self.kv * self.head, bias=False)  # three matrices in one product
        self.out = nn.Linear(dim, dim, bias=False)
        self.gate_up = nn.Linear(dim, 2 * shape['ffn'], bias=False)
        self.down = nn.Linear(shape['ffn'], dim, bias=False)

    def attend(self, x, table, mask):
        b, n, dim = x.shape
        q, k, v = self.qkv(x).split((dim, self.kv * self.head, self.kv * self.head), -1)
        q = turn(q.reshape(b, n, self.heads, self.head), table).transpose(1, 2)
        k = turn(k.reshape(b, n, self.kv, self.head), table).transpose(1, 2)
        v = v.reshape(b, n, self.kv, self.head).transpose(1, 2)
        if FUSED and q.is_cuda:
            k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k = k.transpose(-1, -2) * (1 / math.sqrt(self.head))
            # In blocks of positions, so that most later positions are never computed.
            y = torch.cat([self.block(q[:, :, i:i + BLOCK], k, v, mask, i) for i in range(0, n, BLOCK)], 2)
        return self.out(y.transpose(1, 2).reshape(b, n, dim))

    def block(self, q, k, v, mask, first):
        """What the positions from first on see. Heads that share a key go through one product."""
        b, _, n, _ = q.shape
        share, end = self.heads // self.kv, first + n
        score = q.reshape(b, self.kv, share * n, self.head) @ k[..., :end]
        score = (score.view(b, self.kv, share, n, end) + mask[first:end, :end]).softmax(-1)
        return (score.view(b, self.kv, share * n, end) @ v[:, :, :end]).view(b, self.heads, n, self.head)

    def attend_at(self, x, row, column, table, mask):
        """The same for some positions of x alone, (row, column) of each; (positions, dim)."""
        _, n, dim = x.shape
        k, v = F.linear(x, self.qkv.weight[dim:]).view(-1, n, 2 * self.kv, self.head).chunk(2, 2)
        k = turn(k, table).permute(0, 2, 3, 1)[row] * (1 / math.sqrt(self.head))
        q = F.linear(x[row, column], self.qkv.weight[:dim]).view(-1, 1, self.heads, self.head)
        q = turn(q, table[column, None]).view(-1, self.kv, self.heads // self.kv, self.head)
        score = (q @ k + mask[column, None, None]).softmax(-1)
        return self.out((score @ v.transpose(1, 2)[row]).reshape(-1, dim))

    def feed(self, x):
        return self.down(SwiGLU.apply(self.gate_up(x)))


class NextToken(nn.Module):
    """A block that predicts one token further, as docs/MODELS.md describes it. It learns from the model, and changes nothing of it."""

    def __init__(self, shape):
        super().__init__()
        dim = shape['dim']
        self.enorm, self.hnorm, self.norm = Norm(dim), Norm(dim), Norm(dim)
        self.project = nn.Linear(2 * dim, dim, bias=False)
        self.layer = Layer(shape)

    def forward(self, embedded, hidden, table, mask):
        """Position p has the embedding of its token and the model's state at p - 1, zeros for p = 0."""
        given = F.pad(hidden, (0, 0, 1, 0))[:, :-1]
        x = self.project(torch.cat((self.enorm(embedded), self.hnorm(given)), -1))
        x = x + self.layer.attend(self.layer.attn_norm(x), table, mask)
        return self.norm(x + self.layer.feed(self.layer.ffn_norm(x)))


class Guide(nn.Module):
    def __init__(self, shape, dropout=0.0):
        super().__init__()
        self.shape, self.dropout, self.pool = shape, dropout, None
        self.embed = nn.Embedding(shape['vocab'], shape['dim'])
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape['layers']))
        self.norm = Norm(shape['dim'])
        self.next = NextToken(shape) if shape.get('nextn') else None
        n = shape['context']
        self.register_buffer('table', rope_table(n, shape['dim'] // shape['heads']), persistent=False)
        self.register_buffer('mask', torch.full((n, n), float('-inf')).triu(1), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:  # smaller, the more layers add to the residual stream
                deep = name.endswith(('out.weight', 'down.weight'))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * shape['layers']) if deep else 1))

    def drop(self, x):
        """Dropout. Random numbers are dear on a CPU: a pool is drawn once a step, and each use begins elsewhere in it."""
        if not self.dropout or not self.training:
            return x
        size = x.numel()
        if self.pool is None or self.pool.numel() < 2 * size:
            self.pool = (torch.rand(2 * size, device=x.device) >= self.dropout).to(x.dtype) / (1 - self.dropout)
        first = int(torch.randint(size, (1,)))
        return x * self.pool[first:first + size].view_as(x)

    def forward(self, ids):
        """(batch, positions) -> hidden states behind the last norm."""
        return self.both(ids)[0]

    def both(self, ids):
        """The same, and the normalized ones in the middle of the layers."""
        lower = lower_layers(len(self.layers))
        x = self.through(self.embed(ids), self.layers[:lower])
        return self.norm(self.through(x, self.layers[lower:])), normalized(x)

    def lower(self, embedded, place):
        """Those in the middle alone, of the places (row, column) alone: the last layer before the middle costs next to nothing then."""
        lower, (row, column) = lower_layers(len(self.layers)), place
        x, layer = self.through(embedded, self.layers[:lower - 1]), self.layers[lower - 1]
        n = x.shape[1]
        at = x[row, column] + self.drop(layer.attend_at(layer.attn_norm(x), row, column, self.table[:n], self.mask[:n, :n]))
        return normalized(at + self.drop(layer.feed(layer.ffn_norm(at))))

    def through(self, x, layers):
        n = x.shape[1]
        table, mask = self.table[:n], self.mask[:n, :n]
        self.pool = None
        x = self.drop(x)
        for layer in layers:
            x = x + self.drop(layer.attend(layer.attn_norm(x), table, mask))
            x = x + self.drop(layer.feed(layer.ffn_norm(x)))
        return x

    def logits(self, hidden):
        return F.linear(hidden, self.embed.weight)

    def next_logits(self, ids, hidden):
        """What the next-token block says behind each of ids, from the model's states hidden: (batch, positions, vocab)."""
        n = ids.shape[1]
        states = self.next(self.embed(ids).detach(), hidden.detach(), self.table[:n], self.mask[:n, :n])
        return F.linear(states, self.embed.weight.detach())

    def tensor(self, name):
        """The tensor that GGUF calls name."""
        if name == 'token_embd.weight':
            return self.embed.weight
        if name == 'output_norm.weight':
            return self.norm.weight
        i, *parts = name.split('.')[1:-1]
        layer = self.layers[int(i)] if int(i) < len(self.layers) else self.next.layer
        if parts[0] == 'nextn':
            return {'enorm': self.next.enorm, 'hnorm': self.next.hnorm, 'eh_proj': self.next.project,
                    'shared_head_norm': self.next.norm}[parts[1]].weight
        part, kv = parts[0], layer.kv * layer.head
        if part in ('attn_q', 'attn_k', 'attn_v'):
            q, k, v = layer.qkv.weight.split((layer.qkv.weight.shape[1], kv, kv))
            return {'attn_q': q, 'attn_k': k, 'attn_v': v}[part]
        if part in ('ffn_gate', 'ffn_up'):
            return layer.gate_up.weight.chunk(2)[part == 'ffn_up']
        return {'attn_norm': layer.attn_norm, 'ffn_norm': layer.ffn_norm, 'attn_output': layer.out,
                'ffn_down': layer.down}[part].weight


    @torch.no_grad()
    def take(self, numbers, begin):
        """Takes over the weights of a guide of the shape `begin`; numbers(name in GGUF, shape): the flat list of a tensor's numbers.
        If this one has more layers, the new ones are in the middle, at the end of the lower ones, and change nothing yet. A
        next-token block is taken over if both have one."""
        layers = begin['layers']
        more, place = len(self.layers) - layers, lower_layers(layers)
        if more < 0:
            raise ValueError(f'{layers} layers to begin with, {len(self.layers)} in the recipe')
        for name, shape in export.shapes({**self.shape, 'nextn': min(self.shape.get('nextn', 0), begin.get('nextn', 0))}):
            of = name.split('.')
            if of[0] == 'blk' and int(of[1]) >= place:
                if int(of[1]) < place + more:
                    if of[2] in ('attn_output', 'ffn_down'):  # added to the residual stream
                        self.tensor(name).zero_()
                    continue
                of[1] = str(int(of[1]) - more)
            self.tensor(name).copy_(torch.tensor(numbers('.'.join(of), shape)).view(shape))


@torch.no_grad()
def greedy(model, ids, stop, most=256):
    """The most likely answer to ids, token by token, without a cache: for checks, not for speed."""
    out, dev = [], next(model.parameters()).device
    while len(out) < most and len(ids) + len(out) < model.shape['context']:
        hidden = model(torch.tensor([ids + out], device=dev))
        best = int(model.logits(hidden[0, -1]).argmax())
        if best == stop:
            break
        out.append(best)
    return out
