#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Input of any size: files of a model directory, grammars, schemas, templates and sessions that would take far
# more memory than the budget are refused before they do, and the kernel's peak stays below it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat
maker=$QSF_BUILDDIR/obj/tests/tools/mktiny
unset XDG_CONFIG_HOME
export XDG_DATA_HOME="$work/data" XDG_STATE_HOME="$work/state"
[ -z "${QSF_SAN-}" ] || skip "a sanitizer build does not keep to a budget"
have python3 || skip "no python3"

# repeat N TEXT: N times.
repeat() { awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", t }'; }

# bounded BUDGET CODE WORDS COMMAND...: the exit code, WORDS on stderr, and the peak that the kernel counted.
bounded() {
    budget=$1 want=$2 words=$3
    shift 3
    py - "$work/peak" "$@" --ram-budget "$budget" >"$work/out" 2>"$work/err" <<'EOF'
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, use = os.wait4(pid, 0)
with open(sys.argv[1], "w") as f:
    f.write(str(use.ru_maxrss // 1024))
sys.exit(os.waitstatus_to_exitcode(status))
EOF
    got=$?
    [ $got = "$want" ] || { cat "$work/err"; fail "exit $got instead of $want: $*"; }
    [ -z "$words" ] || grep -qE -- "$words" "$work/err" || { cat "$work/err"; fail "no /$words/ on stderr: $*"; }
    at_most "$(cat "$work/peak")" "$budget" || fail "a peak of $(cat "$work/peak") MB at $budget MB: $*"
}

# ---- a model directory
dir=$work/dir
mkdir "$dir"
"$maker" "$dir" dir=F32 layers=1 || fail "mktiny cannot write a directory"
bounded 100 0 '' "$run" -p a -n 1 "$dir"
repeat 1500000 '{},' >"$work/many"
for name in tokenizer_config.json config.json tokenizer.json; do
    [ ! -e "$dir/$name" ] || cp "$dir/$name" "$work/saved"
    case $name in
    tokenizer_config.json) { printf '{"x":['; cat "$work/many"; printf '0]}'; } >"$dir/$name" ;;
    config.json) { sed '$s/}[^}]*$//' "$work/saved"; printf ',"x":['; cat "$work/many"; printf '0]}'; } \
        >"$dir/$name" ;;
    tokenizer.json) { printf '{"added_tokens":['; cat "$work/many"; printf '0],'
        sed 's/"added_tokens"/"added"/; 1s/^{//' "$work/saved"; } >"$dir/$name" ;;
    esac
    bounded 100 4 'opening it takes more than [0-9]+ MB for headers and vocabulary: raise --ram-budget' \
        "$run" -p a -n 1 "$dir"
    if [ -e "$work/saved" ]; then mv "$work/saved" "$dir/$name"; else rm "$dir/$name"; fi
done
# What opening it takes is a part of the budget that works.
head -c 30000000 /dev/zero | tr '\0' ' ' >>"$dir/tokenizer.json"
expect 4 '^smallest budget that works: ' "$run" -p a -n 1 --ram-budget 25 "$dir"
grep -q '^opening the model ' "$work/err" || { cat "$work/err"; fail "no line for opening the model"; }
least=$(sed -n '$s/.*works: \([0-9]*\) MB/\1/p' "$work/err")
[ "${least:-0}" -gt 30 ] || fail "$least MB are too little for a file of 30 MB"
bounded "${least:-1}" 0 '' "$run" -p a -n 1 "$dir"

# ---- grammars and templates
{ printf '{"anyOf":['; repeat 300000 '{},'; printf '{}]}'; } >"$work/schema"
bounded 40 4 'the grammar: it takes more memory than the RAM budget of 40 MB leaves: raise --ram-budget' \
    "$run" -p a -n 1 --json-schema "$work/schema" "$tiny"
{ printf '{%% set x = ['; repeat 400000 '0,'; printf '] %%}'; } >"$work/wide.jinja"
bounded 16 4 'the vocabulary and the chat template: it takes more memory than' \
    "$run" -p a -n 1 --template "$work/wide.jinja" "$tiny"

# ---- sessions: many messages, and long ones
[ -x "$chat" ] || { echo "skip: qsf-chat is not built"; finish; }
mkdir -p "$XDG_DATA_HOME/qsf/sessions"
sessions=$XDG_DATA_HOME/qsf/sessions
py - "$sessions" <<'EOF'
import sys
def write(name, n, text):
    with open(f"{sys.argv[1]}/{name}.jsonl", "w") as f:
        for i in range(1, n + 1):
            role = "user" if i % 2 else "assistant"
            f.write(f'{{"kind":"message","time":1,"role":"{role}","text":"{text}","id":{i}}}\n')
write("many", 400000, "a")
write("long", 60, "a" * 1000000)
EOF
more='session many: it has more messages than fit in'
bounded 40 4 "$more" "$chat" --plain --session many "$tiny"
bounded 40 4 "$more" "$chat" --print-session many
bounded 40 4 "$more" "$chat" --replay many "$tiny"
bounded 40 4 'session long: its messages need' "$chat" --plain --session long "$tiny"
bounded 40 0 '' "$chat" --print-session long
bounded 40 4 'session long: (its messages need|it has more messages)' "$chat" --replay long "$tiny"
finish
