/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text that arrives in parts, broken at words for a terminal: each word is written when it is complete. One
 * thread. */
#ifndef QSF_UI_FLOW_H
#define QSF_UI_FLOW_H

#include <stdbool.h>

#include "ui/buf.h"

/* Zeroed but for width, col and write it is at the beginning of a text. */
typedef struct UiFlow {
    int width; /* cells of a line; 0 = as long as they come */
    int col;   /* where the next word begins, blanks before it not included */
    void (*write)(void *arg, const char *s, size_t len);
    void *arg;
    int blanks;  /* before the word */
    UiBuf word;  /* so far */
    bool inside; /* the line has words */
    bool code;   /* between fences of Markdown: lines stay as they are */
} UiFlow;

/* Adds clean UTF-8 text (qsf_text.h). */
void ui_flow_add(UiFlow *f, const char *s, size_t len);
/* The text ends: writes the last word and frees what is held. */
void ui_flow_end(UiFlow *f);

#endif
