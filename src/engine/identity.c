/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recognizes a model again: a 64-bit FNV-1a hash (Fowler, Noll and Vo) over what makes it that model. */
#include "src/engine/identity.h"

#include <string.h>

#define SAMPLES      64u
#define SAMPLE_BYTES 64u
#define END_BYTES    4096u /* of the start and of the end of a file */

static uint64_t add(uint64_t h, const void *p, size_t n) {
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 0x100000001B3u;
    return h;
}

static uint64_t add_u64(uint64_t h, uint64_t v) {
    unsigned char b[8];
    for (unsigned i = 0; i < 8; i++) b[i] = (unsigned char)(v >> 8 * i);
    return add(h, b, sizeof b);
}

static uint64_t add_str(uint64_t h, const char *s) { return add(h, s, strlen(s) + 1); }

/* A value that cannot be read as its type adds nothing: the number only has to be the same each time. */
static uint64_t add_value(uint64_t h, const QsfSource *s, const char *key, QsfMetaType type) {
    QsfErr none = { 0 };
    const char *text = NULL;
    size_t len = 0;
    float x = 0;
    bool yes = false;
    int64_t v = 0;
    uint32_t bits;
    if (type == QSF_META_STRING) {
        if (qsf_meta_str(s, key, &text, &len, &none) == QSF_OK && text != NULL) h = add(h, text, len);
    } else if (type == QSF_META_F32 || type == QSF_META_F64) {
        (void)qsf_meta_f32(s, key, 0, &x, &none);
        memcpy(&bits, &x, sizeof bits);
        h = add_u64(h, bits);
    } else if (type == QSF_META_BOOL) {
        (void)qsf_meta_bool(s, key, false, &yes, &none);
        h = add_u64(h, yes);
    } else if (type != QSF_META_ARRAY) {
        (void)qsf_meta_i64(s, key, 0, &v, &none);
        h = add_u64(h, (uint64_t)v);
    }
    return h;
}

static uint64_t add_meta(uint64_t h, const QsfSource *s) {
    for (size_t i = 0; i < qsf_meta_count(s); i++) {
        QsfMetaType type, elem;
        uint64_t count = 0;
        const char *key = qsf_meta_at(s, i, &type, &elem, &count);
        if (key == NULL) continue;
        h = add_u64(add_u64(add_str(h, key), type), count);
        h = add_value(h, s, key, type);
    }
    return h;
}

static uint64_t add_tensors(uint64_t h, const QsfSource *s) {
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        h = add_u64(add_str(h, t->name), t->dtype);
        for (unsigned d = 0; d < 4; d++) h = add_u64(h, t->ne[d]);
        h = add_u64(add_u64(h, t->offset), t->bytes);
        if (t->compressed != NULL) h = add_u64(h, t->compressed->crc);
    }
    return h;
}

static int add_bytes(uint64_t *h, const QsfFile *f, uint64_t off, size_t n, QsfErr *err) {
    unsigned char b[END_BYTES];
    if (off >= f->size) return QSF_OK;
    if (n > f->size - off) n = (size_t)(f->size - off);
    int rc = qsf_file_pread(f, b, n, off, err);
    if (rc == QSF_OK) *h = add(*h, b, n);
    return rc;
}

static int add_file(uint64_t *h, const QsfFile *f, QsfErr *err) {
    *h = add_u64(*h, f->size);
    int rc = add_bytes(h, f, 0, END_BYTES, err);
    for (unsigned i = 1; rc == QSF_OK && i <= SAMPLES; i++)
        rc = add_bytes(h, f, f->size / (SAMPLES + 1) * i, SAMPLE_BYTES, err);
    if (rc == QSF_OK && f->size > END_BYTES) rc = add_bytes(h, f, f->size - END_BYTES, END_BYTES, err);
    return rc;
}

int qsf_model_identity(const QsfSource *src, uint64_t *out, QsfErr *err) {
    uint32_t n_parts;
    const QsfChecksumPart *part = qsf_source_checksums(src, &n_parts);
    uint64_t h = 0xCBF29CE484222325u;
    int rc = QSF_OK;
    h = add_tensors(add_meta(h, src), src);
    for (uint32_t i = 0; i < n_parts; i++) h = add_u64(h, part[i].crc);
    for (uint32_t i = 0; rc == QSF_OK && i < qsf_source_n_files(src); i++)
        rc = add_file(&h, qsf_source_file(src, i), err);
    *out = h;
    return rc;
}
