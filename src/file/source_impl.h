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

/* The decompressed layer that was read last (qsf/compressed.c). */
typedef struct QsfCompressedCache QsfCompressedCache;
struct QsfNamed; /* qsf/named.h */
struct QsfI2s;   /* i2s.h */

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
    QsfTensorNote *notes;           /* (n_tensors), or NULL if there are none */
    struct QsfDerivedFile *derived; /* derive.h; NULL if no tensor is derived */
    uint64_t n_tensors;
    uint64_t n_left_out;        /* tensors of other inputs than text */
    QsfChecksumPart *checksums; /* (n_checksums), in the arena */
    uint32_t n_checksums;
    QsfCompressed *compressed; /* (n_compressed), in the arena */
    uint32_t n_compressed;
    QsfCompressedCache *cache;    /* NULL if nothing is compressed */
    const struct QsfNamed *named; /* of a QSF file, else NULL */
    struct QsfI2s *i2s;           /* NULL if no tensor of a GGUF file is I2_S */
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
/* files[0] is a vocabulary of any format but GGUF: see qsf_vocab_file_open. */
int qsf_source_read_vocab(QsfSource *s, uint32_t n_vocab, QsfErr *err);

/* Initializes an empty table with space for n entries and the overrides. */
int qsf_meta_table_init(QsfSource *s, QsfMetaTable *t, uint64_t n, QsfErr *err);
/* Adds entry t->e[t->n], which the caller has filled, to the table; QSF_E_MODEL if its key exists. */
int qsf_meta_table_add(const QsfSource *s, QsfMetaTable *t, QsfErr *err);
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
void qsf_meta_free_made(QsfSource *s);

/* --- meta_copy.c --- */
typedef int (*QsfMetaSink)(void *arg, const void *data, size_t len, QsfErr *err);
/* Passes an entry of s, encoded as in GGUF v3, to sink, large arrays in pieces. Errors of reading and of sink. */
int qsf_meta_copy_entry(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg, QsfErr *err);

/* One file of a model: header, metadata and the table of its tensors. */
typedef struct QsfGgufPart {
    QsfMetaTable meta;
    QsfTensor *tensors; /* (n_tensors), offsets absolute and checked */
    uint64_t n_tensors;
    uint32_t version, alignment;
} QsfGgufPart;

/* Reads and checks files[file]. */
int qsf_gguf_read_part(QsfSource *s, uint32_t file, QsfGgufPart *part, QsfErr *err);
/* Reads a count and that many pairs, encoded as in GGUF, from c; the table gets space for `more` further
 * entries. The elements of arrays are not read: v.arr.off is their offset in the window of c. */
int qsf_gguf_read_pairs(QsfSource *s, QsfCursor *c, uint32_t more, QsfMetaTable *t, QsfErr *err);
/* Fills s from files[0] (already open) and the further parts that it declares. */
int qsf_gguf_open(QsfSource *s, QsfErr *err);

/* Makes s->tensors findable; QSF_E_MODEL when two have the same name. */
int qsf_source_index_tensors(QsfSource *s, QsfErr *err);

/* Fills s from files[0] (already open), a QSF v1 file: tensors under their GGUF names. Header, index and
 * metadata are checked against their checksums; embedding, layers and final section are not, since that would
 * read the whole file (see qsf/verify.h). */
int qsf_qsf_open(QsfSource *s, QsfErr *err);

/* --- vocab/open.c: the vocabulary files of Hugging Face and SentencePiece --- */
/* Fills s from files[0], a tokenizer.json or tokenizer.model, and from tokenizer_config.json and
 * chat_template.jinja next to it: the same keys as a GGUF file, no tensors. n_vocab: the number of tokens the
 * model has rows for, the last ones without text; 0 = as many as the file has. */
int qsf_vocab_file_open(QsfSource *s, bool json, uint32_t n_vocab, QsfErr *err);
/* Returns the path of the vocabulary file in a directory, preferring tokenizer.json to tokenizer.model; the
 * caller frees it. NULL with *err set (QSF_E_MODEL) if there is none; the message is about weights first if they are
 * needed and missing. */
char *qsf_vocab_file_in(const char *dir, bool weights, QsfErr *err);

/* --- hf/dir.c: Hugging Face models --- */
/* Returns whether the directory contains safetensors weights. */
bool qsf_hf_dir_has_weights(const char *dir);
/* Fills s, which has no files yet, from config.json, the weights and the vocabulary in dir. */
int qsf_hf_dir_open(QsfSource *s, const char *dir, QsfErr *err);
/* The same without the weights: the vocabulary, and what config.json and generation_config.json say about its tokens,
 * if they exist. weights: they are needed too, so a directory without either is reported as one without
 * weights. */
int qsf_hf_dir_open_tokens(QsfSource *s, const char *dir, bool weights, QsfErr *err);

#endif
