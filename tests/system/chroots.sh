#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The archive of make tarball and the Debian package in a bare system of each Debian release that the mirror
# of this machine has. Minutes, and hundreds of megabytes from the network: only if it is named (make
# check-chroots).
#   QSF_CHROOTS=DIR    keeps the bare systems there, or takes those that are there already
#   QSF_SUITES="..."   other releases
#   QSF_PACKAGES=DIR   the archive and the package that are there, instead of new ones
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "archives are made of the build without sanitizers"
no() { skip "THE RELEASES OF DEBIAN WERE NOT TRIED: $*"; }
[ "$(id -u)" = 0 ] || no "not root"
have debootstrap || no "no debootstrap"
have dpkg-deb && have apt-get || no "this is not Debian"
cd "$QSF_BUILDDIR" || exit 1
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x qsf-chat ] && [ -x "$mktiny" ] || skip "the programs are not built"
# shellcheck disable=SC2016 # apt's variables
apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(RELEASE)' >"$work/targets" 2>/dev/null
# The release of this machine, from the mirror of its own apt.
mirror=$(awk '$1 == "Packages" && $2 == "Debian" && $4 !~ /-/ { print $3; exit }' "$work/targets")
own=$(awk '$1 == "Packages" && $2 == "Debian" && $4 !~ /-/ { print $4; exit }' "$work/targets")
[ -n "$mirror" ] || no "apt has no lists of Debian (apt-get update)"

made=${QSF_PACKAGES-}
if [ -z "$made" ]; then
    made=$work/package
    make_static && "$MAKE" P="$made" tarball package-deb >"$work/log" 2>&1 ||
        { cat "$work/log"; no "make tarball package-deb"; }
fi
archive=$(echo "$made"/qsf-*-linux-*.tar.gz) deb=$(echo "$made"/qsf_*.deb)
roots=${QSF_CHROOTS:-$work/roots}
mkdir -p "$roots"
# shellcheck disable=SC2154 # shellcheck 0.9 does not see that the loop sets it
trap 'for m in "$roots"/*/proc; do umount "$m" 2>/dev/null; done; rm -rf "$work"' EXIT

# bare SUITE: a minimal system of it in $root; false if the mirror has none.
bare() {
    root=$roots/$1
    [ ! -x "$root/usr/bin/apt-get" ] || return 0
    "$(dpkg-query -L apt | grep '/apt-helper$')" download-file "$mirror/dists/$1/InRelease" "$work/InRelease" \
        >/dev/null 2>&1 || return 1
    script=/usr/share/debootstrap/scripts/$1
    [ -f "$script" ] || script=/usr/share/debootstrap/scripts/sid # newer than this debootstrap
    debootstrap --variant=minbase "$1" "$root" "$mirror" "$script" >"$work/log" 2>&1 ||
        { tail -3 "$work/log"; fail "debootstrap $1"; rm -rf "$root"; return 1; }
}
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C chroot "$root" "$@"; }
files() { (cd "$root" && find . -xdev ! -type d ! -path './proc/*' ! -path './var/*' ! -path './tmp/*' \
    ! -path './etc/ld.so.cache' ! -path './root/*' | LC_ALL=C sort); }

# use BIN HOW: the programs below BIN work.
use() {
    for p in chat run convert get; do
        inside "$1/qsf-$p" --version >"$work/out" 2>&1 || { cat "$work/out"; fail "$suite, $2: qsf-$p --version"; }
    done
    start=$(date +%s%N)
    answer=$(echo 'How do I quit?' | inside "$1/qsf-chat" guide 2>"$work/err")
    echo "$suite, $2: the guide answers after $((($(date +%s%N) - start) / 1000000)) ms"
    case $answer in
    */quit*) ;;
    *) cat "$work/err"; fail "$suite, $2: the guide says: $answer" ;;
    esac
    [ "$(inside "$1/qsf-run" /tmp/tiny.gguf --temperature 0 --ignore-eos -n 8 -p a 2>"$work/err")" = "$want" ] ||
        { cat "$work/err"; fail "$suite, $2: another answer than here"; }
    inside "$1/qsf-get" --list hf:nobody/nothing >"$work/out" 2>&1
    grep -qiE 'resolve|refused|certificate|no such model|SSL|timed out|not found|40[1-4]' "$work/out" ||
        { cat "$work/out"; fail "$suite, $2: qsf-get without a network"; }
}

try_archive() {
    inside sh -c 'cd /tmp && gzip -dc q.tar.gz | tar xf - && sh qsf-*/install.sh && rm -rf qsf-*' >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "$suite: install.sh"; return; }
    use /usr/local/bin "the archive"
    inside sh /usr/local/share/qsf/install.sh --uninstall >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "$suite: --uninstall"; }
}

# The package names libraries of the release that it was built on: apt tells whether another one has them.
try_package() {
    # Where this machine accepts old lists, as those of a mirror that stands still are, it does so, too.
    apt-config dump | grep '^Acquire::Check' >"$root/etc/apt/apt.conf.d/99machine"
    inside apt-get -qq update >"$work/out" 2>&1 || { cat "$work/out"; fail "$suite: apt-get update"; return; }
    if ! inside apt-get -s --no-install-recommends install /tmp/q.deb >"$work/out" 2>&1; then
        [ "$suite" != "$own" ] || { cat "$work/out"; fail "$suite: the package cannot be installed where it was built"; }
        echo "$suite, the package: it lacks $(sed -n '/not going to be/d; s/.*Depends: \(.*\) but .*/\1/p' "$work/out" | paste -sd ,)"
        return
    fi
    inside env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install /tmp/q.deb \
        >"$work/out" 2>&1 || { cat "$work/out"; fail "$suite: the package"; return; }
    use /usr/bin "the package"
    inside dpkg --purge qsf >"$work/out" 2>&1 || { cat "$work/out"; fail "$suite: removing the package"; }
    left=$(cd "$root" && find usr etc var/lib/dpkg/info -name '*qsf*')
    [ -z "$left" ] || fail "$suite: the package leaves: $left"
}

"$mktiny" "$work/tiny.gguf" || fail "mktiny"
want=$(./qsf-run "$work/tiny.gguf" --temperature 0 --ignore-eos -n 8 -p a 2>/dev/null </dev/null)
tried=
for suite in ${QSF_SUITES:-bullseye bookworm trixie forky sid}; do
    bare "$suite" || { echo "$suite: the mirror has none"; continue; }
    tried=yes
    rm -rf "$root"/tmp/qsf* "$root"/root/.local "$root"/root/.config
    cp "$archive" "$root/tmp/q.tar.gz"
    cp "$deb" "$root/tmp/q.deb"
    cp "$work/tiny.gguf" "$root/tmp/"
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
    mount -t proc proc "$root/proc" || { fail "mount"; continue; }
    files >"$work/before"
    try_archive
    files >"$work/after"
    diff "$work/before" "$work/after" || fail "$suite: the archive leaves more or less than was there"
    try_package
    umount "$root/proc"
done
[ -n "$tried" ] || no "the mirror has none of them"
finish
