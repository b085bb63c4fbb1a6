/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts that programs write as GGUF type 36 (I2_S). Only the size of a tensor's data distinguishes them:
 *
 *   name         per block                               of a tensor                            type
 *   microsoft    32 bytes for 128 elements               32 bytes at the end, first its scale   I2_S
 *   bitnet32f16  8 bytes and a float16 for 32 elements                                          I2_32
 *   split32      8 bytes for 32 elements                 scales in a tensor of their own        I2_32
 *   qk256        64 bytes for 256 elements               no scale                               I2_256
 *
 * microsoft/BitNet writes the first, with the values -1, 0 and 1. The others are those of EffortlessMetrics/BitNet-rs,
 * with the values -2, -1, 1 and 2. The tensor with the scales of a split32 tensor has its name, with or without
 * ".weight", and then .scale, .scales, _scale or _scales; where there is one, data of its size is not qk256. Codes
 * and scales are joined to blocks of bitnet32f16 when they are read (derive.h); the tensor of scales is not among the
 * tensors of the source. */
#ifndef QSF_FILE_GGUF_I2S_H
#define QSF_FILE_GGUF_I2S_H

#include "src/file/derive/derive.h"

/* The pseudo key with which qsf_source_override chooses a layout: "qsf.i2s_flavor=str:qk256". */
#define QSF_I2S_KEY   "qsf.i2s_flavor"
#define QSF_I2S_NAMES "microsoft, bitnet32f16, split32 or qk256"

/* What choosing a layout again begins with; in the arena of the source. */
typedef struct QsfI2s {
    const QsfTensor *stored;   /* (n) the tensors as the files list them */
    const uint32_t *alignment; /* (n_files) */
    bool *joined;              /* (n) tensors of scales that are part of another tensor */
    QsfDerivedPart *part;      /* (n_i2s) */
    QsfRowMap *map;            /* (n_i2s) */
    uint64_t n, n_i2s;
} QsfI2s;

/* The tensors of a source by their names. */
typedef struct QsfI2sNames {
    const QsfTensor **by_name; /* (n) */
    uint64_t n;
} QsfI2sNames;

/* Prepares s, whose tensors are those of its n_files parts, and chooses the first layout in the table whose size fits
 * for each of its I2_S tensors. Does nothing if it has none. Errors as below, QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_i2s_open(QsfSource *s, const QsfGgufPart *parts, QsfErr *err);
/* Sets type, size, place and scale of the I2_S tensors again. name: the layout that all must have; NULL: any. Errors:
 * QSF_E_USAGE if `name` is unknown; QSF_E_MODEL, with the sizes found and expected, if a tensor fits no layout, or not
 * the one named, or if the scales of a split32 tensor are missing, or their type or number is wrong. */
int qsf_i2s_choose(QsfSource *s, const char *name, QsfErr *err);
/* Reads the scale that follows the rows of an I2_S tensor. */
int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err);

/* --- i2s_split.c --- */
/* Returns the tensor with the scales of the tensor with this name, or NULL. */
const QsfTensor *qsf_i2s_scales(const QsfI2sNames *names, const char *name);
/* Makes the tensors of type I2_SPLIT derived ones of type I2_32, and takes their scales out of the table. */
int qsf_i2s_join(QsfSource *s, const QsfI2sNames *names, QsfErr *err);

#endif
