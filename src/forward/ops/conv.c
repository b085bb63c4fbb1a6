/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short causal convolutions over the positions. Each thread takes some channels through all columns of the pass, from
 * the last one to the first, because the output may overwrite the input. */
#include <string.h>

#include "src/forward/forward_impl.h"

#define WEIGHTS 4096u /* weights of the channels that are computed at a time */
#define MOST    512u  /* maximum of these channels: the inputs of an output stay in the first cache */
#define LINE    16u   /* floats of a cache line. The input that the next output adds is prefetched */

typedef struct ConvJob {
    const QsfForward *f;
    const QsfStep *s;
    QsfActFn act;
    const float *old;
    float *new_state;
    size_t block; /* channels at a time */
} ConvJob;

/* The weights of a block of channels, a row for each tap. */
static void load(const ConvJob *j, float *to, size_t ch, size_t n) {
    const size_t kernel = j->s->u.conv.kernel;
    const float *w = qsf_param(j->f, j->s->u.conv.weight) + ch * kernel;
    for (size_t k = 0; k < kernel; k++)
        for (size_t i = 0; i < n; i++) to[k * j->block + i] = w[i * kernel + k];
}

/* The input `before` columns before column c: of this pass, or of the state. */
static const float *input(const ConvJob *j, size_t c, size_t before, size_t ch) {
    const size_t first = j->f->col0, row = c + (j->s->u.conv.kernel - 1) - before;
    if (c >= first + before) return qsf_col(j->f, j->s->in, c - before) + ch;
    return j->old + (row - first) * j->s->in.width + ch;
}

static void store(const ConvJob *j, size_t ch, size_t n) {
    const size_t kernel = j->s->u.conv.kernel, last = (size_t)j->f->col0 + j->f->n_cols - 1;
    for (size_t k = 0; k + 1 < kernel; k++)
        memcpy(j->new_state + k * j->s->in.width + ch, input(j, last, kernel - 2 - k, ch),
               n * sizeof *j->new_state);
}

static void block(const ConvJob *j, float *weights, size_t ch, size_t n) {
    const QsfForward *f = j->f;
    const size_t kernel = j->s->u.conv.kernel;
    const float *x[QSF_CONV_MAX], *w[QSF_CONV_MAX], *bias = qsf_param(f, j->s->u.conv.bias);
    load(j, weights, ch, n);
    store(j, ch, n);
    for (size_t k = 0; k < kernel; k++) w[k] = weights + k * j->block;
    for (size_t c = (size_t)f->col0 + f->n_cols; c-- > f->col0;) {
        float *y = qsf_col(f, j->s->out[0], c) + ch;
        for (size_t k = 0; k < kernel; k++) x[k] = input(j, c, kernel - 1 - k, ch);
        if (c >= (size_t)f->col0 + kernel)
            for (size_t i = 0; i < n; i += LINE) __builtin_prefetch(input(j, c, kernel, ch) + i);
        f->table->conv(y, x, w, kernel, bias != NULL ? bias + ch : NULL, n);
        if (j->act != NULL) j->act(y, NULL, n);
    }
}

static void run(void *arg, int worker, size_t begin, size_t end) {
    const ConvJob *j = arg;
    float weights[WEIGHTS];
    (void)worker;
    for (size_t ch = begin; ch < end && !qsf_cancelled(j->f); ch += j->block)
        block(j, weights, ch, end - ch < j->block ? end - ch : j->block);
}

/* Pieces are multiples of 16 channels, so that the last bit of an activation does not depend on the split. */
int qsf_conv(QsfForward *f, const QsfStep *s, QsfErr *err) {
    (void)err;
    const QsfSpan span = qsf_span_begin(f);
    const size_t most = WEIGHTS / s->u.conv.kernel / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    ConvJob j = { .f = f,
                  .s = s,
                  .act = qsf_act_fn(f->table, s->u.conv.act),
                  .old = qsf_recurrent_old(&f->recurrent, s->u.conv.state),
                  .new_state = qsf_recurrent_new(&f->recurrent, s->u.conv.state),
                  .block = most < MOST ? most : MOST };
    qsf_pool_run(f->pool, run, &j, s->in.width, QSF_ROW_QUANTUM);
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
