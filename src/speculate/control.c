/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/speculate/control.h"

#define RATE_STEP 0.1  /* weight of a draft in its rate */
#define COST_STEP 0.15 /* and of a pass in its cost */
#define COST_SEEN 16u
#define TRUSTED   3u  /* passes of a width, after which its cost is known */
#define DISTRUST  1.5 /* what is believed before, as a multiple of the guess */
#define AGAIN     512u
#define FORGET    0.2
#define SINGLES   2u
#define FIRST_ASK 0.01 /* of a pass: what the first question to a source counts at most */
#define OUTLIER \
    3.0 /* a pass that takes as many times as long says something about the machine, not its width */
#define SLOPE_IN_RAM 0.08 /* measured: 4 columns take 1.0 to 1.3 times as long as one */
#define SLOPE_READS  0.02
#define GAIN         1.03  /* less is not worth the risk */
#define LOSS         0.008 /* of the time of all passes */
#define GRACE        1.5   /* and at first passes of one token */
#define CREDIT       4.0   /* passes of one token that what was saved pays for */

/* A longer match is more likely to continue. */
static const double first_rate[QSF_DRAFT_GRADES] = { 0.5, 0.65, 0.8, 0.9 };

void qsf_draft_control_init(QsfDraftControl *c, bool streams) {
    *c = (QsfDraftControl){ .slope = streams ? SLOPE_READS : SLOPE_IN_RAM };
    for (unsigned s = 0; s < QSF_DRAFT_SOURCES; s++)
        for (unsigned g = 0; g < QSF_DRAFT_GRADES; g++)
            for (unsigned i = 0; i < QSF_DRAFT_MOST; i++) c->rates[s][g].rate[i] = first_rate[g];
}

/* Relative to a pass of a single token. */
static double guess(const QsfDraftControl *c, uint32_t width) { return 1 + c->slope * (width - 1); }

/* What was measured, if it was a few times: a single pass may have waited for anything. */
static double measured(const QsfDraftControl *c, uint32_t width) {
    const double cost = c->cost[width] / c->cost[1], most = DISTRUST * guess(c, width);
    return c->seen[width] < TRUSTED && cost > most ? most : cost;
}

/* The cost of a pass; of widths that were not measured between those that were, and a guess beyond. */
static double cost_of(const QsfDraftControl *c, uint32_t width) {
    if (width == 1 || c->seen[1] == 0) return guess(c, width);
    uint32_t lo = width, hi = width;
    while (lo > 1 && c->seen[lo] == 0) lo--;
    while (hi < QSF_DRAFT_COLS && c->seen[hi] == 0) hi++;
    const double below = measured(c, lo), above = measured(c, hi);
    if (lo == width) return below;
    if (c->seen[hi] == 0) return below + c->slope * (width - lo);
    return below + (above - below) * (width - lo) / (hi - lo);
}

/* What is lost is counted against passes of one token, so there must be some. */
bool qsf_draft_control_tries(const QsfDraftControl *c) {
    return c->seen[1] >= SINGLES && c->lost <= LOSS * c->spent + GRACE * c->cost[1];
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
    else if (seen <= TRUSTED)
        *cost = ns < *cost ? ns : *cost; /* the first ones read weights and warm caches */
    else
        *cost += COST_STEP * (ns - *cost);
}

static void note_rates(QsfDraftRates *r, uint32_t n, uint32_t accepted) {
    for (uint32_t i = 0; i < n && i <= accepted; i++)
        r->rate[i] += RATE_STEP * ((i < accepted ? 1.0 : 0.0) - r->rate[i]);
}

/* The time of asking a source, without what the machine did in between. */
static double usual_ask(QsfDraftControl *c, unsigned source, double ns) {
    double *ask = &c->ask[source];
    const double most = *ask > 0 ? OUTLIER * *ask : FIRST_ASK * c->cost[1];
    if (ns > most) ns = most;
    *ask += *ask > 0 ? COST_STEP * (ns - *ask) : ns;
    return ns;
}

/* A pass that takes much longer than was expected says something about the machine, not about its width. */
static double usual_pass(const QsfDraftControl *c, uint32_t width, double ns) {
    const double *cost = c->cost;
    if (c->seen[width] > 0) return ns < OUTLIER * cost[width] ? ns : OUTLIER * cost[width];
    const double most = DISTRUST * guess(c, width) * cost[1];
    return width > 1 && c->seen[1] > 0 && ns > most ? most : ns;
}

/* The text changes, and so may what it costs: what was found is believed less after a while. */
static void doubt(QsfDraftControl *c) {
    if (++c->passes % AGAIN != 0) return;
    for (uint32_t w = 2; w <= QSF_DRAFT_COLS; w++)
        if (c->seen[w] >= TRUSTED) c->seen[w] = TRUSTED - 1;
    for (unsigned s = 0; s < QSF_DRAFT_SOURCES; s++)
        for (unsigned g = 0; g < QSF_DRAFT_GRADES; g++)
            for (unsigned i = 0; i < QSF_DRAFT_MOST; i++) {
                double *rate = &c->rates[s][g].rate[i];
                *rate += FORGET * (first_rate[g] - *rate);
            }
}

void qsf_draft_control_note(QsfDraftControl *c, unsigned source, unsigned grade, uint32_t n,
                            uint32_t accepted, double ns, double proposing) {
    const double usual = usual_pass(c, n + 1, ns);
    note_cost(c, n + 1, c->seen[n + 1] > TRUSTED ? usual : ns);
    ns = usual;
    doubt(c);
    proposing = usual_ask(c, source, proposing);
    c->spent += ns + proposing;
    c->lost += proposing;
    if (n > 0) {
        note_rates(&c->rates[source][grade], n, accepted);
        c->lost += (cost_of(c, n + 1) - (accepted + 1)) * c->cost[1]; /* not ns, which is noisy */
        c->yield[source] += RATE_STEP * (c->cost[1] * (accepted + 1) / (ns + proposing) - c->yield[source]);
    }
    if (c->lost < -CREDIT * c->cost[1]) c->lost = -CREDIT * c->cost[1];
}
