# SPDX-License-Identifier: GPL-3.0-or-later
"""Muon, the optimizer of the layers' matrices: momentum, made nearly orthogonal before it is applied.

The method and the five coefficients' source: Keller Jordan, "Muon: An optimizer for hidden layers in neural networks"
(2024, KellerJordan/Muon). A step costs about a fifth of a training step of this network and saves half of the steps."""
import torch

_A, _B, _C = 3.4445, -4.7750, 2.0315  # of the quintic, chosen there for the steepest slope at 0
_STEPS = 5


def orthogonal(g, half):
    """The nearest matrix to g, roughly, whose singular values are all about 1 (0.7 to 1.2). g: (rows, columns).
    half: in bfloat16, which the iteration bears (as in the original)."""
    tall = g.shape[0] > g.shape[1]
    x = g.t() if tall else g
    x = x / (x.norm() + 1e-7)
    if half:
        x = x.bfloat16()
    for _ in range(_STEPS):
        square = x @ x.t()
        x = torch.addmm(x, torch.addmm(square, square, square, beta=_B, alpha=_C), x, beta=_A)
    return (x.t() if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """parts: for each parameter the rows of the matrices that are kept in it one below the other; half: see orthogonal."""

    def __init__(self, params, parts, lr, momentum, weight_decay, half=False):
        super().__init__(params, {'lr': lr, 'momentum': momentum, 'weight_decay': weight_decay})
        self.parts, self.half = parts, half

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p, rows in zip(group['params'], self.parts):
                if p.grad is None:
                    continue
                mean = self.state[p].setdefault('mean', torch.zeros_like(p))
                mean.mul_(group['momentum']).add_(p.grad)
                ahead = p.grad.add(mean, alpha=group['momentum'])
                p.mul_(1 - group['lr'] * group['weight_decay'])
                for part, to in zip(ahead.split(rows), p.split(rows)):
                    to.add_(orthogonal(part, self.half), alpha=-group['lr'] * max(1.0, part.shape[0] / part.shape[1]) ** 0.5)
