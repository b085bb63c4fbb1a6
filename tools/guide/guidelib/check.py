# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds the facts against the tables of the program. Every complaint begins with FILE:LINE."""
import random
import re

from .expand import PatternError, expand, names, parse, pool, slots, variants
from .slots import MAKERS

WORDS_MAX = 75
_COMMAND = re.compile(r'(?<![\w/.~$!@*"-])/([a-z?][a-z-]*!?)(?![\w/.])')
_OPTION = re.compile(r'(?<![\w-])--([a-z][a-z0-9-]*)')
_KEY = re.compile(r'\b(F(?:[1-9]|1[0-2])|Ctrl-[A-Z][a-z]*|Alt-[A-Za-z<>]+|PgUp|PgDn|Esc|Tab|Enter)\b')
# Keys of readline and of terminals, which are in none of our tables.
_ELSEWHERE = {'Ctrl-A', 'Ctrl-E', 'Ctrl-W', 'Ctrl-Shift'}
_SAMPLE = 20


def mentions(text, tables):
    """What a text names that the program does not have."""
    slash, options, keys = tables.slash_names, tables.option_names, tables.key_names
    for name in _COMMAND.findall(text):
        if name not in slash:
            yield f'no command /{name} in the tables'
    for name in _OPTION.findall(text):
        if name not in options and '--' + name not in tables.build_options:
            yield f'no option --{name} in the tables'
    for name in _KEY.findall(text):
        if name not in _ELSEWHERE and name.replace('Ctrl-', '^') not in keys:
            yield f'no key {name} in the tables'


def _answers(intent, tables):
    if not intent.answers:
        yield 'no answer'
    if len(intent.answers) > 3:
        yield 'more than three wordings of the answer'
    for text in intent.answers:
        if len(text.split()) > WORDS_MAX:
            yield f'an answer of {len(text.split())} words, {WORDS_MAX} is the limit'
        if not text.isascii():
            yield f'not ASCII: {text[:50]!r}'
        if text.count('`') % 2:
            yield f'an odd number of backquotes: {text[:50]!r}'
        for name in slots(text):
            if name not in MAKERS and name != 'value':
                yield f'no slot ${name}'
        yield from mentions(text, tables)
        for words in intent.must:
            if not any(word.lower() in text.lower() for word in words):
                yield f'must: {" | ".join(words)} is not in the answer {text[:50]!r}'


def _pattern(text, lists):
    try:
        parse(text)
    except PatternError as e:
        return str(e)
    for name in names(text):
        if name not in lists:
            return f'no list <{name}>'
    for name in slots(text):
        if name not in MAKERS and name != 'value':
            return f'no slot ${name}'
    return '' if text.isascii() else f'not ASCII: {text[:50]!r}'


def _questions(intent, lists, rng):
    asked = intent.q + intent.lent
    values = set(slots(' '.join(intent.answers)))
    for i, (_, text, where) in enumerate(asked + intent.then):
        wrong = _pattern(text, lists)
        if wrong:
            yield where, wrong
            continue
        # A value in the answer must come from the question, not from a follow-up.
        tries = 0 if not values or i >= len(asked) else _SAMPLE if '{' in text or '<' in text else 1
        for _ in range(tries):
            if not values <= set(slots(expand(text, lists, rng))):
                yield where, f'the question lacks a slot of the answer: {text[:50]!r}'
                break


def check_facts(intents, tables, lists, rng, least=14, asked=True):
    """All complaints about these intents; asked: about their questions, too."""
    by_id = {i.id: i for i in intents}
    targets = {t for i in intents for t, _, _ in i.then}
    for intent in intents:
        for wrong in _answers(intent, tables):
            yield f'{intent.where}: [{intent.id}] {wrong}'
        if not asked:
            continue
        for where, wrong in _questions(intent, lists, rng):
            yield f'{where}: [{intent.id}] {wrong}'
        for target, _, where in intent.then:
            if target not in by_id:
                yield f'{where}: [{intent.id}] then: no intent [{target}]'
        if intent.derived:
            continue
        for _, text, where in intent.q:
            for wrong in mentions(text.replace('/$', ''), tables):
                yield f'{where}: [{intent.id}] {wrong}'
        if not intent.must:
            yield f'{intent.where}: [{intent.id}] no must: line, so nobody can judge an answer'
        count = sum(variants(text) * (5 if kind != 'q' else 1) for kind, text, _ in intent.q)
        if (count < least or len(intent.q) < 10) and (intent.q or intent.id not in targets):
            yield f'{intent.where}: [{intent.id}] {count} questions in {len(intent.q)} lines, {least} in 10 are the least'


def check_clashes(intents, lists, frames, size):
    """Questions that two intents claim: a model could only learn one of the answers. Each intent has random numbers of its
    own, so that a new fact does not change what is found in others."""
    owner, told = {}, set()
    for intent, questions, made in [(i, i.q, i.derived) for i in intents] + [(i, i.lent, True) for i in intents]:
        for text in pool(questions, lists, frames, random.Random(f'{intent.id} {made}'), size):
            key = text.rstrip('?.! ')  # -v and -V are two options
            other, before = owner.setdefault(key, (intent, made))
            # If a generated fact and a written one have the same question, the corpus assigns it to the
            # written one.
            if other is not intent and before == made and (other.id, intent.id) not in told:
                told.add((other.id, intent.id))
                yield f'{intent.where}: [{intent.id}] {key[:60]!r} is a question of [{other.id}] too'


def check_cover(intents, tables):
    """Rows that nothing explains: a row without help text has no generated fact worth learning."""
    told = ' '.join(a for i in intents for a in i.answers)
    for item in tables.commands + tables.settings + tables.options:
        mark = '/' if item.kind == 'command' else '--'
        spelt = r'(?<![\w-])' + re.escape(mark + item.name) + r'(?![\w-])'
        if not item.help.strip():
            yield f'{item.where}: {mark}{item.name} has no help text'
        elif not re.search(spelt, told):
            yield f'{item.where}: no fact covers {mark}{item.name}'
    for item in tables.keys:
        for name in item.name.split() if item.help else []:
            written = name.replace('^', ' Ctrl-').strip().replace('\\', 'backslash ')
            if written not in told:
                yield f'{item.where}: no fact covers the key {written}'


_RANGE = re.compile(r'(?<![\w.])(-?[\d.]+) to (-?\d[\d.]*\d|-?\d)(?![\w])')


def _said_default(item):
    """The first word of "(default auto: one per CPU)"; sizes without their unit, as answers may write 200 MB."""
    m = re.search(r'\(default:? ([^\s;:)]+)', item.help)
    return re.sub(r'^(\d+)[KMG]$', r'\1', m.group(1)) if m else ''


def check_numbers(intents, tables):
    """Defaults and ranges in written facts that answer for a setting or an option: those of its help text."""
    rows = {'--' + item.name: item for item in tables.settings + tables.options}
    for intent in intents:
        items = [rows[word] for word in intent.covers if word in rows and not intent.derived]
        text = ' '.join(intent.answers)
        for item in items[:1]:  # further rows may be told in few words
            default = _said_default(item)
            said = re.search(r'\bdefault\b', text)
            if said and default and not re.search(r'(?<![\w.])' + re.escape(default) + r'(?![\w]|\.\d)', text):
                yield f'{intent.where}: [{intent.id}] names a default of --{item.name}, but not {default} ({item.where})'
        ranges = {m for item in items for m in _RANGE.findall(item.help)}
        for low, high in _RANGE.findall(text) if ranges else ():
            if (low, high) not in ranges:
                yield f'{intent.where}: [{intent.id}] {low} to {high} is not a range of {", ".join(intent.covers)}'


def notes(intents, tables):
    """Rows that only their generated fact explains: not wrong, but worth a look after a command was added."""
    told = ' '.join(a for i in intents if not i.derived for a in i.answers)
    for item in tables.commands + tables.settings + tables.options:
        mark = '/' if item.kind == 'command' else '--'
        names = [mark + item.name] + ['/' + n for n in [item.name, *item.aliases] if item.kind == 'setting']
        if not any(re.search(re.escape(name) + r'(?![\w-])', told) for name in names):
            yield f'{item.where}: {mark}{item.name} has only its generated fact'
