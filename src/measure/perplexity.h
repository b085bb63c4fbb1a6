/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Perplexity: how well a model predicts a text, and how far its distributions are from saved ones. */
#ifndef QSF_MEASURE_PERPLEXITY_H
#define QSF_MEASURE_PERPLEXITY_H

#include "src/engine/runtime.h"
#include "src/measure/klfile.h"
#include "src/sample/score.h"

typedef struct QsfPerplexityResult {
    size_t n_scored, n_windows;
    QsfMean nll; /* -log p of the scored tokens, nats */
    /* With a base: */
    QsfMean base_nll, excess; /* of the base, and the difference per token */
    QsfMean kl;               /* KL(base || this) of each position, nats */
    double kl_median, kl_p99, kl_max;
    size_t same_top; /* positions at which both find the same token most likely (the lowest id on a
                        tie) */
} QsfPerplexityResult;

typedef struct QsfPerplexity {
    QsfRuntime *rt;
    int32_t *ids; /* (n) the text; modified during the run, restored afterwards */
    size_t n;
    uint32_t window, stride; /* 2 <= window, 1 <= stride <= window; min(window, n) <= context */
    int32_t bos;             /* replaces the first token of every window but the first; -1 = not replaced */
    QsfKlWriter *save;       /* receives a row per scored token; may be NULL */
    QsfKlReader *base;       /* rows = scored tokens, vocabulary = the model's; may be NULL */
    float *kl;               /* (scored tokens) with a base; sorted afterwards */
    /* After every scored token; window k of result->n_windows. May be NULL. */
    void (*progress)(void *arg, const QsfPerplexityResult *result, size_t k);
    void *arg;
} QsfPerplexity;

/* Replaces the contents of the KV cache. Allocates only one piece of a row, for any length of text. The
 * result depends on the text, the window, the stride, the quality and the instruction set only.
 * QSF_E_INTERRUPTED; errors of qsf_forward_eval, qsf_kl_read and qsf_kl_write_row; QSF_E_MODEL for a row of
 * the base that is not a distribution. */
int qsf_perplexity_run(const QsfPerplexity *p, QsfPerplexityResult *out, QsfErr *err);

#endif
