/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layout 1 of QSF tensors (man/qsf-format.5): groups of sixteen rows, interleaved as the kernels multiply them
 * (kernels/x16/x16.h), of which the last one is filled up with zeros. What a reader, a writer and a verifier have to
 * know of it; the way there and back is the kernels'. Pure functions but for qsf_groups_verify. */
#ifndef QSF_FORMAT_QSF_GROUPS_H
#define QSF_FORMAT_QSF_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/format/qsf_parts.h"
#include "src/format/qsf_stream.h"

#define QSFF_GROUP_ROWS 16u

/* Planes that a block of this type (dtype.h) has in a group; 0: such rows are never interleaved. */
unsigned qsf_group_planes(uint32_t dtype);
/* Rows as they are stored in groups: up to the next multiple of 16. */
uint64_t qsf_group_rows(uint64_t rows);

/* b: one block of each row of a group, 16 x (bytes of a block). The first byte that belongs to none of the first `rows`
 * rows and is not 0; UINT32_MAX when there is none. */
uint32_t qsf_group_spare(const unsigned char *b, uint32_t dtype, unsigned rows);
/* Makes all of those 0, in `blocks` blocks that follow each other. */
void qsf_group_clear(unsigned char *b, uint64_t blocks, uint32_t dtype, unsigned rows);

/* Takes the data of a tensor, `what`, from the stream. QSF_E_MODEL: it ends before, or what fills up the last group is
 * not 0; QSF_E_RUNTIME. */
int qsf_groups_verify(QsfStream *in, const QsfTensorPlace *p, const char *what, QsfErr *err);

#endif
