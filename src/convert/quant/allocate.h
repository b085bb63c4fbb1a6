/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the format of each tensor for a target size: the smallest error for the available bytes. Pure
 * functions without allocation, any thread. */
#ifndef QSF_CONVERT_QUANT_ALLOCATE_H
#define QSF_CONVERT_QUANT_ALLOCATE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

enum { QSF_ALLOC_OPTIONS = 32 };

/* A tensor in one format. */
typedef struct QsfAllocOption {
    uint64_t bytes; /* its size in the file, including headers and lists of outliers */
    double error;   /* 0 or more; noise / signal makes tensors comparable */
} QsfAllocOption;

typedef struct QsfAllocTensor {
    const char *name;              /* for messages */
    const QsfAllocOption *options; /* (n), in any order */
    size_t n;                      /* at most QSF_ALLOC_OPTIONS */
    uint32_t allowed;              /* bit i: option i is allowed; set by role minimums and user options */
    double weight;                 /* weight of its error, 0 or more */
    size_t chosen;                 /* out: index of the option */
} QsfAllocTensor;

/* Chooses options so that their total size is at most target and the sum of weight * error is small: starts
 * with the smallest option of each tensor, repeatedly takes the step that removes the most error per byte
 * (the steps of the Lagrangian's hull), then exchanges bytes between pairs of tensors. *total is the exact
 * total size; if the target is too small, it is the minimum size. QSF_E_USAGE: target is below the minimum;
 * QSF_E_RUNTIME: a tensor has no allowed option, an error or weight is not a finite number of 0 or more, or
 * the total does not fit 64 bits. */
int qsf_allocate(QsfAllocTensor *tensors, size_t n, uint64_t target, uint64_t *total, QsfErr *err);

#endif
