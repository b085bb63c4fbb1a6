/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the experts of a position. */
#include <math.h>

#include "src/forward/forward_impl.h"

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

/* Marks the n highest of score (count), the lowest index first among equal ones; skips those that are marked as
 * closed. Always marks n if there are that many. */
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
