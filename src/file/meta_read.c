/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads metadata, encoded as in GGUF (ggml-org/ggml docs/gguf.md). */
#include "src/file/meta_read.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/checked.h"

#define MIN_ARRAY_BYTES 12u /* element type, length */
#define ARRAY_DEPTH_MAX 16u /* of arrays in arrays */

static const char *path_of(const QsfMetaReader *r) { return r->s->files[r->file].path; }

/* Reads a length-prefixed string, copied and NUL-terminated; *len is its length. */
static int read_string(QsfMetaReader *r, uint64_t max, const char *what, const char **out, uint64_t *len) {
    uint64_t at = r->c.pos, n;
    int rc = qsf_cursor_u64(&r->c, &n, what, r->err);
    if (rc != QSF_OK) return rc;
    if (n > max || n > qsf_cursor_left(&r->c))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: %s at byte offset %" PRIu64 " claims a length of %" PRIu64
                           " (maximum %" PRIu64 ", %" PRIu64 " bytes left)",
                           path_of(r), what, at, n, max, qsf_cursor_left(&r->c));
    char *p = qsf_source_alloc(r->s, n + 1, 1, r->err);
    if (p == NULL) return r->err->code;
    *out = p;
    *len = n;
    return qsf_cursor_bytes(&r->c, p, (size_t)n, what, r->err);
}

int qsf_meta_read_name(QsfMetaReader *r, uint64_t max, const char *what, const char **out, uint64_t *len) {
    uint64_t at = r->c.pos;
    int rc = read_string(r, max, what, out, len);
    if (rc != QSF_OK) return rc;
    if (*len == 0 || memchr(*out, '\0', (size_t)*len) != NULL)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: %s at byte offset %" PRIu64 " is empty or holds a NUL byte", path_of(r), what,
                           at);
    return QSF_OK;
}

static int read_type(QsfMetaReader *r, const char *key, QsfMetaType *out) {
    uint64_t at = r->c.pos;
    uint32_t t;
    int rc = qsf_cursor_u32(&r->c, &t, "metadata type", r->err);
    if (rc != QSF_OK) return rc;
    if (t >= QSF_META_N)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: metadata key '%s' has unknown type %" PRIu32 " at byte offset %" PRIu64,
                           path_of(r), key, t, at);
    *out = (QsfMetaType)t;
    return QSF_OK;
}

static int read_scalar(QsfMetaReader *r, QsfMetaEntry *e) {
    unsigned n = qsf_meta_type_bytes(e->type);
    uint64_t at = r->c.pos, v = 0;
    unsigned char b[8] = { 0 };
    int rc = qsf_cursor_bytes(&r->c, b, n, "metadata value", r->err);
    if (rc != QSF_OK) return rc;
    for (unsigned i = n; i > 0; i--) v = v << 8 | b[i - 1];
    uint32_t low = (uint32_t)v;
    float f;
    switch (e->type) {
    case QSF_META_I8: e->v.i = (int8_t)(uint8_t)v; break;
    case QSF_META_I16: e->v.i = (int16_t)(uint16_t)v; break;
    case QSF_META_I32: e->v.i = (int32_t)low; break;
    case QSF_META_I64: e->v.i = (int64_t)v; break;
    case QSF_META_F32:
        memcpy(&f, &low, sizeof f);
        e->v.f = (double)f;
        break;
    case QSF_META_F64: memcpy(&e->v.f, &v, sizeof e->v.f); break;
    case QSF_META_BOOL:
        if (v > 1)
            return qsf_err_set(r->err, QSF_E_MODEL,
                               "%s: metadata key '%s' at byte offset %" PRIu64
                               " is a bool with the value %" PRIu64,
                               path_of(r), e->key, at, v);
        e->v.u = v;
        break;
    default: e->v.u = v; break;
    }
    return QSF_OK;
}

/* Checks the lengths of all strings of an array, so that later readers can trust them. */
static int skip_strings(QsfMetaReader *r, const char *key, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = r->c.pos, n;
        int rc = qsf_cursor_u64(&r->c, &n, "string in a metadata array", r->err);
        if (rc != QSF_OK) return rc;
        if (n > QSF_META_STR_MAX)
            return qsf_err_set(r->err, QSF_E_MODEL,
                               "%s: metadata key '%s': string %" PRIu64 " at byte offset %" PRIu64
                               " claims a length of %" PRIu64 ", more than 1 MiB",
                               path_of(r), key, i, at, n);
        rc = qsf_cursor_skip(&r->c, n, "string in a metadata array", r->err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}

static int skip_array(QsfMetaReader *r, const char *key, unsigned depth, QsfMetaType *elem, uint64_t *count);

/* Skips the arrays that are the elements of an array. No setting is one: they are carried over to other
 * files, but not read. */
static int skip_arrays(QsfMetaReader *r, const char *key, uint64_t count, unsigned depth) {
    int rc = QSF_OK;
    if (depth == ARRAY_DEPTH_MAX)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: metadata key '%s' at byte offset %" PRIu64
                           " has arrays nested deeper than %u levels",
                           path_of(r), key, r->c.pos, ARRAY_DEPTH_MAX);
    for (uint64_t i = 0; rc == QSF_OK && i < count; i++) {
        QsfMetaType elem;
        uint64_t n;
        rc = skip_array(r, key, depth + 1, &elem, &n);
    }
    return rc;
}

/* Reads the header of an array and skips its elements. depth counts from 1. */
static int skip_array(QsfMetaReader *r, const char *key, unsigned depth, QsfMetaType *elem, uint64_t *count) {
    uint64_t at = r->c.pos, least;
    int rc = read_type(r, key, elem);
    if (rc == QSF_OK) rc = qsf_cursor_u64(&r->c, count, "metadata array length", r->err);
    if (rc != QSF_OK) return rc;
    const unsigned size = *elem == QSF_META_STRING  ? 8
                          : *elem == QSF_META_ARRAY ? MIN_ARRAY_BYTES
                                                    : qsf_meta_type_bytes(*elem);
    if (!qsf_mul_u64(*count, size, &least) || least > qsf_cursor_left(&r->c))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: metadata key '%s' at byte offset %" PRIu64 " claims %" PRIu64
                           " elements, but only %" PRIu64 " bytes are left",
                           path_of(r), key, at, *count, qsf_cursor_left(&r->c));
    if (*elem == QSF_META_STRING) return skip_strings(r, key, *count);
    if (*elem == QSF_META_ARRAY) return skip_arrays(r, key, *count, depth);
    return qsf_cursor_skip(&r->c, least, "metadata array", r->err);
}

static int read_array(QsfMetaReader *r, QsfMetaEntry *e) {
    uint64_t at = r->c.pos;
    int rc = skip_array(r, e->key, 1, &e->elem, &e->v.arr.count);
    e->v.arr.off = at + MIN_ARRAY_BYTES;
    e->v.arr.bytes = rc == QSF_OK ? r->c.pos - e->v.arr.off : 0;
    return rc;
}

static int read_pair(QsfMetaReader *r, QsfMetaEntry *e) {
    uint64_t len;
    int rc = qsf_meta_read_name(r, QSF_META_KEY_MAX, "metadata key", &e->key, &len);
    if (rc != QSF_OK) return rc;
    e->key_len = (size_t)len;
    rc = read_type(r, e->key, &e->type);
    if (rc != QSF_OK) return rc;
    if (e->type == QSF_META_ARRAY) return read_array(r, e);
    if (e->type == QSF_META_STRING)
        return read_string(r, QSF_META_STR_MAX, "metadata string", &e->v.str.s, &e->v.str.len);
    return read_scalar(r, e);
}

int qsf_meta_read_table(QsfMetaReader *r, uint64_t n, uint32_t more, QsfMetaTable *t) {
    int rc = qsf_meta_table_init(r->s, t, n + more, r->err);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        rc = read_pair(r, &t->e[t->n]);
        if (rc == QSF_OK) rc = qsf_meta_table_add(r->s, t, r->err);
    }
    return rc;
}

int qsf_meta_check_count(const QsfMetaReader *r, uint64_t n, uint64_t least, const char *what) {
    if (n <= qsf_cursor_left(&r->c) / least) return QSF_OK;
    return qsf_err_set(r->err, QSF_E_MODEL,
                       "%s: truncated: the header declares %" PRIu64 " %s, but only %" PRIu64
                       " bytes follow it",
                       path_of(r), n, what, qsf_cursor_left(&r->c));
}

int qsf_meta_read_pairs(QsfSource *s, QsfCursor *c, uint32_t more, QsfMetaTable *t, QsfErr *err) {
    QsfMetaReader r = { .s = s, .c = *c, .err = err };
    uint64_t n = 0;
    int rc = qsf_cursor_u64(&r.c, &n, "metadata count", err);
    if (rc == QSF_OK) rc = qsf_meta_check_count(&r, n, QSF_META_MIN_PAIR, "metadata entries");
    if (rc == QSF_OK) rc = qsf_meta_read_table(&r, n, more, t);
    *c = r.c;
    return rc;
}
