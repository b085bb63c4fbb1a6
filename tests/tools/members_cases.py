#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/members.jsonl: random schemas that say which members an object has together, with the
verdicts of python3-jsonschema, which this needs: members_cases.py >tests/data/members.jsonl

A line has a schema, and a digit for each value, 1 = valid: the 16 objects with the members a, b, c, d whose
bits the number of the value has, each of them 1, then a string."""
import json
import random
import warnings

from jsonschema import Draft7Validator

NAMES = 'abcd'
DRAFT = 'http://json-schema.org/draft-07/schema#'
rnd = random.Random(1)


def chance(p):
    return rnd.random() < p


def names(least, most):
    return rnd.sample(NAMES, rnd.randint(least, most))


def one_of():
    one = {'required': names(0 if chance(0.1) else 1, 2)}
    if chance(0.2):
        one['type'] = 'object'
    return one


def choice(depth):
    kind = rnd.randrange(3)
    if kind == 0:
        return {'required': names(1, 2)}
    return part(depth - 1) if kind == 1 else {'properties': {n: False for n in names(1, 2)}}


def part(depth):
    s = {}
    if chance(0.4):
        s['required'] = names(0, 1)
    if chance(0.5):
        s['dependencies'] = {n: names(0, 2) for n in names(1, 3)}
    if chance(0.4):
        s['oneOf'] = [one_of() for _ in range(rnd.randint(1, 4))]
    if depth > 0 and chance(0.3):
        s['anyOf'] = [choice(depth) for _ in range(rnd.randint(1, 3))]
    if depth > 0 and chance(0.2):
        s['allOf'] = [part(depth - 1) for _ in range(rnd.randint(1, 2))]
    return s


def schema():
    s = {'$schema': DRAFT}
    if chance(0.7):
        s['type'] = 'object'
    s['properties'] = {n: rnd.choice([{}, True, {'type': 'integer'}]) if chance(0.95) else False for n in NAMES}
    if chance(0.3):
        s['additionalProperties'] = False
    s.update(part(2))
    return s


def main():
    warnings.simplefilter('ignore')
    values = [{n: 1 for i, n in enumerate(NAMES) if bits >> i & 1} for bits in range(16)] + ['x']
    for _ in range(400):
        s = schema()
        check = Draft7Validator(s)
        verdicts = ''.join('01'[check.is_valid(v)] for v in values)
        print(json.dumps({'schema': s, 'valid': verdicts}))


main()
