# SPDX-License-Identifier: GPL-3.0-or-later
"""Dialogues as token ids, and the batches of an epoch: a function of text, recipe and number of the epoch alone."""
import hashlib
import json
import random
from array import array


class DataError(Exception):
    """A message for the user."""


def read(path):
    """(dialogues, sha256) of a file of JSON lines."""
    out, digest = [], hashlib.sha256()
    with open(path, 'rb') as f:
        for n, line in enumerate(f, 1):
            digest.update(line)
            if line.startswith(b'#') or not line.strip():
                continue
            try:
                messages = json.loads(line)['messages']
                if not all(m['content'].isascii() and m['role'] in ('system', 'user', 'assistant') for m in messages):
                    raise ValueError('a message is not ASCII, or its role is unknown')
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise DataError(f'{path}:{n}: {e}') from None
            out.append(messages)
    if not out:
        raise DataError(f'{path}: no dialogues')
    return out, digest.hexdigest()


class Corpus:
    """Token ids of dialogues, two bytes a token. Dialogue i is ids[at[i]:at[i+1]]; answer tells what is learnt."""

    def __init__(self, dialogues, tok, longest):
        self.ids, self.answer, self.at, self.skipped = array('H'), array('B'), [0], 0
        for messages in dialogues:
            ids, answer = tok.dialogue(messages)
            if len(ids) > longest:
                self.skipped += 1
                continue
            self.ids.extend(ids)
            self.answer.extend(answer)
            self.at.append(len(self.ids))

    def __len__(self):
        return len(self.at) - 1

    def row(self, members, length, pad):
        """(ids, answer) of the dialogues one after another, filled up with pad. answer is 2 where nothing is: those
        weigh nothing."""
        ids, answer = array('H'), array('B')
        for i in members:
            ids.extend(self.ids[self.at[i]:self.at[i + 1]])
            answer.extend(self.answer[self.at[i]:self.at[i + 1]])
        empty = length - len(ids)
        return ids + array('H', [pad]) * empty, answer + array('B', [2]) * empty


def _fill(corpus, order, lengths, shares, rng, width=24):
    """Dialogues dealt out to rows, by (length, members): each goes where the least room is left over among the open
    rows of a length drawn by its share."""
    open_rows = {n: [] for n in lengths}
    done = []
    for i in order:
        size = corpus.at[i + 1] - corpus.at[i]
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
        row[1].append(i)
    for n in lengths:
        done += [(n, r[1]) for r in open_rows[n]]
    return done


def epoch(corpus, recipe, number):
    """The batches of an epoch, (row length, [members of a row, ...]) each, in the order of training. Several
    dialogues in a row are one long chat in which the subject changes; the shorter rows are there for speed."""
    rng = random.Random(f"{recipe['seed']} {number}")
    order = list(range(len(corpus)))
    rng.shuffle(order)
    lengths = [r[0] for r in recipe['rows']]
    # A share counts tokens, a dialogue is dealt out by itself: the two agree as sizes do not depend on the row.
    shares = [r[1] for r in recipe['rows']]
    by_length = {n: [] for n in lengths}
    for n, members in _fill(corpus, order, lengths, shares, rng):
        rng.shuffle(members)
        by_length[n].append(members)
    batches = []
    for n, rows in by_length.items():
        rng.shuffle(rows)
        per = max(1, recipe['batch_tokens'] // n)
        batches += [(n, rows[i:i + per]) for i in range(0, len(rows), per)]
    rng.shuffle(batches)
    return batches
