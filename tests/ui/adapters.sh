#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Adapters in the chat: changed between and during answers, files that are gone, names on the screen.
. "$(dirname "$0")/lib.sh"
have python3 || skip "python3 is absent"

base=$work/base.gguf at=$work/at
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$base" layers=3 vocab=512 ctx=2048 ascii=1 wtype=0 &&
    "$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/other.gguf" layers=2 vocab=512 ctx=2048 ascii=1 &&
    python3 "$QSF_SRCDIR/tests/system/lora.py" "$base" "$at" || skip "mktiny is not built"

# ---- lines

# A change of scale reads no file, and a file in use is not opened again beside another one.
cp "$at/a.gguf" "$work/live.gguf"
printf 'hello\n/lora scale 1 2\n/lora add %s 0.5\n/retry\n/lora\n' "$at/b.gguf" >"$work/rest"
mkfifo "$work/pipe"
"$chat" --plain "$base" --lora "$work/live.gguf" -n 4 --no-save <"$work/pipe" >"$work/out" 2>"$work/err" &
exec 9>"$work/pipe"
head -n 1 "$work/rest" >&9
wait_for test -s "$work/out"
rm "$work/live.gguf"
tail -n +2 "$work/rest" >&9
exec 9>&-
wait $! || { cat "$work/err"; fail "a file in use that is gone is opened again"; }
err_has '^1  scale 2  .*/live.gguf$'
err_has '^2  scale 0.5  .*/at/b.gguf$'
err_has 'lora live.gguf:2,b.gguf:0.5$' # without folders

# The same numbers as with that scale from the start.
printf 'hello\n/lora scale 1 0.3\n/retry\n' | chat_lines 0 "$base" --lora "$at/a.gguf" -n 20 --temp 0 --no-save
tail -n 1 "$work/out" >"$work/scaled"
printf 'hello\n' | chat_lines 0 "$base" --lora "$at/a.gguf:0.3" -n 20 --temp 0 --no-save
tail -n 1 "$work/out" | cmp -s - "$work/scaled" || fail "a changed scale is not the scale"

printf '/lora remove 1\n/lora scale 1 2\n/lora add %s\n/lora remove 1 2\n/lora scale 1 1e30\n/lora\n' "$at/a.gguf" |
    chat_lines 1 "$base" --no-save
[ "$(grep -c '/lora: no adapter is in use' "$work/err")" = 2 ] || { cat "$work/err"; fail "no number of nothing"; }
err_has "/lora remove: takes one number, not '1 2'"
err_has "lora: '1e30' is not a scale of .*a.gguf'"
err_has '^1  scale 1  '

printf '/lora add hf:a/b\n/control-vector add F\n/draft-model guide\n' | chat_lines 1 "$base" --no-save
err_has 'hf:a/b: is not a file, which is needed here'
err_has "control-vector: there is no file 'add F': give its name without 'add'"
err_has 'guide: is not a file, which is needed here'

# What cannot be used is refused at once, and only that.
printf '/draft-model nofile\n' | chat_lines 1 "$base" --no-save
err_has 'draft-model: .*nofile: cannot open'
! grep -q 'draft-model .*nofile$\|is off again' "$work/err" || { cat "$work/err"; fail "the change was announced"; }
printf '/lora add nofile\n/lora add %s\n/lora\n' "$base" | chat_lines 1 "$base" --no-save
err_has 'qsf-chat: nofile: cannot open'
err_has 'base.gguf: is not an adapter'
err_has 'no adapter is in use'
if grep -qE 'lora (nofile|is off)' "$work/err"; then cat "$work/err"; fail "a refused change is announced"; fi

# Without its adapter a session is not answered, but what to do is said; a draft model changes nothing.
cp "$at/a.gguf" "$work/gone.gguf"
printf 'hello\n' | chat_lines 0 "$base" --lora "$work/gone.gguf" -n 2 --session gone
printf '' | chat_lines 0 --session gone
err_has 'resumed gone: 2 messages.*, lora gone.gguf'
rm "$work/gone.gguf"
printf 'hello\n' | chat_lines 3 --session gone
err_has 'gone.gguf: cannot open'
err_has 'to use the model without it: --lora off'
printf 'hello\n' | chat_lines 0 --session gone --lora off
cp "$base" "$work/draft.gguf"
printf 'hello\n' | chat_lines 0 "$base" --draft-model "$work/draft.gguf" -n 2 --session draft
rm "$work/draft.gguf"
printf 'hello\n' | chat_lines 0 --session draft
err_has 'draft.gguf: cannot open.*; it is not used'
[ -s "$work/out" ] || fail "no answer without the draft model"
printf 'hello\n' | chat_lines 3 "$base" --draft-model "$work/draft.gguf" --no-save # asked for

# ---- the screen

need_tmux
start 100 32 "cd '$work' && '$chat' '$base' --no-save --ignore-eos -n 1000000 --eviction-policy sliding --lora '$at/a.gguf:0.5'"
see ' lora a.gguf:0.5$'
keys 'hello' Enter
see 'STATE   writing'
keys '/lora add none.gguf' Enter # a longer path breaks the line elsewhere
see 'cannot open'
not_see 'lora none.gguf'
keys '/lora add at/b.gguf' Enter
see 'lora a.gguf:0.5 -> a.gguf:0.5,b.gguf'
see 'takes effect with the next answer'
keys '/lora remove 1' Enter
see ' -> b.gguf '
keys C-c
see 'STATE   ready'
keys '/lora' Enter
see '1  scale 1'
see ' lora b\.gguf$' # /lora names the whole path, in as many lines as it needs
size 80 24
see 'lora b.gguf'
keys '/lora add at/bi' Tab
see 'at/bias.gguf'
keys C-u
keys "/model '$work/other.gguf'" Enter
see 'without' # to use the model without it: /lora off; with a long path on several lines
see 'ready'
keys C-d
finish
