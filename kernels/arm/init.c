/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that maps ARM ISA levels to kernels: upward, with an early return at the level asked for. */
#include "kernels/arm/arm.h"
#include "kernels/arm/mm.h"
#include "kernels/generic/ops.h"
#include "kernels/generic/kv.h"

static void set_mm(qk_weight_ops *ops, const char *name, void (*matmul)(const qk_mm *, size_t, size_t))
{
    ops->name = name;
    ops->matmul = matmul;
}

#define SET_MM(t, type, name) set_mm(&(t)->weight[type], #name, qk_mm_##name)

static void set_neon(qk_table *t)
{
    t->level = QK_LEVEL_NEON;
    QK_SET_BLOCK_CELLS(t, neon);
    QK_SET_SUPER_CELLS(t, neon);
    QK_SET_OPS(t, neon);
    QK_SET_KV(t, neon);
    SET_MM(t, QK_F32, f32_neon);
    SET_MM(t, QK_F16, f16_neon);
    SET_MM(t, QK_BF16, bf16_neon);
}

static void set_dotprod(qk_table *t)
{
    t->level = QK_LEVEL_DOTPROD;
    QK_SET_BLOCK_CELLS(t, dotprod);
    QK_SET_SUPER_CELLS(t, dotprod);
}

void qk_init_arm(qk_table *t, qk_level level)
{
    if (level < QK_LEVEL_NEON)
        return;
    set_neon(t);
    if (level < QK_LEVEL_DOTPROD)
        return;
    set_dotprod(t);
}
