/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the calibration text, a file with text or chats, as token ids. */
#ifndef QSF_CONVERT_CALIBRATE_CALIBRATION_TEXT_H
#define QSF_CONVERT_CALIBRATE_CALIBRATION_TEXT_H

#include <stdatomic.h>

#include "src/base/strbuf.h"
#include "src/chat/chat.h"

#define QSF_CALIBRATE_TEXT_MAX   (64u << 20)
#define QSF_CALIBRATE_TOKENS_MIN 32u

/* Reads the file at path. QSF_E_MODEL: it cannot be read, is empty, longer than QSF_CALIBRATE_TEXT_MAX, or
 * not UTF-8 (names the line and the byte offset); QSF_E_INTERRUPTED; QSF_E_RUNTIME if out of memory. cancel
 * may be NULL. *damaged: it is UTF-16 or UTF-32, and not valid (QSF_DECODE_DAMAGED). */
int qsf_calibrate_read(const char *path, const atomic_int *cancel, QsfStrbuf *out, bool *damaged,
                       QsfErr *err);

/* Tokenizes text, the contents of path. If the name ends in .jsonl, or the first non-blank line is a JSON
 * object with "messages", every non-blank line is a chat ({"messages": [{"role": ..., "content": ...},
 * ...]}): it is rendered with t (NULL: the contents are concatenated) and encoded as an open conversation.
 * Anything else is one text, in which special tokens are parsed. BOS is added where the vocabulary requires
 * it. QSF_E_MODEL: a line is not a valid chat or the template rejects it (names the line), or there are fewer
 * than QSF_CALIBRATE_TOKENS_MIN tokens. QSF_E_RUNTIME if out of memory. */
int qsf_calibrate_encode(const char *path, const QsfStrbuf *text, const QsfChatTemplate *t,
                         const QsfTokenizer *tok, QsfIds *out, QsfErr *err);

#endif
