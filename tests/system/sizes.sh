#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# No file grows too long to be understood as a whole, and no line too long to be read beside another file.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
cd "$QSF_SRCDIR" || exit 1
tab=$(printf '\t')

# limit LINES DIRECTORY...
limit() {
    most=$1
    shift
    find "$@" -name '*.[ch]' -exec wc -l {} + 2>/dev/null |
        awk -v most="$most" '$2 != "total" && $1 > most { print $2 " has " $1 " lines, " most " is the limit" }'
}
{ limit 500 src ui get serve include; limit 400 kernels; } >"$work/long"
[ ! -s "$work/long" ] || { cat "$work/long"; fail "split by responsibility"; }

# wide FILE...: lines of more than 110 columns, except rows of tables that are excluded from clang-format.
wide() {
    awk 'FNR == 1 { off = 0 }
         /clang-format off/ { off = 1 }
         !off { print FILENAME ":" FNR "\t" $0 }
         /clang-format on/ { off = 0 }' "$@" | grep -E "^[^$tab]*$tab.{111}"
}
line=$(printf '%0110d' 0)
printf '%s\n/* clang-format off */\n%s1\n/* clang-format on */\n' "$line" "$line" >"$work/good.c"
printf '%s1\n' "$line" >"$work/bad.c"
[ "$(wide "$work/good.c" "$work/bad.c" | cut -f 1)" = "$work/bad.c:1" ] || fail "the search for long lines"
find src ui get serve kernels include packaging tests tools -name '*.[ch]' | sort >"$work/files"
[ "$(wc -l <"$work/files")" -gt 300 ] || fail "too few C files found below $QSF_SRCDIR"
# shellcheck disable=SC2046 # one word per name
wide $(cat "$work/files") | cut -f 1 >"$work/wide"
[ ! -s "$work/wide" ] || { cat "$work/wide"; fail "break these lines, at most 110 columns"; }

# Rows of model families: at most four lines. What is longer has parts with names, or a builder of its own.
awk '/^static const QsfFamily table/ { on = 1; next }
     on && (/^    \{ "/ || /^};/) { if (n > 4) print FILENAME ":" FNR - n; n = 0 }
     /^};/ { on = 0 }
     on { n++; rows += n == 1 }
     END { if (rows < 100) print "found only " rows + 0 " rows" }' src/model/family/table.c >"$work/rows"
[ ! -s "$work/rows" ] || { cat "$work/rows"; fail "these rows of families have more than four lines"; }

# Documents: prose, without tables and code.
awk 'FNR == 1 { code = 0 }
     /^[[:space:]]*```/ { code = !code; next }
     !code && !/^([|<]|    )/ { print FILENAME ":" FNR "\t" $0 }' README.md CONTRIBUTING.md docs/*.md |
    grep -E "^[^$tab]*$tab.{101}" | cut -f 1 >"$work/wide"
[ ! -s "$work/wide" ] || { cat "$work/wide"; fail "wrap this prose at 100 columns"; }

# Scripts: without their quoted text, which cannot always be broken.
find tests tools packaging .ci -type f ! -name '*.[ch]' ! -path 'tests/data/*' ! -path 'tools/guide/*' | sort |
    xargs grep -IlE '^#!|^# SPDX' | xargs awk '{ print FILENAME ":" FNR "\t" $0 }' |
    sed -E "s/'[^']*'|\"[^\"]*\"|\`[^\`]*\`//g" | grep -E "^[^$tab]*$tab.{111}" | cut -f 1 >"$work/wide"
[ ! -s "$work/wide" ] || { cat "$work/wide"; fail "break these lines, at most 110 columns beside quoted text"; }
finish
