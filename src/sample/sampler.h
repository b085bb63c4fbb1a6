/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From logits to a token id: an ordered chain of filters, then one draw. Parameters come by value
 * with every token, so that a live change acts at once. Allocates only at creation. One thread. */
#ifndef QSF_SAMPLE_SAMPLER_H
#define QSF_SAMPLE_SAMPLER_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "qsf_engine.h"
#include "src/base/ledger.h"

typedef struct QsfSampler QsfSampler;

/* Buffers for n_vocab candidates, charged to LOGITS. */
int qsf_sampler_create(QsfSampler **out, uint32_t n_vocab, const qk_table *table, QsfLedger *ledger,
                       QsfErr *err);
void qsf_sampler_destroy(QsfSampler *s);

/* Restarts the generator (PCG or xoshiro, seeded so that equal seeds give equal draws on every
 * machine). */
void qsf_sampler_seed(QsfSampler *s, uint64_t seed);

typedef struct QsfSample {
    int32_t id;
    float p;       /* probability of id after the filters */
    float entropy; /* of the distribution after temperature, before the filters, in bits */
    uint32_t kept; /* candidates that survived all filters */
    float
        plain; /* entropy, in bits, of the distribution at temperature 1, if the sampler holds it; -1 = not */
} QsfSample;

/* Order of the chain: repetition penalty over the last p->repeat_last_n of recent[0..n_recent)
 * (logit > 0 divided, < 0 multiplied by it: Keskar et al. 2019, CTRL), top-k, top-p, min-p, temperature,
 * draw. temperature 0: argmax after the penalty, the lowest id on a tie. banned[0..n_banned) are ids that may
 * not be chosen (ignore_eos). logits (n_vocab) are not changed. */
void qsf_sampler_next(QsfSampler *s, const float *logits, const QSFParams *p, const int32_t *recent,
                      size_t n_recent, const int32_t *banned, size_t n_banned, QsfSample *out);

/* Fills *out, except text_end and reasoning_end, with what the model says about token id of the vocabulary:
 * its distribution is softmax(logits), which must be finite. plain: that of the qsf_sampler_next that was
 * just called with the same logits, which then need not be passed over again; otherwise -1. Later draws do
 * not change. */
void qsf_sampler_look(QsfSampler *s, const float *logits, int32_t id, float plain, QSFToken *out);

#endif
