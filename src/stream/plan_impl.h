/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the plan share. */
#ifndef QSF_STREAM_PLAN_IMPL_H
#define QSF_STREAM_PLAN_IMPL_H

#include "src/stream/layout.h"
#include "src/stream/plan.h"

#define QSF_MIB (1ull << 20)

/* One way to run the model, to be priced. */
typedef struct QsfConfig {
    uint32_t ctx, batch, n_slots;
    uint64_t slot_bytes;
    uint64_t pinned_unit_bytes;  /* whole pages */
    bool embed_resident;         /* as a table of its own; a pinned tied head needs none */
} QsfConfig;

/* Everything known before the search. */
typedef struct QsfPricing {
    const QsfModel *m;
    const QsfPlanOptions *o;
    qk_table table;              /* reference: forms of activations and cache rows, which no level changes */
    QsfShape shape;
    qk_kv kv;
    uint64_t budget;
} QsfPricing;

void qsf_pricing_init(QsfPricing *s, const QsfModel *m, const QsfPlanOptions *o);
/* Fills rows (QSF_MEM_N) and returns their sum, UINT64_MAX when it does not fit 64 bits. */
uint64_t qsf_pricing_rows(const QsfPricing *s, const QsfConfig *c, uint64_t *rows);

/* The text of a refusal for a budget in which the least configuration costs rows. */
void qsf_plan_refuse(const QsfPricing *s, const QsfConfig *least, uint64_t smallest, QsfErr *err);

#endif
