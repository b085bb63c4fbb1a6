/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps the surprise of the text near tau bits (Basu et al. 2021, "Mirostat: A Neural Text Decoding Algorithm
 * that Directly Controls Perplexity"). mu is the most surprise of a token; version 1 estimates from it how
 * many of the likeliest tokens there are, by Zipf's law, version 2 compares with it. mu follows the error of
 * each token. Surprise is that before this stage. */
#include <math.h>

#include "src/sample/chain.h"

#define ESTIMATED 100u /* tokens that the exponent is estimated from */

static bool on(const QsfChain *c) { return c->p->mirostat > 0 && c->p->temperature > 0; }

/* The likeliest, best first; returns how many. */
static size_t likeliest(QsfChain *c, qk_pick *out) {
    const size_t most = c->n < ESTIMATED ? c->n : ESTIMATED;
    if (c->dense) return c->table->top_k(out, c->x, c->n_vocab, most);
    float *x = (float *)(void *)qsf_chain_scratch(c);
    for (size_t i = 0; i < c->n; i++) x[i] = c->cand[i].x;
    return c->table->top_k(out, x, c->n, most);
}

/* The exponent of Zipf's law, by least squares of the ratios of neighbours. */
static double exponent(QsfChain *c) {
    qk_pick top[ESTIMATED];
    const size_t n = likeliest(c, top);
    double tb = 0, tt = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        const double t = log((double)(i + 2) / (double)(i + 1));
        tb += t * ((double)top[i].x - (double)top[i + 1].x) / c->temperature;
        tt += t * t;
    }
    return tt > 0 ? tb / tt : 0;
}

/* How many tokens have a surprise of at most mu. */
static size_t count(QsfChain *c, double mu) {
    const double s = exponent(c), e = s - 1, n = (double)c->n_vocab;
    if (!(s > 0)) return c->n;
    const double part = fabs(e) < 1e-9 ? 1 / log(n) : e / (1 - pow(n, -e));
    const double k = pow(part * exp2(mu), 1 / s);
    return k < 1 ? 1 : k < (double)c->n ? (size_t)(k + 0.5) : c->n;
}

static void apply(QsfChain *c) {
    QsfChainMemory *m = c->memory;
    if (!m->mirostat) m->mu = 2 * (double)c->p->mirostat_tau;
    m->mirostat = true;
    const double before = qsf_chain_total(c), max = (double)qsf_chain_max(c);
    if (c->p->mirostat == 1)
        qsf_chain_top_k(c, count(c, m->mu));
    else
        qsf_chain_at_least(c, (float)(max + c->temperature * (log(before) - m->mu * 0.69314718055994531)));
    c->share = qsf_chain_total(c) / before;
}

static void drawn(QsfChain *c, const QsfSample *s) {
    const double p = (double)s->p * c->share, surprise = p > 0 ? -log2(p) : 100;
    c->memory->mu -= (double)c->p->mirostat_eta * (surprise - (double)c->p->mirostat_tau);
}

const QsfStage qsf_stage_mirostat = {
    "mirostat", "", QSF_STAGE_FIXED | QSF_STAGE_KEEPS_BEST, on, apply, drawn
};
