/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata table and the typed scalar accessors. */
#include <stdlib.h>
#include <string.h>

#include "src/file/source_impl.h"

typedef struct TypeInfo {
    const char *name;
    unsigned bytes;
} TypeInfo;

static const TypeInfo types[QSF_META_N] = {
    [QSF_META_U8] = { "u8", 1 },       [QSF_META_I8] = { "i8", 1 },     [QSF_META_U16] = { "u16", 2 },
    [QSF_META_I16] = { "i16", 2 },     [QSF_META_U32] = { "u32", 4 },   [QSF_META_I32] = { "i32", 4 },
    [QSF_META_F32] = { "f32", 4 },     [QSF_META_BOOL] = { "bool", 1 }, [QSF_META_STRING] = { "string", 0 },
    [QSF_META_ARRAY] = { "array", 0 }, [QSF_META_U64] = { "u64", 8 },   [QSF_META_I64] = { "i64", 8 },
    [QSF_META_F64] = { "f64", 8 },
};

const char *qsf_meta_type_name(QsfMetaType type) {
    return (unsigned)type < QSF_META_N ? types[type].name : "unknown";
}

unsigned qsf_meta_type_bytes(QsfMetaType type) { return types[type].bytes; }

static const char *entry_key(const void *owner, int32_t id, size_t *len) {
    const QsfMetaEntry *e = (const QsfMetaEntry *)owner + id;
    *len = e->key_len;
    return e->key;
}

int qsf_meta_table_init(QsfSource *s, QsfMetaTable *t, uint64_t n, QsfErr *err) {
    *t = (QsfMetaTable){ 0 };
    t->e = qsf_source_alloc(s, n + QSF_MAX_OVERRIDES, sizeof *t->e, err);
    if (t->e == NULL) return err->code;
    t->cap = (uint32_t)(n + QSF_MAX_OVERRIDES); /* cannot overflow: the allocation is limited */
    return qsf_hashmap_init(&t->map, &s->arena, t->cap, entry_key, t->e, err);
}

int qsf_meta_table_add(const QsfSource *s, QsfMetaTable *t, QsfErr *err) {
    int32_t id = (int32_t)t->n;
    if (qsf_hashmap_put(&t->map, id) != id)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' appears twice", s->files[0].path,
                           t->e[id].key);
    t->n++;
    return QSF_OK;
}

const QsfMetaEntry *qsf_meta_find(const QsfMetaTable *t, const char *key) {
    int32_t id = qsf_hashmap_get(&t->map, key, strlen(key));
    return id < 0 || t->e[id].hidden ? NULL : &t->e[id];
}

size_t qsf_meta_count(const QsfSource *s) { return s->meta.n - s->meta.n_hidden; }

const char *qsf_meta_at(const QsfSource *s, size_t i, QsfMetaType *type, QsfMetaType *elem, uint64_t *count) {
    const QsfMetaTable *t = &s->meta;
    if (t->n_hidden > 0) { /* rare: skip the entries that an override hides */
        size_t visible = 0, at = 0;
        for (; at < t->n; at++)
            if (!t->e[at].hidden && visible++ == i) break;
        i = at;
    }
    if (i >= t->n) return NULL;
    const QsfMetaEntry *e = &t->e[i];
    if (type != NULL) *type = e->type;
    if (elem != NULL) *elem = e->elem;
    if (count != NULL) *count = e->type == QSF_META_ARRAY ? e->v.arr.count : 1;
    return e->key;
}

bool qsf_meta_has(const QsfSource *s, const char *key) { return qsf_meta_find(&s->meta, key) != NULL; }

static bool is_signed(QsfMetaType t) {
    return t == QSF_META_I8 || t == QSF_META_I16 || t == QSF_META_I32 || t == QSF_META_I64;
}
static bool is_unsigned(QsfMetaType t) {
    return t == QSF_META_U8 || t == QSF_META_U16 || t == QSF_META_U32 || t == QSF_META_U64;
}
static bool is_float(QsfMetaType t) { return t == QSF_META_F32 || t == QSF_META_F64; }

static int wrong_type(const char *path, const QsfMetaEntry *e, const char *expected, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is of type %s, expected %s", path, e->key,
                       qsf_meta_type_name(e->type), expected);
}

/* Converts e to an integer in [lo, hi]; hi must be <= INT64_MAX. */
static int int_in_range(const char *path, const QsfMetaEntry *e, int64_t lo, int64_t hi, int64_t *out,
                        QsfErr *err) {
    if (!is_signed(e->type) && !is_unsigned(e->type)) return wrong_type(path, e, "an integer", err);
    if (is_unsigned(e->type) && e->v.u > (uint64_t)hi)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is %llu, out of range (%lld to %lld)",
                           path, e->key, (unsigned long long)e->v.u, (long long)lo, (long long)hi);
    int64_t v = is_signed(e->type) ? e->v.i : (int64_t)e->v.u;
    if (v < lo || v > hi)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is %lld, out of range (%lld to %lld)",
                           path, e->key, (long long)v, (long long)lo, (long long)hi);
    *out = v;
    return QSF_OK;
}

int qsf_meta_table_u32(const QsfMetaTable *t, const char *path, const char *key, uint32_t fallback,
                       uint32_t *out, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(t, key);
    int64_t v = 0;
    *out = fallback;
    if (e == NULL) return QSF_OK;
    int rc = int_in_range(path, e, 0, UINT32_MAX, &v, err);
    if (rc == QSF_OK) *out = (uint32_t)v;
    return rc;
}

int qsf_meta_u32(const QsfSource *s, const char *key, uint32_t fallback, uint32_t *out, QsfErr *err) {
    return qsf_meta_table_u32(&s->meta, s->files[0].path, key, fallback, out, err);
}

int qsf_meta_i64(const QsfSource *s, const char *key, int64_t fallback, int64_t *out, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, key);
    *out = fallback;
    return e == NULL ? QSF_OK : int_in_range(s->files[0].path, e, INT64_MIN, INT64_MAX, out, err);
}

int qsf_meta_f32(const QsfSource *s, const char *key, float fallback, float *out, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, key);
    *out = fallback;
    if (e == NULL) return QSF_OK;
    if (is_float(e->type)) {
        *out = (float)e->v.f;
    } else if (is_signed(e->type)) {
        *out = (float)e->v.i;
    } else if (is_unsigned(e->type)) {
        *out = (float)e->v.u;
    } else {
        return wrong_type(s->files[0].path, e, "a number", err);
    }
    return QSF_OK;
}

int qsf_meta_bool(const QsfSource *s, const char *key, bool fallback, bool *out, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, key);
    int64_t v = 0;
    *out = fallback;
    if (e == NULL) return QSF_OK;
    if (e->type == QSF_META_BOOL) {
        *out = e->v.u != 0;
        return QSF_OK;
    }
    if (!is_signed(e->type) && !is_unsigned(e->type)) return wrong_type(s->files[0].path, e, "a bool", err);
    int rc = int_in_range(s->files[0].path, e, 0, 1, &v, err);
    if (rc == QSF_OK) *out = v != 0;
    return rc;
}

int qsf_meta_str(const QsfSource *s, const char *key, const char **out, size_t *len, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, key);
    *out = NULL;
    if (len != NULL) *len = 0;
    if (e == NULL) return QSF_OK;
    if (e->type != QSF_META_STRING) return wrong_type(s->files[0].path, e, "a string", err);
    if (len == NULL && memchr(e->v.str.s, '\0', (size_t)e->v.str.len) != NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is a string that contains a NUL",
                           s->files[0].path, e->key);
    *out = e->v.str.s;
    if (len != NULL) *len = (size_t)e->v.str.len;
    return QSF_OK;
}

/* --- reads metadata arrays sequentially from the file --- */

/* Returns whether an array of `have` may be read as `want`. */
static bool converts(QsfMetaType have, QsfMetaType want) {
    bool is_float = have == QSF_META_F32 || have == QSF_META_F64;
    if (want == QSF_META_STRING || have == QSF_META_STRING) return have == want;
    if (have == QSF_META_ARRAY) return false;
    if (want == QSF_META_F32 || want == QSF_META_F64) return is_float;
    return !is_float;
}

int qsf_meta_array_open(const QsfSource *s, const char *key, QsfMetaType elem, QsfMetaArray *a, bool *present,
                        QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, key);
    *a = (QsfMetaArray){ 0 };
    *present = false;
    if (e == NULL) return QSF_OK;
    const char *path = s->files[0].path;
    if (e->type != QSF_META_ARRAY)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is of type %s, expected an array", path,
                           key, qsf_meta_type_name(e->type));
    if (!converts(e->elem, elem))
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is an array of %s, expected one of %s",
                           path, key, qsf_meta_type_name(e->elem), qsf_meta_type_name(elem));
    a->elem = e->elem;
    a->count = e->v.arr.count;
    a->bytes = e->v.arr.bytes;
    a->key = e->key;
    int rc = QSF_OK;
    if (e->v.arr.mem != NULL) {
        qsf_cursor_memory(&a->cur, &s->files[0], e->v.arr.mem, e->v.arr.bytes);
    } else {
        rc = qsf_cursor_open(&a->cur, &s->files[0], e->v.arr.off, e->v.arr.bytes, err);
    }
    if (rc != QSF_OK) {
        qsf_meta_array_close(a);
        return rc;
    }
    *present = true;
    return QSF_OK;
}

/* Counts one element as read. */
static int step(QsfMetaArray *a, bool right_kind, QsfErr *err) {
    if (!right_kind || a->next >= a->count)
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "internal: array '%s' of %llu elements is read past its end or as another type",
                           a->key, (unsigned long long)a->count);
    a->next++;
    return QSF_OK;
}

int qsf_meta_array_str(QsfMetaArray *a, const char **s, size_t *len, QsfErr *err) {
    uint64_t n;
    int rc = step(a, a->elem == QSF_META_STRING, err);
    if (rc == QSF_OK) rc = qsf_cursor_u64(&a->cur, &n, a->key, err);
    if (rc != QSF_OK) return rc;
    if (n > QSF_META_STR_MAX || n > qsf_cursor_left(&a->cur)) /* checked at open, so the file has changed */
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: the file changed while '%s' was read", a->cur.file->path,
                           a->key);
    if (n + 1 > a->tmp_cap) {
        size_t cap = (size_t)n + 1 < 256 ? 256 : ((size_t)n + 1) * 2;
        char *tmp = realloc(a->tmp, cap);
        if (tmp == NULL) return qsf_err_memory(err, "%s", a->cur.file->path);
        a->tmp = tmp;
        a->tmp_cap = cap;
    }
    rc = qsf_cursor_bytes(&a->cur, a->tmp, (size_t)n, a->key, err);
    if (rc != QSF_OK) return rc;
    a->tmp[n] = '\0';
    *s = a->tmp;
    *len = (size_t)n;
    return QSF_OK;
}

/* Reads the next fixed-size element as raw little-endian bits. */
static int next_bits(QsfMetaArray *a, bool right_kind, uint64_t *out, QsfErr *err) {
    unsigned char b[8] = { 0 };
    unsigned n = qsf_meta_type_bytes(a->elem);
    int rc = step(a, right_kind, err);
    if (rc == QSF_OK) rc = qsf_cursor_bytes(&a->cur, b, n, a->key, err);
    uint64_t v = 0;
    for (unsigned i = n; i > 0; i--) v = v << 8 | b[i - 1];
    *out = v;
    return rc;
}

int qsf_meta_array_i64(QsfMetaArray *a, int64_t *out, QsfErr *err) {
    uint64_t v;
    int rc = next_bits(a, converts(a->elem, QSF_META_I64), &v, err);
    if (rc != QSF_OK) return rc;
    switch (a->elem) {
    case QSF_META_I8: *out = (int8_t)(uint8_t)v; break;
    case QSF_META_I16: *out = (int16_t)(uint16_t)v; break;
    case QSF_META_I32: *out = (int32_t)(uint32_t)v; break;
    case QSF_META_U64:
        if (v > INT64_MAX)
            return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s': element %llu is out of range",
                               a->cur.file->path, a->key, (unsigned long long)(a->next - 1));
        *out = (int64_t)v;
        break;
    default: *out = (int64_t)v; break;
    }
    return QSF_OK;
}

int qsf_meta_array_f32(QsfMetaArray *a, float *out, QsfErr *err) {
    uint64_t v;
    int rc = next_bits(a, converts(a->elem, QSF_META_F32), &v, err);
    if (rc != QSF_OK) return rc;
    if (a->elem == QSF_META_F64) {
        double d;
        memcpy(&d, &v, sizeof d);
        *out = (float)d;
    } else {
        uint32_t low = (uint32_t)v;
        memcpy(out, &low, sizeof *out);
    }
    return QSF_OK;
}

void qsf_meta_array_close(QsfMetaArray *a) {
    qsf_cursor_close(&a->cur);
    free(a->tmp);
    *a = (QsfMetaArray){ 0 };
}
