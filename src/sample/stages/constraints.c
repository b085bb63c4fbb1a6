/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What may not be chosen at all, whatever other stages do: all but
 * biases come later. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) {
    return c->allowed != NULL || c->in->denied != NULL || c->in->n_banned > 0;
}

static void keep_allowed(QsfChain *c, const uint64_t *allowed, const uint64_t *denied) {
    for (size_t base = 0; base < c->n_vocab; base += 64) {
        const uint64_t word = (allowed != NULL ? allowed[base / 64] : UINT64_MAX) &
                              ~(denied != NULL ? denied[base / 64] : 0);
        const size_t end = c->n_vocab - base < 64 ? c->n_vocab - base : 64;
        for (size_t i = 0; word != UINT64_MAX && i < end; i++)
            if (!(word >> i & 1)) qsf_chain_forbid(c, base + i);
    }
}

static void apply(QsfChain *c) {
    const QsfSamplerInput *in = c->in;
    keep_allowed(c, c->allowed, in->denied);
    for (size_t i = 0; i < in->n_banned; i++)
        if (in->banned[i] >= 0 && (uint32_t)in->banned[i] < c->n_vocab)
            qsf_chain_forbid(c, (size_t)in->banned[i]);
    qsf_chain_changed(c);
}

const QsfStage qsf_stage_constraints = { "constraints", "",  QSF_STAGE_FIXED | QSF_STAGE_LOGITS, on,
                                         apply,         NULL };
