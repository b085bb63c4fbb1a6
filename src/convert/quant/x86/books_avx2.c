/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The search for blocks with codebooks, for AVX2. */
#include "src/convert/quant/books_core.h"

QSF_BOOK_CORE(avx2)
