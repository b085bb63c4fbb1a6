/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The entries of QsfReads: for reads*.c only. */
#ifndef QSF_MODEL_READS_IMPL_H
#define QSF_MODEL_READS_IMPL_H

#include <stddef.h>

#include "src/model/hparams.h"
#include "src/model/reads.h"

struct QsfReadKey {
    QsfReadKey *next;
    const char *arch, *name;
    bool absent;
    QsfReadValue value; /* if absent */
};

struct QsfAbsentTensor {
    QsfAbsentTensor *next;
    uint64_t block[QSF_MAX_LAYERS / 64]; /* bits; none = it is not of a block */
    char name[];
};

#endif
