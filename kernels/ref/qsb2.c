/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 2-bit weights with codebooks. */
#include <stddef.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/books.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsb2 qsb_block;
enum { QSB_BITS = 2, QSB_SCALE_BITS = 3 };
#define QSB_BOOKS qk_books2

#include "kernels/generic/qsb.h"

QK_REF_MATMULS(qsb2, QK_QSB2, add_block)

void qk_dequant_qsb2_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
