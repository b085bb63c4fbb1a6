/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the engine is doing, behind one lock: the engine thread writes a few numbers per token, anybody
 * copies the whole. Counters that move within a token come live from the forward pass. */
#ifndef QSF_ENGINE_STATS_H
#define QSF_ENGINE_STATS_H

#include <pthread.h>

#include "src/engine/timeline.h"

typedef struct QsfBoard {
    pthread_mutex_t lock;
    QSFStats s;               /* as of the last token */
    uint64_t state_ns;        /* when s.state began */
    uint64_t request_ns;      /* when the request began */
    uint64_t first_ns;        /* when the first token of the answer was there */
    uint64_t read_from;       /* bytes read until then, or until the plan changed */
    uint32_t read_tokens;     /* tokens out until then */
    uint32_t reused;          /* prompt tokens that needed no prefill */
    QsfRuntime *rt;           /* NULL: no model; its counters are read under the lock only */
    pthread_mutex_t rss_lock; /* reading /proc must not keep the engine waiting */
    uint64_t rss_ns;          /* when rss was read; 0 = never */
    uint64_t rss, peak_rss;
} QsfBoard;

void qsf_board_init(QsfBoard *b, const QSFSettings *s);
void qsf_board_free(QsfBoard *b);

/* Engine thread. */
void qsf_board_state(QsfBoard *b, QSFState state);
/* Publishes a loaded model; with rt NULL takes it back: no other thread looks at it after the return. */
void qsf_board_model(QsfBoard *b, QsfRuntime *rt, const char *path, const QSFSettings *s);
void qsf_board_template(QsfBoard *b);
/* The model's plan is another now. */
void qsf_board_plan(QsfBoard *b);
/* Without a model: the budget that the next one will get. */
void qsf_board_budget(QsfBoard *b, const QSFSettings *s);
/* A request begins with the prefill of n tokens, reused of which are in the cache. */
void qsf_board_prefill(QsfBoard *b, uint32_t n, uint32_t reused, int32_t max_tokens);
void qsf_board_decode(QsfBoard *b, uint32_t ctx_used);
void qsf_board_token(QsfBoard *b, const QsfSample *s, uint32_t ctx_used, int32_t max_tokens);
void qsf_board_done(QsfBoard *b, uint32_t ctx_used);

/* Any thread. */
void qsf_board_snapshot(QsfBoard *b, QSFStats *out);
/* As qsf_worker_layers, and the ledger of the model (malloc'ed); 0 and NULL without one. */
uint32_t qsf_board_layers(QsfBoard *b, QSFLayerStats *out, uint32_t max);
char *qsf_board_memory(QsfBoard *b);

#endif
