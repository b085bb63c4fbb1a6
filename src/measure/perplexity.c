/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluates a text window by window; each scored position is compared as soon as its logits are computed. */
#include "src/measure/perplexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/quality/quality.h"

/* The probabilities of a valid row, from float32 logarithms, add up to 1 much more precisely. */
#define SUM_TOLERANCE 1e-3

typedef struct Scoring {
    const QsfPerplexity *p;
    QsfPerplexityResult *out;
    QsfScoreWindow w;
    size_t k;     /* index of the window */
    size_t row;   /* scored tokens so far */
    float *piece; /* (QSF_KL_PIECE) with a base */
    QsfErr err;   /* what failed in a callback */
} Scoring;

/* The comparison of one position with the base. */
typedef struct Pair {
    double kl, sum; /* sum of the base's probabilities */
    float top, base_top;
    uint32_t top_at, base_top_at;
    float base_target;
} Pair;

/* Rounds like a stored row, so that a model has divergence 0 from itself. */
static void compare_piece(Pair *c, const float *logits, double log_sum, const float *base, uint32_t first,
                          uint32_t n, uint32_t target) {
    for (uint32_t i = 0; i < n; i++) {
        float ours = (float)((double)logits[first + i] - log_sum);
        double p = exp((double)base[i]);
        c->sum += p;
        c->kl += p * ((double)base[i] - (double)ours);
        if (ours > c->top) c->top = ours, c->top_at = first + i;
        if (base[i] > c->base_top) c->base_top = base[i], c->base_top_at = first + i;
        if (first + i == target) c->base_target = base[i];
    }
}

static int compare(Scoring *s, const float *logits, double log_sum, uint32_t target, double nll) {
    QsfKlReader *base = s->p->base;
    QsfPerplexityResult *out = s->out;
    uint32_t row = (uint32_t)s->row, n_vocab = base->about.n_vocab;
    Pair c = { .top = -INFINITY, .base_top = -INFINITY };
    for (uint32_t at = 0, n; at < n_vocab; at += n) {
        n = n_vocab - at < QSF_KL_PIECE ? n_vocab - at : QSF_KL_PIECE;
        int rc = qsf_kl_read(base, row, at, n, s->piece, &s->err);
        if (rc != QSF_OK) return rc;
        compare_piece(&c, logits, log_sum, s->piece, at, n, target);
    }
    if (fabs(c.sum - 1) > SUM_TOLERANCE)
        return qsf_err_set(&s->err, QSF_E_MODEL,
                           "%s: the probabilities of row %u add up to %.4g, expected 1 (byte offset %llu)",
                           base->file.path, (unsigned)row, c.sum,
                           (unsigned long long)(QSF_KL_HEAD + (uint64_t)row * n_vocab * sizeof(float)));
    if (qsf_kl_check_row(base, row, &s->err) != QSF_OK) return s->err.code;
    double kl = c.kl > 0 ? c.kl : 0; /* rounding may leave -1e-9 */
    qsf_mean_add(&out->kl, kl);
    qsf_mean_add(&out->base_nll, -(double)c.base_target);
    qsf_mean_add(&out->excess, nll + (double)c.base_target);
    out->same_top += c.top_at == c.base_top_at;
    s->p->kl[row] = (float)kl;
    return QSF_OK;
}

/* Position pos of the window predicts the token after it. */
static void on_logits(void *arg, uint32_t pos, const float *logits) {
    Scoring *s = arg;
    const QsfPerplexity *p = s->p;
    if (s->err.code != QSF_OK || s->w.begin + pos + 1 < s->w.first) return;
    uint32_t target = (uint32_t)p->ids[s->w.begin + pos + 1];
    double log_sum = qsf_score_log_sum(logits, p->rt->model.hp.n_vocab),
           nll = log_sum - (double)logits[target];
    if (p->base != NULL && compare(s, logits, log_sum, target, (double)(float)nll) != QSF_OK) return;
    if (p->save != NULL && qsf_kl_write_row(p->save, logits, log_sum, &s->err) != QSF_OK) return;
    qsf_mean_add(&s->out->nll, nll);
    s->row++;
    if (p->progress != NULL) p->progress(p->arg, s->out, s->k);
}

/* As a prompt is, the context is evaluated with everything; without one, the beginning of the
 * window shows what matters. */
static int begin_quality(const Scoring *s, const int32_t *ids, size_t n, size_t context, QsfErr *err) {
    QsfRuntime *rt = s->p->rt;
    const QsfQualityWish wish = qsf_quality_of(&rt->settings.params);
    const size_t some = n < QSF_MEASURE_POSITIONS + 1 ? n : QSF_MEASURE_POSITIONS + 1;
    int rc = QSF_OK;
    if (wish.value < 1 && context == 0) rc = qsf_forward_eval(rt->fwd, ids, some, NULL, NULL, err);
    if (rc == QSF_OK) {
        qsf_ledger_thaw(&rt->ledger); /* weights may be pinned around the layers that are skipped */
        qsf_runtime_quality(rt, &wish);
        qsf_ledger_freeze(&rt->ledger);
    }
    if (wish.value < 1 && context == 0) qsf_forward_truncate(rt->fwd, 0);
    return rc;
}

/* Tokens that only provide context need no logits; the last token predicts nothing. */
static int evaluate(Scoring *s, QsfErr *err) {
    QsfForward *f = s->p->rt->fwd;
    const int32_t *ids = s->p->ids + s->w.begin;
    size_t context = s->w.first - s->w.begin - 1, all = s->w.end - s->w.begin - 1;
    qsf_forward_truncate(f, 0);
    int rc = qsf_forward_eval(f, ids, context, NULL, NULL, err);
    if (rc == QSF_OK) rc = begin_quality(s, ids, all, context, err);
    if (rc != QSF_OK) return rc;
    return qsf_forward_decode(f, ids + context, all - context, on_logits, s, err);
}

static int one_window(Scoring *s, QsfErr *err) {
    const QsfPerplexity *p = s->p;
    int32_t *head = p->ids + s->w.begin, kept = *head;
    if (s->k > 0 && p->bos >= 0) *head = p->bos;
    int rc = evaluate(s, err);
    *head = kept;
    if (rc == QSF_OK && s->err.code != QSF_OK) rc = qsf_err_set(err, s->err.code, "%s", s->err.msg);
    return rc;
}

static void summarize(const QsfPerplexity *p, QsfPerplexityResult *out) {
    if (p->base == NULL) return;
    qsf_score_sort(p->kl, out->n_scored);
    out->kl_median = qsf_score_median(p->kl, out->n_scored);
    out->kl_p99 = (double)qsf_score_quantile(p->kl, out->n_scored, 0.99);
    out->kl_max = (double)p->kl[out->n_scored - 1];
}

/* Rejects token ids without logits in the model, which would be read out of bounds. */
static int check_ids(const QsfPerplexity *p, QsfErr *err) {
    for (size_t i = 0; i < p->n; i++)
        if (p->ids[i] < 0 || (uint32_t)p->ids[i] >= p->rt->model.hp.n_vocab)
            return qsf_err_set(err, QSF_E_MODEL, "%s: token id %ld is outside the model's vocabulary of %u",
                               qsf_source_path(p->rt->model.src), (long)p->ids[i],
                               (unsigned)p->rt->model.hp.n_vocab);
    return QSF_OK;
}

int qsf_perplexity_run(const QsfPerplexity *p, QsfPerplexityResult *out, QsfErr *err) {
    QsfErr own = { 0 };
    if (err == NULL) err = &own;
    Scoring s = { .p = p, .out = out };
    memset(out, 0, sizeof *out);
    out->n_scored = qsf_score_count(p->n, p->window, p->stride, &out->n_windows);
    int rc = check_ids(p, err);
    if (rc == QSF_OK && p->base != NULL && (s.piece = malloc(QSF_KL_PIECE * sizeof *s.piece)) == NULL)
        rc = qsf_err_memory(err, "a row of the base");
    if (rc == QSF_OK) {
        qsf_ledger_freeze(&p->rt->ledger);
        for (; rc == QSF_OK && qsf_score_window(p->n, p->window, p->stride, s.k, &s.w); s.k++)
            rc = one_window(&s, err);
        qsf_ledger_thaw(&p->rt->ledger);
    }
    if (rc == QSF_OK) summarize(p, out);
    free(s.piece);
    return rc;
}
