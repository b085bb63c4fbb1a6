/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/draft_plan.h"

#include <string.h>

#define LOADER_STACK (256u * 1024)

static const QsfMemCat planned[] = { QSF_MEM_PINNED, QSF_MEM_SLOTS, QSF_MEM_KV,  QSF_MEM_ACTIVATIONS,
                                     QSF_MEM_LOGITS, QSF_MEM_EMBED, QSF_MEM_META };
#define N_PLANNED (sizeof planned / sizeof *planned)

QsfPlanOptions qsf_draft_plan_options(const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, uint32_t batch) {
    QsfPlanOptions p = *o;
    p.budget = p.asked = QSF_DRAFT_PLAN_WITHOUT_LIMIT;
    memset(p.beside, 0, sizeof p.beside);
    p.hold_head = p.holds = false;
    p.ctx = ctx;
    p.k = (int)kv.k;
    p.v = (int)kv.v;
    p.keep_k = p.keep_v = p.kv_lists = p.kv_mass = false;
    p.ctx_floor = p.ctx_room = 0;
    p.pin_cap = UINT64_MAX;
    p.slots = 0;
    p.embedding = QSF_EMBEDDING_LRU;
    p.batch = ctx < batch ? ctx : batch;
    p.quality = (QsfQuality){ 0 };
    p.adapters = NULL; /* of the matrices of the model */
    p.drafting = QSF_DRAFTING_OFF;
    p.text_bytes = p.base_bytes = p.tokenizer_bytes = p.meta_bytes = p.transcript_bytes = 0;
    p.expert_depth = NULL;
    return p;
}

uint64_t qsf_draft_plan_bytes(const QsfPlan *p) {
    uint64_t sum = 0;
    for (size_t k = 0; k < N_PLANNED; k++) sum += p->rows[planned[k]];
    return sum;
}

void qsf_draft_plan_add(const QsfPlan *p, const QsfPlanOptions *o, uint64_t *rows) {
    for (size_t k = 0; k < N_PLANNED; k++) rows[planned[k]] += p->rows[planned[k]];
    rows[QSF_MEM_STACKS] += LOADER_STACK + 2 * qsf_io_stack_bytes(o->stream.kind);
}
