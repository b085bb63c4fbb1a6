/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that maps x86 ISA levels to kernels: upward, with an early return at the level asked for. */
#include "kernels/built.h"
#include "kernels/generic/kv.h"
#include "kernels/x86/mm.h"
#include "kernels/generic/ops.h"
#include "kernels/x86/x86.h"

static void set_sse42(qk_table *t)
{
    t->level = QK_LEVEL_SSE42;
    QK_SET_BLOCK_CELLS(t, sse42);
    QK_SET_SUPER_CELLS(t, sse42);
    QK_SET_OPS(t, sse42);
    QK_SET_KV(t, sse42);
    QK_SET_FLOAT_CELLS(t, sse42);
}

#if QK_BUILT_AVX2
static void set_avx2(qk_table *t)
{
    t->level = QK_LEVEL_AVX2;
    QK_SET_BLOCK_CELLS(t, avx2);
    QK_SET_SUPER_CELLS(t, avx2);
    QK_SET_OPS(t, avx2);
    QK_SET_KV(t, avx2);
    QK_SET_FLOAT_CELLS(t, avx2);
}
#endif

#if QK_BUILT_AVX512
static void set_avx512(qk_table *t)
{
    t->level = QK_LEVEL_AVX512;
    QK_SET_BLOCK_CELLS(t, avx512);
    QK_SET_SUPER_CELLS(t, avx512);
    QK_SET_OPS(t, avx512);
    QK_SET_KV(t, avx512);
    QK_SET_FLOAT_CELLS(t, avx512);
}
#endif

#if QK_BUILT_AVX512VNNI
static void set_avx512vnni(qk_table *t)
{
    t->level = QK_LEVEL_AVX512VNNI;
    QK_SET_BLOCK_CELLS(t, avx512vnni);
    QK_SET_SUPER_CELLS(t, avx512vnni);
}
#endif

void qk_init_x86(qk_table *t, qk_level level)
{
    if (level < QK_LEVEL_SSE42)
        return;
    set_sse42(t);
#if QK_BUILT_AVX2
    if (level < QK_LEVEL_AVX2)
        return;
    set_avx2(t);
#endif
#if QK_BUILT_AVX512
    if (level < QK_LEVEL_AVX512)
        return;
    set_avx512(t);
#endif
#if QK_BUILT_AVX512VNNI
    if (level < QK_LEVEL_AVX512VNNI)
        return;
    set_avx512vnni(t);
#endif
}
