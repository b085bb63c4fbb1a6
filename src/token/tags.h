/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tags that models put around reasoning and answers: a vocabulary must not find them in the text of a
 * user, and src/chat/think.h splits answers at them. Constant; any thread. */
#ifndef QSF_TOKEN_TAGS_H
#define QSF_TOKEN_TAGS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct QsfThinkTags {
    const char *open, *close;
} QsfThinkTags;

enum { QSF_TAGS = 10, QSF_ANSWER_TAGS = 4 };
extern const QsfThinkTags qsf_tags[QSF_TAGS];               /* around reasoning */
extern const QsfThinkTags qsf_answer_tags[QSF_ANSWER_TAGS]; /* around answers */

/* Whether the len bytes at text are a tag of any model. */
bool qsf_is_tag(const char *text, size_t len);

#endif
