#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --tokenize on vocabulary-only files; such a file cannot generate.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
vocabs=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/oracle/tokenizers/vocab
[ -d "$vocabs" ] || skip "$vocabs is absent"

for v in "$vocabs"/*.gguf; do
    expect 0 '' "$run" --tokenize "$v"
    printf 'Hello, world! \303\244 \344\270\255' >"$work/text"
    "$run" --tokenize --no-bos "$v" <"$work/text" >"$work/ids" 2>/dev/null || fail "$v: --tokenize"
    "$run" --detokenize "$v" <"$work/ids" >"$work/out" 2>/dev/null || fail "$v: --detokenize"
    grep -q 'Hello, world! ' "$work/out" || { cat "$work/ids" "$work/out"; fail "$v: text to ids and back"; }
    expect 3 "$(basename "$v")" "$run" "$v" -p x
done
finish
