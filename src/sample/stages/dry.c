/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "Don't repeat yourself" (oobabooga/text-generation-webui, pull request 5677): a token that would continue
 * a sequence which occurred before, and of which at least dry_length tokens are at the end now, loses
 * dry * dry_base ^ (their number - dry_length). Sequences do not go beyond a breaker. */
#include <math.h>

#include "src/sample/chain.h"

/* Longer sequences have the penalty of one that exceeds dry_length by so much: it is far beyond any logit. */
#define LONGEST 80u

static bool on(const QsfChain *c) { return c->p->dry > 0 && c->in->n_recent > 1; }

static bool breaks(const QsfChain *c, int32_t id) {
    if (id < 0 || (uint32_t)id >= c->n_vocab) return true;
    return c->in->breaks != NULL && c->in->breaks(c->in->arg, id);
}

/* How many tokens before place i are those at the end of ids, at most `most`. */
static uint32_t matching(const int32_t *ids, size_t n, size_t i, uint32_t most) {
    uint32_t length = 0;
    while (length < most && length < i && ids[i - 1 - length] == ids[n - 1 - length]) length++;
    return length;
}

/* prob[id] becomes the length of the longest sequence that id would continue; 0 for the other ids of the
 * conversation. */
static void measure(QsfChain *c, uint32_t least, uint32_t most) {
    const int32_t *ids = c->in->recent;
    const size_t n = c->in->n_recent;
    for (size_t i = 0; !c->dense && i < c->n; i++) c->prob[c->cand[i].id] = 0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= 0 && (uint32_t)ids[i] < c->n_vocab) c->prob[ids[i]] = 0;
    for (size_t i = 1; i < n; i++) {
        if (ids[i - 1] != ids[n - 1] || breaks(c, ids[i]) || c->prob[ids[i]] >= (float)most) continue;
        const uint32_t length = matching(ids, n, i, most);
        if (length >= least && (float)length > c->prob[ids[i]]) c->prob[ids[i]] = (float)length;
    }
}

static float penalized(const QsfChain *c, float v, float length, uint32_t least) {
    if (v <= QSF_LOGIT_LOWEST) return v;
    const double base = c->p->dry_base >= 1 ? (double)c->p->dry_base : 1;
    const double less = (double)c->p->dry * pow(base, (double)length - (double)least);
    return qsf_logit_clean((float)((double)v - less * c->temperature));
}

/* The end of the conversation up to its last breaker. */
static uint32_t unbroken(const QsfChain *c, uint32_t most) {
    uint32_t length = 0;
    if (c->in->unbroken != NULL)
        return (uint32_t)c->in->unbroken(c->in->arg, c->in->recent, c->in->n_recent, most);
    while (length < most && length < c->in->n_recent &&
           !breaks(c, c->in->recent[c->in->n_recent - 1 - length]))
        length++;
    return length;
}

static void apply(QsfChain *c) {
    const uint32_t least = c->p->dry_length > 0 ? (uint32_t)c->p->dry_length : 1;
    const uint32_t most = unbroken(c, least + LONGEST);
    if (most < least) return;
    measure(c, least, most);
    for (size_t i = 0; c->dense && i < c->in->n_recent; i++) {
        const int32_t id = c->in->recent[i];
        if (id < 0 || (uint32_t)id >= c->n_vocab || !(c->prob[id] > 0)) continue;
        c->x[id] = penalized(c, c->x[id], c->prob[id], least);
        c->prob[id] = 0;
    }
    for (size_t i = 0; !c->dense && i < c->n; i++) {
        const float length = c->prob[c->cand[i].id];
        if (length > 0) c->cand[i].x = penalized(c, c->cand[i].x, length, least);
    }
    c->sorted = false;
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_dry = { "dry", "", QSF_STAGE_LOGITS, on, apply, NULL };
