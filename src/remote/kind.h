/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known of the servers that people use: how they are recognized, what they know beyond the interface
 * of OpenAI, and whether they continue an answer or its reasoning. */
#ifndef QSF_REMOTE_KIND_H
#define QSF_REMOTE_KIND_H

#include <stdbool.h>

typedef enum QsfRemoteServer {
    QSF_SERVER_OTHER,
    QSF_SERVER_LLAMA,
    QSF_SERVER_VLLM,
    QSF_SERVER_OLLAMA,
    QSF_SERVER_LMSTUDIO,
    QSF_SERVER_QSF,
    QSF_SERVERS
} QsfRemoteServer;

/* Bits of sets of servers. */
#define QSF_ON(server)  (1u << QSF_SERVER_##server)
#define QSF_ON_EVERY    ((1u << QSF_SERVERS) - 1)
#define QSF_ON_SAMPLING (QSF_ON_EVERY & ~QSF_ON(OLLAMA)) /* that take more samplers than OpenAI's */

typedef struct QsfKind {
    const char *name;      /* for people */
    const char *owned_by;  /* of its models in /v1/models, or NULL */
    const char *header;    /* how its header Server begins, or NULL */
    const char *continues; /* fields with which it continues a last message of the assistant; "" = it does so
                              by itself, NULL = not, or not known to */
    const char *thought;   /* names of the reasoning in such a message, separated by ','; NULL = not known */
    const char *closes;    /* fields with which it begins the answer after that reasoning; NULL = not known */
    bool resumes;          /* with the fields of `continues`, reasoning without a text is continued */
} QsfKind;

/* Static. */
const QsfKind *qsf_kind(QsfRemoteServer server);
/* By what /v1/models says of a model, and the header Server of the reply; each may be "". */
QsfRemoteServer qsf_kind_find(const char *owned_by, const char *id, const char *header);

#endif
