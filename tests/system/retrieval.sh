#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck disable=SC2016 # names of rows are in backquotes
# What the eviction policies keep: a model whose weights are written by hand finds every needle in a text, and
# with evictions those that are still in the cache. The table of docs/KV.md has a trained model instead.
. "$(dirname "$0")/lib.sh"
have python3 || skip "no python3: retrieval with evictions was not checked"
tool=$QSF_BUILDDIR/obj/tests/tools/retrieval
[ -x "$tool" ] || skip "the test programs are not built"

# A head of the first layer copies the code of the token before; one of the second finds the position where
# that code is the current token's, and copies its token. Rotations by RoPE select the token before; the codes
# are in pairs that hardly turn.
PYTHONDONTWRITEBYTECODE=1 python3 - "$QSF_SRCDIR/tools" "$work/model.gguf" <<'PYTHON' || fail "no model"
import math, random, sys
sys.path.insert(0, sys.argv[1] + '/guide')
from trainlib import bpe, export, gguf
dim, head, kv, base, code = 256, 64, 128, 1e12, 40
shape = dict(dim=dim, layers=2, heads=4, kv_heads=2, ffn=32, vocab=272, context=2048)
# Where the codes of the token and of the one before it are, and those in a head.
now, before, first = 8, 64, 24
rng = random.Random(1)
t = {n: [0.0] * math.prod(s) for n, s in export.shapes(shape)}
def put(name, row, column, value):
    t[name][row * dim + column] = value
for name in t:
    if 'norm' in name:
        t[name] = [1.0] * dim
for token in range(256):
    put('token_embd.weight', token, 0, 4.0)
    for i in range(code):
        put('token_embd.weight', token, now + i, rng.choice((-1.0, 1.0)))
for pair in range(4):
    angle = base ** (-2 * pair / head)
    put('blk.0.attn_q.weight', 2 * pair, 0, 2 * math.cos(angle))
    put('blk.0.attn_q.weight', 2 * pair + 1, 0, -2 * math.sin(angle))
    put('blk.0.attn_k.weight', 2 * pair, 0, 2.0)
for i in range(code):
    put('blk.0.attn_v.weight', i, now + i, 1.0)
    put('blk.0.attn_output.weight', before + i, i, 0.5)
    put('blk.1.attn_q.weight', first + i, now + i, 1.5)
    put('blk.1.attn_k.weight', first + i, before + i, 1.5)
    put('blk.1.attn_v.weight', i, now + i, 1.0)
    put('blk.1.attn_output.weight', now + i, i, 4.0)
export.write(sys.argv[2], gguf.F16, shape, bpe.Tokenizer([], shape['vocab']), t.get, llama__rope__freq_base=base,
             tokenizer__ggml__pre='gpt-2')
PYTHON

# 512 tokens, of which a policy keeps 256, 128 and 64. With sanitizers four texts for each number take
# minutes.
texts=4
[ -z "${QSF_SAN-}" ] || texts=1
RETRIEVAL=$tool "$QSF_SRCDIR/tools/kvquality/retrieval" "$work/model.gguf" -n $texts -l 512 >"$work/out" \
    2>"$work/err" ||
    { cat "$work/err"; fail "no table"; }
! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report"; }
# Columns of the table.
at_10=3 at_30=4 at_50=5 at_70=6 at_90=7 first=8 later=9 all=10
# every NAME COLUMN...: all answers are right.
every() {
    name=$1
    shift
    for column in "$@"; do [ "$(cell)" = 100 ] || fail "$name: $(cell) % right in column $column"; done
}
# hardly NAME COLUMN...: at most one of four is right, which may be by chance.
hardly() {
    [ $texts = 4 ] || return 0
    name=$1
    shift
    for column in "$@"; do [ "$(cell)" -le 25 ] ||
        fail "$name: $(cell) % right in column $column although it was evicted"; done
}
cell() { awk -F '|' -v name=" $name " -v column="$column" '$2 == name { print $column + 0 }' "$work/out"; }

every 'everything kept' $at_10 $at_30 $at_50 $at_70 $at_90 $first $later $all
# A needle is found as long as it is in the window.
every '`sliding`, 50 %' $at_70 $at_90
every '`sliding`, 25 %' $at_90
hardly '`sliding`, 50 %' $at_10 $at_30
hardly '`sliding`, 25 %' $at_10 $at_30 $at_50
# Half of what it keeps is the most recent.
every '`h2o`, 50 %' $at_90
# What the end of the prompt looks at stays, wherever it is.
for size in 50 25 12; do every "\`snapkv\`, $size %" $at_10 $at_30 $at_50 $at_70 $at_90 $first; done
[ $bad = 0 ] || cat "$work/out"

# qsf-run, too, sees a prompt to its end before it chooses.
PYTHONDONTWRITEBYTECODE=1 python3 - "$QSF_SRCDIR/tools/kvquality" >"$work/text" <<'PYTHON' || fail "no text"
import random, sys
sys.path.insert(0, sys.argv[1])
import needles
(text, answer), = needles.conversation(random.Random(1), 512, [0.3])
print(text, answer, sep='\n')
PYTHON
ask() {
    expect 0 '' "$QSF_BUILDDIR/qsf-run" "$work/model.gguf" -p "$(head -n 1 "$work/text")" --template raw -n \
        1 --temperature 0 -c 576 "$@"
    [ "$(cat "$work/out")" = "$(tail -n 1 "$work/text")" ] ||
        fail "qsf-run $*: $(cat "$work/out") instead of $(tail -n 1 "$work/text")"
}
ask
ask --eviction-policy snapkv --eviction-window 64
finish
