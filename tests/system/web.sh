#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make wasm, and its page in a headless Chromium: the same tokens as qsf-run, by ranges and from a picked
# file, with and without streaming, in a memory that stays below the budget; settings and Stop while it
# answers; servers that answer wrongly.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the page is made without sanitizers"
for tool in emcc node; do
    have $tool || skip "NOTHING WAS BUILT FOR WEB BROWSERS: $tool is not installed"
done
chromium=
for name in chromium chromium-browser google-chrome; do
    ! have $name || { chromium=$name; break; }
done
[ -n "$chromium" ] || skip "THE PAGE WAS NOT TESTED: there is no Chromium"

cd "$QSF_BUILDDIR" || exit 1
if ! "$MAKE" wasm >"$work/log" 2>&1; then
    ! grep 'packaging/static-libs:.*no sources' "$work/log" ||
        skip "NOTHING WAS BUILT FOR WEB BROWSERS: no sources of libraries"
    tail -20 "$work/log"
    fail "make wasm"
    finish
fi
# The kernels for web browsers compute the bits of sse42 (docs/KERNELS.md).
level=
./qsf-run --cpu-mask sse42 -q -n 1 -p x "$QSF_SRCDIR/models/guide.qsf" >/dev/null 2>&1 && level=sse42
py "$QSF_SRCDIR/tests/web/page.py" "$chromium" "$QSF_BUILDDIR/wasm/web" "$QSF_BUILDDIR/qsf-run" \
    "$QSF_SRCDIR/models/guide.qsf" "$level" || fail "the page"
finish
