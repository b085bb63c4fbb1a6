# SPDX-License-Identifier: GPL-3.0-or-later
"""Byte-level BPE: cutting text into pieces, learning merges, encoding. Gives the ids that the engine gives."""
import re
from collections import Counter, defaultdict
from heapq import heapify, heappop, heappush

# The value of tokenizer.ggml.pre for the two expressions in PIECES (src/token/pretok.c): single digits,
# then the words of GPT-2. A slash or dashes are never joined with the following word, so "/load", "`/load`"
# and "load" share a token.
PRE = 'smollm'
# Exact for ASCII, which is all that the training text contains; data.py refuses anything else.
DIGIT = re.compile(r'([0-9])')
PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[0-9]| ?[A-Za-z]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)

END, START, STOP = '<|endoftext|>', '<|im_start|>', '<|im_end|>'
SPECIALS = (END, START, STOP)


def topic_token(intent):
    """The text of the control token that an answer begins with: what it is about is said once, before the first word, and no
    word of it is shown."""
    return f'<|topic:{intent}|>'


def pieces(text):
    """The pieces of text, in order, that merges never cross."""
    for part in DIGIT.split(text):
        if part:
            yield from PIECES.findall(part)


def byte_letters():
    """The letter that stands for each byte in a vocabulary file: GPT-2's (openai/gpt-2 src/encoder.py)."""
    shown = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    letters = {b: chr(b) for b in shown}
    hidden = [b for b in range(256) if b not in letters]
    letters.update((b, chr(256 + i)) for i, b in enumerate(hidden))
    return [letters[b] for b in range(256)]


def _join(word, pair, new):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and word[i] == pair[0] and word[i + 1] == pair[1]:
            out.append(new)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def learn(texts, n_vocab, n_topics=0):
    """Merges, as pairs of ids, that fill a vocabulary of n_vocab: 256 bytes, a token per merge, one per topic, the special tokens.
    Fewer when the text has no pair left that occurs twice. Ties go to the lower ids, so the result is a function
    of the text alone."""
    count = Counter()
    for text in texts:
        count.update(pieces(text))
    words = [list(w.encode()) for w in count]
    times = list(count.values())
    pairs, where = Counter(), defaultdict(set)
    for i, w in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] += times[i]
            where[p].add(i)
    heap = [(-n, p) for p, n in pairs.items()]
    heapify(heap)
    merges = []
    while heap and len(merges) < n_vocab - 256 - n_topics - len(SPECIALS):
        n, pair = heappop(heap)
        if -n != pairs[pair]:  # an outdated count; the current one is in the heap too
            continue
        if n > -2:
            break
        new = 256 + len(merges)
        merges.append(pair)
        changed = set()
        for i in where.pop(pair):
            for p in zip(words[i], words[i][1:]):
                pairs[p] -= times[i]
                changed.add(p)
            words[i] = _join(words[i], pair, new)
            for p in zip(words[i], words[i][1:]):
                pairs[p] += times[i]
                where[p].add(i)
                changed.add(p)
        for p in changed:
            if pairs[p] > 0:
                heappush(heap, (-pairs[p], p))
    return merges


class Tokenizer:
    """ids of text under merges; n_vocab is the size of the vocabulary with the special tokens at its end, before them one for
    each of the topics, the intents in the order of their numbers."""

    def __init__(self, merges, n_vocab, topics=()):
        self.merges = [tuple(m) for m in merges]
        self.n_vocab, self.topics = n_vocab, list(topics)
        self.first_topic = n_vocab - len(SPECIALS) - len(self.topics)
        self.topic = {t: self.first_topic + i for i, t in enumerate(self.topics)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.special = {s: n_vocab - len(SPECIALS) + i for i, s in enumerate(SPECIALS)}
        self.known = {}
        self.bytes = [bytes([i]) for i in range(256)]
        for a, b in self.merges:
            self.bytes.append(self.bytes[a] + self.bytes[b])
        if len(self.bytes) > self.first_topic:
            raise ValueError(f'{len(self.merges)} merges and {len(self.topics)} topics do not fit a vocabulary of {n_vocab}')

    def _piece(self, piece):
        word = list(piece.encode())
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda p: self.rank.get(p, len(self.rank)))
            if best not in self.rank:
                break
            word = _join(word, best, 256 + self.rank[best])
        return word

    def encode(self, text):
        """ids of plain text: special tokens in it are text."""
        out = []
        for piece in pieces(text):
            ids = self.known.get(piece)
            if ids is None:
                ids = self.known[piece] = self._piece(piece)
            out += ids
        return out

    def decode(self, ids):
        """Text of ids, special tokens left out."""
        return b''.join(self.bytes[i] for i in ids if i < len(self.bytes)).decode(errors='replace')

    def dialogue(self, messages, ask=False, intents=(), bare=False):
        """(ids, answer) of a dialogue in ChatML as templates/chatml.jinja writes it; answer[i] is 1 where ids[i] is
        what the model shall write. With ask the last message is followed by the head of an answer. With intents, one for
        each answer, answers begin with their topics; with bare only the last of them, as in a chat that is read from its
        text again: the first token of the others, which the model would not write there, is marked 3."""
        ids, answer, n = [], [], 0

        def put(new, mark):
            ids.extend(new)
            answer.extend([mark] * len(new))
        start, stop = self.special[START], self.special[STOP]
        for m in messages:
            # Head and content are one text for the tokenizer: white space at the boundary belongs to one
            # piece.
            head = self.encode(m['role'] + '\n')
            whole = self.encode(m['role'] + '\n' + m['content'])
            said = int(m['role'] == 'assistant')
            put([start], 0)
            put(whole[:len(head)], 0)
            begin, n = len(ids), n + said
            skip_layer = said and bare and n < len(intents)
            if said and intents and not skip_layer:
                put([self.topic[intents[n - 1]]], 1)
            put(whole[len(head):], said)
            if skip_layer:
                answer[begin] = 3
            put([stop], said)
            put(self.encode('\n'), 0)
        if ask:
            put([start] + self.encode('assistant\n'), 0)
        return ids, answer
