/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smallest set of tokens whose probability reaches p (Holtzman et al. 2020, "The Curious Case of Neural
 * Text Degeneration"). */
#include <math.h>

#include "src/sample/chain.h"

#define SURE_MANY 4096u /* more are not exponentiated one by one */

static bool on(const QsfChain *c) { return c->p->top_p > 0 && c->p->top_p < 1.0f; }

/* The first candidates whose weights, exp((x - max) / temperature), reach `want`. All before `sure` are among
 * them; those after it are best first. sum: the weights of the first `known` ones. */
static size_t cut(const QsfChain *c, size_t known, double sum, size_t sure, size_t n, double max,
                  double want) {
    for (size_t i = known; i < n; i++) {
        sum += exp(((double)c->cand[i].x - max) / c->temperature);
        if (i >= sure && sum >= want) return i + 1;
    }
    return n;
}

static void apply_dense(QsfChain *c, double top_p) {
    const float max = qsf_chain_max(c);
    const double want = top_p * qsf_chain_total(c);
    size_t sure, known = 0;
    double sum = 0;
    const size_t n = c->table->top_p(c->cand, c->x, c->prob, c->n_vocab, max, top_p, &sure);
    for (; sure > SURE_MANY && known < sure; known++) sum += (double)c->prob[c->cand[known].id];
    sum /= (double)c->prob[c->best];
    qsf_chain_adopt(c, cut(c, known, sum, sure, n, (double)max, want));
}

static void apply(QsfChain *c) {
    const double top_p = (double)c->p->top_p;
    if (c->dense) {
        apply_dense(c, top_p);
    } else if (c->sorted) {
        qsf_chain_adopt(c, cut(c, 0, 0, 0, c->n, (double)c->cand[0].x, top_p * qsf_chain_total(c)));
        c->sorted = true;
    } else {
        const QsfSelection s = { .max = (double)qsf_chain_max(c), .weight = top_p * qsf_chain_total(c) };
        qk_pick *key = qsf_chain_scratch(c);
        for (size_t i = 0; i < c->n; i++) key[i] = (qk_pick){ c->cand[i].x, (int32_t)i };
        qsf_chain_select(c, key, &s);
    }
}

const QsfStage qsf_stage_top_p = { "top-p", "topp,nucleus", QSF_STAGE_TRUNCATES | QSF_STAGE_KEEPS_BEST,
                                   on,      apply,          NULL };
