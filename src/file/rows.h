/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads bytes and rows of a tensor in GGUF's order, from any format, wherever the tensor is: in a
 * file, computed from several (a Hugging Face directory), in a compressed layer, or in memory. Any
 * thread; t must be a tensor of s. */
#ifndef QSF_FILE_ROWS_H
#define QSF_FILE_ROWS_H

#include "src/file/source.h"

/* QsfTensor.file of a tensor that is not stored directly in a file: it was created when the source was
 * opened, or is in a compressed layer (QsfTensor.compressed). Reading from such a layer decompresses all of
 * it and caches it until a different one is read. */
#define QSF_FILE_NONE UINT32_MAX

/* Is it a Hugging Face model directory? */
bool qsf_source_is_directory(const QsfSource *s);

/* Reads bytes [at, at + len) of the tensor as a GGUF file has them. QSF_E_RUNTIME if they are not
 * inside it or cannot be read. */
int qsf_source_read_bytes(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len,
                          QsfErr *err);
/* Hints that the same bytes will be read soon; does not wait. */
void qsf_source_will_need(const QsfSource *s, const QsfTensor *t, uint64_t at, uint64_t len);
/* Reads rows [first, first + n) in GGUF's order, counted over all dimensions but the first, in their stored
 * type: out has n x (bytes of a row). Any type, but not interleaved rows (QsfTensor.x16; see
 * convert/pack/tensor_rows.h). QSF_E_RUNTIME as above. */
int qsf_source_read_stored(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, void *out,
                           QsfErr *err);
/* The same as floats, exactly: out (n, ne[0]). Only F32, F16, BF16 and F8; QSF_E_MODEL for other types, whose
 * blocks kernels/kernels.h unpacks. */
int qsf_source_read_rows(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, float *out,
                         QsfErr *err);
/* Converts one element of type F32, F16, BF16, F8_E4M3 or F8_E5M2, exactly. */
float qsf_float_of(uint32_t dtype, const unsigned char *p);
/* Returns ne[1] x ne[2] x ne[3]. */
uint64_t qsf_tensor_n_rows(const QsfTensor *t);

#endif
