/* SPDX-License-Identifier: GPL-3.0-or-later */
/* String operations shared by filters and methods. s is a string value; tags and markup are kept. */
#ifndef QSF_JINJA_STRINGS_H
#define QSF_JINJA_STRINGS_H

#include "src/jinja/eval.h"

typedef enum QsfJCase {
    QSF_JC_UPPER,
    QSF_JC_LOWER,
    QSF_JC_SWAP,
    QSF_JC_CAPITAL,     /* first character upper, the rest lower */
    QSF_JC_TITLE,       /* str.title(): every run of letters */
    QSF_JC_TITLE_FILTER /* title: the letter after white space, - ( { [ < */
} QsfJCase;
bool qsf_j_case(QsfJCtx *c, QsfJVal s, QsfJCase how, QsfJVal *out);

enum { QSF_JS_LEFT = 1, QSF_JS_RIGHT = 2 };
/* Strips white space, or the characters of chars if that is a string. */
bool qsf_j_strip(QsfJCtx *c, QsfJVal s, QsfJVal chars, unsigned sides, QsfJVal *out);

/* At most max replacements; max < 0: all. The result is plain text, even if s was not. */
bool qsf_j_replace(QsfJCtx *c, QsfJVal s, QsfJVal from, QsfJVal to, int64_t max, QsfJVal *out);

/* Centers s (QSF_JS_LEFT | QSF_JS_RIGHT), or aligns it left or right, in width characters. */
bool qsf_j_pad(QsfJCtx *c, QsfJVal s, int64_t width, unsigned sides, QsfJVal fill, QsfJVal *out);

/* Byte offset of part in s, searching from byte `from`, -1 if absent; the last one if reverse. */
int64_t qsf_j_find(const QsfJStr *s, const QsfJStr *part, size_t from, bool reverse);

#endif
