/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a model is calibrated with: a file of text, or of chats, as token ids. */
#ifndef QSF_CALIBRATE_TEXT_H
#define QSF_CALIBRATE_TEXT_H

#include <stdatomic.h>

#include "src/base/strbuf.h"
#include "src/text/chat.h"

#define QSF_CALIBRATE_TEXT_MAX (64u << 20)
#define QSF_CALIBRATE_TOKENS_MIN 32u

/* The bytes of path. QSF_E_MODEL: it cannot be read, is empty, longer than QSF_CALIBRATE_TEXT_MAX, or not UTF-8 (names
 * the line and the byte offset); QSF_E_INTERRUPTED; QSF_E_RUNTIME without memory. cancel may be NULL. */
int qsf_calibrate_read(const char *path, const atomic_int *cancel, QsfStrbuf *out, QsfErr *err);

/* Ids of text, which path had. A file whose name ends in .jsonl, or whose first line that is not blank is a JSON object
 * with "messages", has a chat in each line that is not blank ({"messages": [{"role": ..., "content": ...}, ...]}): each
 * is rendered by t (NULL: its contents one after another) and encoded as a conversation that goes on. Anything else is
 * one text, in which what spells a special token becomes it. BOS stands wherever the vocabulary wants it.
 * QSF_E_MODEL: a line is no such chat, or the template refuses it (names the line); fewer than
 * QSF_CALIBRATE_TOKENS_MIN tokens. QSF_E_RUNTIME without memory. */
int qsf_calibrate_encode(const char *path, const QsfStrbuf *text, const QsfChatTemplate *t, const QsfTokenizer *tok,
                         QsfIds *out, QsfErr *err);

#endif
