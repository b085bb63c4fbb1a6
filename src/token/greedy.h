/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Greedy vocabularies (BlinkDL/RWKV-LM): at each position the longest token that matches. Texts are bytes; in
 * files they are written with escapes. */
#ifndef QSF_TOKEN_GREEDY_H
#define QSF_TOKEN_GREEDY_H

#include "src/token/trie.h"

typedef struct QsfGreedy {
    QsfTrie trie;    /* tokens up to QSF_TOKEN_LONG bytes */
    QsfMatcher rest; /* longer ones: following them at every place would take time in
                        proportion to their length */
    int32_t unknown; /* id for bytes without a token, or -1: they are dropped */
} QsfGreedy;

/* QSF_E_RUNTIME, QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_greedy_init(QsfGreedy *g, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err);
/* Appends the ids of text[0..len). QSF_E_RUNTIME without memory, QSF_E_INTERRUPTED. */
int qsf_greedy_encode(const QsfGreedy *g, const char *text, size_t len, QsfIds *out, QsfErr *err);
/* Replaces \t, \n, \r, \xHH and \ before any other byte, in place. Returns the new length,
 * which is not larger. */
size_t qsf_greedy_unescape(char *text, size_t len);

#endif
