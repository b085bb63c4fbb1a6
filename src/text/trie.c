/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Built level by level from the sorted texts: the texts below a node are a range of them. */
#include "src/text/trie.h"

#include <stdlib.h>
#include <string.h>

#define LAST     0x100u
#define ID_SHIFT 9

uint64_t qsf_trie_bytes(uint64_t text_bytes) { return (text_bytes + 1) * sizeof(QsfTrieNode) + 16; }

static const unsigned char *text_of(const QsfVocab *v, uint32_t id, size_t *len) {
    return (const unsigned char *)qsf_vocab_text(v, (int32_t)id, len);
}

static int compare(const void *a, const void *b, void *vocab) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t nx, ny;
    const unsigned char *tx = text_of(vocab, x, &nx), *ty = text_of(vocab, y, &ny);
    int c = memcmp(tx, ty, nx < ny ? nx : ny);
    if (c != 0) return c;
    if (nx != ny) return nx < ny ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Scratch memory for building. */
typedef struct Build {
    const QsfVocab *v;
    uint32_t *id; /* (n) in the order of their texts */
    uint32_t n;
    uint32_t *lo, *hi, *depth; /* (nodes) the texts below each node, and the length of their common prefix */
} Build;

static uint32_t common(const QsfVocab *v, uint32_t a, uint32_t b, size_t *len_b) {
    size_t len_a, i = 0;
    const unsigned char *ta = text_of(v, a, &len_a), *tb = text_of(v, b, len_b);
    while (i < len_a && i < *len_b && ta[i] == tb[i]) i++;
    return (uint32_t)i;
}

static uint32_t count_nodes(const Build *b) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        size_t len;
        (void)text_of(b->v, b->id[i], &len);
        uint32_t shared = i > 0 ? common(b->v, b->id[i - 1], b->id[i], &len) : 0;
        n += (uint32_t)len - shared;
    }
    return n;
}

static unsigned byte_at(const Build *b, uint32_t i, uint32_t depth) {
    size_t len;
    return text_of(b->v, b->id[i], &len)[depth];
}

/* Adds the children of node i after all existing nodes. */
static void expand(QsfTrie *t, Build *b, uint32_t i) {
    uint32_t lo = b->lo[i], hi = b->hi[i], depth = b->depth[i];
    size_t len;
    for (; lo < hi && (text_of(b->v, b->id[lo], &len), len == depth); lo++)
        if (t->node[i].word >> ID_SHIFT == 0) t->node[i].word |= (b->id[lo] + 1) << ID_SHIFT;
    if (lo == hi) return;
    t->node[i].child = t->n;
    while (lo < hi) {
        unsigned byte = byte_at(b, lo, depth);
        uint32_t end = lo, child = t->n++;
        while (end < hi && byte_at(b, end, depth) == byte) end++;
        t->node[child].word = byte | (end == hi ? LAST : 0);
        b->lo[child] = lo;
        b->hi[child] = end;
        b->depth[child] = depth + 1;
        if (i == 0) t->first[byte] = child;
        lo = end;
    }
}

static int collect(Build *b, QsfTrieFilter keep, QsfErr *err) {
    b->id = malloc((b->v->n + 1) * sizeof *b->id);
    if (b->id == NULL) return qsf_err_memory(err, "a vocabulary's trie");
    for (uint32_t i = 0; i < b->v->n; i++) {
        size_t len;
        (void)text_of(b->v, i, &len);
        if (len > 0 && keep(b->v, (int32_t)i)) b->id[b->n++] = i;
    }
    qsort_r(b->id, b->n, sizeof *b->id, compare, (void *)(uintptr_t)b->v);
    return QSF_OK;
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
    for (uint32_t i = 0; i < t->n; i++) expand(t, b, i);
    return QSF_OK;
}

int qsf_trie_init(QsfTrie *t, const QsfVocab *v, QsfTrieFilter keep, QsfArena *arena, QsfErr *err) {
    Build b = { .v = v };
    *t = (QsfTrie){ 0 };
    int rc = collect(&b, keep, err);
    if (rc == QSF_OK) rc = build(t, &b, arena, err);
    free(b.id);
    free(b.lo);
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
