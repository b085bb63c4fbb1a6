#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# configure --enable-static and, in the long tests, make static: the programs need no shared library, at
# start or later, and give the same answers. Links the objects of this build again.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "sanitizers are not linked statically"
. "$(dirname "$0")/model.sh"
cd "$work" || exit 1

sh "$QSF_SRCDIR/configure" "CC=$(config CC)" --enable-static >log 2>&1 ||
    { cat log; skip "no static libraries here"; }
without=$(sed -n 's/.*(qsf-chat .*no static form of\(.*\) here)/\1/p' log)
setting() { sed -n "s/^$1 = //p" config.mk; }
built=$QSF_BUILDDIR/obj

# objects FOLDER LEVELS: of the sources there now: a build directory may hold those of earlier versions.
objects() {
    for c in $(cd "$QSF_SRCDIR" && find "$1" -maxdepth "$2" -name '*.c'); do echo "$built/${c%.c}.o"; done
}
# link_static PROGRAM LDFLAGS LIBS OBJECTS...: any output of the linker is a failure.
link_static() {
    program=$1 ldflags=$2 libs=$3
    shift 3
    # shellcheck disable=SC2086
    $CC $ldflags -o "$program" "$@" "$built/libengine.a" $libs >log 2>&1 ||
        { cat log; fail "$program is not linked"; return; }
    # readline asks the system for the names of users, to complete ~user: the chat does not use this.
    grep 'warning' log | grep -vE "^[^ ]*libreadline.*|Using '(get|set|end)pw(nam|uid|ent)'" >warnings
    [ ! -s warnings ] || { cat log; fail "the linker warns about $program"; }
    "./$program" --version >out 2>&1 || { cat out; fail "$program --version"; }
}
alone() { ! ldd "./$1" >out 2>&1 || grep -q 'statically linked' out ||
    { cat out; fail "$1 needs shared libraries"; }; }

ask="--temperature 0 --ignore-eos -n 8 -p a"
if [ -z "${QSF_TEST_QUICK-}" ]; then
    if ! make_static; then
        tail -5 log
        echo "skip: MAKE STATIC WAS NOT TRIED: static libraries are missing here and could not be built"
    else
        ! grep warning log || fail "the linker warns: something would be loaded at run time"
        for p in chat run convert get serve; do
            [ -x "$QSF_BUILDDIR/qsf-$p" ] || continue
            ln -s "$QSF_BUILDDIR/static/qsf-$p" "called-$p"
            # Which program it is depends on the file, whatever it is called by.
            [ "$("./called-$p" --version)" = "$("$QSF_BUILDDIR/qsf-$p" --version)" ] || fail "static/qsf-$p --version"
            alone "called-$p"
        done
        # shellcheck disable=SC2086
        [ "$(./called-run "$tiny" $ask 2>err </dev/null)" = "$("$run" "$tiny" $ask 2>/dev/null </dev/null)" ] ||
            { cat err; fail "static/qsf-run gives another answer"; }
        ./called-convert "$tiny" m.qsf >log 2>&1 || { cat log; fail "static/qsf-convert"; }
        # Without a home directory, readline asks for the one of the user.
        [ -n "$(echo a | env -i ./called-chat --plain --no-config --temperature 0 --max-tokens 4 "$tiny" 2>err)" ] ||
            { cat err; fail "static/qsf-chat without an environment"; }
        [ ! -x called-get ] || QSF_GET=$work/called-get sh "$QSF_SRCDIR/tests/system/get_tls.sh" >log 2>&1 || [ $? = 77 ] ||
            { cat log; fail "static/qsf-get and HTTPS"; }
    fi
fi

lib_libs=$(setting LIB_LIBS) static=$(setting LDFLAGS)
# shellcheck disable=SC2046
link_static qsf-run "$static" "$lib_libs" $(objects src/run 1)
alone qsf-run
# shellcheck disable=SC2046
link_static qsf-convert "$static" "$lib_libs" $(objects src/convert 1)
alone qsf-convert
# shellcheck disable=SC2086
[ "$(./qsf-run "$tiny" $ask 2>err </dev/null)" = "$("$run" "$tiny" $ask 2>/dev/null </dev/null)" ] ||
    { cat err; fail "another answer"; }
./qsf-convert "$tiny" t.qsf >log 2>&1 && ./qsf-convert --verify t.qsf >log 2>&1 ||
    { cat log; fail "qsf-convert"; }

[ "$(setting UI_STATIC)" = yes ] ||
    { echo "skip: qsf-chat is not static: no static form of$without here"; finish; }
# shellcheck disable=SC2046
link_static qsf-chat "$static" "$(setting UI_LIBS) $lib_libs" $(objects ui 2)
alone qsf-chat
# shellcheck disable=SC2086
[ -n "$(echo a | ./qsf-chat --plain --temperature 0 --max-tokens 4 "$tiny" 2>err)" ] ||
    { cat err; fail "qsf-chat --plain prints nothing"; }
finish
