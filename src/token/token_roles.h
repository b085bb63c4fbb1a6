/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens with a role: begin and end of a text, end of a turn, padding, fill-in-the-middle. From
 * tokenizer.ggml.*_token_id, and from known texts if a key is missing. */
#ifndef QSF_TOKEN_TOKEN_ROLES_H
#define QSF_TOKEN_TOKEN_ROLES_H

#include "src/token/vocab.h"

typedef enum QsfTokenRole {
    QSF_TOKEN_ROLE_BOS,
    QSF_TOKEN_ROLE_EOS,
    QSF_TOKEN_ROLE_UNK,
    QSF_TOKEN_ROLE_EOT,
    QSF_TOKEN_ROLE_EOM,
    QSF_TOKEN_ROLE_FIM_PRE,
    QSF_TOKEN_ROLE_FIM_SUF,
    QSF_TOKEN_ROLE_FIM_MID,
    QSF_TOKEN_ROLE_FIM_PAD,
    QSF_TOKEN_ROLE_FIM_REP,
    QSF_TOKEN_ROLE_FIM_SEP,
    QSF_TOKEN_ROLE_MESSAGE_END, /* ends a message, but not the generation */
    QSF_TOKEN_ROLE_N
} QsfTokenRole;

typedef struct QsfRoles {
    int32_t id[QSF_TOKEN_ROLE_N]; /* -1 = the vocabulary has none */
    const char *bad_key;          /* key of an id outside the vocabulary (which was ignored), or NULL */
} QsfRoles;

/* Reads the ids. fallback: those of BOS, EOS and the unknown token if the file has no key, -1 = none. All ids
 * of QSF_KEY_ENDS end a generation (QSF_ATTR_EOG in v). A key may hold an array; its first id has the role.
 * QSF_E_MODEL names a key of the wrong type. */
int qsf_roles_read(QsfRoles *r, const QsfSource *src, QsfVocab *v, const int32_t fallback[3], QsfErr *err);

/* Fills missing roles from known texts, and marks the tokens that end a generation (QSF_ATTR_EOG). If the
 * vocabulary has control tokens at all, ordinary pieces with such texts end nothing, unless the chat template
 * writes them; other tokens with the texts of a role become control tokens. A "</s>" that is an HTML tag
 * stays text. Where a generation has several messages (<|return|> and <|call|> exist), <|end|> only ends one
 * of them (QSF_TOKEN_ROLE_MESSAGE_END), whatever the file says. */
void qsf_roles_complete(QsfRoles *r, QsfVocab *v, const QsfSource *src);

#endif
