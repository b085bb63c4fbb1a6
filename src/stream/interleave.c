/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interleaved rows: which tensors have them, and conversion in both directions. */
#include "src/stream/interleave.h"

#include <string.h>

#include "src/file/qsf/groups.h"

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

void qsf_interleave_by_use(const QsfUnit *u, unsigned t, const qk_weight_ops *ops, uint8_t *at, uint64_t n) {
    for (uint64_t g = 0; u->tensor[t]->by_block && g < n; g++)
        ops->by_use(at + g * GROUP * u->row_bytes[t], u->k);
}

/* The group of tensor t at `at` from the form of the file to `groups` or rows. */
static void arrive(const QsfWeightUnit *u, unsigned t, bool groups, uint8_t *at, uint8_t *scratch) {
    const size_t bytes = (size_t)u->u.row_bytes[t];
    qsf_interleave_by_use(&u->u, t, u->ops[t], at, 1);
    if (u->u.x16[t] != groups) qsf_interleave_convert(u->ops[t], groups, at, bytes, u->u.k, scratch);
}

/* The same backwards, for one that was pinned. */
static void leave(const QsfWeightUnit *u, unsigned t, uint8_t *at, uint8_t *scratch) {
    const bool from = u->interleaved[t], to = u->u.x16[t];
    if (from != to) qsf_interleave_convert(u->ops[t], to, at, (size_t)u->u.row_bytes[t], u->u.k, scratch);
    if (u->u.tensor[t]->by_block) u->ops[t]->by_block(at, u->u.k);
}

static bool form_changes(const QsfWeightUnit *u, unsigned t, bool to) {
    return u->u.x16[t] != to || u->u.tensor[t]->by_block;
}

void qsf_interleave_arrived(const QsfWeightUnit *u, const QsfPart *p, uint8_t *at, bool stays,
                            uint8_t *scratch) {
    const unsigned t = p->tensor;
    const bool from = u->u.x16[t], to = u->interleaved[t] && (stays || from);
    uint32_t rows = p->row1 - p->row0;
    if (!form_changes(u, t, to)) return;
    if (!from)
        rows = rows / GROUP * GROUP; /* what comes after them stays rows; the last group of a file is whole */
    for (uint32_t row = 0; row < rows; row += GROUP) arrive(u, t, to, at + row * u->u.row_bytes[t], scratch);
}

void qsf_interleave_cut(const QsfWeightUnit *u, uint32_t n, uint32_t old, uint8_t *scratch) {
    for (unsigned t = 0; t < u->u.n; t++) {
        uint32_t from, to, none;
        if (!form_changes(u, t, u->interleaved[t])) continue;
        qsf_unit_rows(&u->u, 0, n, t, &none, &from);
        qsf_unit_rows(&u->u, 0, old, t, &none, &to);
        if (u->interleaved[t]) to = qsf_interleaved_rows(u, t, to);
        const uint8_t *stays = u->pin[t] + qsf_tensor_pinned_bytes(&u->u, t, from);
        for (uint32_t row = from; row < to && qsf_pinned_at(u, t, row) < stays; row += GROUP)
            leave(u, t, qsf_pinned_at(u, t, row), scratch);
    }
}
