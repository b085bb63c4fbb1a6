#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# No file grows too long to be understood as a whole.
. "$(dirname "$0")/lib.sh"
cd "$QSF_SRCDIR" || exit 1

# limit LINES DIRECTORY...
limit() {
    most=$1
    shift
    find "$@" -name '*.[ch]' 2>/dev/null | while read -r file; do
        n=$(($(wc -l <"$file")))
        [ $n -le "$most" ] || echo "$file has $n lines, $most is the limit"
    done
}
{ limit 500 src ui include; limit 400 kernels; } >"$work/long"
[ ! -s "$work/long" ] || { cat "$work/long"; fail "split by responsibility"; }
finish
