/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of the last answer, and what the model said about them: written by the engine thread, readable
 * from any thread. Their memory is that of the plan: nothing is allocated for a token. */
#ifndef QSF_ENGINE_ANSWER_TOKENS_H
#define QSF_ENGINE_ANSWER_TOKENS_H

#include <pthread.h>

#include "qsf_engine.h"
#include "src/base/ledger.h"

typedef struct QsfPackedWhy QsfPackedWhy;

/* Bytes that an owner of tokens with n_top candidates reserves in its plan. n_top: 0 = QSF_CANDIDATES; more
 * than QSF_CANDIDATES_MOST are as many. */
uint64_t qsf_answer_tokens_bytes(uint32_t n_top);

typedef struct QsfAnswerTokens {
    pthread_mutex_t lock; /* for all of it; the engine thread reads without it */
    QSFTokens info;
    int32_t *ids; /* (QSF_TOKENS_KNOWN) */
    char *rows;   /* (QSF_TOKENS_ROWS) a ring: token i is in row i % QSF_TOKENS_ROWS. A row is a
                                 QSFToken of which only n_top candidates are stored */
    uint32_t n_top;
    QsfPackedWhy *why;        /* (QSF_WHY_KNOWN) a ring, too */
    bool ended;               /* the last token ended the answer */
    uint32_t text, reasoning; /* bytes before what is being written */
} QsfAnswerTokens;

/* Without memory: no tokens are known. */
void qsf_answer_tokens_init(QsfAnswerTokens *a);
/* After qsf_answer_tokens_close, when no thread uses it any more. */
void qsf_answer_tokens_destroy(QsfAnswerTokens *a);
/* Takes the memory, charged to TRANSCRIPT; QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_answer_tokens_open(QsfAnswerTokens *a, uint32_t n_top, QsfLedger *ledger, QsfErr *err);
/* Forgets all, and gives the memory back; may be called without memory. */
void qsf_answer_tokens_close(QsfAnswerTokens *a, QsfLedger *ledger);

/* ---- the engine thread ---- */

/* Keeps the first n tokens, for a request that continues after them; more: its text comes after theirs,
 * otherwise it begins again with their text. Without n, all are forgotten. */
void qsf_answer_tokens_begin(QsfAnswerTokens *a, uint64_t request, uint32_t n, bool more);
/* Adds a token, with the bytes of text since the request began. */
void qsf_answer_tokens_add(QsfAnswerTokens *a, const QSFToken *token);
/* How the token that is added next was chosen. */
void qsf_answer_tokens_why(QsfAnswerTokens *a, const QSFWhy *why);
/* The request is over, after this many bytes of text; ended: its last token ended the answer. */
void qsf_answer_tokens_end(QsfAnswerTokens *a, uint32_t text, uint32_t reasoning, bool ended);
/* The answer has only this many bytes of the text of the tokens. */
void qsf_answer_tokens_cut(QsfAnswerTokens *a, uint32_t text);
/* Returns how many tokens, without one that ended the answer, the last ones of ids[0..n) are; 0 if they are
 * others. */
uint32_t qsf_answer_tokens_match(const QsfAnswerTokens *a, const int32_t *ids, size_t n);

/* ---- any thread: as the functions of qsf_worker_ ---- */

/* qsf_worker_tokens. */
void qsf_answer_tokens_info(QsfAnswerTokens *a, QSFTokens *out);
/* qsf_worker_token_ids and qsf_worker_token_rows. */
uint32_t qsf_answer_tokens_ids(QsfAnswerTokens *a, uint32_t first, int32_t *out, uint32_t max);
uint32_t qsf_answer_tokens_rows(QsfAnswerTokens *a, uint32_t first, QSFToken *out, uint32_t max);
/* qsf_worker_token_why. */
bool qsf_answer_tokens_get_why(QsfAnswerTokens *a, uint32_t i, QSFWhy *out);

#endif
