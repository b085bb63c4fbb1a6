# SPDX-License-Identifier: GPL-3.0-or-later
"""The training loop: schedule, steps, checkpoints that continue exactly, progress."""
import contextlib
import math
import os
import random
import sys
import time

import torch
import torch.nn.functional as F

from . import data
from .muon import Muon
from .model import Guide


def bfloat16(device):
    """Mixed precision where there is hardware for it; the float32 product is faster on a CPU without it."""
    return torch.autocast('cuda', dtype=torch.bfloat16) if device == 'cuda' else contextlib.nullcontext()


def to_tensors(corpus, batch, pad, device):
    length, rows = batch
    got = [corpus.row(members, length, pad) for members in rows]
    ids = torch.tensor([r[0].tolist() for r in got])
    answer = torch.tensor([r[1].tolist() for r in got])
    return ids.to(device), answer.to(device)


def losses(model, ids, answer):
    """(loss of every prediction, what is predicted: 1 an answer, 0 a question, 2 nothing), flat."""
    hidden = model(ids)[:, :-1].reshape(-1, model.shape['dim'])
    target, kind = ids[:, 1:].reshape(-1), answer[:, 1:].reshape(-1)
    keep = (kind != 2).nonzero().squeeze(1)  # no head for what is not there
    logits = model.logits(hidden[keep]).float()
    return F.cross_entropy(logits, target[keep], reduction='none'), kind[keep], logits


class Training:
    def __init__(self, recipe, corpus, validation, tok, device, minutes=0):
        self.recipe, self.corpus, self.validation, self.tok = recipe, corpus, validation, tok
        self.device, self.minutes = device, minutes
        torch.manual_seed(recipe['seed'])
        self.pad = tok.special['<|endoftext|>']
        self.model = Guide(recipe['shape'], recipe['dropout']).to(device)
        self.muon, self.adam = self.optimizers()
        self.mean = [p.detach().clone() for p in self.model.parameters()] if recipe['ema'] else None
        # Where the run is: epoch, batch in it, steps, share of the schedule, seconds and tokens so far.
        self.at = {'epoch': 0, 'batch': 0, 'step': 0, 'progress': 0.0, 'seconds': 0.0, 'tokens': 0}
        self.batches = data.epoch(corpus, recipe, 0)

    def optimizers(self):
        """Muon for the matrices of the layers, AdamW for the embedding and the norms."""
        r, heads = self.recipe, self.model.shape
        kv = heads['kv_heads'] * heads['dim'] // heads['heads']
        rows = {'qkv': [heads['dim'], kv, kv], 'gate_up': [heads['ffn']] * 2, 'out': [heads['dim']], 'down': [heads['dim']]}
        layers = [(p, rows[name.split('.')[2]]) for name, p in self.model.named_parameters() if p.dim() > 1 and name != 'embed.weight']
        vectors = [p for p in self.model.parameters() if p.dim() == 1]
        muon = Muon([p for p, _ in layers], [n for _, n in layers], r['matrix_rate'], r['momentum'], r['weight_decay'])
        adam = torch.optim.AdamW([{'params': [self.model.embed.weight], 'weight_decay': r['weight_decay']},
                                  {'params': vectors, 'weight_decay': 0.0}],
                                 lr=r['learning_rate'], betas=tuple(r['betas']), foreach=True)
        return muon, adam

    def schedule(self):
        """The part of the highest rates that holds now."""
        r, p = self.recipe, self.at['progress']
        if p < r['warmup']:
            return p / r['warmup'] + 1e-3
        part = min(1.0, (p - r['warmup']) / (1 - r['warmup']))
        low = r['final_rate']
        return low + (1 - low) * 0.5 * (1 + math.cos(math.pi * part))

    def advance(self):
        """The share of the schedule that is over: of the batches, or of the time where that runs out first."""
        a = self.at
        done = (a['epoch'] + a['batch'] / len(self.batches)) / self.recipe['epochs']
        if self.minutes:
            done = max(done, a['seconds'] / (60 * self.minutes))
        a['progress'] = max(a['progress'], min(1.0, done))

    def step(self):
        a, r = self.at, self.recipe
        ids, answer = to_tensors(self.corpus, self.batches[a['batch']], self.pad, self.device)
        self.model.train()
        with bfloat16(self.device):
            loss, kind, _ = losses(self.model, ids, answer)
        said = kind == 1
        weight = torch.where(said, torch.ones_like(loss), torch.full_like(loss, r['prompt_weight']))
        total = (loss * weight).sum() / weight.sum()
        for optimizer, highest in ((self.muon, r['matrix_rate']), (self.adam, r['learning_rate'])):
            optimizer.zero_grad(set_to_none=True)
            for group in optimizer.param_groups:
                group['lr'] = highest * self.schedule()
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), r['clip'])
        self.muon.step()
        self.adam.step()
        if self.mean:
            keep = min(r['ema'], (1 + a['step']) / (10 + a['step']))
            with torch.no_grad():
                torch._foreach_mul_(self.mean, keep)
                torch._foreach_add_(self.mean, list(self.model.parameters()), alpha=1 - keep)
        a['step'] += 1
        a['batch'] += 1
        a['tokens'] += loss.numel()
        if a['batch'] == len(self.batches):
            a['epoch'], a['batch'] = a['epoch'] + 1, 0
            self.batches = data.epoch(self.corpus, r, a['epoch'])
        return loss.detach()[said].mean()

    def run(self, save, every=300, steps=0, out=sys.stderr):
        """Trains to the end of the schedule, or up to a number of steps; save() is called every so many seconds.
        Returns whether the end was reached."""
        begun, before, shown, saved = time.time(), self.at['seconds'], 0.0, time.time()
        tokens, average, start = self.at['tokens'], None, self.at['progress']
        while self.at['progress'] < 1 and not (steps and self.at['step'] >= steps):
            loss = self.step()
            now = time.time()
            self.at['seconds'] = before + now - begun
            self.advance()
            if now - shown > 2 or self.at['progress'] >= 1:  # reading the loss waits for the device: rarely
                value = float(loss)
                average = value if average is None else 0.8 * average + 0.2 * value
                self.show(average, (self.at['tokens'] - tokens) / (now - begun),
                          (now - begun) * (1 - self.at['progress']) / max(1e-9, self.at['progress'] - start), out)
                shown = now
            if now - saved > every:
                save()
                saved = now
        if out.isatty():
            print(file=out)
        return self.at['progress'] >= 1

    def show(self, loss, speed, left, out):
        a = self.at
        line = (f"epoch {min(a['epoch'] + 1, self.recipe['epochs'])}/{self.recipe['epochs']}  step {a['step']}  {100 * a['progress']:5.1f} %  "
                f"loss {loss:.4f}  rate {self.schedule():.3f}  {speed:,.0f} tokens/s  {left / 60:.1f} min left")
        print(f'\r{line:<100}' if out.isatty() else line, end='' if out.isatty() else '\n', file=out, flush=True)

    def use_mean(self):
        """Puts the mean of the weights in their place, for good: before the export."""
        if self.mean:
            with torch.no_grad():
                for p, m in zip(self.model.parameters(), self.mean):
                    p.copy_(m)

    @torch.no_grad()
    def validate(self):
        """(loss per answer token, share of answer tokens that are the most likely ones) of dialogues kept back."""
        self.model.eval()
        total = right = count = 0.0
        for batch in data.epoch(self.validation, {**self.recipe, 'cut': 0}, 0) if len(self.validation) else []:
            ids, answer = to_tensors(self.validation, batch, self.pad, self.device)
            loss, kind, logits = losses(self.model, ids, answer)
            target = ids[:, 1:].reshape(-1)[(answer[:, 1:].reshape(-1) != 2)]
            said = kind == 1
            total += float(loss[said].sum())
            right += float((logits.argmax(-1) == target)[said].sum())
            count += float(said.sum())
        return (total / count, right / count) if count else (float('nan'), float('nan'))

    def state(self):
        s = {'recipe': self.recipe, 'merges': self.tok.merges, 'model': self.model.state_dict(),
             'muon': self.muon.state_dict(), 'adam': self.adam.state_dict(), 'mean': self.mean, 'at': self.at, 'random': torch.get_rng_state(), 'python': random.getstate()}
        if self.device == 'cuda':
            s['cuda'] = torch.cuda.get_rng_state()
        return s

    def restore(self, s):
        self.model.load_state_dict(s['model'])
        self.muon.load_state_dict(s['muon'])
        self.adam.load_state_dict(s['adam'])
        if self.mean:
            self.mean = [m.to(self.device) for m in s['mean']]
        self.at = dict(s['at'])
        self.batches = data.epoch(self.corpus, self.recipe, self.at['epoch'])
        torch.set_rng_state(s['random'].cpu())
        if self.device == 'cuda' and 'cuda' in s:
            torch.cuda.set_rng_state(s['cuda'].cpu())


def save(path, state):
    """Whole or not at all."""
    torch.save(state, f'{path}.part')
    os.replace(f'{path}.part', path)


def load(path, device='cpu'):
    # A checkpoint is the maintainer's own file; weights_only does not exist in PyTorch 1.13.
    try:
        return torch.load(path, map_location=device, weights_only=False)
    except TypeError:
        return torch.load(path, map_location=device)
