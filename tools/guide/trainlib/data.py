# SPDX-License-Identifier: GPL-3.0-or-later
"""Dialogues as token ids, and the batches of an epoch: a function of text, recipe and number of the epoch alone."""
import hashlib
import json
import random
from array import array


STEP = 4  # rows of one dialogue are padded to a multiple of it, so that many have the same length


class DataError(Exception):
    """A message for the user."""


def read(path):
    """([(messages, intents of the answers, whether the last answer is to be learnt whole), ...], sha256) of a file of JSON lines."""
    out, digest = [], hashlib.sha256()
    with open(path, 'rb') as f:
        for n, line in enumerate(f, 1):
            digest.update(line)
            if line.startswith(b'#') or not line.strip():
                continue
            try:
                row = json.loads(line)
                messages, intents = row['messages'], row['intents']
                if not all(m['content'].isascii() and m['role'] in ('system', 'user', 'assistant') for m in messages):
                    raise ValueError('a message is not ASCII, or its role is unknown')
                if len(intents) != sum(m['role'] == 'assistant' for m in messages):
                    raise ValueError('not one intent for each answer')
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise DataError(f'{path}:{n}: {e}') from None
            out.append((messages, intents, row.get('whole') is True))
    if not out:
        raise DataError(f'{path}: no dialogues')
    return out, digest.hexdigest()


def names(dialogues):
    """{intent: number from 1 on}"""
    return {name: i for i, name in enumerate(sorted({n for _, intents, _ in dialogues for n in intents}), 1)}


class Corpus:
    """Token ids of dialogues, two bytes a token. Dialogue i is ids[at[i]:at[i+1]], its last answer begins at last[i] of
    them and is not to be cut if whole[i]; answer tells what is learnt, topic has the number of the intent at the token before an answer, else 0.
    In every other dialogue, by chance, the last answer alone begins with its topic token."""

    def __init__(self, dialogues, tok, longest, numbers):
        self.ids, self.answer, self.topic = array('H'), array('B'), array('H')
        self.at, self.last, self.whole, self.skipped = [0], [], bytearray(), 0
        rng = random.Random('topics')
        for messages, intents, whole in dialogues:
            ids, answer = tok.dialogue(messages, intents=intents, bare=rng.random() < 0.5)
            if len(ids) > longest:
                self.skipped += 1
                continue
            self.ids.extend(ids)
            self.answer.extend(answer)
            self.at.append(len(self.ids))
            begins = [j for j in range(1, len(answer)) if answer[j] > answer[j - 1]]
            self.last.append(begins[-1] if begins else len(answer))
            self.whole.append(whole)
            topic = array('H', bytes(2 * len(ids)))
            for j, name in zip(begins, intents):
                topic[j - 1] = numbers.get(name, 0)
            self.topic.extend(topic)

    def __len__(self):
        return len(self.at) - 1

    def row(self, members, length, pad):
        """(ids, answer, topic) of the dialogues, (number, tokens of it), one after another, filled up with pad. answer is 2 or 3
        where nothing is to be predicted: 2 in what was filled up, and where a dialogue begins, 3 within an answer."""
        ids, answer, topic = array('H'), array('B'), array('H')
        for i, size in members:
            first, end = self.at[i], self.at[i] + size
            ids.extend(self.ids[first:end])
            answer.append(2)
            answer.extend(self.answer[first + 1:end])
            topic.extend(self.topic[first:end])
        empty = length - len(ids)
        return ids + array('H', [pad]) * empty, answer + array('B', [2]) * empty, topic + array('H', [0]) * empty


def sizes(corpus, recipe, rng):
    """How many tokens of each dialogue are learnt in an epoch. What an answer is about shows in its first words, and the
    rest is soon known by heart: most last answers are cut behind them, for more questions in the same time."""
    least, most = recipe['opening']
    out = []
    for i in range(len(corpus)):
        size = corpus.at[i + 1] - corpus.at[i]
        if rng.random() < recipe['cut'] and not corpus.whole[i]:
            size = min(size, corpus.last[i] + rng.randint(least, most))
        out.append(size)
    return out


def _fill(order, sizes, lengths, shares, rng, width=24):
    """Dialogues dealt out to rows, by (length, members): each goes where the least room is left over among the open
    rows of a length drawn by its share."""
    open_rows = {n: [] for n in lengths}
    done = []
    for i in order:
        size = sizes[i]
        n = rng.choices(lengths, shares)[0]
        if size > n:
            n = min(m for m in lengths if m >= size)
        rows = open_rows[n]
        fits = [r for r in rows if r[0] >= size]
        if fits:
            row = min(fits, key=lambda r: r[0])
        else:
            if len(rows) == width:
                full = min(rows, key=lambda r: r[0])
                rows.remove(full)
                done.append((n, full[1]))
            row = [n, []]
            rows.append(row)
        row[0] -= size
        row[1].append((i, size))
    for n in lengths:
        done += [(n, r[1]) for r in open_rows[n]]
    return done


def _by_length(members):
    """{row length: [[member], ...]} of members, (dialogue, tokens), a row each."""
    out = {}
    for i, size in members:
        out.setdefault(-(-size // STEP) * STEP, []).append([(i, size)])
    return out


def _batches(by_length, recipe, rng):
    out = []
    for n, rows in sorted(by_length.items()):
        rng.shuffle(rows)
        per = max(1, recipe['batch_tokens'] // n)
        out += [(n, rows[i:i + per]) for i in range(0, len(rows), per)]
    rng.shuffle(out)
    return out


def questions(corpus, recipe, number):
    """The batches of a pass over the questions alone: dialogues up to where the last answer begins, but no long ones."""
    rng = random.Random(f"{recipe['seed']} questions {number}")
    short = [(i, n) for i, n in enumerate(corpus.last) if n <= recipe['question_tokens']]
    return _batches(_by_length(short), recipe, rng)


def epoch(corpus, recipe, number):
    """The batches of an epoch, (row length, [members of a row, ...]) each, in the order of training; a member is (dialogue,
    tokens of it). Most dialogues have a row of their own: nothing in it distracts from the question, so that what to look at is
    learnt in minutes. The others are joined to long chats in which the subject changes."""
    rng = random.Random(f"{recipe['seed']} {number}")
    size = sizes(corpus, recipe, rng)
    shares = [r[1] for r in recipe['joined']]
    order = list(range(len(corpus)))
    rng.shuffle(order)
    joined = [i for i in order if rng.random() < sum(shares)]
    joined = set(joined)
    by_length = _by_length([(i, size[i]) for i in order if i not in joined])
    for n, members in _fill([i for i in order if i in joined], size, [r[0] for r in recipe['joined']], shares, rng):
        rng.shuffle(members)
        by_length.setdefault(n, []).append(members)
    return _batches(by_length, recipe, rng)
