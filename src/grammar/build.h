/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the three readers build and emit.c compiles: rules whose bodies are trees of nodes. A node has one
 * parent. Failures are sticky: the first one is in err, and the functions then return node 0. All sizes are
 * limited, because grammars are untrusted. One thread. */
#ifndef QSF_GRAMMAR_BUILD_H
#define QSF_GRAMMAR_BUILD_H

#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/grammar/charset.h"
#include "src/grammar/graph.h"

#define QSF_GBUILD_NODES 1000000u
#define QSF_GBUILD_RULES 100000u
#define QSF_GBUILD_DEPTH 200u       /* nested groups */
#define QSF_GBUILD_STEPS 200000000u /* of some 10 ns: about two seconds */
#define QSF_REPEAT_MAX   2000u
#define QSF_NO_LIMIT     UINT32_MAX
#define QSF_NO_RULE_BODY UINT32_MAX

typedef enum QsfNodeKind {
    QSF_NODE_EMPTY,
    QSF_NODE_NEVER,  /* matches nothing */
    QSF_NODE_SET,    /* ranges[a..a+b) */
    QSF_NODE_BYTES,  /* text[a..a+b) */
    QSF_NODE_SEQ,    /* children from a to b, joined by next */
    QSF_NODE_ALT,    /* the same */
    QSF_NODE_REPEAT, /* child a, b to c times */
    QSF_NODE_RULE,   /* rule a */
    QSF_NODE_TOKEN,  /* the token a of the vocabulary, or (b) any other one */
    QSF_NODE_BEGIN,  /* ^ of a regular expression */
    QSF_NODE_END,    /* $ */
    QSF_NODE_GRAPH   /* graph a, as text or (b) as the inside of a JSON string */
} QsfNodeKind;

typedef struct QsfNode {
    QsfNodeKind kind;
    uint32_t a, b, c, next;
} QsfNode;

typedef struct QsfRule {
    uint32_t name, name_len; /* in text */
    uint32_t node;           /* its body, QSF_NO_RULE_BODY = not defined yet */
    uint32_t line, col;      /* where it is named first, 0 = generated */
} QsfRule;

typedef struct QsfGrammarBuild {
    QsfNode *nodes;
    QsfCharset ranges; /* of all sets, one after another */
    QsfStrbuf text;    /* names and literals */
    QsfRule *rules;
    QsfGraph **graphs; /* owned */
    uint32_t n_nodes, cap_nodes, n_rules, cap_rules, n_graphs, cap_graphs;
    uint32_t root;      /* rule */
    uint32_t n_schemas; /* that were read */
    struct QsfNamedSchema *named;
    uint32_t rule_table[1024]; /* last rule + 1 of each hash; rules are chained by rule_next */
    uint32_t *rule_next;
    uint64_t steps;
    QsfErr *err;
    bool failed;
} QsfGrammarBuild;

/* err must outlive the build. */
void qsf_gbuild_init(QsfGrammarBuild *b, QsfErr *err);
void qsf_gbuild_free(QsfGrammarBuild *b);
/* Records a failure; returns 0. It is QSF_E_INTERRUPTED, whatever the code, if the thread is to stop. */
uint32_t qsf_gbuild_fail(QsfGrammarBuild *b, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for what repetition counts make too large: more than `most` states. */
uint32_t qsf_gbuild_too_large(QsfGrammarBuild *b, const char *what, uint32_t most);
uint32_t qsf_gbuild_no_memory(QsfGrammarBuild *b);
/* Child nodes of the lists that are being compiled, so that a list of any length needs no recursion. */
typedef struct QsfNodeStack {
    uint32_t *v; /* (n), freed by the owner */
    uint32_t n, cap;
} QsfNodeStack;
/* Appends a node; false without memory: the build has failed. */
bool qsf_gbuild_push(QsfGrammarBuild *b, QsfNodeStack *s, uint32_t node);
/* Counts steps of work that grows faster than the text. Returns false once the build has failed: also when
 * the thread is to stop (interrupt.h), or when these were more steps than QSF_GBUILD_STEPS. */
bool qsf_gbuild_step(QsfGrammarBuild *b, uint64_t n);

uint32_t qsf_node_new(QsfGrammarBuild *b, QsfNodeKind kind, uint32_t x, uint32_t y, uint32_t z);
static inline uint32_t qsf_node_empty(QsfGrammarBuild *b) { return qsf_node_new(b, QSF_NODE_EMPTY, 0, 0, 0); }
uint32_t qsf_node_bytes(QsfGrammarBuild *b, const char *s, size_t len);
uint32_t qsf_node_text(QsfGrammarBuild *b, const char *s);
/* Takes the ranges of the set, normalized; the set stays with the caller. */
uint32_t qsf_node_set(QsfGrammarBuild *b, QsfCharset *s);
uint32_t qsf_node_range(QsfGrammarBuild *b, uint32_t lo, uint32_t hi);
/* A list without children: SEQ or ALT. An ALT without children matches nothing. */
uint32_t qsf_node_list(QsfGrammarBuild *b, QsfNodeKind kind);
void qsf_node_add(QsfGrammarBuild *b, uint32_t list, uint32_t child);
/* Returns a list of alternatives in which the texts among the n of a list have become a tree of their common
 * beginnings (word_tree.c); the list itself if they are few. */
uint32_t qsf_node_words(QsfGrammarBuild *b, uint32_t list, size_t n);
uint32_t qsf_node_repeat(QsfGrammarBuild *b, uint32_t child, uint32_t min, uint32_t max);
static inline uint32_t qsf_node_rule(QsfGrammarBuild *b, uint32_t rule) {
    return qsf_node_new(b, QSF_NODE_RULE, rule, 0, 0);
}
/* Takes g, also when it fails. */
uint32_t qsf_node_graph(QsfGrammarBuild *b, QsfGraph *g, bool json);

/* Reads a JSON Schema: a node for what is valid for it. A failure has the path in the schema. */
uint32_t qsf_node_schema(QsfGrammarBuild *b, const char *text, size_t len);

/* --- schema_named.c: schemas that others refer to --- */
typedef struct QsfNamedSchema QsfNamedSchema;
/* Reads a schema and gives it a name, which must be a new one. Returns false on failure. */
bool qsf_named_schema_add(QsfGrammarBuild *b, const char *name, size_t name_len, const char *text,
                          size_t len);
/* As qsf_node_schema; the references of the schema lead into the named one. */
uint32_t qsf_node_schema_within(QsfGrammarBuild *b, const char *name, size_t name_len, const char *text,
                                size_t len);
void qsf_named_schemas_free(QsfGrammarBuild *b);

/* Returns the rule of a name, which is added if there is none; UINT32_MAX on failure. */
uint32_t qsf_rule_named(QsfGrammarBuild *b, const char *name, size_t len);
/* Adds a rule without a body. */
uint32_t qsf_rule_new(QsfGrammarBuild *b, const char *name, size_t len);

/* The readers: they fill b. QSF_E_USAGE with line and column, or the path in the schema. */
int qsf_read_gbnf(QsfGrammarBuild *b, const char *text, size_t len);
int qsf_read_regex(QsfGrammarBuild *b, const char *text, size_t len);
int qsf_read_schema(QsfGrammarBuild *b, const char *text, size_t len);
/* --only: words that match the text up to its first NUL, between them what matches the rest. */
int qsf_read_words(QsfGrammarBuild *b, const char *text, size_t len);

#endif
