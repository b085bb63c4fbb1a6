/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model file as every reader sees it, whatever its format: typed metadata and a tensor table.
 * Opening reads and checks the whole table and the place of every metadata value, but keeps big
 * arrays (vocabularies) in the file: they are read front to back when asked for.
 * After opening it is immutable, except for overrides, and may be read from any thread. */
#ifndef QSF_FORMAT_SOURCE_H
#define QSF_FORMAT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/cursor.h"
#include "src/base/ledger.h"

/* Metadata types, numbered as in GGUF (ggml-org/ggml docs/gguf.md). */
typedef enum QsfMetaType {
    QSF_META_U8, QSF_META_I8, QSF_META_U16, QSF_META_I16, QSF_META_U32, QSF_META_I32, QSF_META_F32,
    QSF_META_BOOL, QSF_META_STRING, QSF_META_ARRAY, QSF_META_U64, QSF_META_I64, QSF_META_F64, QSF_META_N
} QsfMetaType;

/* A compressed section of a file: a layer of a QSF file. */
typedef struct QsfCompressed {
    uint32_t file, layer;
    uint64_t off, bytes;  /* in the file */
    uint64_t whole_bytes; /* decompressed, below 4 GiB */
    uint32_t crc;         /* of the bytes in the file */
    uint8_t how;          /* QSFF_LZ4, QSFF_LZ4_HC, QSFF_ZSTD */
    uint16_t n_heads;     /* of its tensors */
    const unsigned char *heads; /* (n_heads, 16) as they stand in it, in order */
    uint32_t *head_at;          /* (n_heads) where, from its start */
} QsfCompressed;

typedef struct QsfTensor {
    const char *name;   /* NUL-terminated, owned by the source */
    uint32_t dtype;     /* GGML type number or one of QSF's; see dtype.h */
    uint32_t n_dims;    /* 1..4 */
    uint64_t ne[4];     /* elements per dimension, ne[0] contiguous (columns), ne[1] rows; 1 beyond n_dims */
    uint32_t file;      /* which part of a split model; rows.h has a value for none */
    uint64_t offset;    /* absolute byte offset in that part; [offset, offset+bytes) was checked */
    uint64_t bytes;
    bool x16;           /* its rows are interleaved by sixteen and padded to a multiple of it (qsf_groups.h) */
    const QsfCompressed *compressed; /* NULL, or the section that it stands in: file is none, offset is from its decompressed start */
} QsfTensor;

/* A part of a file whose checksum (crc32.h) the file tells. */
typedef struct QsfChecksumPart {
    uint32_t file, crc;
    uint64_t off, bytes;
    char name[24];         /* "layer 3" */
} QsfChecksumPart;

typedef struct QsfSource QsfSource;

/* Sniffs the magic and opens path: GGUF v2/v3 (a first part -00001-of-0000N opens all parts); QSF v1; a tokenizer.json or
 * a SentencePiece model, or a directory that holds one, becomes the metadata that a GGUF file of that vocabulary
 * would have (tokenizer.ggml.*, the template, and the keys of vocab_keys.h), without tensors; a directory that holds
 * weights in safetensors too becomes metadata and tensors of a GGUF file of that model, but Q and K rows and made
 * tensors need rows.h (docs/FORMATS.md).
 * Charges its memory to QSF_MEM_META. QSF_E_MODEL with path, byte offset and what was expected
 * for anything that is not a whole, consistent file. The caller closes it. */
int qsf_source_open(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err);
void qsf_source_close(QsfSource *s);

const char *qsf_source_path(const QsfSource *s);            /* of the first file; of a model directory, the directory's */
const char *qsf_source_format(const QsfSource *s);          /* "GGUF v3", "QSF v1", "tokenizer.json", ...; owned */
uint64_t qsf_source_bytes(const QsfSource *s);              /* all parts */
uint32_t qsf_source_n_files(const QsfSource *s);
const QsfFile *qsf_source_file(const QsfSource *s, uint32_t i);
/* Parts that hold weights and have checksums, which opening does not check; *n of them, 0 for formats without. */
const QsfChecksumPart *qsf_source_checksums(const QsfSource *s, uint32_t *n);

uint64_t qsf_source_n_tensors(const QsfSource *s);
const QsfTensor *qsf_source_tensor(const QsfSource *s, uint64_t i);
const QsfTensor *qsf_source_find_tensor(const QsfSource *s, const char *name); /* NULL when absent */
/* Static name of a metadata type ("u32", "string", ...). */
const char *qsf_meta_type_name(QsfMetaType type);

/* --override-kv: "KEY=TYPE:VALUE" (str, int, float, bool) or "KEY=null" (as if absent). Call
 * before anything is built from the metadata. QSF_E_USAGE when malformed. */
int qsf_source_override(QsfSource *s, const char *spec, QsfErr *err);

/* --- metadata. Scalars of any integer type convert when the value fits. --- */
size_t qsf_meta_count(const QsfSource *s);
/* Entry i: key, its type, for arrays the element type and count. For --inspect. */
const char *qsf_meta_at(const QsfSource *s, size_t i, QsfMetaType *type, QsfMetaType *elem, uint64_t *count);
bool qsf_meta_has(const QsfSource *s, const char *key);
/* Absent -> *out = fallback and success. Present with a type that cannot convert, or out of
 * range: QSF_E_MODEL naming the key. */
int qsf_meta_u32(const QsfSource *s, const char *key, uint32_t fallback, uint32_t *out, QsfErr *err);
int qsf_meta_i64(const QsfSource *s, const char *key, int64_t fallback, int64_t *out, QsfErr *err);
int qsf_meta_f32(const QsfSource *s, const char *key, float fallback, float *out, QsfErr *err);
int qsf_meta_bool(const QsfSource *s, const char *key, bool fallback, bool *out, QsfErr *err);
/* *out points into the source (NUL-terminated, at most 1 MiB), or is NULL with success when absent. It may hold NULs
 * inside, hence *len. len NULL is for callers that compare it as a C string: then one with a NUL is QSF_E_MODEL. */
int qsf_meta_str(const QsfSource *s, const char *key, const char **out, size_t *len, QsfErr *err);

/* --- arrays: one pass, in order, through a cursor --- */
typedef struct QsfMetaArray {
    QsfMetaType elem;
    uint64_t count, next;  /* elements in all, elements read */
    uint64_t bytes;        /* bytes of the array's elements in the file: bounds what a copy needs */
    QsfCursor cur;
    char *tmp;             /* the newest string, owned */
    size_t tmp_cap;
    const char *key;
} QsfMetaArray;

/* Returns false in *present when absent; QSF_E_MODEL when the key is not an array of `elem`
 * (integer element types convert among each other: pass QSF_META_I64 for "any integer"; pass
 * QSF_META_F32 for floats). Close what was opened. */
int qsf_meta_array_open(const QsfSource *s, const char *key, QsfMetaType elem, QsfMetaArray *a, bool *present,
                        QsfErr *err);
/* *s is valid until the next call. */
int qsf_meta_array_str(QsfMetaArray *a, const char **s, size_t *len, QsfErr *err);
int qsf_meta_array_i64(QsfMetaArray *a, int64_t *out, QsfErr *err);
int qsf_meta_array_f32(QsfMetaArray *a, float *out, QsfErr *err);
void qsf_meta_array_close(QsfMetaArray *a);

#endif
