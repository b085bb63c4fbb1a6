/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "Exclude top choices" (oobabooga/text-generation-webui, pull request 6335): with probability xtc, all
 * tokens that have at least the probability xtc_threshold are removed, except the unlikeliest of them. */
#include <math.h>

#include "src/sample/chain.h"

/* Two tokens cannot both have more than one half. */
static bool on(const QsfChain *c) { return c->p->xtc > 0 && c->p->xtc_threshold <= 0.5f && c->n > 1; }

static bool less(qk_pick a, qk_pick b) { return a.x < b.x || (a.x == b.x && a.id > b.id); }

static size_t unlikeliest(const qk_pick *list, size_t n) {
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (less(list[i], list[at])) at = i;
    return at;
}

static void remove_dense(QsfChain *c, float limit) {
    const size_t n = c->table->at_least(c->cand, c->x, c->n_vocab, limit);
    if (n < 2) return;
    const int32_t stays = c->cand[unlikeliest(c->cand, n)].id;
    for (size_t i = 0; i < n; i++)
        if (c->cand[i].id != stays) qsf_chain_forbid(c, (size_t)c->cand[i].id);
    qsf_chain_changed(c);
}

static void remove_listed(QsfChain *c, float limit) {
    const bool sorted = c->sorted;
    qk_pick stays = { INFINITY, 0 };
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->cand[i].x >= limit && less(c->cand[i], stays)) stays = c->cand[i];
    for (size_t i = 0; i < c->n; i++)
        if (c->cand[i].x < limit || c->cand[i].id == stays.id) c->cand[kept++] = c->cand[i];
    qsf_chain_adopt(c, kept);
    c->sorted = sorted;
}

static void apply(QsfChain *c) {
    if (qsf_rng_unit(c->rng) >= (double)c->p->xtc) return;
    const float limit = c->p->xtc_threshold > 0 ? qsf_chain_logit_of(c, (double)c->p->xtc_threshold)
                                                : QSF_LOGIT_LOWEST / 2;
    if (!(limit <= qsf_chain_max(c))) return;
    if (c->dense)
        remove_dense(c, limit);
    else
        remove_listed(c, limit);
}

const QsfStage qsf_stage_xtc = { "xtc", "", QSF_STAGE_TRUNCATES, on, apply, NULL };
