/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of GGUF files, and the layouts of their I2_S tensors. Private to this folder. */
#ifndef QSF_FILE_GGUF_GGUF_H
#define QSF_FILE_GGUF_GGUF_H

#include "src/file/source_impl.h"

/* One file of a model: header, metadata and the table of its tensors. */
typedef struct QsfGgufPart {
    QsfMetaTable meta;
    QsfTensor *tensors; /* (n_tensors), offsets absolute and checked */
    uint64_t n_tensors;
    uint32_t version, alignment;
} QsfGgufPart;

/* Prepares s, whose tensors are those of its n_files parts, and chooses the first layout in the table whose
 * size fits for each I2_S tensor; qsf_source_override can choose another. QSF_E_MODEL if none fits. */
int qsf_i2s_open(QsfSource *s, const QsfGgufPart *parts, QsfErr *err);

#endif
