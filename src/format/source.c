/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model file: looks at its first bytes, calls the reader of that format or says what the
 * file is instead. */
#include "src/format/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/checked.h"
#include "src/format/source_impl.h"

#define SNIFF_BYTES 512

void *qsf_source_alloc(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err) {
    uint64_t bytes;
    if (!qsf_mul_u64(n, elem_bytes, &bytes) || bytes > QSF_META_CAP || s->arena.used > QSF_META_CAP - bytes) {
        qsf_err_set(err, QSF_E_MODEL, "%s: its tables and strings take more than %zu MiB of memory",
                    s->files[0].path, QSF_META_CAP >> 20);
        return NULL;
    }
    return qsf_arena_alloc(&s->arena, (size_t)bytes, elem_bytes == 1 ? 1 : 16, err);
}

typedef struct Magic {
    size_t off, len;
    const char *bytes;
    const char *what;
} Magic;

static const Magic magics[] = {
    { 0, 4, "QSF1", "a QSF file, which this version cannot read" },
    { 0, 4, "FUGG", "a big-endian GGUF file, which is not supported" },
    { 0, 4, "lmgg", "a GGML file of the time before GGUF, which is not supported" },
    { 0, 4, "fmgg", "a GGML file of the time before GGUF, which is not supported" },
    { 0, 4, "tjgg", "a GGML file of the time before GGUF, which is not supported" },
    { 8, 2, "{\"", "a safetensors file, which this version cannot read" },
    { 0, 4, "PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?), expected GGUF" },
    { 0, 2, "\x1f\x8b", "a gzip file: decompress it first" },
    { 0, 4, "\x28\xb5\x2f\xfd", "a zstd file: decompress it first" },
    { 0, 23, "version https://git-lfs",
      "a Git LFS pointer, not the model itself: fetch it with git lfs pull" },
    { 0, 14, "<!DOCTYPE html", "a web page, not a model (an unfinished download?)" },
    { 0, 14, "<!doctype html", "a web page, not a model (an unfinished download?)" },
};

static bool looks_like_text(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] == 0x7F || (p[i] < 0x20 && strchr("\t\n\r\f\x1b", p[i]) == NULL) || p[i] == 0) return false;
    return true;
}

/* Says what a file without the GGUF magic is. */
static int reject(const QsfFile *f, const unsigned char *p, size_t n, QsfErr *err) {
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const Magic *m = &magics[i];
        if (n >= m->off + m->len && memcmp(p + m->off, m->bytes, m->len) == 0)
            return qsf_err_set(err, QSF_E_MODEL, "%s: is %s", f->path, m->what);
    }
    if (looks_like_text(p, n))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is a text file, not a model: expected GGUF", f->path);
    if (n < 4) return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: has only %zu bytes", f->path, n);
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: is not a model file: expected GGUF, its first bytes are %02x %02x %02x %02x",
                       f->path, p[0], p[1], p[2], p[3]);
}

/* A JSON object: what a tokenizer.json is. A safetensors file has NULs before its first brace. */
static bool looks_like_json(const unsigned char *p, size_t n) {
    size_t i = 0;
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    if (i == n || p[i++] != '{' || memchr(p, 0, n) != NULL) return false;
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    return i == n || p[i] == '"' || p[i] == '}';
}

/* The first field of a SentencePiece model is a piece, whose first field is its text. */
static bool looks_like_sentencepiece(const unsigned char *p, size_t n) {
    return n >= 4 && p[0] == 0x0A && p[1] < 0x80 && p[2] == 0x0A && !looks_like_text(p, n);
}

static int sniff_and_read(QsfSource *s, QsfErr *err) {
    const QsfFile *f = &s->files[0];
    unsigned char head[SNIFF_BYTES] = { 0 };
    size_t n = f->size < sizeof head ? (size_t)f->size : sizeof head;
    if (n == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: is empty", f->path);
    int rc = qsf_file_pread(f, head, n, 0, err);
    if (rc != QSF_OK) return rc;
    if (n >= 4 && memcmp(head, "GGUF", 4) == 0) return qsf_gguf_open(s, err);
    if (looks_like_json(head, n)) return qsf_vocab_file_open(s, true, err);
    if (looks_like_sentencepiece(head, n)) return qsf_vocab_file_open(s, false, err);
    return reject(f, head, n, err);
}

/* Opens path; for a directory the vocabulary file in it. */
static int open_file(QsfFile *file, const char *path, QsfErr *err) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return qsf_file_open(file, path, err);
    char *inside = qsf_vocab_file_in(path, err);
    if (inside == NULL) return err->code;
    int rc = qsf_file_open(file, inside, err);
    free(inside);
    return rc;
}

int qsf_source_open(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local; /* the readers look at the code in it */
    *out = NULL;
    QsfFile file;
    int rc = open_file(&file, path, err);
    if (rc != QSF_OK) return rc;
    QsfSource *s = calloc(1, sizeof *s);
    if (s == NULL) {
        qsf_file_close(&file);
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: out of memory", path);
    }
    s->ledger = ledger;
    qsf_arena_init(&s->arena, ledger, QSF_MEM_META, "model metadata", 0);
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, err);
    if (s->files == NULL) {
        qsf_file_close(&file);
        rc = err->code;
    } else {
        s->files[0] = file;
        s->n_files = 1;
        rc = sniff_and_read(s, err);
    }
    if (rc != QSF_OK) {
        qsf_source_close(s);
        return rc;
    }
    *out = s;
    return QSF_OK;
}

void qsf_source_close(QsfSource *s) {
    if (s == NULL) return;
    qsf_meta_free_made(s);
    for (uint32_t i = 0; i < s->n_files; i++) qsf_file_close(&s->files[i]);
    qsf_arena_destroy(&s->arena);
    free(s);
}

const char *qsf_source_path(const QsfSource *s) { return s->files[0].path; }
const char *qsf_source_format(const QsfSource *s) { return s->format; }
uint32_t qsf_source_n_files(const QsfSource *s) { return s->n_files; }
uint64_t qsf_source_n_tensors(const QsfSource *s) { return s->n_tensors; }

uint64_t qsf_source_bytes(const QsfSource *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_files; i++) sum += s->files[i].size;
    return sum;
}

const QsfFile *qsf_source_file(const QsfSource *s, uint32_t i) {
    return i < s->n_files ? &s->files[i] : NULL;
}

const QsfTensor *qsf_source_tensor(const QsfSource *s, uint64_t i) {
    return i < s->n_tensors ? &s->tensors[i] : NULL;
}

const QsfTensor *qsf_source_find_tensor(const QsfSource *s, const char *name) {
    int32_t i = qsf_hashmap_get(&s->tensor_map, name, strlen(name));
    return i < 0 ? NULL : &s->tensors[i];
}
