/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which settings are fields of a request, under which name, and which servers know them. */
#ifndef QSF_REMOTE_FIELDS_H
#define QSF_REMOTE_FIELDS_H

#include "qsf_settings.h"
#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/remote/kind.h"
#include "src/remote/tokens.h"

/* Fields that a server refused, by their row in the table: they are no longer sent. */
typedef uint64_t QsfFieldSet;

typedef enum QsfFieldEffect {
    QSF_FIELD_SENT,    /* set by the user, and sent */
    QSF_FIELD_UNSET,   /* not set: the server uses its own value */
    QSF_FIELD_REFUSED, /* the server has refused the field */
    QSF_FIELD_NONE,    /* the server does not know it, or nothing of it can be sent */
    QSF_FIELD_LOCAL    /* it is about this program */
} QsfFieldEffect;

QsfFieldEffect qsf_field_effect(const QSFSettings *s, const QSFSetting *row, QsfRemoteServer server,
                                QsfFieldSet refused);

/* What a request has besides its messages. */
typedef struct QsfFieldInput {
    const QSFSettings *settings; /* those that the user has set are sent */
    QsfRemoteServer server;
    QsfFieldSet refused;
    const char *const *stop; /* (n_stop) */
    size_t n_stop;
    const QsfTokenTexts *tokens; /* of biases; NULL: they are not known yet */
    uint32_t max_tokens;         /* besides the setting; 0 = none */
    uint32_t spent;              /* tokens that this answer has already */
    uint8_t grammar_kind;        /* QSFGrammarKind, instead of that of the settings; 0 = that */
    const char *grammar;         /* (grammar_len) its text */
    size_t grammar_len;
} QsfFieldInput;

/* Appends `, "name": value` for each field, and to *sent those that were. QSF_E_USAGE if the answer has to
 * match something that this server cannot be told, or its file cannot be read. */
int qsf_fields_put(const QsfFieldInput *in, QsfStrbuf *b, QsfFieldSet *sent, QsfErr *err);
/* Which of the sent fields a message of the server refuses by their names; 0 = none. *by_value: the message
 * is about their values; a limit of the answer is not among them then, because the answer would have none. */
QsfFieldSet qsf_fields_named(QsfFieldSet sent, const char *message, bool *by_value);
/* Which of the fields have another value in one of the two. */
QsfFieldSet qsf_fields_changed(QsfFieldSet set, const QSFSettings *x, const QSFSettings *y);
/* The name of a sent field that replaces a refused one; NULL: none does. */
const char *qsf_fields_instead(QsfFieldSet refused, QsfFieldSet sent);
/* Appends the names of fields, separated by ", ". */
void qsf_fields_list(QsfFieldSet set, QsfStrbuf *b);

#endif
