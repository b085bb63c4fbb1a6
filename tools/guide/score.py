#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges answers of the guide by the held-out questions. tests/data/guide/README.md explains both."""
import argparse
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # do not write to the source tree
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))

from guidelib.heldout import HeldOutError, Judge, complaints, filled, read_items, read_rows  # noqa: E402
from guidelib.tables import Tables  # noqa: E402
from trainlib.bpe import topic_token  # noqa: E402

LEAST_ITEMS = 300


def arguments():
    root = here.parent.parent
    p = argparse.ArgumentParser(description='Print the share of right answers, the wrong ones, and invented names. '
                                'Exit 1 below --least or with an invented name.')
    p.add_argument('answers', nargs='?', type=Path, help='JSON lines {"id": ID, "answer": TEXT}, one for each question')
    p.add_argument('--held', type=Path, default=root / 'tests/data/guide/heldout.jsonl', help='the questions')
    p.add_argument('--root', type=Path, default=root, help='source tree with the tables (default: this one)')
    p.add_argument('--least', type=float, default=95, metavar='PERCENT', help='the share that passes (default 95)')
    p.add_argument('--json', action='store_true', help='print one JSON object')
    p.add_argument('--check', type=Path, metavar='INTENTS', help='only hold the questions against the tables and the facts '
                   '(a file of generate --intents)')
    p.add_argument('--text', type=Path, metavar='INTENTS', help='write the dialogues with the answers of the facts as ChatML: a text '
                   'to measure perplexity with')
    args = p.parse_args()
    if sum(map(bool, (args.answers, args.check, args.text))) != 1:
        p.error('give a file of answers, --check INTENTS or --text INTENTS')
    return args


def check(items, judge, path):
    intents = {row['intent']: row['answers'] for _, row in read_rows(path)}
    wrong = list(complaints(items, intents, judge))
    if len(items) < LEAST_ITEMS:
        wrong.append(f'only {len(items)} questions, {LEAST_ITEMS} are the least')
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        several = sum(len(item['messages']) > 1 for item in items)
        print(f'{len(items)} questions, {several} of them after other turns, of {len({i["intent"] for i in items})} intents')
    return 1 if wrong else 0


def write_text(items, judge, path):
    """Every dialogue of the set, ended by the first answer of its intent that is right, with its topic's token as the guide writes it."""
    intents = {row['intent']: row['answers'] for _, row in read_rows(path)}
    for item in items:
        answers = (text for a in intents.get(item['intent'], []) for text in filled(a, item) if not any(judge.faults(item, text)))
        answer = next(answers, None)
        if answer is None:
            raise HeldOutError(f'{item["where"]}: no answer of [{item["intent"]}] is right')
        for m in [*item['messages'], {'role': 'assistant', 'content': topic_token(item['intent']) + answer}]:
            print(f'<|im_start|>{m["role"]}\n{m["content"]}<|im_end|>')
    return 0


def read_answers(path, items):
    known, answers = {item['id'] for item in items}, {}
    for where, row in read_rows(path):
        name, text = row.get('id'), row.get('answer')
        if name not in known or not isinstance(text, str):
            raise HeldOutError(f'{where}: expected "id" of a question and "answer", a text')
        answers[name] = text
    return answers


def score(items, answers, judge):
    """{score, right, asked, wrong: [{id, intent, question, answer, faults}], invented: {name: [id, ...]}}.

    An answer is right when it satisfies every group of must, nothing of must_not, and invents no name;
    a question without an answer counts as wrong."""
    wrong, invented = [], {}
    for item in items:
        answer = answers.get(item['id'], '')
        faults = list(judge.faults(item, answer)) if answer.strip() else ['no answer']
        if faults:
            wrong.append({'id': item['id'], 'intent': item['intent'], 'question': item['messages'][-1]['content'],
                          'answer': answer, 'faults': faults})
        for name in judge.invented(answer):
            invented.setdefault(name, []).append(item['id'])
    right = len(items) - len(wrong)
    return {'score': round(100 * right / len(items), 2) if items else 0.0, 'right': right, 'asked': len(items),
            'wrong': wrong, 'invented': invented}


def show(result):
    for one in result['wrong']:
        print(f'{one["id"]}: {"; ".join(one["faults"])}\n    ? {one["question"]}\n    > {one["answer"]}')
    for name, where in sorted(result['invented'].items()):
        print(f'invented: {name} in {", ".join(where)}')
    print(f'{result["score"]:.1f} % right ({result["right"]} of {result["asked"]}), '
          f'{len(result["invented"])} invented names')


def main():
    args = arguments()
    items, judge = read_items(args.held), Judge(Tables(args.root))
    if args.check:
        return check(items, judge, args.check)
    if args.text:
        return write_text(items, judge, args.text)
    result = score(items, read_answers(args.answers, items), judge)
    if args.json:
        print(json.dumps(result))
    else:
        show(result)
    return 1 if result['score'] < args.least or result['invented'] else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (HeldOutError, ValueError, OSError) as e:
        print(f'score: {e}', file=sys.stderr)
        sys.exit(2)
