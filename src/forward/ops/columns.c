/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Column steps: what is computed of each position by itself. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "src/forward/ops/ops.h"

/* ---- activation functions ---- */

/* Activation functions: which kernel computes each. */

#define GATE(name, NAME) \
    [QSF_ACT_##NAME] = { #name "_mul", offsetof(qk_table, gate[QK_GATE_##NAME]), true, QK_GATE_##NAME },
static const struct {
    const char *name;
    size_t at; /* in the table */
    bool is_gate;
    qk_gate gate;
} kernels[QSF_ACT_N] = {
    QK_GATES(GATE)[QSF_ACT_XIELU] = { .name = "xielu_mul", .at = offsetof(qk_table, xielu_mul) },
    [QSF_ACT_SWIGLU_LIMIT] = { .name = "swiglu_mul", .at = offsetof(qk_table, swiglu_mul) },
    [QSF_ACT_SWIGLU_OAI] = { .name = "swiglu_mul", .at = offsetof(qk_table, swiglu_mul) },
};

const char *qsf_act_kernel(QsfActKind kind, size_t *at) {
    *at = kernels[kind].at;
    return kernels[kind].name;
}

QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind) {
    return kernels[kind].is_gate ? t->gate[kernels[kind].gate] : NULL;
}

/* ---- activations with constants ---- */

/* gpt-oss: the gate is at most 7, the other input within +-7 and raised by 1. */
static const qk_swiglu swiglu_oai = { 1.702f, 7.0f, INFINITY, 7.0f, 1.0f };

static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

/* xIELU with the constants as Apertus stores them. */
static void xielu(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_xielu x = { softplus(a->a), a->c + softplus(a->b), a->c, a->d };
    t->xielu_mul(y, up, n, &x);
}

static void swiglu_limit(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_swiglu s = { 1.0f, INFINITY, a->a, a->a, 0.0f };
    t->swiglu_mul(y, up, n, &s);
}

/* The only one without a kernel. */
static void situ(float *y, const float *up, size_t n, const QsfActStep *a) {
    for (size_t i = 0; i < n; i++) {
        const float u = up == NULL ? 1.0f : a->b > 0.0f ? a->b * tanhf(up[i] / a->b) : up[i];
        y[i] = a->a * tanhf(y[i] / a->a) / (1.0f + expf(-y[i])) * u;
    }
}

void qsf_act(const qk_table *t, const QsfActStep *a, float *y, const float *up, size_t n) {
    if (a->kind == QSF_ACT_XIELU)
        xielu(t, y, up, n, a);
    else if (a->kind == QSF_ACT_SWIGLU_LIMIT)
        swiglu_limit(t, y, up, n, a);
    else if (a->kind == QSF_ACT_SWIGLU_OAI)
        t->swiglu_mul(y, up, n, &swiglu_oai);
    else if (a->kind == QSF_ACT_SITU)
        situ(y, up, n, a);
    else
        qsf_act_fn(t, a->kind)(y, up, n);
}

/* ---- several residual streams ---- */

/* Column steps of Gemma 3n: several residual streams of which one is computed and the others are predicted
 * (AltUp, Baykal et al. 2023), and a feed-forward network that keeps its largest values only; and the mix of
 * residuals of Kimi K3. Sums here are in double, in one order. */

#define LANES 8u /* elements that are computed side by side: the compiler makes vectors of them */

static double dot(const float *x, const float *y, size_t n) {
    double sum[LANES] = { 0 }, all = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) sum[k] += (double)x[i + k] * (double)y[i + k];
    for (; i < n; i++) all += (double)x[i] * (double)y[i];
    for (size_t k = 0; k < LANES; k++) all += sum[k];
    return all;
}

static void column_matvec(const QsfForward *f, const QsfStep *s, size_t c) {
    const float *w = qsf_param(f, s->u.param), *x = qsf_col(f, s->in, c);
    float *y = qsf_col(f, s->out[0], c);
    for (size_t row = 0; row < s->out[0].width; row++)
        y[row] = (float)dot(w + row * s->in.width, x, s->in.width);
}

static void column_sparse(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->keep_above(qsf_col(f, s->out[0], c), s->out[0].width, s->u.scale);
}

static void column_match(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->in.width;
    const float *x = qsf_col(f, s->in, c);
    const double wanted = sqrt(dot(x, x, n));
    for (size_t at = 0; at < s->out[0].width; at += n) {
        float *y = qsf_col(f, s->out[0], c) + at;
        const double length = sqrt(dot(y, y, n)), by = length > 0 ? wanted / length : 0;
        for (size_t i = 0; i < n; i++) y[i] = (float)((double)y[i] * by);
    }
}

_Static_assert(QSF_MAX_STREAMS <= QK_MAX_STREAMS, "the kernel mixes fewer streams");

static void column_predict(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->u.streams, width = s->out[0].width / n;
    f->table->mix_streams(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), n, width, width);
}

/* Adds to n streams what the computed one, of which in is the result, missed by, times 1 + in2. */
static void column_correct(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->u.streams, width = s->in.width;
    f->table->correct_streams(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), qsf_col(f, s->in2, c), n, width,
                              width);
}

static double score(const float *x, const float *w, size_t n, float eps) {
    return dot(x, w, n) / sqrt(dot(x, x, n) / (double)n + (double)eps);
}

static void column_blend(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->out[0].width, count = s->in.width / n;
    const float *bank = qsf_col(f, s->in, c), *x = qsf_col(f, s->in2, c), *w = qsf_param(f, s->u.blend.param);
    float *y = qsf_col(f, s->out[0], c);
    double p[QSF_MAX_BLEND + 1], max = -INFINITY, sum = 0;
    for (size_t k = 0; k <= count; k++) {
        p[k] = score(k < count ? bank + k * n : x, w, n, s->u.blend.eps);
        max = fmax(max, p[k]);
    }
    for (size_t k = 0; k <= count; k++) sum += p[k] = exp(p[k] - max);
    for (size_t i = 0; i < n; i++) {
        double v = p[count] * (double)x[i];
        for (size_t k = 0; k < count; k++) v += p[k] * (double)bank[k * n + i];
        y[i] = (float)(v / sum);
    }
}

/* ---- norms, sums, rotations ---- */

/* Column steps: norms, sums, activation functions, rotation, storing keys and values. */

void qsf_norm(const QsfForward *f, const QsfNormStep *p, const float *x, float *y, size_t width) {
    const float *w = qsf_param(f, p->weight), *b = qsf_param(f, p->bias);
    const size_t n = width / p->heads;
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

static void norm(const QsfForward *f, const QsfStep *s, size_t c) {
    qsf_norm(f, &s->u.norm, qsf_col(f, s->in, c), qsf_col(f, s->out[0], c), s->out[0].width);
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

void qsf_gain(const QsfForward *f, uint32_t param, float *y, size_t width) {
    const float *w = qsf_param(f, param);
    const size_t n = (size_t)f->model->prog.param[param].n;
    if (n == width)
        f->table->mul(y, w, width);
    else
        for (size_t i = 0; i < n; i++) f->table->scale(y + i * (width / n), w[i], width / n);
}

static void gain(const QsfForward *f, const QsfStep *s, size_t c) {
    qsf_gain(f, s->u.param, qsf_col(f, s->out[0], c), s->out[0].width);
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
    [QSF_OP_BLEND] = column_blend,
    [QSF_OP_MATVEC] = column_matvec,
    [QSF_OP_SPARSE] = column_sparse,
    [QSF_OP_MATCH] = column_match,
    [QSF_OP_PREDICT] = column_predict,
    [QSF_OP_CORRECT] = column_correct,
};

void qsf_column_step(const QsfForward *f, const QsfStep *s, size_t c0, size_t c1) {
    if (s->op == QSF_OP_ROPE) {
        rope(f, s, c0, c1);
        return;
    }
    for (size_t c = c0; c < c1; c++) each[s->op](f, s, c);
}
