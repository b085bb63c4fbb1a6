/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is a QSF v1 file whole? One pass front to back, from a file or a pipe, in memory that does not grow with
 * the weights, but for a compressed layer: one at a time is held both compressed and decompressed. */
#ifndef QSF_FORMAT_QSF_VERIFY_H
#define QSF_FORMAT_QSF_VERIFY_H

#include "src/format/source.h"

typedef struct QsfVerifyReport {
    uint64_t bytes; /* of the file */
    uint64_t meta_pairs;
    uint64_t n_tensors; /* embedding and final norms included */
    uint32_t n_layers, n_compressed; /* compressed: those of them that are compressed */
} QsfVerifyReport;

/* Reads fd from where it stands to its end; name is what messages call it. Checks every checksum (those of
 * the metadata must be there), that every byte between sections and tensors is zero, that sections and
 * tensors lie where they should, every field as the reader does, outliers against the matrix they belong to,
 * that compressed layers decompress to what the index and the metadata say, that no tensor is missing and no byte left over. QSF_E_MODEL names the byte offset; QSF_E_RUNTIME: it
 * cannot be read, or no memory; QSF_E_BUDGET: a compressed layer does not fit the ledger's limit. *r is filled on success. The caller closes fd. */
int qsf_verify_fd(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err);
/* The same; then look, which may be NULL, gets the file's metadata, as a source without tensors that lives as long as the
 * call. What it returns is returned. */
int qsf_verify_fd_meta(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r,
                       int (*look)(void *arg, const QsfSource *meta, QsfErr *err), void *arg, QsfErr *err);
/* The same for a file. */
int qsf_verify_file(const char *path, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err);

#endif
