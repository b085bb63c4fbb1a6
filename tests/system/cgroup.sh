#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# In a memory cgroup limited to the budget no process is killed, swapped or short of memory: the smallest
# budget, some in between and one above the file, cold and warm, a long prompt; and a chat that changes its
# budget, its model and its session while the limit follows.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
[ -z "${QSF_SAN-}" ] || skip "a sanitizer build does not keep to a budget"
cgroup_open 64 || skip "no writable memory cgroup"
cgroup_close
trap '[ -z "${cg-}" ] || cgroup_close; rm -rf "$work"' EXIT
big_model
chat=$QSF_BUILDDIR/qsf-chat

# ask BUDGET PROMPT OPTIONS...: one answer in a group with that limit; its text is $whole.
ask() {
    budget=$1 prompt=$2
    shift 2
    cgroup_open "$budget" || { fail "no group of $budget MB"; return; }
    cgroup_run "$run" --kv-type f16 --json --temperature 0 --ignore-eos -n 4 -p "$prompt" --ram-budget \
        "$budget" "$@" "$big" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    well "$got" "at $budget MB: $*"
    [ "$(answer_text)" = "$whole" ] || fail "another text at $budget MB: $*"
    at_most "$(number peak_rss_mb)" "$budget" || fail "peak of $(number peak_rss_mb) MB at $budget MB: $*"
    cgroup_close
}
# well STATUS WHAT: the group's program ended as expected.
well() {
    [ "$1" = 0 ] || { cat "$work/err"; fail "exit $1 $2"; }
    [ "$(cgroup_kills)" = 0 ] || fail "killed $2"
    [ "$(cgroup_swap)" = 0.0 ] || fail "$(cgroup_swap) MB in swap $2"
}
# resident PROMPT OPTIONS...
resident() {
    prompt=$1
    shift
    "$run" --kv-type f16 --json --temperature 0 --ignore-eos -n 4 -p "$prompt" --ram-budget \
        $((2 * big_mb + 200)) "$@" "$big" >"$work/out" 2>"$work/err" </dev/null
    whole=$(answer_text)
}

short=$(words 12)
resident "$short"
least=$(least_budget --kv-type f16 "$big")
for budget in "${least:-1}" $((big_mb * 60 / 100)) "$big_mb" $((big_mb * 3 / 2)); do
    forget "$big" && ask "$budget" "$short"
    cat "$big" >/dev/null
    ask "$budget" "$short"
done
ask $((big_mb * 60 / 100)) "$short" --io pread --direct off
ask $((big_mb * 60 / 100)) "$short" --io mmap
text=$(words 2000)
resident "$text" -c 2100
least=$(least_budget --kv-type f16 -c 2100 "$big")
# The smallest budget streams through one slot of a few kilobytes: too slow for such a long prompt.
forget "$big" && ask $((${least:-1} + 1)) "$text" -c 2100
ask $((big_mb * 60 / 100)) "$text" -c 2100

# A prompt of one long word: refused, whether or not it would have to be tokenized.
head -c 4000000 /dev/zero | tr '\0' a >"$work/word"
for policy in none sliding; do
    cgroup_open 60 || skip "no writable memory cgroup"
    cgroup_run "$run" --ram-budget 60 --eviction-policy $policy -n 1 "$big" <"$work/word" >/dev/null \
        2>"$work/err"
    got=$?
    case $policy$got in none[45] | sliding4) ;; *) cat "$work/err";
    fail "exit $got for a long word, policy $policy" ;; esac
    [ "$(cgroup_kills)" = 0 ] || fail "killed by a long word, policy $policy"
    cgroup_close
done

# ---- automatic budgets: the smallest that works where half of the group's memory is too little; and beyond
# three quarters a refusal with numbers, of each program.
above='automatic RAM budget of [0-9]* MB because half of the [0-9]* MB that are available is too little'
beyond='MB, three quarters of the [0-9.]* MB that are available, is too little'
# automatic LEAST PROGRAM OPTIONS...: LEAST is the smallest budget of that program.
automatic() {
    least=$1
    shift
    cgroup_open $((least * 13 / 8 + 4)) || { fail "no group for an automatic budget"; return; }
    cgroup_run "$@" --ram-budget auto "$big" >"$work/out" 2>"$work/err" </dev/null
    well $? "with an automatic budget: $*"
    grep -q "$above" "$work/out" "$work/err" || { cat "$work/err"; fail "no word of three quarters: $*"; }
    cgroup_close
    cgroup_open $((least + 4)) || { fail "no group for a refusal"; return; }
    cgroup_run "$@" --ram-budget auto "$big" >"$work/out" 2>"$work/err" </dev/null
    [ $? = 4 ] && grep -q "$beyond" "$work/err" && grep -q '^smallest budget that works: ' "$work/err" ||
        { cat "$work/err"; fail "no refusal with numbers: $*"; }
    cgroup_close
}
smallest_of() {
    "$@" --ram-budget 1 "$big" 2>&1 </dev/null | sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p'
}
for words in "$run -v -p a -n 2" "$run --plan" "$chat --plain"; do
    # shellcheck disable=SC2086
    automatic "$(smallest_of $words)" $words
done

serve=$QSF_BUILDDIR/qsf-serve
if [ -x "$serve" ]; then
    cgroup_open $(($(smallest_of "$serve" --no-config --listen 127.0.0.1:0) * 13 / 8 + 4))
    : >"$work/first"
    sh -c "$cgroup_enter" "$cg" "$serve" --no-config -v --listen 127.0.0.1:0 "$big" >"$work/first" \
        2>"$work/err" &
    pid=$!
    until [ -s "$work/first" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    grep -q "$above" "$work/err" || { cat "$work/err"; fail "no word of three quarters: qsf-serve"; }
    kill $pid
    wait $pid
    cgroup_close
fi

# ---- a chat: the group's limit follows the budget down and is raised before it
[ -x "$chat" ] || skip "qsf-chat is not built"
small=$work/small.gguf
"$QSF_BUILDDIR/obj/tests/tools/mkbig" "$small" layers=3 || fail "mkbig"
mkfifo "$work/in"

# say LINE: sends a line to the chat. answered N: waits for N lines of answers. peak_is BUDGET: /mem reports
# no higher peak since the program started. rss_is BUDGET: nor a larger resident set now.
say() { printf '%s\n' "$1" >&3; }
lines_of() { if [ -s "$1" ]; then grep -c "$2" "$1"; else echo 0; fi; }
await() {
    while [ "$(lines_of "$work/$1" "$2")" -lt "$3" ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
    [ "$(lines_of "$work/$1" "$2")" -ge "$3" ] ||
        { cat "$work/err"; fail "the chat ended before $3 of /$2/"; }
}
answers=0 mems=0 plans=0
turn() { say "$1"; answers=$((answers + 1)); await out '' $answers; }
mem() {
    say /mem
    mems=$((mems + 1))
    await err '^kernel: RSS' $mems
    rss=$(sed -n 's/^kernel: RSS *\([0-9.]*\) MB.*/\1/p' "$work/err" | tail -n 1)
    peak=$(sed -n 's/^kernel: RSS.* peak *\([0-9.]*\) MB.*/\1/p' "$work/err" | tail -n 1)
}
peak_is() { mem; at_most "$peak" "$1" || fail "the chat's peak is $peak MB at a budget of $1 MB"; }
rss_is() { mem; at_most "$rss" "$1" || fail "$rss MB are resident in the chat at a budget of $1 MB"; }
budget() { say "/budget $1"; plans=$((plans + 1));
await err 'MB of weights pinned\|all .* MB of weights' $plans; }

# talk OPTIONS...: the chat in the group, or without one, reading from the pipe.
talk() {
    : >"$work/out"
    : >"$work/err"
    answers=0 mems=0 plans=0
    if [ -n "${cg-}" ]; then cgroup_run "$chat" --plain --temperature 0 --ignore-eos -n 4 -c 512 "$@" \
        <"$work/in" >"$work/out" 2>"$work/err" &
    else "$chat" --plain --temperature 0 --ignore-eos -n 4 -c 512 "$@" <"$work/in" >"$work/out" \
        2>"$work/err" &
    fi
    pid=$!
    exec 3>"$work/in"
}
hang_up() {
    exec 3>&-
    wait $pid
    got=$?
}

# The same requests without any limit.
talk --ram-budget 400 "$big"
turn 'a b c'; turn 'd e f'; turn 'g h i'
say "/model $small"
turn 'j k'
hang_up
cp "$work/out" "$work/whole"

cgroup_open 80 || skip "no writable memory cgroup"
talk --ram-budget 80 --session kept "$big"
turn 'a b c'
peak_is 80
high=$peak
budget 40
cgroup_resize 40 || fail "the kernel cannot reclaim what /budget 40 released"
turn 'd e f' # within the new limit of the group
rss_is 40
at_most "$high" "$peak" || fail "a peak of $high MB became $peak MB with a smaller budget"
cgroup_resize 120 || fail "the group does not grow"
budget 120
turn 'g h i'
say "/model $small"
turn 'j k'
peak_is 120
hang_up
well $got 'in the chat'
cgroup_close
cmp -s "$work/out" "$work/whole" ||
    { cat "$work/whole" "$work/out"; fail "a limit changes the answers of the chat"; }

# The session again, in another program and a small group.
cgroup_open 60 || skip "no writable memory cgroup"
talk --ram-budget 60 --session kept
turn 'and then'
peak_is 60
hang_up
well $got 'in the resumed session'
cgroup_close
finish
