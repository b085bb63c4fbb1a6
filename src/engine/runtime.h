/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything that one loaded model needs, opened in the right order under one ledger: model,
 * tokenizer, template, plan, kernels, pool, forward pass, sampler. qsf-run uses it directly; the
 * worker and qsf.h stand on it. One thread at a time. */
#ifndef QSF_ENGINE_RUNTIME_H
#define QSF_ENGINE_RUNTIME_H

#include "qsf_engine.h"
#include "src/forward/forward.h"
#include "src/sample/sampler.h"
#include "src/stream/predict.h"
#include "src/text/think.h"

#define QSF_EOG_MAX 64

/* Its parts keep pointers into it: it must not be moved or copied. */
typedef struct QsfRuntime {
    QsfLedger ledger;
    QsfModel model;
    QsfTokenizer *tok;
    QsfChatTemplate *tmpl; /* NULL: text is continued as it is */
    char tmpl_notice[256];
    bool reasoning_said; /* that the template has no switch for reasoning */
    QsfPlan plan;
    qk_table table;
    QsfPool *pool;   /* NULL until loaded */
    QsfForward *fwd; /* NULL until loaded */
    QsfSampler *sampler;
    uint64_t budget; /* resolved, bytes */
    int threads;
    QSFSettings settings;        /* in force */
    uint64_t stack_bytes;        /* of the options */
    QsfPlanOptions plan_options; /* that the plan was made from; for the next one */
    QsfPrediction prediction;    /* zero until asked for (predict) */
    bool lost;                /* neither a new plan nor the old one could be had: only opening anew helps */
    char stream_notice[256];  /* weights stream although memory is free: the option that changes it; or "" */
    char ctx_notice[128];     /* the context is longer than what the model was trained for; or "" */
    int32_t eog[QSF_EOG_MAX]; /* (n_eog) ids that end an answer: what ignore_eos bans */
    size_t n_eog;
    QsfThink think; /* how the model reasons, by template and vocabulary */
    const atomic_int *cancel; /* as in the options: generation stops when it becomes non-zero */
} QsfRuntime;

typedef struct QsfRuntimeOptions {
    QSFSettings settings;
    const char *const *overrides; /* NULL-terminated, or NULL */
    bool exact;                   /* --exact: float activations, f32 KV */
    bool text_only;               /* model metadata and tokenizer only: --tokenize, --detokenize */
    bool with_template;           /* with text_only the chat template too: --show-prompt */
    bool plan_only;               /* stop after the plan: --plan, --inspect */
    const atomic_int *cancel;
    bool predict;              /* measure disk and kernels for a prediction (--plan, --verbose) */
    uint64_t stack_bytes;      /* stack of the thread that will generate, when it is not the main one */
    uint64_t transcript_bytes; /* that the caller will charge to TRANSCRIPT, besides a timeline */
} QsfRuntimeOptions;

/* Opens path. Order: source and metadata, plan (refusal before loading), tokenizer, template, pool,
 * weights. On failure everything is closed again. Every code of err.h is possible; a vocabulary-only file
 * is QSF_E_MODEL unless text_only (and then nothing of r->model but its source is filled).
 * settings.cpu_mask "" means the environment's QSF_CPU_MASK, and without that the best level. */
int qsf_runtime_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err);
void qsf_runtime_close(QsfRuntime *r); /* also after a failed open, and for a zeroed one */

/* Goes on under other settings without loading anew: everything with QSF_SETTING_REPLAN is taken from s.
 * Between two tokens only. The next tokens are the same as without it. On success note (cap bytes) says in a
 * sentence what holds now. QSF_E_BUDGET (the message ends with the smallest budget that works now),
 * QSF_E_RUNTIME: nothing changed, and generation goes on as before; only when even the old plan cannot be
 * brought back (r->lost) does every later eval fail. After a shrink the resident set is below the new budget
 * and the peak is reset. */
int qsf_runtime_replan(QsfRuntime *r, const QSFSettings *s, char *note, size_t cap, QsfErr *err);

/* Opens the template that settings name, and learns from it how answers end and what is reasoning. r->tok must be
 * open. On failure (codes of qsf_chat_template_open) the old one stays. */
int qsf_runtime_template(QsfRuntime *r, const char *name, QsfErr *err);
/* Does this id end an answer, by the vocabulary or by the template? */
bool qsf_runtime_ends(const QsfRuntime *r, int32_t id);

/* The longest context that any plan of r may have: what the settings ask for, or what they leave to the plan.
 */
uint32_t qsf_runtime_longest_ctx(const QsfRuntime *r);

/* Highest kernel level that settings and environment allow. QSF_E_USAGE: an unknown word; QSF_E_RUNTIME:
 * this CPU does not have it. */
int qsf_runtime_level(const QSFSettings *s, qk_level *out, QsfErr *err);

/* "llama 1.1B Q4_0": architecture, parameters, the weight type that most bytes are in. */
void qsf_model_summary(const QsfModel *m, char *dst, size_t cap);
/* The model's facts for people, a line each; malloc'ed, NULL without memory. */
char *qsf_model_text(const QsfModel *m);

#endif
