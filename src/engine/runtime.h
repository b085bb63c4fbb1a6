/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything that one loaded model needs, opened in the right order under one ledger: model,
 * tokenizer, template, plan, kernels, pool, forward pass, sampler. qsf-run uses it directly; the
 * worker and qsf.h stand on it. One thread at a time. */
#ifndef QSF_ENGINE_RUNTIME_H
#define QSF_ENGINE_RUNTIME_H

#include "qsf_engine.h"
#include "src/forward/forward.h"
#include "src/sample/sampler.h"
#include "src/text/chat.h"

typedef struct QsfRuntime {
    QsfLedger ledger;
    QsfModel model;
    QsfTokenizer *tok;
    QsfChatTemplate *tmpl;    /* NULL: text is continued as it is */
    char tmpl_notice[256];
    QsfPlan plan;
    qk_table table;
    QsfPool *pool;            /* NULL until loaded */
    QsfForward *fwd;          /* NULL until loaded */
    QsfSampler *sampler;
    uint64_t budget;          /* resolved, bytes */
    int threads;
} QsfRuntime;

typedef struct QsfRuntimeOptions {
    QSFSettings settings;
    const char *const *overrides;   /* NULL-terminated, or NULL */
    bool exact;                     /* --exact: float activations, f32 KV */
    bool text_only;                 /* model metadata and tokenizer only: --tokenize, --detokenize */
    bool plan_only;                 /* stop after the plan: --plan, --inspect */
    const atomic_int *cancel;
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
} QsfRuntimeOptions;

/* Opens path. Order: source and metadata, plan (refusal before loading), tokenizer, template, pool,
 * weights. On failure everything is closed again. Every code of err.h is possible; a vocabulary-only file
 * is QSF_E_MODEL unless text_only. */
int qsf_runtime_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err);
void qsf_runtime_close(QsfRuntime *r);

#endif
