/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps that continue from the positions before: shifts, convolutions and scans. */
#include <math.h>
#include <string.h>

#include "src/forward/ops/linear_attention.h"
#include "src/forward/ops/ops.h"

/* ---- token shift ---- */

/* Token shift: each column receives the column of the position before it. */

int qsf_shift(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfSpan span = qsf_span_begin(f);
    const size_t bytes = s->in.width * sizeof(float), end = f->col0 + f->n_cols;
    (void)err;
    memcpy(qsf_col(f, s->out[0], f->col0), qsf_recurrent_old(&f->recurrent, s->u.state), bytes);
    for (size_t c = f->col0 + 1; c < end; c++)
        memcpy(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c - 1), bytes);
    memcpy(qsf_recurrent_new(&f->recurrent, s->u.state), qsf_col(f, s->in, end - 1), bytes);
    qsf_span_end(f, &span, &f->n.prep_ns);
    return QSF_OK;
}

/* ---- convolutions ---- */

/* Short causal convolutions over the positions. Each thread takes some channels through all columns of the
 * pass, from the last one to the first, because the output may overwrite the input. */

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

/* ---- selective scans ---- */

/* Selective scans over the positions, tile by tile of columns (linear_attention.h), so that the state of a
 * tile stays in registers or in the first cache for many positions. Softplus as in state-spaces/mamba. */

enum { AT_ONCE = QK_SCAN_POSITIONS };

typedef struct ScanJob {
    const QsfForward *f;
    const QsfStep *s;
    const float *old;
    float *new_state;
    uint32_t tiles; /* per head */
} ScanJob;

static float softplus(float x) { return x > 20.0f ? x : logf(1.0f + expf(x)); }

/* Tile i of the state, at columns [c, c + n_pos); x and y begin at element `at` of them, which
 * `cols` elements follow. */
static qk_scan tile_at(const ScanJob *j, size_t i, uint32_t c, size_t n_pos, size_t at, size_t cols,
                       uint32_t group) {
    const QsfForward *f = j->f;
    const QsfScanStep *p = &j->s->u.scan;
    const size_t off = i * p->n * QSF_STATE_TILE;
    const float *b = qsf_col(f, j->s->in3, c) + (size_t)group * p->n;
    return (qk_scan){ .s = j->new_state + off,
                      .old = (c == f->col0 ? j->old : j->new_state) + off,
                      .rows = p->n,
                      .cols = cols < QSF_STATE_TILE ? cols : QSF_STATE_TILE,
                      .n_pos = n_pos,
                      .b = b,
                      .c = b + (size_t)p->groups * p->n,
                      .x = qsf_col(f, j->s->in, c) + at,
                      .y = qsf_col(f, j->s->out[0], c) + at,
                      .bc_stride = qsf_col_stride(f, j->s->in3),
                      .x_stride = qsf_col_stride(f, j->s->in),
                      .y_stride = qsf_col_stride(f, j->s->out[0]),
                      .stream = qsf_streams_states(f) };
}

static size_t positions(const QsfForward *f, uint32_t c) {
    const size_t left = f->col0 + f->n_cols - c;
    return left < AT_ONCE ? left : AT_ONCE;
}

/* ---- one decay per element: the elements are the columns of one matrix ---- */

static void each_tiles(void *arg, int worker, size_t begin, size_t end) {
    const ScanJob *j = arg;
    const QsfForward *f = j->f;
    const QsfScanStep *p = &j->s->u.scan;
    (void)worker;
    for (size_t i = begin; i < end && !qsf_cancelled(f); i++) {
        const size_t at = i * QSF_STATE_TILE;
        for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c += (uint32_t)positions(f, c)) {
            const qk_scan tile = tile_at(j, i, c, positions(f, c), at, p->heads - at, 0);
            const qk_scan_each e = { .a = qsf_param(f, p->a) + at * p->n,
                                     .d = qsf_param(f, p->d) + at,
                                     .dt = qsf_col(f, j->s->in2, c) + at,
                                     .dt_stride = qsf_col_stride(f, j->s->in2) };
            f->table->scan_each(&tile, &e);
        }
    }
}

/* ---- one decay per head ---- */

/* The decays of a head are not applied to its state but multiplied up in *scale, by which inputs are
 * divided and outputs multiplied. That saves a third of the arithmetic. Where the product leaves a
 * range of 2^40, the state is multiplied by it. What is computed at a position depends on the positions
 * before it only, not on the passes. */
typedef struct HeadDecay {
    float keep[AT_ONCE], gain[AT_ONCE], out[AT_ONCE];
} HeadDecay;

static void decays(const ScanJob *j, uint32_t h, uint32_t c, size_t n_pos, float *scale, HeadDecay *to) {
    const QsfForward *f = j->f;
    const float a = qsf_param(f, j->s->u.scan.a)[h];
    for (size_t i = 0; i < n_pos; i++) {
        const float t = softplus(qsf_col(f, j->s->in2, c + i)[h]), product = *scale * expf(t * a);
        const bool fits = product > 0x1p-40f && product < 0x1p40f;
        *scale = fits ? product : 1.0f;
        to->keep[i] = fits ? 1.0f : product;
        to->gain[i] = t / *scale;
        to->out[i] = *scale;
    }
}

static void one_head(const ScanJob *j, uint32_t h) {
    const QsfForward *f = j->f;
    const QsfScanStep *p = &j->s->u.scan;
    const size_t scales = qsf_matrix_state_floats(p->heads, p->n, p->dim);
    float scale = j->old[scales + h];
    HeadDecay decay;
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c += (uint32_t)positions(f, c)) {
        decays(j, h, c, positions(f, c), &scale, &decay);
        const qk_scan_one one = { decay.keep, decay.gain, decay.out, qsf_param(f, p->d)[h] };
        for (size_t i = 0; i < j->tiles; i++) {
            const size_t col = i * QSF_STATE_TILE;
            const qk_scan tile = tile_at(j, (size_t)h * j->tiles + i, c, positions(f, c),
                                         (size_t)h * p->dim + col, p->dim - col, h / (p->heads / p->groups));
            f->table->scan_one(&tile, &one);
        }
    }
    j->new_state[scales + h] = scale;
}

static void one_heads(void *arg, int worker, size_t begin, size_t end) {
    const ScanJob *j = arg;
    (void)worker;
    for (size_t h = begin; h < end && !qsf_cancelled(j->f); h++) one_head(j, (uint32_t)h);
}

int qsf_scan(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfScanStep *p = &s->u.scan;
    const bool each = s->op == QSF_OP_SCAN1;
    const QsfSpan span = qsf_span_begin(f);
    const uint32_t columns = each ? p->heads : p->dim;
    ScanJob j = { .f = f,
                  .s = s,
                  .old = qsf_recurrent_old(&f->recurrent, p->state),
                  .new_state = qsf_recurrent_new(&f->recurrent, p->state),
                  .tiles = (columns + QSF_STATE_TILE - 1) / QSF_STATE_TILE };
    (void)err;
    qsf_pool_run(f->pool, each ? each_tiles : one_heads, &j, each ? j.tiles : p->heads, 1);
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
