/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the JSON of a chat request. */
#ifndef QSF_REMOTE_BODY_H
#define QSF_REMOTE_BODY_H

#include "qsf_engine.h"
#include "src/remote/fields.h"

/* Appends the beginning of the body: model and messages. What follows are the fields and a brace. QSF_E_USAGE
 * if an answer is to be continued that this server cannot continue. */
int qsf_body_head(const char *model, QsfRemoteServer server, const QSFRequest *r, QsfStrbuf *b, QsfErr *err);

#endif
