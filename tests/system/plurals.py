# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages with counts in the sources: plurals.py ROOT FOLDER... For each format with a plural after a
number it prints what is wrong: a noun that src/base/plural.c does not know, or a function of stdio.h that
always uses the plural. plurals.allow lists those that are right: FILE, a tab, and a part of the format."""
import os
import re
import sys

CALL = re.compile(r'\b(v?s?n?f?printf) *\((?:[^;"\']|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\')*;')
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
FORMAT = re.compile(r'"(?:\\.|[^"\\])*"(?:\s*(?:"(?:\\.|[^"\\])*"|PRI[a-zA-Z0-9]+|QSF_[A-Z_]+))*')
COUNT = re.compile(r'%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|j|z|t)?[diu] '
                   r'((?:[A-Za-z]+ )*?)([a-z]+s)\b')


# What a number can be the name of: "message 3 is".
VERBS = set("belongs claims contains does follows goes has is keeps lacks lies makes overlaps shares "
            "was".split())


def tables(root):
    with open(os.path.join(root, "src/base/plural.c"), encoding="utf-8") as f:
        text = f.read()
    found = []
    for name in ("nouns", "adjectives"):
        body = re.search(r"\b%s\[\] = \{(.*?)\};" % name, text, re.S).group(1)
        found.append(set(STRING.findall(body)))
    return found


def plural(noun):
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "ch")) else "s")


def joined(literal):
    """The format that adjacent literals and the macros of inttypes.h make."""
    literal = re.sub(r"PRI[a-zA-Z0-9]+", '"u"', literal)
    return "".join(STRING.findall(re.sub(r"QSF_[A-Z_]+", '"x"', literal)))


def plurals(text, adjectives):
    for m in COUNT.finditer(text):
        words = m.group(1).split()
        if m.group(2) not in VERBS and all(w in adjectives for w in words):
            yield m.group(2)


def main():
    root, folders = sys.argv[1], sys.argv[2:]
    nouns, adjectives = tables(root)
    known = {plural(n) for n in nouns}
    with open(os.path.join(root, "tests/system/plurals.allow"), encoding="utf-8") as f:
        allow = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    used = set()

    def allowed(path, text):
        hits = [i for i, (file, part) in enumerate(allow) if file == path and part in text]
        used.update(hits)
        return bool(hits)

    for folder in folders:
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as f:
                    source = f.read()
                path = os.path.relpath(path, root)
                if path == "src/base/plural.c":
                    continue
                direct = [m.span() for m in CALL.finditer(source)]
                for m in FORMAT.finditer(source):
                    text = joined(m.group())
                    before = source[source.rfind("\n", 0, m.start()) + 1:m.start()]
                    if before.lstrip().startswith(("/*", "*")):
                        continue
                    for noun in plurals(text, adjectives):
                        line = source.count("\n", 0, m.start()) + 1
                        inside = any(a <= m.start() < b for a, b in direct)
                        if (noun in known and not inside) or allowed(path, text):
                            continue
                        why = "use qsf_text_snprintf() or qsf_text_fprintf()" if noun in known else \
                            "is it a noun? add it to src/base/plural.c"
                        print(f"{path}:{line}: {noun}: {why}: {text}")
    for i, entry in enumerate(allow):
        if i not in used:
            print(f"plurals.allow: {entry[0]}: nothing has \"{entry[1]}\"")


main()
