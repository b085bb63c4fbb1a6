/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A GGUF model in one or several files. Parts are named NAME-00001-of-0000N.gguf and numbered by
 * the keys split.no, split.count and split.tensors.count (ggml-org/llama.cpp tools/gguf-split). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/format.h"
#include "src/file/gguf/gguf.h"

#define SUFFIX_LEN 20u /* "-00001-of-00002.gguf" */

/* Returns the path of part i (from 0) of n, next to the first one, or NULL with *err set. The caller frees
 * it. */
static char *part_path(const char *first, uint32_t i, uint32_t n, QsfErr *err) {
    char suffix[64];
    size_t len = strlen(first);
    snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", 1u, n);
    if (len < SUFFIX_LEN || strlen(suffix) != SUFFIX_LEN || strcmp(first + len - SUFFIX_LEN, suffix) != 0) {
        qsf_err_set(err, QSF_E_MODEL,
                    "%s: is the first of %u parts, so its name must end with %s to find the others", first, n,
                    suffix);
        return NULL;
    }
    char *path = strdup(first);
    if (path == NULL) {
        qsf_err_memory(err, "%s", first);
        return NULL;
    }
    snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", i + 1, n); /* as long as the first: n < 100000 */
    memcpy(path + len - SUFFIX_LEN, suffix, SUFFIX_LEN);
    return path;
}

/* Checks that split.no and split.count of a part match its name and the first part. */
static int check_part(const QsfSource *s, const QsfGgufPart *part, uint32_t i, uint32_t n, QsfErr *err) {
    uint32_t no, count;
    const char *path = s->files[i].path;
    int rc = qsf_meta_table_u32(&part->meta, path, "split.no", UINT32_MAX, &no, err);
    if (rc == QSF_OK) rc = qsf_meta_table_u32(&part->meta, path, "split.count", UINT32_MAX, &count, err);
    if (rc == QSF_OK && (no != i || count != n))
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: should be part %u of %u, but its split.no is %d and split.count %d", path, i, n,
                         (int)no, (int)count);
    return rc;
}

static int open_part(QsfSource *s, uint32_t i, uint32_t n, QsfGgufPart *part, QsfErr *err) {
    char *path = part_path(s->files[0].path, i, n, err);
    if (path == NULL) return err->code;
    int rc = qsf_file_open(&s->files[i], path, err);
    free(path);
    if (rc != QSF_OK) {
        qsf_err_prefix(err, "part %u of %u of %s", i + 1, n, s->files[0].path);
        return rc;
    }
    s->n_files = i + 1;
    rc = qsf_gguf_read_part(s, i, part, err);
    return rc == QSF_OK ? check_part(s, part, i, n, err) : rc;
}

/* Builds one table of the tensors of all parts, in the order of the parts. */
static int join_tensors(QsfSource *s, const QsfGgufPart *parts, uint32_t n, QsfErr *err) {
    uint64_t total = 0, at = 0;
    uint32_t expected;
    for (uint32_t i = 0; i < n; i++) total += parts[i].n_tensors;
    int rc = qsf_meta_table_u32(&s->meta, s->files[0].path, "split.tensors.count", UINT32_MAX, &expected,
                                err);
    if (rc != QSF_OK) return rc;
    if (expected != UINT32_MAX && expected != total)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: split.tensors.count is %u, but its %u parts hold %llu tensors",
                           s->files[0].path, expected, n, (unsigned long long)total);
    s->tensors = qsf_source_alloc(s, total, sizeof *s->tensors, err);
    if (s->tensors == NULL) return err->code;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].n_tensors > 0)
            memcpy(s->tensors + at, parts[i].tensors, (size_t)parts[i].n_tensors * sizeof *s->tensors);
        at += parts[i].n_tensors;
    }
    s->n_tensors = total;
    return QSF_OK;
}

/* *all: the parts. */
static int open_split(QsfSource *s, const QsfGgufPart *first, uint32_t n, const QsfGgufPart **all,
                      QsfErr *err) {
    if (n > QSF_MAX_PARTS)
        return qsf_err_set(err, QSF_E_MODEL, "%s: split.count is %u, more than %u", s->files[0].path, n,
                           QSF_MAX_PARTS);
    QsfGgufPart *parts = qsf_source_alloc(s, n, sizeof *parts, err);
    QsfFile *files = qsf_source_alloc(s, n, sizeof *files, err);
    if (parts == NULL || files == NULL) return err->code;
    files[0] = s->files[0];
    parts[0] = *first;
    s->files = files;
    *all = parts;
    int rc = QSF_OK;
    for (uint32_t i = 1; rc == QSF_OK && i < n; i++) rc = open_part(s, i, n, &parts[i], err);
    return rc == QSF_OK ? join_tensors(s, parts, n, err) : rc;
}

static int open_gguf(QsfSource *s, QsfErr *err) {
    QsfGgufPart first;
    uint32_t no = 0, count = 0;
    const char *path = s->files[0].path;
    int rc = qsf_gguf_read_part(s, 0, &first, err);
    if (rc == QSF_OK) rc = qsf_meta_table_u32(&first.meta, path, "split.no", 0, &no, err);
    if (rc == QSF_OK) rc = qsf_meta_table_u32(&first.meta, path, "split.count", 0, &count, err);
    if (rc != QSF_OK) return rc;
    if (count > 1 && no != 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: is part %u of %u of a split model: open its first part",
                           path, no + 1, count);
    s->meta = first.meta;
    s->tensors = first.tensors;
    s->n_tensors = first.n_tensors;
    snprintf(s->format, sizeof s->format, "GGUF v%u", first.version);
    const QsfGgufPart *parts = &first;
    if (count > 1) rc = open_split(s, &first, count, &parts, err);
    if (rc == QSF_OK) rc = qsf_source_index_tensors(s, err);
    return rc == QSF_OK ? qsf_i2s_open(s, parts, err) : rc;
}

static bool matches(const unsigned char *head, size_t n) { return n >= 4 && memcmp(head, "GGUF", 4) == 0; }

const QsfFormat qsf_format_gguf = { "GGUF", matches, open_gguf };
