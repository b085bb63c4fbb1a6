/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantized tensors of a Hugging Face directory and the tensors with their scales. */
#ifndef QSF_FILE_HF_SCALES_H
#define QSF_FILE_HF_SCALES_H

#include "src/file/hf/pieces.h"

/* Chooses d->kind for a tensor of F8 or bytes in a directory with quantization_config, or d->scaled_f8 and
 * d->src_dtype. QSF_E_MODEL if there is no way to read it. */
int qsf_hf_scales_kind(const QsfHfModel *m, const QsfHfPiece *p, QsfDerived *d);
/* Has the directory a tensor with the scales of this one? */
bool qsf_hf_scales_has(const QsfHfModel *m, const QsfHfPiece *p);
/* Finds the scales of a part, which has this shape without the bytes of a block, and checks their shape; sets
 * the fields of d and part for scales. */
int qsf_hf_scales_find(const QsfHfModel *m, const QsfHfPiece *p, const uint64_t *shape, uint32_t n_dims,
                       QsfDerived *d, QsfDerivedPart *part);

#endif
