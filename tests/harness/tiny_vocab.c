/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small vocabularies for tests. */
#include "tests/harness/tiny_vocab.h"

#include "tests/harness/qsf_test.h"

#include "src/token/chars.h"

int32_t qsf_tv_add(QsfTestVocab *v, const char *text, float score, QsfTokenType type) {
    assert_true(v->n < QSF_TV_MAX);
    v->tokens[v->n] = text;
    v->scores[v->n] = score;
    v->types[v->n] = (int32_t)type;
    return (int32_t)v->n++;
}

void qsf_tv_merge(QsfTestVocab *v, const char *merge) {
    assert_true(v->n_merges < QSF_TV_MAX);
    v->merges[v->n_merges++] = merge;
}

void qsf_tv_spm(QsfTestVocab *v) {
    qsf_tv_add(v, "<unk>", 0, QSF_TOKEN_UNKNOWN);
    qsf_tv_add(v, "<s>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(v, "</s>", 0, QSF_TOKEN_CONTROL);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(v->bytes[i], sizeof v->bytes[i], "<0x%02X>", i);
        qsf_tv_add(v, v->bytes[i], 0, QSF_TOKEN_BYTE);
    }
}

void qsf_tv_bpe(QsfTestVocab *v) {
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)i;
        v->bytes[i][qsf_bytemap_encode(&byte, 1, v->bytes[i])] = '\0';
        qsf_tv_add(v, v->bytes[i], 0, QSF_TOKEN_NORMAL);
    }
}

QsfSource *qsf_tv_source(QsfTestVocab *v, const char *model, QsfLedger *ledger, QsfErr *err) {
    QsfSource *src = NULL;
    const char *path = qsf_test_tmp("vocab.gguf");
    qsf_gb_str(&v->gb, "general.architecture", "llama");
    qsf_gb_str(&v->gb, "tokenizer.ggml.model", model);
    if (v->n > 0) {
        qsf_gb_strings(&v->gb, "tokenizer.ggml.tokens", v->tokens, v->n);
        qsf_gb_array(&v->gb, "tokenizer.ggml.scores", QSF_META_F32, v->n, v->scores,
                     v->n * sizeof *v->scores);
        qsf_gb_array(&v->gb, "tokenizer.ggml.token_type", QSF_META_I32, v->n, v->types,
                     v->n * sizeof *v->types);
    }
    if (strcmp(model, "gpt2") == 0) qsf_gb_strings(&v->gb, "tokenizer.ggml.merges", v->merges, v->n_merges);
    assert_int_equal(qsf_gb_write(&v->gb, path), 0);
    qsf_source_open(&src, path, ledger, err);
    unlink(path);
    return src;
}

QsfTokenizer *qsf_tv_open(QsfTestVocab *v, const char *model, QsfLedger *ledger, QsfErr *err) {
    QsfTokenizer *t = NULL;
    QsfSource *src = qsf_tv_source(v, model, ledger, err);
    if (src == NULL) return NULL;
    qsf_tokenizer_open(&t, src, ledger, err);
    qsf_source_close(src);
    return t;
}

void qsf_tv_free(QsfTestVocab *v) {
    qsf_gb_free(&v->gb);
    *v = (QsfTestVocab){ 0 };
}

void qsf_tv_expect(const QsfTokenizer *t, const char *text, unsigned flags, const int32_t *ids) {
    QsfIds got = { 0 };
    QsfErr e = { 0 };
    size_t n = 0, i = 0;
    while (ids[n] >= 0) n++;
    qsf_test_expect_ok(qsf_tokenizer_encode(t, text, strlen(text), flags, &got, &e), &e);
    while (i < n && i < got.n && got.data[i] == ids[i]) i++;
    if (i < n || i < got.n) {
        printf("\"%s\" gives", text);
        for (size_t k = 0; k < got.n; k++) printf(" %d", got.data[k]);
        printf(", expected");
        for (size_t k = 0; k < n; k++) printf(" %d", ids[k]);
        printf("\n");
        fail();
    }
    qsf_ids_free(&got);
}

static char *detok(QsfDetok *d, const int32_t *ids, size_t n, size_t *len) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    char *buf = malloc(QSF_PIECE_MAX + 8);
    assert_non_null(buf);
    for (size_t i = 0; i < n; i++) {
        size_t k = qsf_detok_feed(d, ids[i], buf, QSF_PIECE_MAX + 8);
        qsf_strbuf_add(&out, buf, k);
    }
    qsf_strbuf_add(&out, buf, qsf_detok_flush(d, buf, QSF_PIECE_MAX + 8));
    qsf_strbuf_add(&out, "", 0);
    free(buf);
    char *s = qsf_strbuf_take(&out, len);
    return s;
}

char *qsf_tv_detok(const QsfTokenizer *t, const int32_t *ids, size_t n, bool show_special, bool continues,
                   size_t *len) {
    QsfDetok d;
    qsf_detok_init(&d, t, show_special, continues);
    return detok(&d, ids, n, len);
}

char *qsf_tv_detok_clean(const QsfTokenizer *t, const int32_t *ids, size_t n, size_t *len) {
    QsfDetok d;
    qsf_detok_init(&d, t, false, false);
    qsf_detok_clean(&d, true);
    return detok(&d, ids, n, len);
}
