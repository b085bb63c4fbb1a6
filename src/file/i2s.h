/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts that programs write as GGUF type 36 (I2_S). Only the size of a tensor's data
 * distinguishes them:
 *
 *   name         per block                               of a tensor                            type
 *   microsoft    32 bytes for 128 elements               32 bytes at the end, first its scale   I2_S
 *   bitnet32f16  8 bytes and a float16 for 32 elements                                          I2_32
 *   split32      8 bytes for 32 elements                 scales in a tensor of their own        I2_32
 *   qk256        64 bytes for 256 elements               no scale                               I2_256
 *
 * microsoft/BitNet writes the first, with the values -1, 0 and 1. The others are those of
 * EffortlessMetrics/BitNet-rs, with the values -2, -1, 1 and 2. The tensor with the scales of a split32
 * tensor has its name, with or without ".weight", and then .scale, .scales, _scale or _scales; where there is
 * one, data of its size is not qk256. Codes and scales are joined to blocks of bitnet32f16 when they are read
 * (derive/derive.h); the tensor of scales is not among the tensors of the source. */
#ifndef QSF_FILE_I2S_H
#define QSF_FILE_I2S_H

#include "src/file/source.h"

/* The pseudo key with which qsf_source_override chooses a layout: "qsf.i2s_flavor=str:qk256". */
#define QSF_I2S_KEY   "qsf.i2s_flavor"
#define QSF_I2S_NAMES "microsoft, bitnet32f16, split32 or qk256"

typedef struct QsfI2sLayout {
    const char *name;
    uint32_t dtype; /* as stored, dtype.h */
    bool split;     /* its scales are another tensor */
} QsfI2sLayout;

#define QSF_I2S_LAYOUTS 4
extern const QsfI2sLayout qsf_i2s_layouts[QSF_I2S_LAYOUTS];

/* Returns the index of the layout with this name; -1 with *err set (QSF_E_USAGE) if there is none. */
int qsf_i2s_layout(const char *name, QsfErr *err);
/* Reads the scale that follows the rows of a tensor of type I2_S into t->scale. Errors of
 * qsf_source_read_bytes. */
int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err);

#endif
