/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layouts 1 and 2 of QSF tensors (man/qsf-format.5): groups of 16 rows, interleaved as the kernels multiply
 * them (kernels/x16/x16.h), but with layout 1 the planes are always in the order of the block; the last group
 * is padded with zeros. For the reader, writer and verifier; the kernels do the interleaving. All functions
 * are pure except qsf_groups_verify. */
#ifndef QSF_FILE_QSF_GROUPS_H
#define QSF_FILE_QSF_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/file/qsf/parts.h"
#include "src/file/qsf/stream.h"

#define QSFF_GROUP_ROWS 16u

/* Returns the number of planes of a block of this type (dtype.h) in a group; 0: such rows cannot be
 * interleaved. */
unsigned qsf_group_planes(uint32_t dtype);
/* Whether such rows can have layout 2 as well: the order in which the kernels multiply them. */
bool qsf_group_by_use(uint32_t dtype);
/* Returns the number of rows stored in groups: rounded up to a multiple of 16. */
uint64_t qsf_group_rows(uint64_t rows);

/* b is one block of each row of a group, 16 x (bytes of a block). Returns the index of the first byte of the
 * padding rows, those after the first `rows`, that is not 0; UINT32_MAX if there is none. */
uint32_t qsf_group_spare(const unsigned char *b, uint32_t dtype, unsigned rows);
/* Clears the padding rows in `blocks` consecutive blocks. */
void qsf_group_clear(unsigned char *b, uint64_t blocks, uint32_t dtype, unsigned rows);

/* Reads the data of a tensor, `what`, from the stream. QSF_E_MODEL: the stream ends too early, or the padding
 * of the last group is not 0; QSF_E_RUNTIME. */
int qsf_groups_verify(QsfStream *in, const QsfTensorPlace *p, const char *what, QsfErr *err);

#endif
