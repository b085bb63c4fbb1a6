/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mixtures of experts. */
#include <math.h>
#include <string.h>

#include "src/forward/ops/ops.h"

/* ---- routing ---- */

/* Chooses the experts of a position. */

/* Weights of all experts from their logits. */
static void weigh(const QsfRouteStep *r, const float *x, float *w) {
    double max = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < r->n_expert; i++) max = fmax(max, (double)x[i]);
    for (uint32_t i = 0; i < r->n_expert; i++) {
        const double v = (double)x[i];
        switch (r->gating) {
        case QSF_GATING_SOFTMAX:
            w[i] = (float)exp(v - max);
            sum += exp(v - max);
            break;
        case QSF_GATING_SIGMOID: w[i] = (float)(1.0 / (1.0 + exp(-v))); break;
        case QSF_GATING_SQRT_SOFTPLUS: w[i] = (float)sqrt(v > 20.0 ? v : log1p(exp(v))); break;
        default: w[i] = x[i]; break;
        }
    }
    for (uint32_t i = 0; i < r->n_expert && r->gating == QSF_GATING_SOFTMAX; i++)
        w[i] = (float)((double)w[i] / sum);
}

/* Marks the n highest of score (count), the lowest index first among equal ones; skips those that are marked
 * as closed. Always marks n if there are that many. */
static void mark_best(const float *score, uint32_t count, uint32_t n, const bool *closed, bool *best) {
    for (uint32_t i = 0; i < count; i++) best[i] = false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = count;
        for (uint32_t i = 0; i < count; i++)
            if (!best[i] && (closed == NULL || !closed[i]) && (at == count || score[i] > score[at])) at = i;
        if (at < count) best[at] = true;
    }
}

/* The sum of the two best scores of a group, or the best one. */
static float group_score(const float *score, uint32_t n, uint32_t n_scores) {
    float first = -INFINITY, second = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if (score[i] > first) {
            second = first;
            first = score[i];
        } else if (score[i] > second) {
            second = score[i];
        }
    }
    return n > 1 && n_scores > 1 ? first + second : first;
}

/* Closes the experts of all but the best groups. */
static void close_groups(const QsfRouteStep *r, const float *score, bool *closed) {
    float sum[QSF_MAX_EXPERTS] = { 0 };
    bool best[QSF_MAX_EXPERTS];
    const uint32_t each = r->n_expert / r->n_groups;
    for (uint32_t g = 0; g < r->n_groups; g++)
        sum[g] = group_score(score + (size_t)g * each, each, r->group_scores);
    mark_best(sum, r->n_groups, r->n_groups_used, NULL, best);
    for (uint32_t i = 0; i < r->n_expert; i++) closed[i] = !best[i / each];
}

/* Makes weights that depend on which experts were chosen. */
static void finish_weights(const QsfForward *f, const QsfRouteStep *r, uint32_t n, const float *id,
                           float *w) {
    const float *factor = qsf_param(f, r->expert_scale);
    double max = -INFINITY, sum = 0;
    const bool chosen = r->gating == QSF_GATING_SOFTMAX_CHOSEN;
    for (uint32_t k = 0; k < n; k++) max = fmax(max, (double)w[k]);
    for (uint32_t k = 0; k < n; k++) {
        if (chosen) w[k] = (float)exp((double)w[k] - max);
        sum += (double)w[k];
    }
    const double low = chosen ? 0.0 : 6.103515625e-5; /* ggml-org/llama.cpp: the smallest normal f16 */
    const double div = chosen || r->norm ? fmax(sum, low) : 1.0;
    for (uint32_t k = 0; k < n; k++) {
        w[k] = (float)((double)w[k] / div) * r->scale;
        if (factor != NULL) w[k] *= factor[(uint32_t)id[k]];
    }
}

/* Gives the weights of equal ids to the first of them, which is the one that counts. */
static void merge_equal(uint32_t n, const float *id, float *w) {
    for (uint32_t first = 0, k = 1; k < n; k++) {
        if ((uint32_t)id[k] != (uint32_t)id[first]) {
            first = k;
            continue;
        }
        w[first] += w[k];
        w[k] = 0;
    }
}

/* The places of experts that are left out get the last one that is used, once more and without weight. */
static void fill_unused(const QsfRouteStep *r, uint32_t n, float *id, float *w) {
    for (uint32_t k = n; k < r->n_used; k++) {
        id[k] = id[n - 1];
        w[k] = 0;
    }
}

void qsf_route(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfRouteStep *r = &s->u.route;
    const float *x = qsf_col(f, s->in, c), *bias = qsf_param(f, r->bias);
    float weight[QSF_MAX_EXPERTS] = { 0 }, score[QSF_MAX_EXPERTS] = { 0 };
    bool closed[QSF_MAX_EXPERTS], best[QSF_MAX_EXPERTS];
    float *id = qsf_col(f, s->out[0], c), *w = id + r->n_used;
    weigh(r, x, weight);
    for (uint32_t i = 0; i < r->n_expert; i++)
        score[i] = (r->by_logit ? x[i] : weight[i]) + (bias != NULL ? bias[i] : 0.0f);
    if (r->n_groups > 1) close_groups(r, score, closed);
    const uint32_t n = qsf_reduction_experts(f, r->n_used);
    mark_best(score, r->n_expert, n, r->n_groups > 1 ? closed : NULL, best);
    const uint32_t group = r->group > 0 ? r->group : 1;
    for (uint32_t i = 0, k = 0; i < r->n_expert && k < n; i++) {
        if (!best[i]) continue;
        id[k] = (float)(i / group);
        w[k++] = weight[i / group];
    }
    finish_weights(f, r, n, id, w);
    if (group > 1) merge_equal(n, id, w);
    fill_unused(r, n, id, w);
}

/* ---- the networks ---- */

/* The feed-forward networks of the chosen experts. Expert by expert, the columns that chose it are gathered
 * and computed together; only the weights of chosen experts are touched. A column adds up its experts in the
 * order of their ids, whatever the other columns chose. */

typedef struct ExpertsJob {
    QsfForward *f;
    const QsfStep *s;
    const QsfExpertsStep *e;
    uint32_t expert, n; /* columns that chose it: f->chosen[0, n) */
    unsigned acts;      /* kinds of activations to quantize */
    QsfSlice from;      /* what is quantized */
} ExpertsJob;

/* Returns the weight of an expert for column c; NULL if the column did not choose it. */
static const float *weight_of(const ExpertsJob *j, size_t c, uint32_t expert) {
    const float *id = qsf_col(j->f, j->s->in2, c);
    for (uint32_t k = 0; k < j->e->n_used; k++)
        if (id[k] == (float)expert) return id + j->e->n_used + k;
    return NULL;
}

static void quantize(const ExpertsJob *j, size_t i) {
    const QsfForward *f = j->f;
    for (unsigned a = 0; a < QK_ACT_N; a++)
        if (j->acts >> a & 1)
            f->table->quantize[a](f->act[a] + i * f->l.act_stride[a], qsf_col(f, j->from, i), j->from.width);
}

/* Gathers the inputs of the expert in out[2]. */
static void gather(void *arg, int worker, size_t begin, size_t end) {
    const ExpertsJob *j = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint32_t c = j->f->chosen[i];
        float *x = qsf_col(j->f, j->from, i);
        memcpy(x, qsf_col(j->f, j->s->in, c), j->s->in.width * sizeof *x);
        if (j->e->scale_input) j->f->table->scale(x, *weight_of(j, c, j->expert), j->s->in.width);
        quantize(j, i);
    }
}

static void quantize_hidden(void *arg, int worker, size_t begin, size_t end) {
    (void)worker;
    for (size_t i = begin; i < end; i++) quantize(arg, i);
}

/* Adds the outputs of the expert, which are in out[2], to their columns. */
static void scatter(void *arg, int worker, size_t begin, size_t end) {
    const ExpertsJob *j = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint32_t c = j->f->chosen[i];
        float *y = qsf_col(j->f, j->s->out[2], i);
        if (!j->e->scale_input) j->f->table->scale(y, *weight_of(j, c, j->expert), j->s->out[0].width);
        j->f->table->add(qsf_col(j->f, j->s->out[0], c), y, j->s->out[0].width);
    }
}

static const float *bias_of(const QsfForward *f, uint32_t param, uint32_t expert, size_t rows) {
    const float *b = qsf_param(f, param);
    return b != NULL ? b + expert * rows : NULL;
}

static void run(ExpertsJob *j, void (*fn)(void *arg, int worker, size_t begin, size_t end)) {
    const QsfSpan span = qsf_span_begin(j->f);
    qsf_pool_run(j->f->pool, fn, j, j->n, 1);
    qsf_span_end(j->f, &span, &j->f->n.prep_ns);
}

static int multiply_in(ExpertsJob *j, uint32_t unit, QsfErr *err) {
    QsfForward *f = j->f;
    const QsfStep *s = j->s;
    const uint32_t half = s->out[1].width / 2;
    j->from = (QsfSlice){ s->out[2].buf, s->out[2].off, s->in.width };
    j->acts = qsf_unit_acts(f, qsf_weights_unit(f->weights, unit));
    run(j, gather);
    QsfProduct p = {
        .x = qsf_col(f, j->from, 0), .x_stride = qsf_col_stride(f, j->from), .n_cols = j->n, .act = j->e->act
    };
    for (unsigned i = 0; i < 2; i++) {
        p.y[i] = qsf_col(f, s->out[1], 0) + i * half;
        p.y_stride[i] = qsf_col_stride(f, s->out[1]);
        p.bias[i] = bias_of(f, j->e->bias_in[i], j->expert, j->e->ffn);
    }
    return qsf_multiply(f, unit, &p, err);
}

static void show_hidden(const ExpertsJob *j) {
    const QsfForward *f = j->f;
    if (f->tap == NULL) return;
    const QsfTapData t = { .step = (uint32_t)(j->s - f->model->prog.step),
                           .expert = j->expert,
                           .n_cols = j->n,
                           .x = qsf_col(f, j->from, 0),
                           .k = j->e->ffn,
                           .x_stride = qsf_col_stride(f, j->from) };
    f->tap(f->tap_arg, &t);
}

static int multiply_out(ExpertsJob *j, uint32_t unit, QsfErr *err) {
    QsfForward *f = j->f;
    const QsfStep *s = j->s;
    j->from = (QsfSlice){ s->out[1].buf, s->out[1].off, j->e->ffn };
    j->acts = qsf_unit_acts(f, qsf_weights_unit(f->weights, unit));
    show_hidden(j);
    if (j->acts != 0) run(j, quantize_hidden);
    const QsfProduct p = { .x = qsf_col(f, j->from, 0),
                           .x_stride = qsf_col_stride(f, j->from),
                           .y = { qsf_col(f, s->out[2], 0) },
                           .y_stride = { qsf_col_stride(f, s->out[2]) },
                           .bias = { bias_of(f, j->e->bias_out, j->expert, s->out[0].width) },
                           .n_cols = j->n };
    int rc = qsf_multiply(f, unit, &p, err);
    if (rc == QSF_OK) run(j, scatter);
    return rc;
}

/* Marks the experts that a column chose, and orders the reads of their weights. */
static void request_chosen(QsfForward *f, const QsfStep *s, bool *chosen) {
    const QsfExpertsStep *e = &s->u.experts;
    memset(chosen, 0, e->n_expert * sizeof *chosen);
    for (size_t c = f->col0; c < (size_t)f->col0 + f->n_cols; c++)
        for (uint32_t k = 0; k < e->n_used; k++) chosen[(uint32_t)qsf_col(f, s->in2, c)[k]] = true;
    for (uint32_t i = 0; i < e->n_expert; i++) {
        if (!chosen[i]) continue;
        qsf_weights_request(f->weights, e->unit + 2 * i);
        qsf_weights_request(f->weights, e->unit + 2 * i + 1);
    }
    qsf_weights_read_ahead(f->weights);
}

static void find_columns(ExpertsJob *j) {
    QsfForward *f = j->f;
    j->n = 0;
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++)
        if (weight_of(j, c, j->expert) != NULL) f->chosen[j->n++] = c;
}

int qsf_experts(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfExpertsStep *e = &s->u.experts;
    ExpertsJob j = { .f = f, .s = s, .e = e };
    bool chosen[QSF_MAX_EXPERTS];
    int rc = QSF_OK;
    request_chosen(f, s, chosen);
    qsf_linear_show(f, s, s->in.width);
    f->act_of.buf = QSF_NONE; /* the columns of f->act are overwritten */
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++)
        memset(qsf_col(f, s->out[0], c), 0, s->out[0].width * sizeof(float));
    for (uint32_t i = 0; rc == QSF_OK && i < e->n_expert; i++) {
        if (!chosen[i]) continue;
        j.expert = i;
        find_columns(&j);
        rc = multiply_in(&j, e->unit + 2 * i, err);
        if (rc == QSF_OK) rc = multiply_out(&j, e->unit + 2 * i + 1, err);
    }
    return rc;
}
