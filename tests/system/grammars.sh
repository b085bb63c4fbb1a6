#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --match: texts against grammars, schemas and expressions; what is refused, and where it says the fault is;
# all cases of the shared data, whose verdicts are those of independent implementations.
. "$(dirname "$0")/lib.sh"
run=$QSF_BUILDDIR/qsf-run
XDG_CONFIG_HOME=$work/config
export XDG_CONFIG_HOME

# verdict WORDS OPTION VALUE: what is said of the lines of $work/in, a letter each: m(atch), p(refix), n(o)
verdict() {
    "$run" --match "$2" "$3" --jsonl <"$work/in" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "--match $2 fails"; return; }
    got=$(sed 's/.*"match": true.*/m/; s/.*"prefix": true.*/p/; s/.*"prefix": false.*/n/' "$work/out" |
        tr -d '\n')
    [ "$got" = "$1" ] || fail "$2 $3: $got instead of $1"
}
texts() { printf '%s\n' "$@" >"$work/in"; }
file() { printf "$1" >"$work/f"; } # a format

texts '"ab"' '"a"' '""' '"abb"' '"é"'
file 'root ::= "a" x | "\\u00e9"\nx ::= [b-d]\n'
verdict mppnm --grammar "$work/f"
# The texts that the cost of masks is measured with.
for schema in "$QSF_SRCDIR"/tests/data/schemas/*.json; do
    sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/' "${schema%.json}.txt" >"$work/in"
    echo >>"$work/in"
    verdict m --json-schema "$schema"
done

texts '"a1"' '"a"' '"1"'
verdict mpn --regex '^[a-z]\d$'
texts '"{\"a\": 1}"'
verdict m --json-schema any
file '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}}, "required": ["a"]}'
verdict n --json-schema "$work/f"
# what only some schemas of a choice contradict
texts '"3"' '"\"a\""' '"null"' '"1"'
file '{"type": "integer", "anyOf": [{"type": "string"}, {"minimum": 3}]}'
verdict mnnp --json-schema "$work/f"
file '{"anyOf": [{"type": "string"}, {"type": "integer"}],
    "allOf": [{"oneOf": [{"type": "integer"}, {"type": "null"}]}]}'
verdict mnnm --json-schema "$work/f"

# schemas of oneOf that exclude each other for an object, which all of them are
texts '"{\"k\": 1, \"v\": 3}"' '"{\"k\": 2, \"v\": 3}"' '"{\"k\": 2, \"v\": true}"' '"1"'
file '{"type": "object", "properties": {"k": true, "v": true}, "required": ["k", "v"],
    "oneOf": [{"properties": {"k": {"const": 1}, "v": {"const": 3}}, "required": ["k"]},
    {"properties": {"k": {"const": 2}, "v": {"const": true}}}]}'
verdict mnmn --json-schema "$work/f"

# refuses PLACE FORMAT OPTION: one line that names the place
refuses() {
    file "$2"
    expect 2 "$1" "$run" --match "$3" "$work/f" --jsonl
    [ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "not one line: $2"; }
}
refuses 'line 2, column 7: the group is not closed' 'root ::= "a"\nb ::= ("b"' --grammar
refuses 'line 1, column 1: the rule "root" is left-recursive' 'root ::= root "a" | "b"' --grammar
refuses 'nothing matches' 'root ::= "a" root' --grammar
refuses 'too large' 'root ::= ((("a"{2000}){2000}){2000}){2000}' --grammar
refuses '#/properties/a/not: the keyword not' '{"properties": {"a": {"not": {}}}}' --json-schema
refuses '#/items/pattern: the regular expression, character 2' '{"items": {"pattern": "a(?=b)"}}' --json-schema
refuses '#/anyOf: no schema of anyOf agrees' '{"type": "null", "anyOf": [{"type": "string"}]}' --json-schema
refuses '#/oneOf: .*both 0 and 1' '{"oneOf": [{"type": "integer"}, {"type": "number"}]}' --json-schema
# a file that is not there, and pipes: the chat does not wait for one without a writer
expect 3 'grammar: .*/none: No such file' "$run" --match --grammar "$work/none" --jsonl
mkfifo "$work/fifo"
expect 2 'fifo: the grammar is empty' "$run" --match --grammar "$work/fifo" --jsonl
echo 'root ::= "yes"' | {
    exec 3<&0
    echo '"yes"' | "$run" --match --grammar /dev/fd/3 --jsonl >"$work/out"
}
grep -q '"match": true' "$work/out" || { cat "$work/out"; fail "a grammar from a pipe"; }
expect 2 'requires --jsonl' "$run" --match --regex a
# the chat, too, before anything begins
file 'root ::= root "a" | "b"'
expect 2 'line 1, column 1: the rule "root" is left-recursive' \
    "$QSF_BUILDDIR/qsf-chat" --plain --no-config --no-save --grammar "$work/f" "$work/none.gguf" </dev/null
expect 2 'takes no MODEL' "$run" --match --regex a --jsonl model.gguf

data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
if [ -d "$data/grammars" ] && [ -f "$data/tools/check_grammars.py" ]; then
    py "$data/tools/check_grammars.py" "$run" "$data/grammars" >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "cases of the shared data"; }
fi
finish
