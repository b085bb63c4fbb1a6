/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trie of texts, byte by byte, which finds all of them that are a prefix of a text. 8 bytes per node; the
 * children of a node are contiguous, in the order of their bytes. Nodes are in the order of their depths. */
#ifndef QSF_TOKEN_TRIE_H
#define QSF_TOKEN_TRIE_H

#include "src/token/vocab.h"

typedef struct QsfTrieNode {
    uint32_t child; /* index of the first child, 0 = none */
    /* bits 0-7 the byte that leads here, bit 8 the last of its siblings, from bit 9 value + 1, 0 = no
     * text ends here */
    uint32_t word;
} QsfTrieNode;

typedef struct QsfTrie {
    QsfTrieNode *node; /* (n); node 0 is the root */
    uint32_t n;
    uint32_t first[256]; /* child of the root for each byte, 0 = none */
} QsfTrie;

/* A text to add, with a value below 2^22. */
typedef struct QsfTrieText {
    const char *s;
    uint32_t len, value;
} QsfTrieText;

/* Whether to add this token to the trie. */
typedef bool (*QsfTrieFilter)(const QsfVocab *v, int32_t id);

/* Upper bound of the memory that qsf_trie_init takes from the arena for texts of that many bytes. */
uint64_t qsf_trie_bytes(uint64_t text_bytes);
/* Adds the tokens accepted by keep that are at most max_len bytes long, with their ids as values; of two with
 * the same text the lower id. QSF_E_RUNTIME, QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_trie_init(QsfTrie *t, const QsfVocab *v, QsfTrieFilter keep, size_t max_len, QsfArena *arena,
                  QsfErr *err);
/* Adds texts, read from their ends if backward is set; of two equal texts the lower value. Sorts text[0..n).
 * None may be empty. Errors as above. */
int qsf_trie_build(QsfTrie *t, QsfTrieText *text, uint32_t n, bool backward, QsfArena *arena, QsfErr *err);
/* The child of a node for a byte, 0 if there is none. Start with node 0. */
uint32_t qsf_trie_step(const QsfTrie *t, uint32_t node, unsigned char byte);
/* The value of the text that ends at a node, or -1. */
int32_t qsf_trie_token(const QsfTrie *t, uint32_t node);
/* The byte that leads to a node, and whether it is the last of its siblings. */
unsigned char qsf_trie_byte(const QsfTrie *t, uint32_t node, bool *last);

#endif
