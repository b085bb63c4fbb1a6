/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a QsfSource is made of: shared by the format readers and the accessors, nobody else. */
#ifndef QSF_FORMAT_SOURCE_IMPL_H
#define QSF_FORMAT_SOURCE_IMPL_H

#include "src/base/arena.h"
#include "src/base/hashmap.h"
#include "src/format/source.h"

#define QSF_META_CAP      ((size_t)64 << 20) /* most memory that tables and strings of a file may take */
#define QSF_META_STR_MAX  ((uint64_t)1 << 20)
#define QSF_META_KEY_MAX  65535u /* ggml-org/ggml docs/gguf.md */
#define QSF_MAX_OVERRIDES 64u
#define QSF_MAX_PARTS     1024u

typedef struct QsfMetaEntry {
    const char *key; /* NUL-terminated */
    size_t key_len;
    QsfMetaType type;
    QsfMetaType elem; /* of an array */
    bool hidden;      /* overridden with null */
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
        } arr; /* place in the first file */
    } v;
} QsfMetaEntry;

typedef struct QsfMetaTable {
    QsfMetaEntry *e; /* (n), with room for QSF_MAX_OVERRIDES more */
    uint32_t n, cap, n_hidden;
    QsfHashmap map; /* key -> index */
} QsfMetaTable;

struct QsfSource {
    QsfLedger *ledger;
    QsfArena arena;
    char format[16];
    QsfFile *files; /* (n_files) */
    uint32_t n_files;
    QsfMetaTable meta; /* of the first file */
    QsfTensor *tensors;
    uint64_t n_tensors;
    QsfHashmap tensor_map;
};

/* Arena memory under QSF_META_CAP; NULL with *err set (QSF_E_MODEL when the cap is passed). */
void *qsf_source_alloc(QsfSource *s, uint64_t n, uint64_t elem_bytes, QsfErr *err);

/* An empty table with room for n entries and the overrides. */
int qsf_meta_table_init(QsfSource *s, QsfMetaTable *t, uint64_t n, QsfErr *err);
/* Makes entry t->e[t->n], which the caller has filled, findable; QSF_E_MODEL when its key exists. */
int qsf_meta_table_add(const QsfSource *s, QsfMetaTable *t, QsfErr *err);
const QsfMetaEntry *qsf_meta_find(const QsfMetaTable *t, const char *key);
/* As qsf_meta_u32, on a table that is not yet part of a source; path for messages. */
int qsf_meta_table_u32(const QsfMetaTable *t, const char *path, const char *key, uint32_t fallback,
                       uint32_t *out, QsfErr *err);
/* Bytes of a scalar in a file, 0 for strings and arrays. */
unsigned qsf_meta_type_bytes(QsfMetaType type);

/* One file of a model: header, metadata and the table of its tensors. */
typedef struct QsfGgufPart {
    QsfMetaTable meta;
    QsfTensor *tensors; /* (n_tensors), offsets absolute and checked */
    uint64_t n_tensors;
    uint32_t version;
} QsfGgufPart;

/* Reads and checks files[file]. */
int qsf_gguf_read_part(QsfSource *s, uint32_t file, QsfGgufPart *part, QsfErr *err);
/* Fills s from files[0] (already open) and the further parts that it announces. */
int qsf_gguf_open(QsfSource *s, QsfErr *err);

#endif
