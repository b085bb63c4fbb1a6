/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/quality.h"

#include <math.h>
#include <string.h>

#include "src/plan/sketch.h"

#define EXPERT_ROUND 1e-4 /* 0.3f * 10 is 3 */
#define PRIOR_CENTRE 0.65 /* of the depth: without measurements, blocks near it are skipped first */

static bool same_bits(const float *a, const float *b) { return memcmp(a, b, sizeof *a) == 0; }

static bool same_limits(const QsfExpertLimits *a, const QsfExpertLimits *b) {
    return a->top == b->top && same_bits(&a->drop, &b->drop);
}

bool qsf_quality_wish_equal(const QsfQualityWish *a, const QsfQualityWish *b) {
    return same_bits(&a->value, &b->value) && same_limits(&a->experts, &b->experts);
}

bool qsf_quality_wishes_more(const QsfQualityWish *a, const QsfQualityWish *b) {
    const uint32_t of_a = a->experts.top > 0 ? a->experts.top : UINT32_MAX,
                   of_b = b->experts.top > 0 ? b->experts.top : UINT32_MAX;
    return b->value > a->value || of_b > of_a || b->experts.drop < a->experts.drop;
}

bool qsf_quality_equal(const QsfQuality *a, const QsfQuality *b) {
    if (!same_limits(&a->experts, &b->experts)) return false;
    if (!qsf_quality_below(a) || !qsf_quality_below(b)) return qsf_quality_below(a) == qsf_quality_below(b);
    return a->value == b->value && qsf_blocks_equal(&a->skip, &b->skip) && a->exit == b->exit &&
           same_bits(&a->margin, &b->margin) && a->head.groups == b->head.groups;
}

void qsf_quality_sketch(QsfQuality *out, const QsfModel *m) {
    QsfSketchShape s;
    out->head = (QsfQualityHead){ 0 };
    if (!qsf_quality_below(out) || !qsf_sketch_shape(m, 1, &s)) return;
    out->head = (QsfQualityHead){ .groups = s.chosen,
                                  .unit = s.unit,
                                  .bytes = s.chosen_bytes,
                                  .sketch_bytes = s.groups * QSF_ROW_QUANTUM * s.row_bytes };
}

void qsf_quality_exit(QsfQuality *q, const QsfModel *m, uint32_t exit, float margin, float full) {
    memset(&q->skip, 0, sizeof q->skip);
    for (uint32_t i = exit; i < m->prog.n_blocks; i++) qsf_blocks_add(&q->skip, i);
    q->exit = exit;
    q->margin = margin;
    q->full = full;
}

uint32_t qsf_quality_experts(const QsfQuality *q, uint32_t n_used) {
    const bool part = qsf_quality_below(q) && q->exit == 0;
    const double n = ceil((double)n_used * (part ? (double)q->value : 1) - EXPERT_ROUND);
    const uint32_t some = n < 1 ? 1 : n < n_used ? (uint32_t)n : n_used;
    return q->experts.top > 0 && q->experts.top < some ? q->experts.top : some;
}

uint64_t qsf_quality_unit_bytes(const QsfQuality *q, const QsfUnit *u) {
    const uint64_t all = u->on_demand ? u->bytes * qsf_quality_experts(q, u->n_used) / u->n_expert : u->bytes;
    if (qsf_quality_sketches(q, u->index)) return q->head.bytes;
    if (!qsf_quality_below(q) || !qsf_blocks_have(&q->skip, u->layer)) return all;
    return qsf_quality_exits(q) ? (uint64_t)((double)all * (double)q->full) : 0;
}

uint64_t qsf_quality_bytes(const QsfQuality *q, const QsfModel *m) {
    uint64_t sum = 0;
    const uint64_t sketch = qsf_quality_below(q) ? q->head.sketch_bytes : 0;
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        const bool head = i + 1 == qsf_unit_count(m);
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        const uint64_t bytes = qsf_quality_unit_bytes(q, &u) + (head ? sketch : 0);
        sum += bytes;
        /* A token that does not end at the exit needs the head a second time. */
        if (qsf_quality_exits(q) && u.layer == m->prog.n_blocks)
            sum += (uint64_t)((double)bytes * (double)q->full);
    }
    return sum;
}

/* ---- the choice ---- */

/* Bytes that a token multiplies: of experts, and of the rest. */
typedef struct Bytes {
    double fixed, experts;
} Bytes;

static Bytes block_bytes(const QsfModel *m, uint32_t block) {
    Bytes b = { 0, 0 };
    for (uint32_t i = m->prog.block_unit[block]; i < m->prog.block_unit[block + 1]; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        *(u.on_demand ? &b.experts : &b.fixed) += (double)qsf_unit_active_bytes(&u);
    }
    return b;
}

static double prior(const QsfModel *m, uint32_t block) {
    return fabs((double)block - PRIOR_CENTRE * m->prog.n_blocks);
}

/* Is block a less important than b? Scores that are equal, or no numbers, leave the choice to the prior. */
static bool less(const QsfModel *m, const double *score, uint32_t a, uint32_t b) {
    if (score != NULL && score[a] < score[b]) return true;
    if (score != NULL && score[a] > score[b]) return false;
    const double pa = prior(m, a), pb = prior(m, b);
    return pa < pb || (pa == pb && a > b);
}

/* Returns the least important optional block that is not skipped; n_blocks if there is none. */
static uint32_t next_block(const QsfModel *m, const QsfBlockSet *optional, const QsfBlockSet *skip,
                           const double *score) {
    uint32_t best = m->prog.n_blocks;
    for (uint32_t i = 0; i < m->prog.n_blocks; i++) {
        if (!qsf_blocks_have(optional, i) || qsf_blocks_have(skip, i)) continue;
        if (best == m->prog.n_blocks || less(m, score, i, best)) best = i;
    }
    return best;
}

/* Bytes that the sketch saves. */
static double head_gain(const QsfQuality *q, const QsfModel *m) {
    QsfUnit u;
    if (q->head.groups == 0) return 0;
    qsf_unit_at(m, q->head.unit, &u);
    return (double)u.bytes - (double)(q->head.bytes + q->head.sketch_bytes);
}

/* The experts count as if their number were not rounded: otherwise a step in it would change
 * which blocks are skipped. */
void qsf_quality_choose(QsfQuality *out, const QsfModel *m, const QsfBlockSet *optional, const double *score,
                        float value) {
    *out = (QsfQuality){ .value = value, .head = out->head, .experts = out->experts };
    if (!qsf_quality_below(out)) return;
    const double q = (double)value;
    Bytes all = { 0, 0 };
    for (uint32_t i = 0; i <= m->prog.n_blocks; i++) {
        const Bytes b = block_bytes(m, i);
        all.fixed += b.fixed;
        all.experts += b.experts;
    }
    double over = all.fixed + q * all.experts - q * (all.fixed + all.experts) - head_gain(out, m);
    if (over <= 0) return;
    for (;;) {
        const uint32_t next = next_block(m, optional, &out->skip, score);
        if (next == m->prog.n_blocks) return;
        const Bytes b = block_bytes(m, next);
        const double gain = b.fixed + q * b.experts;
        if (over - gain < 0 && gain - over > over) return; /* this one would be further away */
        qsf_blocks_add(&out->skip, next);
        over -= gain;
        if (over <= 0) return;
    }
}
