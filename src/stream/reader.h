/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the bytes of a chunk from the model's files, in pieces, so that it can be asked to stop. */
#ifndef QSF_STREAM_READER_H
#define QSF_STREAM_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/format/source.h"
#include "src/stream/units.h"

#define QSF_READ_PIECE (1u << 20)

typedef struct QsfReadHooks {
    /* Before every piece; true = stop with QSF_E_INTERRUPTED. */
    bool (*stop)(void *arg);
    /* After every piece. */
    void (*did)(void *arg, uint64_t bytes, uint64_t ns);
    void *arg;
} QsfReadHooks;

/* Fills dst (c->bytes) with the chunk's rows; the padding between parts is left alone. QSF_E_RUNTIME names
 * file and offset, QSF_E_INTERRUPTED when stopped. Any thread. */
int qsf_read_chunk(const QsfSource *src, const QsfUnit *u, const QsfChunk *c, uint8_t *dst,
                   const QsfReadHooks *h, QsfErr *err);

/* QSF_E_RUNTIME when a file of the model has changed since it was opened. */
int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err);

#endif
