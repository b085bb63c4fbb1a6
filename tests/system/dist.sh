#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make dist: the same bytes again, from what was unpacked, in another directory and with another umask.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
case $work in *' '*) skip "make takes no spaces in the names of directories" ;; esac

# archive SOURCES DIRECTORY: make dist of these sources in a directory with the configuration of this build.
archive() {
    mkdir "$2" && cp -p "$QSF_BUILDDIR/config.mk" "$QSF_BUILDDIR/config.flags" "$QSF_BUILDDIR/config.h" \
        "$QSF_BUILDDIR/config.stamp" "$2" && touch "$2/config.stamp"
    (cd "$2" && "$MAKE" -f "$1/Makefile" srcdir="$1" abs_srcdir="$1" dist) >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "make dist of $1"; finish; }
}
archive "$QSF_SRCDIR" "$work/first"
name=$(basename "$work"/first/qsf-*.tar.gz)
umask 077
mkdir -p "$work/a/longer/path"
gzip -dc "$work/first/$name" | tar xf - -C "$work/a/longer/path" --no-same-permissions --no-same-owner
archive "$work/a/longer/path/${name%.tar.gz}" "$work/second"
cmp "$work/first/$name" "$work/second/$name" || fail "other bytes"

# As they are listed: sorted, of root, with the modes that Git has.
gzip -dc "$work/first/$name" | tar tvf - >"$work/list"
[ -z "$(grep -vE '^(-rwxr-xr-x|-rw-r--r--|drwxr-xr-x|l.........) 0/0 ' "$work/list")" ] ||
    fail "modes or owners: $(grep -vE '^(-rwxr-xr-x|-rw-r--r--|drwxr-xr-x|l.........) 0/0 ' "$work/list" | head -3)"
for f in configure .ci/run packaging/install.sh; do
    grep -q "^-rwx.* ${name%.tar.gz}/$f\$" "$work/list" || fail "$f is not executable"
done
finish
