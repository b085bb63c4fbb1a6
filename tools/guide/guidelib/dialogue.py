# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts questions together to conversations of one to five turns."""
import re

from .expand import expand, fill, normal, pool, slots
from .noise import dress
from .slots import COPIED, MAKERS, Words, setting_value

# Number of turns, for each of 100 dialogues.
_LENGTHS = [1] * 80 + [2] * 11 + [3] * 5 + [4] * 3 + [5]
_COPYING = 2.5  # weight of questions with a name that the answer repeats: copying needs many examples
_NAME = re.compile(r'[a-z]{3,10}$')
_FOLLOW = 0.55  # share of later turns that refer to the previous turn, if it has follow-ups
_AGAIN = ['{say|repeat} that again', 'can you repeat that', 'repeat please', 'what did you say', 'once more please', 'pardon',
          'say again', 'come again', 'could you say that once more', 'again please', 'sorry, what was that', 'please repeat']


class Corpus:
    def __init__(self, intents, lists, frames, settings, rng, thesaurus, excluded=frozenset(), pool_size=260,
                 known=frozenset()):
        self.intents = {i.id: i for i in intents}
        self.lists, self.rng, self.excluded, self.known = lists, rng, excluded, known
        self.settings, self.thesaurus = {s.name: s for s in settings}, thesaurus
        self.taken = set()  # questions of written facts, which generated ones do not claim
        self.asked = {i.id: self._pool(i.q, i, frames, pool_size, i.derived) for i in sorted(intents, key=lambda i: i.derived)}
        for i in intents:
            self.asked[i.id] += self._pool(i.lent, i, frames, pool_size, True)
        usable = [i for i in intents if self.asked[i.id]]
        self.ids = [i.id for i in usable]
        self.weights = [i.weight * (_COPYING if COPIED & set(slots(' '.join(i.answers))) else 1) for i in usable]
        words = set().union(*(t.split() for texts in self.asked.values() for t in texts))
        Words.known = sorted(filter(_NAME.match, words))
        self.place = {i: 0 for i in self.ids}
        self.dropped = 0

    def _pool(self, questions, intent, frames, size, made):
        texts = pool(questions, self.lists, frames, self.rng, int(size * max(0.5, intent.weight)))
        texts = [t for t in texts if normal(t) not in self.excluded and not (made and t in self.taken)]
        if not made:
            self.taken.update(texts)
        self.rng.shuffle(texts)
        return texts

    def _question(self, intent_id):
        """The next text of the pool: each is used before one is used twice."""
        texts = self.asked[intent_id]
        at = self.place[intent_id]
        self.place[intent_id] = at + 1
        if at and at % len(texts) == 0:
            self.rng.shuffle(texts)
        return texts[at % len(texts)]

    def _values(self, intent, text, before):
        """Values for the slots of question and answer; a follow-up keeps those of the turn before."""
        values = {}
        for name in slots(text + ' ' + ' '.join(intent.answers)):
            if name in before and name not in slots(text):
                values[name] = before[name]
            elif name == 'value':
                values[name] = setting_value(self.settings[intent.id[4:]], self.rng)
            elif name not in values:
                values[name] = MAKERS[name](self.rng)
                while name == 'fake' and any(k.startswith(values[name]) for k in self.known):
                    values[name] = MAKERS[name](self.rng)
        return values

    def _turn(self, intent, text, before, follows):
        values = self._values(intent, text, before)
        text = self.thesaurus.exchange(text, self.rng)
        question = fill(dress(text, self.rng, follow=follows), values)
        return question, fill(self.rng.choice(intent.answers), values), values

    def _next(self, last):
        """The intent and text of another turn behind `last`, None for the first one; the third says: a follow-up."""
        if last and last.then and self.rng.random() < _FOLLOW:
            target, pattern, _ = self.rng.choice(last.then)
            text = expand(pattern, self.lists, self.rng)
            if target in self.intents and normal(text) not in self.excluded:
                return self.intents[target], text, True
        if last and 'thanks' in self.asked and self.rng.random() < 0.06:
            return self.intents['thanks'], self._question('thanks'), False
        picked = self.rng.choices(self.ids, self.weights)[0]
        return self.intents[picked], self._question(picked), False

    def _ends(self, first):
        """A dialogue of one intent's question, and what follows it."""
        messages, ids, last, values = [], [], None, {}
        for turn in range(self.rng.choice(_LENGTHS)):
            if last and self.rng.random() < 0.02:
                text, answer = expand(self.rng.choice(_AGAIN), self.lists, self.rng), messages[-1]['content']
                question, name = dress(text, self.rng, follow=True), 'again'
            else:
                if first:
                    intent, text, follows, first = self.intents[first], self._question(first), False, None
                else:
                    intent, text, follows = self._next(last)
                question, answer, values = self._turn(intent, text, values if follows else {}, follows)
                last, name = intent, intent.id
            if normal(question) in self.excluded:
                self.dropped += 1
                break
            messages += [{'role': 'user', 'content': question}, {'role': 'assistant', 'content': answer}]
            ids.append(name)
        row = {'messages': messages, 'intents': ids}
        # An answer that repeats something is trained to its end: the repeated text is not in its first words.
        return {**row, 'whole': True} if last and slots(' '.join(last.answers)) else row

    def dialogues(self, count):
        """`count` distinct dialogues: every text of every pool once, then by weight."""
        seen, made = set(), 0
        firsts = [i for i in self.ids for _ in self.asked[i]]
        self.rng.shuffle(firsts)
        tries = 0
        while made < count and tries < 4 * count + 1000:
            first = firsts.pop() if firsts else self.rng.choices(self.ids, self.weights)[0]
            tries += 1
            one = self._ends(first)
            key = tuple(m['content'] for m in one['messages'])
            if key and key not in seen:
                seen.add(key)
                made += 1
                yield one
