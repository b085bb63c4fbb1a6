/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/token/greedy.h"

#include <stdlib.h>

#include "src/base/ascii.h"
#include "src/base/interrupt.h"

#define BLOCK 16384u /* places at a time; more if a token is longer */

int qsf_greedy_init(QsfGreedy *g, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err) {
    g->unknown = unknown;
    int rc = qsf_trie_init(&g->trie, v, qsf_vocab_mergeable, QSF_TOKEN_LONG, arena, err);
    return rc == QSF_OK ? qsf_matcher_init_long(&g->rest, v, qsf_vocab_mergeable, arena, err) : rc;
}

/* Returns the length of the longest short token at the start of a text, 0 if there is none. */
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

/* Appends the tokens that begin in text[*at..end), *at becomes the place after the last one. found: the long
 * token at each of these places, or NULL. */
static int encode_block(const QsfGreedy *g, const char *text, size_t len, size_t *at, size_t end,
                        const int32_t *found, QsfIds *out, QsfErr *err) {
    int rc = qsf_interrupt_check(err);
    const size_t begin = *at;
    while (*at < end && rc == QSF_OK) {
        const int32_t word = found != NULL ? found[*at - begin] : -1;
        int32_t id = word >= 0 ? g->rest.word[word].id : g->unknown;
        size_t n = word >= 0 ? g->rest.word[word].len : longest(g, text + *at, len - *at, &id);
        if (n == 0) n = 1;
        if (id >= 0) rc = qsf_ids_push(out, id, err);
        *at += n;
    }
    return rc;
}

int qsf_greedy_encode(const QsfGreedy *g, const char *text, size_t len, QsfIds *out, QsfErr *err) {
    const size_t block = g->rest.max_len > BLOCK ? g->rest.max_len : BLOCK;
    int32_t *found = g->rest.n > 0 ? malloc(block * sizeof *found) : NULL;
    int rc = g->rest.n > 0 && found == NULL ? qsf_err_memory(err, "tokenizing") : QSF_OK;
    for (size_t at = 0; at < len && rc == QSF_OK;) {
        const size_t end = len - at < block ? len : at + block;
        if (found != NULL) rc = qsf_matcher_find(&g->rest, text, len, at, end, found, err);
        if (rc == QSF_OK) rc = encode_block(g, text, len, &at, end, found, out, err);
    }
    free(found);
    return rc;
}

size_t qsf_greedy_unescape(char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < len) {
            c = text[++i];
            const int high = i + 2 < len ? qsf_hex_digit(text[i + 1]) : -1,
                      low = high >= 0 ? qsf_hex_digit(text[i + 2]) : -1;
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
