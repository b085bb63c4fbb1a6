/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/speculate/control.h"

#define RATE_STEP 0.1  /* weight of a draft in its rate */
#define COST_STEP 0.15 /* and of a pass in its cost */
#define COST_SEEN 16u
#define SINGLES   2u
#define OUTLIER \
    3.0 /* a pass that takes as many times as long says something about the machine, not its width */
#define SLOPE_IN_RAM 0.08 /* measured: 4 columns take 1.0 to 1.3 times as long as one */
#define SLOPE_READS  0.02
#define GAIN         1.03 /* less is not worth the risk */
#define LOSS         0.01 /* of the time of all passes */
#define CREDIT       4.0  /* passes of one token that what was saved pays for */

/* A longer match is more likely to go on. */
static const double first_rate[QSF_DRAFT_GRADES] = { 0.5, 0.65, 0.8, 0.9 };

void qsf_draft_control_init(QsfDraftControl *c, bool streams) {
    *c = (QsfDraftControl){ .slope = streams ? SLOPE_READS : SLOPE_IN_RAM };
    for (unsigned s = 0; s < QSF_DRAFT_SOURCES; s++)
        for (unsigned g = 0; g < QSF_DRAFT_GRADES; g++)
            for (unsigned i = 0; i < QSF_DRAFT_MOST; i++) c->rates[s][g].rate[i] = first_rate[g];
}

/* The cost of a pass relative to one of a single token; of widths that were not measured between those that
 * were, and a guess beyond. */
static double cost_of(const QsfDraftControl *c, uint32_t width) {
    if (width == 1 || c->seen[1] == 0) return 1 + c->slope * (width - 1);
    uint32_t lo = width, hi = width;
    while (lo > 1 && c->seen[lo] == 0) lo--;
    while (hi < QSF_DRAFT_COLS && c->seen[hi] == 0) hi++;
    const double below = c->cost[lo] / c->cost[1], above = c->cost[hi] / c->cost[1];
    if (lo == width) return below;
    if (c->seen[hi] == 0) return below + c->slope * (width - lo);
    return below + (above - below) * (width - lo) / (hi - lo);
}

/* What is lost is counted against passes of one token, so there must be some. */
bool qsf_draft_control_tries(const QsfDraftControl *c) {
    return c->seen[1] >= SINGLES && c->lost <= LOSS * c->spent;
}

/* Wider passes than ever are tried step by step. */
static uint32_t widest(const QsfDraftControl *c) {
    uint32_t n = QSF_DRAFT_COLS;
    while (n > 1 && c->seen[n] == 0) n--;
    return 2 * n - 1;
}

uint32_t qsf_draft_control_width(const QsfDraftControl *c, unsigned source, unsigned grade, uint32_t most,
                                 double *gain) {
    const double *rate = c->rates[source][grade].rate;
    double tokens = 1, all = 1;
    uint32_t n = 0;
    *gain = GAIN;
    if (!qsf_draft_control_tries(c)) return 0;
    if (most > widest(c)) most = widest(c);
    for (uint32_t i = 0; i < most && i < QSF_DRAFT_MOST; i++) {
        all *= rate[i];
        tokens += all;
        const double now = tokens / cost_of(c, i + 2);
        if (now > *gain) *gain = now, n = i + 1;
    }
    return n;
}

static void note_cost(QsfDraftControl *c, uint32_t width, double ns) {
    double *cost = &c->cost[width];
    const uint32_t seen = c->seen[width];
    if (seen < COST_SEEN) c->seen[width]++;
    if (seen == 0)
        *cost = ns;
    else if (seen < 4)
        *cost = ns < *cost ? ns : *cost; /* the first ones read weights and warm caches */
    else
        *cost += COST_STEP * (ns - *cost);
}

static void note_rates(QsfDraftRates *r, uint32_t n, uint32_t accepted) {
    for (uint32_t i = 0; i < n && i <= accepted; i++)
        r->rate[i] += RATE_STEP * ((i < accepted ? 1.0 : 0.0) - r->rate[i]);
}

void qsf_draft_control_note(QsfDraftControl *c, unsigned source, unsigned grade, uint32_t n,
                            uint32_t accepted, double ns, double proposing) {
    if (c->seen[n + 1] >= 4 && ns > OUTLIER * c->cost[n + 1]) ns = OUTLIER * c->cost[n + 1];
    note_cost(c, n + 1, ns);
    c->spent += ns + proposing;
    c->lost += proposing;
    if (n > 0) {
        note_rates(&c->rates[source][grade], n, accepted);
        c->lost += ns - c->cost[1] * (accepted + 1);
        c->yield[source] += RATE_STEP * (c->cost[1] * (accepted + 1) / (ns + proposing) - c->yield[source]);
    }
    if (c->lost < -CREDIT * c->cost[1]) c->lost = -CREDIT * c->cost[1];
}
