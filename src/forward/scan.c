/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selective scans over the positions. Each thread takes some heads through all columns of the pass, so that the state
 * of a head stays in its cache. Softplus as in state-spaces/mamba. */
#include <math.h>

#include "src/forward/state.h"

#define LINE 16u /* floats of a cache line */

typedef struct ScanJob {
    const QsfForward *f;
    const QsfStep *s;
    bool scalar; /* one decay per head */
} ScanJob;

static float softplus(float x) { return x > 20.0f ? x : logf(1.0f + expf(x)); }

/* One element: new = old * exp(t * a) + b * x; returns new . c. new may be old. */
static float update_each(float *new, const float *old, const float *a, float t, const float *b, float x,
                         const float *c, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        new[i] = old[i] * expf(t * a[i]) + b[i] * x;
        sum += (double)new[i] * (double)c[i];
    }
    return (float)sum;
}

/* Head h of column c. */
static void head(const ScanJob *j, size_t h, uint32_t c) {
    const QsfForward *f = j->f;
    const QsfScanStep *p = &j->s->u.scan;
    const size_t dim = p->dim, n = p->n, group = h / (p->heads / p->groups), at = h * dim * n;
    float *new = qsf_recurrent_new(&f->recurrent, p->state) + at;
    const float *old = c == f->col0 ? qsf_recurrent_old(&f->recurrent, p->state) + at : new;
    const float *b = qsf_col(f, j->s->in3, c) + group * n, *cc = b + (size_t)p->groups * n;
    const float *x = qsf_col(f, j->s->in, c) + h * dim, *a = qsf_param(f, p->a);
    const float t = softplus(qsf_col(f, j->s->in2, c)[h]), d = qsf_param(f, p->d)[h];
    float *y = qsf_col(f, j->s->out[0], c) + h * dim;
    const float decay = j->scalar ? expf(t * a[h]) : 0.0f;
    for (size_t i = 0; i < dim; i++) {
        const float in = x[i], xt = in * t;
        float *to = new + i *n;
        const float *from = old + i * n;
        y[i] = d * in + (j->scalar ? f->table->scan(to, from, b, cc, n, decay, xt)
                                   : update_each(to, from, a + h * n, t, b, xt, cc, n));
    }
}

static void run(void *arg, int worker, size_t begin, size_t end) {
    const ScanJob *j = arg;
    (void)worker;
    for (size_t h = begin; h < end; h++)
        for (uint32_t c = j->f->col0; c < j->f->col0 + j->f->n_cols; c++) head(j, h, c);
}

int qsf_scan(QsfForward *f, const QsfStep *s, QsfErr *err) {
    (void)err;
    const QsfSpan span = qsf_span_begin(f);
    ScanJob j = { f, s, s->op == QSF_OP_SCAN2 };
    /* Neighbouring channels share cache lines of the output. */
    qsf_pool_run(f->pool, run, &j, s->u.scan.heads, s->u.scan.dim >= LINE ? 1 : LINE);
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
