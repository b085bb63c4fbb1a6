/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 3-bit weights with codebooks. */
#include <stddef.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/books.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsb3 qsb_block;
enum { QSB_BITS = 3, QSB_SCALE_BITS = 4 };
#define QSB_BOOKS qk_books3

#include "kernels/generic/qsb.h"

QK_REF_MATMULS(qsb3, QK_QSB3, add_block)

void qk_dequant_qsb3_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
