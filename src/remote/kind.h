/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known of the servers that people use: how they are recognized, what they know beyond the interface
 * of OpenAI, and whether they continue an answer. */
#ifndef QSF_REMOTE_KIND_H
#define QSF_REMOTE_KIND_H

#include <stdbool.h>

typedef enum QsfRemoteServer {
    QSF_SERVER_OTHER,
    QSF_SERVER_LLAMA,
    QSF_SERVER_VLLM,
    QSF_SERVER_OLLAMA,
    QSF_SERVER_QSF,
    QSF_SERVERS
} QsfRemoteServer;

/* Bits of sets of servers. */
#define QSF_ON(server)  (1u << QSF_SERVER_##server)
#define QSF_ON_EVERY    ((1u << QSF_SERVERS) - 1)
#define QSF_ON_SAMPLING (QSF_ON_EVERY & ~QSF_ON(OLLAMA)) /* that take more samplers than OpenAI's */

typedef enum QsfContinues {
    QSF_CONTINUES_NOT,    /* or not known to */
    QSF_CONTINUES_LAST,   /* a last message of the assistant */
    QSF_CONTINUES_FLAGGED /* the same, if told so: continue_final_message */
} QsfContinues;

typedef struct QsfKind {
    const char *name;     /* for people */
    const char *owned_by; /* of its models in /v1/models, or NULL */
    const char *header;   /* how its header Server begins, or NULL */
    QsfContinues continues;
} QsfKind;

/* Static. */
const QsfKind *qsf_kind(QsfRemoteServer server);
/* By what /v1/models says; either may be "". */
QsfRemoteServer qsf_kind_find(const char *owned_by, const char *header);

#endif
