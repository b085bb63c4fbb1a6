/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata generated in memory by readers of other formats, with GGUF's keys. */
#include <stdlib.h>
#include <string.h>

#include "src/file/source_impl.h"

int qsf_meta_make(QsfSource *s, const QsfMetaEntry *e, QsfErr *err) {
    QsfMetaTable *t = &s->meta;
    if (t->n == t->cap)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: more than %u metadata keys", t->cap);
    t->e[t->n] = *e;
    t->e[t->n].key_len = strlen(e->key);
    return qsf_meta_table_add(s, t, err);
}

int qsf_meta_make_str(QsfSource *s, const char *key, const char *text, size_t len, QsfErr *err) {
    if (len > QSF_META_STR_MAX)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the text for '%s' is %zu bytes long, more than the limit of %llu",
                           s->files[0].path, key, len, (unsigned long long)QSF_META_STR_MAX);
    QsfMetaEntry e = { .key = key, .type = QSF_META_STRING };
    e.v.str.s = qsf_arena_strdup(&s->arena, text, len, err);
    e.v.str.len = len;
    return e.v.str.s == NULL ? err->code : qsf_meta_make(s, &e, err);
}

int qsf_meta_make_u32(QsfSource *s, const char *key, uint32_t v, QsfErr *err) {
    QsfMetaEntry e = { .key = key, .type = QSF_META_U32 };
    e.v.u = v;
    return qsf_meta_make(s, &e, err);
}

int qsf_meta_make_f32(QsfSource *s, const char *key, float v, QsfErr *err) {
    QsfMetaEntry e = { .key = key, .type = QSF_META_F32 };
    e.v.f = (double)v;
    return qsf_meta_make(s, &e, err);
}

int qsf_meta_make_bool(QsfSource *s, const char *key, bool v, QsfErr *err) {
    QsfMetaEntry e = { .key = key, .type = QSF_META_BOOL };
    e.v.u = v;
    return qsf_meta_make(s, &e, err);
}

/* Transfers ownership of data to s; frees it on failure. */
static int keep(QsfSource *s, void *data, uint64_t bytes, QsfErr *err) {
    int rc = s->n_made == QSF_MADE_ARRAYS
                 ? qsf_err_set(err, QSF_E_RUNTIME, "internal: too many made arrays")
                 : qsf_ledger_reserve(s->ledger, QSF_MEM_META, bytes, "vocabulary", err);
    if (rc != QSF_OK) {
        free(data);
        return rc;
    }
    s->made[s->n_made++] = (QsfMadeArray){ .data = data, .bytes = bytes };
    return QSF_OK;
}

int qsf_meta_make_array(QsfSource *s, const char *key, QsfMetaType elem, uint64_t count, QsfStrbuf *b,
                        QsfErr *err) {
    QsfMetaEntry e = { .key = key, .type = QSF_META_ARRAY, .elem = elem };
    size_t len;
    qsf_strbuf_add(b, "", 0);
    char *data = qsf_strbuf_take(b, &len);
    if (data == NULL) return qsf_err_memory(err, "%s", s->files[0].path);
    if (len > QSF_MADE_MAX) {
        free(data);
        return qsf_err_set(err, QSF_E_MODEL, "%s: '%s' needs %zu bytes, more than the limit of %llu",
                           s->files[0].path, key, len, (unsigned long long)QSF_MADE_MAX);
    }
    char *exact = realloc(data, len + 1); /* shrink to fit */
    if (exact != NULL) data = exact;
    int rc = keep(s, data, len + 1, err);
    if (rc != QSF_OK) return rc;
    e.v.arr.mem = (const unsigned char *)data;
    e.v.arr.count = count;
    e.v.arr.bytes = len;
    return qsf_meta_make(s, &e, err);
}

void qsf_meta_put_le(QsfStrbuf *b, uint64_t v, unsigned bytes) {
    unsigned char le[8];
    for (unsigned i = 0; i < bytes; i++) le[i] = (unsigned char)(v >> (8 * i));
    qsf_strbuf_add(b, le, bytes);
}

void qsf_meta_put_str(QsfStrbuf *b, const char *text, size_t len) {
    qsf_meta_put_le(b, len, 8);
    qsf_strbuf_add(b, text, len);
}

void qsf_meta_free_made(QsfSource *s) {
    for (uint32_t i = 0; i < s->n_made; i++) {
        free(s->made[i].data);
        qsf_ledger_release(s->ledger, QSF_MEM_META, s->made[i].bytes);
    }
    s->n_made = 0;
}

/* --- copies metadata from a source to a file, encoded as in GGUF v3 (ggml-org/ggml docs/gguf.md) --- */

#define PIECE 65536u

static uint64_t scalar_bits(const QsfMetaEntry *e) {
    uint64_t bits = e->v.u;
    uint32_t low;
    float f;
    switch (e->type) {
    case QSF_META_F32:
        f = (float)e->v.f;
        memcpy(&low, &f, sizeof low);
        return low;
    case QSF_META_F64: memcpy(&bits, &e->v.f, sizeof bits); return bits;
    case QSF_META_I8:
    case QSF_META_I16:
    case QSF_META_I32:
    case QSF_META_I64: return (uint64_t)e->v.i;
    default: return bits;
    }
}

/* Encodes a pair without the elements of an array. */
static void put_entry(QsfStrbuf *b, const QsfMetaEntry *e) {
    qsf_meta_put_str(b, e->key, e->key_len);
    qsf_meta_put_le(b, (uint64_t)e->type, 4);
    if (e->type == QSF_META_ARRAY) {
        qsf_meta_put_le(b, (uint64_t)e->elem, 4);
        qsf_meta_put_le(b, e->v.arr.count, 8);
    } else if (e->type == QSF_META_STRING) {
        qsf_meta_put_str(b, e->v.str.s, (size_t)e->v.str.len);
    } else {
        qsf_meta_put_le(b, scalar_bits(e), qsf_meta_type_bytes(e->type));
    }
}

/* Copies the elements from the file of the source. */
static int copy_elements(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg,
                         QsfErr *err) {
    unsigned char piece[PIECE];
    if (e->v.arr.mem != NULL) return sink(arg, e->v.arr.mem, (size_t)e->v.arr.bytes, err);
    int rc = QSF_OK;
    for (uint64_t done = 0; rc == QSF_OK && done < e->v.arr.bytes;) {
        uint64_t left = e->v.arr.bytes - done;
        size_t n = left < PIECE ? (size_t)left : PIECE;
        rc = qsf_file_pread(&s->files[0], piece, n, e->v.arr.off + done, err);
        if (rc == QSF_OK) rc = sink(arg, piece, n, err);
        done += n;
    }
    return rc;
}

int qsf_meta_copy_entry(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_entry(&b, e);
    int rc = qsf_strbuf_ok(&b) ? sink(arg, b.data, b.len, err)
                               : qsf_err_memory(err, "metadata key '%s'", e->key);
    qsf_strbuf_free(&b);
    return rc == QSF_OK && e->type == QSF_META_ARRAY ? copy_elements(s, e, sink, arg, err) : rc;
}
