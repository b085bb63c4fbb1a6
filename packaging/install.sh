#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs QSF from the unpacked archive that this file is in, or removes it again:
#   sh install.sh [--prefix=DIR] [--force]
#   sh DIR/share/qsf/install.sh --uninstall
# The list of what was installed, DIR/share/qsf/installed, has a line per file (f) and per directory that was
# not there before (d). Configuration, conversations and models of users are in none of these directories.
set -eu
umask 022
unset CDPATH

usage() {
    cat <<END
usage: sh install.sh [options]
  --prefix=DIR   install below DIR (default: ~/.local, for root /usr/local)
  --force        replace files of the same names that come from elsewhere
  --uninstall    remove exactly what was installed below DIR
  --help         this text
END
}
die() { echo "install.sh: $*" >&2; exit 1; }

# The lines of the list that begin with $1, without it.
listed() { [ ! -f "$record" ] || sed -n "s/^$1 //p" "$record"; }
# A list that was tampered with never leads out of the prefix.
plain_path() { case /$1/ in *//* | */../*) return 1 ;; esac }

# ---- remove

uninstall() {
    [ -f "$record" ] || die "nothing was installed below $prefix by this script ($record is missing)"
    files=$(listed f) dirs=$(listed d | LC_ALL=C sort -r)
    for path in $files; do
        ! plain_path "$path" || rm -f "$prefix/$path"
    done
    rm -f "$record"
    # Directories that have something else in them by now stay.
    for path in $dirs; do
        ! plain_path "$path" || rmdir "$prefix/$path" 2>/dev/null || true
    done
    [ -z "$top" ] || rmdir "$prefix" 2>/dev/null || true
    echo "QSF was removed from $prefix. Your settings, conversations and models are still where they were."
}

# ---- install

# Nothing is changed before it is clear that nothing else would be overwritten.
find_conflicts() {
    listed f >"$lists/old"
    cut -d ' ' -f 2 "$here/MANIFEST" >"$lists/new"
    conflicts=
    while read -r path; do
        [ ! -e "$prefix/$path" ] || grep -qxF "$path" "$lists/old" || conflicts="$conflicts
  $prefix/$path"
    done <"$lists/new"
    [ -z "$conflicts" ] || [ "$force" = yes ] ||
        die "these files are there, but not from this script (--force replaces them):$conflicts"
}

# Directories of the new files that do not exist, each after the one that it is in.
missing_dirs() {
    while read -r path; do
        while case $path in */*) ;; *) false ;; esac do
            path=${path%/*}
            [ -d "$prefix/$path" ] || echo "$path"
        done
    done <"$lists/new" | LC_ALL=C sort -u
}

write_record() {
    mkdir -p "$prefix/share/qsf"
    {
        echo "# what install.sh installed: f = file, d = directory"
        [ -z "$top" ] || echo "top"
        sed 's/^/d /' "$lists/dirs"
        sed 's/^/f /' "$1"
    } >"$record.new"
    mv -f "$record.new" "$record"
}

# put MODE PATH [SAME]: replaces the file at once, so that a running program keeps its own. SAME: a file that
# was installed before and has the same contents.
put() {
    new=$prefix/$2.new.$$
    mkdir -p "$(dirname "$new")"
    { [ -n "${3-}" ] && ln "$prefix/$3" "$new" 2>/dev/null; } ||
        { cp "$here/$2" "$new" && chmod "$1" "$new"; } ||
        { rm -f "$new"; die "$prefix/$2 was not written"; }
    mv -f "$new" "$prefix/$2"
}

install() {
    [ -f "$here/MANIFEST" ] || die "$here/MANIFEST is missing: run it where the archive was unpacked"
    machine=$(cat "$here/MACHINE")
    [ "$(uname -s) $(uname -m)" = "Linux $machine" ] ||
        die "these programs are for Linux on $machine; this is $(uname -s) on $(uname -m)"
    lists=$(mktemp -d)
    trap 'rm -rf "$lists"' EXIT
    find_conflicts
    { listed d; missing_dirs; } | LC_ALL=C sort -u >"$lists/dirs"
    LC_ALL=C sort -u "$lists/old" "$lists/new" >"$lists/all"
    write_record "$lists/all" # with everything, in case of an interruption
    while read -r mode path same; do
        put "$mode" "$path" "$same"
    done <"$here/MANIFEST"
    for path in $(grep -vxF -f "$lists/new" "$lists/old" || true); do # of an earlier version only
        ! plain_path "$path" || rm -f "$prefix/$path"
    done
    write_record "$lists/new"
    version=$("$prefix/bin/qsf-chat" --version) || die "the installed qsf-chat does not run here"
    echo "$version is installed in $prefix. To remove it: sh $prefix/share/qsf/install.sh --uninstall"
    say_path
}

say_path() {
    case :${PATH-}: in
    *":$prefix/bin:"*) echo "Start it: qsf-chat" ;;
    *)
        echo "Start it: $prefix/bin/qsf-chat"
        echo "$prefix/bin is not in PATH. To have it there, add this line to ~/.profile and log in again:"
        echo "  export PATH=\"$prefix/bin:\$PATH\""
        ;;
    esac
}

# The shell has read all of it before anything is done: it may remove itself.
main() {
    prefix='' force=no action=install
    here=$(cd "$(dirname "$0")" && pwd)
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix=?*) prefix=${1#*=} ;;
        --prefix)
            [ $# -gt 1 ] || die "--prefix needs a directory"
            prefix=$2
            shift
            ;;
        --force) force=yes ;;
        --uninstall) action=uninstall ;;
        --help | -h) usage; exit 0 ;;
        *) echo "install.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
        esac
        shift
    done
    # The installed copy knows where it is.
    [ -n "$prefix" ] || [ ! -f "$here/installed" ] || prefix=${here%/share/qsf}
    if [ -z "$prefix" ] && [ "$(id -u)" = 0 ]; then prefix=/usr/local; fi
    [ -n "$prefix" ] || [ -n "${HOME-}" ] || die "HOME is not set: use --prefix=DIR"
    : "${prefix:=$HOME/.local}"
    case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
    case $prefix in ?*/) prefix=${prefix%/} ;; esac
    record=$prefix/share/qsf/installed
    top=''
    if [ ! -d "$prefix" ] || grep -qx top "$record" 2>/dev/null; then top=yes; fi
    if [ $action = uninstall ]; then uninstall; else install; fi
}
main "$@"
exit
