/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds the automaton level by level, as the trie numbers its nodes. */
#include "src/token/matcher.h"

#include <stdlib.h>

#include "src/base/interrupt.h"

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
        unsigned char byte = qsf_trie_byte(&m->trie, child, &last);
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
    int rc = qsf_trie_build(&m->trie, text, n, true, arena, err);
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
