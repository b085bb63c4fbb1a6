/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of ui/md/math.c share. */
#ifndef QSF_UI_MD_MATH_IMPL_H
#define QSF_UI_MD_MATH_IMPL_H

#include <stdint.h>

#include "ui/md/math.h"

/* The text between rows and columns of an environment, and around it. */
typedef struct UiMathEnv {
    const char *name, *open, *close, *row, *column;
    bool columns; /* {cc}: an argument follows its name */
} UiMathEnv;

/* A formula that is being read. */
typedef struct UiMath {
    const char *s;
    size_t i, end;
    unsigned depth;       /* groups inside each other */
    const UiMathEnv *env; /* the innermost one, NULL = none */
    bool ended;           /* \end was read */
} UiMath;

/* Reads what a command takes and appends what it means; text: the one of its row. */
typedef void UiMathFn(UiMath *m, UiBuf *out, const char *text);

typedef struct UiMathName {
    const char *name, *text;
    UiMathFn *fn;
} UiMathName;

/* The command \name[0..len), of at least one byte; NULL: not known. */
const UiMathName *ui_math_name(const char *name, size_t len);
/* The environment, or one whose rows are lines. */
const UiMathEnv *ui_math_env(const char *name, size_t len);

/* ---- ui/md/math.c: kinds of commands */
UiMathFn ui_math_symbol, ui_math_prefix, ui_math_operator, ui_math_word, ui_math_nothing, ui_math_skip,
    ui_math_group, ui_math_text, ui_math_fraction, ui_math_binomial, ui_math_root, ui_math_around,
    ui_math_delimiter, ui_math_begin, ui_math_end, ui_math_row, ui_math_space, ui_math_accent,
    ui_math_alphabet, ui_math_not, ui_math_over, ui_math_labelled, ui_math_color;

/* ---- ui/md/math_script.c */
/* Appends text[0..len) in superscripts (or subscripts), after ^ (or _) where there are none of some
 * character. */
void ui_math_script(UiBuf *out, bool super, const char *text, size_t len);
/* Appends text[0..len) with the combining character `mark` after its only letter, or as name(text). */
void ui_math_mark(UiBuf *out, const char *mark, const char *name, const char *text, size_t len);
/* Appends text[0..len) in double-struck letters. */
void ui_math_double_struck(UiBuf *out, const char *text, size_t len);

#endif
