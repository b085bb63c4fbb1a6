/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit weights with codebooks. */
#include <stddef.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/books.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsb4 qsb_block;
enum { QSB_BITS = 4, QSB_SCALE_BITS = 5 };
#define QSB_BOOKS qk_books4

#include "kernels/generic/qsb.h"

QK_REF_MATMULS(qsb4, QK_QSB4, add_block)

void qk_dequant_qsb4_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
