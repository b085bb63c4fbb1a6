/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GGUF writer of the tests. It is independent of the reader on purpose. */
#include "tests/harness/gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t alignment_of(const QsfGgufBuild *b) { return b->alignment != 0 ? b->alignment : 32; }

static void put_le(QsfStrbuf *out, uint64_t v, unsigned n) {
    for (unsigned i = 0; i < n; i++) qsf_strbuf_addc(out, (char)(unsigned char)(v >> (8 * i)));
}

static void put_string(QsfStrbuf *out, const char *s) {
    put_le(out, strlen(s), 8);
    qsf_strbuf_adds(out, s);
}

static void begin_pair(QsfGgufBuild *b, const char *key, QsfMetaType type) {
    put_string(&b->meta, key);
    put_le(&b->meta, (uint64_t)type, 4);
    b->n_pairs++;
}

void qsf_gb_u32(QsfGgufBuild *b, const char *key, uint32_t v) {
    begin_pair(b, key, QSF_META_U32);
    put_le(&b->meta, v, 4);
}

void qsf_gb_u64(QsfGgufBuild *b, const char *key, uint64_t v) {
    begin_pair(b, key, QSF_META_U64);
    put_le(&b->meta, v, 8);
}

void qsf_gb_f32(QsfGgufBuild *b, const char *key, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    begin_pair(b, key, QSF_META_F32);
    put_le(&b->meta, bits, 4);
}

void qsf_gb_bool(QsfGgufBuild *b, const char *key, bool v) {
    begin_pair(b, key, QSF_META_BOOL);
    put_le(&b->meta, v, 1);
}

void qsf_gb_str(QsfGgufBuild *b, const char *key, const char *v) {
    begin_pair(b, key, QSF_META_STRING);
    put_string(&b->meta, v);
}

void qsf_gb_raw(QsfGgufBuild *b, const char *key, QsfMetaType type, const void *bytes, size_t len) {
    begin_pair(b, key, type);
    qsf_strbuf_add(&b->meta, bytes, len);
}

void qsf_gb_strings(QsfGgufBuild *b, const char *key, const char *const *v, uint64_t n) {
    begin_pair(b, key, QSF_META_ARRAY);
    put_le(&b->meta, QSF_META_STRING, 4);
    put_le(&b->meta, n, 8);
    for (uint64_t i = 0; i < n; i++) put_string(&b->meta, v[i]);
}

void qsf_gb_array(QsfGgufBuild *b, const char *key, QsfMetaType elem, uint64_t n, const void *bytes,
                  size_t len) {
    begin_pair(b, key, QSF_META_ARRAY);
    put_le(&b->meta, (uint64_t)elem, 4);
    put_le(&b->meta, n, 8);
    qsf_strbuf_add(&b->meta, bytes, len);
}

void qsf_gb_tensor_row(QsfGgufBuild *b, const char *name, uint32_t dtype, uint32_t n_dims, const uint64_t *ne,
                       uint64_t offset) {
    put_string(&b->table, name);
    put_le(&b->table, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++) put_le(&b->table, ne[i], 8);
    put_le(&b->table, dtype, 4);
    put_le(&b->table, offset, 8);
    b->n_tensors++;
}

static void pad_to(QsfStrbuf *out, size_t multiple) {
    while (out->len % multiple != 0) qsf_strbuf_addc(out, 0);
}

void qsf_gb_tensor(QsfGgufBuild *b, const char *name, uint32_t dtype, uint32_t n_dims, const uint64_t *ne,
                   const void *data, size_t len) {
    pad_to(&b->data, alignment_of(b));
    qsf_gb_tensor_row(b, name, dtype, n_dims, ne, b->data.len);
    qsf_strbuf_add(&b->data, data, len);
}

unsigned char *qsf_gb_bytes(const QsfGgufBuild *b, size_t *len) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&out, "GGUF");
    put_le(&out, b->version != 0 ? b->version : 3, 4);
    put_le(&out, b->n_tensors, 8);
    put_le(&out, b->n_pairs, 8);
    qsf_strbuf_add(&out, b->meta.data, b->meta.len);
    qsf_strbuf_add(&out, b->table.data, b->table.len);
    if (b->n_tensors > 0) pad_to(&out, alignment_of(b));
    qsf_strbuf_add(&out, b->data.data, b->data.len);
    return (unsigned char *)qsf_strbuf_take(&out, len);
}

int qsf_test_write_file(const char *path, const void *bytes, size_t len) {
    FILE *f = fopen(path, "wb");
    if (f == NULL) return -1;
    size_t done = len == 0 ? 0 : fwrite(bytes, 1, len, f);
    return fclose(f) == 0 && done == len ? 0 : -1;
}

int qsf_gb_write(const QsfGgufBuild *b, const char *path) {
    size_t len;
    unsigned char *bytes = qsf_gb_bytes(b, &len);
    if (bytes == NULL) return -1;
    int rc = qsf_test_write_file(path, bytes, len);
    free(bytes);
    return rc;
}

void qsf_gb_free(QsfGgufBuild *b) {
    qsf_strbuf_free(&b->meta);
    qsf_strbuf_free(&b->table);
    qsf_strbuf_free(&b->data);
    *b = (QsfGgufBuild){ 0 };
}
