/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups of pinned rows: which, and their way there and back. */
#include "src/stream/packed.h"

#include <string.h>

#define GROUP QSF_ROW_QUANTUM

uint32_t qsf_packed_types(const qk_table *table) {
    qk_table plain;
    uint32_t types = 0;
    qk_table_init(&plain, QK_LEVEL_REF);
    for (unsigned t = 0; t < QK_TYPE_N; t++) {
        if (table->weight[t].matmul16 != plain.weight[t].matmul16) types |= 1u << t;
    }
    return types;
}

/* Whether groups begin where items do. */
static bool aligned(const QsfUnit *u) {
    for (unsigned t = 0; t + 1 < u->n && !u->paired; t++) {
        if (u->rows[t] % GROUP != 0) return false;
    }
    return true;
}

void qsf_packed_choose(QsfWeightUnit *u, const qk_table *table, uint32_t types) {
    for (unsigned t = 0; t < u->u.n; t++) {
        const qk_weight_ops *ops = &table->weight[u->u.type[t]];
        bool may = ops->pack != NULL && (types >> u->u.type[t] & 1) != 0;
        u->pack[t] = may && aligned(&u->u) ? ops : NULL;
    }
}

uint64_t qsf_packed_group_bytes(const QsfUnit *u, const qk_table *table) {
    uint64_t most = 0;
    for (unsigned t = 0; t < u->n && aligned(u); t++) {
        uint64_t bytes = GROUP * u->row_bytes[t];
        if (table->weight[u->type[t]].pack != NULL && bytes > most) most = bytes;
    }
    return most;
}

uint32_t qsf_packed_rows(const QsfWeightUnit *u, unsigned t, uint32_t rows) {
    return u->pack[t] != NULL ? rows / GROUP * GROUP : 0;
}

static void pack_group(const QsfWeightUnit *u, unsigned t, uint32_t row, uint8_t *scratch) {
    uint8_t *at = qsf_pinned_at(u, t, row);
    size_t bytes = (size_t)u->u.row_bytes[t];
    memcpy(scratch, at, GROUP * bytes);
    u->pack[t]->pack(at, scratch, bytes, u->u.k);
}

static void unpack_group(const QsfWeightUnit *u, unsigned t, uint32_t row, uint8_t *scratch) {
    uint8_t *at = qsf_pinned_at(u, t, row);
    size_t bytes = (size_t)u->u.row_bytes[t];
    memcpy(scratch, at, GROUP * bytes);
    for (unsigned r = 0; r < GROUP; r++) u->pack[t]->unpack_row(at + r * bytes, scratch, r, u->u.k);
}

void qsf_packed_make(const QsfWeightUnit *u, uint32_t item0, uint32_t item1, uint8_t *scratch) {
    for (unsigned t = 0; t < u->u.n; t++) {
        uint32_t lo, hi;
        qsf_unit_rows(&u->u, item0, item1, t, &lo, &hi);
        hi = qsf_packed_rows(u, t, hi);
        for (uint32_t row = lo; row < hi; row += GROUP) pack_group(u, t, row, scratch);
    }
}

void qsf_packed_cut(const QsfWeightUnit *u, uint32_t n, uint32_t old, uint8_t *scratch) {
    for (unsigned t = 0; t < u->u.n; t++) {
        uint32_t from, to, none;
        qsf_unit_rows(&u->u, 0, n, t, &none, &from);
        qsf_unit_rows(&u->u, 0, old, t, &none, &to);
        to = qsf_packed_rows(u, t, to);
        const uint8_t *stays = u->pin[t] + qsf_tensor_pinned_bytes(&u->u, t, from);
        for (uint32_t row = from; row < to && qsf_pinned_at(u, t, row) < stays; row += GROUP)
            unpack_group(u, t, row, scratch);
    }
}
