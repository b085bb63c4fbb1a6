/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text that is read without knowing its end: what has too many bytes is counted and dropped. One thread. */
#ifndef QSF_UI_CUT_H
#define QSF_UI_CUT_H

#include "qsf_engine.h"
#include "ui/buf.h"

/* Zeroed but for the limit it is ready. */
typedef struct UiCut {
    size_t limit;     /* bytes of a text that is kept; 0 = no limit */
    bool cut;         /* the text had more: only its first and its last bytes are kept */
    QSFTextSize size; /* after ui_cut_count: of the whole text */
} UiCut;

/* Begins another text in b with the same limit. */
void ui_cut_begin(UiCut *c, UiBuf *b);
/* Appends to b. Of a text that is too long, its first and its last UI_CUT_KEPT bytes remain, and its memory
 * is freed. */
void ui_cut_add(UiCut *c, UiBuf *b, const char *s, size_t len);
#define UI_CUT_KEPT 16u
/* The text is complete: counts what is still in b. */
void ui_cut_count(UiCut *c, const UiBuf *b);

#endif
