/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces of GGUF tensors in a Hugging Face directory. */
#ifndef QSF_FILE_HF_PIECES_H
#define QSF_FILE_HF_PIECES_H

#include "src/file/hf/model.h"

typedef struct QsfHfPiece {
    const QsfHfName *row;
    const QsfStTensor *t;
    uint32_t file;
    int32_t layer, expert; /* -1 = none */
    uint64_t order;        /* in the files */
} QsfHfPiece;

typedef struct QsfHfPieces {
    QsfHfModel *m;
    QsfHfPiece *piece; /* (n), or NULL */
    uint64_t n;
} QsfHfPieces;

/* hf/derive.c: makes tensor *out from pieces that belong together, p[0..n) in order. QSF_E_MODEL, which names
 * the tensor in the directory, if they do not. */
int qsf_hf_tensor_make(QsfHfModel *m, const QsfHfPiece *p, uint32_t n, QsfTensor *out);

#endif
