/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens of a template. White space control (the signs - and +, trim_blocks, lstrip_blocks) is handled here,
 * as defined by pallets/jinja src/jinja2/lexer.py. */
#ifndef QSF_JINJA_LEX_H
#define QSF_JINJA_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

#define QSF_J_NESTING 64 /* brackets, expressions, blocks, postfix operators: nesting levels of the source */

typedef enum QsfJTok {
    QSF_JT_EOF,
    QSF_JT_DATA,
    QSF_JT_VAR_BEGIN,
    QSF_JT_VAR_END,
    QSF_JT_BLOCK_BEGIN,
    QSF_JT_BLOCK_END,
    QSF_JT_NAME,
    QSF_JT_STRING,
    QSF_JT_INT,
    QSF_JT_FLOAT,
    QSF_JT_OP
} QsfJTok;

typedef struct QsfJToken {
    QsfJTok type;
    uint32_t line;
    const char *p; /* in the source; of a string between its quotes, escapes undecoded */
    size_t len;
} QsfJToken;

typedef struct QsfJLexer {
    const char *s;
    size_t len, pos;
    uint32_t line;
    bool line_starting; /* only the end of a tag precedes pos on its line */
    enum { QSF_JL_DATA, QSF_JL_RAW, QSF_JL_VAR, QSF_JL_BLOCK } mode;
    QsfJTok pending; /* a BEGIN token that follows the data just returned, or EOF for none */
    char open[QSF_J_NESTING];
    unsigned n_open;
} QsfJLexer;

/* Begins at s[0..len), which outlives the lexer. */
void qsf_j_lex_init(QsfJLexer *lx, const char *s, size_t len);
/* QSF_E_MODEL "line N: ...". */
int qsf_j_lex_next(QsfJLexer *lx, QsfJToken *out, QsfErr *err);

/* Length of the white space character (Python's str.isspace) at s[0..len), 0 if there is none. */
size_t qsf_j_space(const char *s, size_t len);
/* Length of s[0..len) without trailing white space. */
size_t qsf_j_rstrip(const char *s, size_t len);

#endif
