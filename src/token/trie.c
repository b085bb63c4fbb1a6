/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tries and automata, both built level by level: of sorted texts, those below a node are a range of them. */
#include "src/token/trie.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"

/* ---- tries ---- */

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

/* Adds texts, read from their ends if backward is set; of two equal texts the lower value. Sorts text[0..n).
 * None may be empty. Errors as above. */
static int trie_build(QsfTrie *t, QsfTrieText *text, uint32_t n, bool backward, QsfArena *arena,
                      QsfErr *err) {
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
    int rc = trie_build(t, text, n, false, arena, err);
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

/* The byte that leads to a node, and whether it is the last of its siblings. */
static unsigned char trie_byte(const QsfTrie *t, uint32_t node, bool *last) {
    *last = t->node[node].word & LAST;
    return (unsigned char)(t->node[node].word & 0xFF);
}

/* ---- automata ---- */

uint64_t qsf_matcher_bytes(uint64_t n, uint64_t text_bytes) {
    return qsf_trie_bytes(text_bytes) + (text_bytes + 1) * (sizeof(uint32_t) + sizeof(int32_t)) +
           n * sizeof(QsfMatcherWord) + 3 * 16;
}

uint32_t qsf_matcher_step(const QsfMatcher *m, uint32_t state, unsigned char byte) {
    uint32_t next = qsf_trie_step(&m->trie, state, byte);
    while (next == 0 && state != 0) {
        state = m->fail[state];
        next = qsf_trie_step(&m->trie, state, byte);
    }
    return next;
}

/* Fills in the children of a node, which has its own values. */
static void link_children(QsfMatcher *m, uint32_t node) {
    bool last = false;
    for (uint32_t child = m->trie.node[node].child; child != 0 && !last; child++) {
        unsigned char byte = trie_byte(&m->trie, child, &last);
        m->fail[child] = node == 0 ? 0 : qsf_matcher_step(m, m->fail[node], byte);
        int32_t word = qsf_trie_token(&m->trie, child), shorter = m->longest[m->fail[child]];
        m->longest[child] = word >= 0 ? word : shorter;
        if (word >= 0) m->word[word].shorter = shorter;
    }
}

/* Chooses the jumps so that any place of a chain is reached in logarithmic time (Myers, "An applicative
 * random-access stack", 1983): a jump covers the two equal ones after it, if there are such. */
static uint32_t depth_of(const uint32_t *depth, int32_t i) { return i >= 0 ? depth[i] : 0; }

static void link_jump(QsfMatcher *m, uint32_t *depth, int32_t i) {
    QsfMatcherWord *w = &m->word[i];
    const int32_t next = w->shorter, far = next >= 0 ? m->word[next].jump : -1;
    const int32_t farther = far >= 0 ? m->word[far].jump : -1;
    const uint32_t at = depth_of(depth, far);
    depth[i] = depth_of(depth, next) + 1;
    w->jump = far >= 0 && depth[next] - at == at - depth_of(depth, farther) ? farther : next;
}

static int link_all(QsfMatcher *m, QsfErr *err) {
    uint32_t *depth = calloc((size_t)m->n + 1, sizeof *depth);
    if (depth == NULL) return qsf_err_memory(err, "the special tokens of a vocabulary");
    int rc = QSF_OK;
    m->longest[0] = -1;
    for (uint32_t node = 0; node < m->trie.n && rc == QSF_OK; node++) {
        link_children(m, node);
        int32_t word = node > 0 ? qsf_trie_token(&m->trie, node) : -1; /* shorter words are nodes before it */
        if (word >= 0) link_jump(m, depth, word);
        if (node % 4096 == 0) rc = qsf_interrupt_check(err);
    }
    free(depth);
    return rc;
}

int qsf_matcher_init(QsfMatcher *m, QsfTrieText *text, uint32_t n, QsfArena *arena, QsfErr *err) {
    *m = (QsfMatcher){ .n = n };
    m->word = qsf_arena_alloc(arena, n * sizeof *m->word, sizeof(int32_t), err);
    if (m->word == NULL) return err->code;
    for (uint32_t i = 0; i < n; i++) {
        m->word[i] =
            (QsfMatcherWord){ .id = (int32_t)text[i].value, .len = text[i].len, .shorter = -1, .jump = -1 };
        text[i].value = i;
        if (text[i].len > m->max_len) m->max_len = text[i].len;
    }
    int rc = trie_build(&m->trie, text, n, true, arena, err);
    if (rc != QSF_OK) return rc;
    m->fail = qsf_arena_alloc(arena, m->trie.n * sizeof *m->fail, sizeof *m->fail, err);
    m->longest = qsf_arena_alloc(arena, m->trie.n * sizeof *m->longest, sizeof *m->longest, err);
    if (m->fail == NULL || m->longest == NULL) return err->code;
    return link_all(m, err);
}

int32_t qsf_matcher_within(const QsfMatcher *m, int32_t i, size_t max_len) {
    while (i >= 0 && m->word[i].len > max_len) {
        const QsfMatcherWord *w = &m->word[i];
        i = w->jump >= 0 && m->word[w->jump].len > max_len ? w->jump : w->shorter;
    }
    return i;
}

int qsf_matcher_init_long(QsfMatcher *m, const QsfVocab *v, QsfTrieFilter keep, QsfArena *arena,
                          QsfErr *err) {
    uint32_t n = 0;
    size_t len;
    for (uint32_t i = 0; i < v->n; i++) {
        (void)qsf_vocab_text(v, (int32_t)i, &len);
        if (len > QSF_TOKEN_LONG) n++;
    }
    QsfTrieText *text = malloc(((size_t)n + 1) * sizeof *text);
    if (text == NULL) return qsf_err_memory(err, "the long tokens of a vocabulary");
    n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const char *s = qsf_vocab_text(v, (int32_t)i, &len);
        if (len > QSF_TOKEN_LONG && keep(v, (int32_t)i))
            text[n++] = (QsfTrieText){ .s = s, .len = (uint32_t)len, .value = i };
    }
    int rc = qsf_matcher_init(m, text, n, arena, err);
    free(text);
    return rc;
}

int qsf_matcher_find(const QsfMatcher *m, const char *text, size_t len, size_t begin, size_t end,
                     int32_t *out, QsfErr *err) {
    size_t at = len - end < m->max_len ? len : end + m->max_len;
    uint32_t state = 0;
    int rc = QSF_OK;
    while (at-- > begin && rc == QSF_OK) {
        state = qsf_matcher_step(m, state, (unsigned char)text[at]);
        if (at < end) out[at - begin] = m->longest[state];
        if (at % 4096 == 0) rc = qsf_interrupt_check(err);
    }
    return rc;
}
