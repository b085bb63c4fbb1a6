# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts made from the tables alone: what every command, option, setting and key does, in the words of its own help
text. A new row is learnt by retraining only. `covers:` in a hand-written fact takes the place of one of these, and its questions.

What people ask stands in lists.txt: `ask every-KIND:` is for all rows of a kind (@ is the name), `ask SETTING:` for a value
of one, `ask ID:` for one intent of those here, and `say` for what people call a row (`say SETTING:`, `say key-ID:`)."""
import re

from .facts import FactError, Intent

_NUMBERS = ('N', 'F', 'SIZE')
_RANGE = re.compile(r'\d to \d')  # in a help text: allowed values of the setting
_WHEN = {
    'LIVE': '`/{}` acts on the next token, even in the middle of an answer.',
    'REPLAN': '`/{}` acts before the next token, in the middle of an answer too, and the words stay the same.',
    'CONVERT': '`/{}` acts before the next token, in the middle of an answer too; the words may differ from then on.',
    'RELOAD': '`/{}` loads the model anew, so it waits for the end of the answer; the conversation is kept.',
}


def short_command(item):
    """The shortest way to type a setting: an alias that begins its name (/temp), where there is one."""
    for alias in item.aliases:
        if len(alias) >= 4 and item.name.startswith(alias):
            return alias
    return item.name


def _ask(patterns, name, item):
    return [('q', p.replace('@', name), item.where) for p in patterns]


def _choice(words):
    return '{' + '|'.join(words) + '}'


def _sentence(text):
    return text if text.endswith('.') else text + '.'


def _command(item, asks):
    intent = Intent(f'command-{item.name.rstrip("!")}', item.where, derived=True, weight=0.8, rows=['/' + item.name])
    form = f'`/{item.name} {item.arg}`' if item.arg else f'`/{item.name}`'
    also = ', '.join(f'`/{a}`' for a in item.aliases if a.rstrip('!') != item.name)
    intent.answers = [_sentence(f'{form}: {item.help}') + (f' {also} {"do" if ", " in also else "does"} the same.' if also else '')]
    intent.must = [['/' + item.name]]
    intent.q = _ask(asks['every-command'], item.name, item)
    for alias in item.aliases:
        intent.q += _ask(asks['every-alias'], alias, item)
    clause = re.split(r'[;:(]', item.help)[0].strip()
    if len(clause) > 8:
        intent.q += [('q', f'{{which command is|is there a command|command}} for this: {clause}', item.where)]
    return intent


def _spellings(item):
    """--name, without typing every alias as often as the name itself."""
    words = ['--' + item.name, '--' + item.name, *('--' + a for a in item.aliases)]
    if item.short:
        words.append('-' + item.short)
    return _choice(words)


def _option(name, items, asks):
    """One option, which several programs may have."""
    first = items[0]
    intent = Intent(f'option-{name}', first.where, derived=True, weight=0.7, rows=['--' + name])
    form = f'`--{name} {first.arg}`' if first.arg else f'`--{name}`'
    if len({i.help for i in items}) == 1:
        programs = ' and '.join(i.program for i in items)
        intent.answers = [_sentence(f'{form} of {programs}: {first.help}')]
    else:
        intent.answers = [f'{form}, in ' + ' In '.join(_sentence(f'{i.program}: {i.help}') for i in items)]
    if first.short:
        intent.answers[0] += f' Short: `-{first.short}`.'
    intent.must = [['--' + name]]
    intent.q = _ask(asks['every-option'] + asks['every-flag'], _spellings(first), first) + _ask_short(first, asks)
    return intent


def _ask_short(item, asks):
    """What -n does, in the program that has it: short options are asked about more often than the long ones."""
    if not item.short:
        return []
    spoken = _choice([f'-{item.short} of {item.program}', f'-{item.short} in {item.program}', f'-{item.short} with {item.program}',
                      f'{item.program} -{item.short}', f'-{item.short}', f'-{item.short}'])
    return _ask(asks['every-short'], spoken if item.program[:5] != 'every' else f'-{item.short}', item)


def _setting_forms(item):
    slash = f'/{_set_command(item)}' + (f' {item.arg}' if item.arg else ' on')
    option = f'--{item.name}' + (f' {item.arg}' if item.arg else '')
    return slash, option


def _setting(item, says, asks, commands):
    slash, option = _setting_forms(item)
    intent = Intent(f'setting-{item.name}', item.where, derived=True, weight=0.9, rows=['--' + item.name])
    # If a command has the same name, it is the one meant by the slash.
    inside = '' if item.name in commands else f' In the chat: `{slash}`.'
    short = f' Short: `-{item.short}`.' if item.short else ''
    intent.answers = [_sentence(f'`{option}`: ' + re.sub(r'\(default (?=[^)]*\))', '(the default is ', item.help)) + short + inside]
    intent.must = [['--' + item.name, '/' + short_command(item), '/' + _set_command(item)]]
    intent.q = _ask(asks['every-option'], _spellings(item), item)
    names = _choice([item.name, item.name, *item.aliases])
    if item.name not in commands:
        intent.q += _ask(asks['every-setting'], names, item)
    if _RANGE.search(item.help):
        intent.q += _ask(asks['every-range'], names, item)
    spoken = _choice([item.name, item.name.replace('-', ' '), *says.get(item.name, [])])
    made = [intent, _set(item, spoken, asks), _when(item, spoken, asks)]
    default = re.search(r'\(default ([^;)]+)', item.help)
    if default:
        made.append(_default(item, spoken, default.group(1), asks))
    for one in made[:2]:
        one.then += [(f'when-{item.name}', p, item.where) for p in (
            'when does {that|it} take effect', 'does that need a restart', 'can i do that {during|in the middle of} an answer',
            'and while an answer is being written', 'do i have to reload for that', 'does it act at once')]
        if default:
            one.then += [(f'default-{item.name}', p, item.where) for p in (
                "what is the default", "what's the default of that", 'and by default', 'which value is normal',
                'how do i get back to the default', 'and how do i reset it', 'and the default value')]
    return made


def _set(item, spoken, asks):
    intent = Intent(f'set-{item.name}', item.where, derived=True, weight=1.6)
    value = ' $value' if item.arg or item.words else ''
    option = f'--{item.name}' + (value if item.arg else '')
    intent.answers = [f'Type `/{_set_command(item)}{value}`.']
    intent.must = [[f'/{_set_command(item)}{value}', f'/set {item.name}{value}']]
    if item.arg:  # a switch without a value can only be turned on
        intent.answers[0] += f' When you start the program: `{option}`.'
        intent.must[0].append(option)
    # Typical wordings count as much as the patterns that fit any setting.
    fitting = asks['every-set'] + asks['every-set-number' if item.arg in _NUMBERS else 'every-set-word']
    intent.q = _ask(fitting, spoken, item) + 2 * [('q', p, item.where) for p in asks.get(item.name, [])]
    return intent


def _set_command(item):
    """The command people type for a setting: /budget is shorter than /ram-budget and in /help."""
    return {'ram-budget': 'budget'}.get(item.name, short_command(item))


def _default(item, spoken, value, asks):
    intent = Intent(f'default-{item.name}', item.where, derived=True, weight=0.7)
    typed = value.split(':')[0]
    # "... or auto: one per CPU (default auto)": the explanation of the word is clearer than the word.
    means = re.search(r'\b' + re.escape(typed) + r': ([^(;]+?) *\(default', item.help)
    if means:
        value = f'{typed}: {means.group(1)}'
    intent.answers = [f'The default of `{item.name}` is {value}. To go back to it: `/{_set_command(item)} {typed}`.']
    intent.must = [[f'/{_set_command(item)} {typed}', f'is {typed}']]
    intent.q = _ask(asks['every-default'] + (asks['every-default-number'] if item.arg in _NUMBERS else []), spoken, item)
    if typed != 'random':  # the way back to a random seed is a written fact
        intent.q += _ask(asks['every-reset'], spoken, item)
    return intent


def _when(item, spoken, asks):
    intent = Intent(f'when-{item.name}', item.where, derived=True, weight=0.5)
    intent.answers = [_WHEN[item.flags].format(_set_command(item))]
    intent.must = [['/' + _set_command(item)]]
    intent.q = _ask(asks['every-when'] + (asks['every-when-reload'] if item.flags == 'RELOAD' else []), spoken, item)
    return intent


_LONG = {  # as people write keys; duplicates are the most common ones
    'Enter': ['Enter', 'enter', 'enter', 'return', 'the return', 'Return', 'enter/return'],
    'Tab': ['Tab', 'tab', 'tab', 'TAB', 'tabulator', 'the tab'],
    'Esc': ['Esc', 'esc', 'escape', 'escape', 'ESC', 'the escape', 'esc/escape'],
    'Up': ['Up', 'up arrow', 'arrow up', 'cursor up', 'the up arrow', 'the arrow that points up'],
    'Down': ['Down', 'down arrow', 'arrow down', 'cursor down', 'the down arrow', 'the arrow that points down'],
    'PgUp': ['PgUp', 'page up', 'page up', 'pgup', 'pg up', 'page-up', 'pageup', 'the page up'],
    'PgDn': ['PgDn', 'page down', 'page down', 'pgdn', 'pg dn', 'page-down', 'pagedown', 'the page down'],
    '<': ['<', 'less than', 'the < sign', 'shift and comma'],
    '>': ['>', 'greater than', 'the > sign', 'shift and dot'],
}


def _control(letter):
    """^C, in all the ways that people write it."""
    k = letter.lower()
    return [f'Ctrl-{letter}', f'ctrl-{k}', f'ctrl-{k}', f'ctrl {k}', f'ctrl+{k}', f'control {k}', f'control-{k}', f'control+{k}',
            f'^{letter}', f'ctrl and {k}', f'control and {k}', f'control plus {k}', f'ctl {k}', f'strg {k}', f'strg+{k}',
            f'c-{k}', f'the letter {k} with control', f'{k} with ctrl held down']


def _alt(key):
    """Alt-Up: alt+up, alt up arrow, meta up ..."""
    words = [word for word in _LONG.get(key, [key.lower()]) if word == word.lower() and not word.startswith('the ')]
    plain = key.lower()
    return [f'Alt-{key}', f'alt-{plain}', f'alt-{plain}', f'alt+{plain}', f'alt {plain}', f'alt and {plain}', f'meta {plain}',
            f'option {plain}', *(f'alt {word}' for word in words), *(f'alt and {word}' for word in words)]


def key_spoken(name):
    """How people write a key: ^C is {Ctrl-C|ctrl c|control-c|^C|...}."""
    if name.startswith('^'):
        return _choice(_control(name[1:]))
    if name.startswith('\\'):
        key = name[1:].lower()
        return _choice([f'backslash {key}', f'a backslash before {key}', f'backslash and then {key}', f'a backslash and {key}',
                        f'backslash plus {key}', f'{key} behind a backslash'])
    if name.startswith('Alt-'):
        return _choice(_alt(name[4:]))
    return _choice(_LONG.get(name, [name, name.lower()]))


def key_written(text):
    """As answers write keys: ^C is Ctrl-C."""
    return re.sub(r'\^([A-Z])', r'Ctrl-\1', text).replace('\\', 'backslash ')


def _key(item, says, asks):
    names = item.name.split()
    # The same key with Shift goes the other way: questions know the fact by the key alone.
    own = ' '.join(name for name in names if name != f'Shift-{names[0]}')
    intent = Intent('key-' + re.sub(r'[^a-z0-9]+', '-', own.lower().replace('<', 'first').replace('>', 'last')).strip('-'),
                    item.where, derived=True, weight=0.5, rows=names)
    intent.answers = [_sentence(f'{key_written(", ".join(names))}: {key_written(item.help)}')]
    intent.must = [[key_written(names[0])]]
    intent.q = _ask(asks['every-key'], _choice([*map(key_spoken, names), *says.get(intent.id, [])]), item)
    intent.q += [('q', f'which key is for this: {key_written(re.split(r"[;:(]", item.help)[0]).strip()}', item.where)]
    return intent


def derive(tables, says, asks):
    """All generated facts."""
    commands = {c.name for c in tables.commands}
    made = [_command(c, asks) for c in tables.commands]
    made += [i for s in tables.settings for i in _setting(s, says, asks, commands)]
    settings = {s.name for s in tables.settings}  # the program's own option means the same
    names = list(dict.fromkeys(o.name for o in tables.options if o.name not in settings))
    made += [_option(n, [o for o in tables.options if o.name == n], asks) for n in names]
    made += [_key(k, says, asks) for k in tables.keys if k.help]
    unknown = {k for k in asks if not k.startswith('every-')} - {i.id for i in made} - {s.name for s in tables.settings}
    if unknown:
        raise FactError(f'lists.txt: ask {min(unknown)}: no such setting or generated fact')
    for intent in made:
        intent.q += [('q', p, intent.where) for p in asks.get(intent.id, [])]
    return made


def settle(written, made):
    """The generated facts that stay. The others lend what people ask to the written fact that covers them: two facts for one
    thing are two answers to the same questions, of which a model can learn neither."""
    owner, used, moved, left = {}, set(), {}, []
    for fact, word in [(i, word) for i in written for word in i.covers]:
        if owner.setdefault(word, fact) is not fact:
            raise FactError(f'{fact.where}: [{fact.id}] covers {word}, as [{owner[word].id}] does')
    for fact in made:
        names = [name for name in [fact.id, *fact.rows] if name in owner]
        used.update(names)
        if not names:
            left.append(fact)
            continue
        to = owner[names[0]]
        to.lent += fact.q
        to.then += [t for t in fact.then if t[0] != to.id]
        to.weight += fact.weight / 2
        moved[fact.id] = to.id
    for word in owner.keys() - used:
        raise FactError(f'{owner[word].where}: [{owner[word].id}] covers {word}, which no generated fact explains')
    for fact in written + left:
        fact.then = [(moved.get(target, target), text, where) for target, text, where in fact.then if moved.get(target) != fact.id]
    return left
