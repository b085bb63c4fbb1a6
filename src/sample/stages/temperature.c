/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Logits are divided by the temperature; at 0 only the likeliest token is left. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->temperature != 1.0f; }

static void keep_best(QsfChain *c) {
    const size_t best = qsf_chain_best(c);
    c->cand[0] = c->dense ? (qk_pick){ c->x[best], (int32_t)best } : c->cand[best];
    qsf_chain_adopt(c, 1);
}

static void apply(QsfChain *c) {
    if (c->p->temperature > 0)
        c->temperature *= (double)qsf_chain_warm(c->p->temperature);
    else
        keep_best(c);
}

const QsfStage qsf_stage_temperature = { "temperature", "temp", QSF_STAGE_KEEPS_BEST, on, apply };
