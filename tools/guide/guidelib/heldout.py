# SPDX-License-Identifier: GPL-3.0-or-later
"""The held-out questions, and what it takes to answer one. tests/data/guide/README.md describes the file."""
import itertools
import json
import re

from .check import mentions
from .expand import normal, slots

_FIELDS = {'id', 'messages', 'intent', 'must', 'must_not'}


class HeldOutError(ValueError):
    """The message begins with FILE:LINE."""


def read_rows(path):
    """(FILE:LINE, object) for every line of a file of JSON lines; blank lines and those of # are comments."""
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        if line.strip() and not line.startswith('#'):
            try:
                row = json.loads(line)
            except ValueError as e:
                raise HeldOutError(f'{path.name}:{number}: {e}') from None
            if not isinstance(row, dict):
                raise HeldOutError(f'{path.name}:{number}: not an object')
            yield f'{path.name}:{number}', row


def _texts(value):
    return isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)


def _wrong_shape(row):
    if set(row) != _FIELDS:
        return f'the fields are {", ".join(sorted(_FIELDS))}'
    turns = row['messages'] if isinstance(row['messages'], list) else []
    if len(turns) % 2 == 0 or not all(isinstance(m, dict) and set(m) == {'role', 'content'} for m in turns):
        return 'messages are role and content, an odd number of them'
    if [m['role'] for m in turns] != [('user', 'assistant')[i % 2] for i in range(len(turns))]:
        return 'messages are by user and assistant in turn'
    if not _texts([m['content'] for m in turns]) or not _texts([row['id'], row['intent']]):
        return 'id, intent and content are texts'
    if not row['must'] or not all(_texts(group) and group for group in row['must']):
        return 'must is a list of groups, each a list of alternatives'
    return '' if _texts(row['must_not']) else 'must_not is a list of texts'


def read_items(path):
    """All items of the file; HeldOutError for the first that is malformed."""
    items = []
    for where, row in read_rows(path):
        wrong = _wrong_shape(row)
        if wrong:
            raise HeldOutError(f'{where}: {wrong}')
        items.append({**row, 'where': where})
    return items


class Judge:
    """Tells whether an answer is right. Names that mean the same in the tables are the same here."""

    def __init__(self, tables):
        self.tables = tables
        self.settings = {n for s in tables.settings for n in [s.name, *s.aliases]}
        self.slash = {n: i.name for i in tables.settings + tables.commands for n in [i.name, *i.aliases]}
        self.options = {n: i.name for i in tables.options + tables.settings for n in [i.name, *i.aliases]}

    def plain(self, text):
        """One spelling: lower case, no backquotes, Ctrl-C for ^C, /temperature for /temp and /set temp."""
        text = ' '.join(text.replace('`', '').replace('\u2019', "'").split())
        text = re.sub(r'\^([A-Z])\b|\b[Cc]trl[ +-]([A-Za-z])\b', lambda m: 'Ctrl-' + (m[1] or m[2]), text)
        text = re.sub(r'/set ([a-z][a-z-]*)', lambda m: '/' + m[1] if m[1] in self.settings else m[0], text)
        text = re.sub(r'(?<![\w/.~-])/([a-z][a-z-]*)(?![\w/.]*/)', lambda m: '/' + self.slash.get(m[1], m[1]), text)
        text = re.sub(r'(?<![\w-])--([a-z][a-z0-9-]*)', lambda m: '--' + self.options.get(m[1], m[1]), text)
        return text.lower()

    def names(self, words, plain):
        """Do these words stand in a plain answer, whole? A * at their end lets the last word go on."""
        words = self.plain(words)
        body, tail = (words[:-1], '') if words.endswith('*') else (words, r'(?!\w|[-.]\w)')
        head = {'/': r'(?<![\w/.~])', '-': r'(?<![\w-])'}.get(body[0], r'(?<!\w)(?<!\w[-.])')
        return bool(re.search(head + re.escape(body) + (tail if re.match(r'[\w!]', body[-1]) else ''), plain))

    def invented(self, answer):
        """Commands, options and keys in an answer that no table has."""
        return sorted({wrong.split()[2] for wrong in mentions(answer, self.tables)})

    def faults(self, item, answer):
        """Why an answer is wrong; nothing when it is right."""
        plain = self.plain(answer)
        for group in item['must']:
            if not any(self.names(words, plain) for words in group):
                yield 'lacks ' + ' | '.join(group)
        for words in item['must_not']:
            if self.names(words, plain):
                yield 'has ' + words
        for name in self.invented(answer):
            yield 'invents ' + name


def filled(answer, item):
    """The answer with its $slots filled by all that the user wrote: one of them is what a perfect guide says."""
    holes = sorted(set(slots(answer)))
    if not holes:
        return [answer]
    words = ' '.join(m['content'] for m in item['messages'][::2]).split()
    parts = {w.strip('?.,:!') for w in words} | {w.strip('?.,:!MGmgb') for w in words if w[0].isdigit()}
    parts |= {' '.join(words[i:j]).strip('?.,:!') for i in range(len(words)) for j in range(i + 2, len(words) + 1)}
    return (re.sub(r'\$([a-z]+)', lambda m: dict(zip(holes, values)).get(m[1], m[0]), answer)
            for values in itertools.product(sorted(parts), repeat=len(holes)))


def complaints(items, intents, judge):
    """What is wrong with a set whose shape is right. intents: {id: [answer, ...]}."""
    ids, asked = {}, {}
    for item in items:
        where, key = item['where'], tuple(normal(m['content']) for m in item['messages'])
        if ids.setdefault(item['id'], where) != where:
            yield f'{where}: the id {item["id"]} stands at {ids[item["id"]]} already'
        if asked.setdefault(key, where) != where:
            yield f'{where}: the question of {asked[key]}'
        for group in item['must']:
            for wrong in itertools.chain.from_iterable(mentions(words, judge.tables) for words in group):
                yield f'{where}: must: {wrong}'
        if item['intent'] not in intents:
            yield f'{where}: no intent {item["intent"]}'
        for answer in intents.get(item['intent'], []):
            tries = [list(judge.faults(item, text)) for text in filled(answer, item)]
            if all(tries):
                yield f'{where}: the fact [{item["intent"]}] itself is wrong by this: {tries[0][0]}'
