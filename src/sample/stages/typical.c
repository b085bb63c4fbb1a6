/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens whose surprise is closest to the entropy, until their probability reaches p (Meister et al.
 * 2022, "Locally Typical Sampling"). */
#include <math.h>

#include "src/sample/chain.h"

#define BUCKETS         2048u
#define BUCKETS_PER_NAT 64.0

static bool on(const QsfChain *c) { return c->p->typical > 0 && c->p->typical < 1.0f && c->n > 1; }

/* Difference of the surprise of a logit from the entropy: |offset - x / temperature|. */
typedef struct Distance {
    double offset, temperature;
} Distance;

static double distance(const Distance *d, float x) { return fabs(d->offset - (double)x / d->temperature); }

static size_t bucket_of(const Distance *d, float x) {
    const double b = distance(d, x) * BUCKETS_PER_NAT;
    return b < BUCKETS ? (size_t)b : BUCKETS;
}

/* Makes a list of those that the selection can need, so that it need not look at the whole vocabulary. */
static void narrow(QsfChain *c, const Distance *d, double share) {
    double mass[BUCKETS + 1] = { 0 }, sum = 0;
    size_t last = 0, kept = 0;
    for (size_t i = 0; i < c->n_vocab; i++) mass[bucket_of(d, c->x[i])] += (double)c->prob[i];
    while (last < BUCKETS && (sum += mass[last]) < share * (1 + 1e-4)) last++;
    for (size_t i = 0; i < c->n_vocab; i++)
        if (bucket_of(d, c->x[i]) <= last) c->cand[kept++] = (qk_pick){ c->x[i], (int32_t)i };
    qsf_chain_adopt(c, kept);
}

static void apply(QsfChain *c) {
    const double share = (double)c->p->typical, total = qsf_chain_total(c);
    const QsfSelection s = { .max = (double)qsf_chain_max(c), .weight = share * total };
    const Distance d = { .offset = s.max / c->temperature + log(total) - qsf_chain_entropy(c),
                         .temperature = c->temperature };
    if (c->dense) narrow(c, &d, share);
    qk_pick *key = qsf_chain_scratch(c);
    for (size_t i = 0; i < c->n; i++) key[i] = (qk_pick){ (float)-distance(&d, c->cand[i].x), (int32_t)i };
    qsf_chain_select(c, key, &s);
}

const QsfStage qsf_stage_typical = { "typical", "typ-p,typical-p", QSF_STAGE_TRUNCATES, on, apply, NULL };
