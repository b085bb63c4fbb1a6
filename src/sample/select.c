/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Partial selection. One heap with the worst candidate on top serves both: it keeps the best k while a
 * vocabulary passes by, and emptying it from the back leaves the best first. */
#include "src/sample/select.h"

#include <stdbool.h>

/* Buckets of the nucleus search: a sixteenth of a nat each, down to 32 nats (1e-14) below the best. */
#define BUCKETS         512
#define BUCKETS_PER_NAT 16.0f

static bool worse(QsfCandidate a, QsfCandidate b) { return a.x < b.x || (a.x == b.x && a.id > b.id); }

static void sift_down(QsfCandidate *h, size_t n, size_t i) {
    QsfCandidate moving = h[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && worse(h[child + 1], h[child])) child++;
        if (!worse(h[child], moving)) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = moving;
}

static void heapify(QsfCandidate *h, size_t n) {
    for (size_t i = n / 2; i-- > 0;) sift_down(h, n, i);
}

/* h is a heap; afterwards it is sorted, best first. */
static void unheap(QsfCandidate *h, size_t n) {
    while (n-- > 1) {
        QsfCandidate worst = h[0];
        h[0] = h[n];
        h[n] = worst;
        sift_down(h, n, 0);
    }
}

void qsf_select_top_k(QsfCandidate *cand, size_t k, const float *x, size_t n) {
    if (k == 0) return;
    for (size_t i = 0; i < k; i++) cand[i] = (QsfCandidate){ x[i], (int32_t)i };
    heapify(cand, k);
    float worst = cand[0].x;
    /* An equal logit with a higher id is worse, so ">" is the whole order here. */
    for (size_t i = k; i < n; i++) {
        if (!(x[i] > worst)) continue;
        cand[0] = (QsfCandidate){ x[i], (int32_t)i };
        sift_down(cand, k, 0);
        worst = cand[0].x;
    }
    unheap(cand, k);
}

static size_t bucket_of(float x, float max) {
    float d = (max - x) * BUCKETS_PER_NAT;
    return d < (float)BUCKETS ? (size_t)d : BUCKETS;
}

/* First bucket with which the sum of the masses reaches top_p of them all. */
static size_t last_bucket(const double *mass, double top_p) {
    double total = 0, sum = 0;
    size_t last = 0;
    for (size_t b = 0; b <= BUCKETS; b++) total += mass[b];
    for (; last < BUCKETS; last++) {
        sum += mass[last];
        if (sum >= top_p * total) break;
    }
    return last;
}

size_t qsf_select_nucleus(QsfCandidate *cand, const float *x, const float *p, size_t n, float max,
                          double top_p, size_t *sure) {
    double mass[BUCKETS + 1] = { 0 };
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) mass[bucket_of(x[i], max)] += (double)p[i];
    size_t last = last_bucket(mass, top_p);
    for (size_t i = 0; i < n; i++)
        if (bucket_of(x[i], max) < last) cand[kept++] = (QsfCandidate){ x[i], (int32_t)i };
    *sure = kept;
    for (size_t i = 0; i < n; i++)
        if (bucket_of(x[i], max) == last) cand[kept++] = (QsfCandidate){ x[i], (int32_t)i };
    heapify(cand + *sure, kept - *sure);
    unheap(cand + *sure, kept - *sure);
    return kept;
}

size_t qsf_select_at_least(QsfCandidate *cand, const float *x, size_t n, float limit) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] >= limit) cand[kept++] = (QsfCandidate){ x[i], (int32_t)i };
    return kept;
}
