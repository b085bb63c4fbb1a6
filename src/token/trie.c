/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Built level by level from the sorted texts: the texts below a node are a range of them. */
#include "src/token/trie.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"

#define LAST     0x100u
#define ID_SHIFT 9

uint64_t qsf_trie_bytes(uint64_t text_bytes) { return (text_bytes + 1) * sizeof(QsfTrieNode) + 16; }

/* Scratch memory for building. */
typedef struct Build {
    const QsfTrieText *text; /* (n) in their order */
    uint32_t n;
    bool backward;
    uint32_t *lo, *hi, *depth; /* (nodes) the texts below each node, and the length of their common prefix */
} Build;

static int by_value(const QsfTrieText *a, const QsfTrieText *b) {
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static int forward_order(const void *a, const void *b) {
    const QsfTrieText *x = a, *y = b;
    int c = memcmp(x->s, y->s, x->len < y->len ? x->len : y->len);
    return c != 0 ? c : by_value(x, y);
}

static unsigned char from_end(const QsfTrieText *t, uint32_t i) {
    return (unsigned char)t->s[t->len - 1 - i];
}

static int backward_order(const void *a, const void *b) {
    const QsfTrieText *x = a, *y = b;
    uint32_t n = x->len < y->len ? x->len : y->len, i = 0;
    while (n - i >= 8 && memcmp(x->s + x->len - i - 8, y->s + y->len - i - 8, 8) == 0) i += 8;
    while (i < n && from_end(x, i) == from_end(y, i)) i++;
    return i < n ? (from_end(x, i) < from_end(y, i) ? -1 : 1) : by_value(x, y);
}

static unsigned char byte_of(const Build *b, uint32_t i, uint32_t depth) {
    return b->backward ? from_end(&b->text[i], depth) : (unsigned char)b->text[i].s[depth];
}

static uint32_t count_nodes(const Build *b) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t len = b->text[i].len, before = i > 0 ? b->text[i - 1].len : 0, shared = 0;
        while (shared < len && shared < before && byte_of(b, i, shared) == byte_of(b, i - 1, shared))
            shared++;
        n += len - shared;
    }
    return n;
}

/* Adds the children of node i after all existing nodes. */
static void expand(QsfTrie *t, Build *b, uint32_t i) {
    uint32_t lo = b->lo[i], hi = b->hi[i], depth = b->depth[i];
    for (; lo < hi && b->text[lo].len == depth; lo++)
        if (t->node[i].word >> ID_SHIFT == 0) t->node[i].word |= (b->text[lo].value + 1) << ID_SHIFT;
    if (lo == hi) return;
    t->node[i].child = t->n;
    while (lo < hi) {
        unsigned byte = byte_of(b, lo, depth);
        uint32_t end = lo, child = t->n++;
        while (end < hi && byte_of(b, end, depth) == byte) end++;
        t->node[child].word = byte | (end == hi ? LAST : 0);
        b->lo[child] = lo;
        b->hi[child] = end;
        b->depth[child] = depth + 1;
        if (i == 0) t->first[byte] = child;
        lo = end;
    }
}

static int build(QsfTrie *t, Build *b, QsfArena *arena, QsfErr *err) {
    uint32_t nodes = count_nodes(b);
    t->node = qsf_arena_alloc(arena, nodes * sizeof *t->node, sizeof *t->node, err);
    if (t->node == NULL) return err->code;
    b->lo = calloc(3 * (size_t)nodes, sizeof *b->lo);
    if (b->lo == NULL) return qsf_err_memory(err, "a vocabulary's trie");
    b->hi = b->lo + nodes;
    b->depth = b->hi + nodes;
    b->hi[0] = b->n;
    t->n = 1;
    int rc = QSF_OK;
    for (uint32_t i = 0; i < t->n && rc == QSF_OK; i++) {
        expand(t, b, i);
        if (i % 4096 == 0) rc = qsf_interrupt_check(err);
    }
    return rc;
}

int qsf_trie_build(QsfTrie *t, QsfTrieText *text, uint32_t n, bool backward, QsfArena *arena, QsfErr *err) {
    Build b = { .text = text, .n = n, .backward = backward };
    *t = (QsfTrie){ 0 };
    if (n > 0) qsort(text, n, sizeof *text, backward ? backward_order : forward_order);
    int rc = build(t, &b, arena, err);
    free(b.lo);
    return rc;
}

int qsf_trie_init(QsfTrie *t, const QsfVocab *v, QsfTrieFilter keep, size_t max_len, QsfArena *arena,
                  QsfErr *err) {
    QsfTrieText *text = malloc((v->n + 1) * sizeof *text);
    uint32_t n = 0;
    if (text == NULL) return qsf_err_memory(err, "a vocabulary's trie");
    for (uint32_t i = 0; i < v->n; i++) {
        size_t len;
        const char *s = qsf_vocab_text(v, (int32_t)i, &len);
        if (len > 0 && len <= max_len && keep(v, (int32_t)i))
            text[n++] = (QsfTrieText){ .s = s, .len = (uint32_t)len, .value = i };
    }
    int rc = qsf_trie_build(t, text, n, false, arena, err);
    free(text);
    return rc;
}

uint32_t qsf_trie_step(const QsfTrie *t, uint32_t node, unsigned char byte) {
    if (node == 0) return t->first[byte];
    for (uint32_t i = t->node[node].child; i != 0; i++) {
        unsigned b = t->node[i].word & 0xFF;
        if (b >= byte) return b == byte ? i : 0;
        if (t->node[i].word & LAST) return 0;
    }
    return 0;
}

int32_t qsf_trie_token(const QsfTrie *t, uint32_t node) {
    return (int32_t)(t->node[node].word >> ID_SHIFT) - 1;
}

unsigned char qsf_trie_byte(const QsfTrie *t, uint32_t node, bool *last) {
    *last = t->node[node].word & LAST;
    return (unsigned char)(t->node[node].word & 0xFF);
}
