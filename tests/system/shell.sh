#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The shell scripts have no known mistakes.
. "$(dirname "$0")/lib.sh"
have shellcheck || skip "no shellcheck"
cd "$QSF_SRCDIR" || exit 1
shellcheck -S warning -s sh configure tests/run.sh || fail "configure or tests/run.sh"
shellcheck -S warning -s bash .ci/run || fail ".ci/run"
for f in tests/system/*.sh tests/ui/*.sh; do
    [ ! -f "$f" ] || shellcheck -S warning -x -P "${f%/*}" "$f" || fail "$f"
done
finish
