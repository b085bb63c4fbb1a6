#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make package: packages for Debian and RPM with all programs, twice the same bytes, without complaints of
# lintian and rpmlint.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "packages are made of the build without sanitizers"
have dpkg-shlibdeps && have dpkg-deb || skip "THE PACKAGES WERE NOT MADE: dpkg-dev is not installed"
cd "$QSF_BUILDDIR" || exit 1
[ -x qsf-chat ] || skip "the programs are not built"

kinds=package
if have rpmbuild && ! make_static; then
    tail -5 "$work/log"
    echo "skip: THE RPM PACKAGE WAS NOT MADE: static libraries are missing here and could not be built"
    kinds=package-deb
fi
made=$work/package
"$MAKE" P="$made" $kinds >"$work/log" 2>&1 || { cat "$work/log"; fail "make $kinds"; finish; }
! grep 'no RPM package' "$work/log" || echo "skip: THE RPM PACKAGE WAS NOT MADE: no rpmbuild"
sha256sum "$made"/*.deb "$made"/*.rpm >"$work/first" 2>/dev/null
[ "$(grep -c 'deb$' "$work/first")" = 2 ] || fail "two packages for Debian were expected"
"$MAKE" P="$made" $kinds >"$work/log" 2>&1 || { cat "$work/log"; fail "make $kinds again"; finish; }
sha256sum -c "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; fail "other bytes the second time"; }

dpkg-deb -x "$made"/qsf_*.deb "$work/root"
for f in bin/qsf-chat bin/qsf-run bin/qsf-convert share/man/man1/qsf-chat.1.gz \
    share/applications/qsf.desktop share/qsf/models/guide.qsf \
    share/bash-completion/completions/qsf-chat share/doc/qsf/copyright; do
    [ -f "$work/root/usr/$f" ] || fail "/usr/$f is not in the package"
done
# From where it is unpacked: the programs find their data relative to themselves.
echo /quit | "$work/root/usr/bin/qsf-chat" --no-config guide >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "the unpacked chat"; }
if have lintian; then
    lintian --allow-root "$made"/*.deb >"$work/lint" 2>&1
    ! grep -E '^[EW]: ' "$work/lint" || fail "lintian"
else
    echo "skip: lintian is not installed"
fi
for f in "$made"/*.rpm; do
    [ -f "$f" ] || continue
    [ -z "$(rpm -qp --requires "$f" 2>/dev/null | grep -v '^rpmlib')" ] || fail "the RPM package needs others"
    for path in bin/qsf-chat bin/qsf-get share/man/man1/qsf-chat.1.gz share/man/man1/qsf-get.1.gz \
        share/qsf/models/guide.qsf; do
        rpm -qpl "$f" 2>/dev/null | grep -qx "/usr/$path" || fail "/usr/$path is not in the RPM package"
    done
    if have rpmlint; then
        rpmlint -c "$QSF_SRCDIR/packaging/rpmlint.toml" "$f" >"$work/lint" 2>&1
        ! grep -E ': [EW]: ' "$work/lint" || fail "rpmlint"
    else
        echo "skip: rpmlint is not installed"
    fi
done
finish
