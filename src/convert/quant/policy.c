/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of roles. Weights: errors of V and down projections enter the residual stream unscaled, while softmax
 * and gate dampen those of Q, K and gate; errors of embedding and head affect tokens directly. */
#include "src/convert/quant/policy.h"

enum { UNQUANTIZED = 16, END_FLOOR = 3, END_START = 4, OUTLIER_BITS = 4 };

#define END_WEIGHT 2.0

static const struct {
    unsigned role;
    QsfQuantPolicy policy;
} table[] = {
    { 0, { 2, 2, 1.0 } },  /* Q */
    { 1, { 2, 2, 1.0 } },  /* K */
    { 2, { 3, 4, 2.0 } },  /* V */
    { 3, { 2, 2, 1.5 } },  /* attention output */
    { 4, { 2, 2, 1.0 } },  /* gate */
    { 5, { 2, 2, 1.0 } },  /* up */
    { 6, { 3, 4, 2.0 } },  /* down */
    { 23, { 2, 2, 1.0 } }, /* gate, up and down of experts: each sees few tokens */
    { 24, { 2, 2, 1.0 } },
    { 25, { 2, 3, 1.5 } },
    { 26, { 4, 4, 2.0 } }, /* head */
    { QSF_ROLE_EMBEDDING, { 4, 4, 1.0 } },
};

static uint8_t at_least(uint8_t bits, uint8_t least) { return bits > least ? bits : least; }

QsfQuantPolicy qsf_quant_policy(unsigned role, uint32_t layer, uint32_t n_layers) {
    QsfQuantPolicy p = { UNQUANTIZED, UNQUANTIZED, 1 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].role == role) p = table[i].policy;
    const int outer = layer < n_layers && (layer == 0 || layer == n_layers - 1);
    if (p.floor >= UNQUANTIZED || role == QSF_ROLE_EMBEDDING || !outer) return p;
    return (QsfQuantPolicy){ at_least(p.floor, END_FLOOR), at_least(p.start, END_START),
                             END_WEIGHT * p.weight };
}

size_t qsf_quant_climb(const QsfQuantRung *rungs, size_t n, unsigned start, int many_outliers,
                       QsfStepUp *why) {
    size_t i = 0;
    *why = QSF_BUMP_NONE;
    while (i + 1 < n && rungs[i].bits < start) i++;
    for (; many_outliers && i + 1 < n && rungs[i].bits < OUTLIER_BITS; i++) *why = QSF_BUMP_OUTLIERS;
    for (; i + 1 < n && !(rungs[i].cosine >= QSF_QUANT_COSINE); i++) *why = QSF_BUMP_COSINE;
    return i;
}
