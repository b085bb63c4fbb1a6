/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything that one loaded model needs, opened in the right order under one ledger: model, tokenizer,
 * template, plan, kernels, pool, forward pass, sampler. qsf-run uses it directly; the worker and qsf.h are
 * built on it. One thread at a time. */
#ifndef QSF_ENGINE_RUNTIME_H
#define QSF_ENGINE_RUNTIME_H

#include "qsf_engine.h"
#include "src/chat/think.h"
#include "src/engine/habits/habits.h"
#include "src/engine/memory_pressure.h"
#include "src/engine/predict.h"
#include "src/forward/forward.h"
#include "src/plan/options.h"
#include "src/sample/sampler.h"
#include "src/speculate/speculate.h"

#define QSF_EOG_MAX       64
#define QSF_QUALITY_STEPS 20u

/* Must not be moved or copied: its parts have pointers into it. */
typedef struct QsfRuntime {
    QsfLedger ledger;
    QsfModel model;
    QsfTokenizer *tok;
    QsfChatTemplate *tmpl; /* NULL: plain text is continued */
    char tmpl_notice[256];
    bool reasoning_noted; /* the missing reasoning switch of the template was reported */
    bool lost_noted;      /* messages that the template leaves out were reported */
    QsfPlan plan;
    qk_table table;
    QsfPool *pool;   /* NULL until loaded */
    QsfForward *fwd; /* NULL until loaded */
    QsfSampler *sampler;
    QsfSpeculator speculator; /* of the plan in force */
    uint64_t budget;          /* resolved, bytes */
    int threads;
    QSFSettings settings;           /* in force */
    struct QsfAdapterSet *adapters; /* in use, or NULL */
    QsfPlanFacts facts;             /* constant while it is open */
    QsfPlanOptions plan_options;    /* the plan was made from these; for the next one */
    QsfPrediction prediction;       /* zero unless requested (predict) */
    QsfPressure pressure;           /* with memory-threshold-mb */
    uint64_t needed, left;          /* of the last qsf_prompt_advise */
    uint64_t text_held;             /* of the request whose prompt is made (QsfRequestCopy.held) */
    bool pressed;                   /* memory is short: what was given back is not taken again */
    bool relief_reported, no_relief_reported;
    QsfLearning learning; /* of a sparse model */
    QsfQuality quality;   /* in force */
    float quality_tps[QSF_QUALITY_STEPS +
                      1]; /* tokens per second of the last answer with quality i / QSF_QUALITY_STEPS */
    double *importance;   /* (n_blocks) of a calibrated file, or NULL */
    struct QsfQualityTable *quality_table; /* what each quality does, as measured; or NULL */
    struct QsfNextn *nextn;                /* next-token blocks for drafts (nextn.h), or NULL */
    struct QsfDraftModel *draft;           /* for drafts (draft_model.h), or NULL */
    char draft_file[QSF_SETTING_LINE];     /* as set; "" = none */
    char draft_used[QSF_SETTING_LINE];     /* the last one that could be opened */
    bool nextn_compared;                   /* they are those of a comparison (QsfRuntimeOptions.nextn) */
    bool may_draft;                        /* as in the options */
    struct QsfRoutes *routes;              /* of the setting trace-experts, or NULL */
    char trace_notice[96];                 /* why there is none; or "" */
    char nextn_notice[256];                /* qsf_nextn_explain */
    char draft_notice[512];                /* why the draft model is not used; or "" */
    char quality_notice[512];              /* why that could not be read; or "" */
    uint32_t system_tokens;                /* of qsf_runtime_protect */
    bool lost;                /* neither a new plan nor the old one could be applied: the model must be
                                 reopened */
    char budget_notice[256];  /* the budget that was chosen (auto), and how to change it; that one is more
                                 than there is; or "" */
    char stream_notice[256];  /* weights stream although memory is free: the option that changes it; or "" */
    char ctx_notice[128];     /* the context is longer than what the model was trained for; or "" */
    int32_t eog[QSF_EOG_MAX]; /* (n_eog) ids that end an answer; banned by ignore_eos */
    size_t n_eog;
    QsfThink think;                   /* how the model reasons, by template and vocabulary */
    QsfThink think_raw;               /* the same without the template */
    uint64_t hold_reserved;           /* bytes that the plan keeps free for a grammar */
    uint64_t hold_compiled;           /* of the last grammar, compiled */
    bool hold_passed;                 /* to compile it took more memory than the budget leaves */
    struct QsfConstraint *constraint; /* of the last answer with a grammar (grammar_hold.h), or NULL */
    const atomic_int *cancel;         /* as in the options: generation stops when it becomes non-zero */
} QsfRuntime;

typedef struct QsfRuntimeOptions {
    QSFSettings settings;
    const char *const *overrides; /* NULL-terminated, or NULL */
    bool exact;                   /* --exact: float activations, f32 KV */
    bool text_only;               /* model metadata and tokenizer only: --tokenize, --detokenize */
    bool with_template;           /* with text_only the chat template too: --show-prompt */
    bool plan_only;               /* stop after the plan: --plan, --inspect */
    bool learn; /* a sparse model reads and writes which experts are used, unless the settings forbid it */
    const atomic_int *cancel;
    uint32_t nextn, nextn_first; /* next-token blocks [nextn_first, nextn_first + nextn) are opened, too: an
                                    error if they cannot be */
    bool may_draft; /* answers are generated: next-token blocks are opened where there is memory for them */
    bool predict;   /* measure disk and kernels for a prediction (--plan, --verbose) */
    uint64_t stack_bytes;      /* stack of the thread that will generate, when it is not the main one */
    uint64_t transcript_bytes; /* that the caller will charge to TRANSCRIPT, besides a timeline */
} QsfRuntimeOptions;

/* Opens path. Order: source and metadata, plan (refusal before loading), tokenizer, template, pool,
 * weights. On failure everything is closed again. Every code of err.h is possible; a vocabulary-only file
 * is QSF_E_MODEL unless text_only (and then nothing of r->model but its source is filled).
 * settings.cpu_mask "" means the environment's QSF_CPU_MASK, and without that the best level. */
int qsf_runtime_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err);
void qsf_runtime_close(QsfRuntime *r); /* also after a failed open, and for a zeroed one */

/* Between two evals: the first n positions are the system prompt, which protected-prefix auto protects; at
 * most half of the context. */
void qsf_runtime_protect(QsfRuntime *r, uint32_t n);

/* Opens the template that settings name, and learns from it how answers end and what is reasoning. r->tok
 * must be open. On failure (codes of qsf_chat_template_open) the old one stays. */
int qsf_runtime_template(QsfRuntime *r, const char *name, QsfErr *err);
/* Drafts are made from nothing that was said before now. Between two answers. */
void qsf_runtime_forget_drafts(QsfRuntime *r);
/* Does this id end an answer, by the vocabulary or by the template? */
bool qsf_runtime_ends(const QsfRuntime *r, int32_t id);

/* Finds the highest kernel level that the settings and the environment allow. QSF_E_USAGE: unknown level;
 * QSF_E_RUNTIME: not supported by this CPU. */
int qsf_runtime_level(const QSFSettings *s, qk_level *out, QsfErr *err);

/* ---- another plan: the thread of the runtime ---- */

/* Applies new settings without reloading: everything with QSF_SETTING_REPLAN is taken from s. Call it between
 * two tokens only; it does not change the tokens. On success note (cap bytes) gets a sentence about the new
 * plan. On QSF_E_BUDGET (the message ends with the smallest budget that works now) and QSF_E_RUNTIME nothing
 * changes and generation can continue, unless the old plan cannot be restored either (r->lost): then every
 * later eval fails. After a shrink the resident set is below the new budget and the recent
 * peak is reset (base/clock.h). */
int qsf_runtime_replan(QsfRuntime *r, const QSFSettings *s, char *note, size_t cap, QsfErr *err);
/* Puts the plan in force that these options make, with the same errors. */
int qsf_runtime_apply(QsfRuntime *r, const QsfPlanOptions *next, QsfErr *err);

/* ---- where a plan meets the process: the memory that is available for it, the rows that no
 * allocation charges, and the
 * peak that the kernel reports ---- */

/* Returns the memory that would be available without what was allocated since facts->resident was measured,
 * so that later plans see what the first one saw, and what the machine has. Any thread. */
QsfPlanMemory qsf_planning_memory(const QsfPlanFacts *facts);

/* Like qsf_plan_make, but the engine thread's stack, which facts->resident contains, is in its own row. */
int qsf_planning_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, const QsfPlanFacts *facts,
                      QsfErr *err);

#endif
