/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Languages with the lexical structure of C: comments in slashes, strings in double quotes, calls with
 * parentheses. Their files hold words and flags. Internal to ui/code. */
#ifndef QSF_UI_CODE_C_LIKE_H
#define QSF_UI_CODE_C_LIKE_H

#include "ui/code/scan.h"

enum {
    UI_C_DIRECTIVES = 1,   /* a line that begins with # */
    UI_C_RAW = 2,          /* R"x(...)x" of C++ */
    UI_C_SUFFIX_T = 4,     /* names that end in _t are types */
    UI_C_CAPITAL = 8,      /* names that begin with a capital letter are types */
    UI_C_DECORATOR = 16,   /* @name */
    UI_C_TEMPLATE = 32,    /* `text ${code} text`, regular expressions, 'strings', $ in names */
    UI_C_BACKQUOTE = 64,   /* `raw text` of Go */
    UI_C_TEXT_BLOCK = 128, /* """ of Java */
    UI_C_RUST = 256        /* r#"..."#, lifetimes, #[attributes], macros!, nested comments, long strings */
};

/* UiLexer.line of these languages. */
void ui_c_like_line(UiScan *s);

#endif
