/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short causal convolutions over the positions. Each thread takes some channels through all columns of the pass. */
#include <string.h>

#include "src/forward/state.h"

#define BLOCK 128u /* channels at a time: their inputs and weights stay in the first cache */

typedef struct ConvJob {
    const QsfForward *f;
    const QsfStep *s;
    QsfActFn act;
} ConvJob;

/* The last inputs of a block of channels, a ring of rows, and its weights, one row per position. */
typedef struct Window {
    float x[QSF_CONV_MAX][BLOCK], w[QSF_CONV_MAX][BLOCK];
} Window;

static void load(const ConvJob *j, Window *win, size_t ch, size_t n) {
    const QsfConvStep *p = &j->s->u.conv;
    const size_t channels = j->s->in.width;
    const float *old = qsf_recurrent_old(&j->f->recurrent, p->state), *w = qsf_param(j->f, p->weight);
    for (size_t k = 0; k + 1 < p->kernel; k++) memcpy(win->x[k], old + k * channels + ch, n * sizeof *old);
    for (size_t k = 0; k < p->kernel; k++)
        for (size_t i = 0; i < n; i++) win->w[k][i] = w[(ch + i) * p->kernel + k];
}

/* Row `first` of the ring is the oldest input. */
static void store(const ConvJob *j, const Window *win, size_t first, size_t ch, size_t n) {
    const QsfConvStep *p = &j->s->u.conv;
    float *new = qsf_recurrent_new(&j->f->recurrent, p->state);
    for (size_t k = 0; k + 1 < p->kernel; k++)
        memcpy(new + k * j->s->in.width + ch, win->x[(first + k) % p->kernel], n * sizeof *new);
}

/* y from the window; row `first` of the ring is the oldest. */
static void sum_window(const ConvJob *j, const Window *win, size_t first, float *y, size_t ch, size_t n) {
    const size_t kernel = j->s->u.conv.kernel;
    const float *x[QSF_CONV_MAX], *w[QSF_CONV_MAX], *bias = qsf_param(j->f, j->s->u.conv.bias);
    for (size_t k = 0; k < kernel; k++) {
        x[k] = win->x[(first + k) % kernel];
        w[k] = win->w[k];
    }
    j->f->table->conv(y, x, w, kernel, bias != NULL ? bias + ch : NULL, n);
}

static void block(const ConvJob *j, Window *win, size_t ch, size_t n) {
    const QsfForward *f = j->f;
    const QsfConvStep *p = &j->s->u.conv;
    size_t first = 0; /* of the ring, once the input of the column is in it */
    load(j, win, ch, n);
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++) {
        float *y = qsf_col(f, j->s->out[0], c) + ch;
        memcpy(win->x[(first + p->kernel - 1) % p->kernel], qsf_col(f, j->s->in, c) + ch, n * sizeof *y);
        sum_window(j, win, first, y, ch, n);
        if (j->act != NULL) j->act(y, NULL, n);
        first = (first + 1) % p->kernel;
    }
    store(j, win, first, ch, n);
}

static void run(void *arg, int worker, size_t begin, size_t end) {
    const ConvJob *j = arg;
    Window win;
    (void)worker;
    for (size_t ch = begin; ch < end; ch += BLOCK) block(j, &win, ch, end - ch < BLOCK ? end - ch : BLOCK);
}

/* Pieces are multiples of 16 channels, so that the last bit of an activation does not depend on the split. */
int qsf_conv(QsfForward *f, const QsfStep *s, QsfErr *err) {
    (void)err;
    const QsfSpan span = qsf_span_begin(f);
    ConvJob j = { f, s, qsf_act_fn(f->table, s->u.conv.act) };
    qsf_pool_run(f->pool, run, &j, s->in.width, QSF_ROW_QUANTUM);
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
