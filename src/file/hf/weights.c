/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weight files of a model directory: one file, or shards listed in an index (huggingface/huggingface_hub
 * serialization: "weight_map" maps the name of each tensor to the name of its file). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/jsonscan.h"
#include "src/file/dirhint.h"
#include "src/file/hf/model.h"
#include "src/file/lfs.h"
#include "src/file/whole.h"

#define SHARD_SUFFIX  ".safetensors"
#define FILE_NAME_LEN 255

char *qsf_hf_path(const char *dir, const char *name, QsfErr *err) {
    char *path;
    if (asprintf(&path, "%s/%s", dir, name) >= 0) return path;
    qsf_err_memory(err, "%s", dir);
    return NULL;
}

/* --- the index --- */

typedef struct Index {
    QsfSource *s;
    const QsfWhole *w;
    QsfStrbuf tensor, file;
    const char **names; /* (n_names) of shards, space for QSF_MAX_PARTS */
    uint32_t n_names;
    QsfHashmap map;       /* name -> index in names */
    QsfStHeader *headers; /* (n_names), NULL while names are being collected */
    QsfErr *err;
} Index;

static const char *shard_key(const void *owner, int32_t id, size_t *len) {
    const char *name = ((const char *const *)owner)[id];
    *len = strlen(name);
    return name;
}

/* A shard must be a file in the same directory. */
static bool is_bare_name(const QsfStrbuf *b) {
    const size_t suffix = sizeof SHARD_SUFFIX - 1;
    return b->len > suffix && b->len <= FILE_NAME_LEN && memchr(b->data, '/', b->len) == NULL &&
           memchr(b->data, '\0', b->len) == NULL &&
           memcmp(b->data + b->len - suffix, SHARD_SUFFIX, suffix) == 0;
}

static int add_shard(Index *x) {
    const char *text = qsf_strbuf_str(&x->file);
    if (!is_bare_name(&x->file))
        return qsf_err_set(
            x->err, QSF_E_MODEL,
            "%s: places the tensor '%.80s' in '%.80s', expected the name of a %s file in the same "
            "directory",
            x->w->f.path, qsf_strbuf_str(&x->tensor), text, SHARD_SUFFIX);
    if (x->n_names > 0 && strcmp(x->names[x->n_names - 1], text) == 0) return QSF_OK; /* the common case */
    if (qsf_hashmap_get(&x->map, text, x->file.len) >= 0) return QSF_OK;
    if (x->n_names == QSF_MAX_PARTS)
        return qsf_err_set(x->err, QSF_E_MODEL, "%s: lists more than %u files", x->w->f.path, QSF_MAX_PARTS);
    x->names[x->n_names] = qsf_arena_strdup(&x->s->opening, text, x->file.len, x->err);
    if (x->names[x->n_names] == NULL) return x->err->code;
    qsf_hashmap_put(&x->map, (int32_t)x->n_names++);
    return QSF_OK;
}

/* Checks that the tensor is in the file that the index names. */
static int check_place(const Index *x) {
    int32_t i = qsf_hashmap_get(&x->map, qsf_strbuf_str(&x->file), x->file.len);
    if (i >= 0 && qsf_st_find(&x->headers[i], qsf_strbuf_str(&x->tensor), x->tensor.len) != NULL)
        return QSF_OK;
    return qsf_err_set(x->err, QSF_E_MODEL, "%s: lacks the tensor '%.80s' that %s places there",
                       i >= 0 ? x->s->files[i].path : qsf_strbuf_str(&x->file), qsf_strbuf_str(&x->tensor),
                       QSF_WEIGHTS_INDEX);
}

/* Handles one "tensor": "file" entry. */
static int walk_map(Index *x, QsfJsonScan *j) {
    bool first = true, more = true;
    int rc = qsf_jscan_enter(j, '{', x->err);
    while (rc == QSF_OK) {
        rc = qsf_jscan_next(j, '}', &first, &more, x->err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_key(j, &x->tensor, x->err);
        if (rc == QSF_OK) rc = qsf_jscan_string(j, &x->file, x->err);
        if (rc == QSF_OK) rc = x->headers == NULL ? add_shard(x) : check_place(x);
    }
    return rc;
}

static int walk_index(Index *x) {
    QsfJsonScan j;
    bool first = true, more = true, found = false;
    qsf_jscan_init(&j, x->w->text, (size_t)x->w->f.size);
    int rc = qsf_jscan_enter(&j, '{', x->err);
    while (rc == QSF_OK) {
        size_t begin, end;
        rc = qsf_jscan_next(&j, '}', &first, &more, x->err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_key(&j, &x->tensor, x->err);
        if (rc != QSF_OK) break;
        bool map = qsf_strbuf_is(&x->tensor, "weight_map");
        if (map && found)
            rc = qsf_err_set(x->err, QSF_E_MODEL, "JSON: byte %zu: \"weight_map\" occurs twice", j.at);
        else
            rc = map ? walk_map(x, &j) : qsf_jscan_skip(&j, &begin, &end, x->err);
        found = found || map;
    }
    if (rc == QSF_OK) rc = qsf_jscan_end(&j, x->err);
    if (rc == QSF_OK && x->n_names == 0)
        rc = qsf_err_set(x->err, QSF_E_MODEL, "JSON: no \"weight_map\" with a tensor in it");
    if (rc == QSF_E_MODEL && strncmp(x->err->msg, "JSON", 4) == 0) qsf_err_prefix(x->err, "%s", x->w->f.path);
    return rc;
}

/* --- files --- */

/* Opens n files in s->dir as s->files. */
static int open_files(QsfSource *s, const char *const *names, uint32_t n, QsfErr *err) {
    int rc = QSF_OK;
    s->files = qsf_source_alloc(s, n, sizeof *s->files, err);
    if (s->files == NULL) return err->code;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) {
        char *path = qsf_hf_path(s->dir, names[i], err);
        if (path == NULL) return err->code;
        rc = qsf_file_open(&s->files[i], path, err);
        if (rc == QSF_OK) s->n_files = i + 1;
        if (rc == QSF_OK) rc = qsf_lfs_check(&s->files[i], err);
        free(path);
    }
    return rc;
}

static int read_headers(QsfSource *s, QsfStHeader **h, QsfErr *err) {
    int rc = QSF_OK;
    *h = qsf_source_alloc_opening(s, s->n_files, sizeof **h, err);
    if (*h == NULL) return err->code;
    for (uint32_t i = 0; rc == QSF_OK && i < s->n_files; i++) rc = qsf_st_read(s, i, &(*h)[i], err);
    return rc;
}

static int read_shards(Index *x, QsfStHeader **h) {
    QsfSource *s = x->s;
    x->names = qsf_source_alloc_opening(s, QSF_MAX_PARTS, sizeof *x->names, x->err);
    if (x->names == NULL) return x->err->code;
    int rc = qsf_hashmap_init(&x->map, &s->opening, QSF_MAX_PARTS, shard_key, x->names, x->err);
    if (rc == QSF_OK) rc = walk_index(x);
    if (rc == QSF_OK) rc = open_files(s, x->names, x->n_names, x->err);
    if (rc == QSF_OK) rc = read_headers(s, h, x->err);
    x->headers = *h;
    return rc == QSF_OK ? walk_index(x) : rc;
}

static int read_sharded(QsfSource *s, QsfStHeader **h, QsfErr *err) {
    QsfWhole w;
    Index x = { .s = s, .w = &w, .err = err };
    char *path = qsf_hf_path(s->dir, QSF_WEIGHTS_INDEX, err);
    if (path == NULL) return err->code;
    int rc = qsf_whole_open(s, path, QSF_ST_HEADER_MAX, &w, err);
    if (rc == QSF_OK && w.text == NULL) rc = qsf_err_set(err, QSF_E_MODEL, "%s: is missing", path);
    if (rc == QSF_OK) rc = read_shards(&x, h);
    qsf_strbuf_free(&x.tensor);
    qsf_strbuf_free(&x.file);
    qsf_whole_close(s, &w);
    free(path);
    return rc;
}

int qsf_hf_weights_read(QsfSource *s, QsfStHeader **h, QsfErr *err) {
    static const char *const one[] = { QSF_WEIGHTS_FILE };
    *h = NULL;
    char *path = qsf_hf_path(s->dir, QSF_WEIGHTS_FILE, err);
    if (path == NULL) return err->code;
    bool there = access(path, F_OK) == 0;
    free(path);
    if (!there) return read_sharded(s, h, err);
    int rc = open_files(s, one, 1, err);
    return rc == QSF_OK ? read_headers(s, h, err) : rc;
}
