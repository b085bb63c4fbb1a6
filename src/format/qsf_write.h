/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a QSF v1 file (man/qsf-format.5) front to back in bounded memory, into a new file (newfile.h): open, the embedding, each layer with its tensors, the final section with its tensors, finish.
 * Behind the embedding's, a layer's or a tensor's header its data follows in pieces of any size. Index,
 * checksums and header are filled in at the end, then the file gets its name; whatever fails, and without
 * finish, discard leaves nothing behind. A layer that is to be compressed is gathered in memory, where it is twice at
 * most: as it is, and compressed. One thread. */
#ifndef QSF_FORMAT_QSF_WRITE_H
#define QSF_FORMAT_QSF_WRITE_H

#include "src/base/newfile.h"
#include "src/base/strbuf.h"
#include "src/format/qsf_parts.h"
#include "src/format/qsf_codec.h"
#include "src/format/source.h"

/* Of QsfWriteSpec.press: the compression is chosen for each layer, and none where it saves less than 3 % or the layer has
 * more than QSF_COMPRESS_AUTO_MAX bytes. */
#define QSF_COMPRESS_AUTO      0xFFu
#define QSF_COMPRESS_AUTO_MAX (32u << 20)

typedef struct QsfWriteSpec {
    const QsfSource *meta;  /* all its metadata is copied, except qsf.crc32.*, qsf.layer_bytes, qsf.layer_tensors and
                               split.*, which are about a file; read during open only */
    const QsfStrbuf *extra; /* NULL, or more pairs encoded as in GGUF, whose keys meta does not have, or that begin
                               with `instead` */
    uint64_t n_extra;
    const char *instead;    /* NULL, or a prefix: entries of meta whose keys have it are not copied */
    QsfFileHeader
        head; /* fixed fields (qsf_fields_of_source), block, flags; the writer knows the rest itself */
    bool dry; /* no file is made: pos says how long it would be, with compression at most. Ended by discard, not by
                 finish */
    uint8_t press;            /* compression of layers: QSFF_STORED, ..., QSFF_ZSTD, or QSF_COMPRESS_AUTO. A layer that does not
                                 get smaller, or has more than qsf_codec_max_bytes bytes, is stored as it is */
    uint32_t n_layer_tensors; /* with compression: tensors of all layers together, at least */
} QsfWriteSpec;

typedef enum QsfWriteStage { QSFW_START, QSFW_EMBED, QSFW_LAYERS, QSFW_FINAL } QsfWriteStage;

/* Layers on their way to be compressed. */
typedef struct QsfCompressor {
    uint8_t how;          /* as in the spec */
    bool on;              /* the newest layer is gathered: `pos` counts it as if it had been written */
    unsigned char *whole; /* (n), cap allocated */
    size_t n, cap;
    unsigned char *heads; /* (max_heads, 16) tensor headers of the compressed layers, behind them those of the newest */
    uint32_t n_heads, max_heads;
} QsfCompressor;

/* All of it is the writer's own. */
typedef struct QsfWriter {
    char *path;         /* NULL: nothing is open */
    QsfNewFile out;     /* not with dry */
    char *input, *as_qsf; /* of messages about the model: the path of meta; the same, where byte offsets are path's */
    unsigned char *buf; /* (n_buf) not yet written */
    size_t n_buf;
    uint64_t pos;   /* bytes so far */
    uint64_t start; /* of the section being written */
    uint64_t left;  /* of the data announced */
    uint32_t crc;   /* of the section so far */
    QsfWriteStage stage;
    uint32_t n_layers; /* begun */
    bool tied, broken, dry;
    QsfFileHeader head;
    QsfIndexEntry *index;  /* (head.n_layers) */
    uint64_t *layer_bytes; /* (head.n_layers) */
    QsfTensorScope scope;
    QsfCompressor press;
    uint64_t own_off;             /* of the pairs that are filled in at the end */
    uint64_t meta_pairs;          /* those included */
    uint32_t meta_crc, embed_crc; /* of the metadata between its count and those pairs; of the embedding */
} QsfWriter;

/* Creates the new file and writes header room, index room and metadata. QSF_E_USAGE: something that is
 * not a file stands at path; QSF_E_RUNTIME: it cannot be written; QSF_E_MODEL, which
 * names meta's file: what the header check finds.
 * On failure nothing is left and w needs no discard. */
int qsf_write_open(QsfWriter *w, const char *path, const QsfWriteSpec *spec, QsfErr *err);
/* Begins the embedding. code: as in a tensor header, not QSFF_LAYER_CODE. */
int qsf_write_embedding(QsfWriter *w, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* Begins the next layer. code: of all its tensors that say QSFF_LAYER_CODE, or QSFF_MIXED. importance 0: not
 * measured. */
int qsf_write_layer(QsfWriter *w, uint8_t code, float importance, QsfErr *err);
/* Begins the final section: norm and, where the header says LayerNorm, bias (NULL: zeros) as (hidden) floats,
 * stored as fp16. exact: in fp32 as well, which overrules. tied: there is no head. */
int qsf_write_final(QsfWriter *w, const float *norm, const float *bias, bool tied, bool exact, QsfErr *err);
/* Begins a tensor (qsf_names.h) of the newest layer or of the final section. */
int qsf_write_tensor(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* The same in groups of 16 rows (qsf_groups.h): the rows of the last one are filled up, zeros included in the data. */
int qsf_write_groups(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err);
/* The next len bytes of what was begun. */
int qsf_write_data(QsfWriter *w, const void *data, size_t len, QsfErr *err);
/* The same without the bytes, when dry: all that was announced counts as written. */
int qsf_write_skip(QsfWriter *w, QsfErr *err);
/* Fills in what is only known now, makes sure that it is on the disk and gives the file its name. On failure
 * the new file is gone too. */
int qsf_write_finish(QsfWriter *w, QsfErr *err);
/* Gives everything back and removes what is not finished; zero-initialised, finished or discarded is allowed.
 */
void qsf_write_discard(QsfWriter *w);

/* --- between the files of the writer --- */
/* Appends bytes to the file and the section's checksum. */
int qsf_write_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err);
/* The metadata section, with room for what is filled in later at w->own_off. */
int qsf_write_metadata(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err);
/* Those pairs, from w and the checksums of index, embedding, final section and header bytes 100-127. */
void qsf_write_own_pairs(const QsfWriter *w, const uint32_t crc[4], QsfStrbuf *b);
/* Bytes of the room for them that they do not need in the end, as fewer layers were compressed than could have been. */
uint64_t qsf_write_spare(const QsfWriter *w);
/* What a layer that is compressed is made of: begin, bytes and tensor headers as they come, end. Bytes that do not fit
 * any compression are written, and the layer with them. */
int qsf_compressor_open(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err);
void qsf_compressor_begin(QsfWriter *w);
int qsf_compressor_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err);
int qsf_compressor_head(QsfWriter *w, const unsigned char b[QSFF_TENSOR_BYTES], QsfErr *err);
/* Writes the layer, and fills in compression and whole_bytes. */
int qsf_compressor_end(QsfWriter *w, QsfIndexEntry *e, QsfErr *err);
void qsf_compressor_close(QsfWriter *w);

#endif
