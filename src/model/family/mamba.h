/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mamba blocks (state spaces with a selective scan), shared by the families that contain them. */
#ifndef QSF_MODEL_FAMILY_MAMBA_H
#define QSF_MODEL_FAMILY_MAMBA_H

#include "src/model/build.h"

/* Sizes from the ssm.* keys. */
typedef struct QsfSsm {
    uint32_t kernel, inner, n; /* of the convolution; channels; numbers per channel */
    uint32_t rank;             /* Mamba: of the time step; Mamba-2: heads */
    uint32_t groups;           /* Mamba-2: heads / groups heads share B and C */
    bool norms;                /* Mamba: the time step, B and C are normalized, also without weights */
} QsfSsm;

/* Read the keys; errors are kept in the builder. */
void qsf_ssm_read1(QsfBuilder *b, QsfSsm *s);
/* The keys of Mamba-2 but for ssm.group_count. */
void qsf_ssm_read_heads(QsfBuilder *b, QsfSsm *s);
void qsf_ssm_read2(QsfBuilder *b, QsfSsm *s);

/* What differs in the Mamba-2 blocks of the families. */
typedef struct QsfSsmNeeds {
    QsfNeed conv_bias, norm;
} QsfSsmNeeds;

/* Append a block that reads `in` and writes `out`, which may be the same. */
void qsf_build_mamba1(QsfBuilder *b, const QsfSsm *s, QsfSlice in, QsfSlice out);
void qsf_build_mamba2(QsfBuilder *b, const QsfSsm *s, const QsfSsmNeeds *needs, QsfSlice in, QsfSlice out);

#endif
