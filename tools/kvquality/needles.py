# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts with needles: `Kv ` gives the key K, a capital letter, the value v; `?Kv ` asks for it later. Words
of no meaning fill the rest. Every byte is a token."""

WORDS = (
    'the sun and a river were blue once more when old trees began to bend in wind over low hills while small birds flew '
         'by us or sat down near some red stones of that long road').split()
KEYS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
VALUES = '0123456789abcdefghijklmnopqrstuvwxyz'


def filler(rng, length):
    """Words, each with a space after it, of length characters or a few less."""
    out = []
    while length > 7:
        out.append(rng.choice(WORDS) + ' ')
        length -= len(out[-1])
    return out


def place(words, events):
    """(text, places of values that answer) of words with events (time from 0 to 1, key, value, whether it is
    a question)."""
    out, at, answers = [], 0, []
    todo = sorted(events)
    for i in range(len(words) + 1):
        while todo and (todo[0][0] * len(words) <= i or i == len(words)):
            _, key, value, asks = todo.pop(0)
            text = f'{"?" * asks}{key}{value} '
            if asks:
                answers.append(at + 2)
            out.append(text)
            at += len(text)
        if i < len(words):
            out.append(words[i])
            at += len(words[i])
    return ''.join(out), answers


def training_text(rng, length, most_keys):
    """A text of length characters, and the places in it that a model can know only from needles."""
    n = rng.randint(1, most_keys)
    asked = rng.randint(n, min(60, (length - 3 * n - 8) // 4))
    events, needles = [], []
    for key in rng.sample(KEYS, n):
        needles.append((rng.random() * 0.9, key, rng.choice(VALUES), False))
    for _ in range(asked):
        time, key, value, _ = rng.choice(needles)
        events.append((max(time + 1e-9, rng.uniform(time, 1) if rng.random() < 0.5 else rng.uniform(0.9, 1)),
            key, value, True))
    words = filler(rng, length - 3 * n - 4 * asked)
    text, answers = place(words, events + needles)
    text = text[:length].ljust(length, '.')
    return text, [a for a in answers if a < length]


def conversation(rng, length, depths):
    """A text of length characters with a needle at each of these depths, shares of the text, and a question
    about one of them at its end, then questions about the others, in random order: [(what is asked, answer),
    ...]. The first has the text."""
    n = len(depths)
    needles = [(d, k, rng.choice(VALUES), False) for d, k in zip(depths, rng.sample(KEYS, n))]
    words = filler(rng, length - 3 * n - 3)
    words[-1] = words[-1].rstrip().ljust(length - 3 * n - 2 - sum(map(len, words[:-1])))
    text, _ = place(words, needles)
    order = rng.sample(needles, n)
    return [((' ' if i else text) + '?' + key, value) for i, (_, key, value, _) in enumerate(order)]
