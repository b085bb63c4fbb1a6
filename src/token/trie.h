/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds texts of a set in a text. A trie of their bytes finds all that are a prefix of it: 8 bytes per node;
 * the children of a node are contiguous, in the order of their bytes; nodes are in the order of their depths.
 *
 * A matcher finds the longest one at every place of a text, in time that does not depend on their lengths: an
 * automaton of the texts read backward (Aho and Corasick, "Efficient string matching", 1975), run from the
 * end of the text to its start. Both are immutable after init: any thread. */
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
/* The child of a node for a byte, 0 if there is none. Start with node 0. */
uint32_t qsf_trie_step(const QsfTrie *t, uint32_t node, unsigned char byte);
/* The value of the text that ends at a node, or -1. */
int32_t qsf_trie_token(const QsfTrie *t, uint32_t node);

typedef struct QsfMatcherWord {
    int32_t id;
    uint32_t len;    /* bytes */
    int32_t shorter; /* index of the longest other word that this one begins with, -1 = none */
    int32_t jump;    /* index of a word further along that chain, -1 = none */
} QsfMatcherWord;

typedef struct QsfMatcher {
    QsfTrie trie;         /* of the words read backward; values are indices of word */
    uint32_t *fail;       /* (trie.n) node of the longest proper suffix of a node's string */
    int32_t *longest;     /* (trie.n) index of the longest word that a node's string ends with, -1 = none */
    QsfMatcherWord *word; /* (n) */
    uint32_t n, max_len;  /* words; bytes of the longest */
} QsfMatcher;

/* Upper bound of the memory that init takes from the arena, for n words with that many bytes together. */
uint64_t qsf_matcher_bytes(uint64_t n, uint64_t text_bytes);
/* text[0..n): the words, not empty, with token ids as values; of two equal ones the first counts. Changes
 * text. QSF_E_RUNTIME, QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_matcher_init(QsfMatcher *m, QsfTrieText *text, uint32_t n, QsfArena *arena, QsfErr *err);
/* The same with the tokens accepted by keep that are longer than QSF_TOKEN_LONG bytes. A trie, which is
 * faster, is enough for the others. */
int qsf_matcher_init_long(QsfMatcher *m, const QsfVocab *v, QsfTrieFilter keep, QsfArena *arena, QsfErr *err);
/* The state after the byte before the last one. Start with state 0 at the end of a text. */
uint32_t qsf_matcher_step(const QsfMatcher *m, uint32_t state, unsigned char byte);
/* Index of the longest word that begins at the last byte, -1 = none. */
static inline int32_t qsf_matcher_longest(const QsfMatcher *m, uint32_t state) { return m->longest[state]; }
/* Writes the index of the longest word at each place of text[begin..end), -1 = none, to out[0..end-begin).
 * Words may reach beyond end, up to len. QSF_E_INTERRUPTED. */
int qsf_matcher_find(const QsfMatcher *m, const char *text, size_t len, size_t begin, size_t end,
                     int32_t *out, QsfErr *err);
/* Index of the longest word of at most max_len bytes that word i begins with (may be i), -1 = none. Takes a
 * number of steps logarithmic in the number of such words. */
int32_t qsf_matcher_within(const QsfMatcher *m, int32_t i, size_t max_len);

#endif
