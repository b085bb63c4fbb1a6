/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes and rules of a grammar: implements build.h. */
#include "src/grammar/build.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/hashmap.h"
#include "src/base/interrupt.h"

void qsf_gbuild_init(QsfGrammarBuild *b, QsfErr *err) {
    memset(b, 0, sizeof *b);
    b->err = err;
    (void)qsf_node_new(b, QSF_NODE_EMPTY, 0, 0, 0); /* node 0 */
}

void qsf_gbuild_free(QsfGrammarBuild *b) {
    qsf_named_schemas_free(b);
    for (uint32_t i = 0; i < b->n_graphs; i++) qsf_graph_free(b->graphs[i]);
    free(b->graphs);
    free(b->nodes);
    free(b->rules);
    free(b->rule_next);
    qsf_charset_free(&b->ranges);
    qsf_strbuf_free(&b->text);
}

uint32_t qsf_gbuild_fail(QsfGrammarBuild *b, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!b->failed && qsf_interrupt_check(b->err) == QSF_OK) qsf_err_setv(b->err, code, fmt, ap);
    va_end(ap);
    b->failed = true;
    return 0;
}

uint32_t qsf_gbuild_too_large(QsfGrammarBuild *b, const char *what, uint32_t most) {
    return qsf_gbuild_fail(b, QSF_E_USAGE, "%s is too large: its counts expand it beyond %u states", what,
                           most);
}

uint32_t qsf_gbuild_no_memory(QsfGrammarBuild *b) {
    if (!b->failed) qsf_err_memory(b->err, "the grammar");
    b->failed = true;
    return 0;
}

bool qsf_gbuild_step(QsfGrammarBuild *b, uint64_t n) {
    const uint64_t before = b->steps;
    b->steps += n;
    if (before >> 12 != b->steps >> 12 && qsf_interrupted())
        qsf_gbuild_fail(b, QSF_E_INTERRUPTED, "interrupted");
    if (b->steps > QSF_GBUILD_STEPS)
        qsf_gbuild_fail(b, QSF_E_USAGE, "the grammar takes too long to compile: it is too large");
    return !b->failed;
}

/* Makes space for one more; false without it. */
static bool grow(QsfGrammarBuild *b, void **p, uint32_t n, uint32_t *cap, size_t size, uint32_t most) {
    if (b->failed) return false;
    if (n < *cap) return true;
    if (n >= most) return qsf_gbuild_fail(b, QSF_E_USAGE, "the grammar is too large") != 0;
    const uint32_t more = *cap > 0 ? *cap * 2 : 64;
    void *q = realloc(*p, more * size);
    if (q == NULL) return qsf_gbuild_no_memory(b) != 0;
    *p = q;
    *cap = more;
    return true;
}

bool qsf_gbuild_push(QsfGrammarBuild *b, QsfNodeStack *s, uint32_t node) {
    void *v = s->v;
    const bool ok = grow(b, &v, s->n, &s->cap, sizeof *s->v, UINT32_MAX);
    s->v = v;
    if (ok) s->v[s->n++] = node;
    return ok;
}

uint32_t qsf_node_new(QsfGrammarBuild *b, QsfNodeKind kind, uint32_t x, uint32_t y, uint32_t z) {
    void *p = b->nodes;
    const bool ok = grow(b, &p, b->n_nodes, &b->cap_nodes, sizeof *b->nodes, QSF_GBUILD_NODES);
    b->nodes = p;
    if (!ok) return 0;
    b->nodes[b->n_nodes] = (QsfNode){ .kind = kind, .a = x, .b = y, .c = z };
    return b->n_nodes++;
}

uint32_t qsf_node_bytes(QsfGrammarBuild *b, const char *s, size_t len) {
    const size_t at = b->text.len;
    if (len == 0) return qsf_node_empty(b);
    if (at + len > QSF_GBUILD_NODES * 4u) return qsf_gbuild_fail(b, QSF_E_USAGE, "the grammar is too large");
    qsf_strbuf_add(&b->text, s, len);
    if (!qsf_strbuf_ok(&b->text)) return qsf_gbuild_no_memory(b);
    return qsf_node_new(b, QSF_NODE_BYTES, (uint32_t)at, (uint32_t)len, 0);
}

uint32_t qsf_node_text(QsfGrammarBuild *b, const char *s) { return qsf_node_bytes(b, s, strlen(s)); }

uint32_t qsf_node_set(QsfGrammarBuild *b, QsfCharset *s) {
    const uint32_t at = b->ranges.n;
    qsf_charset_normalize(s);
    if (s->n == 0 && !s->failed) return qsf_node_new(b, QSF_NODE_NEVER, 0, 0, 0);
    if (at + s->n > QSF_GBUILD_NODES || s->failed)
        return qsf_gbuild_fail(b, QSF_E_USAGE, "the grammar has too many ranges of characters");
    for (uint32_t i = 0; i < s->n; i++) {
        if (b->ranges.n == b->ranges.cap) {
            const uint32_t cap = b->ranges.cap > 0 ? b->ranges.cap * 2 : 64;
            QsfRange *r = realloc(b->ranges.r, cap * sizeof *r);
            if (r == NULL) return qsf_gbuild_no_memory(b);
            b->ranges.r = r;
            b->ranges.cap = cap;
        }
        b->ranges.r[b->ranges.n++] = s->r[i];
    }
    return qsf_node_new(b, QSF_NODE_SET, at, s->n, 0);
}

uint32_t qsf_node_range(QsfGrammarBuild *b, uint32_t lo, uint32_t hi) {
    QsfCharset s = { 0 };
    qsf_charset_add(&s, lo, hi);
    const uint32_t node = qsf_node_set(b, &s);
    qsf_charset_free(&s);
    return node;
}

uint32_t qsf_node_list(QsfGrammarBuild *b, QsfNodeKind kind) { return qsf_node_new(b, kind, 0, 0, 0); }

void qsf_node_add(QsfGrammarBuild *b, uint32_t list, uint32_t child) {
    if (b->failed) return;
    QsfNode *l = &b->nodes[list];
    if (l->a == 0)
        l->a = child;
    else
        b->nodes[l->b].next = child;
    l->b = child;
}

uint32_t qsf_node_repeat(QsfGrammarBuild *b, uint32_t child, uint32_t min, uint32_t max) {
    return qsf_node_new(b, QSF_NODE_REPEAT, child, min, max);
}

uint32_t qsf_node_graph(QsfGrammarBuild *b, QsfGraph *g, bool json) {
    void *p = b->graphs;
    const bool ok = grow(b, &p, b->n_graphs, &b->cap_graphs, sizeof *b->graphs, QSF_GBUILD_RULES);
    b->graphs = p;
    if (!ok) {
        qsf_graph_free(g);
        return 0;
    }
    b->graphs[b->n_graphs] = g;
    return qsf_node_new(b, QSF_NODE_GRAPH, b->n_graphs++, json, 0);
}

static uint32_t slot_of(const char *name, size_t len) { return (uint32_t)(qsf_hash_bytes(name, len) % 1024); }

uint32_t qsf_rule_new(QsfGrammarBuild *b, const char *name, size_t len) {
    void *p = b->rules;
    const uint32_t before = b->cap_rules, slot = slot_of(name, len), i = b->n_rules;
    const bool ok = grow(b, &p, i, &b->cap_rules, sizeof *b->rules, QSF_GBUILD_RULES);
    b->rules = p;
    if (!ok) return UINT32_MAX;
    if (b->cap_rules > before) {
        uint32_t *next = realloc(b->rule_next, b->cap_rules * sizeof *next);
        if (next == NULL) b->cap_rules = before;
        if (next == NULL) return qsf_gbuild_no_memory(b), UINT32_MAX;
        b->rule_next = next;
    }
    b->rules[i] = (QsfRule){ (uint32_t)b->text.len, (uint32_t)len, QSF_NO_RULE_BODY, 0, 0 };
    qsf_strbuf_add(&b->text, name, len);
    if (!qsf_strbuf_ok(&b->text)) return qsf_gbuild_no_memory(b), UINT32_MAX;
    b->rule_next[i] = b->rule_table[slot];
    b->rule_table[slot] = ++b->n_rules;
    return i;
}

uint32_t qsf_rule_named(QsfGrammarBuild *b, const char *name, size_t len) {
    for (uint32_t i = b->rule_table[slot_of(name, len)]; i > 0; i = b->rule_next[i - 1]) {
        const QsfRule *r = &b->rules[i - 1];
        if (r->name_len == len && memcmp(b->text.data + r->name, name, len) == 0) return i - 1;
    }
    return qsf_rule_new(b, name, len);
}
