/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning that a server leaves in the text of an answer, between <think> and </think> at its beginning. */
#ifndef QSF_REMOTE_INLINE_THINK_H
#define QSF_REMOTE_INLINE_THINK_H

#include <stdbool.h>

#include "src/base/strbuf.h"

typedef enum QsfInlineState { QSF_INLINE_START, QSF_INLINE_INSIDE, QSF_INLINE_ANSWER } QsfInlineState;

/* Zeroed it is at the beginning of an answer. */
typedef struct QsfInlineThink {
    QsfInlineState state;
    QsfStrbuf held; /* bytes that may be the beginning of a tag, with blanks before the first one */
} QsfInlineThink;

/* Adds text of the answer, in any pieces: appends what is reasoning, without tags, to *reasoning, and the
 * rest to *answer. */
void qsf_inline_think_add(QsfInlineThink *t, const char *text, size_t len, QsfStrbuf *reasoning,
                          QsfStrbuf *answer);
/* The answer has ended: appends what was held back. */
void qsf_inline_think_end(QsfInlineThink *t, QsfStrbuf *reasoning, QsfStrbuf *answer);
void qsf_inline_think_free(QsfInlineThink *t);

#endif
