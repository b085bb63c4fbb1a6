# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that a user may write and an answer repeats: many and varied, so that copying is learnt, not a list."""

_DIRS = ['', '', '', '~/', '~/models/', '~/Downloads/', '~/llm/', '/home/anna/', '/home/tom/models/', '/data/',
         '/mnt/disk/models/', '/srv/gguf/', '../', './', '/opt/models/', '/media/usb/', '~/Documents/ai/', 'models/']
_FAMILIES = ['llama', 'tinyllama', 'llama-2', 'llama-3', 'llama3.2', 'mistral', 'vicuna', 'zephyr', 'hermes', 'orca',
             'model', 'story', 'smol', 'open', 'yi', 'solar', 'nous', 'dolphin', 'wizard', 'stories']
_SIZES = ['', '-1b', '-3b', '-7b', '-8b', '-13b', '-1.1b', '-135m', '-360m', '-0.5b', '-70b']
_KINDS = ['', '-chat', '-instruct', '-it', '-base', '-v0.3', '-v2']
_QUANTS = ['', '-q4_0', '.Q4_K_M', '-q8_0', '-Q6_K', '.q5_k_m', '-f16', '.Q2_K', '-iq4_xs', '-q4_k_s']
_SYLLABLES = ['ba', 'be', 'co', 'da', 'du', 'fe', 'ga', 'ho', 'ji', 'ka', 'lo', 'lu', 'ma', 'mi', 'na', 'no', 'pe', 'qua',
              'ra', 'ri', 'sa', 'so', 'ta', 'ti', 'tor', 'ul', 'va', 'ven', 'wi', 'xan', 'yo', 'zu']
_WORDS = ['work', 'notes', 'recipes', 'holiday', 'ideas', 'project', 'test', 'dragons', 'letters', 'physics', 'monday',
          'garden', 'travel', 'draft', 'story', 'budget', 'music', 'french', 'exam', 'log', 'homework', 'novel', 'chat',
          'talk', 'plan', 'trip', 'thesis', 'cats', 'report', 'diary', 'kitchen', 'paris', 'birthday', 'meeting']
_PEOPLE = ['Anna', 'Tom', 'Maria', 'Ben', 'Lena', 'Paul', 'Sofia', 'Jack', 'Emma', 'Noah', 'Olga', 'Karim', 'Mei', 'Raj',
           'Ines', 'Peter', 'Julia', 'Omar', 'Nina', 'Leo', 'Sam', 'Alex', 'Kim', 'Eva', 'Max', 'Ivan', 'Zoe', 'Lars',
           'Aisha', 'Bruno', 'Carla', 'Dmitri', 'Elif', 'Fatima', 'George', 'Hanna', 'Igor', 'Jonas', 'Keiko', 'Luis',
           'Mohammed', 'Nadia', 'Oscar', 'Priya', 'Quentin', 'Rosa', 'Stefan', 'Tanya', 'Umberto', 'Vera', 'Walter', 'Ximena',
           'Yusuf', 'Zofia', 'Agnes', 'Bjorn', 'Chloe', 'Diego', 'Esther', 'Felix', 'Grace', 'Henry', 'Isabel', 'James',
           'Katrin', 'Liam', 'Monika', 'Nils', 'Oliver', 'Petra', 'Rahel', 'Simon', 'Theo', 'Ursula', 'Victor', 'Wendy']
_SYSTEMS = ['You are a pirate', 'Answer briefly', 'You are a helpful teacher', 'Reply in French', 'Be polite',
            'You are a cook', 'Answer in one sentence', 'Talk like a robot', 'You are a strict editor', 'Be concise',
            'Only answer in JSON', 'You are Shakespeare', 'Explain everything simply', 'You are a travel guide',
            'Never use lists', 'Answer with yes or no', 'You are a chess coach', 'Write like a child', 'Be funny']
_KINDS_OF = ['friendly', 'cheerful', 'wise', 'old', 'patient', 'lazy', 'rude', 'famous', 'tired', 'clever', 'silent', 'medieval',
             'nervous', 'kind', 'modern', 'sad', 'French', 'poetic', 'young', 'careful', 'bored', 'proud', 'strict', 'very short']
_ROLES = ['doctor', 'poet', 'lawyer', 'detective', 'gardener', 'butler', 'knight', 'wizard', 'nurse', 'translator', 'farmer',
          'critic', 'journalist', 'philosopher', 'sailor', 'mechanic', 'professor', 'clown', 'dragon', 'ghost', 'historian',
          'programmer', 'accountant', 'grandfather', 'judge', 'king', 'tutor', 'barber', 'monk', 'queen', 'spy', 'vampire']
_ORDERS = ['Answer', 'Reply', 'Write', 'Speak', 'Talk', 'Respond', 'Explain', 'Think', 'Always answer', 'Never reply', 'Always write']
_WAYS = ['slowly', 'in German', 'in verse', 'like an expert', 'in two words', 'with a joke', 'without adjectives', 'in capital letters',
         'as a table', 'step by step', 'like my mother', 'in plain words', 'with examples', 'in old English', 'as short as possible',
         'in Italian', 'with care', 'for children', 'in bullet points', 'with a question']

# Words that look like a command or option but are not; an existing one is drawn again.
_FAKES = ['download', 'pull', 'gpu', 'theme', 'copy', 'delete', 'config', 'search', 'image', 'rename', 'login', 'history',
          'edit', 'print', 'pause', 'restart', 'reset', 'lang', 'voice', 'speed', 'quality', 'tools', 'web', 'file',
          'attach', 'plugin', 'server', 'port', 'cache', 'think', 'summary', 'translate', 'persona', 'role', 'memory',
          'remember', 'forget', 'branch', 'fork', 'mirostat', 'typical', 'grammar', 'lora', 'gpu-layers', 'n-gpu-layers',
          'mlock', 'numa', 'color-scheme', 'font', 'mouse', 'sound', 'log', 'debug', 'update', 'upgrade', 'install', 'cd',
          'ls', 'pwd', 'sudo', 'mode', 'chat', 'ask', 'guide', 'tutorial', 'settings', 'options', 'models', 'abort', 'halt',
          'resume', 'merge', 'rate', 'like', 'share', 'upload', 'screenshot', 'zoom', 'lock', 'encrypt', 'password', 'user',
          'stream', 'fast', 'turbo', 'boost', 'optimize', 'threads-batch', 'rope-scale', 'flash-attn', 'draft', 'embed']


class Words:
    """The words that names are made of; the corpus adds those of its questions. A name has to be copied, not known, and
    from some dozens of them a network learns to guess."""
    known = _WORDS


def _letters(rng):
    """A name that is no word: abbreviations, codes, other languages."""
    if rng.random() < 0.5:
        return ''.join(rng.choice('bcdfghjklmnprstvwz') + rng.choice('aeiou') for _ in range(rng.randint(1, 3))) + rng.choice(['', 'n', 's', 'x'])
    return ''.join(rng.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(rng.randint(2, 6)))


def _word(rng):
    pick = rng.random()
    if pick < 0.2:
        return rng.choice(_WORDS)
    if pick < 0.65:
        return rng.choice(Words.known)
    if pick < 0.8:
        return ''.join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3)))
    return _letters(rng)


def _directory(rng):
    if rng.random() < 0.7:
        return rng.choice(_DIRS)
    return rng.choice(['~/', '/mnt/', '/home/', '/', './', '']) + _word(rng) + '/' + (_word(rng) + '/' if rng.random() < 0.3 else '')


def _file(rng):
    name = rng.choice(_FAMILIES) if rng.random() < 0.4 else _word(rng)
    if rng.random() < 0.15:
        name += rng.choice('-_') + _word(rng)
    return _directory(rng) + name + rng.choice(_SIZES) + rng.choice(_KINDS) + rng.choice(_QUANTS) + '.gguf'


def _name(rng):
    pick = rng.random()
    if pick < 0.5:
        return _word(rng)
    if pick < 0.55:
        return _word(rng).title()
    if pick < 0.75:
        return _word(rng) + rng.choice('--_.') + _word(rng)
    return _word(rng) + rng.choice(['', '', '-', '_']) + str(rng.randint(1, 99) if rng.random() < 0.8 else rng.randint(2019, 2030))


def _person(rng):
    pick = rng.random()
    name = rng.choice(_PEOPLE)
    if pick > 0.6:
        name = (''.join(rng.choice(_SYLLABLES) for _ in range(2)) if pick < 0.75 else _word(rng)).title()
    return name.lower() if rng.random() < 0.3 else name


def _persona(rng):
    """The text of a system prompt."""
    pick = rng.random()
    if pick < 0.25:
        return rng.choice(_SYSTEMS)
    if pick < 0.6:
        who = rng.choice(_ROLES) if rng.random() < 0.6 else _word(rng)
        who = rng.choice(_KINDS_OF) + ' ' + who if rng.random() < 0.6 else who
        return rng.choice(['You are', 'You are', 'Be', 'Act as', 'Pretend to be', 'you are']) + (' an ' if who[0] in 'aeiou' else ' a ') + who
    if pick < 0.85:
        return rng.choice(_ORDERS) + ' ' + rng.choice(_WAYS)
    return ' '.join(rng.choice(Words.known) for _ in range(rng.randint(2, 5))).capitalize()


def _other(rng):
    """The name of an assistant that does not exist."""
    name = ''.join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3)))
    name = rng.choice(['{}', '{}', 'chat{}', '{}bot', '{} ai', '{}-4', '{} 3.5', '{} pro', 'open{}', '{}lm', 'the {} assistant'])\
        .format(name)
    return name.title() if rng.random() < 0.5 else name


def _size(rng):
    pick = rng.random()
    if pick < 0.4:
        return str(rng.choice([100, 150, 250, 300, 400, 500, 512, 600, 700, 800, 900, 1000, 1024, 2000, 2048, 4000,
                               rng.randint(60, 9000)]))
    if pick < 0.6:
        return f'{rng.randint(60, 990)}M'
    if pick < 0.9:
        return f'{rng.choice(["1", "1.5", "2", "2.5", "3", "3.5", "4", "5", "6", "8", "10", "12", "16"])}G'
    return f'{rng.randint(2, 18) * 5}%'


def _decimal(rng, low, high):
    top = min(high, 2.0)
    bottom = max(low, 0.05)
    return f'{rng.uniform(bottom, top):.{rng.choice([1, 1, 2])}f}'


def _whole(rng, low, high):
    top = min(high or 2 ** 62, 9999)
    if rng.random() < 0.3 and top >= 512:
        return str(2 ** rng.randint(6, 13))
    digits = rng.randint(1, len(str(int(top))))
    return str(rng.randint(max(int(low), 1), max(1, min(int(top), 10 ** digits))))


MAKERS = {
    'file': _file,
    'name': _name,
    'word': _word,
    'out': lambda rng: (rng.choice(['', '', '~/', '/tmp/']) if rng.random() < 0.8 else _directory(rng)) + _name(rng) +
    rng.choice(['.md', '.txt', '.json', '.md']),
    'size': _size,
    'n': lambda rng: str(rng.randint(2, 12)),
    'mb': lambda rng: str(rng.choice([100, 150, 200, 250, 300, 400, 500, 512, 600, 700, 750, 800, 900, rng.randint(50, 990)])),
    'gb': lambda rng: str(rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128])),
    'billion': lambda rng: str(rng.choice([1, 2, 3, 4, 7, 8, 9, 13, 14, 30, 34, 65, 70])),
    'person': _person,
    'other': _other,
    'persona': _persona,
    'fake': lambda rng: rng.choice(_FAKES) if rng.random() < 0.7 else ''.join(rng.choice(_SYLLABLES) for _ in range(3)),
    'a': lambda rng: str(rng.randint(2, 999)),
    'b': lambda rng: str(rng.randint(2, 99)),
    'gibberish': lambda rng: ' '.join(''.join(rng.choice('asdfghjklqwertzuiopxcvbnm') for _ in range(rng.randint(3, 9)))
                                      for _ in range(rng.randint(1, 3))),
}

COPIED = {'file', 'name', 'word', 'out', 'person', 'persona', 'other', 'fake'}  # cannot be listed completely


def setting_value(item, rng):
    """A value that the setting takes."""
    if item.arg == 'SIZE':
        return _size(rng) if item.name != 'pin' else _size(rng).replace('%', 'M')
    if item.arg == 'F':
        return _decimal(rng, item.low, item.high)
    if item.arg == 'N':
        return _whole(rng, item.low, item.high)
    return rng.choice(item.words) if item.words else _name(rng)
