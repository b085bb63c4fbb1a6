/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The builders of model families and what their rows in table.c differ in. */
#ifndef QSF_MODEL_FAMILY_FAMILIES_H
#define QSF_MODEL_FAMILY_FAMILIES_H

#include "src/model/build.h"

/* Transformers with attention and a feed-forward network in each block. */
typedef struct QsfDense {
    QsfRopeKind rope;
    QsfActKind act;
    bool gated; /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
} QsfDense;
void qsf_family_dense(QsfBuilder *b);

#endif
