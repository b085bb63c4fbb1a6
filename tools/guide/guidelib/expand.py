# SPDX-License-Identifier: GPL-3.0-or-later
"""Question patterns: {a|b|} chooses, <list> takes a word of a list, $slot stays for a value."""
import re
from functools import lru_cache

_PIECE = re.compile(r'[{}|]|<[a-z0-9-]+>|[^{}|<]+|<')
_BLANK_BEFORE = re.compile(r' ([,.?!;:])')


class _Plain(dict):
    """For str.translate: what a character is in a question that is compared."""

    def __missing__(self, code):
        c = chr(code).lower()
        self[code] = '' if c == "'" else c if len(c) == 1 and (c in '0123456789$' or 'a' <= c <= 'z') else ' '
        return self[code]


_plain = _Plain()


class PatternError(ValueError):
    pass


@lru_cache(maxsize=None)
def parse(pattern):
    """A tuple of pieces: str, ('list', name) or ('choice', (tuple, ...))."""
    stack = [[[]]]
    for piece in _PIECE.findall(pattern):
        if piece == '{':
            stack.append([[]])
        elif piece == '|' and len(stack) > 1:
            stack[-1].append([])
        elif piece == '}':
            if len(stack) == 1:
                raise PatternError(f'a }} too many in {pattern!r}')
            options = tuple(tuple(option) for option in stack.pop())
            stack[-1][-1].append(('choice', options))
        elif piece[0] == '<' and len(piece) > 1:
            stack[-1][-1].append(('list', piece[1:-1]))
        else:
            stack[-1][-1].append(piece)
    if len(stack) != 1:
        raise PatternError(f'a {{ without }} in {pattern!r}')
    return tuple(stack[0][0])


def names(pattern):
    """The lists a pattern asks for."""
    def walk(pieces):
        for piece in pieces:
            if isinstance(piece, str):
                continue
            if piece[0] == 'list':
                yield piece[1]
            else:
                for option in piece[1]:
                    yield from walk(option)
    return set(walk(parse(pattern)))


def variants(pattern):
    """How many texts a pattern stands for; a list counts once."""
    def count(pieces):
        n = 1
        for piece in pieces:
            if not isinstance(piece, str) and piece[0] == 'choice':
                n *= sum(count(option) for option in piece[1])
        return n
    return count(parse(pattern))


def expand(pattern, lists, rng):
    """One text of the pattern, blanks tidied."""
    out = []

    def walk(pieces):
        for piece in pieces:
            if isinstance(piece, str):
                out.append(piece)
            elif piece[0] == 'list':
                walk(parse(rng.choice(lists[piece[1]])))
            else:
                walk(rng.choice(piece[1]))
    walk(parse(pattern))
    return _BLANK_BEFORE.sub(r'\1', ' '.join(''.join(out).split()))


def slots(text):
    return re.findall(r'\$([a-z]+)', text)


def fill(text, values):
    return re.sub(r'\$([a-z]+)', lambda m: values[m.group(1)], text)


def pool(questions, lists, frames, rng, size):
    """Up to `size` distinct texts of an intent's patterns; every pattern is tried in turn, so that a short one
    counts as much as one with many variants."""
    found, seen = [], set()
    turns = max(8, 3 * size // max(1, len(questions)))
    varied = [q for q in questions if q[0] != 'q' or '{' in q[1] or '<' in q[1]]  # the others are one text each
    for turn in range(turns):
        for kind, pattern, _ in questions if turn == 0 else varied:
            text = expand(pattern, lists, rng)
            if kind != 'q':
                text = expand(rng.choice(frames[kind]), lists, rng).replace('~', text)
            key = normal(text)
            if key not in seen:
                seen.add(key)
                found.append(text)
        if len(found) >= size and turn >= 2:
            break
    return found


def normal(text):
    """What two questions are compared by: letters and digits in lower case."""
    return ' '.join(text.translate(_plain).split())
