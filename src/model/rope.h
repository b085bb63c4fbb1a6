/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotation tables of a model from its rope.* keys: base, linear scaling, YaRN, and factors from a tensor. */
#ifndef QSF_MODEL_ROPE_H
#define QSF_MODEL_ROPE_H

#include "src/model/build.h"

/* How rope.dimension_sections divides the pairs among the positions of an image: time, height, width and one
 * more. In text the first three are the same and the fourth is 0, so its pairs do not turn; files with the
 * first two sections rotate halves, whatever others of their architecture do (ggml-org/llama.cpp). */
typedef enum QsfRopeSections {
    QSF_ROPE_SECTIONS_NONE, /* the key is not read */
    QSF_ROPE_SECTIONS_SIDE, /* side by side */
    QSF_ROPE_SECTIONS_MIXED /* pair i belongs to section i % 3, up to three times its size */
} QsfRopeSections;

typedef struct QsfRopeSpec {
    QsfRopeKind kind;
    uint32_t head_dim;    /* default of rope.dimension_count, and its maximum */
    const char *head_key; /* key of head_dim, for messages; NULL = attention.key_length */
    uint32_t n_rot;       /* 0 = rope.dimension_count */
    bool halve;           /* half of rope.dimension_count */
    const char *base_key; /* "rope.freq_base"; NULL = the base is fixed */
    bool alpha;           /* rope.scaling.alpha a raises the base to base * a^(n / (n - 2)), n = head_dim */
    QsfRopeSections sections;
    float base;           /* default of the base */
    bool plain;           /* ignore the model's scaling and factors */
    double log_unit;      /* of rope.scaling.yarn_log_multiplier; 0 = 1 */
    bool unit_magnitude;  /* with a multiplier, cos and sin are not scaled by YaRN */
    double *score_factor; /* NULL, or set to what scores are multiplied with, squared: cos and sin's magnitude
                             times 1 + 0.1 * multiplier * ln(factor) */
} QsfRopeSpec;

/* Reads rope.scaling.* and adds a table; QSF_NONE for kind NONE or after an error. Unknown kinds of scaling
 * are errors: ignoring them would give wrong results. */
uint32_t qsf_rope_table(QsfBuilder *b, const QsfRopeSpec *spec);

#endif
