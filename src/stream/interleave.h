/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts rows to the order in which the kernels are fastest: sixteen rows interleaved (kernels/x16/x16.h).
 * Group g of a tensor replaces rows [16g, 16g + 16): the same bytes in a different order. A file contains
 * rows or groups (QsfUnit.x16), and the kernels of a level multiply rows or groups:
 *
 *     file      multiplied   pinned                                     streamed
 *     rows      rows         unchanged                                  unchanged
 *     rows      groups       groups; rows after the last whole one      unchanged: read for every pass, they
 *                            stay rows                                  are multiplied as rows
 *     groups    groups       unchanged; the last one is padded           unchanged
 *     groups    rows         rows                                       rows, in every pass
 *
 * Groups with planes in another order than the kernels want (QsfTensor.by_block) get that
 * order, pinned and streamed.
 *
 * Pinned items and chunks end at multiples of QSF_ROW_QUANTUM or with the unit, and tensors begin at such:
 * groups are never cut. */
#ifndef QSF_STREAM_INTERLEAVE_H
#define QSF_STREAM_INTERLEAVE_H

#include "src/stream/loader.h"

/* Fills u->ops and u->interleaved. Bit t of types: weight type t is multiplied in groups. table NULL: nothing
 * is, nor may it lie in the file so: QSF_E_RUNTIME. */
int qsf_interleave_choose(QsfWeightUnit *u, const qk_table *table, uint64_t types, QsfErr *err);

/* Bytes of the largest group of those tensors whose form changes on the way from the file; 0 = none. */
uint64_t qsf_interleave_scratch(const QsfWeightUnit *u);

/* How many of the first `rows` rows of tensor t lie in groups when they are pinned, and when they are
 * streamed: more than `rows` where the last group is filled up. */
uint32_t qsf_interleaved_rows(const QsfWeightUnit *u, unsigned t, uint32_t rows);
uint32_t qsf_interleaved_streamed(const QsfWeightUnit *u, unsigned t, uint32_t rows);

/* One group at `at` from rows to groups (pack) or back, by way of scratch (16 rows). */
void qsf_interleave_convert(const qk_weight_ops *ops, bool pack, uint8_t *at, size_t row_bytes, size_t k,
                            uint8_t *scratch);

/* n groups of tensor t, which were read to `at`, get the order that the kernels want, if the file has
 * another. ops: of the type. */
void qsf_interleave_by_use(const QsfUnit *u, unsigned t, const qk_weight_ops *ops, uint8_t *at, uint64_t n);

/* The rows of p were read to `at`: they get the form in which they are multiplied. stays: they are pinned.
 * scratch holds a group. */
void qsf_interleave_arrived(const QsfWeightUnit *u, const QsfPart *p, uint8_t *at, bool stays,
                            uint8_t *scratch);

/* Items [n, old) are about to lose their memory: those that share a page with a row that stays get the form
 * of the file again, as the page was read, so that pinning can continue after it. */
void qsf_interleave_cut(const QsfWeightUnit *u, uint32_t n, uint32_t old, uint8_t *scratch);

/* Where row `row` of tensor t begins, as long as it is a row. */
static inline uint8_t *qsf_pinned_at(const QsfWeightUnit *u, unsigned t, uint32_t row) {
    uint64_t skew = u->u.offset[t] & (QSF_WINDOW - 1);
    return u->pin[t] + skew + row * u->u.row_bytes[t];
}

#endif
