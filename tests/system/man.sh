#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every option of --help is in the manual page, and the other way round; and so are fields of JSON.
. "$(dirname "$0")/lib.sh"

# The options defined by an option list: long and short words at the start of an indented line.
help_options() {
    "$1" --help 2>&1 | sed -n 's/^ \{1,8\}\(-.*\)/\1/p' | sed 's/   *.*//' |
        grep -oE -- '(^|[ ,/])--?[A-Za-z0-9][A-Za-z0-9-]*' |
        tr -d ' ,/' | sort -u
}

# In a page: the tag lines of its lists (".It Fl", or the line after ".TP", or ".IP").
man_options() {
    awk '
        /^\.TP/ { tag = 1; next }
        /^\.TQ/ { tag = 1; next }
        tag || /^\.IP/ || /^\.It/ { print; tag = 0 }
    ' "$1" | sed 's/\\-/-/g; s/\\f[A-Z]//g; s/\\fR//g' |
        sed 's/Fl  *-\([A-Za-z0-9]\)/ --\1/g; s/Fl  *\([A-Za-z0-9]\)/ -\1/g' |
        grep -oE -- '(^|[ ",/])--?[A-Za-z0-9][A-Za-z0-9-]*' | tr -d ' ",/' | sort -u
}

tried=0
for program in qsf-run qsf-chat qsf-convert qsf-get qsf-serve; do
    [ "$program" != qsf-serve ] || [ "$(config HAVE_SERVE)" = 1 ] || continue
    page=$QSF_SRCDIR/man/$program.1
    exe=$QSF_BUILDDIR/$program
    if [ ! -x "$exe" ] && [ ! -f "$page" ]; then continue; fi
    tried=1
    [ -f "$page" ] || { fail "$program has no manual page man/$program.1"; continue; }
    [ -x "$exe" ] || { fail "man/$program.1 describes a program that was not built"; continue; }
    help_options "$exe" >"$work/help"
    man_options "$page" >"$work/man"
    [ "$(wc -l <"$work/help")" -gt 5 ] ||
        { cat "$work/help"; fail "$program --help shows no list of options"; }
    comm -23 "$work/help" "$work/man" >"$work/only_help"
    comm -13 "$work/help" "$work/man" >"$work/only_man"
    [ ! -s "$work/only_help" ] ||
        fail "$program: in --help but not in the page:" "$(tr '\n' ' ' <"$work/only_help")"
    [ ! -s "$work/only_man" ] ||
        fail "$program: in the page but not in --help:" "$(tr '\n' ' ' <"$work/only_man")"
done
[ $tried = 1 ] || skip "neither programs nor pages yet"

if have mandoc; then
    for page in "$QSF_SRCDIR"/man/*.[15]; do
        [ -f "$page" ] || continue
        mandoc -T lint -W error "$page" >"$work/lint" 2>&1 || { cat "$work/lint"; fail "$page has errors"; }
    done
fi
# The fields of the events of --json: each is in the page, and the page has no other.
sed -n '/^\.It Li start/,/^\.El/p' "$QSF_SRCDIR/man/qsf-chat.1" >"$work/page"
sed -n 's/^\.\(It \)\{0,1\}Li //p' "$work/page" | tr -s ' ,.' '\n\n\n' | grep '[a-z]' | sort -u >"$work/man"
grep -oE '(begin|field|number|text_event)\((e|arg), "[a-z_]+"|, \\"[a-z_]+\\": |"(error|notice|output|reasoning|text)"' \
    "$QSF_SRCDIR/ui/line_events.c" | grep -oE '"[a-z_]+\\?"' | tr -d '"\\' | sort -u >"$work/events"
[ "$(wc -l <"$work/events")" -gt 20 ] || { cat "$work/events"; fail "no fields of --json"; }
only=$(comm -3 "$work/events" "$work/man")
[ -z "$only" ] || fail "--json: only in ui/line_events.c, or (right) only in the page:" "$only"
# The fields of requests to qsf-serve: each is in its page, which names no other, and in the document.
grep -oE '\{ \.name = "[a-z_]+"' "$QSF_SRCDIR/serve/fields.c" | grep -oE '"[a-z_]+' | tr -d '"' | sort -u >"$work/fields"
[ "$(wc -l <"$work/fields")" -gt 50 ] || { cat "$work/fields"; fail "no fields of requests"; }
sed -n '/^\.Sh REQUESTS/,/^\.Sh SECURITY/s/^\.Li //p' "$QSF_SRCDIR/man/qsf-serve.1" | tr -s ' ,.;:)' '\n' |
    grep '[a-z]' | sort -u >"$work/man"
only=$(comm -3 "$work/fields" "$work/man")
[ -z "$only" ] || fail "requests: only in serve/fields.c, or (right) only in the page:" "$only"
while read -r name; do
    grep -q "\`${name}[.\`]" "$QSF_SRCDIR/docs/SERVER.md" || fail "docs/SERVER.md does not have the field $name"
done <"$work/fields"
finish
