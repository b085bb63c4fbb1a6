/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of reasoning that takes too long. After the limit a thought ends where the model nearly ends it
 * itself: the token that closes it is taken as soon as it is one of the likeliest. A thought that continues
 * for QSF_REASONING_GRACE tokens more is closed: a sentence, the closing tokens and, where a model writes
 * messages, the head of the answer's message are evaluated as if the model had written them. One thread. */
#ifndef QSF_ENGINE_REASONING_LIMIT_H
#define QSF_ENGINE_REASONING_LIMIT_H

#include "src/chat/think.h"
#include "src/engine/runtime.h"

#define QSF_REASONING_GRACE  1024u
#define QSF_REASONING_LIKELY 5u   /* the closing token is taken if fewer tokens are likelier */
#define QSF_REASONING_IDS    512u /* of the sentence and of what follows it: a token has at least a byte */

typedef struct QsfReasoningLimit {
    int32_t ids[QSF_REASONING_IDS]; /* (n): the sentence, from `close` on the closing tokens, from `after` on
                                       the head of the answer */
    uint32_t close, after, n;
    uint32_t at, end; /* ids[at..end) are taken next */
    bool cut;         /* reasoning was closed */
} QsfReasoningLimit;

/* Prepares it for an answer. message: the sentence, or "". Where the model has no reasoning that can be
 * closed, it never does anything. Allocates and frees memory. QSF_E_RUNTIME. */
int qsf_reasoning_limit_init(QsfReasoningLimit *l, const QsfRuntime *rt, const QsfThink *think,
                             const char *message, QsfErr *err);

/* Returns the token to take instead of the sampled one, or -1. Before every token of the answer: logits
 * (n_vocab) are those it would be sampled from, tokens those of reasoning so far, inside: the next one is
 * reasoning, now: it is to be closed at once. */
int32_t qsf_reasoning_limit_next(QsfReasoningLimit *l, const QSFParams *p, const float *logits,
                                 uint32_t n_vocab, int32_t sampled, uint32_t tokens, bool inside, bool now);

#endif
