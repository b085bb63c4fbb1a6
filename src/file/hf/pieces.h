/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces of GGUF tensors in a Hugging Face directory; quantized ones and the tensors with their scales. */
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

/* hf/scales.c. Chooses d->kind for a tensor of F8 or bytes in a directory with quantization_config, or
 * d->scaled_f8 and d->src_dtype. QSF_E_MODEL if there is no way to read it. */
int qsf_hf_scales_kind(const QsfHfModel *m, const QsfHfPiece *p, QsfDerived *d);
/* Has the directory a tensor with the scales of this one? */
bool qsf_hf_scales_has(const QsfHfModel *m, const QsfHfPiece *p);
/* Finds the scales of a part, which has this shape without the bytes of a block, and checks their shape; sets
 * the fields of d and part for scales. */
int qsf_hf_scales_find(const QsfHfModel *m, const QsfHfPiece *p, const uint64_t *shape, uint32_t n_dims,
                       QsfDerived *d, QsfDerivedPart *part);

#endif
