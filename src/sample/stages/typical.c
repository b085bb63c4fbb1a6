/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens whose surprise is closest to the entropy, until their probability reaches p (Meister et al.
 * 2022, "Locally Typical Sampling"). */
#include <math.h>
#include <string.h>

#include "src/sample/chain.h"

#define BUCKETS         1024u
#define BUCKETS_PER_NAT 32.0f
#define NEAR_NATS       8u /* most of a vocabulary is less likely, and is looked at only if it is needed */
#define CHAINS          4u /* sums that do not wait for each other */

static bool on(const QsfChain *c) { return c->p->typical > 0 && c->p->typical < 1.0f && c->n > 1; }

/* Difference of the surprise of a logit from the entropy: |offset - x / temperature|. */
typedef struct Distance {
    double offset, temperature;
    float start, scale; /* the same for buckets */
} Distance;

static double distance(const Distance *d, float x) { return fabs(d->offset - (double)x / d->temperature); }

static uint32_t bucket_of(const Distance *d, float x) {
    const float b = fabsf(d->start - x * d->scale);
    return b < (float)BUCKETS ? (uint32_t)b : BUCKETS;
}

/* mass[b] becomes the probability of bucket b of the first n of cand. Returns the bucket with which the sum
 * reaches share; BUCKETS: none. */
static uint32_t fill_buckets(const QsfChain *c, size_t n, const Distance *d, double share, double *mass) {
    double chain[CHAINS][BUCKETS + 1] = { { 0 } }, sum = 0;
    uint32_t last = BUCKETS;
    for (size_t i = 0; i < n; i++)
        chain[i % CHAINS][bucket_of(d, c->cand[i].x)] += (double)c->prob[c->cand[i].id];
    for (uint32_t b = 0; b < BUCKETS; b++) {
        mass[b] = (chain[0][b] + chain[1][b]) + (chain[2][b] + chain[3][b]);
        sum += mass[b];
        if (last == BUCKETS && sum >= share) last = b;
    }
    return last;
}

/* Makes a list of those that the selection needs: first *sure candidates that are closer than the others and
 * have the probability *p. */
static void narrow(QsfChain *c, const Distance *d, double share, size_t *sure, double *p) {
    double mass[BUCKETS];
    const float limit = (float)((d->offset - NEAR_NATS) * d->temperature);
    size_t n = c->table->at_least(c->cand, c->x, c->n_vocab, limit), kept = 0, others = 0;
    uint32_t last = fill_buckets(c, n, d, share, mass);
    if (last + 1 >= NEAR_NATS * (uint32_t)BUCKETS_PER_NAT) {
        n = c->table->at_least(c->cand, c->x, c->n_vocab, -INFINITY);
        last = fill_buckets(c, n, d, share, mass);
    }
    qk_pick *other = qsf_chain_scratch(c);
    for (size_t i = 0; i < n; i++) {
        const uint32_t b = bucket_of(d, c->cand[i].x);
        if (b + 1 < last) /* a neighbour may belong to the bucket, because these are numbers in float */
            c->cand[kept++] = c->cand[i];
        else if (b <= last + 1)
            other[others++] = c->cand[i];
    }
    *sure = kept;
    *p = 0;
    for (uint32_t b = 0; b + 1 < last; b++) *p += mass[b];
    memcpy(c->cand + kept, other, others * sizeof *other);
    qsf_chain_adopt(c, kept + others);
}

static void apply(QsfChain *c) {
    const double share = (double)c->p->typical, total = qsf_chain_total(c);
    QsfSelection s = { .max = (double)qsf_chain_max(c), .weight = share * total };
    const double offset = s.max / c->temperature + log(total) - qsf_chain_entropy(c);
    const Distance d = { .offset = offset,
                         .temperature = c->temperature,
                         .start = (float)offset * BUCKETS_PER_NAT,
                         .scale = BUCKETS_PER_NAT / (float)c->temperature };
    double p = 0;
    if (c->dense) narrow(c, &d, share, &s.sure, &p);
    s.weight -= p * total;
    qk_pick *key = qsf_chain_scratch(c);
    for (size_t i = s.sure; i < c->n; i++)
        key[i - s.sure] = (qk_pick){ (float)-distance(&d, c->cand[i].x), (int32_t)i };
    qsf_chain_select(c, key, &s);
}

const QsfStage qsf_stage_typical = { "typical", "typ-p,typical-p,typ", QSF_STAGE_TRUNCATES, on, apply, NULL };
