/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ids of an answer's tokens as text, for the session's file: a number has digits of five bits, the lowest
 * first, of the 64 characters A-Z a-z 0-9 + /, and 32 is added to each digit but its last one. About three
 * characters for a token. Input is untrusted. Pure. */
#ifndef QSF_UI_TOKEN_IDS_H
#define QSF_UI_TOKEN_IDS_H

#include <stdint.h>

#include "ui/buf.h"

/* Appends n of them; ids are not negative. */
void ui_token_ids_put(UiBuf *b, const int32_t *ids, size_t n);
/* Returns the ids of text, malloc'ed, and their number; NULL if there are none, text is damaged, or without
 * memory. */
int32_t *ui_token_ids_read(const char *text, size_t *n);

#endif
