/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotation tables of a model from its rope.* keys: base, linear scaling, YaRN, and factors from a tensor. */
#ifndef QSF_MODEL_ROPE_H
#define QSF_MODEL_ROPE_H

#include "src/model/build.h"

typedef struct QsfRopeSpec {
    QsfRopeKind kind;
    uint32_t head_dim;    /* default of rope.dimension_count, and its maximum */
    const char *head_key; /* key of head_dim, for messages; NULL = attention.key_length */
    uint32_t n_rot;       /* 0 = rope.dimension_count */
    bool halve;           /* half of rope.dimension_count */
    const char *base_key; /* "rope.freq_base"; NULL = the base is fixed */
    bool
        xdrope; /* rope.scaling.alpha a raises the base to base * a^(n / (n - 2)), n = head_dim; pairs of the fourth
                    part of rope.dimension_sections do not turn in text (ggml-org/llama.cpp) */
    float base;          /* default of the base */
    bool plain;          /* ignore the model's scaling and factors */
    double log_unit;     /* of rope.scaling.yarn_log_multiplier; 0 = 1 */
    bool unit_magnitude; /* with a multiplier, cos and sin are not scaled by YaRN */
    double *
        score_factor; /* NULL, or set to what scores are multiplied with, squared: cos and sin's magnitude times
                             1 + 0.1 * multiplier * ln(factor) */
} QsfRopeSpec;

/* Reads rope.scaling.* and adds a table; QSF_NONE for kind NONE or after an error. Unknown kinds of scaling are
 * errors: ignoring them would give wrong results. */
uint32_t qsf_rope_table(QsfBuilder *b, const QsfRopeSpec *spec);

#endif
