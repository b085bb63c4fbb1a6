/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fixed-size pieces of a QSF v1 file (man/qsf-format.5), as structs: header, layer index entry, embedding
 * header, tensor header; all little-endian in the file. Each piece is checked by itself here; relations
 * between pieces are checked in qsf/parts.h and qsf/fields.h. Pure functions, any thread. */
#ifndef QSF_FILE_QSF_LAYOUT_H
#define QSF_FILE_QSF_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/file/qsf/type_codes.h"

#define QSFF_VERSION      1u
#define QSFF_HEAD_BYTES   128u
#define QSFF_INDEX_BYTES  32u /* per layer */
#define QSFF_EMBED_BYTES  16u /* before the embedding's rows */
#define QSFF_TENSOR_BYTES 16u /* before a tensor's rows */
#define QSFF_HEAD_CRC_AT  96u /* CRC32 of the bytes before it */
#define QSFF_META_CRC_AT  116u
#define QSFF_PAGE         4096u /* QSFF_PAGES */
#define QSFF_LINE         64u   /* QSFF_LINES */
#define QSFF_LAYERS_MAX   4096u
#define QSFF_NO_TOKEN     UINT32_MAX
#define QSFF_BY_META      0xFFu      /* the list of codes lacks the value: the metadata has it */
#define QSFF_LONG         UINT32_MAX /* a size of 4 GiB or more, which is stored elsewhere */

/* Flags. */
#define QSFF_PAGES    1u /* sections start at multiples of 4 KiB */
#define QSFF_X16      2u /* some tensors are interleaved by 16 rows */
#define QSFF_CLUSTERS 4u /* the file has a clustered head */
#define QSFF_LINES    8u /* data of tensors starts at multiples of 64 bytes */

enum { QSFF_GPT2, QSFF_LLAMA, QSFF_MISTRAL, QSFF_PHI, QSFF_CUSTOM };       /* architecture */
enum { QSFF_GELU, QSFF_SILU, QSFF_RELU };                                  /* activation */
enum { QSFF_LAYER_NORM, QSFF_RMS_NORM };                                   /* normalization */
enum { QSFF_LEARNED, QSFF_ROPE, QSFF_ALIBI };                              /* position encoding */
enum { QSFF_STORED, QSFF_LZ4, QSFF_LZ4_HC, QSFF_ZSTD, QSFF_COMPRESSIONS }; /* compression */
enum { QSFF_ROWS, QSFF_GROUPS, QSFF_GROUPS_BY_USE }; /* layout of a tensor: qsf/groups.h */
typedef struct QsfFileHeader {
    uint32_t version, bytes, arch;
    uint32_t n_layers, hidden, n_heads, n_kv_heads /* 0: as n_heads */, n_vocab, n_ctx, ffn, head_dim;
    uint8_t code, act, norm, pos;
    float rope_theta;
    uint64_t index_off, embed_off, final_off;
    uint32_t bos, eos, pad;        /* or QSFF_NO_TOKEN */
    uint32_t size_low;             /* lower 32 bits of the file's size */
    uint64_t meta_off, meta_bytes; /* 0, 0: no metadata */
    uint32_t meta_crc;
    uint32_t block; /* elements of a block of codes 0-4; 0: 64 */
    uint32_t flags;
} QsfFileHeader;

typedef struct QsfIndexEntry {
    uint64_t off;
    uint32_t bytes;       /* in the file, or QSFF_LONG */
    uint32_t whole_bytes; /* decompressed */
    uint8_t code, compression;
    uint16_t n_tensors;
    uint32_t crc;     /* of the bytes in the file */
    float importance; /* 0: not measured */
    uint32_t reserved;
} QsfIndexEntry;

typedef struct QsfEmbedHeader {
    uint8_t code, layout;
    uint16_t reserved;
    uint32_t bytes; /* of the rows, or QSFF_LONG */
    uint32_t rows, cols;
} QsfEmbedHeader;

typedef struct QsfTensorHeader {
    uint32_t type; /* qsf/names.h */
    uint32_t rows, cols;
    uint8_t code, layout;
    uint16_t reserved;
} QsfTensorHeader;

/* Encode a piece as stored in a file; that of the header includes the checksum of bytes 0-95. */
void qsf_file_header_encode(const QsfFileHeader *h, unsigned char b[QSFF_HEAD_BYTES]);
void qsf_index_entry_encode(const QsfIndexEntry *e, unsigned char b[QSFF_INDEX_BYTES]);
void qsf_embed_header_encode(const QsfEmbedHeader *e, unsigned char b[QSFF_EMBED_BYTES]);
void qsf_tensor_header_encode(const QsfTensorHeader *t, unsigned char b[QSFF_TENSOR_BYTES]);

/* Decode and check a piece: magic, version, checksum, and the range of every field. `at` is its byte offset
 * in the file. QSF_E_MODEL names path and byte offset, and unsupported features (a codec that this build
 * lacks, a clustered head, an interleaved embedding). */
int qsf_file_header_decode(QsfFileHeader *h, const unsigned char b[QSFF_HEAD_BYTES], const char *path,
                           QsfErr *err);
int qsf_index_entry_decode(QsfIndexEntry *e, const unsigned char b[QSFF_INDEX_BYTES], const char *path,
                           uint64_t at, QsfErr *err);
int qsf_embed_header_decode(QsfEmbedHeader *e, const unsigned char b[QSFF_EMBED_BYTES], const char *path,
                            uint64_t at, QsfErr *err);
int qsf_tensor_header_decode(QsfTensorHeader *t, const unsigned char b[QSFF_TENSOR_BYTES], const char *path,
                             uint64_t at, QsfErr *err);

/* Computes the checksum of header bytes 100-115 and 120-127: qsf.crc32.header100 in the metadata. */
uint32_t qsf_file_header_crc100(const unsigned char b[QSFF_HEAD_BYTES]);

/* Finds the dtype (dtype.h) of a quantization code with this block size (0: 64). False for QSFF_MIXED,
 * QSFF_LAYER_CODE and undefined codes. */
bool qsf_code_dtype(uint8_t code, uint32_t block, uint32_t *dtype);
/* Finds the code to write for a dtype; false if there is none. */
bool qsf_code_of_dtype(uint32_t dtype, uint8_t *code);
/* Computes the bytes of a tensor, with rows padded to full blocks; false if they do not fit 64 bits. */
bool qsf_code_bytes(uint32_t dtype, uint64_t rows, uint32_t cols, uint64_t *bytes);

#endif
