/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens whose logit is at most n standard deviations of all logits below the largest (Tang et al. 2024,
 * "Top-n-sigma: Not All Logits Are You Need"). */
#include <math.h>

#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->top_n_sigma > 0 && c->n > 1; }

#define LANES 8u /* sums that do not wait for each other */

static void add(double *sum, double *squares, float x, float max) {
    const double d = x > QSF_LOGIT_LOWEST ? (double)x - (double)max : 0;
    *sum += d;
    *squares += d * d;
}

static double deviation(const QsfChain *c, float max) {
    double sum[LANES] = { 0 }, squares[LANES] = { 0 };
    size_t i = 0;
    for (; c->dense && i + LANES <= c->n_vocab; i += LANES)
        for (size_t j = 0; j < LANES; j++) add(&sum[j], &squares[j], c->x[i + j], max);
    for (; i < (c->dense ? c->n_vocab : c->n); i++)
        add(&sum[0], &squares[0], c->dense ? c->x[i] : c->cand[i].x, max);
    for (size_t j = 1; j < LANES; j++) {
        sum[0] += sum[j];
        squares[0] += squares[j];
    }
    const double mean = sum[0] / c->n, variance = squares[0] / c->n - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

static void apply(QsfChain *c) {
    const float max = qsf_chain_max(c);
    qsf_chain_at_least(c, (float)((double)max - (double)c->p->top_n_sigma * deviation(c, max)));
}

const QsfStage qsf_stage_top_n_sigma = { "top-n-sigma", "",  QSF_STAGE_TRUNCATES | QSF_STAGE_KEEPS_BEST, on,
                                         apply,         NULL };
