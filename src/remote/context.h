/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How large the context of a model is, where the list of models does not say it: requests besides OpenAI's
 * interface that a kind of server knows. Such servers load a model with its first question, so its context
 * may be known only afterwards. */
#ifndef QSF_REMOTE_CONTEXT_H
#define QSF_REMOTE_CONTEXT_H

#include <stdint.h>

#include "src/base/strbuf.h"
#include "src/remote/kind.h"

typedef struct QsfContextSize {
    uint32_t ctx, ctx_train; /* tokens that a request may have, and that the model was trained for; 0 = not
                                known */
} QsfContextSize;

/* Appends the i-th request to such a server: its path below the root of the URL, and its body, which stays
 * empty for a GET. false: there is none. */
bool qsf_context_request(QsfRemoteServer server, unsigned i, const char *model, QsfStrbuf *path,
                         QsfStrbuf *body);
/* Reads the reply to it; what it does not say stays as it is. */
void qsf_context_read(QsfRemoteServer server, unsigned i, const char *model, const char *json, size_t len,
                      QsfContextSize *out);

#endif
