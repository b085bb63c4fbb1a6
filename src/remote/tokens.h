/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tokens of a server's model are texts: it is asked for each text once (ggml-org/llama.cpp
 * tools/server/README.md and vllm-project/vllm vllm/entrypoints/openai: POST /tokenize). */
#ifndef QSF_REMOTE_TOKENS_H
#define QSF_REMOTE_TOKENS_H

#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/remote/kind.h"

typedef struct QsfTokenText {
    char *text; /* (len) owned */
    size_t len;
    uint32_t n; /* tokens that it has; 0 = the server did not say */
    int32_t id; /* of its token if it has one, else -1 */
} QsfTokenText;

/* Zeroed it is empty. */
typedef struct QsfTokenTexts {
    QsfTokenText *items; /* (n) */
    size_t n;
} QsfTokenTexts;

/* NULL: it was not asked for. */
const QsfTokenText *qsf_token_texts_find(const QsfTokenTexts *t, const char *text, size_t len);
/* Adds what the server replied to the question for it; json NULL: nothing. QSF_E_RUNTIME: no memory. */
int qsf_token_texts_add(QsfTokenTexts *t, const char *text, size_t len, const char *json, size_t json_len,
                        QsfErr *err);
void qsf_token_texts_free(QsfTokenTexts *t);
/* Appends the body of the question. */
void qsf_token_question(QsfRemoteServer server, const char *model, const char *text, size_t len,
                        QsfStrbuf *b);

#endif
