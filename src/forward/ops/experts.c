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

/* Marks the n highest of score (count), the lowest index first among equal ones; skips those that are
 * marked as closed. Always marks n if there are that many. */
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

/* Removes experts whose weight is below a part of the largest one, but none whose weight is NaN; returns how
 * many are left. */
static uint32_t drop_light(const QsfRouteStep *r, float part, uint32_t n, float *id, float *w) {
    const bool logits = r->gating == QSF_GATING_SOFTMAX_CHOSEN; /* the weights are their exponentials */
    uint32_t kept = 0;
    float max = -INFINITY;
    if (!(part > 0)) return n;
    for (uint32_t k = 0; k < n; k++) max = fmaxf(max, w[k]);
    for (uint32_t k = 0; k < n; k++) {
        const double of = logits ? exp((double)w[k] - (double)max) : (double)w[k] / (double)max;
        if (of < (double)part) continue;
        id[kept] = id[k];
        w[kept++] = w[k];
    }
    return kept > 0 ? kept : n;
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

void qsf_route_logits(const QsfForward *f, const QsfRouteStep *r, const float *x, float *id) {
    const float *bias = qsf_param(f, r->bias);
    float weight[QSF_MAX_EXPERTS] = { 0 }, score[QSF_MAX_EXPERTS] = { 0 };
    bool closed[QSF_MAX_EXPERTS], best[QSF_MAX_EXPERTS];
    float *w = id + r->n_used;
    weigh(r, x, weight);
    for (uint32_t i = 0; i < r->n_expert; i++)
        score[i] = (r->by_logit ? x[i] : weight[i]) + (bias != NULL ? bias[i] : 0.0f);
    if (r->n_groups > 1) close_groups(r, score, closed);
    uint32_t n = qsf_reduction_experts(f, r->n_used);
    mark_best(score, r->n_expert, n, r->n_groups > 1 ? closed : NULL, best);
    const uint32_t group = r->group > 0 ? r->group : 1;
    for (uint32_t i = 0, k = 0; i < r->n_expert && k < n; i++) {
        if (!best[i]) continue;
        id[k] = (float)(i / group);
        w[k++] = weight[i / group];
    }
    n = drop_light(r, qsf_reduction_drop(f), n, id, w);
    finish_weights(f, r, n, id, w);
    if (group > 1) merge_equal(n, id, w);
    fill_unused(r, n, id, w);
}

void qsf_route(const QsfForward *f, const QsfStep *s, size_t c) {
    qsf_route_logits(f, &s->u.route, qsf_col(f, s->in, c), qsf_col(f, s->out[0], c));
}

/* ---- the networks ---- */

/* The feed-forward networks of the chosen experts. Expert by expert, the columns that chose it are
 * gathered and computed together; only the weights of chosen experts are touched. A column adds up its
 * experts in the order of their ids, whatever the other columns chose. */

typedef struct ExpertsJob {
    QsfForward *f;
    const QsfStep *s;
    const QsfExpertsStep *e;
    uint32_t expert, n; /* columns that chose it: f->chosen[base, base + n) */
    uint32_t base;      /* its inputs and results begin at this column of out[1] and out[2] */
    unsigned acts;      /* kinds of activations to quantize */
    QsfSlice from;      /* what is quantized */
} ExpertsJob;

/* The chosen experts of a layer. */
typedef struct Chosen {
    bool is[QSF_MAX_EXPERTS];
    uint32_t id[QSF_MAX_EXPERTS], n; /* ascending */
    uint32_t columns;                /* of all experts together */
} Chosen;

/* Returns the weight of an expert for column c; NULL if the column did not choose it. */
static const float *weight_of(const ExpertsJob *j, size_t c, uint32_t expert) {
    const float *id = qsf_col(j->f, j->s->in2, c);
    for (uint32_t k = 0; k < j->e->n_used; k++)
        if (id[k] == (float)expert) return id + j->e->n_used + k;
    return NULL;
}

/* Columns from the job's base, as f->act has them from its first one. */
static void quantize(const ExpertsJob *j, size_t i) {
    const QsfForward *f = j->f;
    for (unsigned a = 0; a < QK_ACT_N; a++)
        if (j->acts >> a & 1)
            f->table->quantize[a](f->act[a] + i * f->l.act_stride[a], qsf_col(f, j->from, j->base + i),
                                  j->from.width);
}

/* Gathers the inputs of the expert in out[2]. */
static void gather(void *arg, int worker, size_t begin, size_t end) {
    const ExpertsJob *j = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint32_t c = j->f->chosen[j->base + i];
        float *x = qsf_col(j->f, j->from, j->base + i);
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
        const uint32_t c = j->f->chosen[j->base + i];
        float *y = qsf_col(j->f, j->s->out[2], j->base + i);
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

static int multiply_in(ExpertsJob *j, QsfErr *err) {
    QsfForward *f = j->f;
    const QsfStep *s = j->s;
    const uint32_t half = s->out[1].width / 2, unit = j->e->unit + 2 * j->expert;
    j->from = (QsfSlice){ s->out[2].buf, s->out[2].off, s->in.width };
    j->acts = qsf_unit_acts(f, qsf_weights_unit(f->weights, unit));
    run(j, gather);
    QsfProduct p = { .x = qsf_col(f, j->from, j->base),
                     .x_stride = qsf_col_stride(f, j->from),
                     .chosen = f->chosen + j->base,
                     .n_cols = j->n,
                     .act = j->e->act };
    for (unsigned i = 0; i < 2; i++) {
        p.y[i] = qsf_col(f, s->out[1], j->base) + i * half;
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
                           .x = qsf_col(f, j->from, j->base),
                           .k = j->e->ffn,
                           .x_stride = qsf_col_stride(f, j->from) };
    f->tap(f->tap_arg, &t);
}

static int multiply_out(ExpertsJob *j, QsfErr *err) {
    QsfForward *f = j->f;
    const QsfStep *s = j->s;
    const uint32_t unit = j->e->unit + 2 * j->expert + 1;
    j->from = (QsfSlice){ s->out[1].buf, s->out[1].off, j->e->ffn };
    j->acts = qsf_unit_acts(f, qsf_weights_unit(f->weights, unit));
    show_hidden(j);
    if (j->acts != 0) run(j, quantize_hidden);
    const QsfProduct p = { .x = qsf_col(f, j->from, j->base),
                           .x_stride = qsf_col_stride(f, j->from),
                           .y = { qsf_col(f, s->out[2], j->base) },
                           .y_stride = { qsf_col_stride(f, s->out[2]) },
                           .bias = { bias_of(f, j->e->bias_out, j->expert, s->out[0].width) },
                           .chosen = f->chosen + j->base,
                           .n_cols = j->n };
    return qsf_multiply(f, unit, &p, err);
}

static void pack(void *arg, int worker, size_t begin, size_t end) {
    const ExpertsJob *j = arg;
    qsf_weights_pack(j->f->weights, j->e->unit + 2 * j->expert, begin, end, worker);
}

/* Rows of an expert that is in memory become groups, where that pays. */
static void pack_expert(ExpertsJob *j) {
    QsfForward *f = j->f;
    const uint32_t unit = j->e->unit + 2 * j->expert;
    const size_t groups = qsf_weights_to_pack(f->weights, unit, j->n);
    if (groups == 0 || f->exact) return;
    const QsfSpan span = qsf_span_begin(f);
    qsf_pool_run(f->pool, pack, j, groups, 4);
    qsf_span_end(f, &span, &f->n.prep_ns);
    qsf_weights_packed(f->weights, unit);
}

/* ---- their order ---- */

/* Marks the experts that the columns chose, and counts the uses. */
static void find_chosen(QsfForward *f, const QsfStep *s, Chosen *c) {
    const QsfExpertsStep *e = &s->u.experts;
    const uint32_t end = f->col0 + f->n_cols;
    memset(c->is, 0, e->n_expert * sizeof *c->is);
    c->n = c->columns = 0;
    for (uint32_t col = f->col0; col < end; col++) {
        const float *id = qsf_col(f, s->in2, col);
        if (f->routes != NULL) qsf_routes_add(f->routes, f->past + col, s->block, id, e->n_used);
        for (uint32_t k = 0; k < e->n_used; k++) {
            const uint32_t i = (uint32_t)id[k];
            if (k > 0 && id[k] == id[k - 1]) continue; /* the places of those that are left out */
            c->is[i] = true;
            c->columns++;
            qsf_weights_use_expert(f->weights, e->unit + 2 * i, end - 1 - col);
            if (f->keeps && col == 0) qsf_weights_learn_use(f->weights, e->unit + 2 * i);
        }
    }
    for (uint32_t i = 0; i < e->n_expert; i++)
        if (c->is[i]) c->id[c->n++] = i;
}

static void find_columns(ExpertsJob *j) {
    QsfForward *f = j->f;
    j->n = 0;
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++)
        if (weight_of(j, c, j->expert) != NULL) f->chosen[j->base + j->n++] = c;
}

/* One after the other. */
static int in_order(ExpertsJob *j, const Chosen *c, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < c->n; i++) {
        j->expert = c->id[i];
        find_columns(j);
        rc = qsf_weights_wait_expert(j->f->weights, j->e->unit + 2 * j->expert, err);
        if (rc != QSF_OK) return rc;
        pack_expert(j);
        rc = multiply_in(j, err);
        if (rc == QSF_OK) rc = multiply_out(j, err);
        if (rc == QSF_OK) run(j, scatter);
    }
    return rc;
}

/* First those that are in memory, while the others are read; then of those the first matrices, and the last
 * ones. The outputs of all are kept, and added in the order of the ids. */
static int as_they_come(ExpertsJob *j, const Chosen *c, const bool *there, QsfErr *err) {
    uint32_t base[QSF_MAX_EXPERTS], n[QSF_MAX_EXPERTS];
    int rc = QSF_OK;
    for (uint32_t i = 0, at = 0; i < c->n; at += n[i++]) {
        *j = (ExpertsJob){ .f = j->f, .s = j->s, .e = j->e, .expert = c->id[i], .base = at };
        find_columns(j);
        base[i] = at;
        n[i] = j->n;
    }
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; rc == QSF_OK && i < c->n; i++) {
            if (there[i] != (round == 0)) continue;
            j->expert = c->id[i];
            j->base = base[i];
            j->n = n[i];
            if (round == 0) pack_expert(j);
            if (round < 2) rc = multiply_in(j, err);
            if (rc == QSF_OK && round != 1) rc = multiply_out(j, err);
        }
    }
    for (uint32_t i = 0; rc == QSF_OK && i < c->n; i++) {
        j->expert = c->id[i];
        j->base = base[i];
        j->n = n[i];
        run(j, scatter);
    }
    return rc;
}

int qsf_experts(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfExpertsStep *e = &s->u.experts;
    ExpertsJob j = { .f = f, .s = s, .e = e };
    Chosen chosen;
    bool there[QSF_MAX_EXPERTS];
    find_chosen(f, s, &chosen);
    const bool any_order = qsf_weights_any_order(f->weights, chosen.n) && chosen.columns <= f->l.n_cols;
    for (uint32_t i = 0; i < chosen.n; i++) {
        const uint32_t unit = e->unit + 2 * chosen.id[i];
        there[i] = qsf_weights_has_expert(f->weights, unit);
        qsf_weights_request(f->weights, unit);
    }
    qsf_weights_read_ahead(f->weights, any_order);
    qsf_linear_show(f, s, s->in.width);
    f->act_of.buf = QSF_NONE; /* the columns of f->act are overwritten */
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++)
        memset(qsf_col(f, s->out[0], c), 0, s->out[0].width * sizeof(float));
    int rc = qsf_foresee(f, s, err);
    if (rc != QSF_OK) return rc;
    return any_order ? as_they_come(&j, &chosen, there, err) : in_order(&j, &chosen, err);
}
