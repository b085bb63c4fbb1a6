/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The definition of QsfSource: private to the format readers and the accessors. */
#ifndef QSF_FILE_SOURCE_IMPL_H
#define QSF_FILE_SOURCE_IMPL_H

#include "src/base/arena.h"
#include "src/base/hashmap.h"
#include "src/base/strbuf.h"
#include "src/file/source.h"

#define QSF_META_CAP      ((size_t)64 << 20) /* maximum memory for the tables and strings of a file */
#define QSF_META_STR_MAX  ((uint64_t)1 << 20)
#define QSF_META_KEY_MAX  65535u /* ggml-org/ggml docs/gguf.md */
#define QSF_MAX_OVERRIDES 64u
#define QSF_MAX_PARTS     1024u
#define QSF_MADE_KEYS     144u /* maximum metadata keys of a source whose format has no metadata */
#define QSF_MADE_ARRAYS   16u
#define QSF_MADE_MAX      ((uint64_t)256 << 20) /* maximum size of such an array */

typedef struct QsfMetaEntry {
    const char *key; /* NUL-terminated */
    size_t key_len;
    QsfMetaType type;
    QsfMetaType elem; /* of an array */
    bool hidden;      /* overridden with null */
    bool derived;     /* from a QSF header instead of the metadata, and what readers assume without the key */
    union {
        uint64_t u; /* U8 U16 U32 U64 BOOL */
        int64_t i;  /* I8 I16 I32 I64 */
        double f;   /* F32 F64 */
        struct {
            const char *s;
            uint64_t len;
        } str;
        struct {
            uint64_t off, count, bytes;
            const unsigned char *mem; /* its elements if it is not stored in a file, else NULL */
        } arr;                        /* position in the first file */
    } v;
} QsfMetaEntry;

typedef struct QsfMetaTable {
    QsfMetaEntry *e; /* (n), with space for QSF_MAX_OVERRIDES more */
    uint32_t n, cap, n_hidden;
    QsfHashmap map; /* key -> index */
} QsfMetaTable;

/* A generated metadata array: on the libc heap, charged to QSF_MEM_META. */
typedef struct QsfMadeArray {
    void *data;
    uint64_t bytes;
} QsfMadeArray;

/* Extra facts about a tensor, for src/file/rows.h. */
typedef struct QsfTensorNote {
    const void *made; /* its bytes, in the arena, if it is not stored in a file; else NULL */
} QsfTensorNote;

/* How a source reads its virtual file (source.h): derive/derive.h. Any thread, but `close`. */
typedef struct QsfVirtualOps {
    const QsfFile *(*file)(const QsfSource *s);
    int (*read)(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err);
    void (*advise)(const QsfSource *s, uint64_t off, uint64_t len, QsfAdvice advice);
    void (*close)(QsfSource *s);
} QsfVirtualOps;

/* How a source reads tensors of compressed sections: qsf/compressed.c. Any thread, but `close`. */
typedef struct QsfCompressedOps {
    int (*read)(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len, QsfErr *err);
    void (*close)(QsfSource *s);
} QsfCompressedOps;

/* What the reader of a format keeps; the others do not look into it. */
struct QsfDerivedFile;     /* derive/derive.c */
struct QsfCompressedCache; /* qsf/compressed.c: the decompressed layer that was read last */
struct QsfMerged;          /* convert/pack/merged.c */
struct QsfNamed;           /* qsf/names.h */
struct QsfI2s;             /* gguf/i2s.c */

struct QsfSource {
    QsfLedger *ledger;
    QsfArena arena;
    QsfArena opening; /* memory that is freed at the end of opening */
    char format[16];
    bool has_codes;
    uint8_t codes[QSF_HEADER_CODES]; /* of a QSF header */
    bool from_dir;                   /* a directory was opened */
    char notice[200];                /* what was skipped on opening, for the user, or "" */
    const char *dir; /* the directory, if the model was opened by directory, else NULL; in the arena */
    QsfFile *files;  /* (n_files) */
    uint32_t n_files;
    QsfMetaTable meta; /* of the first file */
    QsfTensor *tensors;
    QsfTensorNote *notes;             /* (n_tensors), or NULL if there are none */
    const QsfVirtualOps *virtual_ops; /* NULL if no tensor is derived */
    struct QsfDerivedFile *derived;
    struct QsfMerged *merged;
    uint64_t n_tensors;
    uint64_t n_left_out;        /* tensors of other inputs than text */
    QsfChecksumPart *checksums; /* (n_checksums), in the arena */
    uint32_t n_checksums;
    QsfCompressed *compressed; /* (n_compressed), in the arena */
    uint32_t n_compressed;
    const QsfCompressedOps *compressed_ops; /* NULL if nothing is compressed */
    struct QsfCompressedCache *cache;
    const struct QsfNamed *named; /* of a QSF file, else NULL */
    /* Chooses a layout of i2s.h for all I2_S tensors, after opening; NULL if there are none of that type. */
    int (*choose_i2s)(QsfSource *s, int layout, QsfErr *err);
    struct QsfI2s *i2s;
    QsfHashmap tensor_map;
    QsfMadeArray made[QSF_MADE_ARRAYS]; /* (n_made) */
    uint32_t n_made;
};

/* Allocates from the arena, up to QSF_META_CAP in total; NULL with *err set (QSF_E_MODEL above the limit). */
void *qsf_source_alloc(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err);
/* The same, but freed at the end of opening; both together are limited. */
void *qsf_source_alloc_opening(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err);

/* Makes s->tensors findable by name; QSF_E_MODEL when two have the same. */
int qsf_source_index_tensors(QsfSource *s, QsfErr *err);

/* Initializes an empty table with space for n entries and the overrides. */
int qsf_meta_table_init(QsfSource *s, QsfMetaTable *t, uint64_t n, QsfErr *err);
/* Adds entry t->e[t->n], which the caller has filled, to the table; QSF_E_MODEL if its key exists. */
int qsf_meta_table_add(const QsfSource *s, QsfMetaTable *t, QsfErr *err);
/* Returns the entry, owned by t; NULL if there is none. */
const QsfMetaEntry *qsf_meta_find(const QsfMetaTable *t, const char *key);
/* Like qsf_meta_u32, for a table that is not yet part of a source; path is for messages. */
int qsf_meta_table_u32(const QsfMetaTable *t, const char *path, const char *key, uint32_t fallback,
                       uint32_t *out, QsfErr *err);
/* Returns the size of a scalar in a file, 0 for strings and arrays. */
unsigned qsf_meta_type_bytes(QsfMetaType type);

/* --- meta_make.c: metadata that a reader generates from a file of a different format. s->meta must be
 * initialized; keys are static. QSF_E_MODEL if a key exists or the table is full, QSF_E_RUNTIME,
 * QSF_E_BUDGET. --- */
/* Adds any scalar or string; e->key_len need not be set. */
int qsf_meta_make(QsfSource *s, const QsfMetaEntry *e, QsfErr *err);
int qsf_meta_make_str(QsfSource *s, const char *key, const char *text, size_t len, QsfErr *err);
int qsf_meta_make_u32(QsfSource *s, const char *key, uint32_t v, QsfErr *err);
int qsf_meta_make_f32(QsfSource *s, const char *key, float v, QsfErr *err);
int qsf_meta_make_bool(QsfSource *s, const char *key, bool v, QsfErr *err);
/* Adds an array of count elements, encoded as in GGUF (strings: u64 length, then bytes). Takes ownership of
 * the contents of b and leaves it empty, also on failure. */
int qsf_meta_make_array(QsfSource *s, const char *key, QsfMetaType elem, uint64_t count, QsfStrbuf *b,
                        QsfErr *err);
/* Appends the encoding of a string element. */
void qsf_meta_put_str(QsfStrbuf *b, const char *text, size_t len);
/* Appends v in `bytes` bytes, little-endian. */
void qsf_meta_put_le(QsfStrbuf *b, uint64_t v, unsigned bytes);
/* Frees the texts of metadata that were made. */
void qsf_meta_free_made(QsfSource *s);

/* --- meta_make.c --- */
typedef int (*QsfMetaSink)(void *arg, const void *data, size_t len, QsfErr *err);
/* Passes an entry of s, encoded as in GGUF v3, to sink, large arrays in pieces. Errors of
 * reading and of sink. */
int qsf_meta_copy_entry(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg, QsfErr *err);

#endif
