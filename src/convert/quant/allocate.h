/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the bits and the format of each tensor: by its type, or for a target size the smallest error for
 * the available bytes. Pure functions without allocation, any thread. */
#ifndef QSF_CONVERT_QUANT_ALLOCATE_H
#define QSF_CONVERT_QUANT_ALLOCATE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

/* Number of bits for the weights in `mixed` (man/qsf-format.5): embeddings, V, down projections and the first
 * and last layer get more. */

/* Tensor types of QSF files (man/qsf-format.5); the embedding table is not a tensor there. */
enum { QSF_ROLE_EMBEDDING = 0x100 };

typedef struct QsfQuantPolicy {
    uint8_t floor; /* minimum bits with a target size; 16 = half precision or better */
    uint8_t start; /* initial bits without a target size */
    double weight; /* weight of its error when bits are allocated */
} QsfQuantPolicy;

/* Returns the policy for a tensor type, or QSF_ROLE_EMBEDDING, in layer `layer` of n_layers. Types other than
 * matrices (norms, biases), routers and unknown types get 16 bits. For tensors of the final section, layer is
 * n_layers or more. */
QsfQuantPolicy qsf_quant_policy(unsigned role, uint32_t layer, uint32_t n_layers);

/* Why a tensor has more than its initial bits. */
typedef enum QsfStepUp { QSF_BUMP_NONE, QSF_BUMP_OUTLIERS, QSF_BUMP_COSINE } QsfStepUp;

#define QSF_QUANT_COSINE 0.99 /* below this cosine a tensor gets more bits */

/* A candidate format; candidates are ordered from few bits to many. */
typedef struct QsfQuantRung {
    uint8_t bits;
    double cosine; /* between the decoded and the original tensor */
} QsfQuantRung;

/* Returns the first of n > 0 rungs with at least `start` bits (4 if the number of outliers requires it) whose
 * cosine is 0.99 or more, else the last one; *why is the last reason for raising the bits. */
size_t qsf_quant_climb(const QsfQuantRung *rungs, size_t n, unsigned start, int many_outliers,
                       QsfStepUp *why);

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
