/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that maps x86 ISA levels to kernels: upward, with an early return at the level asked for. */
#include "kernels/x86/x86.h"

void qk_init_x86(qk_table *t, qk_level level)
{
    if (level < QK_LEVEL_SSE42)
        return;
    t->level = QK_LEVEL_REF;
}
