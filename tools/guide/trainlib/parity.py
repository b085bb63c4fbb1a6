# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch against the engine, for a checkpoint and the f16 file made of it: tokens, logits, greedy answers."""
import json
import tempfile
from array import array
from pathlib import Path

import torch

from . import bpe, engine, loop
from .model import Guide, greedy


# Both compute in float32 with the same weights: only the order of sums differs (1e-8 or less was measured).
MOST_KL = 1e-6


def load(checkpoint):
    """(model in float32, its weights those of the f16 file, tokenizer)."""
    state = loop.load(checkpoint)
    shape = state['recipe']['shape']
    model = Guide(shape)
    model.load_state_dict(state['model'])
    with torch.no_grad():
        for p, m in zip(model.parameters(), state['mean'] or model.parameters()):
            p.copy_(m.half().float() if p.dim() > 1 else m)
    return model.eval(), bpe.Tokenizer(state['merges'], shape['vocab'], state['intents'])


@torch.no_grad()
def logits(model, ids):
    """{name of the engine's file: (what it is called, options, logits)}: of the model, and of its next-token block."""
    ids = torch.tensor([ids])
    hidden = model(ids)
    out = {'logits.f32': ('logits', [], model.logits(hidden[0]))}
    if model.next:
        out['mtp.f32'] = ('next-token block', ['--nextn', '0'], model.next_logits(ids, hidden)[0])
    return out


def receipts(program, gguf, ids, found):
    """Yields (what it is called, receipt) of each of logits()."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / 'tokens.txt').write_text(' '.join(map(str, ids)) + '\n')
        for name, (title, options, numbers) in found.items():
            (Path(folder) / name).write_bytes(array('f', numbers.flatten().tolist()).tobytes())
            yield title, json.loads(engine.call([program, '--exact', '--max-kl', '1', '--parity', folder, *options, str(gguf)]))


def compare(program, checkpoint, gguf, dialogues, most, out):
    """Prints what differs; the number of differences. The engine computes with float activations."""
    model, tok = load(checkpoint)
    texts = [m['content'] for d in dialogues for m in d]
    same = [tok.encode(t) == ids for t, ids in zip(texts, engine.tokenize(program, gguf, texts))]
    print(f'tokens: {sum(same)} of {len(same)} texts equal', file=out)
    joined = [i for d in dialogues for i in tok.dialogue(d, ask=True)[0]][:model.shape['context']]
    wrong = 0
    for title, receipt in receipts(program, gguf, joined, logits(model, joined)):
        print(f'{title}: ' + ', '.join(f'{k} {receipt[k]}' for k in ('tokens', 'min_cosine', 'mean_kl', 'argmax_match')), file=out)
        wrong += receipt['mean_kl'] > MOST_KL
    for d in dialogues:
        ours = tok.decode(greedy(model, tok.dialogue(d, ask=True)[0], tok.special[bpe.STOP], most))
        theirs = engine.answer(program, gguf, d, most, [*engine.GREEDY, '--exact'])
        if ours.rstrip('\n') != theirs:
            wrong += 1
            print(f'differs: {d[-1]["content"]}\n  PyTorch: {ours}\n  engine:  {theirs}', file=out)
    print(f'answers: {len(dialogues) - wrong} of {len(dialogues)} equal', file=out)
    return wrong + len(same) - sum(same)
