#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Counts in messages: "1 token", not "1 tokens". Every format in the sources that has a plural after a number
# goes through a function that knows the noun (plurals.py).
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
command -v "${QSF_PYTHON:-python3}" >/dev/null || skip "no python3"
py "$QSF_SRCDIR/tests/system/plurals.py" "$QSF_SRCDIR" src ui get include >"$work/found" ||
    fail "plurals.py"
[ -s "$work/found" ] && { cat "$work/found"; fail "plurals"; }
finish
