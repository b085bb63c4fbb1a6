/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a QSF v1 file (man/qsf-format.5) sequentially in bounded memory, into a new file (newfile.h). Call
 * order: open, the embedding, each layer with its tensors, the final section with its tensors, finish. The
 * data of the embedding or of a tensor follows its header, in pieces of any size. Index, checksums and header
 * are filled in at the end, then the file gets its name; after a failure, or without finish, discard removes
 * it. A layer that is to be compressed is collected in memory, which then holds it both uncompressed and
 * compressed. One thread. */
#ifndef QSF_FILE_QSF_WRITE_H
#define QSF_FILE_QSF_WRITE_H

#include "src/base/newfile.h"
#include "src/base/strbuf.h"
#include "src/file/qsf/codec.h"
#include "src/file/qsf/parts.h"
#include "src/file/source.h"

/* Value of QsfWriteSpec.codec: chooses the codec for each layer; a layer is not compressed if that saves less
 * than 3 % or if it has more than QSF_COMPRESS_AUTO_MAX bytes. */
#define QSF_COMPRESS_AUTO     0xFFu
#define QSF_COMPRESS_AUTO_MAX (32u << 20)

typedef struct QsfWriteSpec {
    const QsfSource *meta;  /* copied, except qsf_key_of_file and general.file_type; only used during open */
    const QsfStrbuf *extra; /* NULL, or more pairs encoded as in GGUF, whose keys meta does not have or that
                               begin with `instead` */
    uint64_t n_extra;
    const QsfNamed *named; /* NULL, or the named tensors, borrowed until finish or discard;
                              written as metadata */
    const char *instead;   /* NULL, or a prefix: entries of meta with such keys are not copied */
    QsfFileHeader head;    /* fixed fields (qsf_fields_of_source), block, flags; the writer sets the rest */
    bool dry;              /* create no file: pos counts its size (an upper limit with compression). End with
                              discard, not finish */
    uint8_t codec;         /* codec for layers: QSFF_STORED, ..., QSFF_ZSTD, or QSF_COMPRESS_AUTO. A layer
                              that does not get smaller, or has more than qsf_codec_max_bytes bytes, is stored
                              uncompressed */
    uint32_t n_layer_tensors; /* with compression: at least the number of tensors in all layers */
} QsfWriteSpec;

/* Returns whether a metadata key describes the QSF file, or the parts of a split one, that contains it, so
 * that it does not apply to a copy. */
bool qsf_key_of_file(const char *key);

typedef enum QsfWriteStage { QSFW_START, QSFW_EMBED, QSFW_LAYERS, QSFW_FINAL } QsfWriteStage;

/* State of layer compression. */
typedef struct QsfCompressor {
    uint8_t how;          /* as in the spec */
    bool on;              /* the current layer is being collected: `pos` already counts it as written */
    unsigned char *whole; /* (n), cap allocated */
    size_t n, cap;
    unsigned char *heads; /* (max_heads, 16) headers of the compressed layers, then of the current one */
    uint32_t n_heads, max_heads;
} QsfCompressor;

/* Private to the writer. */
typedef struct QsfWriter {
    char *path;           /* NULL: not open */
    QsfNewFile out;       /* not with dry */
    char *input, *as_qsf; /* for messages about the model: path of meta; the same for offsets in path */
    unsigned char *buf;   /* (n_buf) not yet written */
    size_t n_buf;
    uint64_t pos;   /* bytes so far */
    uint64_t start; /* of the section being written */
    uint64_t left;  /* bytes of the current data not yet written */
    uint32_t crc;   /* of the section so far */
    QsfWriteStage stage;
    uint32_t n_layers; /* begun */
    bool tied, broken, dry;
    QsfFileHeader head;
    QsfIndexEntry *index;  /* (head.n_layers) */
    uint64_t *layer_bytes; /* (head.n_layers) */
    QsfTensorScope scope;
    const QsfNamed *named; /* NULL: none */
    QsfCompressor compressor;
    uint64_t own_off;             /* offset of the pairs that are filled in at the end */
    uint64_t meta_pairs;          /* number of pairs, including those */
    uint32_t meta_crc, embed_crc; /* of the metadata between its count and those pairs; of the embedding */
} QsfWriter;

/* Creates the new file, reserves space for header and index, and writes the metadata. QSF_E_USAGE: something
 * that is not a regular file is at path; QSF_E_RUNTIME: it cannot be written; QSF_E_MODEL, which names the
 * file of meta: the header check failed. On failure nothing is left behind and w needs no discard. */
int qsf_write_open(QsfWriter *w, const char *path, const QsfWriteSpec *spec, QsfErr *err);
/* Begins the embedding. code: as in a tensor header, not QSFF_LAYER_CODE. */
int qsf_write_embedding(QsfWriter *w, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* Begins the next layer. code: that of all its tensors with QSFF_LAYER_CODE, or QSFF_MIXED. importance 0: not
 * measured. */
int qsf_write_layer(QsfWriter *w, uint8_t code, float importance, QsfErr *err);
/* Stores the newest layer, which has no tensors yet, without compression. */
void qsf_write_uncompressed(QsfWriter *w);
/* Begins the final section. norm and, if the header specifies LayerNorm, bias (NULL: zeros) have (hidden)
 * floats and are stored as fp16; norm NULL: the model has none. exact: also stores them as fp32, which takes
 * precedence. tied: there is no head. */
int qsf_write_final(QsfWriter *w, const float *norm, const float *bias, bool tied, bool exact, QsfErr *err);
/* Begins a tensor (qsf/names.h) of the newest layer or of the final section. QSFT_NAMED: the next one of its
 * section in the list of named tensors. */
int qsf_write_tensor(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* The same in groups of 16 rows (qsf/groups.h); the data includes the zeros that pad the last group. */
int qsf_write_groups(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* Writes the next len bytes of the embedding or tensor. */
int qsf_write_data(QsfWriter *w, const void *data, size_t len, QsfErr *err);
/* With dry: counts all data of the embedding or tensor as written. */
int qsf_write_skip(QsfWriter *w, QsfErr *err);
/* Fills in index, checksums and header, syncs the file to disk and renames it to path. On failure the new
 * file is removed. */
int qsf_write_finish(QsfWriter *w, QsfErr *err);
/* Frees everything and removes an unfinished file. Does nothing if w is zeroed, finished or discarded. */
void qsf_write_discard(QsfWriter *w);

/* --- between the files of the writer --- */
/* Appends bytes to the file and the section's checksum. */
int qsf_write_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err);
/* Writes the metadata section, with space at w->own_off for pairs that are filled in later. */
int qsf_write_metadata(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err);
/* Encodes those pairs, from w and the checksums of index, embedding, final section and header bytes
 * 100-127. */
void qsf_write_own_pairs(const QsfWriter *w, const uint32_t crc[4], QsfStrbuf *b);
/* Returns how much of that space is unused because fewer layers were compressed than reserved for. */
uint64_t qsf_write_spare(const QsfWriter *w);
/* Compressing a layer: begin, then bytes and tensor headers in order, then end. A layer that is too large for
 * the codec is written uncompressed. */
int qsf_compressor_open(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err);
void qsf_compressor_begin(QsfWriter *w);
int qsf_compressor_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err);
int qsf_compressor_head(QsfWriter *w, const unsigned char b[QSFF_TENSOR_BYTES], QsfErr *err);
/* Writes the layer, and fills in compression and whole_bytes. */
int qsf_compressor_end(QsfWriter *w, QsfIndexEntry *e, QsfErr *err);
void qsf_compressor_close(QsfWriter *w);

#endif
