/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prefers tokens whose probability is near a target, so that the average of those chosen is the target
 * (MrJackSpade/adaptive-p-docs, and ggml-org/llama.cpp, pull request 17927, for the constants). Logits become
 * PEAK - SHARPNESS * d^2 / (1 + d), with d the distance from the target in WIDTHs. The target of a token is
 * moved by what the average, with weights that decay, misses. */
#include <math.h>

#include "src/sample/chain.h"

#define WIDTH     0.3
#define PEAK      5.0
#define SHARPNESS 10.0

static bool on(const QsfChain *c) {
    return c->p->adaptive_target > 0 && c->p->temperature > 0 && c->p->mirostat == 0;
}

static double clamped(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static double decay(const QSFParams *p) { return clamped((double)p->adaptive_decay, 0, 0.99); }

/* It begins as if the target had been met so far. */
static double target(QsfChain *c) {
    QsfChainMemory *m = c->memory;
    const double want = clamped((double)c->p->adaptive_target, 0, 1);
    if (!m->adaptive) {
        m->p_weight = 1 / (1 - decay(c->p));
        m->p_sum = want * m->p_weight;
    }
    m->adaptive = true;
    return clamped(2 * want - m->p_sum / m->p_weight, 0, 1);
}

/* Makes a list of the candidates, and prob the probabilities by id. */
static void find_probabilities(QsfChain *c) {
    if (c->dense) {
        qsf_chain_probabilities(c);
        qsf_chain_at_least(c, -INFINITY);
    } else if (qsf_chain_is_long(c)) {
        (void)qsf_chain_soften(c);
        for (size_t i = 0; i < c->n; i++) c->prob[c->cand[i].id] = c->x[i];
    } else {
        const double max = (double)qsf_chain_max(c), total = qsf_chain_total(c);
        for (size_t i = 0; i < c->n; i++)
            c->prob[c->cand[i].id] = (float)(exp(((double)c->cand[i].x - max) / c->temperature) / total);
    }
}

/* The probabilities that the tokens had stay in prob. */
static void apply(QsfChain *c) {
    const double near = target(c);
    find_probabilities(c);
    for (size_t i = 0; i < c->n; i++) {
        qk_pick *k = &c->cand[i];
        const double d = fabs((double)c->prob[k->id] - near) / WIDTH;
        k->x = (float)(PEAK - SHARPNESS * d * d / (1 + d));
    }
    c->sorted = false;
    qsf_chain_changed(c);
    c->temperature = 1;
    c->prob_by_id = true;
}

static void drawn(QsfChain *c, const QsfSample *s) {
    QsfChainMemory *m = c->memory;
    m->p_sum = (double)c->prob[s->id] + decay(c->p) * m->p_sum;
    m->p_weight = 1 + decay(c->p) * m->p_weight;
}

const QsfStage qsf_stage_adaptive_p = { "adaptive-p", "",    QSF_STAGE_FIXED | QSF_STAGE_TRUNCATES,
                                        on,           apply, drawn };
