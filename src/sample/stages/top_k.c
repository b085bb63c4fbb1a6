/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The k likeliest tokens (Fan, Lewis and Dauphin 2018, "Hierarchical Neural Story Generation"). */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->top_k > 0 && (uint32_t)c->p->top_k < c->n; }

void qsf_chain_top_k(QsfChain *c, size_t k) {
    if (k >= c->n) return;
    if (c->dense) {
        qsf_chain_adopt(c, c->table->top_k(c->cand, c->x, c->n_vocab, k));
        c->sorted = true;
    } else if (c->sorted) {
        qsf_chain_adopt(c, k);
        c->sorted = true;
    } else {
        qk_pick *key = qsf_chain_scratch(c);
        for (size_t i = 0; i < c->n; i++) key[i] = (qk_pick){ c->cand[i].x, (int32_t)i };
        qsf_chain_select(c, key, &(QsfSelection){ .count = k });
    }
}

static void apply(QsfChain *c) { qsf_chain_top_k(c, (size_t)c->p->top_k); }

const QsfStage qsf_stage_top_k = { "top-k", "topk", QSF_STAGE_TRUNCATES | QSF_STAGE_KEEPS_BEST,
                                   on,      apply,  NULL };
