/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds the trie of the tokens: implements token_trie.h. */
#include "src/grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"

#define NAME "the tokens of the grammar"

/* Characters that grammars often distinguish have a kind of their own. */
const uint8_t qsf_byte_kinds[128] = {
    /* clang-format off */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    4, 5, 6, 7, 7, 7, 8, 9, 10, 10, 11, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 18, 19, 20, 19, 5,
    21, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 23, 24, 23, 21, 25,
    21, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 27, 28, 27, 29, 0,
    /* clang-format on */
};

/* A token whose bytes are at text[from..from+len). */
typedef struct Entry {
    const char *text;
    int32_t id;
    uint32_t len;
} Entry;

static int by_bytes(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    const uint32_t n = x->len < y->len ? x->len : y->len;
    const int c = memcmp(x->text, y->text, n);
    if (c != 0) return c;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef struct Builder {
    QsfTokenTrie *t;
    const QsfTokenizer *tok;
    Entry *entry; /* (n) */
    char *text;   /* all bytes */
    uint64_t n, n_text;
} Builder;

typedef bool (*Usable)(const void *arg, int32_t id);

/* Counts the tokens and their bytes, or with entry also stores them. */
static int collect(Builder *b, uint32_t n_vocab, Usable usable, const void *arg, QsfErr *err) {
    char piece[QSF_TRIE_DEPTH];
    b->n = b->n_text = 0;
    for (uint32_t id = 0; id < n_vocab; id++) {
        if (id % 4096 == 0 && qsf_interrupt_check(err) != QSF_OK) return QSF_E_INTERRUPTED;
        const size_t len = qsf_tokenizer_piece(b->tok, (int32_t)id, false, piece, sizeof piece);
        if (len == 0 || len > sizeof piece || !usable(arg, (int32_t)id)) continue;
        if (b->entry != NULL) {
            b->entry[b->n] = (Entry){ b->text + b->n_text, (int32_t)id, (uint32_t)len };
            memcpy(b->text + b->n_text, piece, len);
        }
        b->n++;
        b->n_text += len;
    }
    return QSF_OK;
}

/* Bytes that a token has in common with the one before it. */
static uint32_t common(const Entry *a, const Entry *b) {
    uint32_t n = 0;
    while (n < a->len && n < b->len && a->text[n] == b->text[n]) n++;
    return n;
}

static uint32_t count_nodes(const Builder *b) {
    uint64_t n = 1;
    for (uint64_t i = 0; i < b->n; i++)
        n += b->entry[i].len - (i > 0 ? common(&b->entry[i - 1], &b->entry[i]) : 0);
    return n < UINT32_MAX / 2 ? (uint32_t)n : 0;
}

static void close_nodes(QsfTokenTrie *t, uint32_t *path, uint32_t from, uint32_t depth) {
    for (uint32_t d = depth; d > from; d--) t->node[path[d]].skip = t->n;
}

/* Nodes in the order of the tokens: what a token has beyond the one before it is new. */
static void add_nodes(Builder *b) {
    QsfTokenTrie *t = b->t;
    uint32_t path[QSF_TRIE_DEPTH + 1] = { 0 }, depth = 0;
    t->node[t->n++] = (QsfTokenNode){ 0 };
    for (uint64_t i = 0; i < b->n; i++) {
        const Entry *e = &b->entry[i];
        const uint32_t same = i > 0 ? common(e - 1, e) : 0;
        close_nodes(t, path, same, depth);
        for (depth = same; depth < e->len;) {
            const uint8_t byte = (uint8_t)e->text[depth++];
            path[depth] = t->n;
            t->node[t->n++] = (QsfTokenNode){ .token = (uint32_t)i, .byte = byte, .depth = (uint8_t)depth };
        }
        t->id[i] = e->id;
    }
    close_nodes(t, path, 0, depth);
    t->node[0].skip = t->n;
    t->node[t->n] = (QsfTokenNode){ .token = (uint32_t)b->n, .skip = t->n + 1 };
}

/* Continuation bytes that have to follow after a byte, when `left` were open; 255: not UTF-8. */
static uint8_t after_byte(uint8_t left, uint8_t byte) {
    if (left == 255) return 255;
    if (left > 0) return byte >= 0x80 && byte < 0xC0 ? (uint8_t)(left - 1) : 255;
    if (byte < 0x80) return 0;
    if (byte < 0xC2 || byte > 0xF4) return 255;
    return byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
}

/* A token may end at a node before its first child. */
static bool has_token(const QsfTokenTrie *t, uint32_t i) {
    const uint32_t end = t->node[i].skip > i + 1 ? t->node[i + 1].token : t->node[t->node[i].skip].token;
    return end > t->node[i].token;
}

/* Tells each node what is below it, from the last node to the first. left: of after_byte. */
static void add_kinds(QsfTokenTrie *t, uint8_t *left) {
    uint8_t open[QSF_TRIE_DEPTH + 1] = { 0 };
    uint32_t parent[QSF_TRIE_DEPTH + 1] = { 0 };
    uint32_t *up = calloc(t->n, sizeof *up);
    if (up == NULL) { /* without kinds all branches are walked */
        for (uint32_t i = 0; i < t->n; i++) t->node[i].kinds = QSF_BYTES_BROKEN;
        return;
    }
    for (uint32_t i = 1; i < t->n; i++) {
        const QsfTokenNode *n = &t->node[i];
        open[n->depth] = left[i] = after_byte(open[n->depth - 1], n->byte);
        up[i] = parent[n->depth - 1];
        parent[n->depth] = i;
    }
    for (uint32_t i = t->n; --i > 0;) {
        const QsfTokenNode *n = &t->node[i];
        QsfTokenNode *p = &t->node[up[i]];
        const bool broken = left[i] == 255 || (left[i] > 0 && has_token(t, i));
        p->kinds |= n->kinds | (n->byte < 0x80 ? 1u << qsf_byte_kinds[n->byte] : QSF_BYTES_WIDE) |
                    (broken ? QSF_BYTES_BROKEN : 0);
        if (p->height <= n->height) p->height = (uint8_t)(n->height + 1);
    }
    for (uint32_t i = 1; i < t->n; i++)
        if (left[i] != 0) t->node[i].kinds |= QSF_BYTES_BROKEN; /* inside a character */
    free(up);
}

static int build(Builder *b, QsfLedger *ledger, QsfErr *err) {
    QsfTokenTrie *t = b->t;
    void *mem;
    qsort(b->entry, b->n, sizeof *b->entry, by_bytes);
    const uint32_t n = count_nodes(b);
    t->bytes = ((uint64_t)n + 1) * sizeof *t->node + b->n * sizeof *t->id;
    if (n == 0) return qsf_err_set(err, QSF_E_RUNTIME, "the vocabulary is too large for a grammar");
    int rc = qsf_mem_map(ledger, QSF_MEM_TOKENIZER, t->bytes, NAME, &mem, err);
    uint8_t *left = rc == QSF_OK ? calloc(n, 1) : NULL;
    if (rc == QSF_OK && left == NULL) {
        qsf_mem_unmap(ledger, QSF_MEM_TOKENIZER, mem, t->bytes);
        rc = qsf_err_memory(err, NAME);
    }
    if (rc != QSF_OK) return rc;
    t->ledger = ledger;
    t->node = mem;
    t->id = (int32_t *)(void *)(t->node + n + 1);
    t->n_tokens = (uint32_t)b->n;
    add_nodes(b);
    add_kinds(t, left);
    free(left);
    return QSF_OK;
}

int qsf_token_trie_open(QsfTokenTrie *t, const QsfTokenizer *tok, uint32_t n_vocab, Usable usable,
                        const void *arg, QsfLedger *ledger, QsfErr *err) {
    Builder b = { .t = t, .tok = tok };
    memset(t, 0, sizeof *t);
    int rc = collect(&b, n_vocab, usable, arg, err);
    const uint64_t scratch = b.n * sizeof *b.entry + b.n_text;
    if (rc == QSF_OK) rc = qsf_ledger_reserve(ledger, QSF_MEM_TOKENIZER, scratch, NAME, err);
    if (rc != QSF_OK) return rc;
    b.entry = malloc((b.n + 1) * sizeof *b.entry);
    b.text = malloc(b.n_text + 1);
    rc = b.entry != NULL && b.text != NULL ? collect(&b, n_vocab, usable, arg, err)
                                           : qsf_err_memory(err, NAME);
    if (rc == QSF_OK) rc = build(&b, ledger, err);
    free(b.entry);
    free(b.text);
    qsf_ledger_release(ledger, QSF_MEM_TOKENIZER, scratch);
    return rc;
}

void qsf_token_trie_close(QsfTokenTrie *t) {
    if (t->node != NULL) qsf_mem_unmap_named(t->ledger, QSF_MEM_TOKENIZER, t->node, t->bytes, NAME);
    memset(t, 0, sizeof *t);
}
