/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as text through two tiny vocabularies and back. Ids must be in the vocabulary, text
 * without special tokens must be restored, the stream must equal the pieces. The first two bytes choose the
 * flags and the vocabulary. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/strbuf.h"
#include "src/token/chars.h"
#include "src/token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The leak checker does not look into mapped memory, where the tokenizers live and hold their expressions. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* --- the vocabularies, as GGUF files (ggml-org/ggml docs/gguf.md) --- */

static void put_le(QsfStrbuf *b, uint64_t v, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) qsf_strbuf_addc(b, (char)(v >> (8 * i)));
}

static void put_str(QsfStrbuf *b, const char *s) {
    put_le(b, strlen(s), 8);
    qsf_strbuf_adds(b, s);
}

static void put_array(QsfStrbuf *b, const char *key, QsfMetaType elem, uint64_t n) {
    put_str(b, key);
    put_le(b, QSF_META_ARRAY, 4);
    put_le(b, elem, 4);
    put_le(b, n, 8);
}

#define SP "\xE2\x96\x81"
static const char *const WORDS[] = {
    "<unk>",
    "<s>",
    "</s>",
    "<|x|>",
    "<|xx|>",
    "<u>",
    "<u><u>",
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "abc",
    "aa",
    "aaaa",
    SP,
    SP "a",
    SP SP,
    "a" SP,
    "\xC3\xA9",
    "e\xCC\x81",
    "'s",
    "12",
    "\xC4\xA0"
    "a",
};
static const int32_t TYPES[] = { 2, 3, 3, 3, 3, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
static const char *const MERGES[] = {
    "b c", "a b", "a bc", "a a", "aa aa", "' s", "1 2", "\xC4\xA0 a", "x", "", "a nothing",
};
enum { N_WORDS = sizeof WORDS / sizeof *WORDS, N_MERGES = sizeof MERGES / sizeof *MERGES, N_BYTES = 256 };

static void put_vocab(QsfStrbuf *b, bool bpe) {
    put_array(b, "tokenizer.ggml.tokens", QSF_META_STRING, N_WORDS + N_BYTES);
    for (size_t i = 0; i < N_WORDS; i++) put_str(b, WORDS[i]);
    for (unsigned i = 0; i < N_BYTES; i++) {
        char text[8], byte = (char)i;
        if (bpe) {
            text[qsf_bytemap_encode(&byte, 1, text)] = '\0';
        } else {
            snprintf(text, sizeof text, "<0x%02X>", i);
        }
        put_str(b, text);
    }
    put_array(b, "tokenizer.ggml.token_type", QSF_META_I32, N_WORDS + N_BYTES);
    for (size_t i = 0; i < N_WORDS; i++) put_le(b, (uint64_t)TYPES[i], 4);
    for (unsigned i = 0; i < N_BYTES; i++) put_le(b, bpe ? QSF_TOKEN_NORMAL : QSF_TOKEN_BYTE, 4);
    put_array(b, "tokenizer.ggml.scores", QSF_META_F32, N_WORDS + N_BYTES);
    for (unsigned i = 0; i < N_WORDS + N_BYTES; i++) {
        float score = -(float)(i % 7);
        qsf_strbuf_add(b, &score, sizeof score);
    }
    put_array(b, "tokenizer.ggml.merges", QSF_META_STRING, N_MERGES);
    for (size_t i = 0; i < N_MERGES; i++) put_str(b, MERGES[i]);
}

static QsfTokenizer *open_tiny(const char *pre, QsfLedger *ledger) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfSource *src = NULL;
    QsfTokenizer *t = NULL;
    char path[64];
    qsf_strbuf_adds(&b, "GGUF");
    put_le(&b, 3, 4);
    put_le(&b, 0, 8);
    put_le(&b, 6, 8);
    put_str(&b, "tokenizer.ggml.model");
    put_le(&b, QSF_META_STRING, 4);
    put_str(&b, pre != NULL ? "gpt2" : "llama");
    put_str(&b, "tokenizer.ggml.pre");
    put_le(&b, QSF_META_STRING, 4);
    put_str(&b, pre != NULL ? pre : "default");
    put_vocab(&b, pre != NULL);
    int fd = memfd_create("vocab", 0);
    if (fd < 0 || write(fd, qsf_strbuf_str(&b), b.len) != (ssize_t)b.len) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (qsf_source_open(&src, path, ledger, NULL) != QSF_OK) abort();
    if (qsf_tokenizer_open(&t, src, ledger, NULL) != QSF_OK) abort();
    qsf_source_close(src);
    close(fd);
    qsf_strbuf_free(&b);
    return t;
}

/* --- the checks --- */

static char buf[QSF_PIECE_MAX + 8];

static void stream(const QsfTokenizer *t, const QsfIds *ids, bool continues, QsfStrbuf *out) {
    QsfDetok d;
    qsf_detok_init(&d, t, true, continues);
    for (size_t i = 0; i < ids->n; i++) {
        size_t n = qsf_detok_feed(&d, ids->data[i], buf, sizeof buf);
        qsf_strbuf_add(out, buf, n);
    }
    qsf_strbuf_add(out, buf, qsf_detok_flush(&d, buf, sizeof buf));
}

static bool same(const QsfStrbuf *a, const void *s, size_t len) {
    return a->len == len && (len == 0 || memcmp(a->data, s, len) == 0);
}

static void check(const QsfTokenizer *t, bool bpe, const char *text, size_t len, unsigned flags) {
    QsfIds ids = { 0 };
    QsfStrbuf pieces = QSF_STRBUF_INIT, streamed = QSF_STRBUF_INIT, whole = QSF_STRBUF_INIT;
    if (qsf_tokenizer_encode(t, text, len, flags | QSF_TOK_NO_PREFIX, &ids, NULL) != QSF_OK) abort();
    bool special = false;
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= qsf_tokenizer_n_vocab(t)) abort();
        QsfTokenType type = qsf_tokenizer_type(t, ids.data[i]);
        if (type == QSF_TOKEN_CONTROL && !(flags & QSF_TOK_SPECIAL)) abort();
        special = special || type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER || type == QSF_TOKEN_UNKNOWN;
        qsf_strbuf_add(&pieces, buf, qsf_tokenizer_piece(t, ids.data[i], true, buf, sizeof buf));
    }
    stream(t, &ids, true, &streamed);
    if (!same(&streamed, qsf_strbuf_str(&pieces), pieces.len)) abort();
    /* SentencePiece turns U+2581 into a space and adds one after special tokens */
    bool exact = bpe || (!special && memmem(text, len, "\xE2\x96\x81", 3) == NULL);
    if (exact && !same(&pieces, text, len)) abort();
    stream(t, &ids, false, &whole);
    qsf_strbuf_free(&pieces);
    qsf_strbuf_free(&streamed);
    qsf_strbuf_free(&whole);
    qsf_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const pres[] = {
        NULL, "llama-bpe", "default", "deepseek-v3", "tiny_aya", "exaone-moe"
    };
    enum { N = sizeof pres / sizeof *pres };
    static QsfTokenizer *tokenizers[N]; /* opened once */
    static QsfLedger ledger;
    if (size < 2) return 0;
    unsigned which = data[0] % N;
    if (tokenizers[0] == NULL) {
        qsf_ledger_init(&ledger, 0);
        if (__lsan_disable != NULL) __lsan_disable();
        for (unsigned i = 0; i < N; i++) tokenizers[i] = open_tiny(pres[i], &ledger);
        if (__lsan_enable != NULL) __lsan_enable();
    }
    check(tokenizers[which], which > 0, (const char *)data + 2, size - 2, data[1] & QSF_TOK_SPECIAL);
    return 0;
}
