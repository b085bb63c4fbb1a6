/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best k of a sequence: a heap with the worst one on top. Popping all of them yields the order from worst
 * to best. The order is by value; on a tie the lower id wins, so the result is the same on every machine. */
#ifndef QSF_KERNELS_PICK_H
#define QSF_KERNELS_PICK_H

#include <math.h>

#include "kernels/kernels.h"

/* Buckets of the search for the nucleus: a sixteenth of a nat each, down to 32 nats (1e-14) below the
 * best. */
enum { QK_BUCKETS = 512 };
#define QK_BUCKETS_PER_NAT 16.0f

static inline int qk_worse(qk_pick a, qk_pick b) { return a.x < b.x || (a.x == b.x && a.id > b.id); }

static inline void qk_sift_down(qk_pick *h, size_t n, size_t i) {
    const qk_pick moving = h[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && qk_worse(h[child + 1], h[child])) child++;
        if (!qk_worse(h[child], moving)) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = moving;
}

static inline void qk_heapify(qk_pick *h, size_t n) {
    for (size_t i = n / 2; i-- > 0;) qk_sift_down(h, n, i);
}

static inline void qk_sort_picks(qk_pick *h, size_t n) {
    qk_heapify(h, n);
    for (size_t m = n; m-- > 1;) {
        const qk_pick worst = h[0];
        h[0] = h[m];
        h[m] = worst;
        qk_sift_down(h, m, 0);
    }
}

/* The best k elements offered so far, if offered in the order of their ids. */
typedef struct qk_best {
    qk_pick *h;
    size_t k, n;
    float limit; /* smaller elements need not be offered */
} qk_best;

static inline void qk_offer(qk_best *b, float x, size_t id) {
    if (b->n < b->k) {
        b->h[b->n++] = (qk_pick){ x, (int32_t)id };
        if (b->n < b->k) return;
        qk_heapify(b->h, b->k);
    } else if (x > b->h[0].x) { /* an equal one with a higher id loses */
        b->h[0] = (qk_pick){ x, (int32_t)id };
        qk_sift_down(b->h, b->k, 0);
    }
    b->limit = nextafterf(b->h[0].x, INFINITY);
}

/* The first of n buckets at which the cumulative mass reaches top_p of the total; mass[n] is the rest.
 * Returns n if there is none. */
static inline size_t qk_last_bucket(const double *mass, size_t n, double top_p) {
    double total = 0, sum = 0;
    size_t last = 0;
    for (size_t b = 0; b <= n; b++) total += mass[b];
    for (; last < n; last++) {
        sum += mass[last];
        if (sum >= top_p * total) break;
    }
    return last;
}

#endif
