#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The shell scripts have no mistakes known to shellcheck.
. "$(dirname "$0")/lib.sh"
have shellcheck || skip "no shellcheck"
cd "$QSF_SRCDIR" || exit 1
shellcheck -S warning -s sh configure tests/run.sh || fail "configure or tests/run.sh"
shellcheck -S warning -s bash .ci/run || fail ".ci/run"
shellcheck -S warning -s sh .ci/subjects || fail ".ci/subjects"
for f in packaging/*; do
    if [ -f "$f" ] && head -n 1 "$f" | grep -qx '#!/bin/sh'; then shellcheck -S warning -s sh "$f" || fail "$f"; fi
done
for f in tools/*; do
    if [ -f "$f" ] && head -n 1 "$f" | grep -q bash; then shellcheck -S warning -s bash -x "$f" ||
        fail "$f"; fi
done
for f in tests/system/*.sh tests/ui/*.sh; do
    [ -f "$f" ] || continue
    # A sourced file shares its variables with others.
    others=
    [ "$(head -c 2 "$f")" = '#!' ] || others=SC2034,SC2154
    shellcheck -S warning ${others:+-e $others} -x -P "${f%/*}" "$f" || fail "$f"
done
finish
