#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-convert --calibration of models that are not llamas, as files and as directories: all matrices that
# steps multiply by are weighted, all layers are scored, and the bytes are the same for any number of threads
# and any budget.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hf.sh"
[ -x "$convert" ] || skip "not built"
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/architectures
cd "$work" || exit 1

echo 'abc def ghi jkl mno pqr stu vwx yz, ab a ab a abc ABC? 123 and so on' >text.txt

cat >weighted.py <<'END'
import json, sys
name, unweighted = sys.argv[2], sys.argv[3].split()
d = json.load(open(sys.argv[1]))
layers = d["calibration"]["layers"]
changed = [t for t in d["tensors"] if t["was"] != t["is"]]
without = [t["name"] for t in changed if "weighted_snr_db" not in t]
weighted = [t for t in changed if "weighted_snr_db" in t]
assert sorted(without) == sorted(unweighted), (name, "not weighted", without)
assert len(weighted) >= len(layers), (name, len(weighted))
assert all(-1 <= l["cosine"] < 0.99999 and l["skip_kl"] > 1e-6 for l in layers), (name, layers)
END

# calibrate NAME TYPE MODEL UNWEIGHTED: the reports and the bytes of three runs; leaves NAME.json.
calibrate() {
    "$convert" -q $2 --calibration text.txt -t 1 --json "$3" a.qsf >"$1.json" 2>err ||
        { fail "$1: $(cat err)"; return; }
    py weighted.py "$1.json" "$1" "$4" 2>err || fail "$1: $(tail -n 1 err)"
    "$convert" -q $2 --calibration text.txt -t 2 --ram-budget 1 "$3" b.qsf >out 2>err
    least=$(sure "$(sed -n 's/^smallest budget that works: \([0-9]*\) MB$/\1/p' err)")
    "$convert" -q $2 --calibration text.txt -t 2 --ram-budget "${least}M" --quiet "$3" b.qsf 2>err ||
        fail "$1: $(cat err)"
    cmp -s a.qsf b.qsf || fail "$1: other bytes with two threads and $least MB"
    "$convert" --verify --quiet a.qsf || fail "$1: not whole"
}

# ---- made here: experts, recurrences, fused tensors

for arch in qwen3moe mamba2 phi3; do
    py "$here/hf/tiny.py" $arch $arch.gguf || fail "tiny.py $arch"
    make_dir "$work/$arch.gguf" $arch || fail "$arch: no directory: $(cat "$work/err")"
    calibrate $arch q4_0 "$at/model.gguf" token_embd.weight
    calibrate $arch-dir q4_0 "$at/dir" token_embd.weight
    [ $arch != mamba2 ] || continue # its config.json has no context length, so windows are longer
    py - $arch.json $arch-dir.json <<'END' 2>err || fail \
        "$arch: a directory is calibrated differently: $(tail -n 1 err)"
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert a["calibration"] == b["calibration"], (a["calibration"], b["calibration"])
snr = lambda d: sorted((t["name"], t.get("weighted_snr_db")) for t in d["tensors"])
assert snr(a) == snr(b), (snr(a), snr(b))
END
done

# ---- models of other kinds

# Matrices that are not weighted: the embedding, tables of rows, and what the model does not run.
unweighted() {
    case $1 in
    gemma3n) echo "token_embd.weight per_layer_token_embd.weight blk.20.attn_k.weight blk.20.attn_v.weight" ;;
    codeshell) echo output.weight ;;
    *) echo token_embd.weight ;;
    esac
}
kinds='qwen3moe granitehybrid_moe lfm2 deepseek2 rwkv7 gpt-oss gemma4_dense'
[ -n "${QSF_TEST_QUICK-}${QSF_SAN-}" ] ||
    kinds="$kinds gemma3n nanbeige mamba mamba2 jamba bitnet codeshell deepseek32 falcon-h1 gemma2 grovemoe kimi-k3 kimi-linear llama4 minimax-01 minimax-m3 phi2 plamo2 qwen3next qwen35moe rwkv6 smallthinker"
for kind in $kinds; do
    if [ -f "$cases/$kind/model.gguf" ]; then
        calibrate $kind 3bit "$cases/$kind/model.gguf" "$(unweighted $kind)"
    else
        echo "skip: $cases/$kind is absent"
    fi
done
finish
