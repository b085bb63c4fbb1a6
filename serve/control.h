/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a client says about an answer that is written: that its reasoning ends. */
#ifndef QSF_SERVE_CONTROL_H
#define QSF_SERVE_CONTROL_H

#include "serve/reply.h"

/* Reads the body of such a request (len bytes): the id of the answer, as in its events. false with *e set:
 * status 400 or 413. */
bool serve_control_parse(const char *body, size_t len, uint64_t *id, ServeError *e);
/* Appends the reply. found: that answer is written now. */
void serve_control_reply(QsfStrbuf *b, bool found);

#endif
