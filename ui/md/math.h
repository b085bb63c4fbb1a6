/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mathematics of answers, which models write as LaTeX, as a line of text: "\frac{a}{b^2}" is "a/b²". It is
 * for reading, not exact: what has no equivalent in text is shown as in the source. Any thread. */
#ifndef QSF_UI_MD_MATH_H
#define QSF_UI_MD_MATH_H

#include "ui/buf.h"

/* A formula in a text, with its delimiters: bytes [off, off + len); without them: [in, in + in_len). */
typedef struct UiMdMath {
    size_t off, len, in, in_len;
    bool closed; /* false: its end is not in the text; it ends with the paragraph */
} UiMdMath;

/* Is a formula at s[at], a backslash or a dollar sign? It is between \( \), \[ \], $$ $$, $ $ or
 * \begin{} \end{}, without a blank line in it; between single dollar signs, on one line. Prices, variables of
 * shells and escaped brackets are not formulas. It may be open at the end of its paragraph, except after one
 * dollar sign. */
bool ui_md_math_at(const char *s, size_t len, size_t at, UiMdMath *m);
/* The bytes of its closing delimiter; text is what it was found in. */
const char *ui_md_math_closer(const char *text, const UiMdMath *m, size_t *len);
/* Appends the LaTeX s[0..len), without delimiters, as text to out; \\ is a newline. What is missing at its
 * end counts as closed. false without memory. */
bool ui_md_math(UiBuf *out, const char *s, size_t len);

#endif
