/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tensors of each unit, and the windows of a range of its items in the file and in memory. */
#include "src/plan/units.h"

#include <string.h>

#include "src/base/ledger.h"
#include "src/file/qsf/groups.h"

static uint64_t window_down(uint64_t v) { return v & ~(uint64_t)(QSF_WINDOW - 1); }
static uint64_t window_up(uint64_t v) { return window_down(v + QSF_WINDOW - 1); }

static uint32_t round_quantum(uint32_t v) {
    return (v + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
}

uint32_t qsf_unit_count(const QsfModel *m) { return m->prog.n_units; }

static uint64_t stored_rows(uint64_t rows, bool x16) { return x16 ? qsf_group_rows(rows) : rows; }

static void add_tensor(QsfUnit *u, const QsfUnitSpec *spec) {
    const unsigned i = u->n++;
    const QsfTensor *t = spec->tensor[i];
    const uint64_t all = t->ne[1] * t->ne[2] * t->ne[3], rows = spec->rows[i] > 0 ? spec->rows[i] : all;
    u->tensor[i] = t;
    u->type[i] = qk_type_of(t->dtype);
    u->rows[i] = (uint32_t)rows;
    u->x16[i] = t->x16;
    u->row_bytes[i] = t->bytes / stored_rows(all, t->x16);
    u->offset[i] = t->offset + spec->row0[i] * u->row_bytes[i];
    u->k = (uint32_t)t->ne[0];
    u->bytes += stored_rows(rows, t->x16) * u->row_bytes[i];
}

void qsf_unit_at(const QsfModel *m, uint32_t index, QsfUnit *u) {
    const QsfProgram *p = &m->prog;
    const QsfUnitSpec *spec = &p->unit[index];
    memset(u, 0, sizeof *u);
    u->index = index;
    u->layer = spec->block;
    u->layer_first = p->block_unit[spec->block];
    u->layer_units = p->block_unit[spec->block + 1] - u->layer_first;
    u->matmul_class = spec->matmul_class;
    u->heads = spec->heads;
    for (unsigned i = 0; i < spec->n; i++) add_tensor(u, spec);
    if (u->tensor[0] != NULL) u->compressed = u->tensor[0]->compressed; /* units of tests may have none */
    u->paired = spec->paired;
    u->on_demand = spec->on_demand;
    u->expert = spec->expert;
    u->n_expert = spec->n_expert;
    u->n_used = spec->n_used;
    for (unsigned i = 0; i < u->n; i++) {
        if (u->paired)
            u->items = u->rows[i];
        else
            u->items = round_quantum(u->items) + u->rows[i];
    }
    if (!spec->borrowed) return;
    u->items = 0;
    u->bytes = 0;
    u->compressed = NULL;
}

uint64_t qsf_unit_active_bytes(const QsfUnit *u) {
    return u->on_demand ? u->bytes * u->n_used / u->n_expert : u->bytes;
}

void qsf_unit_rows(const QsfUnit *u, uint32_t item0, uint32_t item1, unsigned t, uint32_t *row0,
                   uint32_t *row1) {
    uint32_t base = 0; /* first item of tensor t */
    for (unsigned i = 0; i < t && !u->paired; i++) base += round_quantum(u->rows[i]);
    uint32_t lo = item0 > base ? item0 - base : 0, hi = item1 > base ? item1 - base : 0;
    if (hi > u->rows[t]) hi = u->rows[t];
    if (lo > hi) lo = hi;
    *row0 = lo;
    *row1 = hi;
}

uint64_t qsf_unit_row_end(const QsfUnit *u, unsigned t, uint32_t row) {
    return stored_rows(row, u->x16[t]) * u->row_bytes[t];
}

static void add_part(const QsfUnit *u, QsfChunk *c, unsigned tensor, uint32_t row0, uint32_t row1) {
    uint64_t from = u->offset[tensor] + row0 * u->row_bytes[tensor];
    uint64_t to = u->offset[tensor] + qsf_unit_row_end(u, tensor, row1);
    QsfPart *p = &c->part[c->n_parts++];
    if (u->compressed != NULL) {
        *p = (QsfPart){ .tensor = tensor, .row0 = row0, .row1 = row1, .at = from };
        return;
    }
    *p = (QsfPart){
        .tensor = tensor, .row0 = row0, .row1 = row1, .file_off = window_down(from), .window = c->bytes
    };
    p->window_bytes = window_up(to) - p->file_off;
    p->at = p->window + (from - p->file_off);
    c->bytes += p->window_bytes;
}

void qsf_chunk_make(const QsfUnit *u, uint32_t item0, uint32_t item1, QsfChunk *c) {
    memset(c, 0, sizeof *c);
    c->unit = u->index;
    c->item0 = item0;
    c->item1 = item1;
    for (unsigned i = 0; i < u->n; i++) {
        uint32_t lo, hi;
        qsf_unit_rows(u, item0, item1, i, &lo, &hi);
        if (lo < hi) add_part(u, c, i, lo, hi);
    }
}

uint64_t qsf_unit_item_bytes(const QsfUnit *u, uint32_t item0, uint32_t item1) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < u->n; i++) {
        uint32_t lo, hi;
        qsf_unit_rows(u, item0, item1, i, &lo, &hi);
        if (lo < hi) sum += qsf_unit_row_end(u, i, hi) - lo * u->row_bytes[i];
    }
    return sum;
}

/* Whole pages of the kernel, which may be more than windows: pinned parts share none. */
uint64_t qsf_tensor_pinned_bytes(const QsfUnit *u, unsigned t, uint32_t rows) {
    uint64_t off = u->offset[t];
    return rows == 0 ? 0 : qsf_pages(off - window_down(off) + qsf_unit_row_end(u, t, rows));
}

bool qsf_unit_opens_compressed(const QsfUnit *u) {
    return u->compressed != NULL && u->index == u->layer_first;
}

bool qsf_unit_closes_compressed(const QsfUnit *u) {
    return u->compressed != NULL && u->index + 1 == u->layer_first + u->layer_units;
}

uint64_t qsf_compressed_whole(const QsfCompressed *c) { return qsf_pages(c->whole_bytes); }

uint64_t qsf_compressed_windows(const QsfCompressed *c) {
    return window_up(c->off + c->bytes) - window_down(c->off);
}

uint64_t qsf_unit_pinned_bytes(const QsfUnit *u, uint32_t n_items) {
    uint64_t sum = 0;
    if (u->compressed != NULL)
        return n_items > 0 && qsf_unit_opens_compressed(u) ? qsf_compressed_whole(u->compressed) : 0;
    for (unsigned i = 0; i < u->n; i++) {
        uint32_t lo, hi;
        qsf_unit_rows(u, 0, n_items, i, &lo, &hi);
        sum += qsf_tensor_pinned_bytes(u, i, hi);
    }
    return sum;
}

/* Bytes of the largest item. */
static uint64_t item_bytes(const QsfUnit *u) {
    uint64_t sum = 0, max = 0;
    for (unsigned i = 0; i < u->n; i++) {
        sum += u->row_bytes[i];
        if (u->row_bytes[i] > max) max = u->row_bytes[i];
    }
    return u->paired ? sum : max;
}

/* Maximum bytes that windows add to the rows of a chunk: part of a page at both ends of each part. */
static uint64_t window_pad(const QsfUnit *u) { return 2ull * QSF_WINDOW * u->n; }

uint64_t qsf_unit_min_slot(const QsfUnit *u) {
    if (u->compressed != NULL) return qsf_compressed_whole(u->compressed);
    return QSF_ROW_QUANTUM * item_bytes(u) + window_pad(u);
}

uint32_t qsf_unit_chunk_items(const QsfUnit *u, uint32_t n_items, uint64_t slot_bytes) {
    if (slot_bytes < qsf_unit_min_slot(u)) return 0;
    if (u->compressed != NULL) return round_quantum(u->items);
    uint64_t fit = (slot_bytes - window_pad(u)) / item_bytes(u) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    if (n_items == 0 || fit >= n_items) return n_items > 0 ? round_quantum(n_items) : QSF_ROW_QUANTUM;
    uint64_t n_chunks = (n_items + fit - 1) / fit;
    return round_quantum((uint32_t)((n_items + n_chunks - 1) / n_chunks));
}

uint64_t qsf_interleaved_types(const qk_table *table) {
    qk_table plain;
    uint64_t types = 0;
    qk_table_init(&plain, QK_LEVEL_REF);
    for (unsigned t = 0; t < QK_TYPE_N; t++) {
        if (table->weight[t].matmul16 != plain.weight[t].matmul16) types |= 1ull << t;
    }
    return types;
}

uint64_t qsf_unit_group_bytes(const QsfUnit *u, const qk_table *table) {
    uint64_t most = 0;
    for (unsigned t = 0; t < u->n; t++) {
        uint64_t bytes = QSF_ROW_QUANTUM * u->row_bytes[t];
        if (table->weight[u->type[t]].pack != NULL && bytes > most) most = bytes;
    }
    return most;
}
