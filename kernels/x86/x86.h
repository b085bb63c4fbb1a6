/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The x86 overlay's one entry. */
#ifndef QSF_KERNELS_X86_X86_H
#define QSF_KERNELS_X86_X86_H

#include "kernels/kernels.h"

/* Overlays every level from SSE4.2 up to `level` and sets t->level to the highest one used. */
void qk_init_x86(qk_table *t, qk_level level);

#endif
