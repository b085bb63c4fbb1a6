/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Penalties of tokens that were used recently. Repetition (Keskar et al. 2019, CTRL): a logit above 0 is
 * divided, one below 0 multiplied by it. Then presence is subtracted once and frequency for each time that a
 * token was used (the parameters of the same names of OpenAI's completion interface). */
#include "src/sample/chain.h"

static bool repeats(const QSFParams *p) { return p->repeat_penalty > 0 && p->repeat_penalty != 1.0f; }

static bool on(const QsfChain *c) {
    const QSFParams *p = c->p;
    return c->in->n_recent > 0 && p->repeat_last_n != 0 &&
           (repeats(p) || p->presence != 0.0f || p->frequency != 0.0f);
}

/* Subtracted from a logit that is divided by the temperature later. */
static float penalized(const QsfChain *c, float v, float count) {
    if (v <= QSF_LOGIT_LOWEST) return v;
    if (repeats(c->p)) v = v > 0 ? v / c->p->repeat_penalty : v * c->p->repeat_penalty;
    const float less = c->p->presence + count * c->p->frequency;
    return qsf_logit_clean(less != 0.0f ? v - less * (float)c->temperature : v);
}

static bool inside(const QsfChain *c, int32_t id) { return id >= 0 && (uint32_t)id < c->n_vocab; }

static void count(QsfChain *c, const int32_t *ids, size_t n) {
    for (size_t i = 0; !c->dense && i < c->n; i++) c->prob[c->cand[i].id] = 0;
    for (size_t i = 0; i < n; i++)
        if (inside(c, ids[i])) c->prob[ids[i]] = 0;
    for (size_t i = 0; i < n; i++)
        if (inside(c, ids[i])) c->prob[ids[i]]++;
}

/* Each id once, however often it occurs: its count becomes 0. */
static void apply(QsfChain *c) {
    const int32_t last = c->p->repeat_last_n;
    const size_t all = c->in->n_recent, n = last < 0 || (size_t)last > all ? all : (size_t)last;
    const int32_t *ids = c->in->recent + (all - n);
    count(c, ids, n);
    for (size_t i = 0; c->dense && i < n; i++) {
        if (!inside(c, ids[i]) || !(c->prob[ids[i]] > 0)) continue;
        c->x[ids[i]] = penalized(c, c->x[ids[i]], c->prob[ids[i]]);
        c->prob[ids[i]] = 0;
    }
    for (size_t i = 0; !c->dense && i < c->n; i++) {
        const float times = c->prob[c->cand[i].id];
        if (times > 0) c->cand[i].x = penalized(c, c->cand[i].x, times);
    }
    c->sorted = false;
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_penalties = { "penalties", "", QSF_STAGE_LOGITS, on, apply, NULL };
