#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The recipes for Homebrew, Nix and the AUR: of this version, with all the libraries that configure looks
# for, and without mistakes that their languages know, as far as these are installed.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
have bash || skip "no bash: a PKGBUILD is a script for it"
cd "$QSF_SRCDIR" || exit 1
version=$(cat VERSION)
formula=packaging/homebrew/qsf.rb pkgbuild=packaging/aur/PKGBUILD

grep -q "^  url \".*/qsf-$version\.tar\.gz\"$" $formula || fail "$formula is not of version $version"
grep -qx "pkgver=$version" $pkgbuild || fail "$pkgbuild is not of version $version"
grep -q 'version = lib.fileContents ./VERSION;' flake.nix || fail "flake.nix does not read VERSION"
# Nothing else in them looks like a version of QSF.
for f in $formula $pkgbuild flake.nix; do
    sed -n '/^ *sha256/d; s/.*[^0-9.]\([0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' $f | grep -vxF "$version" >"$work/other"
    [ ! -s "$work/other" ] || fail "$f has another version, too: $(cat "$work/other")"
done

# configure has the names of the packages of each system: apt-get) packages='cc=gcc ...'.
packages_of() { sed -n "/^$1) packages=/,/;;/p" configure | tr " '" '\n\n' | sed -n "s/^$2=//p" | grep -vx -e -; }
for need in curses readline md4c utf8proc pcre2 jansson inih curl nettle microhttpd deflate lz4 zstd uring; do
    name=$(packages_of pacman $need)
    # shellcheck disable=SC2016
    bash -c '. "$1"; printf "%s\n" "${depends[@]}"' - $pkgbuild | grep -qxF "${name:-?}" ||
        fail "$pkgbuild lacks ${name:-$need}"
    name=$(packages_of brew $need)
    [ $need != uring ] || name=liburing # on macOS there is none
    grep -qxF "  depends_on \"$name\"" $formula || fail "$formula lacks $name"
    grep -qx " *$name" flake.nix || fail "flake.nix lacks $name"
done

bash -n $pkgbuild || fail "$pkgbuild"
if have shellcheck; then
    # Its variables are used by makepkg, which also sets some, and ends when a command fails.
    shellcheck -s bash -S warning -e SC2034,SC2154,SC2164 $pkgbuild packaging/aur/srcinfo || fail "$pkgbuild"
else echo "skip: no shellcheck"; fi
if have ruby; then ruby -wc $formula >"$work/out" 2>&1 || { cat "$work/out"; fail "$formula"; }
else echo "skip: no ruby: $formula was not parsed"; fi
if have nix-instantiate; then
    HOME=$work nix-instantiate --parse flake.nix >/dev/null 2>"$work/out" || { cat "$work/out"; fail "flake.nix"; }
else echo "skip: no nix-instantiate: flake.nix was not parsed"; fi

# make recipes: with the checksum of the archive, and .SRCINFO.
mkdir "$work/build" && cp -p "$QSF_BUILDDIR"/config.mk "$QSF_BUILDDIR"/config.flags "$QSF_BUILDDIR"/config.h "$work/build"
touch "$work/build/config.stamp"
(cd "$work/build" && "$MAKE" -f "$QSF_SRCDIR/Makefile" srcdir="$QSF_SRCDIR" abs_srcdir="$QSF_SRCDIR" recipes) \
    >"$work/log" 2>&1 || { cat "$work/log"; fail "make recipes"; finish; }
sum=$(sha256sum "$work/build/qsf-$version.tar.gz" | cut -d ' ' -f 1)
cd "$work/build/package" || exit 1
[ "$(grep -c "$sum" homebrew/qsf.rb aur/PKGBUILD aur/.SRCINFO | cut -d : -f 2 | paste -sd ' ')" = "1 1 1" ] ||
    fail "make recipes: the checksum is missing"
tab=$(printf '\t')
for row in 'pkgbase = qsf' "${tab}pkgver = $version" "${tab}depends = libinih" "${tab}arch = aarch64" \
    "${tab}source = https://example.org/qsf/qsf-$version.tar.gz" 'pkgname = qsf'; do
    grep -qxF "$row" aur/.SRCINFO || { cat aur/.SRCINFO; fail ".SRCINFO lacks: $row"; }
done
finish
