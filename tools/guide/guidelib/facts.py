# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads facts/*.txt: what the guide knows, as people edit it. README.md describes the format."""
import re
import tarfile
from dataclasses import dataclass, field


@dataclass
class Intent:
    id: str
    where: str
    answers: list = field(default_factory=list)
    must: list = field(default_factory=list)     # each a list of alternatives
    absent: list = field(default_factory=list)   # the fact holds only while none of these exists
    present: list = field(default_factory=list)  # and only if all of these exist
    covers: list = field(default_factory=list)   # rows of the tables, or generated facts, that this one answers too
    rows: list = field(default_factory=list)     # of a generated fact: the rows it explains, as covers: names them
    weight: float = 1.0
    q: list = field(default_factory=list)        # (kind, text, where): kind q, do or what
    lent: list = field(default_factory=list)     # the same, of generated facts that this one covers
    then: list = field(default_factory=list)     # (target, text, where)
    derived: bool = False


class FactError(Exception):
    """The message begins with FILE:LINE."""


_HEAD = re.compile(r'\[([a-z0-9][a-z0-9-]*)\]$')
_FIELD = re.compile(r'(a|must|absent|present|covers|weight|q|do|what|then [a-z0-9-]+):\s*(.*)$')


def _alternatives(text):
    return [word.strip() for word in text.split(' | ')]


def _store(intent, key, text, where):
    if key == 'a':
        intent.answers.append(text)
    elif key == 'must':
        intent.must.append(_alternatives(text))
    elif key in ('absent', 'present', 'covers'):
        getattr(intent, key).extend(text.split())
    elif key == 'weight':
        try:
            intent.weight = float(text)
        except ValueError:
            raise FactError(f'{where}: weight is a number, not {text!r}') from None
    elif key in ('q', 'do', 'what'):
        intent.q.append((key, text, where))
    else:
        intent.then.append((key[5:], text, where))


class _Reader:
    """Lines of one file; an indented line continues the field above it: one more question, or more of the answer."""

    def __init__(self, name):
        self.name, self.intents, self.key = name, [], None

    def line(self, text, number):
        where = f'{self.name}:{number}'
        bare = text.strip()
        if not bare or bare.startswith('#'):
            return
        head = _HEAD.match(bare)
        if head and text[0] == '[':
            self.intents.append(Intent(head.group(1), where))
            self.key = None
        elif text[0] == ' ':
            self._more(bare, where)
        else:
            self._field(bare, where)

    def _field(self, text, where):
        m = _FIELD.match(text)
        if not m:
            raise FactError(f'{where}: expected [intent], "field: text" or an indented line, not {text[:40]!r}')
        if not self.intents:
            raise FactError(f'{where}: a field before the first [intent]')
        self.key = m.group(1)
        if m.group(2):
            _store(self.intents[-1], self.key, m.group(2), where)

    def _more(self, text, where):
        if self.key is None:
            raise FactError(f'{where}: an indented line belongs to no field')
        if self.key == 'a' and self.intents[-1].answers:
            self.intents[-1].answers[-1] += ' ' + text
        else:
            _store(self.intents[-1], self.key, text, where)


def _texts(path):
    """Name and text of each file of a directory, or of an archive of one, in the order of their names."""
    if path.is_dir():
        return [(f'{path.name}/{file.name}', file.read_text(encoding='utf-8')) for file in sorted(path.glob('*.txt'))]
    try:
        with tarfile.open(path, 'r:xz') as files:
            return sorted((m.name, files.extractfile(m).read().decode('utf-8')) for m in files if m.isfile())
    except (tarfile.TarError, EOFError, LookupError) as e:
        raise FactError(f'{path.name}: {e}') from None


def _read(path):
    """The intents of all files of a directory or an archive, unchanged."""
    out = []
    for name, lines in _texts(path):
        reader = _Reader(name)
        for number, text in enumerate(lines.splitlines(), 1):
            reader.line(text, number)
        out += reader.intents
    return out


def read_facts(directory):
    """The intents of a directory of facts."""
    intents, seen = _read(directory), {}
    for intent in intents:
        if intent.id in seen:
            raise FactError(f'{intent.where}: [{intent.id}] stands at {seen[intent.id].where} already')
        seen[intent.id] = intent
    return intents


def add_questions(intents, base):
    """Adds to the intents the questions of base/questions/, or of base/questions.tar.xz if that is not unpacked."""
    seen = {intent.id: intent for intent in intents}
    source = next((p for p in (base / 'questions', base / 'questions.tar.xz') if p.exists()), None)
    for more in _read(source) if source else []:
        if more.id not in seen:
            raise FactError(f'{more.where}: no fact [{more.id}]')
        if more.answers or more.must or more.absent or more.present or more.covers:
            raise FactError(f'{more.where}: [{more.id}] only questions belong here; the rest belongs to {seen[more.id].where}')
        seen[more.id].q += more.q
        seen[more.id].then += more.then


def read_lists(path):
    """`list NAME: a|b|c` for <NAME> in questions, `say SETTING: a|b|c` for what people call a setting, and
    `ask SETTING:` for more ways to ask for a value, `frame KIND:` for sentences around do: and what: phrases, ~ in them."""
    lists, says, asks, frames = {}, {}, {}, {'do': [], 'what': []}
    key = None
    for number, text in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        bare = text.strip()
        if not bare or bare.startswith('#'):
            continue
        m = re.match(r'(list|say|ask|frame) ([a-z0-9-]+):\s*(.*)$', text)
        if m:
            key, bare = (m.group(1), m.group(2)), m.group(3)
        elif text[0] != ' ' or key is None:
            raise FactError(f'{path.name}:{number}: expected list NAME:, say SETTING:, ask SETTING:, frame KIND: or an indented line')
        if not bare:
            continue
        if key[0] == 'frame':
            frames[key[1]].append(bare)
        elif key[0] == 'ask':
            asks.setdefault(key[1], []).append(bare)
        else:
            target = lists if key[0] == 'list' else says
            target.setdefault(key[1], []).extend(word.strip() for word in bare.split('|') if word.strip())
    return lists, says, asks, frames
