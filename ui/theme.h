/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Styles by purpose. A terminal without colours keeps the attributes. */
#ifndef QSF_UI_THEME_H
#define QSF_UI_THEME_H

typedef enum UiStyle {
    UI_STYLE_TEXT,
    UI_STYLE_TITLE,  /* the first line */
    UI_STYLE_USER,   /* label and margin of the user's messages */
    UI_STYLE_ANSWER, /* label of an answer */
    UI_STYLE_DIM,    /* rules, times, hints */
    UI_STYLE_NOTICE,
    UI_STYLE_ERROR,
    UI_STYLE_HEAD,  /* names in the status pane */
    UI_STYLE_VALUE, /* numbers in it */
    UI_STYLE_GOOD,  /* bars */
    UI_STYLE_WARN,  /* bars at 90 % or more */
    UI_STYLE_HOT,   /* layers that were waited for; marks show this without colours */
    UI_STYLE_KEY,   /* names of keys */
    UI_STYLE_QUEUED,
    UI_STYLE_COUNT
} UiStyle;

enum { UI_ATTR_BOLD = 1, UI_ATTR_DIM = 2, UI_ATTR_REVERSE = 4, UI_ATTR_UNDERLINE = 8 };

typedef struct UiStyleRow {
    short color;    /* 0..7 as in ANSI, -1 = the terminal's own */
    unsigned attrs; /* with colours */
    unsigned mono;  /* without */
} UiStyleRow;

/* Only the eight basic colours on the terminal's own background: readable on dark and light. */
const UiStyleRow *ui_theme(UiStyle s);

#endif
