/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens whose logit is at most n standard deviations of all logits below the largest (Tang et al. 2024,
 * "Top-n-sigma: Not All Logits Are You Need"). */
#include <math.h>

#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->top_n_sigma > 0 && c->n > 1; }

#define LANES 32u /* sums that do not wait for each other, so that the compiler makes vectors of them */
#define BLOCK (16 * LANES) /* logits whose sums are in float */

typedef struct Sums {
    double sum, squares;
} Sums;

static void add(Sums *s, float x, float max) {
    const double d = x > QSF_LOGIT_LOWEST ? (double)x - (double)max : 0;
    s->sum += d;
    s->squares += d * d;
}

static void add_lanes(float *restrict sum, float *restrict squares, const float *restrict x, float max) {
    for (size_t j = 0; j < LANES; j++) {
        const float v = x[j] > QSF_LOGIT_LOWEST ? x[j] : max, d = v - max;
        sum[j] += d;
        squares[j] += d * d;
    }
}

static void add_block(Sums *s, const float *x, float max) {
    float sum[LANES] = { 0 }, squares[LANES] = { 0 };
    for (size_t i = 0; i < BLOCK; i += LANES) add_lanes(sum, squares, x + i, max);
    for (size_t j = 0; j < LANES; j++) {
        s->sum += (double)sum[j];
        s->squares += (double)squares[j];
    }
}

static double deviation(const QsfChain *c, float max) {
    Sums s = { 0, 0 };
    size_t i = 0;
    for (; c->dense && i + BLOCK <= c->n_vocab; i += BLOCK) add_block(&s, c->x + i, max);
    for (; i < (c->dense ? c->n_vocab : c->n); i++) add(&s, c->dense ? c->x[i] : c->cand[i].x, max);
    const double mean = s.sum / c->n, variance = s.squares / c->n - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

static void apply(QsfChain *c) {
    const float max = qsf_chain_max(c);
    qsf_chain_at_least(c, (float)((double)max - (double)c->p->top_n_sigma * deviation(c, max)));
}

const QsfStage qsf_stage_top_n_sigma = { "top-n-sigma", "",  QSF_STAGE_TRUNCATES | QSF_STAGE_KEEPS_BEST, on,
                                         apply,         NULL };
