#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A global function is used by another file of the product. If it is not, make it static, or remove it.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "the sources are the same with sanitizers"
have nm || skip "no nm: the names of the objects were not read"
cd "$QSF_BUILDDIR" || exit 1

# Hooks of tests into faults that cannot be provoked from outside, and parts that tests check by themselves.
cat >"$work/allowed" <<'LIST'
main
qsf_file_inject_fault qsf_mem_inject_failure qsf_newfile_hold qsf_newfile_part qsf_savefile_always_named
qsf_pressure_look qsf_pressure_wait qsf_multiply_stoppable qsf_io_poll qsf_gaps_close ui_screen_flash
qsf_arena_reset qsf_json_member qsf_nfc qsf_sampler_bytes qsf_model_build qsf_plan_smallest ui_canvas_text
qsf_group_spare qsf_verify_fd qsf_pretok_spec_at qsf_calibration_of ui_command_nearest ui_lines_feed
qsf_outlier_apply qsf_outlier_get qsf_outlier_put
qsf_book_core qsf_book_encode qsf_books_2bit qsf_books_3bit qsf_books_4bit
qsf_cli_help qk_type_ggml
LIST
# The interfaces for other programs.
cat obj/public.txt >>"$work/allowed" || fail "no obj/public.txt"
tr ' ' '\n' <"$work/allowed" | sort -u >"$work/known"

# Only objects whose source exists: a build directory may hold those of an earlier version.
find obj/src obj/ui obj/kernels -name '*.o' 2>/dev/null | while read -r o; do
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
