/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading compressed layers of a QSF file: locates their tensors without decompressing them, and decompresses
 * a layer and checks it against its tensor headers. */
#ifndef QSF_FILE_QSF_COMPRESSED_H
#define QSF_FILE_QSF_COMPRESSED_H

#include "src/file/qsf/codec.h"
#include "src/file/qsf/parts.h"
#include "src/file/source.h"

/* Locates the metadata array with the tensor headers of the compressed layers, in layer order. QSF_E_MODEL if
 * it exists but does not have 16 bytes for each tensor declared by the n entries of the index. *at = its
 * offset in the first file, *mem = its address if it is in memory (else NULL), *count = number of headers, 0
 * if the metadata does not have the array. */
int qsf_layer_heads(const QsfSource *s, const QsfIndexEntry *index, uint32_t n, uint64_t *at,
                    const unsigned char **mem, uint64_t *count, QsfErr *err);

/* Fills s->compressed from the index (h->n_layers): offsets, sizes and tensor headers. The headers come from
 * the metadata or, if it does not have them, from the layers, each of which is then decompressed once. Does
 * not check the headers. Does nothing if no layer is compressed. QSF_E_MODEL, QSF_E_RUNTIME, QSF_E_BUDGET (a
 * layer does not fit the budget). */
int qsf_compressed_open(QsfSource *s, const QsfFileHeader *h, const QsfIndexEntry *index, QsfErr *err);
/* Returns the entry of a layer, NULL if it is not compressed. */
QsfCompressed *qsf_compressed_of(const QsfSource *s, uint32_t layer);

/* Formats the name of the layer for messages, "PATH: layer 3, decompressed from byte offset 8192", in at most
 * cap bytes. Returns buf. */
const char *qsf_compressed_label(const QsfCompressed *c, const char *path, char *buf, size_t cap);

/* Checks the c->bytes bytes at raw against the checksum in the index. QSF_E_MODEL. */
int qsf_compressed_check(const QsfSource *s, const QsfCompressed *c, const void *raw, QsfErr *err);
/* Decompresses raw to whole (c->whole_bytes) and compares the tensor headers; allocates nothing. u must be
 * prepared with qsf_unpacker_need. QSF_E_MODEL names file, layer and byte offset. Any thread, one for each
 * u. */
int qsf_compressed_unpack(const QsfSource *s, const QsfCompressed *c, const QsfUnpacker *u, const void *raw,
                          void *whole, QsfErr *err);

#endif
