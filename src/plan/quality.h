/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What passes of an answer leave out: with a quality below 1 some blocks, and some experts of the others;
 * with limits for experts only those. Pure functions of the model, the quality and the importance of blocks:
 * budgets, threads and I/O do not matter. */
#ifndef QSF_PLAN_QUALITY_H
#define QSF_PLAN_QUALITY_H

#include "src/model/optional.h"
#include "src/plan/units.h"

/* Positions at the start of a conversation over which the importance of blocks is averaged, at most. */
#define QSF_MEASURE_POSITIONS 64u
/* Positions that may wait for the blocks after an early exit, at most; fewer than a ring of the KV cache can
 * take at a time (QSF_KV_SLACK). */
#define QSF_PENDING_POSITIONS 16u

/* The head is found with its sketch (sketch.h). */
typedef struct QsfQualityHead {
    uint32_t groups; /* of 16 rows that are multiplied in full; 0: all, without a sketch */
    uint32_t unit;
    uint64_t bytes, sketch_bytes; /* of the head and of the sketch that a token multiplies */
} QsfQualityHead;

/* Which of the experts that a router chooses a position uses; all 0: all of them. */
typedef struct QsfExpertLimits {
    uint32_t top; /* at most this many, the best ones; 0: no limit */
    float drop;   /* [0, 1]: none whose weight is below this part of the largest one of the position; at least
                     one is used (ikawrakow/ik_llama.cpp, smart expert reduction, has the same rule) */
} QsfExpertLimits;

/* What parameters ask for. */
typedef struct QsfQualityWish {
    float value; /* (0, 1] */
    QsfExpertLimits experts;
} QsfQualityWish;

typedef struct QsfQuality {
    float value;             /* (0, 1); 0 and 1: everything is computed but for the limits for experts */
    QsfExpertLimits experts; /* with them there is no early exit */
    QsfBlockSet skip;        /* blocks that are not computed, read or pinned */
    /* 0: every token skips the blocks of skip. Otherwise early exit: skip are block `exit` and all later
     * ones, and a token skips them only if its two largest logits before them are at least `margin` apart.
     * Nothing else is left out then. */
    uint32_t exit;
    float margin;
    float full; /* passes over those blocks for each token of an answer, as calibrated */
    QsfQualityHead head;
} QsfQuality;

/* Sets out->head for a model that has a sketch. */
void qsf_quality_sketch(QsfQuality *out, const QsfModel *m);

/* Only a margin that no token misses: early exit is then the same as skipping. */
#define QSF_EVERY_MARGIN (-1.0f)

static inline bool qsf_expert_limits_any(const QsfExpertLimits *e) { return e->top > 0 || e->drop > 0; }
/* Is the quality below 1? */
static inline bool qsf_quality_below(const QsfQuality *q) { return q->value > 0 && q->value < 1; }
/* Is anything left out? */
static inline bool qsf_quality_reduces(const QsfQuality *q) {
    return qsf_quality_below(q) || qsf_expert_limits_any(&q->experts);
}
/* Does b leave out less than a in some way? */
bool qsf_quality_wishes_more(const QsfQualityWish *a, const QsfQualityWish *b);
/* Do both leave out the same? */
bool qsf_quality_wish_equal(const QsfQualityWish *a, const QsfQualityWish *b);
/* Early exit of blocks [exit, n_blocks). */
void qsf_quality_exit(QsfQuality *q, const QsfModel *m, uint32_t exit, float margin, float full);
/* Is it decided token by token whether blocks are skipped? */
static inline bool qsf_quality_exits(const QsfQuality *q) {
    return qsf_quality_below(q) && q->exit > 0 && q->margin > QSF_EVERY_MARGIN;
}
/* Do both leave out the same, as far as a plan has it? */
bool qsf_quality_equal(const QsfQuality *a, const QsfQuality *b);

/* Returns how many experts a position uses at most of the n_used that its router chooses:
 * n_used * quality, rounded up, and no more than the limit. */
uint32_t qsf_quality_experts(const QsfQuality *q, uint32_t n_used);
/* Does a pass find the rows of unit `unit` with a sketch? */
static inline bool qsf_quality_sketches(const QsfQuality *q, uint32_t unit) {
    return qsf_quality_below(q) && q->head.groups > 0 && q->head.unit == unit;
}
/* Returns the bytes of u, without its sketch, that one token multiplies on average. */
uint64_t qsf_quality_unit_bytes(const QsfQuality *q, const QsfUnit *u);
/* The same for all units, and the sketch. */
uint64_t qsf_quality_bytes(const QsfQuality *q, const QsfModel *m);

/* Chooses what to skip so that a token multiplies about `value` of the bytes that it needs otherwise: the
 * least important optional blocks. out->head and out->experts are as set before; the head counts. score:
 * (n_blocks) importance; NULL: not known, and blocks somewhat after the middle go first. With the same
 * scores, a lower value skips the same blocks and more. */
void qsf_quality_choose(QsfQuality *out, const QsfModel *m, const QsfBlockSet *optional, const double *score,
                        float value);

#endif
