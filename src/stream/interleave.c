/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interleaved rows: which tensors have them, and conversion in both directions. */
#include "src/stream/interleave.h"

#include <string.h>

#include "src/format/qsf_groups.h"

#define GROUP QSF_ROW_QUANTUM

int qsf_interleave_choose(QsfWeightUnit *u, const qk_table *table, uint64_t types, QsfErr *err) {
    for (unsigned t = 0; t < u->u.n; t++) {
        const qk_weight_ops *ops = table != NULL ? &table->weight[u->u.type[t]] : NULL;
        u->ops[t] = ops != NULL && ops->pack != NULL ? ops : NULL;
        /* A tile of rows of two heads would need two inputs. */
        const bool splits = u->u.heads > 0 && u->u.rows[t] / u->u.heads % GROUP != 0;
        u->interleaved[t] = u->ops[t] != NULL && !splits && (types >> u->u.type[t] & 1) != 0;
        if (u->u.x16[t] && u->ops[t] == NULL)
            return qsf_err_set(err, QSF_E_RUNTIME, "internal: no kernels to deinterleave the rows of '%s'",
                               u->u.tensor[t]->name);
    }
    return QSF_OK;
}

uint64_t qsf_interleave_scratch(const QsfWeightUnit *u) {
    uint64_t most = 0;
    for (unsigned t = 0; t < u->u.n; t++) {
        uint64_t bytes = GROUP * u->u.row_bytes[t];
        if (u->u.x16[t] != u->interleaved[t] && bytes > most) most = bytes;
    }
    return most;
}

uint32_t qsf_interleaved_rows(const QsfWeightUnit *u, unsigned t, uint32_t rows) {
    if (!u->interleaved[t]) return 0;
    return u->u.x16[t] ? (uint32_t)qsf_group_rows(rows) : rows / GROUP * GROUP;
}

uint32_t qsf_interleaved_streamed(const QsfWeightUnit *u, unsigned t, uint32_t rows) {
    return u->u.x16[t] ? qsf_interleaved_rows(u, t, rows) : 0;
}

void qsf_interleave_convert(const qk_weight_ops *ops, bool pack, uint8_t *at, size_t row_bytes, size_t k,
                            uint8_t *scratch) {
    memcpy(scratch, at, GROUP * row_bytes);
    if (pack) ops->pack(at, scratch, row_bytes, k);
    for (unsigned r = 0; r < GROUP && !pack; r++) ops->unpack_row(at + r * row_bytes, scratch, r, k);
}

/* Interleaves the tile of tensor t at `at`, or undoes it. */
static void turn(const QsfWeightUnit *u, unsigned t, bool pack, uint8_t *at, uint8_t *scratch) {
    qsf_interleave_convert(u->ops[t], pack, at, (size_t)u->u.row_bytes[t], u->u.k, scratch);
}

void qsf_interleave_arrived(const QsfWeightUnit *u, const QsfPart *p, uint8_t *at, bool stays,
                            uint8_t *scratch) {
    const unsigned t = p->tensor;
    const bool from = u->u.x16[t], to = u->interleaved[t] && (stays || from);
    uint32_t rows = p->row1 - p->row0;
    if (from == to) return;
    if (to) rows = rows / GROUP * GROUP; /* what is behind stays rows; the last group of a file is whole */
    for (uint32_t row = 0; row < rows; row += GROUP) turn(u, t, to, at + row * u->u.row_bytes[t], scratch);
}

void qsf_interleave_cut(const QsfWeightUnit *u, uint32_t n, uint32_t old, uint8_t *scratch) {
    for (unsigned t = 0; t < u->u.n; t++) {
        uint32_t from, to, none;
        if (u->u.x16[t] == u->interleaved[t]) continue;
        qsf_unit_rows(&u->u, 0, n, t, &none, &from);
        qsf_unit_rows(&u->u, 0, old, t, &none, &to);
        if (u->interleaved[t]) to = qsf_interleaved_rows(u, t, to);
        const uint8_t *stays = u->pin[t] + qsf_tensor_pinned_bytes(&u->u, t, from);
        for (uint32_t row = from; row < to && qsf_pinned_at(u, t, row) < stays; row += GROUP)
            turn(u, t, u->u.x16[t], qsf_pinned_at(u, t, row), scratch);
    }
}
