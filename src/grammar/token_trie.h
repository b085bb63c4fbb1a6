/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of a vocabulary by their bytes, in the order of a walk through a trie: the children of a node
 * follow it, and the tokens below a node are a contiguous part of the sorted tokens, so that a whole branch
 * can be allowed or left out at once. Immutable: any thread. */
#ifndef QSF_GRAMMAR_TOKEN_TRIE_H
#define QSF_GRAMMAR_TOKEN_TRIE_H

#include "src/base/ledger.h"
#include "src/token/tokenizer.h"

#define QSF_TRIE_DEPTH 255u /* bytes of the longest token; longer ones are left out */

typedef struct QsfTokenNode {
    uint32_t skip;  /* the next node that is not below this one */
    uint32_t token; /* index of the first sorted token at or below it */
    uint32_t kinds; /* QSF_BYTES_* of the bytes below */
    uint8_t byte, depth;
    uint8_t height; /* bytes of the longest text below */
} QsfTokenNode;

typedef struct QsfTokenTrie {
    QsfLedger *ledger;
    QsfTokenNode *node; /* (n + 1); node 0 is the root, the last one only ends the tokens */
    int32_t *id;        /* (n_tokens) in the order of their bytes */
    uint32_t n, n_tokens;
    uint64_t bytes; /* charged */
} QsfTokenTrie;

/* Kinds of bytes, as bits; those of ASCII are numbered by qsf_byte_kinds. */
#define QSF_BYTES_WIDE   (1u << 30) /* characters of several bytes */
#define QSF_BYTES_BROKEN (1u << 31) /* a part of one, or bytes that are not UTF-8 */
extern const uint8_t qsf_byte_kinds[128];

/* Adds the tokens for which usable returns true. Charged to TOKENIZER. QSF_E_BUDGET, QSF_E_RUNTIME,
 * QSF_E_INTERRUPTED. */
int qsf_token_trie_open(QsfTokenTrie *t, const QsfTokenizer *tok, uint32_t n_vocab,
                        bool (*usable)(const void *arg, int32_t id), const void *arg, QsfLedger *ledger,
                        QsfErr *err);
void qsf_token_trie_close(QsfTokenTrie *t); /* a zeroed one is allowed */

#endif
