/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/text/greedy.h"

int qsf_greedy_init(QsfGreedy *g, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err) {
    g->unknown = unknown;
    return qsf_trie_init(&g->trie, v, qsf_vocab_mergeable, arena, err);
}

/* Returns the length of the longest token at the start of a text, 0 if there is none. */
static size_t longest(const QsfGreedy *g, const char *text, size_t len, int32_t *id) {
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        node = qsf_trie_step(&g->trie, node, (unsigned char)text[i]);
        if (node == 0) break;
        const int32_t token = qsf_trie_token(&g->trie, node);
        if (token < 0) continue;
        *id = token;
        best = i + 1;
    }
    return best;
}

int qsf_greedy_encode(const QsfGreedy *g, const char *text, size_t len, QsfIds *out, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0, n; rc == QSF_OK && i < len; i += n) {
        int32_t id = g->unknown;
        n = longest(g, text + i, len - i, &id);
        if (n == 0) n = 1;
        if (id >= 0) rc = qsf_ids_push(out, id, err);
    }
    return rc;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t qsf_greedy_unescape(char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < len) {
            c = text[++i];
            const int high = i + 2 < len ? hex_digit(text[i + 1]) : -1,
                      low = high >= 0 ? hex_digit(text[i + 2]) : -1;
            if (c == 'x' && low >= 0) {
                c = (char)(high * 16 + low);
                i += 2;
            } else {
                c = (char)(c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c);
            }
        }
        text[n++] = c;
    }
    return n;
}
