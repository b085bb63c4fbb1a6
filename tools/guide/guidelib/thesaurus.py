# SPDX-License-Identifier: GPL-3.0-or-later
"""Other words in the place of words: a network that has read nothing else learns from these that two words mean the same."""
import re

from .facts import FactError

_LINE = re.compile(r"[a-z][a-z' -]*: [a-z0-9' -]+(\|[a-z0-9' -]+)*")
_WORD = re.compile(r"(?<![\w$/~.'-])[a-z]+(?![\w/.'=-]|\+)")  # a plain word: no command, option, path, key or $slot
_SHARE = 0.45  # share of the questions in which a word is replaced


class Thesaurus:
    def __init__(self, path):
        self.others = {}
        lines = path.read_text(encoding='utf-8').splitlines() if path.exists() else []  # optional
        for number, line in enumerate(lines, 1):
            if not line or line.startswith('#'):
                continue
            if not _LINE.fullmatch(line):
                raise FactError(f'{path.name}:{number}: wanted "word: another|another" in lower case')
            word, others = line.split(': ', 1)
            if word in self.others or word in others.split('|'):
                raise FactError(f'{path.name}:{number}: {word!r} stands here twice')
            self.others[word] = others.split('|')

    def exchange(self, text, rng):
        """One word of `text` in three, at least one, by others, in some of the questions."""
        if rng.random() >= _SHARE:
            return text
        places = [m for m in _WORD.finditer(text) if m.group() in self.others]
        rng.shuffle(places)
        for m in sorted(places[:max(1, len(places) // 3)], key=lambda m: -m.start()):
            text = text[:m.start()] + rng.choice(self.others[m.group()]) + text[m.end():]
        return text
