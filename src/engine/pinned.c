/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/pinned.h"

#include <stdio.h>
#include <string.h>

#include "src/plan/sketch.h"

/* Shares of the weights that the layers of a draft have, the first for which there is a plan. */
static const float shares[] = { 0.5f, 0.4f, 0.3f, 0.2f, 0.1f, 0.01f };
#define N_SHARES (sizeof shares / sizeof *shares)

/* All blocks but the least important ones, so that about this share of the weights is left. */
static void choose(const QsfRuntime *r, const QsfBlockSet *optional, float share, QsfBlockSet *hold) {
    QsfQuality q = { 0 };
    qsf_quality_choose(&q, &r->model, optional, r->importance, share);
    memset(hold, 0, sizeof *hold);
    for (uint32_t i = 0; i < r->model.prog.n_blocks; i++)
        if (!qsf_blocks_have(&q.skip, i)) qsf_blocks_add(hold, i);
}

static uint64_t weights_of(const QsfModel *m, const QsfBlockSet *hold) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        if (qsf_blocks_have(hold, u.layer)) sum += u.bytes;
    }
    return sum;
}

/* Experts are not held: they are in RAM if all are. */
static bool is_whole(const QsfModel *m, const QsfPlan *p) {
    for (uint32_t i = 0; i < p->n_units; i++)
        if (m->prog.unit[i].on_demand && qsf_blocks_have(&p->hold, m->prog.unit[i].block) &&
            p->pinned_items[i] == 0)
            return false;
    return true;
}

static bool plan_share(const QsfRuntime *r, const QsfBlockSet *optional, float share, QsfPlanOptions *o,
                       QsfPlan *p) {
    QsfSketchShape sketch;
    QsfErr none = { 0 };
    QsfPlan with;
    choose(r, optional, share, &o->hold);
    if (o->pin_cap != UINT64_MAX && weights_of(&r->model, &o->hold) > o->pin_cap) return false;
    o->holds = true;
    o->hold_head = !qsf_sketch_shape(&r->model, o->threads, &sketch);
    if (qsf_planning_make(&with, &r->model, o, &r->facts, &none) != QSF_OK) return false;
    if (with.ctx < p->ctx || !qsf_kv_types_equal(with.kv, p->kv) || with.draft_cols < 2 ||
        !qsf_kv_types_equal(with.kv_most, p->kv_most) || !is_whole(&r->model, &with)) {
        qsf_plan_free(&with);
        return false;
    }
    qsf_plan_free(p);
    *p = with;
    return true;
}

static void refuse(QsfRuntime *r, QsfPlanOptions *o, const char *why) {
    o->holds = o->hold_head = false;
    snprintf(r->draft_notice, sizeof r->draft_notice, "speculate: %s, so there are no drafts", why);
}

void qsf_pinned_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p) {
    QsfBlockSet optional;
    QsfErr none = { 0 };
    o->holds = false;
    if (o->drafting != QSF_DRAFTING_PINNED || qsf_quality_reduces(&o->quality)) return;
    if (qsf_optional_blocks(&r->model, &optional, &none) != QSF_OK || qsf_blocks_count(&optional) == 0) {
        refuse(r, o, "the model has no layers that can be skipped");
        return;
    }
    for (size_t i = 0; i < N_SHARES; i++)
        if (plan_share(r, &optional, shares[i], o, p)) return;
    refuse(r, o, "the budget has no room for whole layers");
}
