/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inverse of taking the likeliest token: the unlikeliest one that has at least the probability `least`,
 * the lowest id on a tie; the likeliest if none has it. It decides, also at temperature 0. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->least > 0; }

static void apply(QsfChain *c) {
    size_t at = 0;
    qsf_chain_at_least(c, qsf_chain_logit_of(c, (double)c->p->least));
    for (size_t i = 1; i < c->n; i++) {
        const qk_pick a = c->cand[i], b = c->cand[at];
        if (a.x < b.x || (a.x == b.x && a.id < b.id)) at = i;
    }
    qsf_chain_keep_one(c, at);
}

const QsfStage qsf_stage_least = { "least", "", QSF_STAGE_FIXED | QSF_STAGE_TRUNCATES, on, apply, NULL };
