#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every architecture that an independent engine computed logits for and that has a public name, as a Hugging
# Face directory: the logits of the GGUF file to the last bit that is printed, and the same answers.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
. "$(dirname "$0")/hf.sh"
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
cases=$data/architectures
pre=$data/oracle/tokenizers/pre_tokenizers.json
[ -d "$cases" ] || skip "$cases is absent"

done=0 count=0 nameless=''
for case in "$cases"/*/; do
    name=$(basename "$case")
    [ -f "$case/model.gguf" ] || continue
    reference=${case%/}
    # With sanitizers and in a quick run, only every fourth case.
    count=$((count + 1))
    [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || [ $((count % 4)) = 0 ] || continue
    make_dir "$case/model.gguf" "$name" --pre "$pre"
    case $? in
    0) ;;
    3) nameless="$nameless $name" && rm -rf "$at" && continue ;;
    *) cat "$work/err" && fail "$name: the directory cannot be written" && continue ;;
    esac
    done=$((done + 1))
    check "$name"
done
echo "$done cases as directories; not in QSF:${unconverted:- none}; not written:$nameless"
[ $done -ge 80 ] || [ -n "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || fail "only $done cases"
finish
