/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What may not be chosen at all, whatever other stages do: all but
 * biases come later. */
#include "src/sample/chain.h"

static bool on(const QsfChain *c) {
    return c->allowed != NULL || c->in->denied != NULL || c->in->n_banned > 0;
}

/* As qsf_chain_forbid for 64 logits whose bits are 0, written so that the compiler makes vectors of it.
 * Returns how many could be chosen before. */
static uint32_t forbid_word(float *x, uint64_t word) {
    uint32_t lost = 0;
    if (word == 0) {
        for (unsigned i = 0; i < 64; i++) {
            lost += x[i] > QSF_LOGIT_LOWEST;
            x[i] = QSF_LOGIT_LOWEST;
        }
        return lost;
    }
    for (unsigned base = 0; base < 64; base += 8) {
        static const uint32_t bit[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
        const uint32_t bits = (uint32_t)(word >> base) & 255;
        for (unsigned i = 0; i < 8; i++) {
            const float v = x[base + i];
            const bool stays = (bits & bit[i]) != 0;
            lost += (uint32_t)(!stays & (v > QSF_LOGIT_LOWEST));
            x[base + i] = stays ? v : QSF_LOGIT_LOWEST;
        }
    }
    return lost;
}

static void keep_allowed(QsfChain *c, const uint64_t *allowed, const uint64_t *denied) {
    for (size_t base = 0; base < c->n_vocab; base += 64) {
        const uint64_t word = (allowed != NULL ? allowed[base / 64] : UINT64_MAX) &
                              ~(denied != NULL ? denied[base / 64] : 0);
        if (word == UINT64_MAX) continue;
        if (c->n_vocab - base >= 64) c->n -= forbid_word(c->x + base, word);
        for (size_t i = base; c->n_vocab - base < 64 && i < c->n_vocab; i++)
            if (!(word >> (i - base) & 1)) qsf_chain_forbid(c, i);
        c->removed = true;
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
