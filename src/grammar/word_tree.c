/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alternatives that are texts, as a tree of their common beginnings: an automaton that has not read anything
 * yet would otherwise be in as many places as there are texts, tens of thousands for a large enum. */
#include <stdlib.h>
#include <string.h>

#include "src/grammar/build.h"

#define FEW    32u /* alternatives that stay as they are */
#define LEVELS 40u /* of branches; what is deeper stays as it is, because nodes are compiled recursively */

typedef struct Word {
    uint32_t at, len; /* in the text of the build */
} Word;

typedef struct Tree {
    QsfGrammarBuild *b;
    Word *words;
} Tree;

static int by_bytes(const char *text, const Word *x, const Word *y) {
    const uint32_t n = x->len < y->len ? x->len : y->len;
    const int c = memcmp(text + x->at, text + y->at, n);
    return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/* qsort has no argument for the text: merges w[0..n) with a copy. */
static void sort(const char *text, Word *w, Word *copy, size_t n) {
    const size_t half = n / 2;
    size_t i = 0, k = half;
    if (n < 2) return;
    sort(text, w, copy, half);
    sort(text, w + half, copy + half, n - half);
    memcpy(copy, w, n * sizeof *w);
    for (size_t to = 0; to < n; to++)
        w[to] = k == n || (i < half && by_bytes(text, &copy[i], &copy[k]) <= 0) ? copy[i++] : copy[k++];
}

static uint32_t rest(const Tree *t, const Word *w, uint32_t from, uint32_t to) {
    return to > from ? qsf_node_new(t->b, QSF_NODE_BYTES, w->at + from, to - from, 0) : qsf_node_empty(t->b);
}

/* Bytes that the sorted words have in common after the first `from`. */
static uint32_t common(const Tree *t, const Word *first, const Word *last, uint32_t from) {
    const char *text = t->b->text.data;
    uint32_t n = from;
    while (n < first->len && n < last->len && text[first->at + n] == text[last->at + n]) n++;
    return n;
}

/* The words w[0..n), of which `from` bytes were read. */
static uint32_t branch(const Tree *t, const Word *w, size_t n, uint32_t from, unsigned level) {
    const char *text = t->b->text.data;
    const uint32_t to = common(t, &w[0], &w[n - 1], from);
    if (!qsf_gbuild_step(t->b, n)) return 0;
    if (n == 1) return rest(t, w, from, w->len);
    const uint32_t alt = qsf_node_list(t->b, QSF_NODE_ALT), seq = qsf_node_list(t->b, QSF_NODE_SEQ);
    for (size_t i = 0, k; i < n && !t->b->failed; i = k) {
        for (k = i + 1; k < n && level < LEVELS && w[i].len > to && text[w[k].at + to] == text[w[i].at + to];)
            k++;
        qsf_node_add(t->b, alt, branch(t, w + i, k - i, to, level + 1));
    }
    qsf_node_add(t->b, seq, rest(t, w, from, to));
    qsf_node_add(t->b, seq, alt);
    return seq;
}

/* Moves the texts of the list to words; the others stay in a new list. Returns the number of texts. */
static size_t take_texts(QsfGrammarBuild *b, uint32_t list, Word *words, uint32_t others) {
    size_t n = 0;
    for (uint32_t i = b->nodes[list].a, next; i != 0; i = next) {
        next = b->nodes[i].next;
        b->nodes[i].next = 0;
        if (b->nodes[i].kind == QSF_NODE_BYTES)
            words[n++] = (Word){ b->nodes[i].a, b->nodes[i].b };
        else
            qsf_node_add(b, others, i);
    }
    return n;
}

uint32_t qsf_node_words(QsfGrammarBuild *b, uint32_t list, size_t n) {
    if (b->failed || n <= FEW) return list;
    const uint32_t out = qsf_node_list(b, QSF_NODE_ALT);
    Word *words = calloc(n, 2 * sizeof *words);
    if (words == NULL) return qsf_gbuild_no_memory(b);
    const Tree t = { b, words };
    size_t texts = b->failed ? 0 : take_texts(b, list, words, out), same = 0;
    sort(b->text.data, words, words + n, texts);
    for (size_t i = 0; i < texts; i++)
        if (i == 0 || by_bytes(b->text.data, &words[same - 1], &words[i]) != 0) words[same++] = words[i];
    if (same > 0) qsf_node_add(b, out, branch(&t, words, same, 0, 0));
    free(words);
    return out;
}
