/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What may not be chosen at all, whatever other stages do: it comes first. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->in->allowed != NULL || c->in->n_banned > 0; }

static void forbid(QsfChain *c, size_t id) {
    c->n -= c->x[id] > QSF_LOGIT_LOWEST;
    c->x[id] = QSF_LOGIT_LOWEST;
}

static void keep_allowed(QsfChain *c, const uint64_t *allowed) {
    for (size_t base = 0; base < c->n_vocab; base += 64) {
        const uint64_t word = allowed[base / 64];
        const size_t end = c->n_vocab - base < 64 ? c->n_vocab - base : 64;
        for (size_t i = 0; word != UINT64_MAX && i < end; i++)
            if (!(word >> i & 1)) forbid(c, base + i);
    }
}

static void apply(QsfChain *c) {
    const QsfSamplerInput *in = c->in;
    if (in->allowed != NULL) keep_allowed(c, in->allowed);
    for (size_t i = 0; i < in->n_banned; i++)
        if (in->banned[i] >= 0 && (uint32_t)in->banned[i] < c->n_vocab) forbid(c, (size_t)in->banned[i]);
    c->removed = true;
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_constraints = { "constraints", "", QSF_STAGE_FIXED | QSF_STAGE_LOGITS, on, apply };
