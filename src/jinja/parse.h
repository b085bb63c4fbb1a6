/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the two halves of the parser: statements (jinja/parse.c) and expressions (jinja/expr.c) over the
 * tree builder (jinja/tree.c). A QsfJRef of 0 is a failure whose message is in p->err. */
#ifndef QSF_JINJA_PARSE_H
#define QSF_JINJA_PARSE_H

#include "src/jinja/ast.h"
#include "src/jinja/lex.h"

typedef struct QsfJParser {
    QsfJinja *t;
    QsfJLexer lx;
    QsfJToken cur, ahead;
    QsfErr *err;
    unsigned depth; /* nested expressions and blocks */
    unsigned loops; /* enclosing for loops, within the macro */
    unsigned soft;  /* enclosing ifs: an unknown filter there fails only when it is reached */
} QsfJParser;

typedef struct QsfJChain { /* list under construction */
    QsfJRef first, last;
    unsigned n;
} QsfJChain;

/* --- jinja/tree.c --- */
QsfJRef qsf_j_node(QsfJParser *p, QsfJKind kind, uint32_t line);
static inline QsfJNode *qsf_j_at(QsfJParser *p, QsfJRef r) { return &p->t->nodes[r]; }
/* False if item is 0. */
bool qsf_j_chain(QsfJParser *p, QsfJChain *l, QsfJRef item);
/* Index of a name or constant, or UINT32_MAX with p->err set. */
uint32_t qsf_j_atom(QsfJParser *p, const char *s, size_t len);
QsfJRef qsf_j_const_node(QsfJParser *p, QsfJVal v, uint32_t line);
/* QSF_E_MODEL "line N: ..." at the current token; returns 0. */
QsfJRef qsf_j_parse_error(QsfJParser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- tokens --- */
bool qsf_j_advance(QsfJParser *p);
bool qsf_j_peek(const QsfJParser *p, QsfJTok type, const char *text); /* text NULL: any */
bool qsf_j_peek_ahead(const QsfJParser *p, QsfJTok type, const char *text);
bool qsf_j_expect(QsfJParser *p, QsfJTok type, const char *text); /* and consumes it */
bool qsf_j_enter(QsfJParser *p); /* one level deeper, or an error; undo with p->depth-- */

/* --- literals: the current token and those that belong to it --- */
QsfJRef qsf_j_parse_string(QsfJParser *p); /* adjacent literals are one string */
QsfJRef qsf_j_parse_number(QsfJParser *p);
QsfJRef qsf_j_parse_name(QsfJParser *p);

/* --- jinja/expr.c --- */
/* with_cond false: no "a if b else c" (it belongs to the enclosing expression). */
QsfJRef qsf_j_parse_expr(QsfJParser *p, bool with_cond);
/* Expressions with commas make a tuple; stops before `end` (a name) if not NULL. An empty one is an error. */
QsfJRef qsf_j_parse_tuple(QsfJParser *p, bool with_cond, const char *end);
/*  filter | filter after subject, possibly none; `bare`: the first | is omitted (filter blocks). */
QsfJRef qsf_j_parse_filters(QsfJParser *p, QsfJRef subject, bool bare);

#endif
