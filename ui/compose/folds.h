/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Long pastes in the input line: each is one character of the line, which stands for its text. Private-use
 * characters are taken for that, U+10FFC0 and those after it. One thread. */
#ifndef QSF_UI_FOLDS_H
#define QSF_UI_FOLDS_H

#include <stdint.h>

#include "ui/buf.h"

#define UI_FOLDS      32 /* pastes at a time */
#define UI_FOLD_FROM  13 /* lines of a paste that folds */
#define UI_FOLD_BYTES 4  /* of such a character */

typedef struct UiFold {
    char *text; /* NUL-terminated; NULL = free */
    size_t len, lines;
    int64_t tokens; /* -1 = unknown */
    bool about;     /* that is an estimate */
} UiFold;

/* Zeroed it is empty. */
typedef struct UiFolds {
    UiFold items[UI_FOLDS];
    size_t bytes; /* of all texts */
} UiFolds;

/* Lines of a text, an unfinished one included; they may end in CR, as terminals paste them. */
size_t ui_fold_lines(const char *text, size_t len);
/* Adds a text, which belongs to f then; dst (UI_FOLD_BYTES bytes) is its character. false if there are
 * UI_FOLDS already: text still belongs to the caller. */
bool ui_folds_add(UiFolds *f, UiFold fold, char *dst);
/* The index of the paste that text[0..len) begins with, -1 if it begins with something else. */
int ui_fold_at(const char *text, size_t len);
/* What the screen shows for paste i: "[pasted 200 lines, 3,492 tokens]". */
void ui_fold_label(const UiFolds *f, int i, char *dst, size_t cap);
/* Whether a text has pastes. */
bool ui_folds_any(const char *text, size_t len);
/* Appends the text with that of its pastes. */
void ui_folds_expand(const UiFolds *f, const char *text, size_t len, UiBuf *out);
/* Bytes of that text, and tokens of the pastes in it. */
size_t ui_folds_size(const UiFolds *f, const char *text, size_t len, int64_t *tokens);
/* Replaces characters of a text from outside that would stand for a paste by "?"; in place. */
void ui_folds_clean(char *text, size_t len);
/* Frees all pastes that a line does not have. */
void ui_folds_keep(UiFolds *f, const char *line, size_t len);

#endif
