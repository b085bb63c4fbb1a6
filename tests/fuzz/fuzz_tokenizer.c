/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as text, for a SentencePiece and a byte-level BPE vocabulary. The first byte chooses
 * vocabulary and flags, the second how much of the text is trusted. Must neither crash nor leak, every id must be
 * in the vocabulary, and byte-level BPE must give the same bytes back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/tiny_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static QsfTokenizer *open_one(bool bpe) {
    static QsfLedger ledgers[2];
    static QsfTestVocab vocabs[2];
    QsfTestVocab *v = &vocabs[bpe];
    QsfErr e = {0};
    qsf_ledger_init(&ledgers[bpe], 0);
    if (bpe) {
        qsf_tv_bpe(v);
        qsf_gb_str(&v->gb, "tokenizer.ggml.pre", "llama-bpe");
        qsf_tv_add(v, "ab", 0, QSF_TOKEN_NORMAL);
        qsf_tv_add(v, "abc", 0, QSF_TOKEN_NORMAL);
        qsf_tv_merge(v, "a b");
        qsf_tv_merge(v, "ab c");
    } else {
        qsf_tv_spm(v);
        qsf_tv_add(v, "\xE2\x96\x81", -9, QSF_TOKEN_NORMAL);
        qsf_tv_add(v, "a", -9, QSF_TOKEN_NORMAL);
        qsf_tv_add(v, "b", -9, QSF_TOKEN_NORMAL);
        qsf_tv_add(v, "ab", -2, QSF_TOKEN_NORMAL);
        qsf_tv_add(v, "\xE2\x96\x81" "ab", -1, QSF_TOKEN_NORMAL);
    }
    qsf_tv_add(v, "<|x|>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(v, "<|xy|>", 0, QSF_TOKEN_USER);
    qsf_tv_add(v, "  ", 0, QSF_TOKEN_USER);
    QsfTokenizer *t = qsf_tv_open(v, bpe ? "gpt2" : "llama", &ledgers[bpe], &e);
    if (t == NULL) abort();
    return t;
}

/* The text that the streaming detokenizer makes of ids. */
static void check_text(const QsfTokenizer *t, const QsfIds *ids, const char *text, size_t len, bool exact) {
    static char piece[QSF_PIECE_MAX + 64];
    QsfStrbuf back = QSF_STRBUF_INIT;
    QsfDetok d;
    qsf_detok_init(&d, t, true, true);
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->data[i] < 0 || (uint32_t)ids->data[i] >= qsf_tokenizer_n_vocab(t)) abort();
        qsf_strbuf_add(&back, piece, qsf_detok_feed(&d, ids->data[i], piece, sizeof piece));
    }
    qsf_strbuf_add(&back, piece, qsf_detok_flush(&d, piece, sizeof piece));
    if (exact && (back.len != len || (len > 0 && memcmp(back.data, text, len) != 0))) abort();
    qsf_strbuf_free(&back);
}

static QsfTokenizer *tok[2];

/* The leak checker does not look into mapped memory, where their tables lie. */
static void close_both(void) {
    for (int i = 0; i < 2; i++) qsf_tokenizer_close(tok[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    bool bpe = data[0] & 1;
    unsigned flags = data[0] >> 1 & 15;
    if (tok[0] == NULL) {
        tok[0] = open_one(false);
        tok[1] = open_one(true);
        atexit(close_both);
    }
    const char *text = (const char *)data + 2;
    size_t len = size - 2, part = len * data[1] / 255;
    uint8_t *trusted = calloc(len + 1, 1);
    QsfIds ids = {0};
    if (trusted == NULL) return 0;
    memset(trusted, 1, part);
    if (qsf_tokenizer_encode_marked(tok[bpe], text, len, trusted, flags, &ids, NULL) != QSF_OK) abort();
    check_text(tok[bpe], &ids, text, len, bpe && !(flags & (QSF_TOK_BOS | QSF_TOK_EOS)));
    qsf_ids_free(&ids);
    free(trusted);
    return 0;
}
