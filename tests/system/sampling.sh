#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The sampling settings in both programs: the same seed gives the same answer at every budget, with threads
# and with a cache of limited positions; biases and bans; /why and --top-logprobs; games.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
export QSF_DATADIR="$QSF_SRCDIR"
mkdir -p "$work/config/qsf/games"

# ask OPTIONS...: a seeded answer in JSON.
ask() { expect 0 '' "$run" --json --ignore-eos --seed 7 -n 24 -c 128 -p 'a b c' "$@" "$tiny"; }

# ---- every stage, the same answer everywhere
all='--presence 0.5 --frequency 0.2 --repeat-penalty 1.1 --repeat-window 40 --dry 0.8 --dry-length 1
    --typical 0.95 --top-n-sigma 3 --xtc 0.4 --xtc-threshold 0.05 --dynatemp 0.3 --temperature 1.2'
for more in '' '--mirostat 1' '--mirostat 2 --mirostat-tau 3' '--adaptive-target 0.3' '--least 0.02' \
    '--samplers xtc;top_k,temp --top-k 5'; do
    # shellcheck disable=SC2086
    ask $all $more
    text=$(answer_text)
    [ -n "$text" ] || { cat "$work/out"; fail "no answer: $more"; }
    for way in '--pin 0 -t 1' '--pin 40K -t 3 --io pread' '--kv-type f16 --batch 3'; do
        # shellcheck disable=SC2086
        ask $all $more $way
        [ "$(answer_text)" = "$text" ] || fail "another answer: $more $way"
    done
    answer_text
done >"$work/texts"
grep FAIL "$work/texts" && bad=1
[ "$(sort -u "$work/texts" | wc -l)" -ge 5 ] || { cat "$work/texts"; fail "stages change nothing"; }
# shellcheck disable=SC2086
ask $all -c 96 -n 120 --eviction-policy sliding
text=$(answer_text)
# shellcheck disable=SC2086
ask $all -c 96 -n 120 --eviction-policy sliding --pin 0
[ "$(answer_text)" = "$text" ] || fail "another answer with eviction"

# ---- refused by name
expect 2 "'top_q' is unknown" "$run" --samplers top-k,top_q -p a "$tiny"
expect 2 "'min-p' comes twice" "$run" --samplers min_p,temp,min-p -p a "$tiny"
expect 2 'takes TOKEN=X' "$run" --logit-bias a -p a "$tiny"
expect 2 'no token of this model has the text' "$run" --logit-bias 'a b c d=1' -p a "$tiny"
expect 2 'there is no token #99999999' "$run" --ban '#99999999' -p a "$tiny"
# Objects of tokens are written while they are chosen: they take no memory.
if [ -z "${QSF_SAN-}" ]; then
    mb=$(least_budget -c 80 --eviction-policy sliding "$tiny")
    mb=$((${mb:-0} < 27 ? 30 : mb + 3))
    py - "$run" --json --top-logprobs 20 -n 3000 --ignore-eos -c 80 --eviction-policy sliding --ram-budget $mb \
        -p a "$tiny" >"$work/out" 2>"$work/err" <<'EOF' || { cat "$work/out" "$work/err"; fail "the budget of --top-logprobs"; }
import json, resource, subprocess, sys
r = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
d = json.loads(r.stdout)
assert r.returncode == 0 and len(d["logprobs"]) == d["tokens"] == 3000, (r.returncode, d["tokens"])
assert len(r.stdout) > 4 << 20, len(r.stdout)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert peak <= d["budget_mb"] * 1024, peak
EOF
fi
expect 2 'requires a prompt and --json' "$run" --top-logprobs 3 -p a "$tiny"
expect 2 'a whole number from 0 to 20' "$run" --json --top-logprobs 21 -p a "$tiny"

# ---- biases and bans
ask --temperature 0
text=$(answer_text)
first=$(printf %s "$text" | tr -cd a-z | cut -c 1)
[ -n "$first" ] || fail "no letter in: $text"
ask --temperature 0 --ban "$first"
case $(answer_text) in *"$first"*) fail "'$first' is banned, and there: $(answer_text)" ;; esac
ask --temperature 0 --logit-bias '#70=500'
expect 0 '' "$run" --json --temperature 0 --ignore-eos -n 5 --top-logprobs 0 --logit-bias '#70=500' -p a "$tiny"
[ "$(grep -o '"id": 70,' "$work/out" | wc -l)" -ge 5 ] || { cat "$work/out"; fail "a bias of 500 decides nothing"; }

if [ -f "$stories" ]; then # a text over several tokens
    tell() { expect 0 '' "$run" --json --temperature 0 -n 40 -p 'Once upon a time' "$@" "$stories"; }
    for part in 'was a' 'loved to pl' ' girl'; do
        tell
        case $(answer_text) in *"$part"*) ;; *) answer_text && fail "the story has no '$part'" ;; esac
        tell --ban "$part" --ban 'zzz'
        case $(answer_text) in *"$part"*) answer_text && fail "'$part' is banned" ;; esac
    done
    # what a grammar writes without a choice, and what closes it at the limit
    expect 1 'the grammar with bans and biases' "$run" --json -p a --regex '"name":"[a-z]+"' --ban am "$stories"
    echo Hi | "$QSF_BUILDDIR/qsf-chat" --plain --no-config --no-save -n 3 --temperature 0 \
        --regex 'ab{60}' "$stories" >"$work/out" 2>&1
    grep -aqx 'abb' "$work/out" || { cat "$work/out"; fail 'a note is in the middle of a cut answer'; }
    tell --regex 'a{3}' --ban '#2' # the token that ends answers
    [ "$(answer_text)" = aaa ] || fail "not ended without a token for it: $(answer_text)"
    for rule in '--ban !' '--logit-bias !=-inf'; do
        # shellcheck disable=SC2086
        tell --regex '[a-z]{3,}!' $rule
        case $(answer_text) in *!*) answer_text && fail "'!' is banned, and ends the answer" ;; esac
        grep -q '"grammar": "cut"' "$work/out" || { cat "$work/out"; fail 'the answer is not cut'; }
    done
fi

# ---- what was sampled
have python3 && {
    ask --top-logprobs 3 --min-p 0.1
    py -c 'import json, math, sys
d = json.load(sys.stdin)
t = d["logprobs"]
assert len(t) == d["tokens"] == 24
for x in t:
    assert 3 <= len(x["top"]) <= 4 and bytes(x["bytes"]) is not None
    assert [s["stage"] for s in x["stages"]] == ["constraints", "top-k", "top-p", "min-p", "temperature"], x["stages"]
    kept = [s["kept"] for s in x["stages"]]
    assert kept == sorted(kept, reverse=True)
    assert x["decided"] == ("draw" if kept[-1] > 1 else x["decided"]) and 0 <= x["random"] < 1
    at = [c["id"] for c in x["top"]].index(x["id"])
    assert x["stages"][-1]["p"][at] > 0 and abs(x["top"][at]["logprob"] - x["logprob"]) < 1e-6
    assert sum(math.exp(c["logprob"]) for c in x["top"]) <= 1.0001' <"$work/out" || fail "--top-logprobs"
}
printf 'a b c\n/why\n/why 2\n/bias #70=500\nb\n/why\n/bias\n/undo\n/undo\n/bias\n' |
    "$chat" --plain --no-save --no-config --ignore-eos -n 6 --seed 1 "$tiny" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "/why"; }
for words in 'token 6 of 6: ' 'token 2 of 6: ' '^model  *[0-9]' '^top-k  *40' '(chosen)' '^decided by' \
    '^logit-bias  *[0-9]' '^#70=500' 'no token has a bias'; do
    grep -aq -e "$words" "$work/out" || { cat "$work/out"; fail "/why does not say: $words"; }
done

# ---- games
printf '[game]\nabout = one token\n[settings]\nlogit-bias = #70=500\ntemperature = 0\n' \
    >"$work/config/qsf/games/mine.ini"
printf '/game\n/game mine\na\n/why\n/game off\n/bias\n/set temperature\n' |
    "$chat" --plain --no-config --session game --ignore-eos -n 3 "$tiny" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "/game"; }
for words in 'mine  *one token' 'least-likely' 'game mine: one token' 'the game mine is over' \
    'no token has a bias' '^temperature 0.7'; do
    grep -aq -e "$words" "$work/out" || { cat "$work/out"; fail "/game does not say: $words"; }
done
# Each installed one can be played: its answer is one of its grammar, where it has one.
for game in "$QSF_SRCDIR"/templates/games/*.ini; do
    name=$(basename "$game" .ini)
    printf '/game %s\nHello\n/game off\n' "$name" |
        "$chat" --plain --no-config --no-save -n 90 --seed 3 -c 512 "$tiny" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "/game $name"; }
    grep -aq "the game $name is over" "$work/out" || { cat "$work/out"; fail "/game $name does not end"; }
done
finish
