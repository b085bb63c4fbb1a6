#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs on a machine whose pages have 16 KiB, as on processors of Apple and some ARM64 boards: every
# call for memory is at a multiple of that, and answers are the same for every budget.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "sanitizers have their own memory calls"
[ "$(uname -s)" = Linux ] || skip "the calls are those of Linux"
. "$(dirname "$0")/model.sh"
cd "$work" || exit 1
$CC -O1 -shared -fPIC -o pages.so "$QSF_SRCDIR/tests/system/pages.c" -ldl 2>log || { cat log; fail "pages.c"; finish; }
cat >t.c <<'END'
#include <sys/mman.h>
int main(void) {
    char *p = mmap(0, 32768, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return munmap(p + 4096, 4096) == 0;
}
END
$CC -D_GNU_SOURCE -o t t.c && LD_PRELOAD=$PWD/pages.so ./t 2>err && grep -q '^pages: munmap' err ||
    { cat err; fail "a call at 4 KiB is not found"; }

paged() { LD_PRELOAD="$work/pages.so" "$@"; }
good() { ! grep '^pages:' "$1" | sort | uniq -c | head -n 5 | grep . || fail "calls at no multiple of 16 KiB: $2"; }
# same MODEL OPTIONS...
same() {
    "$run" "$@" >wanted 2>err </dev/null || { cat err; fail "qsf-run $*"; }
    paged "$run" "$@" >got 2>err </dev/null || { cat err; fail "with pages of 16 KiB: $*"; }
    good err "$*"
    [ -s got ] && cmp -s got wanted || { diff got wanted; fail "another answer with pages of 16 KiB: $*"; }
}
ask='--temperature 0 --ignore-eos -n 6 --threads 2 -p the'
big_model
# shellcheck disable=SC2086 # words
for budget in 60 100 $((big_mb + 60)); do same "$big" $ask --ram-budget $budget; done
# shellcheck disable=SC2086
for io in pread mmap; do same "$tiny" $ask --pin 0 --io $io; done
"$QSF_BUILDDIR/obj/tests/tools/mktiny" sparse.gguf experts=stacked 2>log || { cat log; fail "mktiny"; }
# shellcheck disable=SC2086
same sparse.gguf $ask

# Plans that change, memory that is lent and returned, experts in slots.
tests='base/t_ledger base/t_space'
[ -n "${QSF_TEST_QUICK-}" ] || tests="$tests forward/t_expert_pool engine/t_worker_plan"
for t in $tests; do
    t=$QSF_BUILDDIR/obj/tests/unit/$t
    [ -e "$t" ] || continue
    paged "$t" >out 2>err || [ $? = 77 ] || { grep -v '  OK ' out | tail -n 20; fail "$t with pages of 16 KiB"; }
    good err "$t"
done
finish
