#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make package: Debian packages with all programs, twice the same bytes, without complaints of lintian.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "packages are made of the build without sanitizers"
have dpkg-shlibdeps && have dpkg-deb || skip "THE PACKAGES WERE NOT MADE: dpkg-dev is not installed"
cd "$QSF_BUILDDIR" || exit 1
[ -x qsf-chat ] || skip "the programs are not built"

"$MAKE" package >"$work/log" 2>&1 || { cat "$work/log"; fail "make package"; finish; }
sha256sum package/*.deb >"$work/first"
[ "$(wc -l <"$work/first")" = 2 ] || fail "two packages were expected"
"$MAKE" package >"$work/log" 2>&1 || { cat "$work/log"; fail "make package again"; finish; }
sha256sum -c "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; fail "other bytes the second time"; }

dpkg-deb -x package/qsf_*.deb "$work/root"
for f in bin/qsf-chat bin/qsf-run bin/qsf-convert share/man/man1/qsf-chat.1.gz \
    share/applications/qsf.desktop share/qsf/models/guide.qsf \
    share/bash-completion/completions/qsf-chat share/doc/qsf/copyright; do
    [ -f "$work/root/usr/$f" ] || fail "/usr/$f is not in the package"
done
# From where it is unpacked: the programs find their data relative to themselves.
echo /quit | "$work/root/usr/bin/qsf-chat" --no-config guide >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "the unpacked chat"; }
if have lintian; then
    lintian --allow-root package/*.deb >"$work/lint" 2>&1
    ! grep -E '^[EW]: ' "$work/lint" || fail "lintian"
else
    echo "skip: lintian is not installed"
fi
rm -rf package
finish
