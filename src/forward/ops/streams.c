/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Column steps of Gemma 3n: several residual streams of which one is computed and the others are predicted (AltUp,
 * Baykal et al. 2023), and a feed-forward network that keeps its largest values only; and the mix of residuals of Kimi K3. Sums here are in double, in one
 * order. */
#include <math.h>

#include "src/forward/forward_impl.h"

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

void qsf_column_matvec(const QsfForward *f, const QsfStep *s, size_t c) {
    const float *w = qsf_param(f, s->u.param), *x = qsf_col(f, s->in, c);
    float *y = qsf_col(f, s->out[0], c);
    for (size_t row = 0; row < s->out[0].width; row++)
        y[row] = (float)dot(w + row * s->in.width, x, s->in.width);
}

void qsf_column_sparse(const QsfForward *f, const QsfStep *s, size_t c) {
    f->table->keep_above(qsf_col(f, s->out[0], c), s->out[0].width, s->u.scale);
}

void qsf_column_match(const QsfForward *f, const QsfStep *s, size_t c) {
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

void qsf_column_predict(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->u.streams, width = s->out[0].width / n;
    f->table->mix_streams(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), n, width, width);
}

/* Adds to n streams what the computed one, of which in is the result, missed by, times 1 + in2. */
void qsf_column_correct(const QsfForward *f, const QsfStep *s, size_t c) {
    const size_t n = s->u.streams, width = s->in.width;
    f->table->correct_streams(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c), qsf_col(f, s->in2, c), n, width,
                              width);
}

static double score(const float *x, const float *w, size_t n, float eps) {
    return dot(x, w, n) / sqrt(dot(x, x, n) / (double)n + (double)eps);
}

void qsf_column_blend(const QsfForward *f, const QsfStep *s, size_t c) {
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
