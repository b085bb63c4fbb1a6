/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model file: detects the format from its first bytes and calls its reader, or reports what the file
 * is instead. */
#include "src/file/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/checked.h"
#include "src/base/utf8.h"
#include "src/file/derive/derive.h"
#include "src/file/lfs.h"
#include "src/file/qsf/compressed.h"
#include "src/file/source_impl.h"
#include "src/file/whole.h"

#define SNIFF_BYTES 512

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

typedef struct Magic {
    size_t off, len;
    const char *bytes;
    const char *what;
} Magic;

static const Magic magics[] = {
    { 0, 4, "FUGG", "a big-endian GGUF file, which is not supported" },
    { 0, 4, "lmgg", "a GGML file older than GGUF, which is not supported" },
    { 0, 4, "fmgg", "a GGML file older than GGUF, which is not supported" },
    { 0, 4, "tjgg", "a GGML file older than GGUF, which is not supported" },
    { 8, 2, "{\"", "a safetensors file: open the directory that contains it and its config.json" },
    { 0, 4, "PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?), expected GGUF or QSF" },
    { 0, 2, "\x1f\x8b", "a gzip file: decompress it first" },
    { 0, 4, "\x28\xb5\x2f\xfd", "a zstd file: decompress it first" },
    { 0, 14, "<!DOCTYPE html", "a web page, not a model (an unfinished download?)" },
    { 0, 14, "<!doctype html", "a web page, not a model (an unfinished download?)" },
};

static bool looks_like_text(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] == 0x7F || (p[i] < 0x20 && strchr("\t\n\r\f\x1b", p[i]) == NULL) || p[i] == 0) return false;
    return true;
}

/* Sets the error for an unsupported file: what it is, if recognized. */
static int reject(const QsfFile *f, const unsigned char *p, size_t n, QsfErr *err) {
    int rc = qsf_lfs_check_bytes(f->path, p, n, err);
    if (rc == QSF_OK) rc = qsf_whole_check_utf8(f->path, (const char *)p, n, err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const Magic *m = &magics[i];
        if (n >= m->off + m->len && memcmp(p + m->off, m->bytes, m->len) == 0)
            return qsf_err_set(err, QSF_E_MODEL, "%s: is %s", f->path, m->what);
    }
    if (looks_like_text(p, n))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is a text file, not a model: expected GGUF or QSF",
                           f->path);
    if (n < 4) return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: has only %zu bytes", f->path, n);
    return qsf_err_set(
        err, QSF_E_MODEL,
        "%s: is not a model file: expected GGUF or QSF, its first bytes are %02x %02x %02x %02x", f->path,
        p[0], p[1], p[2], p[3]);
}

/* Detects a JSON object, as in tokenizer.json. A safetensors file has NULs before its first brace. */
static bool looks_like_json(const unsigned char *p, size_t n) {
    size_t i = qsf_utf8_bom((const char *)p, n);
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    if (i == n || p[i++] != '{' || memchr(p, 0, n) != NULL) return false;
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    return i == n || p[i] == '"' || p[i] == '}';
}

/* Detects a SentencePiece model: its first field is a piece, whose first field is its text. */
static bool looks_like_sentencepiece(const unsigned char *p, size_t n) {
    return n >= 4 && p[0] == 0x0A && p[1] < 0x80 && p[2] == 0x0A && !looks_like_text(p, n);
}

/* Reads the first bytes of files[0]. */
static int read_head(const QsfSource *s, unsigned char head[SNIFF_BYTES], size_t *n, QsfErr *err) {
    const QsfFile *f = &s->files[0];
    memset(head, 0, SNIFF_BYTES);
    *n = f->size < SNIFF_BYTES ? (size_t)f->size : SNIFF_BYTES;
    if (*n == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: is empty", f->path);
    return qsf_file_pread(f, head, *n, 0, err);
}

static int read_vocab(QsfSource *s, const unsigned char *head, size_t n, uint32_t n_vocab, QsfErr *err) {
    if (looks_like_json(head, n)) return qsf_vocab_file_open(s, true, n_vocab, err);
    if (looks_like_sentencepiece(head, n)) return qsf_vocab_file_open(s, false, n_vocab, err);
    return reject(&s->files[0], head, n, err);
}

int qsf_source_read_vocab(QsfSource *s, uint32_t n_vocab, QsfErr *err) {
    unsigned char head[SNIFF_BYTES];
    size_t n;
    int rc = read_head(s, head, &n, err);
    return rc == QSF_OK ? read_vocab(s, head, n, n_vocab, err) : rc;
}

static int sniff_and_read(QsfSource *s, QsfErr *err) {
    unsigned char head[SNIFF_BYTES];
    size_t n;
    int rc = read_head(s, head, &n, err);
    if (rc != QSF_OK) return rc;
    if (n >= 4 && memcmp(head, "GGUF", 4) == 0) return qsf_gguf_open(s, err);
    if (n >= 4 && memcmp(head, "QSF1", 4) == 0) return qsf_qsf_open(s, err);
    return read_vocab(s, head, n, 0, err);
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Opens a model or vocabulary whose first file is given. */
static int open_one(QsfSource *s, const char *path, QsfErr *err) {
    QsfFile file;
    int rc = qsf_file_open(&file, path, err);
    if (rc != QSF_OK) return rc;
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, err);
    if (s->files == NULL) {
        qsf_file_close(&file);
        return err->code;
    }
    s->files[0] = file;
    s->n_files = 1;
    return sniff_and_read(s, err);
}

static int open_dir(QsfSource *s, const char *path, bool weights, QsfErr *err) {
    if (weights && qsf_hf_dir_has_weights(path)) return qsf_hf_dir_open(s, path, err);
    return qsf_hf_dir_open_tokens(s, path, weights, err);
}

static int open_source(QsfSource **out, const char *path, bool weights, QsfLedger *ledger, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local; /* the readers use its code */
    *out = NULL;
    QsfSource *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "%s", path);
    s->ledger = ledger;
    qsf_arena_init(&s->arena, ledger, QSF_MEM_META, "model metadata", 0);
    qsf_arena_init(&s->opening, ledger, QSF_MEM_META, "model headers", 0);
    int rc = is_directory(path) ? open_dir(s, path, weights, err) : open_one(s, path, err);
    qsf_arena_destroy(&s->opening);
    if (rc != QSF_OK) {
        qsf_source_close(s);
        return rc;
    }
    *out = s;
    return QSF_OK;
}

int qsf_source_open(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    return open_source(out, path, true, ledger, err);
}

int qsf_source_open_tokens(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    return open_source(out, path, false, ledger, err);
}

void qsf_source_close(QsfSource *s) {
    if (s == NULL) return;
    qsf_meta_free_made(s);
    qsf_compressed_close(s);
    qsf_derived_close(s);
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

const QsfFile *qsf_source_virtual_file(const QsfSource *s) { return qsf_derived_file(s); }

int qsf_source_virtual_read(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err) {
    return qsf_derived_read(s, off, len, dst, err);
}

void qsf_source_virtual_advise(const QsfSource *s, uint64_t off, uint64_t len, int advice) {
    qsf_derived_advise(s, off, len, advice);
}

const QsfTensor *qsf_source_tensor(const QsfSource *s, uint64_t i) {
    return i < s->n_tensors ? &s->tensors[i] : NULL;
}

const QsfTensor *qsf_source_find_tensor(const QsfSource *s, const char *name) {
    int32_t i = qsf_hashmap_get(&s->tensor_map, name, strlen(name));
    return i < 0 ? NULL : &s->tensors[i];
}
