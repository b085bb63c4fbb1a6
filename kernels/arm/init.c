/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that maps ARM ISA levels to kernels: upward, with an early return at the level asked for. */
#include "kernels/arm/arm.h"
#include "kernels/arm/mm.h"
#include "kernels/built.h"
#include "kernels/generic/ops.h"
#include "kernels/generic/kv.h"

static void set_neon(qk_table *t)
{
    t->level = QK_LEVEL_NEON;
    QK_SET_BLOCK_CELLS(t, neon);
    QK_SET_SUPER_CELLS(t, neon);
    QK_SET_OPS(t, neon);
    QK_SET_KV(t, neon);
    QK_SET_FLOAT_CELLS(t, neon);
}

#if QK_BUILT_DOTPROD
static void set_dotprod(qk_table *t)
{
    t->level = QK_LEVEL_DOTPROD;
    QK_SET_BLOCK_CELLS(t, dotprod);
    QK_SET_SUPER_CELLS(t, dotprod);
}
#endif

void qk_init_arm(qk_table *t, qk_level level)
{
    if (level < QK_LEVEL_NEON)
        return;
    set_neon(t);
#if QK_BUILT_DOTPROD
    if (level < QK_LEVEL_DOTPROD)
        return;
    set_dotprod(t);
#endif
}
