#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The list of models: what is in the caches of other programs is printed, chosen from on the screen, loaded by
# its name, and remembered. All caches are in the home directory of the test.
. "$(dirname "$0")/lib.sh"
mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
[ -x "$mktiny" ] || skip "mktiny is not built"
tab=$(printf '\t')
digest=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
here=$work/here
mkdir -p "$here" "$work/.lmstudio/models/pub/repo" "$work/.cache/llama.cpp" "$work/more/deep"
cd "$here" || exit 1

# ---- nothing there: the guide, which names a model; the list has models to download

start 80 24 "HF_ENDPOINT=http://127.0.0.1:1 '$chat' --no-save"
see 'QSF guide is ready'
see 'For this machine: /model hf:[A-Za-z-]+/'
not_see '^ Models'
keys /models Enter
see '^> guide'
see '^  hf:ggml-org/gemma-3-1b-it-GGUF:Q4_K_M +768.7 MB, (fits|streams)'
see '^ 1 of [2-9] '
keys Down
see '^> hf:ggml-org/gemma-3-1b'
see '^ Enter downloads it: 768.7 MB'
if [ -x "$QSF_BUILDDIR/qsf-get" ]; then
    keys Enter
    see 'gemma-3-1b-it-GGUF: the hub cannot be asked'
    keys /models Enter
    see '^> guide'
fi
keys Escape
see_gone '^ Models'
keys C-d
see '^rc=0'
chat_lines 0 --list-models </dev/null
err_has 'no models found; qsf-chat hf:[A-Za-z-]+/[A-Za-z0-9.-]+-GGUF(:Q4_K_M)? downloads one'

# ---- lines

hub=$work/.cache/huggingface/hub/models--org--tiny
mkdir -p "$hub/blobs" "$hub/snapshots/r"
"$mktiny" "$hub/blobs/b" layers=3 seed=2
ln -s ../../blobs/b "$hub/snapshots/r/tiny-Q8.gguf"
manifests=$OLLAMA_MODELS/manifests/registry.ollama.ai/library/mini
mkdir -p "$manifests" "$OLLAMA_MODELS/blobs"
"$mktiny" "$OLLAMA_MODELS/blobs/sha256-$digest" seed=3
echo "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"sha256:$digest\"}]}" \
    >"$manifests/4b"
"$mktiny" "$work/.lmstudio/models/pub/repo/large.gguf" layers=8 hidden=512 heads=8 kv_heads=8 ffn=1536
echo 'not a model' >"$work/.cache/llama.cpp/broken.gguf"
"$mktiny" "$work/more/deep/extra.gguf" seed=4

budget=60
[ -z "${QSF_SAN-}" ] || budget=90 # the program is that much larger
chat_lines 0 --ram-budget "$budget" --list-models </dev/null
out_has "^mini:4b${tab}[0-9]+${tab}F32${tab}llama [0-9]+K${tab}fits${tab}Ollama${tab}$OLLAMA_MODELS/blobs/sha256-"
out_has "^tiny-Q8${tab}.*${tab}fits${tab}Hugging Face${tab}.*/snapshots/r/tiny-Q8.gguf\$"
out_has "^large${tab}.*${tab}streams [0-9]+ %, about [0-9.]+ tok/s${tab}LM Studio${tab}"
out_has "^broken${tab}12${tab}${tab}${tab}not supported: a text file.*${tab}llama.cpp${tab}"
[ "$(wc -l <"$work/out")" = 4 ] || { cat "$work/out"; fail "not four models"; }
chat_lines 0 --list-models --model-dir "$work/more" 'FITS folder' </dev/null
[ "$(cut -f1 "$work/out")" = extra ] || { cat "$work/out"; fail "words do not filter"; }
mkdir -p "$work/config/qsf"
echo "model-dir = ~/more" >"$work/config/qsf/config"
chat_lines 0 --list-models extra </dev/null
out_has '^extra'
chat_lines 0 --list-models nowhere </dev/null
err_has 'no model matches "nowhere", and there is no such folder'
chat_lines 0 --list-models "$work/more" </dev/null
[ "$(cut -f1 "$work/out")" = extra ] || { cat "$work/out"; fail "not the folder"; }
chat_lines 2 --list-models --json </dev/null
err_has 'cannot be combined'

# A name is a model of the list, in both programs and in /model.
echo hello | chat_lines 0 -n 2 mini:4b
[ -s "$work/out" ] || fail "no answer from a model that was named"
"$QSF_BUILDDIR/qsf-run" -n 2 -p hello tiny-Q8 >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "qsf-run NAME"; }
printf '/model extra\n/model\n' | chat_lines 0 mini
err_has "$work/more/deep/extra.gguf"
# A path matches, too: short words may be in the random name of a directory.
printf '/models tiny-q8\n' | chat_lines 0 mini
grep -h '^tiny-Q8 .* F32 .* fits$' "$work/out" "$work/err" >"$work/found" || { cat "$work/err"; fail "no /models"; }
chat_lines 3 tiny-Q9 </dev/null
err_has '^qsf-chat: tiny-Q9: no such model; did you mean tiny-Q8\?$'
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "a misspelled name has several errors"; }
printf '/model tiny-Q9\nHi\n' | chat_lines 1 -n 2 mini
err_has 'did you mean tiny-Q8'
[ -s "$work/out" ] || fail "a misspelled name takes the model away"
chat_lines 3 "$work/more/deep" </dev/null
err_has 'deep: this is a folder; name the model in it: extra.gguf$'
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "a folder has several errors"; }
echo hi | chat_lines 3 "$work/more/deep" --json
out_has '"type": "error", "text": ".*deep: this is a folder'
cp "$work/more/deep/extra.gguf" "$work/.cache/llama.cpp/"
chat_lines 3 extra </dev/null
err_has "extra is the name of 2 models: $work/more/deep/extra.gguf, $work/.cache/llama.cpp/extra.gguf"
rm "$work/.cache/llama.cpp/extra.gguf"

# ---- screens

need_tmux
start 100 30 "'$chat' --ram-budget $budget"
see '^ Models  type to filter'
see '^  large .* streams [0-9]+ %, about [0-9.]+ tok/s'
see '^> extra +0\.. MB +F32 +llama [0-9]+K +fits'
see '^  guide  the built-in guide'
see '^ 1 of 6 '
keys broken
see '^ Models  broken_'
see '^ not supported: a text file, not a model: expected GGUF or QSF'
keys Enter
see '─ not supported: a text file'
keys C-u tiny-q8
see '^> tiny-Q8'
keys Enter
see 'is ready: llama'
see_gone '^ Models'
keys /models Space mini Enter
see '^> mini:4b'
size 80 24
see '^> mini:4b +0\.. MB +F32 +fits'
size 40 12
see '^> mini:4b +0\.. MB'
see '^ fits' # on the last line, where the rows have no space for it
size 100 30
keys C-u
see '^> tiny-Q8' # the last model comes first
keys Down Down Escape
see_gone '^ Models'
keys C-d
see '^rc=0'

# A file that cannot be loaded is not chosen, even where it comes first.
mkdir "$work/mixed"
echo text >"$work/mixed/a.gguf"
cp "$work/more/deep/extra.gguf" "$work/mixed/b.gguf"
start 80 24 "'$chat' --no-save '$work/mixed'"
see '^> b '
see '^  a '
keys Up
see '^> a '
keys Escape
see 'rc=0|is ready'

# Without a choice the guide answers; a key at the start is not lost.
start 80 24 "'$chat' --no-save"
see '^> tiny-Q8'
keys Escape
see 'QSF guide is ready'
keys C-d
see '^rc=0'
start 80 24 "cd '$work' && '$chat' --no-save ./more"
see "^ Models in .*more"
keys Escape C-d
see '^rc=0'
# A name that is wrong, and a file that cannot be loaded, are not in the title.
start 80 24 "'$chat' --no-save tiny-Q9"
see 'tiny-Q9: no such model; did you mean tiny-Q8\?$'
see '^ qsf-chat +no model +[0-9]'
keys '/model tiny-Q8' Enter
see 'is ready: llama'
keys C-d
see '^rc='
echo text >"$work/wrong.gguf"
start 80 24 "cd '$work' && '$chat' --no-save wrong.gguf"
see 'not a model'
see '^ qsf-chat +no model +[0-9]'
keys C-d
see '^rc='
start 80 24 "cd '$work' && '$chat' --no-save ./more"
see "^ Models in .*more"
see '^> extra'
see '^ 1 of 2 '
keys Enter
see 'is ready: llama'
keys C-d
see '^rc=0'

# ---- the keys for the budget: the status says what F4 would bring
start 100 30 "'$chat' --no-save --ram-budget $budget large"
see 'F4 [0-9]+ MB: nothing streams'
keys F4
see "─ RAM budget $budget -> [0-9]+ MB: all weights are in RAM"
see 'RAM [0-9.]+/1[0-9][0-9] MB'
see_gone 'F4 [0-9]+ MB'
keys F4
see '─ RAM budget 1[0-9]+ MB: all weights are in RAM, with the whole context'
keys F3
see '─ RAM budget 1[0-9]+ -> [0-9]+ MB: [0-9]+ MB per token from disk'
see 'F4 [0-9]+ MB: nothing streams'
keys C-d
see '^rc=0'
finish
