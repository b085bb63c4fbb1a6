/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the plan share: pricing.c adds up, search.c chooses a configuration, spread.c says which
 * rows are pinned, plan.c joins them, plan_text.c puts it into words. */
#ifndef QSF_PLAN_PLAN_IMPL_H
#define QSF_PLAN_PLAN_IMPL_H

#include "src/plan/layout.h"
#include "src/plan/plan.h"

#define QSF_MIB         (1ull << 20)
#define QSF_BATCH_LEAST 16u /* columns of a prefill chunk that are not given up but at the very end */

/* One way to run the model, to be priced. */
typedef struct QsfConfig {
    uint32_t ctx, batch, n_slots;
    uint64_t slot_bytes;
    uint32_t embed_rows;        /* of the row cache */
    bool embed_resident;        /* as a table of its own; a pinned tied head needs none */
    uint64_t pinned_unit_bytes; /* whole windows */
} QsfConfig;

/* Everything known before the search. */
typedef struct QsfPricing {
    const QsfModel *m;
    const QsfPlanOptions *o;
    qk_table table; /* reference: forms of activations and cache rows, which no level changes */
    QsfShape shape;
    qk_kv kv;
    uint64_t budget;
} QsfPricing;

void qsf_pricing_init(QsfPricing *s, const QsfModel *m, const QsfPlanOptions *o);
/* Fills rows (QSF_MEM_N) and returns their sum, UINT64_MAX when it does not fit 64 bits. */
uint64_t qsf_pricing_rows(const QsfPricing *s, const QsfConfig *c, uint64_t *rows);

/* The context without any pressure: what the user set, or the default. */
uint32_t qsf_plan_wanted_ctx(const QsfPricing *s);
/* Streaming with nothing lowered. */
QsfConfig qsf_plan_preferred(const QsfPricing *s);
/* The first configuration that fits, in the order of design §4. *lowered: something had to give way, so that
 * nothing is pinned while units stream. false: none fits. */
bool qsf_plan_search(const QsfPricing *s, QsfConfig *out, bool *lowered);
/* The cheapest configuration of all, for a refusal. */
QsfConfig qsf_plan_least(const QsfPricing *s);

typedef struct QsfSpread {
    uint64_t held;   /* memory of what is pinned */
    uint64_t weight; /* bytes of weights among it */
} QsfSpread;

/* Fills pinned (n_units) so that at most `room` bytes of memory and o->pin_cap bytes of weights are pinned,
 * and what streams through slots of slot_bytes lies evenly over the pass. */
QsfSpread qsf_plan_spread(const QsfPricing *s, uint64_t slot_bytes, uint64_t room, uint32_t *pinned);

/* What was lowered, into p->note. */
void qsf_plan_note(const QsfPricing *s, const QsfConfig *c, QsfPlan *p);
/* The text of a refusal for a budget in which the least configuration costs rows. */
void qsf_plan_refuse(const QsfPricing *s, const QsfConfig *least, uint64_t smallest, QsfErr *err);

#endif
