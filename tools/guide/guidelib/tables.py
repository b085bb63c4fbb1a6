# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program really has: commands, settings, options, keys, templates, model families, weight formats.

Files are found by what they hold, not by name: a new program or table is read without a change here.
"""
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .ctables import Raw, arrays


@dataclass
class Item:
    """One row of a table. kind: command, setting, option (of program) or key."""
    kind: str
    name: str
    aliases: list
    arg: str
    help: str
    where: str  # FILE:LINE
    program: str = ''
    short: str = ''
    flags: str = ''
    low: float = 0
    high: float = 0
    words: list = field(default_factory=list)  # values that are words


def _list(text):
    return [word for word in (text or '').split(',') if word]


def _char(raw):
    m = re.fullmatch(r"'(.)'", str(raw))
    return m.group(1) if m else ''


def _number(raw):
    try:
        return float(raw)
    except (TypeError, ValueError):
        return 0.0


class Tables:
    def __init__(self, root):
        self.root = Path(root)
        self.commands, self.settings, self.options, self.keys = [], [], [], []
        self.archs, self.formats = [], []
        for path in [*sorted(self.root.glob('src/**/*.c')), *sorted(self.root.glob('ui/*.c')),
                     *sorted(self.root.glob('get/*.c'))]:
            self._read(path)
        formats = self.root / 'kernels/formats.h'  # X(a, q4_0, Q4_0, 2, ...): those of GGUF files
        if formats.exists():
            self.formats = re.findall(r'^ +X\(a, \w+, (\w+), (?!QK_GGML_QSF)', formats.read_text(encoding='utf-8'), re.MULTILINE)
        self.templates = sorted(p.stem for p in self.root.glob('templates/*.jinja'))
        configure = self.root / 'configure'
        self.build_options = set(re.findall(r'--[a-z][a-z0-9-]+', configure.read_text())) if configure.exists() else set()
        self._word_values()
        if not (self.commands and self.settings and self.options and self.keys and self.archs):
            raise ValueError(f'{self.root}: the tables of commands, settings, options, keys or families were not found')

    def _read(self, path):
        text = path.read_text(encoding='utf-8')
        at = path.relative_to(self.root)
        if 'UiCommand' in text:
            self._commands(text, at)
        if 'Row rows' in text and 'QSFSetting' in text:
            self._settings(text, at)
        if 'QSFCliOption' in text:
            self._options(text, at)
        if 'UiBinding' in text:
            self._keys(text, at)
        if 'QsfFamily table' in text:  # rows are macros: DENSE("llama", ...), or { "gemma4", ... }
            self.archs += re.findall(r'^    (?:[A-Z]+\(|\{ )"([^"]+)"', text, re.MULTILINE)

    def _commands(self, text, at):
        for row in (r for table in arrays(text, 'UiCommand') for r in table):
            self.commands.append(Item('command', row[0], _list(row[1]), row[2] or '', row[3] or '', f'{at}:{row.line}'))

    def _settings(self, text, at):
        for outer in (r for table in arrays(text, 'Row') for r in table):
            row = outer[0]
            self.settings.append(Item('setting', row[0], _list(row[1]), row[3] or '', row[5] or '',
                                      f'{at}:{outer.line}', short=_char(row[2]), flags=str(row[4]).split()[0],
                                      low=_number(row[6]), high=_number(row[7])))

    def _options(self, text, at):
        m = re.search(r'\.program\s*=\s*"([^"]+)"', text)
        program = m.group(1) if m else 'every program'
        for row in (r for table in arrays(text, 'QSFCliOption') for r in table):
            self.options.append(Item('option', row[0], _list(row[1]), row[3] or '', row[4] or '', f'{at}:{row.line}',
                                     program=program, short=_char(row[2])))

    def _keys(self, text, at):
        for row in (r for table in arrays(text, 'UiBinding') for r in table):
            self.keys.append(Item('key', row[1], [], '', row[2] or '', f'{at}:{row.line}'))

    def _word_values(self):
        """The words that settings take, of the table of completions: "auto f16 if it fits|f32|f16"."""
        for path in sorted([*self.root.glob('src/cli/*.c'), *self.root.glob('ui/*.c')]):
            for m in re.finditer(r'\{ "([a-z-]+)",\s*((?:"[^"]*"\s*)+)\}', path.read_text(encoding='utf-8')):
                values = [value.split(' ')[0] for value in ''.join(re.findall(r'"([^"]*)"', m.group(2))).split('|')]
                for item in self.settings:
                    if item.name == m.group(1) and '|' in m.group(2) and item.arg not in ('N', 'F', 'SIZE'):
                        item.words = [word for word in values if re.fullmatch(r'[a-z][a-z0-9]*', word)]
        for item in self.settings:
            if item.name == 'template':
                item.words = [*self.templates, 'model']

    @cached_property
    def slash_names(self):
        """All that may stand behind a slash."""
        names = set()
        for item in self.commands + self.settings:
            names.update([item.name, *item.aliases])
        return names

    @cached_property
    def option_names(self):
        names = set()
        for item in self.settings + self.options:
            names.update([item.name, *item.aliases])
        return names

    @cached_property
    def key_names(self):
        """As they are written in the table and its help: F5, ^C, Alt-Enter, PgUp."""
        names = set()
        for item in self.keys:
            names.update(item.name.split())
            names.update(re.findall(r'\^(?:[A-Z]\b|\w+)', item.help))
        return names

    def has(self, what):
        """Is this feature there? /command, --option, arch:NAME or a path of the source tree."""
        if what.startswith('--'):
            return what[2:] in self.option_names
        if what.startswith('/'):
            return what[1:] in self.slash_names
        if what.startswith('arch:'):
            return what[5:] in self.archs
        return (self.root / what).exists()

    def constants(self):
        """What facts may quote with @NAME@, so that lists in answers follow the sources."""
        shown = 13  # more than that nobody wants to read
        formats = ', '.join(self.formats[:shown]) + f' and {len(self.formats) - shown} others'
        return {'templates': ', '.join(self.templates), 'formats': formats,
                'architectures': str(len(self.archs))}


__all__ = ['Item', 'Raw', 'Tables']
