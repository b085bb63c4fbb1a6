/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/token/vocab_compare.h"

#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/json.h"
#include "src/token/tokenizer.h"

#define SHOWN 40u /* bytes of a token in a message */

/* The tokens of one file, read in order. */
typedef struct Tokens {
    const char *path, *kind;
    QsfMetaArray text, type;
    bool typed;
    /* the newest one */
    const char *s;
    size_t len;
    int64_t role;
} Tokens;

static int open_tokens(Tokens *t, const QsfSource *src, QsfErr *err) {
    bool present;
    *t = (Tokens){ .path = qsf_source_path(src) };
    int rc = qsf_meta_str(src, "tokenizer.ggml.model", &t->kind, NULL, err);
    if (rc == QSF_OK)
        rc = qsf_meta_array_open(src, "tokenizer.ggml.tokens", QSF_META_STRING, &t->text, &present, err);
    if (rc != QSF_OK) return rc;
    if (!present)
        return qsf_err_set(err, QSF_E_MODEL, "%s: no vocabulary (tokenizer.ggml.tokens is missing)", t->path);
    rc = qsf_meta_array_open(src, "tokenizer.ggml.token_type", QSF_META_I64, &t->type, &t->typed, err);
    if (rc != QSF_OK) qsf_meta_array_close(&t->text);
    return rc;
}

static void close_tokens(Tokens *t) {
    if (t->typed) qsf_meta_array_close(&t->type);
    qsf_meta_array_close(&t->text);
}

static int next_token(Tokens *t, QsfErr *err) {
    t->role = QSF_TOKEN_NORMAL;
    int rc = qsf_meta_array_str(&t->text, &t->s, &t->len, err);
    if (rc == QSF_OK && t->typed && t->type.next < t->type.count)
        rc = qsf_meta_array_i64(&t->type, &t->role, err);
    return rc;
}

/* "<0x0A>" is a byte, or six characters. */
static bool is_same(const Tokens *a, const Tokens *b) {
    if (a->role == QSF_TOKEN_UNUSED && b->role == QSF_TOKEN_UNUSED) return true;
    return a->len == b->len && memcmp(a->s, b->s, a->len) == 0 &&
           (a->role == QSF_TOKEN_BYTE) == (b->role == QSF_TOKEN_BYTE);
}

static void put_token(QsfStrbuf *b, const Tokens *t) {
    if (t->role == QSF_TOKEN_BYTE) qsf_strbuf_adds(b, "the byte ");
    qsf_json_put_string(b, t->s, t->len < SHOWN ? t->len : SHOWN);
    if (t->len > SHOWN) qsf_strbuf_adds(b, "...");
}

static int refuse(const Tokens *main, const Tokens *other, uint32_t id, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "not the vocabulary of the model: token %u is ", id);
    put_token(&b, other);
    qsf_strbuf_adds(&b, ", expected ");
    put_token(&b, main);
    const int rc = qsf_err_set(err, QSF_E_MODEL, "%s: %s", other->path, qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return rc;
}

/* The same texts would be other bytes. */
static int compare_kinds(const Tokens *main, const Tokens *other, QsfErr *err) {
    const char *a = main->kind != NULL ? main->kind : "", *b = other->kind != NULL ? other->kind : "";
    if (strcmp(a, b) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: not the vocabulary of the model: tokenizer.ggml.model is '%.40s', expected "
                       "'%.40s'",
                       other->path, b, a);
}

static int compare(Tokens *main, Tokens *other, uint32_t *n, QsfErr *err) {
    const uint64_t most = main->text.count < other->text.count ? main->text.count : other->text.count;
    int rc = QSF_OK;
    for (*n = 0; rc == QSF_OK && *n < most; (*n)++) {
        if (*n % 1024 == 0) rc = qsf_interrupt_check(err);
        if (rc == QSF_OK) rc = next_token(main, err);
        if (rc == QSF_OK) rc = next_token(other, err);
        if (rc == QSF_OK && !is_same(main, other)) rc = refuse(main, other, *n, err);
    }
    return rc == QSF_OK ? compare_kinds(main, other, err) : rc;
}

int qsf_vocab_compare(const QsfSource *src, const QsfSource *other, uint32_t *n, QsfErr *err) {
    Tokens a, b;
    *n = 0;
    int rc = open_tokens(&a, src, err);
    if (rc != QSF_OK) return rc;
    rc = open_tokens(&b, other, err);
    if (rc == QSF_OK) {
        rc = compare(&a, &b, n, err);
        close_tokens(&b);
    }
    close_tokens(&a);
    return rc;
}
