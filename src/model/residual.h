/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a block changes of the values that pass from block to block: the residual stream, or several. Read
 * from the program, to compare a block's input with its output, and to leave a block out. */
#ifndef QSF_MODEL_RESIDUAL_H
#define QSF_MODEL_RESIDUAL_H

#include "src/model/optional.h"

typedef struct QsfResidualBlock {
    uint32_t begin, end; /* its steps; equal: it has none */
    uint32_t first, n;   /* slices[first, first + n): there before the block, changed by it, read after it */
    uint32_t width;      /* of all these */
} QsfResidualBlock;

typedef struct QsfResidual {
    QsfResidualBlock *block; /* (n_blocks) of the program */
    uint32_t n_blocks;
    QsfSlice *slice;
    uint32_t n_slices, cap_slices;
    uint32_t widest; /* width of a block */
} QsfResidual;

/* Reads the program of m. QSF_E_RUNTIME if out of memory; QSF_E_MODEL if the steps of a block are not
 * together. The caller frees *out. */
int qsf_residual_make(QsfResidual *out, const QsfModel *m, QsfErr *err);
void qsf_residual_free(QsfResidual *r); /* *r may be zeroed */
/* Does a block leave values for later steps that are not part of its residual? */
bool qsf_residual_leaves_more(const QsfResidual *r, const QsfProgram *p, uint32_t block);

/* The blocks before which the residual is one slice, and all of the earlier results and of the embedding that
 * later steps read. QSF_E_RUNTIME if out of memory. */
int qsf_residual_alone(const QsfResidual *r, const QsfProgram *p, QsfBlockSet *out, QsfErr *err);

#endif
