# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts made from the tables alone: what every command, option, setting and key does, in the words of its own help
text. A new row is learnt by retraining only. `covers:` in a hand-written fact takes the place of one of these."""
import re

from .facts import Intent

_COMMAND_Q = [
    'what does {/@|the /@ command|the @ command|the command /@} do', 'what is /@ {|for|good for}', 'how do i use /@',
    '{explain|describe|tell me about} {/@|the /@ command|the @ command}', '{usage|syntax|meaning|purpose} of /@',
    '{help with|info on|details of|help about} /@', 'when {would|should|do} i use /@', 'what {arguments|parameters} does /@ take',
    'i saw /@ in the help, what is it', '/@ - what {does it do|is that}', 'how does /@ work', 'is there {a|an} /@ command',
    'what happens {if|when} i {type|enter|use} /@', 'can you explain /@', 'what can i do with /@', 'what would /@ do',
]
_OPTION_Q = [
    'what does {@|the @ option|the @ flag|the option @} {do|mean}', 'what is @ {|for|good for}', 'how do i use @',
    '{explain|describe|tell me about} {@|the @ option|the @ switch}', '{usage|syntax|meaning|purpose} of @',
    'what values {does @ take|can @ have}', '{help with|info on|details of} @', 'when {would|should|do} i use @',
    'i saw @ in the help, what is it', '@ - what {does it do|is that}', 'how does @ work', 'is there {a|an} @ option',
    'which program has @', 'what can i do with @', 'command line @ meaning', 'what happens if i {pass|give|add} @',
]
_SETTING_Q = [
    'what does {/@|the @ setting} do', 'what values {does|can} {@|the @ setting} {take|have}', '{range|limits} of the @ setting',
    'explain the @ setting', 'what is the @ setting {|for}', 'how do i use /@', 'what is /@ {|for}', 'what does /set @ {do|change}',
]
_SET_Q = [
    '{set|change|put|switch} {the |}@ to $value', 'how do i {set|change} {the |my |}@ to $value', 'i want {a |}@ {of |}$value',
    'make {the |}@ $value', '@ = $value', 'use {a |}@ {of |}$value', 'can you {set|make} {the |}@ {to |}$value', 'set @ $value',
    'i {want|need} {the |}@ to be $value', '{the |}@ should be $value', 'please give me {a |}@ of $value', '@ $value',
    'which command sets {the |}@ to $value', 'how to get {a |}@ of $value', 'what do i type for {a |}@ of $value',
    'try {a |}@ of $value', 'start with {a |}@ of $value', "let's try @ $value", 'i would like @ $value', 'set my @ to $value',
]
_DEFAULT_Q = [
    'what is the default {@|value of @|for @}', '{default|standard} @', '@ default {value|}', 'what @ {is used|do i get} by default',
    'which @ does it start with', 'what {value does @|does @} have if i change nothing', "what's the normal @",
    'what is @ set to at the start', 'what @ is used when i do not set one',
]
_HIGH_Q = ['how high is @ by default', 'how {many|much} @ {is normal|by default}', 'what is a normal @']
_WHEN_Q = [
    'can i change {the |}@ {while an answer is being written|during an answer|in the middle of an answer|during the chat|on the fly|live}',
    'do i {need|have} to {restart|reload|reload the model} {to change|after changing} {the |}@',
    'when does {a new|a changed|the new} @ {take effect|apply|work|act}', 'does changing {the |}@ {reload the model|need a restart|act at once}',
    'does a change of {the |}@ act {now|immediately|at once}', 'is @ changeable {while it writes|mid-answer|at any time}',
]
_KEY_Q = [
    'what does {@|the @ key|pressing @|key @} do', 'what is {@|the @ key} for', 'what happens {when|if} i press @', '@ key',
    'why would i press @', 'what can i do with @', 'function of {|the key }@', 'explain the @ key', 'is @ used for {something|anything}',
]
_WHEN = {
    'LIVE': '`/{}` acts on the next token, even in the middle of an answer.',
    'REPLAN': '`/{}` acts before the next token, in the middle of an answer too, and the words stay the same.',
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


def _sentence(text):
    return text if text.endswith('.') else text + '.'


def _command(item):
    intent = Intent(f'command-{item.name.rstrip("!")}', item.where, derived=True, weight=0.8)
    form = f'`/{item.name} {item.arg}`' if item.arg else f'`/{item.name}`'
    also = ', '.join(f'`/{a}`' for a in item.aliases if a.rstrip('!') != item.name)
    intent.answers = [_sentence(f'{form}: {item.help}') + (f' {also} {"do" if ", " in also else "does"} the same.' if also else '')]
    intent.must = [['/' + item.name]]
    intent.q = _ask(_COMMAND_Q, item.name, item)
    for alias in item.aliases:
        intent.q += _ask(_COMMAND_Q[:3], alias, item)
    clause = re.split(r'[;:(]', item.help)[0].strip()
    if len(clause) > 8:
        intent.q += [('q', f'{{which command is|is there a command|command}} for this: {clause}', item.where)]
    return intent


def _spellings(item):
    """--name, without typing every alias as often as the name itself."""
    words = ['--' + item.name, '--' + item.name, *('--' + a for a in item.aliases)]
    if item.short:
        words.append('-' + item.short)
    return '{' + '|'.join(words) + '}'


def _option(name, items):
    """One option, which several programs may have."""
    first = items[0]
    intent = Intent(f'option-{name}', first.where, derived=True, weight=0.7)
    form = f'`--{name} {first.arg}`' if first.arg else f'`--{name}`'
    if len({i.help for i in items}) == 1:
        programs = ' and '.join(i.program for i in items)
        intent.answers = [_sentence(f'{form} of {programs}: {first.help}')]
    else:
        intent.answers = [f'{form}, in ' + ' In '.join(_sentence(f'{i.program}: {i.help}') for i in items)]
    if first.short:
        intent.answers[0] += f' Short: `-{first.short}`.'
    intent.must = [['--' + name]]
    intent.q = _ask(_OPTION_Q, _spellings(first), first)
    return intent


def _setting_forms(item):
    slash = f'/{_set_command(item)}' + (f' {item.arg}' if item.arg else ' on')
    option = f'--{item.name}' + (f' {item.arg}' if item.arg else '')
    return slash, option


def _setting(item, says, asks, commands):
    slash, option = _setting_forms(item)
    intent = Intent(f'setting-{item.name}', item.where, derived=True, weight=0.9)
    # Where a command has the same name it is the one that the slash means.
    inside = '' if item.name in commands else f' In the chat: `{slash}`.'
    short = f' Short: `-{item.short}`.' if item.short else ''
    intent.answers = [_sentence(f'`{option}`: {item.help}') + short + inside]
    intent.must = [['--' + item.name, '/' + short_command(item), '/' + _set_command(item)]]
    intent.q = _ask(_OPTION_Q, _spellings(item), item)
    if item.name not in commands:
        intent.q += _ask(_SETTING_Q, '{' + '|'.join([item.name, item.name, *item.aliases]) + '}', item)
    spoken = '{' + '|'.join([item.name, item.name.replace('-', ' '), *says.get(item.name, [])]) + '}'
    made = [intent, _set(item, spoken, asks.get(item.name, [])), _when(item, spoken)]
    default = re.search(r'\(default ([^;)]+)', item.help)
    if default:
        made.append(_default(item, spoken, default.group(1)))
    for one in made[:2]:
        one.then += [(f'when-{item.name}', p, item.where) for p in (
            'when does {that|it} take effect', 'does that need a restart', 'can i do that {during|in the middle of} an answer',
            'and while an answer is being written', 'do i have to reload for that', 'does it act at once')]
        if default:
            one.then += [(f'default-{item.name}', p, item.where) for p in (
                "what is the default", "what's the default of that", 'and by default', 'which value is normal',
                'how do i get back to the default', 'and how do i reset it', 'and the default value')]
    return made


def _set(item, spoken, more):
    intent = Intent(f'set-{item.name}', item.where, derived=True, weight=1.6)
    value = ' $value' if item.arg or item.words else ''
    option = f'--{item.name}' + (value if item.arg else '')
    intent.answers = [f'Type `/{_set_command(item)}{value}`.']
    intent.must = [[f'/{_set_command(item)}{value}', f'/set {item.name}{value}']]
    if item.arg:  # a switch without a value is only there to turn it on
        intent.answers[0] += f' When you start the program: `{option}`.'
        intent.must[0].append(option)
    # People's own ways count as much as the patterns that fit any setting.
    intent.q = _ask(_SET_Q, spoken, item) + 2 * [('q', p, item.where) for p in more]
    return intent


def _set_command(item):
    """The command people type for a setting: /budget is shorter than /ram-budget and in /help."""
    return {'ram-budget': 'budget'}.get(item.name, short_command(item))


def _default(item, spoken, value):
    intent = Intent(f'default-{item.name}', item.where, derived=True, weight=0.7)
    typed = value.split(':')[0]
    # "... or auto: one per CPU (default auto)": what the word stands for says more than the word.
    means = re.search(r'\b' + re.escape(typed) + r': ([^(;]+?) *\(default', item.help)
    if means:
        value = f'{typed}: {means.group(1)}'
    intent.answers = [f'The default of `{item.name}` is {value}. To go back to it: `/{_set_command(item)} {typed}`.']
    intent.must = [[f'/{_set_command(item)} {typed}', f'is {typed}']]
    intent.q = _ask(_DEFAULT_Q + (_HIGH_Q if item.arg in ('N', 'F', 'SIZE') else []), spoken, item)
    return intent


def _when(item, spoken):
    intent = Intent(f'when-{item.name}', item.where, derived=True, weight=0.5)
    intent.answers = [_WHEN[item.flags].format(_set_command(item))]
    intent.must = [['/' + _set_command(item)]]
    intent.q = _ask(_WHEN_Q, spoken, item)
    return intent


def key_spoken(name):
    """How people write a key: ^C is {Ctrl-C|ctrl c|control-c|^C}."""
    if name.startswith('^'):
        k = name[1:]
        return f'{{Ctrl-{k}|ctrl-{k.lower()}|ctrl {k.lower()}|control {k.lower()}|ctrl+{k.lower()}|^{k}}}'
    if name.startswith('\\'):
        return f'{{backslash {name[1:]}|a backslash before {name[1:]}}}'
    long = {'PgUp': 'page up', 'PgDn': 'page down', 'Esc': 'escape', 'Up': 'up arrow', 'Down': 'down arrow'}
    if name in long:
        return f'{{{name}|{long[name]}|{name.lower()}}}'
    if name in ('Alt-<', 'Alt->'):
        return f'{{{name}|alt {name[-1]}|alt+{name[-1]}}}'
    if name.startswith('Alt-'):
        return f'{{{name}|{name.replace("-", "+")}|{name.lower().replace("-", " ")}}}'
    return f'{{{name}|{name.lower()}}}'


def key_written(text):
    """As answers write keys: ^C is Ctrl-C."""
    return re.sub(r'\^([A-Z])', r'Ctrl-\1', text).replace('\\', 'backslash ')


def _key(item):
    names = item.name.split()
    intent = Intent('key-' + re.sub(r'[^a-z0-9]+', '-', item.name.lower().replace('<', 'first').replace('>', 'last')).strip('-'),
                    item.where, derived=True, weight=0.5)
    intent.answers = [_sentence(f'{key_written(", ".join(names))}: {key_written(item.help)}')]
    intent.must = [[key_written(names[0])]]
    for name in names:
        intent.q += _ask(_KEY_Q, key_spoken(name), item)
    intent.q += [('q', f'which key is for this: {key_written(re.split(r"[;:(]", item.help)[0]).strip()}', item.where)]
    return intent


def derive(tables, says, asks, covered):
    """All generated facts; covered: names of rows (/x, --x, key names) that hand-written facts replace."""
    commands = {c.name for c in tables.commands}
    made = [_command(c) for c in tables.commands if '/' + c.name not in covered]
    made += [i for s in tables.settings for i in _setting(s, says, asks, commands)
             if not (i.id.startswith('setting-') and '--' + s.name in covered)]
    names = list(dict.fromkeys(o.name for o in tables.options))
    made += [_option(n, [o for o in tables.options if o.name == n]) for n in names if '--' + n not in covered]
    made += [_key(k) for k in tables.keys if k.help and not set(k.name.split()) & covered]
    return made
