/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plan options from settings, and the messages of a plan. */
#include "src/plan/options.h"

#include <stdio.h>
#include <string.h>

#include "src/base/cpus.h"
#include "src/base/platform.h"
#include "src/base/plural.h"
#include "src/plan/evict.h"
#include "src/plan/layout.h"
#include "src/plan/plan_impl.h"

#define MIB (1ull << 20)
/* Memory that grows after the resident set is measured and is not charged to a category: code and library
 * pages touched for the first time, small allocations of libc, jansson and PCRE2, one frame of a screen. */
#define BASE_SLACK  (2 * MIB)
#define META_SLACK  (64u << 10)
#define THREADS_MAX 256
/* Tokens of an automatic context that a conversation keeps for its next message and the answer. */
#define ANSWER_ROOM 256u

static int thread_count(const QSFSettings *s) {
    int n = s->threads > 0 ? s->threads : qsf_cpu_count();
    return n < THREADS_MAX ? n : THREADS_MAX;
}

static uint64_t asked_budget(const QSFSettings *s, uint64_t available) {
    if (s->ram_percent == 0) return s->ram_budget;
    uint64_t b = available / 100 * s->ram_percent;
    return b > 0 ? b : 1; /* 0 would mean auto */
}

/* Pins beyond the memory of the machine would be swapped out and read twice. */
static uint64_t limited(uint64_t asked, uint64_t limit) {
    return limit >= MIB && asked > limit ? limit / MIB * MIB : asked;
}

uint64_t qsf_settings_budget(const QSFSettings *s, QsfPlanMemory memory) {
    return limited(asked_budget(s, memory.available), memory.limit);
}

/* Settings that were never parsed may contain an empty keyword. */
static QsfIoKind io_of(const QSFSettings *s) {
    QsfIoKind k = qsf_io_kind_parse(s->io);
    return k != QSF_IO_N ? k : QSF_IO_AUTO;
}
static QsfGuessing ahead_of(const QSFSettings *s) {
    const QsfGuessing a = qsf_guessing_parse(s->expert_ahead);
    return a == QSF_GUESSING_N ? QSF_GUESSING_AUTO : a;
}

static QsfDrafting drafting_of(const QSFSettings *s) {
    const QsfDrafting d = qsf_drafting_parse(s->speculate);
    return d != QSF_DRAFTING_N ? d : QSF_DRAFTING_AUTO;
}

static QsfIoDirect direct_of(const QSFSettings *s) {
    QsfIoDirect d = qsf_io_direct_parse(s->direct);
    return d != QSF_DIRECT_N ? d : QSF_DIRECT_AUTO;
}

static void take_settings(QsfPlanOptions *p, const QSFSettings *s, QsfPlanMemory memory) {
    p->available = memory.available;
    p->ctx = s->ctx;
    p->asked = asked_budget(s, memory.available);
    p->budget = limited(p->asked, memory.limit);
    p->pin_cap = s->pin;
    p->slots = s->slots;
    p->stream.kind = io_of(s);
    p->stream.direct = direct_of(s);
    p->stream.ahead = ahead_of(s);
    p->drafting = drafting_of(s);
    p->threads = thread_count(s);
    p->threads_auto = s->threads <= 0;
    p->embedding = s->embedding < QSF_EMBEDDING_N ? (QsfEmbedding)s->embedding : QSF_EMBEDDING_AUTO;
    p->commands = s->commands;
    p->text_bytes = s->text_bytes;
    const QsfEvictKind kind = qsf_evict_parse(s->eviction);
    if (kind != QSF_EVICT_NONE && kind != QSF_EVICT_N) p->kv_lists = true; /* they stay for this model */
    p->kv_mass = kind != QSF_EVICT_N && qsf_evict_observes(kind);
}

/* one: the setting of K or V alone. */
static int kv_of(const QSFSettings *s, const char *one, bool exact) {
    qk_kv type = qsf_kv_type_parse(one);
    if (type == QK_KV_N) type = qsf_kv_type_parse(s->kv);
    return type != QK_KV_N ? (int)type : exact ? QK_KV_F32 : -1;
}

void qsf_plan_fix_types(QSFSettings *s) {
    if (qsf_kv_type_parse(s->kv) == QK_KV_N) snprintf(s->kv, sizeof s->kv, "%s", qk_kv_name(QK_KV_F16));
}

static void take_types(QsfPlanOptions *o, const QSFSettings *s) {
    o->k = kv_of(s, s->k, o->exact);
    o->v = kv_of(s, s->v, o->exact);
}

uint64_t qsf_plan_timeline_bytes(uint32_t ctx) {
    return qsf_pages((uint64_t)ctx * sizeof(int32_t)) + qsf_pages(QSF_TIMELINE_PIECE);
}

void qsf_plan_options_first(QsfPlanOptions *o, const QSFSettings *s, const QsfPlanFacts *f,
                            QsfPlanMemory memory) {
    *o = (QsfPlanOptions){
        .batch = s->batch,
        .exact = f->exact,
        .base_bytes = f->resident + BASE_SLACK + f->stack_bytes,
        .tokenizer_bytes = f->tokenizer_bytes,
        .meta_bytes = f->meta_bytes + META_SLACK,
        .transcript_bytes = f->transcript_bytes + QSF_PLAN_MESSAGE,
        .kv_at_once = !qsf_os_maps_lazily(),
    };
    take_types(o, s);
    take_settings(o, s, memory);
}

/* An automatic context has to have what the conversation, which may not be evaluated yet, uses of it now. */
static void take_conversation(QsfPlanOptions *o, const QSFSettings *s, uint32_t past, uint32_t ctx) {
    const bool more = s->ctx == 0 && s->ctx_tokens > past && s->ctx_tokens <= ctx;
    const uint32_t used = more ? s->ctx_tokens : past;
    o->ctx_floor = used < ctx ? used + 1 : ctx;
    const uint32_t room = used < UINT32_MAX / 2 ? (used + ANSWER_ROOM + 31) / 32 * 32
                                                : ctx; /* a round number */
    o->ctx_room = used == 0 || used >= ctx ? 0 : room < ctx ? room : ctx;
}

void qsf_plan_options_next(QsfPlanOptions *o, const QsfPlanOptions *from, const QSFSettings *s, QsfKvTypes kv,
                           uint32_t past, uint32_t ctx, QsfPlanMemory memory) {
    *o = *from;
    o->opening_bytes = 0;
    take_types(o, s);
    o->kv_now = kv;
    o->keep_k = past > 0 && o->k < 0 && from->k < 0;
    o->keep_v = past > 0 && o->v < 0 && from->v < 0;
    take_conversation(o, s, past, ctx);
    take_settings(o, s, memory);
}

int qsf_plan_check(const QsfModel *m, const QsfPlanOptions *o, QsfErr *err) {
    QsfPlanOptions alone = *o;
    QsfPlan plan;
    qsf_plan_options_alone(&alone);
    int rc = qsf_plan_make(&plan, m, &alone, err);
    if (rc == QSF_OK) qsf_plan_free(&plan);
    return rc;
}

/* ---- messages ---- */

/* Memory that is missing to keep everything in RAM; 0: nothing streams. Of experts a token reads some. */
static uint64_t missing_bytes(const QsfPlan *p) {
    if (p->streamed_bytes == 0 || p->n_experts == 0) return p->streamed_bytes;
    const uint64_t experts = p->expert_bytes - qsf_plan_expert_resident(p),
                   dense = p->weight_bytes - p->expert_bytes;
    return experts + (p->expert_slots == 0 && p->pinned_bytes < dense ? dense - p->pinned_bytes : 0);
}

/* Does a plan with this budget keep everything in RAM in the next run, with at least this context? */
static bool pins_all(const QsfModel *m, const QsfPlanOptions *o, uint64_t budget, uint32_t ctx) {
    QsfPlanOptions other = *o;
    QsfPlan plan;
    QsfErr err = { 0 };
    other.budget = budget;
    other.base_bytes += QSF_BASE_JITTER + o->base_bytes / QSF_BASE_PER_JITTER;
    if (qsf_plan_make(&plan, m, &other, &err) != QSF_OK) return false;
    const bool all = missing_bytes(&plan) == 0 && plan.ctx >= ctx;
    qsf_plan_free(&plan);
    return all;
}

/* Finds the budget that pins everything with the planner, the smallest one in MB; 0 when it is more than nine
 * tenths of what is available. */
static uint64_t full_pin_budget(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p) {
    QsfPlanOptions more = *o;
    uint64_t need = p->total, missing = missing_bytes(p);
    for (int round = 0; round < 8 && missing != 0; round++) {
        QsfPlan plan;
        QsfErr err = { 0 };
        need = (need + missing + MIB) / MIB * MIB;
        if (need > more.available / 10 * 9) return 0;
        more.budget = need;
        if (qsf_plan_make(&plan, m, &more, &err) != QSF_OK) return 0;
        missing = missing_bytes(&plan);
        qsf_plan_free(&plan);
    }
    if (missing > 0) return 0;
    /* What the first plan took for its context and its slots may be less with everything in RAM. */
    uint64_t lo = p->budget / MIB, hi = need / MIB;
    while (hi > lo + 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        *(pins_all(m, o, mid * MIB, p->ctx) ? &hi : &lo) = mid;
    }
    return need < hi * MIB ? need : hi * MIB;
}

uint64_t qsf_plan_full_budget(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p) {
    return p->streamed_bytes == 0 || o->pin_cap != UINT64_MAX ? 0 : full_pin_budget(m, o, p);
}

void qsf_plan_stream_notice(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, char *dst,
                            size_t cap) {
    dst[0] = '\0';
    uint64_t need = qsf_plan_full_budget(m, o, p);
    if (need == 0) return;
    const bool slots = p->expert_slots > 0; /* then a token reads a part of what is not in RAM */
    snprintf(dst, cap, "%llu MB of %s although %llu MB of RAM are free: %s %llu keeps them in RAM",
             (unsigned long long)(((slots ? missing_bytes(p) : p->streamed_bytes) + MIB - 1) / MIB),
             slots ? "experts are read from disk when they are chosen" : "weights stream from disk",
             (unsigned long long)(o->available / MIB), qsf_option_name(QSF_OPTION_BUDGET, o->commands),
             (unsigned long long)(need / MIB));
}

uint64_t qsf_plan_used_bytes(const QsfPlan *p) {
    const uint64_t rest = p->total - p->rows[QSF_MEM_KERNEL];
    return rest + MIB + rest / 1000 * 3;
}

static int more_than_there_is(const QsfPlanOptions *o, const QsfPlan *p, char *dst, size_t cap) {
    if (o->asked <= p->budget) return 0;
    return snprintf(dst, cap,
                    "the RAM budget of %llu MB is lowered to %llu MB, which is all that this machine, or its "
                    "cgroup, has",
                    (unsigned long long)(o->asked / MIB), (unsigned long long)(p->budget / MIB));
}

static void more_than_available(const QsfPlanOptions *o, const QsfPlan *p, char *dst, size_t cap) {
    const uint64_t uses = qsf_plan_used_bytes(p);
    const int n = more_than_there_is(o, p, dst, cap);
    /* A cgroup of the budget's size has a little in use. */
    const bool more = o->available > 0 && p->budget / 8 * 7 > o->available + o->base_bytes;
    if (n > 0 && uses <= o->available) return;
    if (n == 0 && !more) return;
    if (n == 0)
        snprintf(dst, cap, "the RAM budget of %llu MB is more than the %llu MB that are available",
                 (unsigned long long)(p->budget / MIB), (unsigned long long)(o->available / MIB));
    const size_t len = strlen(dst);
    snprintf(dst + len, cap - len, "; the plan uses %llu MB%s", (unsigned long long)((uses + MIB - 1) / MIB),
             uses > o->available ? ", so the machine may swap, or stop the program" : "");
}

void qsf_plan_budget_notice(const QsfPlanOptions *o, const QsfPlan *p, char *dst, size_t cap) {
    char weights[96], kv[QSF_PLAN_KV_TEXT];
    dst[0] = '\0';
    if (o->budget != 0) {
        more_than_available(o, p, dst, cap);
        return;
    }
    if (p->streamed_bytes == 0)
        snprintf(weights, sizeof weights, "all weights stay in RAM");
    else
        snprintf(weights, sizeof weights, "%llu of %llu MB of weights stream from disk",
                 (unsigned long long)(p->streamed_bytes / MIB), (unsigned long long)(p->weight_bytes / MIB));
    qsf_plan_kv_text(p, kv, sizeof kv);
    snprintf(dst, cap, "RAM budget %llu MB (auto): %s, KV cache %s; %s 200 changes it",
             (unsigned long long)(p->budget / MIB), weights, kv,
             qsf_option_name(QSF_OPTION_BUDGET, o->commands));
}

void qsf_plan_ctx_notice(const QsfModel *m, const QsfPlan *p, char *dst, size_t cap) {
    uint32_t train = m->hp.n_ctx_train;
    dst[0] = '\0';
    if (train == 0 || p->ctx <= train) return;
    qsf_plural_snprintf(dst, cap,
                        "the model was trained for a context of %u tokens; answers get worse beyond that",
                        train);
}

static unsigned long long mb(uint64_t bytes) { return (unsigned long long)((bytes + MIB / 2) / MIB); }

void qsf_plan_summary(const QsfPlan *p, const char *io, char *dst, size_t cap) {
    char weights[128], kv[QSF_KV_TYPES_TEXT];
    if (p->streamed_bytes == 0)
        snprintf(weights, sizeof weights, "all %llu MB of weights pinned", mb(p->weight_bytes));
    else
        snprintf(weights, sizeof weights,
                 "%llu MB of %llu MB of weights pinned, %llu MB per token from disk (%s)",
                 mb(p->pinned_bytes), mb(p->weight_bytes), mb(p->streamed_bytes), io);
    qsf_kv_types_print(p->kv, kv, sizeof kv);
    snprintf(dst, cap, "%llu MB: %s, context of %u, KV cache %s, %s%d thread%s%s%s", mb(p->budget), weights,
             p->ctx, kv, p->threads_auto && p->threads > 1 ? "up to " : "", p->threads,
             p->threads == 1 ? "" : "s", p->note[0] != '\0' ? "; " : "", p->note);
}
