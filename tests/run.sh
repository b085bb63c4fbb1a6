#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs test programs and scripts, one line each; the output is shown only on failure. Exit code 77
# of a test means skipped, and its "skip:" lines are shown. The last line has only the totals.
# usage: run.sh TEST...      environment: QSF_SRCDIR QSF_BUILDDIR [QSF_TEST_DATA] [QSF_TEST_TIMEOUT]
#                            [QSF_TEST_JOBS]: how many at a time, by default as many as there are CPUs, and
#                            half as many that mostly wait; tests that measure time or memory of the whole
#                            machine run one by one.
#                            [QSF_TEST_TIMES]: a file to which each test adds its seconds of processor time
#                            (of its own, of the system), its seconds and its name.
#                            [QSF_TEST_AGAIN]: 1: a test that fails, but not by a crash or with a report of a
#                            sanitizer, runs again at the end, when nothing runs beside it. If it passes
#                            then, it is listed as unsteady, with the output of the first time.
#                            [QSF_EMULATOR]: the command that runs programs of another machine; scripts
#                            need it registered with the kernel (binfmt_misc).

set -u
: "${QSF_SRCDIR:=$(pwd)}" "${QSF_BUILDDIR:=$(pwd)}"
: "${QSF_TEST_DATA:=$QSF_SRCDIR/../shared}" "${QSF_TEST_TIMEOUT:=300}"
: "${QSF_TEST_JOBS:=$(nproc 2>/dev/null || echo 1)}"
alone=' t_pool t_predict stop build_time '
# Those that wait for a terminal, a server or the network most of their time, like all of tests/ui, run beside
# the others, so that no CPU is idle meanwhile.
waiting=' serve_load get get_tls serve serve_openai posix t_replan '
# Those that take longest begin first, so that the last one does not keep the other CPUs waiting
# (QSF_TEST_TIMES).
first='checkkern serve_load prompt_cache budgets hf_cases architectures ui_resume_memory draft_model
    run_perplexity quality_head posix convert t_plan_sweep quality_calibrate run_parity serve retrieval
    macos t_replan t_forward headers t_oom lora t_kvcache t_oom_draft t_kv_lend experts_qsf hf_dirs carry
    split_scales compressed config format t_expert_equality t_tokenizer_oracle run_tokenizers run_render
    t_pack t_encode t_speculate t_snapshot_lists t_worker_plan convert_bad static recipes dist connect
    connect_screen markdown get screens sessions branches compose models full serve_openai download'

# Few processes are started for a test: hundreds of them take no longer than that.

# Sets now to seconds since any time.
clock() {
    if read -r now _ 2>/dev/null </proc/uptime; then now=${now%.*}; else now=$(date +%s); fi
}

# A private home per test, so that no test sees another's history.
private_home() {
    mkdir -m 700 "$1" "$1/config" "$1/data" "$1/state" "$1/cache" "$1/tmp" "$1/run"
    export HOME="$1" XDG_CONFIG_HOME="$1/config" XDG_DATA_HOME="$1/data"
    export XDG_STATE_HOME="$1/state" XDG_CACHE_HOME="$1/cache" XDG_RUNTIME_DIR="$1/run"
    export TMPDIR="$1/tmp"
}

# start_test TEST PID_FILE: runs it. While it runs, the file has its process and when that began.
# shellcheck disable=SC2086 # an emulator is a command with options
start_test() {
    note=$2
    # Unit tests are deep below the build directory: they use templates/ of the source tree.
    case $1 in
    *.sh) set -- sh "$1" ;;
    */fuzz_*)
        # Inputs worth keeping are stored where make fuzz runs; the templates provide the language of one of
        # them.
        seeds=''
        case $1 in *_jinja) seeds=$QSF_SRCDIR/templates ;; esac
        mkdir -p "corpus/${1##*/}"
        # shellcheck disable=SC2086 # options and an optional directory
        set -- "./$1" $QSF_FUZZ_OPTIONS "corpus/${1##*/}" $seeds
        ;;
    */*)
        export QSF_DATADIR="$QSF_SRCDIR"
        set -- ${QSF_EMULATOR-} "$1"
        ;;
    *) set -- ${QSF_EMULATOR-} "./$1" ;;
    esac
    if ! command -v timeout >/dev/null 2>&1; then
        "$@" </dev/null
        return
    fi
    timeout -k 5 "$QSF_TEST_TIMEOUT" "$@" </dev/null &
    pid=$!
    echo "$pid $start" >"$note"
    wait $pid
}

# Shows what hangs, ten seconds before it is ended, in the output of that test.
watch() {
    while [ -d "$tmp" ]; do
        sleep 5
        clock
        for note in "$tmp"/*.pid; do
            if ! read -r pid began 2>/dev/null <"$note" || [ $((now - began)) -le $((QSF_TEST_TIMEOUT - 10)) ]; then
                continue
            fi
            rm -f "$note"
            stacks "$pid" >>"${note%.pid}.out" 2>&1
        done
    done
}

# Prints what a hanging process and its children are doing, as far as this machine allows.
stacks() {
    # shellcheck disable=SC2013 # numbers
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        echo "still running: $(tr '\0' ' ' <"/proc/$child/cmdline" | cut -c 1-200)"
        gdb -p "$child" -batch -ex 'thread apply all bt 12' 2>/dev/null | grep -E '^(Thread|#)'
        stacks "$child"
    done
}

line() { printf '%-6s %s%s\n' "$1" "$2" "${3:+  ($3)}"; }

# Reports a test: name, exit status, seconds, the file of its output and the lines of it that are shown even
# then; "result NAME" is a line of $results.
tell() {
    case $2 in
    0) line ok "$1" "$3s" && echo "ok $1" >>"$results" ;;
    77) line SKIP "$1" && echo "SKIP $1" >>"$results" ;;
    *)
        why="exit $2"
        [ "$2" != 124 ] || why="no end after $QSF_TEST_TIMEOUT s"
        line FAILED "$1" "$why" && echo "FAILED $1" >>"$results"
        sed 's/^/    | /' "$4"
        ;;
    esac
    case $2$5 in
    0*skip:* | 77*skip:* | 0*number_of_executed*)
        echo "$5" | grep -E 'skip:|number_of_executed' | sort | uniq -c | sed 's/^ *1 //; s/^ */    /'
        ;;
    esac
}

# spent SECONDS NAME FILE: the processor time of the children of this shell, in a line of $QSF_TEST_TIMES.
spent() {
    times >"$3"
    awk -v rest="$1 $2" 'NR == 2 {
        split($1 $2, t, /[ms]/)
        printf "%.2f %.2f %s\n", t[1] * 60 + t[2], t[3] * 60 + t[4], rest
    }' "$3" >>"$QSF_TEST_TIMES"
    rm -f "$3"
}

# The private home of the test, and the files about it.
remove_home() { rm -rf "$own" "$own".* 2>/dev/null || { chmod -R u+w "$own" && rm -rf "$own" "$own".*; }; }

# put_off TEST STATUS OUTPUT: keeps what it printed, and the test for the end, where it may run again.
put_off() {
    [ "${QSF_TEST_AGAIN-}" = 1 ] && [ "$2" -lt 124 ] || return 1
    ! grep -qE 'Sanitizer|runtime error:|terminated by signal|core dumped|Assertion' "$3" || return 1
    echo "again $name  (exit $2)"
    { echo "---- $name, the first time: exit $2" && sed 's/^/    | /' "$3"; } >>"$tmp/unsteady.out"
    echo "$1" >>"$tmp/again"
}

run_one() {
    name=${1##*/}
    name=${name%.sh}
    folder=${1%/*}
    own=$tmp/${folder##*/}.$name # names are unique only within a directory
    private_home "$own"
    clock
    start=$now
    start_test "$1" "$own.pid" >>"$own.out" 2>&1
    rc=$?
    rm -f "$own.pid"
    case $rc in
    0 | 77) ;;
    *) put_off "$1" $rc "$own.out" && { remove_home; return; } ;;
    esac
    shown=$(grep -aE 'skip:|number_of_executed|^\[  PASSED  \] 0 test|SKIPPED' "$own.out")
    # A cmocka program in which every case was skipped ran nothing.
    case $rc$shown in 0*'[  PASSED  ] 0 test'*SKIPPED* | 0*SKIPPED*'[  PASSED  ] 0 test'*) rc=77 ;; esac
    clock
    seconds=$((now - start))
    [ -z "${QSF_TEST_TIMES-}" ] || spent "$seconds" "${folder##*/}/$name" "$own.times"
    tell "$name" $rc $seconds "$own.out" "$shown" >"$own.told"
    cat "$own.told" # in one write, because other tests may report at the same time
    remove_home
}

# Takes tests from lists, which several of these do at the same time, and runs them.
worker() {
    for list; do
        n=0
        while IFS= read -r t; do
            n=$((n + 1))
            claim=$tmp/$list.$n
            if ! [ -e "$claim" ] && (set -C && : >"$claim") 2>/dev/null; then (run_one "$t"); fi
        done <"$tmp/$list"
    done
}
if [ "${1-}" = --worker ]; then
    tmp=$2 results=$2/results
    # More workers than CPUs: only tests that wait.
    if [ "$3" -gt "$QSF_TEST_JOBS" ]; then worker waiting; else worker computing waiting; fi
    exit 0
fi

if [ $# = 0 ] && [ -n "${TESTS-}" ]; then
    echo "no test is called $TESTS" >&2
    exit 1
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qsftest.XXXXXX") || exit 1
trap 'chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
results=$tmp/results
: >"$results"

QSF_PYTHON=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
export QSF_PYTHON # py in tests/system/lib.sh

# The same environment for all: no terminal settings, no home, no make flags of the caller.
export QSF_SRCDIR QSF_BUILDDIR QSF_TEST_DATA QSF_TEST_TIMEOUT QSF_TEST_JOBS
# What AddressSanitizer keeps of freed memory, 256 MB by default, counts against the budgets of tests.
export ASAN_OPTIONS="quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export LC_ALL=C.UTF-8 TZ=UTC0
unset MAKEFLAGS MFLAGS MAKELEVEL QSF_CPU_MASK QSF_DATADIR LINES COLUMNS NO_COLOR DESTDIR 2>/dev/null

# $1 is in the list $2.
listed() {
    name=${1##*/}
    case $2 in *" ${name%.sh} "*) return 0 ;; esac
    return 1
}
by_itself() { [ "$QSF_TEST_JOBS" -gt 1 ] && listed "$1" "$alone"; }
waits() {
    [ "$QSF_TEST_JOBS" -gt 1 ] || return
    case $1 in */tests/ui/*) return 0 ;; esac
    listed "$1" "$waiting"
}
for t; do
    if by_itself "$t"; then
        echo alone "$t"
    elif waits "$t"; then
        echo waiting "$t"
    else echo computing "$t"
    fi
done | first=$first awk '
    BEGIN { n = split(ENVIRON["first"], names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
    { name = $2; sub(/.*\//, "", name); sub(/\.sh$/, "", name) }
    { printf "%d %d %s\n", name in rank ? rank[name] : n + 1, NR, $0 }' | sort -n -k 1,1 -k 2,2 >"$tmp/all"
for list in computing waiting alone; do
    sed -n "s/^[0-9]* [0-9]* $list //p" "$tmp/all" >"$tmp/$list"
done
if [ "$QSF_TEST_TIMEOUT" -gt 10 ]; then
    watch >/dev/null 2>&1 &
    watching=$!
fi
workers=$((QSF_TEST_JOBS + QSF_TEST_JOBS / 2))
seq $workers | xargs -P $workers -n 1 sh "$0" --worker "$tmp"
worker alone
if [ -s "$tmp/again" ]; then
    QSF_TEST_AGAIN=
    worker again
    cat "$tmp/unsteady.out"
    unsteady=$(sed 's/.*\///; s/\.sh$//; s/^/ok /' "$tmp/again" | grep -Fxf - "$results")
    [ -z "$unsteady" ] || echo "unsteady, a fault of the test or of the program:$(echo "$unsteady" |
        sed 's/^ok//' | tr -d '\n')"
fi
[ -z "${watching-}" ] || kill "$watching"

count() { grep -c "^$1 " "$results"; }
failed=$(count FAILED)
[ "$failed" = 0 ] || echo "failed: $(sed -n 's/^FAILED //p' "$results" | tr '\n' ' ')"
# A test without a report counts as failed.
lost=$(($# - $(wc -l <"$results")))
[ $lost = 0 ] || echo "$lost tests did not end"
echo "$(count ok) passed, $((failed + lost)) failed, $(count SKIP) skipped"
[ $((failed + lost)) = 0 ]
