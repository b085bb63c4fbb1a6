# SPDX-License-Identifier: GPL-3.0-or-later
"""How people type: casing, punctuation, spelling of two countries, short words, slips of the fingers."""
import re

_ROWS = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm']
_BRITISH = [('color', 'colour'), ('license', 'licence'), ('behavior', 'behaviour'), ('optimize', 'optimise'),
            ('favorite', 'favourite'), ('customize', 'customise'), ('initialize', 'initialise'),
            ('summarize', 'summarise'), ('tokenize', 'tokenise'), ('dialog ', 'dialogue '), ('canceled', 'cancelled'),
            ('recognize', 'recognise'), ('analyze', 'analyse')]
_SHORT = [("what is", "what's"), ("what is", 'whats'), ('i am', "i'm"), ('i am', 'im'), ('do not', "don't"),
          ("don't", 'dont'), ("can't", 'cant'), ('cannot', "can't"), ('you', 'u'), ('please', 'pls'), ('are', 'r'),
          ('because', 'cause'), ('want to', 'wanna'), ('going to', 'gonna'), ("doesn't", 'doesnt'), ("isn't", 'isnt'),
          ("it's", 'its'), ('how do i', 'how i'), ('with', 'w/'), ('and', '&'), ('the ', ''), ('a ', ''), ('to', '2')]
_BEFORE = ['hey, ', 'hi, ', 'hello, ', 'please, ', 'ok, ', 'so ', 'um, ', 'quick question: ', 'excuse me, ', 'sorry, ',
           'and ', 'well, ', 'hmm, ', 'one question: ', 'guide, ', 'right, ', 'now, ', 'just wondering, ', 'okay so ']
_AFTER = [' please', ' thanks', ' pls', ' in qsf', ' here', ' in this program', ' in this chat', ' exactly', ', please',
          ' with qsf-chat', ' then', ' for me', ' again', ' actually']
# Sentences around the question that are irrelevant to it.
_LEAD = ['i am new to this', 'i am new here', 'i just installed it', 'sorry for the simple question', 'first time here',
         'i have a question', 'i looked everywhere', 'i read the manual but did not find it', 'i am not a programmer',
         'i tried a few things', 'my friend told me about this program', 'i use it on my laptop', 'i need your help',
         'good morning', 'i have used other programs before', 'this may be a stupid question', 'i am stuck', 'ok next question',
         'one more thing', 'i almost have it', 'i am on linux', 'it is late and i am tired', 'help']
_TAIL = ['any idea?', 'can you help?', 'i cannot find it.', 'thanks in advance.', 'i am lost.', 'please be short.', 'do you know?',
         'i forgot.', 'tell me.', 'i hope you can help.', 'i am a beginner.', 'what do i type?', 'it is urgent.', 'just asking.']
_MARKS = ['?', '?', '?', '', '', '', '??', '.', '...', ' ?', '!']

# Words that must not be changed: commands, options, paths, values, keys.
_FIXED = re.compile(r'[/$~\d_.^*"]|^-|--|^\W*$|^ctrl|^alt|^f\d', re.I)


def _neighbour(c, rng):
    for row in _ROWS:
        at = row.find(c)
        if at >= 0:
            return row[max(0, min(len(row) - 1, at + rng.choice([-1, 1])))]
    return c


def _slip(word, rng):
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return word[:at] + _neighbour(word[at], rng) + word[at + 1:]
    if kind == 1:
        return word[:at] + word[at + 1:]
    if kind == 2:
        return word[:at] + word[at] + word[at:]
    return word[:at] + word[at + 1] + word[at] + word[at + 2:]


def typos(text, rng):
    """One slip, rarely two, in words of four letters or more that are plain words."""
    words = text.split(' ')
    for _ in range(1 if rng.random() < 0.8 else 2):
        free = [i for i, w in enumerate(words) if len(w) >= 4 and w.isascii() and w.isalpha()]
        if free:
            i = rng.choice(free)
            words[i] = _slip(words[i], rng)
    return ' '.join(words)


def _replace(text, pairs, rng):
    usable = [(a, b) for a, b in pairs if re.search(r'(?<![\w/$-])' + re.escape(a), text)]
    if not usable:
        return text
    a, b = rng.choice(usable)
    return re.sub(r'(?<![\w/$-])' + re.escape(a) + (r'\b' if a[-1] != ' ' else ''), b, text, count=1)


def _caps(text, rng):
    pick = rng.random()
    if pick < 0.5:
        return text[:1].upper() + text[1:]
    words = text.split(' ')
    if pick < 0.515:
        return ' '.join(w if _FIXED.search(w) else w.upper() for w in words)
    if pick < 0.53:
        return ' '.join(w if _FIXED.search(w) else w.title() if w.isalpha() else w for w in words)
    return text


def _proper(text):
    return re.sub(r"(?<!-)\bi(?=\b(?!/))", 'I', text)


def dress(text, rng, level=1.0, follow=False):
    """A question as somebody would type it; $slots are left as they are."""
    fixed_start = bool(_FIXED.search(text.split(' ')[0]))
    if rng.random() < 0.12 * level:
        text = _replace(text, _SHORT, rng)
    if rng.random() < 0.5:
        text = _replace(text, _BRITISH, rng)
    if not fixed_start and not text.startswith('and ') and len(text) < 90 and rng.random() < 0.12 * level:
        text = rng.choice(_BEFORE) + text
    if '?' not in text and not _FIXED.search(text.split(' ')[-1]) and rng.random() < 0.08 * level:
        text += rng.choice(_AFTER)
    if rng.random() < 0.5:
        text = _proper(text)
    if rng.random() < 0.16 * level:
        text = typos(text, rng)
    text = _caps(text, rng)
    if text[-1] not in '?.!':
        text += rng.choice(_MARKS)
    elif rng.random() < 0.3:
        text = text.rstrip('?.!') or text  # a lone "?" is a question too
    return _wrap(text, rng) if len(text) < 90 and not follow and rng.random() < 0.07 * level else text


def _wrap(text, rng):
    """Another sentence before or behind the question."""
    if rng.random() < 0.6:
        lead = rng.choice(_LEAD)
        lead = _proper(lead[0].upper() + lead[1:]) if text[0].isupper() else lead
        return lead + rng.choice(['. ', ', ', '. ', ': ']) + text
    return text + ('' if text[-1] in '?.!' else '.') + ' ' + rng.choice(_TAIL)
