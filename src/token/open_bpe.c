/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pre-tokenizer of a file: the expressions in the file, or the row of the table it names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/unicode.h"
#include "src/file/vocab/keys.h"
#include "src/token/tokenizer_impl.h"

#define KEY_PRE        "tokenizer.ggml.pre"
#define MAX_EXPRESSION 65536

/* The row for this file; an unknown name uses a guess, with a warning. */
static int choose_row(QsfTokenizer *t, const QsfSource *src, const QsfPretokSpec **spec, QsfErr *err) {
    const char *pre;
    size_t len = 0;
    int rc = qsf_meta_str(src, KEY_PRE, &pre, &len, err);
    if (rc != QSF_OK) return rc;
    const char *name = pre;
    if (name == NULL && (name = t->kind->pre) != NULL) len = strlen(name);
    *spec = name != NULL ? qsf_pretok_spec(name, len) : NULL;
    if (*spec != NULL) return QSF_OK;
    *spec = qsf_pretok_spec(QSF_PRETOK_DEFAULT, strlen(QSF_PRETOK_DEFAULT));
    if (pre == NULL) {
        snprintf(t->warning, sizeof t->warning,
                 "the model does not specify its pre-tokenizer (%s): using \"%s\"", KEY_PRE,
                 QSF_PRETOK_DEFAULT);
    } else {
        snprintf(t->warning, sizeof t->warning, "unknown pre-tokenizer \"%.64s\": using \"%s\"", pre,
                 QSF_PRETOK_DEFAULT);
    }
    return QSF_OK;
}

static int open_row(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    const QsfPretokSpec *spec;
    int rc = choose_row(t, src, &spec, err);
    if (rc == QSF_OK) rc = qsf_pretok_open(&t->bpe.pretok, spec, err);
    if (rc != QSF_OK) return rc;
    t->bpe.ignore_merges = spec->flags & QSF_PRETOK_IGNORE_MERGES;
    t->bpe.chars = spec->flags & QSF_PRETOK_CHARS;
    t->escape = spec->flags & QSF_PRETOK_ESCAPE;
    t->clean_spaces = spec->flags & QSF_PRETOK_CLEAN;
    t->add_bos = t->add_bos || (spec->flags & QSF_PRETOK_BOS);
    return QSF_OK;
}

static int compile_expression(QsfTokenizer *t, const QsfSource *src, const char *s, size_t len, QsfErr *err) {
    const char *path = qsf_source_path(src);
    if (len > MAX_EXPRESSION || memchr(s, '\0', len) != NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: an expression of its pre-tokenizer %s", path,
                           len > MAX_EXPRESSION ? "is too long" : "has a NUL");
    QsfErr e = { 0 };
    const char *const passes[] = { s, NULL };
    QsfPretokSpec spec = { .name = "", .passes = passes };
    QsfPretok one;
    int rc = qsf_pretok_open(&one, &spec, &e);
    if (rc != QSF_OK) {
        qsf_pretok_close(&one);
        return e.memory ? qsf_err_pass(err, &e)
                        : qsf_err_set(err, QSF_E_MODEL, "%s: its pre-tokenizer: %s", path, e.msg);
    }
    t->bpe.pretok.re[t->bpe.pretok.n++] = one.re[0];
    t->bpe.pretok.bytes += one.bytes;
    return QSF_OK;
}

static int open_expressions(QsfTokenizer *t, const QsfSource *src, QsfMetaArray *a, QsfErr *err) {
    t->bpe.pretok = (QsfPretok){ 0 };
    if (a->count > QSF_PRETOK_PASSES)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: its pre-tokenizer has %llu expressions, more than the limit of %d",
                           qsf_source_path(src), (unsigned long long)a->count, QSF_PRETOK_PASSES);
    int rc = QSF_OK;
    for (uint64_t i = 0; i < a->count && rc == QSF_OK; i++) {
        const char *s;
        size_t len;
        rc = qsf_meta_array_str(a, &s, &len, err);
        if (rc == QSF_OK) rc = compile_expression(t, src, s, len, err);
    }
    return rc;
}

static int read_normal_form(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    static const char *const forms[] = {
        [QSF_NFC] = "NFC",
        [QSF_NFD] = "NFD",
        [QSF_NFKC] = "NFKC",
        [QSF_NFKD] = "NFKD",
    };
    const char *form;
    int rc = qsf_meta_str(src, QSF_KEY_NORMAL_FORM, &form, NULL, err);
    if (rc != QSF_OK || form == NULL) return rc;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i], form) == 0) t->normal_form = (int)i;
    if (t->normal_form >= 0 && !qsf_unicode_has_forms())
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "%s: its text must be %s, and this program was built without utf8proc",
                           qsf_source_path(src), form);
    if (t->normal_form >= 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: '%s' is \"%.40s\", expected NFC, NFD, NFKC or NFKD",
                       qsf_source_path(src), QSF_KEY_NORMAL_FORM, form);
}

/* BPE settings in a file in addition to the pre-tokenizer, or overriding its defaults. */
static int read_flags(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {
        { QSF_KEY_PRE_CHARACTERS, &t->bpe.chars },
        { QSF_KEY_PRE_ESCAPE, &t->escape },
        { QSF_KEY_IGNORE_MERGES, &t->bpe.ignore_merges },
    };
    int rc = QSF_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && rc == QSF_OK; i++)
        rc = qsf_meta_bool(src, flags[i].key, *flags[i].flag, flags[i].flag, err);
    t->bpe_prefix = qsf_meta_has(src, QSF_KEY_PRE_CHARACTERS);
    return rc == QSF_OK ? read_normal_form(t, src, err) : rc;
}

int qsf_tokenizer_open_pretok(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    QsfMetaArray a;
    bool own;
    int rc = qsf_meta_array_open(src, QSF_KEY_PRE_EXPRESSIONS, QSF_META_STRING, &a, &own, err);
    if (rc != QSF_OK) return rc;
    if (own) {
        rc = open_expressions(t, src, &a, err);
        qsf_meta_array_close(&a);
    } else {
        rc = open_row(t, src, err);
    }
    if (rc == QSF_OK) rc = read_flags(t, src, err);
    t->bytes = !t->bpe.chars;
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(t->arena.ledger, QSF_MEM_TOKENIZER, t->bpe.pretok.bytes,
                                "pre-tokenizer expressions", err);
    if (rc == QSF_OK) t->pattern_bytes = t->bpe.pretok.bytes;
    return rc;
}
