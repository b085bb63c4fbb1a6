/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed layers of a QSF file, as a reader meets them: where their tensors are without decompressing any, and one of
 * them decompressed, held against what was believed until then. */
#ifndef QSF_FORMAT_QSF_COMPRESSED_H
#define QSF_FORMAT_QSF_COMPRESSED_H

#include "src/format/qsf_parts.h"
#include "src/format/qsf_codec.h"
#include "src/format/source.h"

/* Tensor headers of the compressed layers from the metadata, in their order. QSF_E_MODEL unless the array, where it is
 * there, has 16 bytes for each of the n_tensors that the n entries of the index announce. *at = its place in the first
 * file, *mem = itself where it is in memory (else NULL); *count = how many headers, 0 where the metadata has none. */
int qsf_layer_heads(const QsfSource *s, const QsfIndexEntry *index, uint32_t n, uint64_t *at, const unsigned char **mem,
                    uint64_t *count, QsfErr *err);

/* Fills s->compressed from the index (h->n_layers): places, sizes, and tensor headers, from the metadata or, where that has
 * none, from the layers themselves, each of which is decompressed once for it. What the headers say is not looked at.
 * Nothing where no layer is compressed. QSF_E_MODEL, QSF_E_RUNTIME, QSF_E_BUDGET (a layer does not fit the budget). */
int qsf_compressed_open(QsfSource *s, const QsfFileHeader *h, const QsfIndexEntry *index, QsfErr *err);
/* That of a layer, NULL when it is not compressed. */
QsfCompressed *qsf_compressed_of(const QsfSource *s, uint32_t layer);
void qsf_compressed_close(QsfSource *s);

/* "PATH: layer 3, decompressed from byte offset 8192": what messages call it, in at most cap bytes. Returns buf. */
const char *qsf_compressed_label(const QsfCompressed *c, const char *path, char *buf, size_t cap);

/* The c->bytes at raw against the checksum of the index. QSF_E_MODEL. */
int qsf_compressed_check(const QsfSource *s, const QsfCompressed *c, const void *raw, QsfErr *err);
/* Decompresses raw to whole (c->whole_bytes) and compares the tensor headers; allocates nothing. u has what c->how needs.
 * QSF_E_MODEL names file, layer and byte offset. Any thread, one for each u. */
int qsf_compressed_unpack(const QsfSource *s, const QsfCompressed *c, const QsfUnpacker *u, const void *raw, void *whole,
                       QsfErr *err);

/* Bytes [at, at + len) of a tensor in a compressed layer. The layer is decompressed and kept, charged to QSF_MEM_META,
 * until another one is asked for. Errors as of the two above, QSF_E_RUNTIME, QSF_E_BUDGET. Any thread. */
int qsf_compressed_read(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len, QsfErr *err);

#endif
