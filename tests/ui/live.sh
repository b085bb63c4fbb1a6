#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A model larger than its budget: typing before it is loaded, pinning and layers on the screen, budget,
# threads and I/O changed in the middle of an answer, a file that is removed and restored.
. "$(dirname "$0")/lib.sh"

big=$work/big.gguf
"$QSF_BUILDDIR/obj/tests/tools/mkbig" "$big" || skip "mkbig is not built, or there is no space for its model"
cp "$big" "$work/again.gguf" || skip "no space for a second model"
model="big.gguf --ignore-eos --threads 1 --cpu-mask ref -c 2048 --seed 1"

# ---- lines: nothing waits for weights; a refusal is one line and counts as an error

printf '/budget 5\n/budget 110\nhello\n/threads 2\n/io pread\n/io direct off\n/io\n/stats\n/mem\n' |
    chat_lines 1 "$big" --ram-budget 100 -n 3
head -n 1 "$work/err" | grep -q 'stream from disk although .* RAM are free: --ram-budget [0-9]' ||
    { cat "$work/err"; fail "the most expensive part is not listed first"; }
err_has 'ram-budget 5M: 5 MB is too little for .*; smallest budget that works: [0-9]+ MB'
if grep -qE 'ram-budget (5M$|is 100M)' "$work/err"; then fail "a refused budget is announced or reverted"; fi
err_has '110 MB: [0-9]+ MB of [0-9]+ MB of weights pinned'
err_has 'weights are read by pread.*, buffered'
err_has 'MB per token, .* planned'
err_has '^weights .* pinned.*, .* per token from disk'
[ -s "$work/out" ] || fail "no answer between changes of the plan"

# The budget of a conversation is used to load its model.
printf 'hello\n/budget 110\n' | chat_lines 0 "$big" --ram-budget 100 -n 2 --session kept
printf '/set ram-budget\n/mem\n' | chat_lines 0 --session kept
err_has '^ram-budget 110M'
err_has '^sum, budget .* 110.0 MB'

# ---- the screen

need_tmux
# Typed before the program controls the terminal: Enter is Enter.
# From its folder: a long path would break messages elsewhere.
start 100 30 "cd '$work'; until [ -e go ]; do sleep 0.05; done; '$chat' $model --ram-budget 100 --session live"
keys 'typed early' Enter
see '^typed early'
touch "$work/go"
see '^ │ typed early'
see 'STATE   writing'
see 'IO  [0-9.]+ GB/s  stall [0-9]+%'
see ' [0-9.]+ MB/tok  '
see '[▁▂▃▄▅▆▇█·]+ pinned'
see '▲'
wide_enough 100
keys '/budget 110' Enter
see 'ram-budget 100M -> 110M'
see '110 MB: [0-9]+ MB of'
see 'RAM [0-9.]+/110 MB'
keys '/budget 5' Enter
see 'that works: [0-9]+ MB'
not_see 'ram-budget (110M ->|is 110M)'
# The cache is converted while the answer is written.
keys '/kv type q8' Enter
see 'kv-type auto -> q8'
see 'KV cache q8'
see 'STATE   writing'
keys '/io pread' Enter
see 'MB/tok  pread'
see 'STATE   writing'
size 80 24
see 'GB/s stall [0-9]+%'
wide_enough 80
size 40 12
see 'RAM[0-9.]+/110'
wide_enough 40
size 100 30

# The file shrinks: the answer ends, the chat does not; when the file is restored it continues.
: >"$big"
see '/retry' # asks again: with a long path on another line
see 'STATE   (ready|no model)'
keys '/retry' Enter
see 'STATE   no model'
cp "$work/again.gguf" "$big"
keys '/retry' Enter
see 'reloaded'
see 'STATE   writing'
keys C-c
see 'STATE   ready'
keys C-d
see '^rc=0'
grep -q '"name":"ram-budget","text":"110M"' "$XDG_DATA_HOME/qsf/sessions/live.jsonl" ||
    fail "the budget is not in the session"
finish
