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
from .model import EPS, Guide


def multiplies_bfloat16(device):
    """Is there hardware for products of bfloat16? On a CPU without it they are slower than those of float32."""
    if device != 'cpu':
        return True
    try:
        with open('/proc/cpuinfo', encoding='ascii', errors='replace') as f:
            flags = set(next((line for line in f if line.startswith('flags')), '').split())
    except OSError:
        return False
    return bool(flags & {'amx_bf16', 'avx512_bf16'})


def precision(device, half):
    """Mixed precision if half, else float32."""
    return torch.autocast(device, dtype=torch.bfloat16) if half else contextlib.nullcontext()


def to_tensors(corpus, batch, pad, device):
    length, rows = batch
    got = [corpus.row(members, length, pad) for members in rows]
    return [torch.tensor([r[part].tolist() for r in got]).to(device) for part in range(3)]


def losses(model, hidden, ids, answer, prompts=True):
    """(loss of every prediction, what was to be predicted, whether it is of an answer, right ones), flat; without prompts of answers alone."""
    target, kind = ids[:, 1:].reshape(-1), answer[:, 1:].reshape(-1)
    keep = (kind < 2 if prompts else kind == 1).nonzero().squeeze(1)  # no head for what is not requested
    logits = model.logits(hidden[:, :-1].reshape(-1, model.shape['dim'])[keep]).float()
    target = target[keep]
    return F.cross_entropy(logits, target, reduction='none'), target, kind[keep] == 1, logits.detach().argmax(-1) == target


def next_loss(model, hidden, ids, answer):
    """The loss of the next-token block, of the tokens of answers."""
    wanted = answer[:, 1:] == 1
    logits = model.next_logits(ids, hidden)[:, :-1][wanted].float()
    return F.cross_entropy(logits, ids[:, 1:][wanted])


def bags(embedded, answer, place):
    """For each place where an answer begins, the normalized mean of what was embedded between the answer before and there:
    (places, dim). place: (row, column) of each, in order."""
    row, column = place
    asked = ((answer != 1) & (answer != 3)).to(embedded.dtype).unsqueeze(-1)
    total, count = (embedded * asked).cumsum(1), asked.cumsum(1)
    later = torch.zeros_like(row, dtype=torch.bool)
    later[1:] = row[1:] == row[:-1]
    before = torch.where(later, column.roll(1), torch.zeros_like(column))
    weight = later.to(embedded.dtype).unsqueeze(-1)
    mean = (total[row, column] - weight * total[row, before]) / (count[row, column] - weight * count[row, before])
    return mean * torch.rsqrt(mean.square().mean(-1, keepdim=True) + EPS)


class Training:
    """Where an answer begins, the intent is learnt thrice: as the answer's first token, after the layers that read (lower_layers), by
    the same rows of the embedding, so that the layers behind it find it there, and from the mean of the question's
    embeddings, by a head that is left out of the model in the end, so that words that ask for the same come to lie side by side."""

    def __init__(self, recipe, corpus, validation, tok, device, minutes=0):
        self.recipe, self.corpus, self.validation, self.tok = recipe, corpus, validation, tok
        self.device, self.minutes, self.half = device, minutes, multiplies_bfloat16(device)
        self.share = recipe['question_share'] if recipe['question_passes'] else 0.0  # of the schedule, for questions alone
        torch.manual_seed(recipe['seed'])
        self.pad = tok.special['<|endoftext|>']
        self.model = Guide(recipe['shape'], recipe['dropout']).to(device)
        self.topics = slice(tok.first_topic, tok.first_topic + len(tok.topics))
        self.words = torch.nn.Linear(recipe['shape']['dim'], len(tok.topics)).to(device)
        self.muon, self.adam = self.optimizers()
        self.mean = [p.detach().clone() for p in self.model.parameters()] if recipe['ema'] else None
        # The state of the run: epoch, batch in it, steps, share of the schedule, seconds and tokens so far.
        self.at = {'pass': 0, 'epoch': 0, 'batch': 0, 'step': 0, 'progress': 0.0, 'seconds': 0.0, 'tokens': 0}
        self.batches = self.next_batches()

    def begin_with(self, numbers, begin):
        """Takes over the weights of another guide, before the first step; as Guide.take does."""
        self.model.take(numbers, begin)
        if self.mean:
            self.mean = [p.detach().clone() for p in self.model.parameters()]

    def asking(self):
        """Are questions alone learnt now?"""
        return self.at['pass'] < self.recipe['question_passes']

    def next_batches(self):
        a, r = self.at, self.recipe
        return data.questions(self.corpus, r, a['pass']) if self.asking() else data.epoch(self.corpus, r, a['epoch'])

    def optimizers(self):
        """Muon for the matrices of the layers, AdamW for the embedding and the norms."""
        r, heads = self.recipe, self.model.shape
        kv = heads['kv_heads'] * heads['dim'] // heads['heads']
        rows = {'qkv': [heads['dim'], kv, kv], 'gate_up': [heads['ffn']] * 2, 'out': [heads['dim']], 'down': [heads['dim']], 'project': [heads['dim']]}
        layers = [(p, rows[name.split('.')[-2]]) for name, p in self.model.named_parameters() if p.dim() > 1 and name != 'embed.weight']
        vectors = [p for p in self.model.parameters() if p.dim() == 1]
        muon = Muon([p for p, _ in layers], [n for _, n in layers], r['matrix_rate'], r['momentum'], r['weight_decay'], self.half)
        adam = torch.optim.AdamW([{'params': [self.model.embed.weight], 'weight_decay': r['weight_decay']},
                                  {'params': vectors, 'weight_decay': 0.0}, {'params': list(self.words.parameters()), 'weight_decay': 0.0, 'head': True}],
                                 lr=r['learning_rate'], betas=tuple(r['betas']), foreach=True)
        return muon, adam

    def schedule(self):
        """The part of the highest rates that holds now: up and down once for the questions, once for all."""
        r, p, share = self.recipe, self.at['progress'], self.share
        high, low = (1.0, 0.3) if self.asking() else (r['second_rate'] if share else 1.0, r['final_rate'])
        p = p / share if self.asking() else (p - share) / (1 - share)
        if p < r['warmup']:
            return high * p / r['warmup'] + 1e-3
        part = min(1.0, (p - r['warmup']) / (1 - r['warmup']))
        return low + (high - low) * 0.5 * (1 + math.cos(math.pi * part))

    def advance(self):
        """The share of the schedule that is over: of the batches, or of the time where that runs out first."""
        a, r, share = self.at, self.recipe, self.share
        over = a['batch'] / len(self.batches)
        done = share * (a['pass'] + over) / r['question_passes'] if self.asking() else share + (1 - share) * (a['epoch'] + over) / r['epochs']
        if self.minutes:
            done = max(done, a['seconds'] / (60 * self.minutes))
        a['progress'] = max(a['progress'], min(1.0, done))
        if self.asking() and a['progress'] >= share:
            a['pass'], a['batch'] = r['question_passes'], 0
            self.batches = self.next_batches()

    def topic_logits(self, states):
        return F.linear(states, self.model.embed.weight[self.topics]).float()

    def agreed(self, middle, last):
        """How far the topics at the end of the network are from those in its middle, which has learnt from many times as many
        questions: cross entropy. The layers between shall put the intent into words, not judge it again."""
        return F.cross_entropy(self.topic_logits(last), self.topic_logits(middle).detach().softmax(-1))

    def named(self, middle, embedded, answer, topic, place):
        """The loss of naming intents by the layers that read and by the words, at the places (row, column) where answers begin; middle: there."""
        r, intent = self.recipe, topic[place] - 1
        bag = bags(embedded.float(), answer, place)
        return (r['topic_weight'] * F.cross_entropy(self.topic_logits(middle), intent) +
                r['words_weight'] * F.cross_entropy(self.words(bag).float(), intent))

    def loss(self, ids, answer, topic):
        """(what is to fall, what is shown: the loss per token of answers, or of the intent where questions are learnt)"""
        if self.recipe.get('nextn_only'):
            with torch.no_grad():
                hidden = self.model(ids)
            total = next_loss(self.model, hidden, ids, answer)
            return total, total.detach()
        total, shown, hidden = self.model_loss(ids, answer, topic)
        if self.model.next and hidden is not None:
            total = total + next_loss(self.model, hidden, ids, answer)
        return total, shown

    def model_loss(self, ids, answer, topic):
        """The same without the next-token block, and the model's states; None where questions are learnt."""
        a, r, place = self.at, self.recipe, topic.nonzero(as_tuple=True)
        if self.asking():
            embedded = self.model.embed(ids)
            total = self.named(self.model.lower(embedded, place), embedded, answer, topic, place)
            return total, total.detach(), None
        hidden, middle = self.model.both(ids)
        loss, target, said, _ = losses(self.model, hidden, ids, answer, a['step'] % r['prompt_every'] == 0)
        weight = torch.where(said, torch.ones_like(loss), torch.full_like(loss, r['prompt_weight']))
        weight[(target >= self.topics.start) & (target < self.topics.stop)] = r['begin_weight']
        total = (loss * weight).sum() / weight.sum() + self.named(middle[place], self.model.embed(ids), answer, topic, place)
        total = total + r['agree_weight'] * self.agreed(middle[place], hidden[place])
        return total, loss.detach()[said].mean(), hidden

    def step(self):
        a, r = self.at, self.recipe
        ids, answer, topic = to_tensors(self.corpus, self.batches[a['batch']], self.pad, self.device)
        self.model.train()
        with precision(self.device, self.half):
            total, shown = self.loss(ids, answer, topic)
        for optimizer, highest in ((self.muon, r['matrix_rate']), (self.adam, r['learning_rate'])):
            optimizer.zero_grad(set_to_none=True)
            for group in optimizer.param_groups:
                waits = a['step'] < r['heads_first'] and not group.get('head')
                group['lr'] = 0.0 if waits else highest * self.schedule()
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
        a['tokens'] += ids.numel()
        if a['batch'] == len(self.batches):
            a['pass' if self.asking() else 'epoch'] += 1
            a['batch'] = 0
            self.batches = self.next_batches()
        return shown

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
            if now - shown > 2 or self.at['progress'] >= 1:  # rarely: reading the loss waits
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
        line = ((f"pass {a['pass'] + 1}/{self.recipe['question_passes']} of the questions" if self.asking() else
                 f"epoch {min(a['epoch'] + 1, self.recipe['epochs'])}/{self.recipe['epochs']}") + f"  step {a['step']}  {100 * a['progress']:5.1f} %  "
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
            ids, answer, _ = to_tensors(self.validation, batch, self.pad, self.device)
            loss, _, _, hits = losses(self.model, self.model(ids), ids, answer, prompts=False)
            total += float(loss.sum())
            right += float(hits.sum())
            count += loss.numel()
        return (total / count, right / count) if count else (float('nan'), float('nan'))

    def state(self):
        s = {'recipe': self.recipe, 'merges': self.tok.merges, 'model': self.model.state_dict(), 'words': self.words.state_dict(),
             'muon': self.muon.state_dict(), 'adam': self.adam.state_dict(), 'mean': self.mean, 'at': self.at, 'random': torch.get_rng_state(), 'python': random.getstate()}
        if self.device == 'cuda':
            s['cuda'] = torch.cuda.get_rng_state()
        return s

    def restore(self, s):
        self.model.load_state_dict(s['model'])
        self.words.load_state_dict(s['words'])
        self.muon.load_state_dict(s['muon'])
        self.adam.load_state_dict(s['adam'])
        if self.mean:
            self.mean = [m.to(self.device) for m in s['mean']]
        self.at = dict(s['at'])
        self.batches = self.next_batches()
        torch.set_rng_state(s['random'].cpu())
        if self.device == 'cuda' and 'cuda' in s:
            torch.cuda.set_rng_state(s['cuda'].cpu())


def trained(state, device='cpu'):
    """The model of a checkpoint, with the mean of its weights where that is kept."""
    model = Guide(state['recipe']['shape']).to(device)
    model.load_state_dict(state['model'])
    with torch.no_grad():
        for p, m in zip(model.parameters(), state['mean'] or model.parameters()):
            p.copy_(m)
    return model


def save(path, state):
    """Whole or not at all."""
    torch.save(state, f'{path}.part')
    os.replace(f'{path}.part', path)


def load(path, device='cpu'):
    # A checkpoint is a trusted file of the maintainer; PyTorch 1.13 has no weights_only.
    try:
        return torch.load(path, map_location=device, weights_only=False)
    except TypeError:
        return torch.load(path, map_location=device)
