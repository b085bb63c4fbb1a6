/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plan options from settings, the rows that no allocation stands for, and the advice about streaming. */
#include "src/engine/planning.h"

#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/timeline.h"

#define MIB (1ull << 20)
/* What grows after the measurement of the resident set without being charged to anything: code and library
 * pages touched for the first time, small allocations of libc, jansson and PCRE2, one frame of a screen. */
#define BASE_SLACK    (2 * MIB)
#define META_SLACK    (64u << 10)
#define MESSAGE_BYTES (1 * MIB) /* copies, rendered text and ids of an ordinary prompt */
#define THREADS_MAX   256

static int thread_count(const QSFSettings *s) {
    int n = s->threads > 0 ? s->threads : qsf_cpu_count();
    return n < THREADS_MAX ? n : THREADS_MAX;
}

static uint64_t resolve_budget(const QSFSettings *s, uint64_t available) {
    if (s->ram_percent == 0) return s->ram_budget;
    uint64_t b = available / 100 * s->ram_percent;
    return b > 0 ? b : 1; /* 0 would mean auto */
}

/* Settings that were never parsed may hold no word at all. */
static QsfIoKind io_of(const QSFSettings *s) {
    QsfIoKind k = qsf_io_kind_parse(s->io);
    return k != QSF_IO_N ? k : QSF_IO_AUTO;
}
static QsfIoDirect direct_of(const QSFSettings *s) {
    QsfIoDirect d = qsf_io_direct_parse(s->direct);
    return d != QSF_DIRECT_N ? d : QSF_DIRECT_AUTO;
}

static void take_settings(QsfPlanOptions *p, const QSFSettings *s, uint64_t available) {
    p->available = available;
    p->budget = resolve_budget(s, available);
    p->pin_cap = s->pin;
    p->slots = s->slots;
    p->io = io_of(s);
    p->direct = direct_of(s);
    p->threads = thread_count(s);
}

static int kv_of(const QSFSettings *s, bool exact) {
    if (strcmp(s->kv, "f32") == 0) return QK_KV_F32;
    if (strcmp(s->kv, "f16") == 0) return QK_KV_F16;
    return exact ? QK_KV_F32 : -1;
}

static uint32_t longest_ctx(const QsfModel *m, const QSFSettings *s) {
    uint32_t train = m->hp.n_ctx_train;
    if (s->ctx != 0) return s->ctx;
    return train != 0 && train < QSF_CTX_DEFAULT ? train : QSF_CTX_DEFAULT;
}

uint32_t qsf_runtime_longest_ctx(const QsfRuntime *r) { return longest_ctx(&r->model, &r->settings); }

void qsf_planning_first(QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t base) {
    r->plan_options = (QsfPlanOptions){
        .ctx = o->settings.ctx,
        .kv = kv_of(&o->settings, o->exact),
        .batch = o->settings.batch,
        .exact = o->exact,
        .base_bytes = base + BASE_SLACK + o->stack_bytes,
        .tokenizer_bytes = qsf_tokenizer_estimate(r->model.src),
        .meta_bytes = r->ledger.used[QSF_MEM_META] + META_SLACK,
        .transcript_bytes =
            o->transcript_bytes + qsf_timeline_bytes(qsf_runtime_longest_ctx(r)) + MESSAGE_BYTES,
    };
    r->stack_bytes = o->stack_bytes;
    take_settings(&r->plan_options, &o->settings, qsf_available_bytes());
}

/* What was free for the first plan, was free without what this runtime holds. */
static uint64_t available_again(const QsfRuntime *r, const QsfPlanOptions *o) {
    uint64_t base = o->base_bytes - BASE_SLACK - r->stack_bytes, rss = qsf_rss_bytes();
    return qsf_available_bytes() + (rss > base ? rss - base : 0);
}

void qsf_planning_next(const QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *o) {
    uint32_t past = qsf_forward_n_past(r->fwd), ctx = qsf_forward_ctx(r->fwd);
    *o = r->plan_options;
    o->kv = (int)r->plan.kv;
    o->ctx_floor = past < ctx ? past + 1 : ctx;
    take_settings(o, s, available_again(r, &r->plan_options));
}

int qsf_planning_check(const QsfRuntime *r, const QsfPlanOptions *base, const QSFSettings *s, uint32_t floor, bool reload,
                       QsfErr *err) {
    QsfPlan plan;
    QsfPlanOptions o = *base;
    take_settings(&o, s, available_again(r, base));
    o.ctx_floor = reload ? 0 : floor;
    if (reload) {
        o.transcript_bytes -= qsf_timeline_bytes(qsf_runtime_longest_ctx(r));
        o.transcript_bytes += qsf_timeline_bytes(longest_ctx(&r->model, s));
        o.ctx = s->ctx;
        o.kv = kv_of(s, o.exact);
        o.batch = s->batch;
    }
    int rc = qsf_plan_make(&plan, &r->model, &o, err);
    if (rc == QSF_OK) qsf_plan_free(&plan);
    return rc;
}

void qsf_planning_move_stack(const QsfRuntime *r, QsfPlan *p) {
    p->rows[QSF_MEM_CODE] -= r->stack_bytes;
    p->rows[QSF_MEM_STACKS] += r->stack_bytes;
}

static const QsfMemCat charged[] = { QSF_MEM_CODE, QSF_MEM_KERNEL };
#define N_CHARGED (sizeof charged / sizeof *charged)

int qsf_planning_charge(QsfRuntime *r, QsfErr *err) {
    int rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_STACKS, r->stack_bytes, "engine stack", err);
    for (size_t i = 0; rc == QSF_OK && i < N_CHARGED; i++)
        rc = qsf_ledger_reserve(&r->ledger, charged[i], r->plan.rows[charged[i]],
                                qsf_mem_cat_name(charged[i]), err);
    return rc;
}

void qsf_planning_uncharge(QsfRuntime *r) {
    qsf_ledger_release(&r->ledger, QSF_MEM_STACKS, r->stack_bytes);
    for (size_t i = 0; i < N_CHARGED; i++)
        qsf_ledger_release(&r->ledger, charged[i], r->plan.rows[charged[i]]);
}

/* Finds the budget that pins everything by asking the planner; 0 when there is none in nine tenths of what is
 * free. */
static uint64_t roomy_budget(const QsfRuntime *r) {
    QsfPlanOptions more = r->plan_options;
    uint64_t need = r->plan.total, missing = r->plan.streamed_bytes;
    for (int round = 0; round < 8 && missing != 0; round++) {
        QsfPlan plan;
        QsfErr err = { 0 };
        need = (need + missing + MIB) / MIB * MIB;
        if (need > more.available / 10 * 9) return 0;
        more.budget = need;
        if (qsf_plan_make(&plan, &r->model, &more, &err) != QSF_OK) return 0;
        missing = plan.streamed_bytes;
        qsf_plan_free(&plan);
    }
    return missing == 0 ? need : 0;
}

static void note_ctx(QsfRuntime *r) {
    uint32_t train = r->model.hp.n_ctx_train;
    r->ctx_notice[0] = '\0';
    if (train == 0 || r->plan.ctx <= train) return;
    snprintf(r->ctx_notice, sizeof r->ctx_notice,
             "the model was trained for a context of %u tokens: answers get worse beyond that", train);
}

void qsf_planning_note(QsfRuntime *r) {
    note_ctx(r);
    r->stream_notice[0] = '\0';
    if (r->plan.streamed_bytes == 0 || r->plan_options.pin_cap != UINT64_MAX) return;
    uint64_t need = roomy_budget(r);
    if (need == 0) return;
    snprintf(r->stream_notice, sizeof r->stream_notice,
             "%llu MB of weights stream from disk although %llu MB of RAM are free: --ram-budget %llu keeps "
             "them in RAM",
             (unsigned long long)(r->plan.streamed_bytes / MIB),
             (unsigned long long)(r->plan_options.available / MIB), (unsigned long long)(need / MIB));
}

void qsf_planning_settle_peak(const QsfRuntime *r) {
    if (qsf_peak_rss_bytes() > r->budget && qsf_rss_bytes() <= r->budget) qsf_peak_rss_reset();
}
