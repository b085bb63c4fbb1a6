/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads metadata arrays sequentially from the file. */
#include <stdlib.h>
#include <string.h>

#include "src/file/source_impl.h"

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
