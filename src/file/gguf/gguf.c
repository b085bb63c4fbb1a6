/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads GGUF files, also in parts, versions 2 and 3 (layout: ggml-org/ggml docs/gguf.md): header, metadata,
 * tensor table. Big arrays stay in the file; their position and every length inside them is checked here.
 * */
#include "src/file/gguf/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/format.h"
#include "src/file/lfs.h"
#include "src/file/meta_read.h"

#define TENSOR_NAME_MAX   1024u
#define MIN_TENSOR_BYTES  33u /* name length, one name byte, dimensions, one size, type, offset */
#define DEFAULT_ALIGNMENT 32u

typedef QsfMetaReader Reader;

static const char *path_of(const Reader *r) { return r->s->files[r->file].path; }

static int read_dims(Reader *r, QsfTensor *t) {
    uint64_t at = r->c.pos;
    int rc = qsf_cursor_u32(&r->c, &t->n_dims, "number of dimensions", r->err);
    if (rc != QSF_OK) return rc;
    if (t->n_dims < 1 || t->n_dims > 4)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' at byte offset %" PRIu64 " has %" PRIu32
                           " dimensions, expected 1 to 4",
                           path_of(r), t->name, at, t->n_dims);
    for (uint32_t d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims) rc = qsf_cursor_u64(&r->c, &t->ne[d], "tensor dimension", r->err);
        if (rc != QSF_OK) return rc;
        if (t->ne[d] == 0)
            return qsf_err_set(r->err, QSF_E_MODEL, "%s: tensor '%s' has a dimension of size 0", path_of(r),
                               t->name);
    }
    return QSF_OK;
}

/* Reads one row of the tensor table; t->offset remains relative to the start of the data. */
static int read_tensor(Reader *r, QsfTensor *t) {
    uint64_t len;
    int rc = qsf_meta_read_name(r, TENSOR_NAME_MAX, "tensor name", &t->name, &len);
    if (rc == QSF_OK) rc = read_dims(r, t);
    if (rc == QSF_OK) rc = qsf_cursor_u32(&r->c, &t->dtype, "tensor type", r->err);
    if (rc == QSF_OK) rc = qsf_cursor_u64(&r->c, &t->offset, "tensor offset", r->err);
    if (rc != QSF_OK) return rc;
    t->file = r->file;
    const QsfDtype *type = t->dtype < QK_GGML_QSF ? qsf_dtype(t->dtype) : NULL; /* no QSF types in GGUF */
    const char *foreign = type == NULL ? qsf_dtype_foreign(t->dtype) : NULL;
    if (foreign != NULL)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' is of type %" PRIu32 " (%s), which is not supported", path_of(r),
                           t->name, t->dtype, foreign);
    if (type == NULL)
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: tensor '%s' has unknown type %" PRIu32, path_of(r),
                           t->name, t->dtype);
    if (t->dtype == QK_GGML_I2_S) { /* the size depends on the place of the next tensor: i2s.h */
        t->bytes = 1;
        return QSF_OK;
    }
    uint64_t elems;
    if (!qsf_mul_u64(t->ne[0], t->ne[1], &elems) || !qsf_mul_u64(elems, t->ne[2], &elems) ||
        !qsf_mul_u64(elems, t->ne[3], &elems) || !qsf_dtype_tensor_bytes(type, t->ne, &t->bytes))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' of type %s has an impossible shape (%" PRIu64 " x %" PRIu64
                           " x %" PRIu64 " x %" PRIu64 "; blocks of %" PRIu32 ")",
                           path_of(r), t->name, type->name, t->ne[0], t->ne[1], t->ne[2], t->ne[3],
                           type->block_elems);
    return QSF_OK;
}

/* Converts the relative offset to a file offset and checks that the tensor lies inside the file. */
static int place_tensor(const Reader *r, QsfTensor *t, uint64_t data, uint32_t alignment) {
    if (t->offset % alignment != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' starts at offset %" PRIu64
                           " of the data, which is not a multiple of the alignment %" PRIu32,
                           path_of(r), t->name, t->offset, alignment);
    uint64_t size = r->s->files[r->file].size, abs;
    if (!qsf_add_u64(t->offset, data, &abs) || !qsf_range_ok(abs, t->bytes, size))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: truncated: tensor '%s' needs %" PRIu64 " bytes at byte offset %" PRIu64
                           ", the file has %" PRIu64,
                           path_of(r), t->name, t->bytes, data + t->offset, size);
    t->offset = abs;
    return QSF_OK;
}

static int by_offset(const void *a, const void *b) {
    const QsfTensor *x = *(const QsfTensor *const *)a, *y = *(const QsfTensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int check_overlaps(const Reader *r, const QsfGgufPart *part) {
    size_t n = (size_t)part->n_tensors;
    const QsfTensor **order = malloc((n + 1) * sizeof *order);
    if (order == NULL) return qsf_err_memory(r->err, "%s", path_of(r));
    for (size_t i = 0; i < n; i++) order[i] = &part->tensors[i];
    qsort(order, n, sizeof *order, by_offset);
    int rc = QSF_OK;
    for (size_t i = 1; rc == QSF_OK && i < n; i++) {
        const QsfTensor *a = order[i - 1], *b = order[i];
        if (b->offset - a->offset < a->bytes)
            rc = qsf_err_set(r->err, QSF_E_MODEL, "%s: tensors '%s' and '%s' overlap at byte offset %" PRIu64,
                             path_of(r), a->name, b->name, b->offset);
    }
    free(order);
    return rc;
}

static int read_tensors(Reader *r, QsfGgufPart *part) {
    int rc = qsf_meta_table_u32(&part->meta, path_of(r), "general.alignment", DEFAULT_ALIGNMENT,
                                &part->alignment, r->err);
    if (rc != QSF_OK) return rc;
    const uint32_t alignment = part->alignment;
    if (alignment == 0 || alignment % 8 != 0) /* docs/gguf.md */
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: general.alignment is %" PRIu32 ", expected a multiple of 8", path_of(r),
                           alignment);
    part->tensors = qsf_source_alloc(r->s, part->n_tensors, sizeof *part->tensors, r->err);
    if (part->tensors == NULL) return r->err->code;
    for (uint64_t i = 0; rc == QSF_OK && i < part->n_tensors; i++) rc = read_tensor(r, &part->tensors[i]);
    uint64_t data = 0;
    if (rc == QSF_OK && !qsf_round_up_u64(r->c.pos, alignment, &data))
        rc = qsf_err_set(r->err, QSF_E_MODEL, "%s: general.alignment %" PRIu32 " is too large", path_of(r),
                         alignment);
    for (uint64_t i = 0; rc == QSF_OK && i < part->n_tensors; i++)
        rc = place_tensor(r, &part->tensors[i], data, alignment);
    return rc == QSF_OK ? check_overlaps(r, part) : rc;
}

static int check_version(const Reader *r, uint32_t version) {
    if (version == 2 || version == 3) return QSF_OK;
    if ((version & 0xFFFF) == 0 && version != 0)
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: is a big-endian GGUF file, which is not supported",
                           path_of(r));
    return qsf_err_set(r->err, QSF_E_MODEL,
                       "%s: is GGUF version %" PRIu32 ", which is not supported (2 and 3 are)", path_of(r),
                       version);
}

static int read_all(Reader *r, QsfGgufPart *part) {
    char magic[4];
    uint64_t n_pairs = 0;
    int rc = qsf_cursor_bytes(&r->c, magic, sizeof magic, "magic", r->err);
    if (rc == QSF_OK && memcmp(magic, "GGUF", 4) != 0)
        rc = qsf_err_set(r->err, QSF_E_MODEL, "%s: is not a GGUF file (no magic at byte offset 0)",
                         path_of(r));
    if (rc == QSF_OK) rc = qsf_cursor_u32(&r->c, &part->version, "version", r->err);
    if (rc == QSF_OK) rc = check_version(r, part->version);
    if (rc == QSF_OK) rc = qsf_cursor_u64(&r->c, &part->n_tensors, "tensor count", r->err);
    if (rc == QSF_OK) rc = qsf_cursor_u64(&r->c, &n_pairs, "metadata count", r->err);
    if (rc == QSF_OK) rc = qsf_meta_check_count(r, n_pairs, QSF_META_MIN_PAIR, "metadata entries");
    if (rc == QSF_OK) rc = qsf_meta_check_count(r, part->n_tensors, MIN_TENSOR_BYTES, "tensors");
    if (rc == QSF_OK) rc = qsf_meta_read_table(r, n_pairs, 0, &part->meta);
    if (rc == QSF_OK) rc = read_tensors(r, part);
    return rc;
}

/* Reads and checks files[file]. QSF_E_MODEL names it, the byte offset and what was expected; QSF_E_BUDGET,
 * QSF_E_RUNTIME. */
static int gguf_read_part(QsfSource *s, uint32_t file, QsfGgufPart *part, QsfErr *err) {
    Reader r = { .s = s, .err = err, .file = file };
    *part = (QsfGgufPart){ 0 };
    int rc = qsf_lfs_check(&s->files[file], err);
    if (rc == QSF_OK) rc = qsf_cursor_open(&r.c, &s->files[file], 0, s->files[file].size, err);
    if (rc == QSF_OK) rc = read_all(&r, part);
    qsf_cursor_close(&r.c);
    return rc;
}

/* --- a GGUF model in one or several files. Parts are named NAME-00001-of-0000N.gguf and numbered by
 * the keys split.no, split.count and split.tensors.count (ggml-org/llama.cpp tools/gguf-split) --- */

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
        rc = qsf_err_set(
            err, QSF_E_MODEL,
            "%s: should be part %u of %u, but its split.no is %d, expected %u, and its split.count %d", path,
            i + 1, n, (int)no, i, (int)count);
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
    rc = gguf_read_part(s, i, part, err);
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
    int rc = gguf_read_part(s, 0, &first, err);
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
