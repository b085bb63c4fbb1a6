/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the files of the plan: pricing.c adds up sizes, search.c chooses a configuration,
 * pin_rows.c chooses the pinned rows, plan.c combines them, plan_text.c formats the messages. */
#ifndef QSF_PLAN_PLAN_IMPL_H
#define QSF_PLAN_PLAN_IMPL_H

#include "src/plan/layout.h"
#include "src/plan/plan.h"
#include "src/plan/sketch.h"

/* Between the resident sets of two runs of one program (pricing.c); larger programs (sanitizer builds) vary
 * more. A budget that is named for the next run has to hold both. */
#define QSF_BASE_JITTER     (256u * 1024)
#define QSF_BASE_PER_JITTER 32u /* this fraction is added */

#define QSF_MIB         (1ull << 20)
#define QSF_BATCH_LEAST 16u /* columns of a prefill chunk that are not given up but at the very end */

/* One way to run the model, whose memory is to be computed. */
typedef struct QsfConfig {
    uint32_t ctx, batch, n_slots;
    uint32_t kv;  /* how many choices of types come after the one that is used: the more, the more bits */
    bool hold_kv; /* as in the pricing */
    uint64_t slot_bytes;
    uint32_t embed_rows;        /* of the row cache */
    bool embed_resident;        /* as a separate table; a pinned tied head needs none */
    uint32_t draft_cols;        /* positions of a pass with drafts; 0 = no speculation */
    uint64_t pinned_unit_bytes; /* whole windows; while weights stream and before they are
                                   spread, what must be pinned */
} QsfConfig;

/* Everything known before the search. */
typedef struct QsfPricing {
    const QsfModel *m;
    const QsfPlanOptions *o;
    qk_table table; /* reference: forms of activations and cache rows, which no level changes */
    QsfShape shape;
    QsfSketchShape sketch; /* zero: none is wanted */
    bool hold_kv;          /* keep_k and keep_v of the options hold without exception */
    bool adapters_stream;  /* they are read block by block for each pass */
    bool above_half;       /* an automatic budget of more than half of what is available */
    uint64_t budget;
} QsfPricing;

/* Reads what stays the same in the search; m and o outlive s. */
void qsf_pricing_init(QsfPricing *s, const QsfModel *m, const QsfPlanOptions *o);
/* Return the types of a configuration. kv: those in use, of the cache with the fewest bits; wanted: those
 * asked for, which some caches may not support. */
QsfKvTypes qsf_pricing_kv(const QsfPricing *s, const QsfConfig *c);
QsfKvTypes qsf_pricing_wanted_kv(const QsfPricing *s, const QsfConfig *c);
/* Fills rows (QSF_MEM_N) and returns their sum, UINT64_MAX when it does not fit 64 bits. */
uint64_t qsf_pricing_rows(const QsfPricing *s, const QsfConfig *c, uint64_t *rows);
/* Returns the number of checkpoints of states. */
uint32_t qsf_pricing_checkpoints(const QsfPricing *s, QsfKvTypes types, uint32_t ctx);
/* Returns the columns that a pass can have: c->batch, but not more than the context, nor more
 * than rings of windows allow. */
uint32_t qsf_pricing_batch(const QsfPricing *s, const QsfConfig *c);

/* Returns the context to use if memory suffices: the user's, or the default. */
uint32_t qsf_plan_wanted_ctx(const QsfPricing *s);
/* Returns the configuration for streaming with nothing lowered. */
QsfConfig qsf_plan_preferred(const QsfPricing *s);
/* Finds the first configuration that fits, in the order of search.c. *lowered: something was lowered, so
 * nothing is pinned while units stream. false when none fits. */
bool qsf_plan_search(const QsfPricing *s, QsfConfig *out, bool *lowered);
/* Returns the smallest configuration, for the error message. */
QsfConfig qsf_plan_least(const QsfPricing *s);

/* Must the head be pinned, because another forward pass reads it, or it is the table and that was asked
 * for? */
static inline bool qsf_plan_holds_head(const QsfPricing *s) {
    return s->o->hold_head || (s->o->embedding == QSF_EMBEDDING_RESIDENT && s->m->prog.tied_head);
}

/* Must a unit be pinned? */
static inline bool qsf_plan_holds(const QsfPricing *s, uint32_t unit) {
    const QsfUnitSpec *u = &s->m->prog.unit[unit];
    return (unit + 1 == s->shape.n_units && qsf_plan_holds_head(s)) ||
           (s->o->holds && !u->on_demand && qsf_blocks_have(&s->o->hold, u->block));
}

/* Does a unit belong to a block that is skipped, or is it a head with a sketch? */
static inline bool qsf_plan_skips(const QsfPricing *s, uint32_t unit) {
    return qsf_quality_sketches(&s->o->quality, unit) ||
           (qsf_quality_below(&s->o->quality) &&
            qsf_blocks_have(&s->o->quality.skip, s->m->prog.unit[unit].block));
}

/* Return the budgets of options without one, multiples of 1 MiB: half of what is available, and what is taken
 * where half is too little: the smallest that works and a little more, up to qsf_plan_auto_most; that if it
 * does not work. Without a known amount: QSF_BUDGET_DEFAULT. */
uint64_t qsf_plan_auto_half(const QsfPlanOptions *o);
uint64_t qsf_plan_auto_more(const QsfModel *m, const QsfPlanOptions *o);
/* Lowers an automatic budget to what the plan uses, with room for the text of prompts and for text_bytes
 * bytes of messages. */
void qsf_plan_auto_trim(QsfPlan *p, uint64_t text_bytes);

typedef struct QsfSpread {
    uint64_t held;     /* memory of what is pinned */
    uint64_t weight;   /* bytes of weights among it */
    uint64_t streamed; /* bytes that a token streams; of experts the average */
    uint32_t slots;    /* for experts */
    double hits;       /* their expected share of hits */
} QsfSpread;

/* Returns the expected share of the chosen experts that are in memory with this number of slots: by what
 * earlier conversations with the model chose; else, of blocks of up to 64 experts as recorded of OLMoE
 * (JustVugg/colibri), of more rather less than of Qwen3-30B and Gemma-4-26B (routes by
 * Helldez/BigMoeOnEdge). */
double qsf_plan_expert_hits(const QsfPricing *s, uint64_t slots);

/* Returns the memory of what must be pinned. */
uint64_t qsf_plan_held_bytes(const QsfPricing *s);
/* Fills pinned (n_units) so that at most `room` bytes of memory and o->pin_cap bytes of weights are
 * pinned, and the streamed rows are spread evenly over the pass. Experts are pinned if all are, and get
 * slots if all other units are pinned; blocks that are skipped, with memory that nothing else needs. What
 * must be pinned comes first: room is at least what it takes. */
QsfSpread qsf_plan_spread(const QsfPricing *s, uint64_t slot_bytes, uint64_t room, uint32_t *pinned);

/* Writes what was lowered to p->note. */
void qsf_plan_note(const QsfPricing *s, const QsfConfig *c, QsfPlan *p);
/* Sets the error for a budget that even the smallest configuration exceeds. */
void qsf_plan_refuse(const QsfPricing *s, const QsfConfig *least, uint64_t smallest, QsfErr *err);

#endif
