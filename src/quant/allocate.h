/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which format each tensor gets when a size is given: least error for the bytes there are. Pure functions without
 * allocation, any thread. */
#ifndef QSF_QUANT_ALLOCATE_H
#define QSF_QUANT_ALLOCATE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

enum { QSF_ALLOC_OPTIONS = 32 };

/* A tensor in one format. */
typedef struct QsfAllocOption {
    uint64_t bytes; /* all it takes in the file, headers and lists of outliers included */
    double error;   /* from 0 on; noise / signal makes tensors comparable */
} QsfAllocOption;

typedef struct QsfAllocTensor {
    const char *name;              /* for messages */
    const QsfAllocOption *options; /* (n), in any order */
    size_t n;                      /* at most QSF_ALLOC_OPTIONS */
    uint32_t allowed;              /* bit i: option i may be taken; floors of roles and what the user fixed go here */
    double weight;                 /* how much its error counts, from 0 on */
    size_t chosen;                 /* out: index of the option */
} QsfAllocTensor;

/* Chooses so that the bytes of all together are at most target and the sum of weight * error is as small as it finds:
 * from the smallest option of each tensor on, always the step that takes off most error per byte (the steps of the
 * Lagrangian's hull), then exchanges of bytes between two tensors. The sum of bytes is exact, in *total; *total is
 * set too when the target is too small: to the least that is allowed.
 * QSF_E_USAGE when target is below that; QSF_E_RUNTIME when a tensor has no allowed option, an error or weight is no
 * finite number from 0 on, or the bytes do not fit 64 bits. */
int qsf_allocate(QsfAllocTensor *tensors, size_t n, uint64_t target, uint64_t *total, QsfErr *err);

#endif
