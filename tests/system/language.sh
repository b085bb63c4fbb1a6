#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Texts and comments contain none of the words in language.words, except where language.allow permits them.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
cd "$QSF_SRCDIR" || exit 1
here=tests/system
tab=$(printf '\t')

# What is searched: documents (README, docs, manual pages), help_texts (--help, /help), strings,
# comments (of C files, scripts and the build).
checked='documents help_texts strings comments'

# Each of these writes one line per paragraph: FILE: text.
documents() {
    for file in README.md CONTRIBUTING.md CHANGELOG.md docs/*.md man/*.[15]; do
        # Headings, code, table rows and list items are paragraphs of their own; roff macros lose their name.
        sed -E '/^\.\\"/d; s/^\.(Pp|It|Sh|Ss|Bl|El|Bd|Ed|Bullet)( |$)/\n/; s/^\.[A-Z][a-z] //; s/^[[:space:]]*([-*|#]|[0-9]+\.)/\n&/' "$file" |
            awk -v file="$file" 'BEGIN { RS = "" } { gsub(/[[:space:]]+/, " "); print file ": " $0 }'
    done
}
help_texts() {
    for program in qsf-chat qsf-run qsf-convert qsf-get qsf-serve; do
        "$QSF_BUILDDIR/$program" --help </dev/null 2>&1 | sed "s/^/$program --help: /"
    done
    printf '/help\n' | "$QSF_BUILDDIR/qsf-chat" --plain 2>&1 | sed 's,^,/help: ,'
}
strings() {
    find ui src get serve -name '*.c' | sort | xargs awk '
        /^[[:space:]]*#/ { next }
        { while (match($0, /"([^"\\]|\\.)*"/)) {
            print FILENAME ": " substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
        } }'
}
comments() {
    find include src ui get serve kernels packaging tests tools -name '*.[ch]' | sort | xargs awk '
        { line = $0 }
        !open && match(line, /\/\*/) { open = 1; text = ""; line = substr(line, RSTART + 2) }
        open {
            end = index(line, "*/")
            sub(/^[[:space:]]*\*+ /, "", line)
            text = text " " (end ? substr(line, 1, index(line, "*/") - 1) : line)
            if (end) { gsub(/[[:space:]]+/, " ", text); print FILENAME ":" text; open = 0 }
        }'
    # This test and its lists quote the words.
    find tests tools mk packaging Makefile configure .ci/run -type f ! -name '*.[ch]' ! -name 'language.*' ! -path \
        '*/facts/*' | sort |
        xargs grep -IlE '^#!|^# SPDX' | xargs awk '
        function flush() { if (text != "") print file ":" text; text = "" }
        FNR == 1 { flush(); file = FILENAME }
        /^[[:space:]]*#([^!]|$)/ { sub(/^[[:space:]]*#/, ""); text = text " " $0; next }
        { flush() }
        END { flush() }'
}

grep -v '^#' $here/language.allow >"$work/allow"
grep -v '^#' $here/language.words >"$work/words"
allowed=$(paste -sd '|' "$work/allow")

# found FILE: the words in FILE with the text around them and what to write instead.
found() {
    sed -E "s/($allowed)/ /Ig" "$1" >"$work/searched"
    while IFS="$tab" read -r word instead; do
        grep -iE "(^|[^[:alnum:]_])($word)([^[:alnum:]_]|\$)" "$work/searched" | while IFS= read -r line; do
            text=$(printf '%s\n' "${line#*: }" |
                grep -oiE ".{0,30}(^|[^[:alnum:]_])($word)([^[:alnum:]_]|\$).{0,30}" | head -n 1)
            echo "${line%%: *}: \"$text\": better: $instead"
        done
    done <"$work/words"
}

# The search itself: each of these must be found, and these exceptions not.
printf 'x: %s\n' 'draw the screen anew' 'weaken tokens that stood lately' 'standard input is no terminal' \
    'a number of exchanges from 1 on' 'ends after so many tokens' 'n rows from r on, at most a strip' \
    'the list says what of it is kept' 'it is not sent any more' >"$work/bad"
printf 'x: %s\n' 'there is no model' 'the file is no longer used' 'a window is renewed' 'Latelyness' \
    'it applies from now on' 'reads from disk on demand' 'so many of them that it takes minutes' >"$work/good"
[ "$(found "$work/bad" | cut -d '"' -f 2 | sort -u | wc -l)" -ge 8 ] || fail "the search misses words"
[ -z "$(found "$work/good")" ] || fail "the search finds words that are allowed"

for place in $checked; do
    $place >"$work/part"
    [ "$(wc -l <"$work/part")" -gt 20 ] || fail "no $place found below $QSF_SRCDIR"
    cat "$work/part"
done >"$work/text"
found "$work/text" >"$work/wrong"
[ ! -s "$work/wrong" ] ||
    { cat "$work/wrong"; fail "rewrite these in plain English, or add an exception to $here/language.allow"; }
finish
