/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Engine statistics, protected by one lock; written by the engine thread, readable from any thread. Counters
 * that change within a token are read live from the forward pass. */
#ifndef QSF_ENGINE_STATS_H
#define QSF_ENGINE_STATS_H

#include <pthread.h>

#include "src/engine/expert_budgets.h"
#include "src/engine/runtime.h"

typedef struct QsfLiveStats {
    pthread_mutex_t lock;
    QSFStats s;           /* as of the last token */
    uint64_t state_ns;    /* when s.state began */
    uint64_t request_ns;  /* when the request began */
    uint64_t first_ns;    /* when the first token of the answer was generated */
    uint64_t read_from;   /* bytes read until then, or until the plan changed */
    uint32_t read_tokens; /* tokens generated until then */
    bool timed;           /* a token was generated since then: times of tokens count from it */
    uint64_t timed_ns;    /* when it was generated; time waited for reads until then, */
    uint64_t wait_from;
    uint64_t reading_from; /* and time in which something was read */
    uint32_t timed_tokens; /* those after it, and their times, without what was read since the last one */
    uint64_t token_ns, waited_ns, reading_ns;
    QsfExpertFacts experts;   /* of the plan: without depths and times; slots 0: it has none */
    uint32_t reused;          /* prompt tokens that needed no prefill */
    double read_tps;          /* speed of the model's last longer prefill, 0 = not known */
    QsfRuntime *rt;           /* NULL: no model; its counters are read under the lock only */
    pthread_mutex_t rss_lock; /* separate, so that reading /proc does not block the engine */
    uint64_t rss_ns;          /* when rss was read; 0 = never */
    uint64_t rss, peak_rss, recent_peak_rss;
} QsfLiveStats;

/* No model, state EMPTY; the budget is that of s. */
void qsf_live_stats_init(QsfLiveStats *b, const QSFSettings *s);
/* After the engine thread has ended, when no thread uses it any more. */
void qsf_live_stats_free(QsfLiveStats *b);

/* Engine thread. */
void qsf_live_stats_state(QsfLiveStats *b, QSFState state);
/* Publishes a loaded model. With rt NULL, withdraws it: after the return no other thread uses it. */
void qsf_live_stats_model(QsfLiveStats *b, QsfRuntime *rt, const char *path, const QSFSettings *s);
/* The template of the model has changed. */
void qsf_live_stats_template(QsfLiveStats *b);
/* Publishes the model's new plan, under which the cache holds ctx_used tokens. */
void qsf_live_stats_plan(QsfLiveStats *b, uint32_t ctx_used);
/* Publishes the budget of the next model while none is loaded. */
void qsf_live_stats_budget(QsfLiveStats *b, const QSFSettings *s);
/* Begins a request with the prefill of n tokens; reused of them are in the cache. The counters of the forward
 * pass were reset before. */
void qsf_live_stats_prefill(QsfLiveStats *b, uint32_t n, uint32_t reused, int32_t max_tokens);
/* qsf_worker_ahead: `done` of `total` tokens of the prompt are in the cache. */
void qsf_live_stats_ahead(QsfLiveStats *b, uint32_t done, uint32_t total);
/* The prompt was evaluated: the state is DECODE, and the speed of the prefill is known. */
void qsf_live_stats_decode(QsfLiveStats *b, uint32_t ctx_used);
/* A token of the answer was chosen. max_tokens: the limit of the answer, 0 = none. */
void qsf_live_stats_token(QsfLiveStats *b, const QsfSample *s, uint32_t ctx_used, int32_t max_tokens);
/* The request is over: the state is IDLE. */
void qsf_live_stats_done(QsfLiveStats *b, uint32_t ctx_used);

/* Any thread. */
/* qsf_worker_stats. */
void qsf_live_stats_snapshot(QsfLiveStats *b, QSFStats *out);
/* Like qsf_worker_layers; and the model's ledger as text (malloc'ed). 0 and NULL without a model. */
uint32_t qsf_live_stats_layers(QsfLiveStats *b, QSFLayerStats *out, uint32_t max);
char *qsf_live_stats_memory(QsfLiveStats *b);
/* Fills *s, and *f, which points into *s; f->from is the budget in force. False without a model. */
bool qsf_live_stats_experts(QsfLiveStats *b, QsfForwardStats *s, QsfExpertFacts *f);
/* "threads" of qsf_worker_describe, malloc'ed; NULL without a model or when out of memory. */
char *qsf_live_stats_threads(QsfLiveStats *b);

#endif
