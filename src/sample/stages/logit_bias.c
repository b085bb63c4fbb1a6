/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the caller adds to logits. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->in->n_bias > 0 || c->in->change != NULL; }

static void call(QsfChain *c) {
    c->in->change(c->in->change_arg, c->x, c->n_vocab);
    c->table->clamp(c->x, c->x, c->n_vocab, QSF_LOGIT_LOWEST, -QSF_LOGIT_LOWEST);
    c->n = 0;
    for (size_t i = 0; i < c->n_vocab; i++) c->n += c->x[i] > QSF_LOGIT_LOWEST;
    c->removed = true;
}

static void apply(QsfChain *c) {
    const QsfSamplerInput *in = c->in;
    if (in->change != NULL) call(c);
    for (size_t i = 0; i < in->n_bias; i++) {
        const QsfBias b = in->bias[i];
        if (b.id < 0 || (uint32_t)b.id >= c->n_vocab || c->x[b.id] <= QSF_LOGIT_LOWEST) continue;
        const float x = qsf_logit_clean(c->x[b.id] + b.bias);
        if (x <= QSF_LOGIT_LOWEST)
            qsf_chain_forbid(c, (size_t)b.id);
        else
            c->x[b.id] = x;
    }
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_logit_bias = {
    "logit-bias", "", QSF_STAGE_FIXED | QSF_STAGE_LOGITS, on, apply, NULL
};
