/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Column steps: norms, sums, activation functions, rotation, storing keys and values. */
#include <math.h>
#include <string.h>

#include "src/forward/forward_impl.h"

static void norm(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfNormStep *p = &s->u.norm;
    const float *x = qsf_col(f, s->in, c), *w = qsf_param(f, p->weight), *b = qsf_param(f, p->bias);
    float *y = qsf_col(f, s->out[0], c);
    const size_t n = s->out[0].width / p->heads;
    if (w == NULL) w = f->ones;
    for (size_t h = 0; h < p->heads; h++) {
        const size_t at = h * n, off = p->weight_per_head && p->weight != QSF_NONE ? at : 0;
        if (p->kind == QSF_NORM_RMS) {
            f->table->rms_norm(y + at, x + at, w + off, n, p->eps);
            if (b != NULL) f->table->add(y + at, b + off, n);
        } else if (p->kind == QSF_NORM_LAYER)
            f->table->layer_norm(y + at, x + at, w + off, b == NULL ? NULL : b + off, n, p->eps);
        else
            f->table->l2_norm(y + at, x + at, n, p->eps);
    }
}

static void add(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->add(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), s->out[0].width);
}

static void mul(const QsfForward *f, const QsfStep *s, size_t c) {
    float *y = qsf_col(f, s->out[0], c);
    const float *x = qsf_col(f, s->in, c);
    const size_t n = s->in.width, each = s->out[0].width / n;
    if (each == 1)
        f->table->mul(y, x, n);
    else
        for (size_t i = 0; i < n; i++) f->table->scale(y + i * each, x[i], each);
}

static void copy(const QsfForward *f, const QsfStep *s, size_t c) {
    memmove(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), s->out[0].width * sizeof(float));
}

static void scale(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->scale(qsf_col(f, s->out[0], c), s->u.scale, s->out[0].width);
}

static void bias(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->add(qsf_col(f, s->out[0], c), qsf_param(f, s->u.param), s->out[0].width);
}

static void gain(const QsfForward *f, const QsfStep *s, size_t c) {
    const float *w = qsf_param(f, s->u.param);
    const size_t width = s->out[0].width, n = (size_t)f->model->prog.param[s->u.param].n;
    float *y = qsf_col(f, s->out[0], c);
    if (n == width)
        f->table->mul(y, w, width);
    else
        for (size_t i = 0; i < n; i++) f->table->scale(y + i * (width / n), w[i], width / n);
}

static void lerp(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfLerpStep *p = &s->u.lerp;
    const float *x = qsf_col(f, s->in, c), *z = qsf_col(f, s->in2, c);
    float *y = qsf_col(f, s->out[0], c);
    const float *w = p->param == QSF_NONE ? y : qsf_param(f, p->param) + p->off;
    f->table->lerp(y, x, z, w, s->out[0].width);
}

static void clamp(const QsfForward *f, const QsfStep *s, size_t c) {
    float *y = qsf_col(f, s->out[0], c);
    f->table->clamp(y, y, s->out[0].width, s->u.clamp.low, s->u.clamp.high);
}

static void softcap(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->softcap(qsf_col(f, s->out[0], c), s->u.scale, s->out[0].width);
}

static void act(const QsfForward *f, const QsfStep *s, size_t c) {
    const float *x = s->in.buf == QSF_NONE ? NULL : qsf_col(f, s->in, c);
    qsf_act(f->table, &s->u.act, qsf_col(f, s->out[0], c), x, s->out[0].width);
}

static void temperature(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfTemperatureStep *t = &s->u.temperature;
    const size_t pos = f->past + c + t->offset;
    const float by = (float)(1 + (double)t->scale * log((double)(pos / t->length) + 1));
    f->table->scale(qsf_col(f, s->out[0], c), by, s->out[0].width);
}

static void heads(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfHeadsStep *p = &s->u.heads;
    const float *x = qsf_col(f, s->in, c);
    float *y = qsf_col(f, s->out[0], c);
    for (size_t h = 0; h < p->heads; h++) {
        memcpy(y + h * p->out_stride, x + h * p->in_stride, p->n * sizeof *y);
        if (!p->keep) memset(y + h * p->out_stride + p->n, 0, (p->out_stride - p->n) * sizeof *y);
    }
}

/* Several positions in one call: the kernel sorts cosines and sines once for all heads of a position. */
static void rope(const QsfForward *f, const QsfStep *s, size_t c0, size_t c1) {
    const QsfRopeStep *p = &s->u.rope;
    const QsfRopeTable *t = &f->model->prog.rope[p->table];
    const qk_rope r = { .x = qsf_col(f, s->out[0], c0) + p->off,
                        .cs = f->cs + (size_t)t->at * f->l.n_cols + c0 * t->n_rot,
                        .n_rot = t->n_rot,
                        .n_heads = p->heads,
                        .head_stride = p->stride,
                        .n_pos = c1 - c0,
                        .pos_stride = qsf_col_stride(f, s->out[0]) };
    if (t->kind == QSF_ROPE_PAIRS)
        f->table->rope_pairs_batch(&r);
    else
        f->table->rope_halves_batch(&r);
}

static void kv_store(const QsfForward *f, const QsfStep *s, size_t c) {
    const float *v = s->in2.buf == QSF_NONE ? NULL : qsf_col(f, s->in2, c);
    if (c == 0 && f->kv.recent.on[s->u.kv]) qsf_kvrecent_open(&f->kv, s->u.kv);
    qsf_kvcache_store(&f->kv, s->u.kv, (uint32_t)(f->past + c), qsf_col(f, s->in, c), v);
}

static void (*const each[QSF_OP_N])(const QsfForward *f, const QsfStep *s, size_t c) = {
    [QSF_OP_NORM] = norm,
    [QSF_OP_ADD] = add,
    [QSF_OP_MUL] = mul,
    [QSF_OP_COPY] = copy,
    [QSF_OP_SCALE] = scale,
    [QSF_OP_BIAS] = bias,
    [QSF_OP_GAIN] = gain,
    [QSF_OP_CLAMP] = clamp,
    [QSF_OP_ACT] = act,
    [QSF_OP_SOFTCAP] = softcap,
    [QSF_OP_HEADS] = heads,
    [QSF_OP_ROUTE] = qsf_route,
    [QSF_OP_KV_STORE] = kv_store,
    [QSF_OP_TEMPERATURE] = temperature,
    [QSF_OP_LERP] = lerp,
    [QSF_OP_WKV_BONUS] = qsf_wkv_bonus,
    [QSF_OP_BLEND] = qsf_column_blend,
    [QSF_OP_MATVEC] = qsf_column_matvec,
    [QSF_OP_SPARSE] = qsf_column_sparse,
    [QSF_OP_MATCH] = qsf_column_match,
    [QSF_OP_PREDICT] = qsf_column_predict,
    [QSF_OP_CORRECT] = qsf_column_correct,
};

void qsf_column_step(const QsfForward *f, const QsfStep *s, size_t c0, size_t c1) {
    if (s->op == QSF_OP_ROPE) {
        rope(f, s, c0, c1);
        return;
    }
    for (size_t c = c0; c < c1; c++) each[s->op](f, s, c);
}
