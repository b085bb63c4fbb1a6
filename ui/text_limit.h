/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text that is read without knowing its end: what has too many bytes is counted and dropped. One thread. */
#ifndef QSF_UI_TEXT_LIMIT_H
#define QSF_UI_TEXT_LIMIT_H

#include "qsf_engine.h"
#include "ui/buf.h"

/* Zeroed but for the limit it is ready. */
typedef struct UiTextLimit {
    size_t limit;     /* bytes of a text that is kept; 0 = no limit */
    bool cut;         /* the text had more: only its first and its last bytes are kept */
    QSFTextSize size; /* after ui_text_limit_count: of the whole text */
} UiTextLimit;

/* Begins the next text in b, with the same limit. */
void ui_text_limit_begin(UiTextLimit *c, UiBuf *b);
/* Appends to b. A text that is too long loses its middle: its first and its last UI_TEXT_LIMIT_KEPT bytes
 * remain. */
void ui_text_limit_add(UiTextLimit *c, UiBuf *b, const char *s, size_t len);
#define UI_TEXT_LIMIT_KEPT 16u
/* The text is complete: counts what is still in b. */
void ui_text_limit_count(UiTextLimit *c, const UiBuf *b);

#endif
