/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads rows of a tensor in GGUF's order, from any format: for conversions and for small tensors. Hugging
 * Face models rotate halves of a head (element i with i + head_dim/2), while GGUF's llama rotates pairs (2i
 * with 2i + 1), so the rows of the Q and K projections are in a different order in GGUF; these functions
 * reorder them. Any thread; t must be a tensor of s. */
#ifndef QSF_FORMAT_ROWS_H
#define QSF_FORMAT_ROWS_H

#include "src/format/source.h"

/* QsfTensor.file of a tensor that is not stored directly in a file: it was created when the source was
 * opened, or is in a compressed layer (QsfTensor.compressed). Reading from such a layer decompresses all of
 * it and caches it until a different one is read. */
#define QSF_FILE_NONE UINT32_MAX

/* Returns 0 if the tensor is stored in GGUF's order. Otherwise the number of heads whose rows (elements, of a
 * bias) are stored in split halves: within a head of n rows, GGUF's row 2i is row i in the file, and 2i + 1
 * is n/2 + i. */
uint32_t qsf_source_row_heads(const QsfSource *s, const QsfTensor *t);
/* Checks that the engine can run the model directly from its files. QSF_E_MODEL, which suggests qsf-convert,
 * if rows must be reordered or a tensor is not stored in a file. */
int qsf_source_check_runs(const QsfSource *s, QsfErr *err);

/* Reads bytes [at, at + len) of the tensor as stored, in the order of its file. QSF_E_RUNTIME if they are not
 * inside it or cannot be read. */
int qsf_source_read_bytes(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len,
                          QsfErr *err);
/* Reads rows [first, first + n) in GGUF's order, counted over all dimensions but the first, in their stored
 * type: out has n x (bytes of a row). Any type, but not interleaved rows (QsfTensor.x16; see
 * requantize/rowreader.h). QSF_E_RUNTIME as above. */
int qsf_source_read_stored(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, void *out,
                           QsfErr *err);
/* The same as floats, exactly: out (n, ne[0]). Only F32, F16, BF16 and F8; QSF_E_MODEL for other types, whose
 * blocks kernels/kernels.h unpacks. */
int qsf_source_read_rows(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, float *out,
                         QsfErr *err);
/* Returns ne[1] x ne[2] x ne[3]. */
uint64_t qsf_tensor_n_rows(const QsfTensor *t);

#endif
