/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads tokenizer.ggml.tokens, scores and token_type. */
#include "src/token/vocab.h"

#include <string.h>

#include "src/base/checked.h"
#include "src/base/interrupt.h"
#include "src/token/greedy.h"

#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_TYPES  "tokenizer.ggml.token_type"

static bool is_special_type(int64_t type) {
    return type == QSF_TOKEN_UNKNOWN || type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER;
}

/* Opens an optional array that must have one element per token. Types of any integer type are read as they
 * are, but bool has no room for them. */
static int open_parallel(QsfMetaArray *a, const QsfSource *src, const char *key, QsfMetaType elem, uint32_t n,
                         bool *present, QsfErr *err) {
    int rc = qsf_meta_array_open(src, key, elem, a, present, err);
    if (rc != QSF_OK || !*present) return rc;
    const uint64_t count = a->count;
    const bool is_bool = a->elem == QSF_META_BOOL;
    if (count == n && !is_bool) return QSF_OK;
    qsf_meta_array_close(a);
    if (is_bool)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is an array of bool, expected one of %s",
                           qsf_source_path(src), key, qsf_meta_type_name(elem));
    return qsf_err_set(err, QSF_E_MODEL, "%s: %s has %llu elements for %u tokens", qsf_source_path(src), key,
                       (unsigned long long)count, n);
}

static int count_token(QsfVocabShape *shape, QsfMetaArray *texts, QsfMetaArray *types, QsfErr *err) {
    const char *s;
    size_t len;
    int64_t type = QSF_TOKEN_NORMAL;
    int rc = qsf_meta_array_str(texts, &s, &len, err);
    if (rc == QSF_OK && types != NULL) rc = qsf_meta_array_i64(types, &type, err);
    if (rc != QSF_OK) return rc;
    const bool special = is_special_type(type), is_long = len > QSF_TOKEN_LONG;
    shape->n_special += special;
    shape->special_bytes += special ? len : 0;
    shape->n_long += is_long;
    shape->long_bytes += is_long ? len : 0;
    return QSF_OK;
}

static int count_tokens(QsfVocabShape *shape, const QsfSource *src, QsfErr *err) {
    QsfMetaArray texts, types;
    bool present, typed;
    int rc = qsf_meta_array_open(src, KEY_TOKENS, QSF_META_STRING, &texts, &present, err);
    if (rc != QSF_OK) return rc;
    rc = open_parallel(&types, src, KEY_TYPES, QSF_META_I64, shape->n, &typed, err);
    for (uint32_t i = 0; i < shape->n && rc == QSF_OK; i++) {
        rc = count_token(shape, &texts, typed ? &types : NULL, err);
        if (rc == QSF_OK && i % 1024 == 0) rc = qsf_interrupt_check(err);
    }
    if (typed) qsf_meta_array_close(&types);
    qsf_meta_array_close(&texts);
    return rc;
}

static int check_scores(const QsfSource *src, QsfVocabShape *shape, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = open_parallel(&a, src, KEY_SCORES, QSF_META_F32, shape->n, &present, err);
    if (rc != QSF_OK) return rc;
    if (present) qsf_meta_array_close(&a);
    shape->scores = shape->scores && present;
    return QSF_OK;
}

int qsf_vocab_shape(QsfVocabShape *shape, const QsfSource *src, bool scores, QsfErr *err) {
    const char *path = qsf_source_path(src);
    QsfMetaArray a;
    bool present;
    *shape = (QsfVocabShape){ .scores = scores };
    int rc = qsf_meta_array_open(src, KEY_TOKENS, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    if (!present) return qsf_err_set(err, QSF_E_MODEL, "%s: no vocabulary (%s is missing)", path, KEY_TOKENS);
    uint64_t count = a.count, bytes = a.bytes;
    qsf_meta_array_close(&a);
    if (count == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: %s is empty", path, KEY_TOKENS);
    if (count > QSF_VOCAB_MAX) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s has %llu tokens, more than the limit of %u", path,
                           KEY_TOKENS, (unsigned long long)count, QSF_VOCAB_MAX);
    }
    /* each string carries 8 bytes of length in the file */
    if (bytes < 8 * count || bytes - 8 * count > UINT32_MAX) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s: invalid size: %llu tokens in %llu bytes", path,
                           KEY_TOKENS, (unsigned long long)count, (unsigned long long)bytes);
    }
    shape->n = (uint32_t)count;
    shape->text_bytes = bytes - 8 * count;
    rc = check_scores(src, shape, err);
    return rc == QSF_OK ? count_tokens(shape, src, err) : rc;
}

uint64_t qsf_vocab_bytes(const QsfVocabShape *shape) {
    uint64_t n = shape->n, slots = 4;
    while (slots < n + n / 3 + 1) slots *= 2; /* as qsf_hashmap_init computes the size of its table */
    uint64_t per_token = sizeof(uint32_t) + sizeof(uint8_t) + (shape->scores ? sizeof(float) : 0);
    return shape->text_bytes + n * per_token + slots * sizeof(int32_t) + 5 * 16;
}

static const char *map_key(const void *owner, int32_t id, size_t *len) {
    return qsf_vocab_text(owner, id, len);
}

static int load_token(QsfVocab *v, QsfMetaArray *a, const QsfVocabShape *shape, uint32_t i, const char *path,
                      QsfErr *err) {
    const char *s;
    size_t len;
    int rc = qsf_meta_array_str(a, &s, &len, err);
    if (rc != QSF_OK) return rc;
    if (len > QSF_TOKEN_TEXT_MAX) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s: token %u is %zu bytes long, more than the limit of %d",
                           path, KEY_TOKENS, i, len, QSF_TOKEN_TEXT_MAX);
    }
    if (!qsf_range_ok(v->off[i], len, shape->text_bytes)) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s is longer than its size in the file", path, KEY_TOKENS);
    }
    if (len > 0) memcpy(v->blob + v->off[i], s, len);
    if (shape->escaped) len = qsf_greedy_unescape(v->blob + v->off[i], len);
    v->off[i + 1] = v->off[i] + (uint32_t)len;
    v->attr[i] = QSF_TOKEN_NORMAL;
    if (len > v->max_len) v->max_len = (uint32_t)len;
    if (len > 0) (void)qsf_hashmap_put(&v->map, (int32_t)i);
    return QSF_OK;
}

static int load_tokens(QsfVocab *v, const QsfSource *src, const QsfVocabShape *shape, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, KEY_TOKENS, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = 0; i < v->n && rc == QSF_OK; i++) {
        rc = load_token(v, &a, shape, i, qsf_source_path(src), err);
        if (rc == QSF_OK && i % 1024 == 0) rc = qsf_interrupt_check(err);
    }
    qsf_meta_array_close(&a);
    return rc;
}

static int load_scores(QsfVocab *v, const QsfSource *src, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = open_parallel(&a, src, KEY_SCORES, QSF_META_F32, v->n, &present, err);
    if (rc != QSF_OK || !present) return rc;
    for (uint32_t i = 0; i < v->n && rc == QSF_OK; i++) rc = qsf_meta_array_f32(&a, &v->score[i], err);
    qsf_meta_array_close(&a);
    return rc;
}

/* An unknown type number (0 is "undefined") is stored as unused: such a token has no text. */
static int load_types(QsfVocab *v, const QsfSource *src, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = open_parallel(&a, src, KEY_TYPES, QSF_META_I64, v->n, &present, err);
    if (rc != QSF_OK || !present) return rc;
    for (uint32_t i = 0; i < v->n && rc == QSF_OK; i++) {
        int64_t type = QSF_TOKEN_UNUSED;
        rc = qsf_meta_array_i64(&a, &type, err);
        v->attr[i] = (uint8_t)(type >= QSF_TOKEN_NORMAL && type <= QSF_TOKEN_BYTE ? type : QSF_TOKEN_UNUSED);
    }
    qsf_meta_array_close(&a);
    return rc;
}

/* Refuses a vocabulary of equal tokens: no text but one could be written with it. */
static int check_usable(const QsfVocab *v, const QsfSource *src, QsfErr *err) {
    uint32_t n = 0, distinct = 0;
    for (uint32_t i = 0; i < v->n && distinct < 2; i++) {
        size_t len;
        const char *text = qsf_vocab_text(v, (int32_t)i, &len);
        if (v->attr[i] == QSF_TOKEN_CONTROL || v->attr[i] == QSF_TOKEN_UNKNOWN) continue;
        n++;
        distinct += len > 0 && qsf_hashmap_get(&v->map, text, len) == (int32_t)i;
    }
    if (v->n < 2 || (v->map.n > 1 && (n < 2 || distinct > 1))) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: no usable vocabulary: its tokens (%s) all have the same text",
                       qsf_source_path(src), KEY_TOKENS);
}

int qsf_vocab_load(QsfVocab *v, const QsfSource *src, const QsfVocabShape *shape, QsfArena *arena,
                   QsfErr *err) {
    size_t n = shape->n;
    *v = (QsfVocab){ .n = shape->n };
    v->blob = qsf_arena_alloc(arena, shape->text_bytes, 1, err);
    v->off = qsf_arena_alloc(arena, (n + 1) * sizeof *v->off, sizeof *v->off, err);
    v->attr = qsf_arena_alloc(arena, n, 1, err);
    if (v->blob == NULL || v->off == NULL || v->attr == NULL) return err->code;
    if (shape->scores) {
        v->score = qsf_arena_alloc(arena, n * sizeof *v->score, sizeof *v->score, err);
        if (v->score == NULL) return err->code;
    }
    int rc = qsf_hashmap_init(&v->map, arena, v->n, map_key, v, err);
    if (rc == QSF_OK) rc = load_tokens(v, src, shape, err);
    if (rc == QSF_OK && shape->scores) rc = load_scores(v, src, err);
    if (rc == QSF_OK) rc = load_types(v, src, err);
    return rc == QSF_OK ? check_usable(v, src, err) : rc;
}

const char *qsf_vocab_text(const QsfVocab *v, int32_t id, size_t *len) {
    if (id < 0 || (uint32_t)id >= v->n) {
        *len = 0;
        return "";
    }
    *len = v->off[id + 1] - v->off[id];
    return v->blob + v->off[id];
}

int32_t qsf_vocab_find(const QsfVocab *v, const char *text, size_t len) {
    if (len == 0 || len > v->max_len) return -1;
    return qsf_hashmap_get(&v->map, text, len);
}

QsfTokenType qsf_vocab_type(const QsfVocab *v, int32_t id) {
    if (id < 0 || (uint32_t)id >= v->n) return QSF_TOKEN_UNUSED;
    return (QsfTokenType)(v->attr[id] & QSF_ATTR_TYPE);
}

void qsf_vocab_set_type(QsfVocab *v, int32_t id, QsfTokenType type) {
    v->attr[id] = (uint8_t)((v->attr[id] & (0xFFu ^ QSF_ATTR_TYPE)) | (unsigned)type);
}

bool qsf_vocab_mergeable(const QsfVocab *v, int32_t id) {
    QsfTokenType type = qsf_vocab_type(v, id);
    return id >= 0 && type != QSF_TOKEN_CONTROL && type != QSF_TOKEN_UNKNOWN && type != QSF_TOKEN_BYTE;
}

int32_t qsf_vocab_find_model(const QsfVocab *v, const char *text, size_t len) {
    int32_t id = qsf_vocab_find(v, text, len);
    return id >= 0 && (v->attr[id] & QSF_ATTR_ADDED_ONLY) ? -1 : id;
}

/* Whether a text looks like <s>, [INST] or {x}. */
static bool is_markup(const char *s, size_t len) {
    for (size_t i = 0; len > 2 && i < len; i++)
        if (memchr("<>[]{}|", s[i], 7) != NULL) return true;
    return len > 2 && memmem(s, len, "\xEF\xBD\x9C", 3) != NULL; /* U+FF5C */
}

bool qsf_vocab_plain(const QsfVocab *v, int32_t id) {
    size_t len;
    const char *s = qsf_vocab_text(v, id, &len);
    if (id < 0 || (v->attr[id] & QSF_ATTR_ADDED_ONLY)) return false;
    return qsf_vocab_type(v, id) != QSF_TOKEN_CONTROL || !is_markup(s, len);
}
