/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a vocabulary with steps (vocab/keys.h): its added tokens, which are searched for in text or in
 * normalized text, and what its model does with text that has no token. */
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/file/vocab/keys.h"
#include "src/token/tokenizer_impl.h"

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
