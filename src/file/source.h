/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model file of any format: typed metadata and a tensor table. Opening reads and checks the whole
 * table and the position of every metadata value, but leaves big arrays (vocabularies) in the file;
 * they are read sequentially on request. After opening, a source is immutable, except for overrides,
 * and may be read from any thread. */
#ifndef QSF_FILE_SOURCE_H
#define QSF_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/cursor.h"
#include "src/base/ledger.h"
#include "src/base/platform.h"

/* Metadata types, numbered as in GGUF (ggml-org/ggml docs/gguf.md). */
typedef enum QsfMetaType {
    QSF_META_U8,
    QSF_META_I8,
    QSF_META_U16,
    QSF_META_I16,
    QSF_META_U32,
    QSF_META_I32,
    QSF_META_F32,
    QSF_META_BOOL,
    QSF_META_STRING,
    QSF_META_ARRAY,
    QSF_META_U64,
    QSF_META_I64,
    QSF_META_F64,
    QSF_META_N
} QsfMetaType;

/* A compressed section of a file: a layer of a QSF file. */
typedef struct QsfCompressed {
    uint32_t file, layer;
    uint64_t off, bytes;        /* in the file */
    uint64_t whole_bytes;       /* decompressed, below 4 GiB */
    uint32_t crc;               /* of the bytes in the file */
    uint8_t how;                /* QSFF_LZ4, QSFF_LZ4_HC, QSFF_ZSTD */
    uint16_t n_heads;           /* of its tensors */
    const unsigned char *heads; /* (n_heads, 16) as stored in the layer, in order */
    uint32_t *head_at;          /* (n_heads) their offsets from its start */
} QsfCompressed;

typedef struct QsfTensor {
    const char *name; /* NUL-terminated, owned by the source */
    uint32_t dtype;   /* GGML type number or one of QSF's; see dtype.h */
    uint32_t n_dims;  /* 1..4 */
    uint64_t ne[4];   /* elements per dimension, ne[0] contiguous (columns), ne[1] rows; 1 beyond n_dims */
    uint32_t file;   /* part of a split model; QSF_FILE_NONE (rows.h); or the number of parts, for the virtual
                        file of tensors that are computed when they are read (qsf_source_virtual_file) */
    uint64_t offset; /* absolute byte offset in that part; [offset, offset+bytes) was checked */
    uint64_t bytes;
    float scale;   /* of I2_S: what its values are multiplied by; other types do not use it */
    bool x16;      /* its rows are interleaved by 16 and padded to a multiple of 16 (qsf/groups.h), */
    bool by_block; /* with the planes in the order of the block, although the kernels have another order */
    const QsfCompressed *compressed; /* NULL, or its section: then file is QSF_FILE_NONE and offset is
                                        relative to the start of the decompressed section */
} QsfTensor;

/* A part of a file for which the file has a checksum (crc32.h). */
typedef struct QsfChecksumPart {
    uint32_t file, crc;
    uint64_t off, bytes;
    char name[24]; /* "layer 3" */
} QsfChecksumPart;

typedef struct QsfSource QsfSource;

/* Opens path; the format is detected from its first bytes. GGUF v2/v3 (the first part -00001-of-0000N opens
 * all parts) and QSF v1. A tokenizer.json or SentencePiece model, or a directory with one, gives the metadata
 * of a GGUF file with that vocabulary (tokenizer.ggml.*, the template, and the keys of vocab/keys.h), without
 * tensors. A directory that also has safetensors weights gives the metadata and tensors of a GGUF file of
 * that model (docs/FORMATS.md); tensors that GGUF stores differently are computed when they are read. Memory
 * is charged to QSF_MEM_META. QSF_E_MODEL with path, byte offset and what was expected if the file is not
 * complete and consistent. The caller closes the source. */
int qsf_source_open(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err);
/* The same without weights, for tokenizing: of a directory, only the vocabulary is opened, and the settings
 * of its tokens in config.json and generation_config.json; its weights may be missing or unusable. */
int qsf_source_open_tokens(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err);
/* What an adapter's files do not say about the model that it is for. */
typedef struct QsfAdapterBase {
    const char *arch; /* general.architecture */
    uint32_t n_layers, hidden, n_heads, n_kv_heads, head_dim, n_vocab;
} QsfAdapterBase;
/* Opens a GGUF file as qsf_source_open; a PEFT directory (adapter_config.json, adapter_model.safetensors) as
 * the GGUF file of an adapter for the model: the metadata of adapters, and tensors NAME.lora_a and
 * NAME.lora_b, whose rows are in the order of GGUF. What changes the computation otherwise (DoRA,
 * biases, other kinds) is refused. Errors of qsf_source_open. */
int qsf_source_open_adapter(QsfSource **out, const char *path, const QsfAdapterBase *base, QsfLedger *ledger,
                            QsfErr *err);
/* Opens a GGUF file as qsf_source_open, and nothing else: messages are about a control vector. */
int qsf_source_open_control(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err);
/* Closes the files and frees everything that the functions here return. NULL is allowed. */
void qsf_source_close(QsfSource *s);

const char *qsf_source_path(const QsfSource *s); /* of the first file, or of the model directory */
bool qsf_source_from_dir(const QsfSource *s);    /* whether a directory was opened, not a file */
/* A sentence for the user about a value that was skipped when the source was opened, or ""; owned by s. */
const char *qsf_source_notice(const QsfSource *s);
const char *qsf_source_format(const QsfSource *s); /* "GGUF v3", "QSF v1", "tokenizer.json", ...; owned */
uint64_t qsf_source_bytes(const QsfSource *s);     /* all parts */
/* Returns the number of files, and file i, owned by s. */
uint32_t qsf_source_n_files(const QsfSource *s);
const QsfFile *qsf_source_file(const QsfSource *s, uint32_t i);
/* Returns the virtual file, which has number qsf_source_n_files: it has a size, and a path for messages, but
 * no descriptor. NULL if no tensor is computed. */
const QsfFile *qsf_source_virtual_file(const QsfSource *s);
/* Reads bytes [off, off + len) of it. Any thread. Errors as of qsf_file_pread, which name the real file. */
int qsf_source_virtual_read(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err);
/* Advises the kernel about what they are computed from. */
void qsf_source_virtual_advise(const QsfSource *s, uint64_t off, uint64_t len, QsfAdvice advice);
/* Returns the parts with weights that have checksums, which opening does not check; *n of them, 0 if the
 * format has none. */
const QsfChecksumPart *qsf_source_checksums(const QsfSource *s, uint32_t *n);

/* Returns the codes of activation, normalization and position encoding in the header of a QSF file
 * (qsf/layout.h), with QSFF_BY_META for those that follow from the metadata; NULL for other formats. */
#define QSF_HEADER_CODES 3u
const uint8_t *qsf_source_header_codes(const QsfSource *s);

/* Returns the number of tensors; of them tensor i below it, owned by s. */
uint64_t qsf_source_n_tensors(const QsfSource *s);
uint64_t
qsf_source_n_left_out(const QsfSource *s); /* tensors of inputs other than text, which are not among them */
const QsfTensor *qsf_source_tensor(const QsfSource *s, uint64_t i);
const QsfTensor *qsf_source_find_tensor(const QsfSource *s, const char *name); /* NULL if absent */
/* Static name of a metadata type ("u32", "string", ...). */
const char *qsf_meta_type_name(QsfMetaType type);

/* Applies --override-kv: "KEY=TYPE:VALUE" (str, int, float, bool) or "KEY=null" (as if absent). Call
 * it before anything is built from the metadata. QSF_E_USAGE if malformed. */
int qsf_source_override(QsfSource *s, const char *spec, QsfErr *err);

/* --- metadata: scalars of any integer type convert if the value fits --- */
size_t qsf_meta_count(const QsfSource *s);
/* Returns the key of entry i, and its type; for arrays also the element type and count. For --inspect. */
const char *qsf_meta_at(const QsfSource *s, size_t i, QsfMetaType *type, QsfMetaType *elem, uint64_t *count);
/* Is there a value for the key, of any type? */
bool qsf_meta_has(const QsfSource *s, const char *key);
/* Read a scalar. If the key is absent, *out = fallback. QSF_E_MODEL, which names the key, if its type
 * does not convert or the value is out of range. */
int qsf_meta_u32(const QsfSource *s, const char *key, uint32_t fallback, uint32_t *out, QsfErr *err);
int qsf_meta_i64(const QsfSource *s, const char *key, int64_t fallback, int64_t *out, QsfErr *err);
int qsf_meta_f32(const QsfSource *s, const char *key, float fallback, float *out, QsfErr *err);
int qsf_meta_bool(const QsfSource *s, const char *key, bool fallback, bool *out, QsfErr *err);
/* Reads a string: *out points into the source (NUL-terminated, at most 1 MiB), or is NULL if the key is
 * absent. It may contain NULs, hence *len. Callers that need a C string pass len NULL: then a string with a
 * NUL is QSF_E_MODEL. */
int qsf_meta_str(const QsfSource *s, const char *key, const char **out, size_t *len, QsfErr *err);

/* --- arrays: one pass, in order, through a cursor --- */
typedef struct QsfMetaArray {
    QsfMetaType elem;
    uint64_t count, next; /* number of elements, number read so far */
    uint64_t bytes;       /* size of the elements in the file: an upper limit for a copy */
    QsfCursor cur;
    char *tmp; /* the newest string, owned */
    size_t tmp_cap;
    const char *key;
} QsfMetaArray;

/* Opens an array; *present = whether the key exists. QSF_E_MODEL if it is not an array of `elem`
 * (integer element types convert to each other: pass QSF_META_I64 for any integer type, QSF_META_F32
 * for floats). After success with *present, close it with qsf_meta_array_close. */
int qsf_meta_array_open(const QsfSource *s, const char *key, QsfMetaType elem, QsfMetaArray *a, bool *present,
                        QsfErr *err);
/* Reads the next string; *s is valid until the next call. */
int qsf_meta_array_str(QsfMetaArray *a, const char **s, size_t *len, QsfErr *err);
/* Read the next number. QSF_E_MODEL if it does not convert. */
int qsf_meta_array_i64(QsfMetaArray *a, int64_t *out, QsfErr *err);
int qsf_meta_array_f32(QsfMetaArray *a, float *out, QsfErr *err);
void qsf_meta_array_close(QsfMetaArray *a);

/* QSF_E_RUNTIME when a file of the model has changed since it was opened. Any thread. */
int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err);

#endif
