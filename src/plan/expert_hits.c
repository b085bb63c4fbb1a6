/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which share of the chosen experts will be found in a number of slots. */
#include "src/plan/plan_impl.h"
#include "src/plan/units.h"

#define ENOUGH 256u /* uses of which a share is more than chance */

double qsf_expert_hits_of(const uint32_t *depth, uint64_t slots, uint64_t n_experts) {
    uint64_t all = 0;
    double hits = 0;
    if (depth == NULL || n_experts == 0) return -1;
    const double end = (double)slots * QSF_EXPERT_DEPTHS / (double)n_experts;
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) {
        const double part = end - i;
        all += depth[i];
        hits += part <= 0 ? 0 : part < 1 ? part * depth[i] : depth[i];
    }
    return all < ENOUGH ? -1 : hits / (double)all;
}

/* Points of a curve: share of all experts that have slots, share of hits. */
typedef struct HitPoint {
    double slots, hits;
} HitPoint;

/* Before anything is known of the model. */
static double usual_hits(const QsfShape *s, uint64_t slots) {
    static const HitPoint few[] = { { 0, 0 },     { .125, .28 }, { .25, .51 }, { .375, .68 },
                                    { .50, .79 }, { .75, .92 },  { 1, 1 } },
                          many[] = { { 0, 0 },     { .03, .22 }, { .05, .30 }, { .10, .45 }, { .25, .72 },
                                     { .40, .88 }, { .50, .91 }, { .66, .95 }, { 1, 1 } };
    const HitPoint *p = s->n_experts / s->expert_blocks <= 64 ? few : many;
    const double share = (double)slots / (double)s->n_experts;
    while (share >= p[1].slots) p++;
    return p->hits + (p[1].hits - p->hits) * (share - p->slots) / (p[1].slots - p->slots);
}

double qsf_plan_expert_hits(const QsfPricing *s, uint64_t slots) {
    const QsfShape *shape = &s->shape;
    if (slots >= shape->n_experts || shape->expert_blocks == 0) return 1;
    const double known = qsf_expert_hits_of(s->o->expert_depth, slots, shape->n_experts);
    return known >= 0 ? known : usual_hits(shape, slots);
}
