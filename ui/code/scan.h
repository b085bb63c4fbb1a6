/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the lexers share: a cursor over one line, the runs that were found, and tables of words. Internal to
 * ui/code. */
#ifndef QSF_UI_CODE_SCAN_H
#define QSF_UI_CODE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/code/highlight.h"

/* Sorted by strcmp, for binary search. */
typedef struct UiWords {
    const char *const *words;
    size_t n;
} UiWords;
#define UI_WORDS(list) \
    { list, sizeof(list) / sizeof *(list) }

/* A part of a line. Everything before `at` has been put into runs. */
typedef struct UiScan {
    const char *s;
    size_t len, at;
    UiCodeState *st;
    const struct UiLexer *x;
    UiCodeRun *runs; /* (max), n of them in use */
    size_t n, max;
    size_t keyword; /* position after the last keyword, 0 = none */
    unsigned flag;  /* of the lexer, within this line */
    bool hint;      /* the same */
} UiScan;

/* A language. */
struct UiLexer {
    const char *names;       /* the usual name and others, lower case, separated by commas */
    void (*line)(UiScan *s); /* takes [at, len) */
    UiWords keywords, types; /* or { NULL, 0 } */
    unsigned flags;          /* of the function */
};

extern const UiLexer ui_lexer_c, ui_lexer_cpp, ui_lexer_python, ui_lexer_js, ui_lexer_ts, ui_lexer_go,
    ui_lexer_rust, ui_lexer_java, ui_lexer_shell, ui_lexer_console, ui_lexer_sql, ui_lexer_json,
    ui_lexer_yaml, ui_lexer_html, ui_lexer_css, ui_lexer_diff, ui_lexer_toml, ui_lexer_make,
    ui_lexer_markdown;
/* All of them; NULL ends the list. */
extern const UiLexer *const ui_code_lexers[];

/* The byte n after the cursor, '\0' after the end of the line. */
static inline char ui_scan_peek(const UiScan *s, size_t n) {
    return n < s->len - s->at ? s->s[s->at + n] : '\0';
}
/* The byte before the cursor, '\0' at the beginning of the line. */
static inline char ui_scan_before(const UiScan *s) { return s->at > 0 ? s->s[s->at - 1] : '\0'; }
static inline bool ui_scan_end(const UiScan *s) { return s->at >= s->len; }
static inline bool ui_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool ui_is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static inline bool ui_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
/* A character of a name; those that are not ASCII all are. */
static inline bool ui_is_word(char c) {
    return ui_is_alpha(c) || ui_is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The next len bytes, at most the rest of the line, are of this kind. */
void ui_scan_take(UiScan *s, size_t len, UiCodeClass kind);
/* All bytes up to position `end` of the line. */
void ui_scan_take_to(UiScan *s, size_t end, UiCodeClass kind);
/* The rest. */
void ui_scan_rest(UiScan *s, UiCodeClass kind);
/* The blanks at the cursor, as text. */
void ui_scan_blanks(UiScan *s);
/* The bracket c at the cursor, as text; counts how deep the cursor is in [] and {}. */
void ui_scan_bracket(UiScan *s, char c);
/* Length of the name at the cursor; more: a character that names may have too, or '\0'. */
size_t ui_scan_word(const UiScan *s, char more);
/* Length of the number at the cursor, with separators, exponent and unit. */
size_t ui_scan_number(const UiScan *s);
/* Position of text in the line, at or after the cursor; s->len if it is not there. */
size_t ui_scan_find(const UiScan *s, const char *text);
/* Whether text is next in the line. */
bool ui_scan_is(const UiScan *s, const char *text);
/* The same whatever its case; text is in lower case. */
bool ui_scan_is_nocase(const UiScan *s, const char *text);
/* Takes a string through its closing quote; the cursor is after the opening one. escape: the character that
 * makes the next one literal, '\0' = none. False if the line ended first; *escaped (may be NULL) is whether
 * its last character was such an escape. */
bool ui_scan_string(UiScan *s, char quote, char escape, bool *escaped);
/* Takes a comment, or another text of this kind, through `end`. False if it does not end in this line. */
bool ui_scan_through(UiScan *s, const char *end, UiCodeClass kind);
/* Whether the table has this word. */
bool ui_words_have(const UiWords *w, const char *word, size_t len);
/* The same for words in lower case, whatever the case of word. */
bool ui_words_have_nocase(const UiWords *w, const char *word, size_t len);
/* A hash of text, never 0. */
uint32_t ui_scan_tag(const char *text, size_t len);

#endif
