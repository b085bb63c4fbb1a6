/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the pre-tokenizer of a vocabulary, by the expressions in the file or the row of pretok.c that it
 * names, and the steps of vocabularies that have some. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"
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

/* --- opens a vocabulary with steps (vocab/keys.h): its added tokens, which are searched for in text or in
 * normalized text, and what its model does with text that has no token --- */

/* The added tokens; texts that were normalized are in the arena. */
typedef struct Added {
    QsfTrieText *plain, *normal; /* (n_plain), (n_normal) */
    uint32_t n_plain, n_normal;
    bool *normalized; /* (n) of the vocabulary: searched for after normalization */
} Added;

/* The form of a token's text that is searched for. */
static int add_normalized(QsfTokenizer *t, Added *a, QsfTrieText text, QsfRegexScratch *scratch,
                          QsfErr *err) {
    QsfMasked out = { 0 }, other = { 0 };
    QsfWhere where = { 0 };
    int rc = QSF_OK;
    if (qsf_utf8_valid(text.s, text.len))
        rc = qsf_steps_normalize(&t->steps, scratch, text.s, text.len, NULL, &where, &out, &other, err);
    else
        qsf_strbuf_add(&out.text, text.s, text.len);
    char *copy = rc == QSF_OK ? qsf_arena_strdup(&t->arena, qsf_strbuf_str(&out.text), out.text.len, err)
                              : NULL;
    if (copy != NULL && out.text.len > 0) /* nothing can be found if nothing is left of it */
        a->normal[a->n_normal++] =
            (QsfTrieText){ .s = copy, .len = (uint32_t)out.text.len, .value = text.value };
    qsf_strbuf_free(&out.text);
    qsf_strbuf_free(&other.text);
    return rc != QSF_OK || copy != NULL ? rc : err->code;
}

static int add_token(QsfTokenizer *t, Added *a, int64_t id, QsfRegexScratch *scratch, QsfErr *err) {
    size_t len;
    if (id < 0 || id >= (int64_t)t->vocab.n || !qsf_specials_has(&t->vocab, (int32_t)id)) return QSF_OK;
    const char *s = qsf_vocab_text(&t->vocab, (int32_t)id, &len);
    const QsfTrieText text = { .s = s, .len = (uint32_t)len, .value = (uint32_t)id };
    if (a->normalized[id]) return add_normalized(t, a, text, scratch, err);
    a->plain[a->n_plain++] = text;
    return QSF_OK;
}

static int read_normalized(const QsfTokenizer *t, const QsfSource *src, Added *a, QsfErr *err) {
    QsfMetaArray ids;
    bool present;
    a->normalized = calloc((size_t)t->vocab.n + 1, sizeof *a->normalized);
    if (a->normalized == NULL) return qsf_err_memory(err, "the special tokens of a vocabulary");
    int rc = qsf_meta_array_open(src, QSF_KEY_NORMALIZED, QSF_META_I64, &ids, &present, err);
    if (rc != QSF_OK || !present) return rc;
    for (uint64_t i = 0; i < ids.count && rc == QSF_OK; i++) {
        int64_t id = -1;
        rc = qsf_meta_array_i64(&ids, &id, err);
        if (id >= 0 && id < (int64_t)t->vocab.n) a->normalized[id] = true;
    }
    qsf_meta_array_close(&ids);
    return rc;
}

static int read_added(QsfTokenizer *t, const char *path, QsfMetaArray *ids, Added *a, QsfErr *err) {
    if (ids->count > t->vocab.n)
        return qsf_err_set(err, QSF_E_MODEL, "%s: '%s' has more ids than the vocabulary", path,
                           QSF_KEY_ADDED);
    a->plain = malloc(((size_t)ids->count + 1) * sizeof *a->plain);
    a->normal = malloc(((size_t)ids->count + 1) * sizeof *a->normal);
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    int rc = a->plain != NULL && a->normal != NULL && scratch != NULL
                 ? QSF_OK
                 : qsf_err_memory(err, "the special tokens of a vocabulary");
    for (uint64_t i = 0; i < ids->count && rc == QSF_OK; i++) {
        int64_t id = -1;
        rc = qsf_meta_array_i64(ids, &id, err);
        if (rc == QSF_OK) rc = add_token(t, a, id, scratch, err);
    }
    qsf_regex_scratch_free(scratch);
    return rc;
}

static int open_added(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    Added a = { 0 };
    QsfMetaArray ids;
    bool present;
    int rc = read_normalized(t, src, &a, err);
    if (rc == QSF_OK) rc = qsf_meta_array_open(src, QSF_KEY_ADDED, QSF_META_I64, &ids, &present, err);
    if (rc == QSF_OK && present) {
        rc = read_added(t, qsf_source_path(src), &ids, &a, err);
        qsf_meta_array_close(&ids);
    }
    if (rc == QSF_OK)
        rc = qsf_specials_init(&t->specials, &t->vocab, a.plain, a.n_plain, true, &t->arena, err);
    if (rc == QSF_OK && a.n_normal > 0)
        rc = qsf_specials_init(&t->normalized, &t->vocab, a.normal, a.n_normal, true, &t->arena, err);
    free(a.normalized);
    free(a.plain);
    free(a.normal);
    return rc;
}

static int read_model(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    int64_t unknown = -1;
    bool fallback = false, fuse = false;
    int rc = qsf_meta_i64(src, QSF_KEY_UNKNOWN, -1, &unknown, err);
    if (rc == QSF_OK) rc = qsf_meta_bool(src, QSF_KEY_BYTE_FALLBACK, false, &fallback, err);
    if (rc == QSF_OK) rc = qsf_meta_bool(src, QSF_KEY_FUSE_UNKNOWN, false, &fuse, err);
    if (rc != QSF_OK) return rc;
    t->model_unknown = unknown >= 0 && unknown < (int64_t)t->vocab.n ? (int32_t)unknown : -1;
    t->bpe.trained = t->bpe.ranks.trained = t->unigram.trained = true;
    t->bpe.fallback = t->unigram.fallback = fallback;
    t->bpe.fuse_unknown = fuse;
    t->bpe.mapped = t->steps.mapped;
    return QSF_OK;
}

int qsf_tokenizer_open_steps(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    int rc = qsf_charsmap_load(&t->charsmap, src, &t->arena, err);
    if (rc == QSF_OK) rc = qsf_steps_open(&t->steps, src, &t->charsmap, err);
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(t->arena.ledger, QSF_MEM_TOKENIZER, t->steps.memory,
                                "pre-tokenizer expressions", err);
    if (rc != QSF_OK) return rc;
    t->steps.ledger = t->arena.ledger;
    t->pattern_bytes = t->steps.memory;
    rc = read_model(t, src, err);
    return rc == QSF_OK ? open_added(t, src, err) : rc;
}
