/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Penalties of tokens that were used recently. Repetition (Keskar et al. 2019, CTRL): a logit above 0 is
 * divided, one below 0 multiplied by it. */
#include "src/sample/chain.h"

static bool repeats(const QSFParams *p) { return p->repeat_penalty > 0 && p->repeat_penalty != 1.0f; }

static bool on(const QsfChain *c) { return c->in->n_recent > 0 && repeats(c->p); }

static float penalized(const QsfChain *c, float v) {
    if (v <= QSF_LOGIT_LOWEST) return v;
    return qsf_logit_clean(v > 0 ? v / c->p->repeat_penalty : v * c->p->repeat_penalty);
}

static bool inside(const QsfChain *c, int32_t id) { return id >= 0 && (uint32_t)id < c->n_vocab; }

/* Each id once, however often it occurs: prob says which ones are still to be done. */
static void apply(QsfChain *c) {
    const int32_t last = c->p->repeat_last_n;
    const size_t all = c->in->n_recent, n = last < 0 || (size_t)last > all ? all : (size_t)last;
    const int32_t *ids = c->in->recent + (all - n);
    for (size_t i = 0; !c->dense && i < c->n; i++) c->prob[c->cand[i].id] = 0;
    for (size_t i = 0; i < n; i++)
        if (inside(c, ids[i])) c->prob[ids[i]] = 1;
    for (size_t i = 0; c->dense && i < n; i++) {
        if (!inside(c, ids[i]) || !(c->prob[ids[i]] > 0)) continue;
        c->prob[ids[i]] = 0;
        c->x[ids[i]] = penalized(c, c->x[ids[i]]);
    }
    for (size_t i = 0; !c->dense && i < c->n; i++)
        if (c->prob[c->cand[i].id] > 0) c->cand[i].x = penalized(c, c->cand[i].x);
    c->sorted = false;
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_penalties = { "penalties", "", QSF_STAGE_LOGITS, on, apply };
