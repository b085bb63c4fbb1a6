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
