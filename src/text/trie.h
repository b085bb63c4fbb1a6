/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trie of token texts, byte by byte, which finds all tokens that are a prefix of a text. 8 bytes per node;
 * the children of a node are contiguous, in the order of their bytes. */
#ifndef QSF_TEXT_TRIE_H
#define QSF_TEXT_TRIE_H

#include "src/text/vocab.h"

typedef struct QsfTrieNode {
    uint32_t child; /* index of the first child, 0 = none */
    /* bits 0-7 the byte that leads here, bit 8 the last of its siblings, from bit 9 id + 1, 0 = no
     * token ends here */
    uint32_t word;
} QsfTrieNode;

typedef struct QsfTrie {
    QsfTrieNode *node; /* (n); node 0 is the root */
    uint32_t n;
    uint32_t first[256]; /* child of the root for each byte, 0 = none */
} QsfTrie;

/* Whether to add this token to the trie. */
typedef bool (*QsfTrieFilter)(const QsfVocab *v, int32_t id);

/* Upper bound of the memory that qsf_trie_init takes from the arena for texts of that many bytes. */
uint64_t qsf_trie_bytes(uint64_t text_bytes);
/* Adds the tokens accepted by keep; of two with the same text the lower id. QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_trie_init(QsfTrie *t, const QsfVocab *v, QsfTrieFilter keep, QsfArena *arena, QsfErr *err);
/* The child of a node for a byte, 0 if there is none. Start with node 0. */
uint32_t qsf_trie_step(const QsfTrie *t, uint32_t node, unsigned char byte);
/* The token that ends at a node, or -1. */
int32_t qsf_trie_token(const QsfTrie *t, uint32_t node);

#endif
