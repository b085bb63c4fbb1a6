# SPDX-License-Identifier: GPL-3.0-or-later
"""Muon, the optimizer of the layers' matrices: momentum, made nearly orthogonal before it is applied.

The method and the five coefficients' source: Keller Jordan, "Muon: An optimizer for hidden layers in neural networks"
(2024, KellerJordan/Muon). A step costs about a fifth of a training step of this network and saves half of the steps."""
import torch

_A, _B, _C = 3.4445, -4.7750, 2.0315  # of the quintic, chosen there for the steepest slope at 0
_STEPS = 5


def orthogonal(g, half):
    """The nearest matrix to each of g, roughly, whose singular values are all about 1 (0.7 to 1.2). g: (matrices, rows, columns),
    no more rows than columns. half: in bfloat16, which the iteration bears (as in the original)."""
    x = g / (g.norm(dim=(1, 2), keepdim=True) + 1e-7)
    if half:
        x = x.bfloat16()
    for _ in range(_STEPS):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=_B, alpha=_C), x, beta=_A)
    return x.to(g.dtype)


def lying(m):
    """The matrix or its transpose: the one that is not taller than wide."""
    return m.t() if m.shape[0] > m.shape[1] else m


class Muon(torch.optim.Optimizer):
    """parts: for each parameter the rows of the matrices that are kept in it one below the other; half: see orthogonal."""

    def __init__(self, params, parts, lr, momentum, weight_decay, half=False):
        super().__init__(params, {'lr': lr, 'momentum': momentum, 'weight_decay': weight_decay})
        self.parts, self.half = parts, half

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            alike = {}  # matrices of the same shape share one product
            for p, rows in zip(group['params'], self.parts):
                if p.grad is None:
                    continue
                mean = self.state[p].setdefault('mean', torch.zeros_like(p))
                mean.mul_(group['momentum']).add_(p.grad)
                ahead = p.grad.add(mean, alpha=group['momentum'])
                p.mul_(1 - group['lr'] * group['weight_decay'])
                for part, to in zip(ahead.split(rows), p.split(rows)):
                    alike.setdefault(lying(part).shape, []).append((lying(part), lying(to), max(1.0, to.shape[0] / to.shape[1]) ** 0.5))
            for same in alike.values():
                for new, (_, to, scale) in zip(orthogonal(torch.stack([part for part, *_ in same]), self.half), same):
                    to.add_(new, alpha=-group['lr'] * scale)
