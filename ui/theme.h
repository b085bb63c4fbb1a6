/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Styles by purpose, and themes: how each of them is shown. A terminal without colors keeps the attributes.
 * Pure functions, any thread. */
#ifndef QSF_UI_THEME_H
#define QSF_UI_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum UiStyle {
    UI_STYLE_TEXT,
    UI_STYLE_TITLE,  /* the first line */
    UI_STYLE_USER,   /* label and margin of the user's messages */
    UI_STYLE_ANSWER, /* label of an answer */
    UI_STYLE_REASONING,
    UI_STYLE_DIM, /* rules, times, hints */
    UI_STYLE_NOTICE,
    UI_STYLE_ERROR,
    UI_STYLE_HEAD,  /* names in the status pane */
    UI_STYLE_VALUE, /* numbers in it */
    UI_STYLE_GOOD,  /* bars */
    UI_STYLE_WARN,  /* bars at 90 % or more */
    UI_STYLE_HOT,   /* layers that were waited for; marks show this without colors */
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

/* A color: 0..255 as in xterm's palette, UI_COLOR_RGB + 0xRRGGBB, or that of the terminal. */
#define UI_COLOR_DEFAULT (-1)
#define UI_COLOR_RGB     0x1000000

typedef struct UiStyleRow {
    int32_t fg, bg;
    uint8_t attrs; /* with colors */
    uint8_t mono;  /* without */
    bool own;      /* of the configuration file: in a terminal with few colors it gets the nearest ones */
} UiStyleRow;

typedef struct UiTheme {
    UiStyleRow rows[UI_STYLE_COUNT];
} UiTheme;

/* What is known of the terminal's background. */
typedef enum UiBackground { UI_BACKGROUND_UNKNOWN, UI_BACKGROUND_DARK, UI_BACKGROUND_LIGHT } UiBackground;

/* How many colors a terminal has. */
typedef enum UiDepth { UI_DEPTH_NONE, UI_DEPTH_8, UI_DEPTH_16, UI_DEPTH_256, UI_DEPTH_DIRECT } UiDepth;

/* A style on a terminal of some depth: colors that it has (UI_COLOR_RGB only for UI_DEPTH_DIRECT), and
 * attributes. */
typedef struct UiPaint {
    int32_t fg, bg;
    unsigned attrs;
} UiPaint;

/* Name of built-in theme i, or NULL: auto, dark, light, ansi, mono. */
const char *ui_theme_at(size_t i);
bool ui_theme_is_built_in(const char *name);
/* Fills t with a built-in theme; "auto" is dark, light, or on an unknown background ansi: the eight basic
 * colors of the terminal. false: there is no such theme, and t is that for auto. */
bool ui_theme_begin(UiTheme *t, const char *name, UiBackground background);
/* Sets a role ("user", "code-keyword", "heading" for all levels) to a value such as "cyan", "underline" or
 * "#ffaf00 on 236 bold": the name of a basic color, bright-NAME, default, 0 to 255 or #rrggbb; "on" and
 * another one; and the attributes bold, dim, italic, underline and reverse. false with a message in err; t
 * may be NULL, to check only. */
bool ui_theme_set(UiTheme *t, const char *role, const char *value, char *err, size_t cap);
/* Name of role i, or NULL. */
const char *ui_theme_role(size_t i);
UiPaint ui_theme_paint(const UiTheme *t, UiStyle s, UiDepth depth);

/* The answer to a question for the background (OSC 11), ESC ] 11 ; rgb:RRRR/GGGG/BBBB and BEL or ESC \
 * (xterm's ctlseqs). Unknown if it is something else. */
UiBackground ui_theme_answer(const char *bytes, size_t len);
/* The value of COLORFGBG, "15;0" or "0;default;15", or NULL. */
UiBackground ui_theme_colorfgbg(const char *value);

#endif
