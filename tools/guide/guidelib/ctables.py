# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads initialised arrays out of C sources.

The tables of commands, settings, options and keys are plain brace lists of strings, numbers and names. Reading
them needs no compiler and no built program, and every row keeps the line it stands on for messages.
"""
import re

_TOKEN = re.compile(r'''
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<char>'(?:\\.|[^'\\])*')
  | (?P<word>[A-Za-z0-9_.+-]+)
  | (?P<mark>.)
''', re.X | re.S)


class Raw(str):
    """A field that is no string literal: a number, a name, an expression."""


class Row(list):
    """The fields of one brace list, and the line of its opening brace."""

    def __init__(self, line):
        super().__init__()
        self.line = line


def _tokens(text, pos):
    line = text.count('\n', 0, pos) + 1
    while pos < len(text):
        m = _TOKEN.match(text, pos)
        if m.lastgroup != 'skip':
            yield m.lastgroup, m.group(), line
        line += m.group().count('\n')
        pos = m.end()


_ESCAPES = {'n': '\n', 't': '\t', 'r': '\r', '"': '"', '\\': '\\', "'": "'"}


def _unquote(literal):
    return re.sub(r'\\(.)', lambda m: _ESCAPES.get(m.group(1), m.group(0)), literal[1:-1], flags=re.S)


def _field(parts):
    """Adjacent string literals are one string; NULL is None."""
    if parts and all(kind == 'string' for kind, _ in parts):
        return ''.join(_unquote(text) for _, text in parts)
    text = Raw(' '.join(text for _, text in parts))
    return None if text == 'NULL' else text


def _brace_list(tokens, line):
    """The fields up to the closing brace; tokens stands behind the opening one."""
    row, parts, depth = Row(line), [], 0
    for kind, text, at in tokens:
        if kind == 'mark' and text == '{':
            row.append(_brace_list(tokens, at))
            continue
        if kind == 'mark' and depth == 0 and text in ',}':
            if parts:
                row.append(_field(parts))
                parts = []
            if text == '}':
                return row
            continue
        depth += {'(': 1, ')': -1}.get(text, 0) if kind == 'mark' else 0
        parts.append((kind, text))
    raise ValueError(f'line {line}: the list has no end')


def arrays(text, type_name):
    """Every `TYPE NAME[]... = { ... }` of that type: a list of Rows each."""
    found = []
    for m in re.finditer(r'\b' + type_name + r'\s+\*?(?:const\s+)?\w+\s*(?:\[[^\]]*\])+\s*=\s*\{', text):
        line = text.count('\n', 0, m.end()) + 1
        found.append([r for r in _brace_list(_tokens(text, m.end()), line) if isinstance(r, Row)])
    return found
