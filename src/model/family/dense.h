/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dense transformer while its program is built. */
#ifndef QSF_MODEL_FAMILY_DENSE_H
#define QSF_MODEL_FAMILY_DENSE_H

#include "src/model/family/families.h"

typedef struct QsfDenseModel {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfDense *d;
    uint32_t rope, window_rope; /* tables; QSF_NONE = no rotation */
    uint32_t window;            /* of the blocks that have one; 0 = none has */
    bool has_window[QSF_MAX_LAYERS];
    uint32_t slopes; /* of ALiBi */
    float score_scale, score_cap, embed_scale, residual_scale, logit_scale, logit_cap;
    float clamp; /* of q, k and v; 0 = none */
} QsfDenseModel;

#endif
