/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grammars that texts are held to: read from GBNF, a JSON Schema, a regular expression or a rule for words,
 * and compiled to one representation, rules over bytes. The text of a grammar is untrusted: nesting, size
 * and time are limited. A grammar is immutable: any thread may use it, an automaton (automaton.h) has its
 * state. */
#ifndef QSF_GRAMMAR_GRAMMAR_H
#define QSF_GRAMMAR_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

#define QSF_GRAMMAR_TEXT_MAX (1u << 20) /* bytes of the text of a grammar */

typedef enum QsfGrammarKind {
    QSF_KIND_GBNF,
    QSF_KIND_SCHEMA, /* JSON Schema; the text "any" is any JSON */
    QSF_KIND_REGEX,  /* the whole text has to match */
    QSF_KIND_WORDS,  /* words match the text before its first newline, or what follows it */
    QSF_KIND_N
} QsfGrammarKind;

typedef struct QsfGrammar QsfGrammar;

/* Compiles text[0..len), which need not be terminated. QSF_E_USAGE: what is wrong and where (line and
 * column, or the path in the schema), also what is not supported; QSF_E_RUNTIME without memory,
 * QSF_E_INTERRUPTED. Allocates on the heap of libc: at most about 60 MB while it compiles. */
int qsf_grammar_new(QsfGrammar **out, QsfGrammarKind kind, const char *text, size_t len, QsfErr *err);
void qsf_grammar_free(QsfGrammar *g); /* NULL is allowed */
/* Bytes of memory that it keeps. */
uint64_t qsf_grammar_bytes(const QsfGrammar *g);

#endif
