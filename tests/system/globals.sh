#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A global function is used by another file of the product. If it is not, make it static, or remove it.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
have nm || skip "no nm: the names of the objects were not read"
cd "$QSF_BUILDDIR" || exit 1

# What only tests call, each with the reason why it is a function of its own.
cat >"$work/reasons" <<'LIST'
main
# Faults that cannot be provoked from outside.
qsf_file_inject_fault qsf_mem_inject_failure qsf_newfile_hold qsf_newfile_part qsf_savefile_always_named
# A model without a file, so that the plans of shapes that cannot be downloaded are tested.
qsf_model_build
# The plans near the smallest budget are tested for hundreds of shapes; users see it in a refusal only.
qsf_plan_smallest
# Time and memory of the machine are arguments, which the programs measure.
qsf_pressure_look qsf_pressure_wait
# A kernel of the test is stopped between two pieces.
qsf_multiply_stoppable
# Tiles are moved with lists that no policy makes.
qsf_gaps_close
# Bytes of spare rows, per format; a damaged file shows only the first of them.
qsf_group_spare
# A descriptor that is not a file.
qsf_verify_fd
# Every row of the table is compiled.
qsf_pretok_spec_at
# What a text measured, before it is encoded.
qsf_calibration_of
# The levels of the processor must choose the same codes.
qsf_book_core qsf_book_encode qsf_books_2bit qsf_books_3bit qsf_books_4bit
# The members of an object in their order: reference results are read with it.
qsf_json_member
# What a grammar took: states and bytes, and nodes of the vocabulary that were visited for a set.
qsf_automaton_bytes qsf_automaton_states qsf_masks_visited
# Logits of a draft model, whose guesses alone say little.
qsf_draft_model_forward
# The reverse of qk_type_of.
qk_type_ggml
# What is on the screen, and what a line of the input is.
ui_screen_flash ui_canvas_text ui_command_nearest ui_lines_feed
LIST
grep -v '^#' "$work/reasons" >"$work/allowed"
# The interfaces for other programs.
cat obj/public.txt >>"$work/allowed" || fail "no obj/public.txt"
tr ' ' '\n' <"$work/allowed" | sort -u >"$work/known"

# Only objects whose source exists: a build directory may hold those of an earlier version.
find obj/src obj/ui obj/get obj/serve obj/kernels -name '*.o' 2>/dev/null | while read -r o; do
    c=${o#obj/}
    c=${c%.o}.c
    [ -f "$QSF_SRCDIR/$c" ] || [ -f "obj/$c" ] || continue
    echo "$o"
done >"$work/objects"
[ -s "$work/objects" ] || skip "no objects"
# shellcheck disable=SC2046
nm -A -g $(cat "$work/objects") >"$work/names"
# "FILE: ADDRESS T NAME" and "FILE: U NAME". Kernels are called through tables.
awk '$(NF-1) == "U" { used[$NF] = 1 }
     $(NF-1) == "T" { sub(/:$/, "", $1); sub(/:[0-9a-f]*$/, "", $1); defined[$NF] = $1 }
     END { for (n in defined) if (!used[n]) print n, defined[n] }' "$work/names" | sort >"$work/unused"
while read -r name object; do
    grep -qx "$name" "$work/known" ||
        fail "$name of $object is used by no other file: make it static, or remove it"
done <"$work/unused"
grep -q . "$work/names" || fail "nm printed nothing"
finish
