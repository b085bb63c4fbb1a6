/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One conversation's tokens against the KV cache: a new prompt keeps the longest common prefix and
 * evaluates only the rest; generation goes on token by token with stop strings. Synchronous; the
 * worker, qsf.h and qsf-run all generate through it. One thread. */
#ifndef QSF_ENGINE_TIMELINE_H
#define QSF_ENGINE_TIMELINE_H

#include "src/engine/runtime.h"

typedef struct QsfTimeline {
    QsfRuntime *rt;
    int32_t *ids;     /* (n_ids), the tokens whose K/V is in the cache; capacity ctx, TRANSCRIPT */
    uint32_t n_ids;
} QsfTimeline;

int qsf_timeline_init(QsfTimeline *t, QsfRuntime *rt, QsfErr *err);
void qsf_timeline_free(QsfTimeline *t);

typedef struct QsfGenerate {
    const int32_t *prompt;      /* (n_prompt) >= 1 */
    size_t n_prompt;
    bool continues;             /* the answer continues text that the reader sees (base model, continue_last) */
    const char *const *stop;
    size_t n_stop;
    /* Read before every token (live parameters). */
    void (*params)(void *arg, QSFParams *out);
    /* Whole UTF-8 text that can no longer become part of a stop string; may be called with len 0 for a token
     * without text. Non-zero stops generation as interrupted. */
    int (*text)(void *arg, int32_t id, const char *text, size_t len);
    /* After prefill and each token, for statistics; may be NULL. */
    void (*tick)(void *arg, const QsfSampled *s);
    void *arg;
} QsfGenerate;

typedef struct QsfGenerated {
    QSFStop stop;
    uint32_t prompt_tokens, reused_tokens, tokens;
    uint64_t seed;
    uint64_t prefill_ns, decode_ns, ttft_ns;
} QsfGenerated;

/* Runs to the end. Prompt longer than the context: QSF_E_CONTEXT before anything is computed. Context
 * full while generating is not an error: stop = QSF_STOP_CONTEXT. Cancel: success with stop =
 * QSF_STOP_INTERRUPTED (also during prefill). QSF_E_RUNTIME on I/O failure: what was delivered is valid, and the same
 * prompt may be submitted again. The id that ended the answer (EOS) is not shown and not kept. */
int qsf_timeline_generate(QsfTimeline *t, const QsfGenerate *g, QsfGenerated *out, QsfErr *err);

#endif
