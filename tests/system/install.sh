#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The files that make install installs and where, that they work from there, and that make uninstall removes
# all of them.
. "$(dirname "$0")/lib.sh"
cd "$QSF_BUILDDIR" || exit 1
have "$MAKE" || skip "no make"
case $work in *' '*) skip "make takes no spaces in the names of directories" ;; esac

root=$work/root
# Separate directories, none of them below another.
set -- DESTDIR="$root" bindir=/o/b libdir=/o/l includedir=/o/i mandir=/o/m datadir=/o/d zshcompletiondir=/o/z
"$MAKE" install "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "make install"; finish; }
find "$root" -type f | sed "s|^$root||" | sort >"$work/got"

{
    for p in run chat convert; do
        [ ! -f "$QSF_SRCDIR/src/$p/main.c" ] || echo "/o/b/qsf-$p"
    done
    [ ! -f "$QSF_SRCDIR/ui/main.c" ] || echo /o/b/qsf-chat
    [ ! -x qsf-get ] || echo /o/b/qsf-get
    [ ! -x qsf-serve ] || echo /o/b/qsf-serve
    printf '%s\n' /o/l/libqsf.a /o/l/pkgconfig/qsf.pc /o/i/qsf.h /o/i/qsf_engine.h /o/i/qsf_settings.h
    for f in "$QSF_SRCDIR"/man/*.[15]; do
        [ ! -f "$f" ] || echo "/o/m/man${f##*.}/${f##*/}"
    done
    for f in "$QSF_SRCDIR"/templates/*; do
        [ ! -f "$f" ] || echo "/o/d/qsf/templates/${f##*/}"
    done
    for f in "$QSF_SRCDIR"/templates/games/*; do
        [ ! -f "$f" ] || echo "/o/d/qsf/templates/games/${f##*/}"
    done
    for f in "$QSF_SRCDIR"/models/*.qsf; do
        [ ! -f "$f" ] || echo "/o/d/qsf/models/${f##*/}"
    done
    printf '%s\n' /o/d/applications/qsf.desktop /o/d/icons/hicolor/scalable/apps/qsf.svg
    [ ! -x qsf-serve ] || echo /o/d/systemd/user/qsf-serve.service
    for p in qsf-run qsf-chat qsf-convert qsf-get qsf-serve; do
        [ -x "$p" ] || continue
        printf '%s\n' "/o/d/bash-completion/completions/$p" "/o/z/_$p" "/o/d/fish/vendor_completions.d/$p.fish"
    done
} | sort >"$work/want"
diff "$work/want" "$work/got" || fail "installed files differ from the list above (< wanted, > installed)"

for f in "$root"/o/b/*; do
    [ -f "$f" ] || continue
    [ -x "$f" ] || fail "$f is not executable"
    (cd / && "$f" --version) >"$work/out" 2>&1 || { cat "$work/out"; fail "$f --version"; }
done

# An external program, built with only the installed files.
pc="$(config PKG_CONFIG)"
if [ -n "$pc" ] && have "$pc"; then
    cat >"$work/hello.c" <<EOF
#include <qsf.h>
#include <qsf_engine.h>
#include <stdio.h>
int main(void)
{
    const char *why = qsf_error();
    puts(why ? why : "no error");
    return 0;
}
EOF
    PKG_CONFIG_PATH=$root/o/l/pkgconfig
    export PKG_CONFIG_PATH
    # The same sanitizers as the library; qsf.pc provides everything else.
    san=$(config EXTRA_CFLAGS | tr ' ' '\n' | grep '^-fsanitize' | tr '\n' ' ')
    flags=$("$pc" --define-variable=libdir="$root/o/l" --define-variable=includedir="$root/o/i" --cflags \
        --libs qsf) ||
        fail "pkg-config does not accept qsf.pc"
    for dir in libdir:/o/l includedir:/o/i; do
        [ "$("$pc" --variable="${dir%%:*}" qsf)" = "${dir#*:}" ] || fail "qsf.pc names another ${dir%%:*}"
    done
    # shellcheck disable=SC2046,SC2086
    $CC -std=c11 -Wall -Werror $san $(config LDFLAGS) -o "$work/hello" "$work/hello.c" $flags >"$work/log" \
        2>&1 ||
        { cat "$work/log"; fail "a program that uses qsf.pc does not build"; }
    if [ -x "$work/hello" ]; then "$work/hello" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "that program does not run"; }; fi
else
    echo "skip: no pkg-config: qsf.pc was not tried"
fi

if [ -f "$QSF_SRCDIR/models/guide.qsf" ]; then
    # If moved together, the programs find their data beside them: the guide answers from there.
    "$MAKE" install DESTDIR="$work/moved" prefix=/p >"$work/log" 2>&1 || { cat "$work/log"; fail "make install prefix=/p"; }
    (cd / && "$work/moved/p/bin/qsf-run" --inspect guide) >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "no guide where it was installed"; }
    grep -q "$work/moved/p/" "$work/out" || { cat "$work/out"; fail "the guide came from elsewhere"; }
fi

touch "$root/o/b/somebody-elses"
"$MAKE" uninstall "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "make uninstall"; }
left=$(find "$root" -type f | sed "s|^$root||")
[ "$left" = /o/b/somebody-elses ] || fail "make uninstall leaves: $left"
[ ! -d "$root/o/d/qsf" ] || fail "make uninstall leaves /o/d/qsf"
finish
