#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs with the files of src/base/posix instead of those of src/base/linux: threads that sleep on
# condition variables, mappings that are copied, no reads past the page cache, no files without a name. macOS
# has most of them; here they run. Links the objects of this build again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
cd "$work" || exit 1
built=$QSF_BUILDDIR/obj

# Unit tests of what differs: wake-ups, and memory that is returned. (Of the others, t_io asks what POSIX
# alone does not tell, and t_savefile tries files with and without names everywhere.)
tests='base/t_pool forward/t_replan'
[ -n "${QSF_TEST_QUICK-}" ] || tests="$tests base/t_ledger stream/t_stream stream/t_faults"
needed=$(cd "$QSF_SRCDIR" && ls src/base/posix/*.c tests/harness/*.c tests/unit/units.c)
for t in $tests; do needed="$needed tests/unit/$t.c"; done
for c in $needed; do echo "obj/${c%.c}.o"; done >made
# shellcheck disable=SC2046 # words
(cd "$QSF_BUILDDIR" && "$MAKE" -s --no-print-directory $(cat "$work/made")) >log 2>&1 ||
    { cat log; fail "the files are not compiled"; finish; }
# objects FOLDER LEVELS: of the sources there now: a build directory may hold those of earlier versions.
objects() {
    (cd "$QSF_SRCDIR" && find "$1" -maxdepth "$2" -name '*.c') | sed "s|.*|$built/&|; s|c\$|o|"
}
# linked PROGRAM LIBS OBJECTS...: the files of Linux stay in the archive, because nothing asks for them; if
# one defines something more, its other names are defined twice.
linked() {
    program=$1 libs=$2
    shift 2
    # shellcheck disable=SC2046,SC2086
    $CC $(config CFLAGS) $(config EXTRA_CFLAGS) $(config LDFLAGS) $(config EXTRA_LDFLAGS) -o "$program" "$@" \
        $(objects src/base/posix 1 | grep -v "${but:-/none}") "$built/libengine.a" $libs $(config LIB_LIBS) \
        >log 2>&1 && return
    cat log
    fail "$program is not linked"
    finish
}
# shellcheck disable=SC2046
linked posix-run '' $(objects src/run 1)
if have nm; then
    nm posix-run >names
    grep -q ' [bBdD] buckets$' names || fail "posix-run does not have the files of POSIX"
fi

# same OPTIONS...: both programs print the same, and it is not empty.
same() {
    ./posix-run "$@" >got 2>err </dev/null || { cat err; fail "posix-run $*"; }
    "$run" "$@" >wanted 2>err </dev/null || { cat err; fail "qsf-run $*"; }
    [ -s got ] && cmp -s got wanted || { diff got wanted; fail "another output: $*"; }
}
export QSF_DATADIR="$QSF_SRCDIR"
same "$QSF_SRCDIR/models/guide.qsf" --temperature 0 -n 24 -p 'How do I change the RAM budget?'
for io in pread mmap uring; do
    same "$tiny" --temperature 0 --ignore-eos -n 24 -p 'a the in' --pin 0 --io $io --threads 3
done
"$QSF_BUILDDIR/obj/tests/tools/mktiny" sparse.gguf experts=stacked 2>log ||
    { cat log; fail "mktiny"; }
same sparse.gguf --temperature 0 --ignore-eos -n 24 -p 'a the in' --ram-budget auto

# The conversation of a session, and its file.
if [ -x "$QSF_BUILDDIR/qsf-chat" ]; then
    # shellcheck disable=SC2046
    linked posix-chat "$(config UI_LIBS)" $(objects ui 9)
    printf 'a\n/ctx 256\nb\n/save one\n' | HOME=$work ./posix-chat --plain --no-config --temperature 0 \
        --max-tokens 8 "$tiny" >got 2>err || { cat err; fail "posix-chat"; }
    printf 'a\n/ctx 256\nb\n' | HOME=$work "$QSF_BUILDDIR/qsf-chat" --plain --no-config --temperature 0 \
        --max-tokens 8 "$tiny" >wanted 2>err || { cat err; fail "qsf-chat"; }
    [ -s wanted ] || fail "no answer"
    head -c "$(($(wc -c <wanted)))" got | cmp -s - wanted || { diff got wanted; fail "another conversation"; }
fi

but=/memory.o # the tests ask how much of it is returned
for t in $tests; do
    # shellcheck disable=SC2046
    linked "${t#*/}" "$(config CMOCKA_LIBS)" "$built/tests/unit/$t.o" "$built/tests/unit/units.o" \
        $(objects tests/harness 1)
    "./${t#*/}" >out 2>&1 || [ $? = 77 ] || { tail -n 30 out; fail "$t"; }
done
finish
