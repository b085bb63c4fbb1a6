# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the scripts that compare Hugging Face directories with GGUF files; gguf_to_hf.py writes the
# directories.
# shellcheck shell=sh
have python3 || skip "no python3"
convert=$QSF_BUILDDIR/qsf-convert
here=$QSF_SRCDIR/tests/system
unconverted=''
reference=none

# make_dir GGUF NAME [OPTIONS]: $at/dir and its twin, $at/model.gguf.
make_dir() {
    gguf=$1 at=$work/$2
    shift 2
    mkdir -p "$at"
    py "$here/gguf_to_hf.py" "$gguf" "$at/dir" --twin "$at/model.gguf" "$@" >"$work/out" 2>"$work/err"
}
# figures MODEL OPTIONS...: what its logits for the tokens of $reference are compared by.
figures() {
    "$run" --parity "$reference" --max-kl 1e9 "$@" >"$work/out" 2>"$work/err" </dev/null ||
        tail -n 1 "$work/err"
    sed 's/, "argmax_match.*//' "$work/out"
}
# answer MODEL OPTIONS...: greedy text and why it ended.
answer() {
    "$run" --json -p 'ab a' -n 12 --temp 0 --template raw "$@" >"$work/out" 2>"$work/err" </dev/null ||
        tail -n 1 "$work/err"
    sed 's/, "seed.*//' "$work/out"
}
# equal NAME WANT COMMAND MODEL OPTIONS...
equal() {
    label=$1 want=$2
    shift 2
    got=$("$@")
    [ "$got" = "$want" ] || fail "$label: $*: $got instead of $want"
}
# converted NAME: the same after qsf-convert; what QSF cannot express is refused in both forms.
converted() {
    if ! "$convert" -q keep --quiet "$at/model.gguf" "$at/gguf.qsf" >"$work/out" 2>"$work/err"; then
        expect 3 '' "$convert" -q keep --quiet "$at/dir" "$at/dir.qsf"
        unconverted="$unconverted $1"
        return
    fi
    "$convert" -q keep --quiet "$at/dir" "$at/dir.qsf" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "$1: qsf-convert"; return; }
    equal "$1" "$(answer "$at/gguf.qsf")" answer "$at/dir.qsf"
    [ ! -f "$reference/logits.f32" ] || equal "$1" "$(figures "$at/gguf.qsf")" figures "$at/dir.qsf"
}
# check NAME: everything about $at, which is removed.
check() {
    if [ -f "$reference/logits.f32" ]; then
        equal "$1" "$(answer "$at/model.gguf")" answer "$at/dir"
        equal "$1" "$(figures "$at/model.gguf" --exact)" figures "$at/dir" --exact
        shipped=$(figures "$at/model.gguf")
        equal "$1" "$shipped" figures "$at/dir"
        equal "$1" "$shipped" figures "$at/dir" --pin 0 --slots 2 --io mmap
        equal "$1" "$shipped" figures "$at/dir" --pin 0 --batch 3 --threads 1 --io pread
    else
        shipped=$(answer "$at/model.gguf")
        equal "$1" "$shipped" answer "$at/dir"
        equal "$1" "$shipped" answer "$at/dir" --pin 0 --slots 2 --io pread
        equal "$1" "$(answer "$at/model.gguf" --exact)" answer "$at/dir" --exact
    fi
    case $shipped in
    *'"mean_kl"'* | *'"tokens": 12'* | *'"stop": "eos"'*) ;;
    *) fail "$1: the twin: $shipped" ;;
    esac
    converted "$1"
    rm -rf "$at"
}
