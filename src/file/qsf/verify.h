/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verifies a QSF v1 file in one sequential pass, from a file or a pipe. Memory does not grow with the
 * weights, except that one compressed layer at a time is held compressed and decompressed. */
#ifndef QSF_FILE_QSF_VERIFY_H
#define QSF_FILE_QSF_VERIFY_H

#include "src/file/source.h"

typedef struct QsfVerifyReport {
    uint64_t bytes; /* of the file */
    uint64_t meta_pairs;
    uint64_t n_tensors;              /* embedding and final norms included */
    uint32_t n_layers, n_compressed; /* all layers, compressed layers */
} QsfVerifyReport;

/* Reads fd from its current position to the end; name is for messages. Checks all checksums (the metadata
 * must have them), padding bytes, the position of sections and tensors, every field as the reader does, the
 * positions of outliers, that compressed layers match the index and the metadata, and that no tensor is
 * missing and no bytes are left over. QSF_E_MODEL names the byte offset; QSF_E_RUNTIME: it cannot be read, or
 * out of memory; QSF_E_BUDGET: a compressed layer does not fit the limit of the ledger. Fills *r on success.
 * The caller closes fd. */
int qsf_verify_fd(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err);
/* The same; then calls look, which may be NULL, with the metadata of the file as a source without tensors,
 * which is valid during the call. Returns its result. */
int qsf_verify_fd_meta(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r,
                       int (*look)(void *arg, const QsfSource *meta, QsfErr *err), void *arg, QsfErr *err);
/* The same for a file. */
int qsf_verify_file(const char *path, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err);

#endif
