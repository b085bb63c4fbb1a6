/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schemas with names, which several places of a grammar refer to. What is made of a part of one is shared by
 * all of them. */
#include <stdlib.h>
#include <string.h>

#include "src/grammar/schema.h"

/* A schema that has its beginning at one place. */
typedef struct Start {
    struct Start *next;
    QsfJson *schema; /* rules are found by the addresses of schemas, so it stays */
} Start;

struct QsfNamedSchema {
    QsfNamedSchema *next;
    QsfSchema s;
    QsfJson *root;
    Start *starts;
    size_t name_len;
    char name[]; /* (name_len) */
};

static QsfNamedSchema *find(QsfGrammarBuild *b, const char *name, size_t len) {
    for (QsfNamedSchema *n = b->named; n != NULL && qsf_gbuild_step(b, 1); n = n->next)
        if (n->name_len == len && memcmp(n->name, name, len) == 0) return n;
    return NULL;
}

static int shown(size_t len) { return (int)(len < 100 ? len : 100); }

bool qsf_named_schema_add(QsfGrammarBuild *b, const char *name, size_t name_len, const char *text,
                          size_t len) {
    if (find(b, name, name_len) != NULL)
        return qsf_gbuild_fail(b, QSF_E_USAGE, "the schema \"%.*s\" is defined twice", shown(name_len),
                               name) != 0;
    QsfNamedSchema *n = b->failed ? NULL : calloc(1, sizeof *n + name_len);
    if (n == NULL) return qsf_gbuild_no_memory(b) != 0;
    n->s = (QsfSchema){ .b = b, .number = ++b->n_schemas };
    n->name_len = name_len;
    memcpy(n->name, name, name_len);
    n->next = b->named;
    b->named = n;
    n->root = qsf_schema_parse(&n->s, text, len);
    n->s.root = n->root;
    return n->root != NULL;
}

uint32_t qsf_node_schema_within(QsfGrammarBuild *b, const char *name, size_t name_len, const char *text,
                                size_t len) {
    QsfNamedSchema *n = find(b, name, name_len);
    if (n == NULL)
        return qsf_gbuild_fail(b, QSF_E_USAGE, "no schema \"%.*s\" is defined before this", shown(name_len),
                               name);
    Start *start = calloc(1, sizeof *start);
    if (start == NULL) return qsf_gbuild_no_memory(b);
    start->next = n->starts;
    n->starts = start;
    start->schema = qsf_schema_parse(&n->s, text, len);
    const uint32_t node = start->schema != NULL ? qsf_schema_start(&n->s, start->schema) : 0;
    return b->failed ? 0 : node;
}

static void free_starts(Start *s) {
    while (s != NULL) {
        Start *next = s->next;
        qsf_json_free(s->schema);
        free(s);
        s = next;
    }
}

void qsf_named_schemas_free(QsfGrammarBuild *b) {
    while (b->named != NULL) {
        QsfNamedSchema *n = b->named;
        b->named = n->next;
        qsf_schema_close(&n->s);
        free_starts(n->starts);
        qsf_json_free(n->root);
        free(n);
    }
}
