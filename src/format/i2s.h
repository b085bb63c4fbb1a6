/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts that programs write as GGUF type 36 (I2_S). Only the size of a tensor's data distinguishes them:
 *
 *   name         per block                               of a tensor                            type
 *   microsoft    32 bytes for 128 elements               32 bytes at the end, first its scale   I2_S
 *   bitnet32f16  8 bytes and a float16 for 32 elements                                          I2_32
 *   split32      8 bytes for 32 elements                 scales in a tensor of their own        I2_SPLIT
 *   qk256        64 bytes for 256 elements               no scale                               I2_256
 *
 * microsoft/BitNet writes the first, with the values -1, 0 and 1. The others are those of EffortlessMetrics/BitNet-rs,
 * with the values -2, -1, 1 and 2. The tensor with the scales of a split32 tensor has its name, with or without
 * ".weight", and then .scale, .scales, _scale or _scales; where there is one, data of its size is not qk256. */
#ifndef QSF_FORMAT_I2S_H
#define QSF_FORMAT_I2S_H

#include "src/format/source.h"

/* The pseudo key with which qsf_source_override chooses a layout: "qsf.i2s_flavor=str:qk256". */
#define QSF_I2S_KEY   "qsf.i2s_flavor"
#define QSF_I2S_NAMES "microsoft, bitnet32f16, split32 or qk256"

/* Finds the layout of the I2_S tensors among the n of one or more files and sets their type, size and scale. Offsets are
 * absolute. name: the layout that all tensors must have; NULL: the first one in the table whose size fits. Errors:
 * QSF_E_USAGE if `name` is unknown; QSF_E_MODEL, with the sizes found and expected, if a tensor fits no layout, or not
 * the one named. */
int qsf_i2s_resolve(const QsfFile *files, QsfTensor *tensors, uint64_t n, uint32_t alignment,
                    const char *name, QsfErr *err);
/* Reads the scale that follows the rows of an I2_S tensor. */
int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err);

#endif
