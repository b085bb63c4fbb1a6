/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an answer has to match, as fields of a request: grammars, schemas, regular expressions. */
#ifndef QSF_REMOTE_FORM_H
#define QSF_REMOTE_FORM_H

#include "src/remote/fields.h"

/* The setting that a kind is (QSFGrammarKind), static. */
const char *qsf_form_name(unsigned kind);
/* Can the server be told it? */
bool qsf_form_known(unsigned kind, QsfRemoteServer server);
/* Appends the fields for what the input or its settings ask for, if they do. QSF_E_USAGE if this server
 * cannot be told it; errors of its file. */
int qsf_form_put(const QsfFieldInput *in, QsfStrbuf *b, QsfErr *err);

#endif
