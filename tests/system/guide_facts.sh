#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What the built-in guide is taught agrees with the program: each command, option, setting and key has a fact,
# and no fact names one that does not exist, denies one that does, or says another default or range. Only the
# answers: tests/system/guide.sh checks the questions, too.
. "$(dirname "$0")/lib.sh"
have python3 || skip "no python3: the facts of the built-in guide were not checked"
[ -z "${QSF_SAN-}" ] || skip "Python alone: nothing here for the sanitizers"
generate="$QSF_SRCDIR/tools/guide/generate"

py "$generate" --check --quick >"$work/check" 2>&1 || { cat "$work/check"; fail "facts and tables differ"; }

# All of that is noticed.
cp -R "$QSF_SRCDIR/tools/guide/facts" "$QSF_SRCDIR/tools/guide/lists.txt" "$work/"
sed -i 's/0 to 5: low is careful/0 to 9: low is careful/; s/The default is 0\.7;/The default is 0.9;/' \
    "$work/facts/sampling.txt"
printf '\n[denies]\na: There is no search.\nmust: no\nabsent: /search\n' >>"$work/facts/chat.txt"
printf '\n[invents]\na: Type `/nosuch` or `--none` or press F11.\nmust: /nosuch\n' >>"$work/facts/chat.txt"
py "$generate" --check --quick --facts "$work/facts" >"$work/wrong" 2>&1 && fail "wrong facts were accepted"
for words in '\[temperature\] names a default of --temperature, but not 0.7' '0 to 9 is not a range of' \
    '\[denies\] is left out: /search exists by now' '\[invents\] no command /nosuch' 'no option --none' \
    'no key F11'; do
    grep -q "$words" "$work/wrong" || { cat "$work/wrong"; fail "not reported: $words"; }
done
[ "$(wc -l <"$work/wrong")" = 6 ] || { cat "$work/wrong"; fail "other lines than these"; }
finish
