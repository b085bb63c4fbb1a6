/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A piece of the text is evaluated with everything, then again with each of the variants: layers skipped as
 * each quality would, and all layers from a possible exit on left out. Where a token ends is decided by its
 * own logits, and later tokens find the KV cache complete, so what an exit with any margin gives can be
 * computed from the measurements of that exit. */
#include "src/measure/quality_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/quality/quality.h"
#include "src/measure/quality_search.h"
#include "src/sample/score.h"

#define PIECE_MOST 64u /* tokens whose logits are kept at a time */

typedef struct Measure {
    const QsfQualityMeasure *p;
    QsfMeasured *m;
    size_t begin;                /* of the window: position 0 */
    float *base;                 /* (piece, n_vocab) logits with everything; row 0 is position base_pos */
    double base_sum[PIECE_MOST]; /* qsf_score_log_sum of each */
    uint64_t base_bytes;
    uint32_t base_pos, piece;
    size_t first;     /* number of the first scored token of the piece */
    uint32_t variant; /* that is being evaluated */
} Measure;

static uint32_t piece_tokens(uint32_t n_vocab) {
    const uint64_t n = QSF_MEASURED_BYTES / (4ull * n_vocab);
    return n < 1 ? 1 : n > PIECE_MOST ? PIECE_MOST : (uint32_t)n;
}

/* ---- one piece ---- */

static const float *base_of(const Measure *s, uint32_t pos) {
    return s->base + (size_t)(pos - s->base_pos) * s->p->rt->model.hp.n_vocab;
}

static double nll_of(const Measure *s, uint32_t pos, const float *logits, double log_sum) {
    return log_sum - (double)logits[s->p->ids[s->begin + pos + 1]];
}

static void on_base(void *arg, uint32_t pos, const float *logits) {
    Measure *s = arg;
    const uint32_t n = s->p->rt->model.hp.n_vocab;
    const size_t i = s->first + pos - s->base_pos;
    memcpy(s->base + (size_t)(pos - s->base_pos) * n, logits, n * sizeof *logits);
    s->base_sum[pos - s->base_pos] = qsf_score_log_sum(logits, n);
    s->m->base_nll[i] = nll_of(s, pos, logits, s->base_sum[pos - s->base_pos]);
}

static void on_variant(void *arg, uint32_t pos, const float *logits) {
    Measure *s = arg;
    const uint32_t n = s->p->rt->model.hp.n_vocab;
    QsfMeasuredToken *t = &s->m->variant[s->variant].token[s->first + pos - s->base_pos];
    t->kl = (float)qsf_score_divergence(base_of(s, pos), s->base_sum[pos - s->base_pos], logits, n);
    t->nll = (float)nll_of(s, pos, logits, qsf_score_log_sum(logits, n));
    t->margin = qsf_forward_margin(logits, n);
}

/* Makes positions [0, pos) the whole cache, evaluated with everything. */
static int rewind_to(const Measure *s, uint32_t pos, QsfErr *err) {
    QsfForward *f = s->p->rt->fwd;
    const uint32_t exact = qsf_forward_exact(f), keep = qsf_forward_truncate(f, exact < pos ? exact : pos);
    return qsf_forward_eval(f, s->p->ids + s->begin + keep, pos - keep, NULL, NULL, err);
}

/* Tokens [pos, pos + n) of the window. */
static int measure_piece(Measure *s, uint32_t pos, uint32_t n, QsfErr *err) {
    QsfForward *f = s->p->rt->fwd;
    const int32_t *ids = s->p->ids + s->begin + pos;
    const QsfQuality all = { .value = 1 };
    s->base_pos = pos;
    int rc = qsf_forward_eval(f, ids, n, on_base, s, err);
    for (s->variant = 0; rc == QSF_OK && s->variant < s->m->n_variants; s->variant++) {
        rc = rewind_to(s, pos, err);
        qsf_forward_set_quality(f, &s->m->variant[s->variant].quality);
        if (rc == QSF_OK) rc = qsf_forward_decode(f, ids, n, on_variant, s, err);
        qsf_forward_set_quality(f, &all);
    }
    if (rc == QSF_OK) rc = rewind_to(s, pos, err);
    return rc == QSF_OK ? qsf_forward_eval(f, ids, n, NULL, NULL, err) : rc;
}

/* ---- the text ---- */

/* The last token of a window predicts nothing. */
static int measure_window(Measure *s, uint32_t n, QsfErr *err) {
    const QsfQualityMeasure *p = s->p;
    qsf_forward_truncate(p->rt->fwd, 0);
    int rc = qsf_forward_eval(p->rt->fwd, p->ids + s->begin, QSF_MEASURED_CONTEXT, NULL, NULL, err);
    if (rc == QSF_OK && s->m->n_variants == 0) rc = qsf_measured_variants(s->m, p->rt, err);
    for (uint32_t pos = QSF_MEASURED_CONTEXT, k; rc == QSF_OK && pos + 1 < n; pos += k) {
        k = n - 1 - pos < s->piece ? n - 1 - pos : s->piece;
        rc = measure_piece(s, pos, k, err);
        s->first += k;
        if (p->progress != NULL) p->progress(p->arg, s->first, s->m->n_tokens);
    }
    return rc;
}

/* Returns how many tokens of the text are scored. */
static size_t scored(size_t n, uint32_t window) {
    size_t sum = 0;
    for (size_t at = 0; at < n; at += window) {
        const size_t here = n - at < window ? n - at : window;
        if (here > QSF_MEASURED_CONTEXT + 1) sum += here - QSF_MEASURED_CONTEXT - 1;
    }
    return sum < QSF_MEASURED_TOKENS ? sum : QSF_MEASURED_TOKENS;
}

static int check(const QsfQualityMeasure *p, uint32_t window, size_t n, QsfErr *err) {
    const uint32_t n_vocab = p->rt->model.hp.n_vocab;
    if (window < QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST)
        return qsf_err_set(err, QSF_E_USAGE, "a context of %u tokens is too short, the minimum is %u (--ctx)",
                           (unsigned)window, QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST);
    if (n < QSF_MEASURED_LEAST)
        return qsf_err_set(err, QSF_E_USAGE, "the text has %zu tokens, at least %u are needed", p->n,
                           QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST + 1);
    if (qsf_forward_evicts(p->rt->fwd))
        return qsf_err_set(err, QSF_E_USAGE,
                           "with an eviction policy, quality leaves nothing out (--eviction-policy none)");
    for (size_t i = 0; i < p->n; i++)
        if (p->ids[i] < 0 || (uint32_t)p->ids[i] >= n_vocab)
            return qsf_err_set(err, QSF_E_MODEL, "%s: token id %ld is outside the model's vocabulary of %u",
                               qsf_source_path(p->rt->model.src), (long)p->ids[i], (unsigned)n_vocab);
    return QSF_OK;
}

static int measure_text(Measure *s, uint32_t window, QsfErr *err) {
    int rc = QSF_OK;
    for (; rc == QSF_OK && s->first < s->m->n_tokens; s->begin += window) {
        const size_t left = s->p->n - s->begin, wanted = s->m->n_tokens - s->first + QSF_MEASURED_CONTEXT + 1;
        size_t n = left < window ? left : window;
        if (n > wanted) n = wanted;
        if (n > QSF_MEASURED_CONTEXT + 1) rc = measure_window(s, (uint32_t)n, err);
    }
    return rc;
}

int qsf_quality_measure(const QsfQualityMeasure *p, QsfQualityTable *out, QsfErr *err) {
    const uint32_t ctx = qsf_forward_ctx(p->rt->fwd), n_vocab = p->rt->model.hp.n_vocab;
    const uint32_t window = ctx < QSF_MEASURED_WINDOW ? ctx : QSF_MEASURED_WINDOW;
    Measure s = { .p = p, .piece = piece_tokens(n_vocab) };
    const size_t n = scored(p->n, window);
    void *mem = NULL;
    int rc = check(p, window, n, err);
    if (rc != QSF_OK) return rc;
    s.base_bytes = 4ull * n_vocab * s.piece;
    s.m = calloc(1, sizeof *s.m);
    if (s.m == NULL) return qsf_err_memory(err, "measurements");
    s.m->n_tokens = (uint32_t)n;
    rc = qsf_mem_map(&p->rt->ledger, QSF_MEM_TRANSCRIPT, s.base_bytes, "logits of a piece", &mem, err);
    s.base = mem;
    if (rc == QSF_OK) rc = measure_text(&s, window, err);
    if (rc == QSF_OK) qsf_measured_choose(s.m, &p->rt->model, out);
    if (mem != NULL) qsf_mem_unmap(&p->rt->ledger, QSF_MEM_TRANSCRIPT, mem, s.base_bytes);
    free(s.m);
    return rc;
}
