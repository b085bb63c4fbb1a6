/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sources, whatever their format: memory, the index of tensors, closing, accessors. */
#include "src/file/source.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/source_impl.h"

static void *alloc_in(QsfSource *s, QsfArena *a, uint64_t n, uint64_t elem_bytes, QsfErr *err) {
    uint64_t bytes;
    const uint64_t used = s->arena.used + s->opening.used;
    if (!qsf_mul_u64(n, elem_bytes, &bytes) || bytes > QSF_META_CAP || used > QSF_META_CAP - bytes) {
        qsf_err_set(err, QSF_E_MODEL, "%s: its tables and strings need more than %zu MiB of memory",
                    qsf_source_path(s), QSF_META_CAP >> 20);
        return NULL;
    }
    return qsf_arena_alloc(a, (size_t)bytes, elem_bytes == 1 ? 1 : 16, err);
}

void *qsf_source_alloc(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err) {
    return alloc_in(s, &s->arena, n, elem_bytes, err);
}

void *qsf_source_alloc_opening(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err) {
    return alloc_in(s, &s->opening, n, elem_bytes, err);
}

static const char *tensor_key(const void *owner, int32_t id, size_t *len) {
    const QsfTensor *t = (const QsfTensor *)owner + id;
    *len = strlen(t->name);
    return t->name;
}

/* Returns the path of the file that contains a tensor, for messages. */
static const char *home_of(const QsfSource *s, const QsfTensor *t) {
    return t->file < s->n_files ? s->files[t->file].path : qsf_source_path(s);
}

int qsf_source_index_tensors(QsfSource *s, QsfErr *err) {
    int rc = qsf_hashmap_init(&s->tensor_map, &s->arena, (uint32_t)s->n_tensors, tensor_key, s->tensors, err);
    for (uint64_t i = 0; rc == QSF_OK && i < s->n_tensors; i++)
        if (qsf_hashmap_put(&s->tensor_map, (int32_t)i) != (int32_t)i)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' appears twice", home_of(s, &s->tensors[i]),
                             s->tensors[i].name);
    return rc;
}

void qsf_source_close(QsfSource *s) {
    if (s == NULL) return;
    qsf_meta_free_made(s);
    if (s->compressed_ops != NULL) s->compressed_ops->close(s);
    if (s->virtual_ops != NULL) s->virtual_ops->close(s);
    for (uint32_t i = 0; i < s->n_files; i++) qsf_file_close(&s->files[i]);
    qsf_arena_destroy(&s->arena);
    free(s);
}

bool qsf_source_from_dir(const QsfSource *s) { return s->from_dir; }
const char *qsf_source_notice(const QsfSource *s) { return s->notice; }
const char *qsf_source_path(const QsfSource *s) { return s->dir != NULL ? s->dir : s->files[0].path; }
const char *qsf_source_format(const QsfSource *s) { return s->format; }
uint32_t qsf_source_n_files(const QsfSource *s) { return s->n_files; }
uint64_t qsf_source_n_tensors(const QsfSource *s) { return s->n_tensors; }
uint64_t qsf_source_n_left_out(const QsfSource *s) { return s->n_left_out; }

uint64_t qsf_source_bytes(const QsfSource *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_files; i++) sum += s->files[i].size;
    return sum;
}

const uint8_t *qsf_source_header_codes(const QsfSource *s) { return s->has_codes ? s->codes : NULL; }

const QsfChecksumPart *qsf_source_checksums(const QsfSource *s, uint32_t *n) {
    *n = s->n_checksums;
    return s->checksums;
}

const QsfFile *qsf_source_file(const QsfSource *s, uint32_t i) {
    return i < s->n_files ? &s->files[i] : NULL;
}

const QsfFile *qsf_source_virtual_file(const QsfSource *s) {
    return s->virtual_ops != NULL ? s->virtual_ops->file(s) : NULL;
}

int qsf_source_virtual_read(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err) {
    if (s->virtual_ops != NULL) return s->virtual_ops->read(s, off, len, dst, err);
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s has no virtual file", qsf_source_path(s));
}

void qsf_source_virtual_advise(const QsfSource *s, uint64_t off, uint64_t len, QsfAdvice advice) {
    if (s->virtual_ops != NULL) s->virtual_ops->advise(s, off, len, advice);
}

const QsfTensor *qsf_source_tensor(const QsfSource *s, uint64_t i) {
    return i < s->n_tensors ? &s->tensors[i] : NULL;
}

const QsfTensor *qsf_source_find_tensor(const QsfSource *s, const char *name) {
    int32_t i = qsf_hashmap_get(&s->tensor_map, name, strlen(name));
    return i < 0 ? NULL : &s->tensors[i];
}

int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err) {
    for (uint32_t i = 0; i < qsf_source_n_files(src); i++) {
        int rc = qsf_file_unchanged(qsf_source_file(src, i), err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}
