/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Windows, log-probabilities and statistics of a scored text. */
#include "src/sample/score.h"

#include <math.h>

bool qsf_score_window(size_t n, uint32_t window, uint32_t stride, size_t k, QsfScoreWindow *out) {
    if (k > n / stride) return false; /* also prevents overflow below */
    size_t begin = k * stride, before = k > 0 ? begin - stride + window : 1;
    if (k > 0 && before >= n) return false;
    size_t end = n - (begin < n ? begin : n) > window ? begin + window : n;
    size_t first = before > begin ? before : begin + 1;
    if (first >= end) return false;
    *out = (QsfScoreWindow){ begin, first, end };
    return true;
}

size_t qsf_score_count(size_t n, uint32_t window, uint32_t stride, size_t *windows) {
    QsfScoreWindow w;
    size_t scored = 0, k = 0;
    for (; qsf_score_window(n, window, stride, k, &w); k++) scored += w.end - w.first;
    if (windows != NULL) *windows = k;
    return scored;
}

double qsf_score_log_sum(const float *x, size_t n) {
    float max = x[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - (double)max);
    return (double)max + log(sum);
}

double qsf_score_divergence(const float *p, double p_sum, const float *q, size_t n) {
    const double q_sum = qsf_score_log_sum(q, n);
    double kl = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_p = (double)p[i] - p_sum;
        kl += exp(log_p) * (log_p - ((double)q[i] - q_sum));
    }
    return kl > 0 ? kl : 0;
}

double qsf_score_cosine(const float *a, const float *b, size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    if (!(aa > 0) || !(bb > 0)) return aa > 0 || bb > 0 ? 0 : 1;
    return ab / (sqrt(aa) * sqrt(bb));
}

void qsf_mean_add(QsfMean *m, double v) {
    double d = v - m->mean;
    m->n++;
    m->mean += d / (double)m->n;
    m->m2 += d * (v - m->mean);
}

double qsf_mean_error(const QsfMean *m) {
    if (m->n < 2) return 0;
    return sqrt(m->m2 / (double)(m->n - 1) / (double)m->n);
}

static void sift_down(float *v, size_t root, size_t n) {
    float x = v[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && v[child + 1] > v[child]) child++;
        if (v[child] <= x) break;
        v[root] = v[child];
    }
    v[root] = x;
}

/* Heapsort, because the C library's qsort may allocate a copy of the array. */
void qsf_score_sort(float *v, size_t n) {
    for (size_t i = n / 2; i-- > 0;) sift_down(v, i, n);
    for (size_t i = n; i-- > 1;) {
        float top = v[0];
        v[0] = v[i];
        v[i] = top;
        sift_down(v, 0, i);
    }
}

float qsf_score_quantile(const float *sorted, size_t n, double p) {
    double rank = ceil(p * (double)n);
    size_t i = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[i < n ? i : n - 1];
}

double qsf_score_median(const float *sorted, size_t n) {
    return n % 2 ? (double)sorted[n / 2] : ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]) / 2;
}
