/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens what a loaded model is made of, in the order in which a refusal costs least. */
#include "src/engine/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "src/base/clock.h"
#include "src/engine/number.h"
#include "src/engine/timeline.h"

#define MIB (1ull << 20)
/* What grows after the measurement of the resident set without being charged to anything: code and library
 * pages touched for the first time, small allocations of libc, jansson and PCRE2, one frame of a screen. */
#define BASE_SLACK    (2 * MIB)
#define META_SLACK    (64u << 10)
#define MESSAGE_BYTES (1 * MIB) /* copies, rendered text and ids of an ordinary prompt */
#define THREADS_MAX   256

int qsf_runtime_level(const QSFSettings *s, qk_level *out, QsfErr *err) {
    const char *word = s->cpu_mask, *from = "cpu-mask";
    if (*word == '\0') {
        word = getenv("QSF_CPU_MASK");
        from = "QSF_CPU_MASK";
    }
    *out = qk_cpu_best();
    if (word == NULL || *word == '\0') return QSF_OK;
    qk_level level = qk_level_parse(word);
    if (level == QK_LEVEL_UNKNOWN)
        return qsf_err_set(err, QSF_E_USAGE, "%s: unknown level '%.40s'", from, word);
    if (!qk_cpu_has(level))
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: this CPU has no %s, its best level is %s", from,
                           qk_level_name(level), qk_level_name(*out));
    *out = level;
    return QSF_OK;
}

static int check_cancel(const QsfRuntimeOptions *o, QsfErr *err) {
    if (o->cancel == NULL || atomic_load(o->cancel) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_INTERRUPTED, "loading was cancelled");
}

static uint64_t resolve_budget(const QSFSettings *s, uint64_t available) {
    if (s->ram_percent == 0) return s->ram_budget;
    uint64_t b = available / 100 * s->ram_percent;
    return b > 0 ? b : 1; /* 0 would mean auto */
}

static int kv_of(const QsfRuntimeOptions *o) {
    if (strcmp(o->settings.kv, "f32") == 0) return QK_KV_F32;
    if (strcmp(o->settings.kv, "f16") == 0) return QK_KV_F16;
    return o->exact ? QK_KV_F32 : -1;
}

static QsfPlanOptions plan_options(QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t base) {
    const QSFSettings *s = &o->settings;
    uint32_t train = r->model.hp.n_ctx_train;
    uint32_t most = train < QSF_CTX_DEFAULT ? train : QSF_CTX_DEFAULT;
    uint32_t ctx = s->ctx != 0 ? s->ctx : most;
    QsfPlanOptions p = {
        .available = qsf_available_bytes(),
        .ctx = s->ctx,
        .kv = kv_of(o),
        .pin_cap = s->pin,
        .batch = s->batch,
        .threads = r->threads,
        .exact = o->exact,
        .base_bytes = base + BASE_SLACK + o->stack_bytes,
        .tokenizer_bytes = qsf_tokenizer_estimate(r->model.src),
        .meta_bytes = r->ledger.used[QSF_MEM_META] + META_SLACK,
        .transcript_bytes = o->transcript_bytes + qsf_timeline_bytes(ctx) + MESSAGE_BYTES,
    };
    p.budget = resolve_budget(s, p.available);
    return p;
}

/* Weights stream although memory is free: finds the budget that would keep them, by asking the planner. */
static void note_streaming(QsfRuntime *r, const QsfPlanOptions *o) {
    if (r->plan.streamed_bytes == 0 || o->pin_cap != UINT64_MAX) return;
    QsfPlanOptions more = *o;
    uint64_t need = r->plan.total;
    uint64_t missing = r->plan.streamed_bytes;
    for (int round = 0; round < 8 && missing != 0; round++) {
        QsfPlan plan;
        QsfErr err = { 0 };
        need = (need + missing + MIB) / MIB * MIB;
        if (need > o->available / 10 * 9) return;
        more.budget = need;
        if (qsf_plan_make(&plan, &r->model, &more, &err) != QSF_OK) return;
        missing = plan.streamed_bytes;
        qsf_plan_free(&plan);
    }
    if (missing != 0) return;
    snprintf(r->stream_notice, sizeof r->stream_notice,
             "%llu MB of weights stream from disk although %llu MB of RAM are free: --ram-budget %llu keeps "
             "them in RAM",
             (unsigned long long)(r->plan.streamed_bytes / MIB), (unsigned long long)(o->available / MIB),
             (unsigned long long)(need / MIB));
}

/* The categories that are planned but belong to no allocation of ours. */
static int charge_base(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    uint64_t *rows = r->plan.rows;
    rows[QSF_MEM_CODE] -= o->stack_bytes; /* planned as part of what is there before loading */
    rows[QSF_MEM_STACKS] += o->stack_bytes;
    qsf_ledger_set_limit(&r->ledger, r->plan.budget);
    int rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_CODE, rows[QSF_MEM_CODE], "code and libraries", err);
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_STACKS, o->stack_bytes, "engine stack", err);
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_KERNEL, rows[QSF_MEM_KERNEL], "kernel", err);
    return rc;
}

static int open_source(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err) {
    int rc = qsf_source_open(&r->model.src, path, &r->ledger, err);
    for (size_t i = 0; rc == QSF_OK && o->overrides != NULL && o->overrides[i] != NULL; i++)
        rc = qsf_source_override(r->model.src, o->overrides[i], err);
    if (rc == QSF_OK) rc = qsf_tokenizer_open(&r->tok, r->model.src, &r->ledger, err);
    return rc;
}

static int open_plan(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base,
                     QsfErr *err) {
    qk_level level;
    int rc = qsf_runtime_level(&o->settings, &level, err);
    if (rc == QSF_OK) rc = qsf_model_open(&r->model, path, o->overrides, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    if (r->model.vocab_only)
        return qsf_err_set(err, QSF_E_MODEL, "%s: holds a vocabulary but no weights: it can only tokenize",
                           path);
    qk_table_init(&r->table, level);
    QsfPlanOptions po = plan_options(r, o, base);
    rc = qsf_plan_make(&r->plan, &r->model, &po, err);
    if (rc != QSF_OK) return rc;
    r->budget = r->plan.budget;
    note_streaming(r, &po);
    return charge_base(r, o, err);
}

static int open_text(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    const char *name = o->settings.chat_template;
    int rc = qsf_tokenizer_open(&r->tok, r->model.src, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    uint32_t n = qsf_tokenizer_n_vocab(r->tok);
    for (uint32_t i = 0; i < n && r->n_eog < QSF_EOG_MAX; i++)
        if (qsf_tokenizer_is_eog(r->tok, (int32_t)i)) r->eog[r->n_eog++] = (int32_t)i;
    return qsf_chat_template_open(&r->tmpl, r->model.src, r->tok, *name != '\0' ? name : NULL, r->tmpl_notice,
                                  sizeof r->tmpl_notice, err);
}

static int open_weights(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    int rc = qsf_pool_create(&r->pool, r->threads, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    QsfForwardOptions fo = {
        .model = &r->model,
        .plan = &r->plan,
        .table = &r->table,
        .pool = r->pool,
        .ledger = &r->ledger,
        .cancel = o->cancel,
    };
    rc = qsf_forward_create(&r->fwd, &fo, err);
    if (rc != QSF_OK) return rc;
    /* Ids that the tokenizer does not know have logits in some models (padding), but no text. */
    uint32_t n = qsf_tokenizer_n_vocab(r->tok);
    return qsf_sampler_create(&r->sampler, n < r->model.hp.n_vocab ? n : r->model.hp.n_vocab, &r->table,
                              &r->ledger, err);
}

static int open_all(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfErr *err) {
    if (o->text_only) return open_source(r, path, o, err);
    int rc = open_plan(r, path, o, base, err);
    if (rc != QSF_OK || o->plan_only) return rc;
    rc = check_cancel(o, err);
    if (rc == QSF_OK) rc = open_text(r, o, err);
    if (rc == QSF_OK) rc = check_cancel(o, err);
    if (rc == QSF_OK) rc = open_weights(r, o, err);
    return rc;
}

int qsf_runtime_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err) {
    uint64_t base = qsf_rss_bytes();
    int n = o->settings.threads > 0 ? o->settings.threads : qsf_cpu_count();
    memset(r, 0, sizeof *r);
    /* No limit until the plan stands: a refusal is to be the plan's, with the whole sum. */
    qsf_ledger_init(&r->ledger, 0);
    r->threads = n < THREADS_MAX ? n : THREADS_MAX;
    r->cancel = o->cancel;
    int rc = open_all(r, path, o, base, err);
    if (rc != QSF_OK) qsf_runtime_close(r);
    return rc;
}

void qsf_runtime_close(QsfRuntime *r) {
    qsf_sampler_destroy(r->sampler);
    qsf_forward_destroy(r->fwd);
    qsf_pool_destroy(r->pool);
    qsf_chat_template_close(r->tmpl);
    qsf_tokenizer_close(r->tok);
    qsf_plan_free(&r->plan);
    qsf_model_close(&r->model);
    qsf_ledger_destroy(&r->ledger);
    memset(r, 0, sizeof *r);
#ifdef __GLIBC__
    malloc_trim(0); /* the next model's budget is measured from what is resident then */
#endif
}
