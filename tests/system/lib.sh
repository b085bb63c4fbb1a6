# SPDX-License-Identifier: GPL-3.0-or-later
# Shared by the scripts beside it; sourced, never run.
# shellcheck shell=sh

: "${QSF_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}" "${QSF_BUILDDIR:=$(pwd)}"
: "${CC:=cc}" "${MAKE:=make}"
bad=0

skip() { echo "skip: $*"; exit 77; }
fail() { echo "FAIL: $*"; bad=1; }
finish() { exit $bad; }
have() { command -v "$1" >/dev/null 2>&1; }

# Removed at the end: everything a script makes goes below it.
work=$(mktemp -d "${TMPDIR:-/tmp}/qsfsys.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# One variable of this build's config.mk.
config() { sed -n "s/^$1 = //p" "$QSF_BUILDDIR/config.mk"; }
