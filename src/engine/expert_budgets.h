/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What other RAM budgets would mean for the experts of a sparse model. Pure; any thread. */
#ifndef QSF_ENGINE_EXPERT_BUDGETS_H
#define QSF_ENGINE_EXPERT_BUDGETS_H

#include "qsf_engine.h"
#include "src/plan/units.h"

/* The state of a model. */
typedef struct QsfExpertFacts {
    uint64_t budget;       /* in force */
    uint64_t from;         /* a budget with which not all are in memory, */
    uint32_t from_slots;   /* and its slots: from there others are estimated */
    uint64_t full;         /* the least one with which all are; 0: it is estimated, too */
    uint64_t slot_bytes;   /* of an expert */
    uint32_t n, slots;     /* experts, and slots for them now; n: all are in memory */
    uint32_t used;         /* most experts of a layer that a token uses */
    const uint32_t *depth; /* (QSF_EXPERT_DEPTHS) expert_depth of QsfForwardStats */
    /* per token of the answer: total, with reads, and waiting for reads; 0 = unknown */
    double token_ns, read_ns, wait_ns;
} QsfExpertFacts;

/* Fills out (max) as qsf_worker_expert_budgets. */
uint32_t qsf_expert_budgets(const QsfExpertFacts *f, QSFExpertBudget *out, uint32_t max);

#endif
