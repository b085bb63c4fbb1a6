#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --render: one line of output per line of input, whatever the lines contain; hostile templates; sources of
# templates; and all renderings of the oracle, through the program.
. "$(dirname "$0")/lib.sh"
run=$QSF_BUILDDIR/qsf-run
XDG_CONFIG_HOME=$work/config QSF_DATADIR=$QSF_SRCDIR
export XDG_CONFIG_HOME QSF_DATADIR

# renders TEMPLATE INPUT OUTPUT [option...]: printf formats of the input and the expected output
renders() {
    printf "$1" >"$work/t.jinja"; shift
    printf "$1" >"$work/in"; shift
    printf "$1" >"$work/want"; shift
    "$run" --render "$work/t.jinja" "$@" <"$work/in" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "--render failed"; }
    [ ! -s "$work/err" ] || { cat "$work/err"; fail "--render writes to stderr"; }
    cmp -s "$work/out" "$work/want" ||
        { cat "$work/t.jinja" "$work/in" "$work/want" "$work/out";
        fail "--render: expected and actual output differ"; }
}
# shellcheck disable=SC1003
{
renders '{{ x }}' '{"x": "a"}\n{"x": [1, null, "b"]}\n{}\n' '"a"\n"[1, None, '"'b'"']"\n""\n'
renders '{{ x }}' '{"x": 1}' '"1"\n'                 # a last line without a newline
renders '{{ x }}' '' ''
renders '{{ x }}' '{"x": "\\u0000"}\n' '"\\u0000"\n'
renders '{{ x is defined }}{{ y is defined }}' '{"x": null}\n' '"TrueFalse"\n'
renders '{{ raise_exception("no " ~ x) }}' '{"x": "way"}\n' '{"error": "no way"}\n'
renders '{{ strftime_now("%%Y %%j %%a") }}' '{}\n' '"2024 366 Tue"\n' --now 2024-12-31T23:59:59
}

# an invalid line gives an error line, and the next one is rendered all the same
printf '{{ x }}\n' >"$work/t.jinja"
{
    printf '\n[1]\n"s"\n{"x": \n{"x": "\\ud800"}\n{"x": "\\udc00 y"}\n{"x": "\377"}\n{"x": 1} 2\n'
    awk 'BEGIN { for (i = 0; i < 5000; i++) printf "["; print "" }'
    printf '{"x": "still here"}\n'
} >"$work/in"
"$run" --render "$work/t.jinja" <"$work/in" >"$work/out" 2>"$work/err" || fail "invalid lines end the run"
[ "$(wc -l <"$work/out")" = 10 ] || { cat "$work/out"; fail "not a line per line"; }
[ "$(grep -c '^{"error": ".*"}$' "$work/out")" = 9 ] ||
    { cat "$work/out"; fail "an invalid line was accepted"; }
[ "$(tail -n 1 "$work/out")" = '"still here"' ] || fail "the line after bad ones is not rendered"

# a template that does not compile gives line and construct for every line of input
printf '{{ x }}\n{%% include "y" %%}' >"$work/t.jinja"
printf '{}\n{}\n' | "$run" --render "$work/t.jinja" >"$work/out" 2>"$work/err" ||
    fail "an invalid template gives no error line"
[ "$(grep -c "line 2: not supported: tag 'include'" "$work/out")" = 2 ] ||
    { cat "$work/out"; fail "line and construct are not named"; }

# usage
refuses() { # CODE PART ARGUMENT...
    code=$1 part=$2
    shift 2
    "$run" "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "exit $rc, not $code: $*"
    grep -q -- "$part" "$work/err" || { cat "$work/err"; fail "no '$part' in the message of $*"; }
}
refuses 2 'unknown chat template' --render "$work/nothing.jinja"
refuses 2 'takes no MODEL' --render chatml model.gguf
refuses 2 'now' --render chatml --now 2026-02-30T00:00:00
refuses 2 'now' --render chatml --now yesterday
refuses 2 'now requires' --now 2026-01-01T00:00:00 model.gguf
refuses 2 'only one of' --render chatml --tokenize model.gguf

# hostile templates end with an error, and soon
# shellcheck disable=SC3045 # every sh of Linux supports -t and -v
harm() { # TEMPLATE
    printf '%s' "$1" >"$work/t.jinja"
    printf '{"x": "a", "l": [1, 2]}\n' | (ulimit -t 100; [ -n "${QSF_SAN-}" ] ||
        ulimit -v 2000000; exec "$run" --render "$work/t.jinja") >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "a template ended the program: $(head -c 80 "$work/t.jinja")"; }
    grep -q '^{"error": "' "$work/out" ||
        { head -c 300 "$work/out"; fail "rendered: $(head -c 80 "$work/t.jinja")"; }
}
harm '{% for i in range(10**9) %}x{% endfor %}'
harm '{{ range(10**9)|list|length }}'
harm '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}'
harm '{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}'
harm '{% set ns = namespace(s="aaaaaaaa") %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}'
harm '{{ "a" * 10**12 }}'
harm '{{ "%*d" % (10**9, 1) }}'
harm '{{ x|center(10**15) }}'
harm '{{ 2 ** 64 }}'
harm '{% set ns = namespace() %}{% set ns.n = ns %}{{ ns|string }}'
for unit in '{{ (' '{% if x %}' '{{ [' '{{ -' '{{ not ' '{% for a in l %}'; do
    harm "$(awk -v u="$unit" 'BEGIN { for (i = 0; i < 50000; i++) printf "%s", u }')"
done
awk 'BEGIN { printf "{{ \""; for (i = 0; i < 1000000; i++) printf "%s", "a"; printf "\"|length }}" }' \
    >"$work/t.jinja"
[ "$(echo '{}' | "$run" --render "$work/t.jinja" 2>/dev/null)" = '"1000000"' ] ||
    fail "a literal of a megabyte"
awk 'BEGIN { printf "{{ \""; for (i = 0; i < 1100000; i++) printf "%s", "a"; printf "\"|length }}" }' \
    >"$work/t.jinja"
refuses 3 'too large for a chat template' --render "$work/t.jinja"

# a pasted file of 10 MB is accepted
awk 'BEGIN { printf "{\"messages\": [{\"role\": \"user\", \"content\": \""; for (i = 0; i < 1000000; i++) printf "0123456789"; print "\"}]}" }' >"$work/in"
"$run" --render llama3 <"$work/in" >"$work/out" 2>"$work/err" || fail "10 MB"
[ "$(wc -c <"$work/out")" -gt 10000000 ] ||
    { head -c 300 "$work/out"; fail "a message of 10 MB is not rendered"; }

# sources of templates: names, a configuration with one, with named ones, a directory with files
mkdir -p "$work/one" "$work/many" "$work/files/additional_chat_templates"
printf '{"chat_template": "one {{ x }}", "bos_token": "<b>"}' >"$work/one/tokenizer_config.json"
printf '{"chat_template": [{"name": "tool_use", "template": "tools {{ x }}"}, {"name": "default", "template": "plain {{ x }}"}]}' >"$work/many/tokenizer_config.json"
printf '{"bos_token": {"content": "<b>"}}' >"$work/files/tokenizer_config.json"
printf 'own {{ x }}' >"$work/files/chat_template.jinja"
printf 'rag {{ x }}' >"$work/files/additional_chat_templates/rag.jinja"
from() {
    [ "$(echo '{"x": 1, "messages": []}' | "$run" --render "$1" 2>"$work/err")" = "\"$2\"" ] ||
        { cat "$work/err"; fail "--render $1 is not '$2'"; }
}
from "$work/one" 'one 1'
from "$work/one/tokenizer_config.json" 'one 1'
from "$work/many" 'plain 1'
from "$work/many/tokenizer_config.json:tool_use" 'tools 1'
from "$work/many:default" 'plain 1'
from "$work/files" 'own 1'
from "$work/files/:rag" 'rag 1'
from chatml ''
from mistral ''
refuses 2 'it has: tool_use, default' --render "$work/many:other"
refuses 3 'has no chat_template' --render "$work/files/tokenizer_config.json"
refuses 3 'no chat template' --render "$work"

# the oracle
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/oracle/templates
[ -d "$data" ] || { [ $bad = 0 ] || finish; skip "$data is absent: not compared with Jinja2"; }
have python3 || { [ $bad = 0 ] || finish; skip "no python3: not compared with Jinja2"; }
python3 - "$run" "$data" "$work" <<'PY' || bad=1
import collections, json, subprocess, sys
from pathlib import Path

run, data, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

def lines(name):
    return [json.loads(l) for l in (data / name).read_text(encoding='utf-8').split('\n') if l]

def same(case, line):
    got = json.loads(line)
    if 'expected' in case:
        return got == case['expected']
    if not (isinstance(got, dict) and list(got) == ['error']):
        return False
    return case['error_type'] != 'TemplateError' or got['error'] == case['error']

def compare(path, cases, variables):
    text = ''.join(json.dumps(v) + '\n' for v in variables)
    done = subprocess.run([run, '--render', str(path), '--now', '2026-01-15T12:34:56'], input=text.encode(),
                          stdout=subprocess.PIPE, check=True)
    out = done.stdout.decode().split('\n')
    assert out.pop() == '' and len(out) == len(cases), f'{path}: {len(out)} lines for {len(cases)}'
    wrong = [(c, l) for c, l in zip(cases, out) if not same(c, l)]
    for case, line in wrong[:3]:
        print('FAIL:', case['id'], 'want', str(case.get('expected', case.get('error')))[:300], 'got', line[:300])
    return len(wrong)

conversations = json.loads((data / 'conversations.json').read_text(encoding='utf-8'))
by_template = collections.defaultdict(list)
for case in lines('cases.jsonl'):
    by_template[case['template']].append(case)
wrong = n = 0
for name, cases in by_template.items():
    given = []
    for case in cases:
        c = conversations[case['conversation']]
        given.append({'messages': c['messages'], 'tools': c.get('tools'), 'documents': c.get('documents'), **case['vars']})
    wrong += compare(data / 'templates' / f'{name}.jinja', cases, given)
    n += len(cases)
snippets = lines('snippets.jsonl')
for i, case in enumerate(snippets):
    path = work / 'snippet.jinja'
    path.write_bytes(case['template'].encode('utf-8', 'surrogatepass'))
    wrong += compare(path, [case], [case['vars']])

# Our own files compared with a real template of the same format, where it does nothing else: on plain
# conversations, except those in brackets, in which it adds its own system message, trims contents, or leaves
# the end open in another way.
OURS = {
    'chatml': ('webui-ChatML', ['whitespace']), 'guide': ('webui-ChatML', ['whitespace']), 'llama2': ('gguf-llama2-7b', []),
    'llama3': ('gguf-llama3-8b', []), 'mistral-v3': ('axolotl-mistral_v2v3', ['whitespace']),
    'mistral-tekken': ('axolotl-mistral_v3_tekken', []), 'gemma': ('axolotl-gemma3', []), 'zephyr': ('gguf-tinyllama-1.1b', []),
    'phi4': ('axolotl-phi_4', ['user', 'whitespace', 'think', 'assistant_last', 'two_users', 'long']),
    'vicuna': ('eachadea-vicuna-13b-1.1', []), 'deepseek': ('gguf-deepseek-r1-8b', []), 'granite': ('gguf-granite3-dense-2b', []),
    'command-r': ('gguf-command-r-plus-104b', []), 'falcon': ('ollama-index-34-falcon-instruct', []),
    'bitnet': ('microsoft-bitnet-b1.58-2B-4T', []),
}
plain = {'add_generation_prompt', 'bos_token', 'eos_token'}
for name, (real, but) in OURS.items():
    cases = [c for c in by_template[real] if c['group'] == 'core' and 'expected' in c and c['conversation'] not in but
             and set(c['vars']) <= plain]
    given = [{'messages': conversations[c['conversation']]['messages'], 'bos_token': '', 'eos_token': '', **c['vars']} for c in cases]
    assert len(cases) >= 4, f'{name}: {len(cases)} cases of {real}'
    wrong += compare(name, cases, given)
print(f'{n} renderings of {len(by_template)} templates and {len(snippets)} snippets, {wrong} differ')
sys.exit(wrong > 0)
PY
finish
