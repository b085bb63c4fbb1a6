#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs test programs and scripts, one line each; the output is shown only on failure. Exit code 77
# of a test means skipped, and its "skip:" lines are shown. The last line is the totals alone.
# usage: run.sh TEST...      environment: QSF_SRCDIR QSF_BUILDDIR [QSF_TEST_DATA] [QSF_TEST_TIMEOUT]

set -u
: "${QSF_SRCDIR:=$(pwd)}" "${QSF_BUILDDIR:=$(pwd)}"
: "${QSF_TEST_DATA:=$QSF_SRCDIR/../shared}" "${QSF_TEST_TIMEOUT:=300}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qsftest.XXXXXX") || exit 1
trap 'chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# The same world for everybody: no terminal settings, no home, no make flags of the caller.
export QSF_SRCDIR QSF_BUILDDIR QSF_TEST_DATA
export LC_ALL=C.UTF-8 TZ=UTC0
unset MAKEFLAGS MFLAGS MAKELEVEL QSF_CPU_MASK QSF_DATADIR LINES COLUMNS NO_COLOR DESTDIR 2>/dev/null

if [ $# = 0 ] && [ -n "${TESTS-}" ]; then
    echo "no test is called $TESTS" >&2
    exit 1
fi
passed=0 failed=0 skipped=0
failures=''

# A private home per test, so that no test sees another's history.
private_home() {
    home=$tmp/$1
    mkdir -p "$home/config" "$home/data" "$home/state" "$home/cache" "$home/run" "$home/tmp"
    chmod 700 "$home/run"
    export HOME="$home" XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data"
    export XDG_STATE_HOME="$home/state" XDG_CACHE_HOME="$home/cache" XDG_RUNTIME_DIR="$home/run"
    export TMPDIR="$home/tmp"
}

run_one() {
    # Unit tests lie deep below the build directory: they take templates/ from the source tree.
    case $1 in
    *.sh) set -- sh "$1" ;;
    */*) set -- env QSF_DATADIR="$QSF_SRCDIR" "$1" ;;
    *) set -- "./$1" ;;
    esac
    if command -v timeout >/dev/null 2>&1; then set -- timeout -k 5 "$QSF_TEST_TIMEOUT" "$@"; fi
    "$@" >"$tmp/out" 2>&1 </dev/null
}

line() { printf '%-6s %s%s\n' "$1" "$2" "${3:+  ($3)}"; }

for t; do
    name=${t##*/}
    name=${name%.sh}
    private_home "$name"
    start=$(date +%s)
    run_one "$t"
    rc=$?
    secs=$(($(date +%s) - start))s
    # A cmocka program in which every case was skipped ran nothing.
    if [ $rc = 0 ] && grep -q '^\[  PASSED  \] 0 test' "$tmp/out" && grep -q 'SKIPPED' "$tmp/out"; then rc=77; fi
    case $rc in
    0) passed=$((passed + 1)); line ok "$name" "$secs" ;;
    77) skipped=$((skipped + 1)); line SKIP "$name" ;;
    *)
        failed=$((failed + 1))
        failures="$failures $name"
        why="exit $rc"
        [ $rc != 124 ] || why="no end after $QSF_TEST_TIMEOUT s"
        line FAILED "$name" "$why"
        sed 's/^/    | /' "$tmp/out"
        ;;
    esac
    case $rc in
    0 | 77) grep -a 'skip:' "$tmp/out" | sort | uniq -c | sed 's/^ *1 //; s/^ */    /' ;;
    esac
    chmod -R u+w "$tmp/$name" 2>/dev/null
    rm -rf "${tmp:?}/$name"
done

[ -z "$failures" ] || echo "failed:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
