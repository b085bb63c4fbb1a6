#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernel checks of the build for web browsers, in node (make check-wasm). An access behind a buffer is not
# seen there, where memory has no pages that are out of bounds; that is what the other levels are for.
. "$(dirname "$0")/../system/lib.sh"

[ -z "${WASM_LACKS-}" ] || skip "NO KERNEL FOR WEB BROWSERS WAS BUILT OR CHECKED: there is no $WASM_LACKS"
: "${WASM_CHECKKERN:?}"

node "$WASM_CHECKKERN" --small >"$work/out" 2>&1 || fail "checkkern for web browsers"
grep -q 'best level wasm$' "$work/out" || fail "the best level is not wasm"
grep -v ' ok$' "$work/out"
finish
