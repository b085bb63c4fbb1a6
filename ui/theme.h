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
    UI_STYLE_MATCH, /* what was searched for */
    UI_STYLE_H1,    /* headings of answers */
    UI_STYLE_H2,
    UI_STYLE_H3,     /* and of the levels below */
    UI_STYLE_MARK,   /* bullets and numbers of items */
    UI_STYLE_QUOTE,  /* bars of quotes */
    UI_STYLE_LINK,   /* text of a link */
    UI_STYLE_INLINE, /* `code` in a sentence */
    UI_STYLE_SURE,   /* tokens, by what the model thought of them */
    UI_STYLE_LIKELY,
    UI_STYLE_UNSURE,
    UI_STYLE_GUESS,
    UI_STYLE_CODE, /* lines of code: this and the following are in the order of UiCodeClass */
    UI_STYLE_CODE_KEYWORD,
    UI_STYLE_CODE_TYPE,
    UI_STYLE_CODE_STRING,
    UI_STYLE_CODE_NUMBER,
    UI_STYLE_CODE_COMMENT,
    UI_STYLE_CODE_DIRECTIVE,
    UI_STYLE_CODE_FUNCTION,
    UI_STYLE_CODE_KEY,
    UI_STYLE_CODE_ADDED,
    UI_STYLE_CODE_REMOVED,
    UI_STYLE_CODE_HUNK,
    UI_STYLE_COUNT
} UiStyle;

/* A terminal that has no italics underlines; one that has no strike-through dims. */
enum {
    UI_ATTR_BOLD = 1,
    UI_ATTR_DIM = 2,
    UI_ATTR_REVERSE = 4,
    UI_ATTR_UNDERLINE = 8,
    UI_ATTR_ITALIC = 16,
    UI_ATTR_STRIKE = 32
};

typedef struct UiStyleRow {
    short color;    /* 0..7 as in ANSI, -1 = the terminal's own */
    unsigned attrs; /* with colours */
    unsigned mono;  /* without */
} UiStyleRow;

/* Only the eight basic colours on the terminal's own background: readable on dark and light. */
const UiStyleRow *ui_theme(UiStyle s);

#endif
