/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the fast GELU interpolates in (gelu_table.c): gelu(x) - max(x, 0) at |x| = i / QK_GELU_PER_UNIT. */
#ifndef QSF_KERNELS_GELU_H
#define QSF_KERNELS_GELU_H

enum { QK_GELU_PER_UNIT = 64, QK_GELU_STEPS = 6 * QK_GELU_PER_UNIT };

extern const float qk_gelu_dips[QK_GELU_STEPS + 2];

#endif
