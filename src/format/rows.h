/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a tensor in the order of GGUF, whatever format they come from: for who makes another file of a model, and for
 * small tensors. A model of HuggingFace rotates halves of a head (element i with i + head_dim/2) where GGUF's llama
 * rotates pairs (2i with 2i + 1): of its Q and K projections GGUF has the rows in another order, and reading them here
 * puts them into it. Any thread; t is always one of s's own tensors. */
#ifndef QSF_FORMAT_ROWS_H
#define QSF_FORMAT_ROWS_H

#include "src/format/source.h"

/* QsfTensor.file of a tensor that stands in no file as it is: it was made when the source was opened, or is in a
 * compressed layer (QsfTensor.compressed). Reading from such a layer decompresses all of it, and keeps it until another one
 * is read from. */
#define QSF_FILE_NONE UINT32_MAX

/* 0: the tensor stands in its file as GGUF has it. Otherwise the number of heads whose rows (elements, of a bias) stand
 * there in split halves: within a head of n rows, GGUF's row 2i is the file's row i, and 2i + 1 is n/2 + i. */
uint32_t qsf_source_row_heads(const QsfSource *s, const QsfTensor *t);
/* QSF_OK when the engine can run the model as it stands in its files; QSF_E_MODEL, which names qsf-convert, when rows
 * must be put in order first or tensors stand in no file. */
int qsf_source_check_runs(const QsfSource *s, QsfErr *err);

/* Bytes [at, at + len) of the tensor as it is stored, in the order of its file. QSF_E_RUNTIME when they are not inside
 * it, or cannot be read. */
int qsf_source_read_bytes(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len, QsfErr *err);
/* Rows [first, first + n) in GGUF's order, counted over all dimensions but the first, as their stored type: out has
 * n x (bytes of a row). Any type, but no interleaved rows (QsfTensor.x16): pack/rowreader.h reads those. QSF_E_RUNTIME as
 * above. */
int qsf_source_read_stored(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, void *out, QsfErr *err);
/* The same as floats: out (n, ne[0]). F32, F16 and BF16, exactly; QSF_E_MODEL for other types, whose blocks
 * kernels/kernels.h unpacks. */
int qsf_source_read_rows(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, float *out, QsfErr *err);
/* ne[1] x ne[2] x ne[3] */
uint64_t qsf_tensor_n_rows(const QsfTensor *t);

#endif
