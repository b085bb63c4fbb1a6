#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every C file is formatted according to .clang-format.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
cd "$QSF_SRCDIR" || exit 1

format=''
for program in clang-format-14 clang-format; do
    [ -n "$format" ] || ! "$program" --version 2>/dev/null | grep -q 'version 14\.' || format=$program
done
[ -n "$format" ] ||
    skip "THE FORMAT OF THE C FILES WAS NOT CHECKED: it needs clang-format 14 (other versions format differently)"

# Without git, as in a tarball, the files in the source directories; generated files are in build directories.
git ls-files -- '*.c' '*.h' >"$work/files" 2>/dev/null
[ -s "$work/files" ] || find src ui get include kernels tests tools -name '*.[ch]' >"$work/files"
[ "$(wc -l <"$work/files")" -gt 300 ] || fail "too few C files found below $QSF_SRCDIR"

# Files that were deleted but are still in the index are skipped.
while read -r file; do [ ! -f "$file" ] || echo "$file"; done <"$work/files" >"$work/there"
# The formatter itself: it must detect this.
printf 'int  x ;\n' >"$work/bad.c"
"$format" --style="file:$QSF_SRCDIR/.clang-format" --dry-run -Werror "$work/bad.c" 2>/dev/null &&
    fail "$format finds nothing wrong with a badly formatted file"

if ! xargs "$format" --dry-run -Werror <"$work/there" 2>"$work/out"; then
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: .*/\1/p' "$work/out" | sort -u >"$work/names"
    [ -s "$work/names" ] || head -n 20 "$work/out"
    cat "$work/names"
    fail "format these with: $format -i FILE..."
fi
finish
