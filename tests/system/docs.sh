#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Everything that documents refer to exists: files, make targets, options of configure, the README's two
# commands.
. "$(dirname "$0")/lib.sh"
cd "$QSF_SRCDIR" || exit 1

for doc in README.md CONTRIBUTING.md docs/*.md; do
    # Links to files, relative to the document.
    grep -oE '\]\([^)#:]+\)' "$doc" | tr -d ']()' | while read -r to; do
        [ -e "$(dirname "$doc")/$to" ] || echo "$doc: the link $to leads nowhere"
    done
    # shellcheck disable=SC2016
    # Paths in code quotes; a name without extension is a pair of .c and .h, * and <> are placeholders.
    grep -oE '`[^` ]+`' "$doc" | tr -d '`' |
        grep -E '^(src|kernels|ui|include|tests|docs|man|mk|templates|tools|\.ci)/[^<*{]+$' | sort -u |
        while read -r path; do
        case $path in
        */x.c | */t_x.c | */ui_x.c) continue ;;   # examples
        esac
        [ -e "$path" ] || [ -e "$path.c" ] || [ -e "$path.h" ] || echo "$doc: there is no $path"
    done
    # shellcheck disable=SC2016
    grep -oE '(`|&& |^ +|sudo )make( -j[0-9]+)? [a-z][a-z0-9-]+' "$doc" | sed 's/.* //' | sort -u |
        while read -r target; do
        grep -qE "^([a-z -]+ )?$target( [a-z -]+)?:" Makefile mk/*.mk ||
            echo "$doc: make has no target $target"
    done
    grep -oE 'configure( +[-A-Z][^` ]*)+' "$doc" | grep -oE -- '--[a-z-]+' | sort -u |
        while read -r option; do
        grep -q -- "$option" configure || echo "$doc: configure has no option $option"
    done
done >"$work/wrong"
[ ! -s "$work/wrong" ] || { cat "$work/wrong"; fail "documents refer to missing things"; }

for command in './configure --install-deps && make run' './configure --install-deps && make check'; do
    grep -qF "    $command" README.md || fail "README.md lacks the command: $command"
done

# Every supported architecture that has a case is in the table of docs/PARITY.md.
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures
[ -d "$cases" ] || echo "skip: $cases is absent"
grep -oE '[({] *"[^"]+",' src/model/family/table.c | sed 's/.*"\(.*\)",/\1/' >"$work/supported"
grep -oE '^\| [^|]+ \| [^|]+ \|' docs/PARITY.md >"$work/rows"
# The first "arch" of each file.
[ ! -d "$cases" ] || grep -HoE '"arch": *"[^"]*"' "$cases"/*/about.json |
    sed 's|/about.json:"arch": *"| |; s|.*/||; s|"$||' | awk '!seen[$1]++' >"$work/cases"
[ ! -d "$cases" ] || [ "$(wc -l <"$work/cases")" -gt 100 ] || fail "too few cases in $cases"
[ ! -s "$work/cases" ] || awk 'FILENAME ~ /supported$/ { supported[$1] = 1 } FILENAME ~ /rows$/ { row[$0] = 1 }
    FILENAME ~ /cases$/ && supported[$2] && !row["| " $1 " | " $2 " |"] { print $1 }' \
    "$work/supported" "$work/rows" "$work/cases" >"$work/wrong"
[ ! -s "$work/wrong" ] || fail "docs/PARITY.md lacks these cases: run tools/parity-table: $(cat "$work/wrong")"

# docs/TESTING.md says which test covers which folder: each folder of sources is in its table, each folder of
# unit tests has one of sources, and the tests it mentions exist.
sed -n '/^## Which test covers which file/,/^## Skipping/p' docs/TESTING.md >"$work/covers"
for dir in include kernels ui serve src/*/; do
    grep -qF "\`${dir%/}/\`" "$work/covers" || fail "docs/TESTING.md does not say which test covers $dir"
done
for dir in tests/unit/*/; do
    name=$(basename "$dir")
    [ -d "src/$name" ] || [ "$name" = ui ] || [ "$name" = serve ] || fail "$dir has the name of no folder of src/"
done
# shellcheck disable=SC2016 # names are in backquotes
grep '^| ' "$work/covers" | cut -d '|' -f 3- |
    grep -oE '`(base|chat|cli|engine|file|forward|token)?/?[a-z0-9_*]+`' |
    tr -d '`' | while read -r name; do
    # shellcheck disable=SC2086 # some are patterns
    for file in tests/*/${name##*/}.c tests/*/*/${name##*/}.c tests/*/$name.sh; do
        [ ! -e "$file" ] || continue 2
    done
    echo "docs/TESTING.md: there is no test $name"
done >"$work/wrong"
[ ! -s "$work/wrong" ] || { cat "$work/wrong"; fail "docs/TESTING.md mentions tests that do not exist"; }

# Every test documented as skipped by make check exists and is skipped; the others are not, and check-all runs
# all but those that have to be named.
slow=$(sed -n '/^slow_tests :=/,/[^\]$/p' mk/check.mk | sed 's/.*:=//; s/\\$//')
[ -n "$slow" ] || fail "mk/check.mk lists no slow tests"
listed() { (cd "$QSF_BUILDDIR" &&
    "$MAKE" -n "$1" TESTS= SAN= 2>/dev/null) | grep -oE 'tests/(system|ui)/[a-z_]+\.sh' | sort -u; }
{ listed check-system; listed check-ui; for t in $slow; do echo "tests/$t.sh"; done; } | sort >"$work/got"
named=$(sed -n 's/^named_tests := //p' mk/check.mk)
for t in $named; do
    [ -f "tests/$t.sh" ] || fail "mk/check.mk: there is no test $t"
    echo "tests/$t.sh"
done >"$work/named"
find tests/system tests/ui -name '*.sh' ! -name lib.sh ! -name model.sh ! -name hf.sh |
    grep -vxFf "$work/named" | sort >"$work/want"
diff "$work/want" "$work/got" || fail "make check and slow_tests do not add up to all tests"
listed check-all | diff "$work/want" - || fail "make check-all does not run all tests"
finish
