/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many bits the weights of `mixed` get (spec 1.2 and Phase 3.1): embeddings, V, down projections and the
 * first and last layer get more. Pure functions, any thread. */
#ifndef QSF_QUANT_POLICY_H
#define QSF_QUANT_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* Tensor types of QSF files (spec Phase 1.1, design §5); the table of embeddings is no tensor there. */
enum { QSF_ROLE_EMBEDDING = 0x100 };

typedef struct QsfQuantPolicy {
    uint8_t floor;  /* fewest bits that a target size may press it down to; 16 = stays in half precision or better */
    uint8_t start;  /* bits that it begins with where no size is given */
    double weight;  /* of its error when bits are shared out */
} QsfQuantPolicy;

/* For a tensor type, or QSF_ROLE_EMBEDDING, of layer `layer` of n_layers. Types without a matrix (norms, biases), routers
 * and unknown ones get 16 bits. The final section's tensors are of no layer: any layer number from n_layers on. */
QsfQuantPolicy qsf_quant_policy(unsigned role, uint32_t layer, uint32_t n_layers);

/* Why a tensor has more bits than it began with. */
typedef enum QsfStepUp { QSF_BUMP_NONE, QSF_BUMP_OUTLIERS, QSF_BUMP_COSINE } QsfStepUp;

#define QSF_QUANT_COSINE 0.99 /* spec Phase 3.1 step 4 */

/* A format that could be taken, from few bits to many. */
typedef struct QsfQuantRung {
    uint8_t bits;
    double cosine; /* of the decoded tensor with the true one */
} QsfQuantRung;

/* The first of n > 0 rungs with at least `start` bits (4, if so many outliers want it) whose cosine is 0.99 or more, else
 * the last one; *why says what raised it last. */
size_t qsf_quant_climb(const QsfQuantRung *rungs, size_t n, unsigned start, int many_outliers, QsfStepUp *why);

#endif
