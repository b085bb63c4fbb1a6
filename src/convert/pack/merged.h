/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adapters in the weights of a source: matrices that they change become tensors of its virtual file,
 * whose rows are computed when they are read (W + factor B A). Their type is that of the model where
 * that is F32 or BF16, otherwise F16. All other tensors, and the metadata, are as they were. */
#ifndef QSF_CONVERT_PACK_MERGED_H
#define QSF_CONVERT_PACK_MERGED_H

#include "kernels/kernels.h"
#include "src/file/source.h"

/* Rows [row0, row0 + rows) of tensor `index` of the source: += factor * B A, with rows [a_row, a_row +
 * rank) of a, (cols) each, and rows [b_row, b_row + rows) of b, (rank) each. a and b are tensors of
 * src, which outlives the source. */
typedef struct QsfAddend {
    uint64_t index, row0, rows;
    uint32_t rank;
    float factor;
    const QsfSource *src;
    const QsfTensor *a, *b;
    uint64_t a_row, b_row;
} QsfAddend;

/* Changes the tensors of s; add (n), sorted by index, is copied. QSF_E_RUNTIME if out of memory.
 * Reading such a tensor: QSF_E_MODEL if a value is not finite, or too large for its type;
 * QSF_E_RUNTIME. Any thread may read. */
int qsf_merge_into(QsfSource *s, const QsfAddend *add, size_t n, QsfErr *err);

#endif
