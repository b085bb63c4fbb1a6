/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A list over the transcript to choose from: what is typed filters it, one row is chosen. What the rows are
 * is up to the owner (session_picker, model_picker). Pure. One thread. */
#ifndef QSF_UI_CHOOSER_H
#define QSF_UI_CHOOSER_H

#include "ui/canvas.h"
#include "ui/keys.h"

typedef struct UiChooser {
    size_t all;            /* rows of the owner */
    size_t *shown;         /* (n) those that pass the filter */
    size_t n, chosen, top; /* chosen, top: of shown */
    UiBuf filter;
} UiChooser;

/* What the rows look like. */
typedef struct UiChooserRows {
    const void *arg;
    /* Replaces b with everything that is shown of a row, for the filter. */
    void (*text)(const void *arg, size_t row, UiBuf *b);
    /* Draws a row between the columns 0 and cols. */
    void (*draw)(const void *arg, size_t row, bool chosen, UiCanvas *c, int at, int cols);
    /* Draws the title and returns the next column. */
    int (*head)(const void *arg, UiCanvas *c, int at, int cols);
    /* Draws a last line in place of the usual one; NULL, or false: the usual one. */
    bool (*foot)(const void *arg, UiCanvas *c, int at, int cols);
    const char *hints;   /* what keys do, for the last line */
    const char *nothing; /* shown when no row passes the filter */
    const char *note;    /* after the number of rows; "" = none */
} UiChooserRows;

typedef enum UiChooserKey {
    UI_CHOOSER_NOTHING, /* it moved, or the filter changed, or the key means nothing here */
    UI_CHOOSER_TAKE,    /* Enter on a row */
    UI_CHOOSER_CLOSE,   /* Esc, ^C */
    UI_CHOOSER_DELETE   /* Del, ^D */
} UiChooserKey;

/* There are `all` rows now; what is chosen stays where it is, if that is possible. false without memory:
 * then it is empty. */
bool ui_chooser_set(UiChooser *l, const UiChooserRows *rows, size_t all);
void ui_chooser_free(UiChooser *l);
/* The chosen row, or SIZE_MAX. */
size_t ui_chooser_row(const UiChooser *l);
/* Chooses row i, if it is shown. */
void ui_chooser_choose(UiChooser *l, size_t i);
/* Handles a key; height: rows of the screen that it takes. */
UiChooserKey ui_chooser_key(UiChooser *l, const UiChooserRows *rows, const UiKey *k, int height);
/* Draws it at `row` and below, over the whole width. */
void ui_chooser_draw(UiChooser *l, const UiChooserRows *rows, UiCanvas *c, int row, int height, int cols);
/* Whether all words occur in text, with ASCII in any case. */
bool ui_words_occur(const char *text, const char *words);
/* Draws text with its end at column `end`, in at most `cells` cells; returns where the column before it
 * ends. */
int ui_chooser_right(UiCanvas *c, int row, int end, int cells, UiStyle style, const char *text);

#endif
