/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pinned rows in the order that the kernels like best: sixteen rows interleaved (kernels/x16/x16.h), group g of a
 * tensor where its rows 16g.. lay, same bytes, another order. Rows behind the last whole group stay rows. What
 * streams stays rows, too: it is read anew for every pass.
 *
 * Pinned items end at multiples of QSF_ROW_QUANTUM or with the unit. So groups are never cut, as long as tensors that
 * follow each other in a unit begin at multiples of 16 items; a unit where they do not stays in rows. */
#ifndef QSF_STREAM_PACKED_H
#define QSF_STREAM_PACKED_H

#include "src/stream/loader.h"

/* Weight types, one bit each, for which the level of the table brings a kernel that multiplies packed rows. */
uint32_t qsf_packed_types(const qk_table *table);

/* Which tensors of u are packed when pinned: fills u->pack. Bit t of types allows weight type t. */
void qsf_packed_choose(QsfWeightUnit *u, const qk_table *table, uint32_t types);

/* Bytes of the largest group of a unit, whatever types are allowed; 0 when all stays rows. */
uint64_t qsf_packed_group_bytes(const QsfUnit *u, const qk_table *table);

/* How many of the first `rows` rows of tensor t are packed when they are pinned. */
uint32_t qsf_packed_rows(const QsfWeightUnit *u, unsigned t, uint32_t rows);

/* Packs the whole groups of items [item0, item1), which lie in their place as rows. scratch holds a group. */
void qsf_packed_make(const QsfWeightUnit *u, uint32_t item0, uint32_t item1, uint8_t *scratch);

/* Items [n, old) are about to lose their memory: those that share a page with a row that stays become rows again,
 * as the page was read, so that pinning can go on behind it. */
void qsf_packed_cut(const QsfWeightUnit *u, uint32_t n, uint32_t old, uint8_t *scratch);

/* Where row `row` of tensor t begins, as long as it is a row. */
static inline uint8_t *qsf_pinned_at(const QsfWeightUnit *u, unsigned t, uint32_t row) {
    uint64_t skew = u->u.tensor[t]->offset & (QSF_WINDOW - 1);
    return u->pin[t] + skew + row * u->u.row_bytes[t];
}

#endif
