/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows, a list of them in the order of use, and an open-addressing index. */
#include "src/forward/ops/rowcache.h"

#include <string.h>

#include "src/plan/layout.h"

_Static_assert(sizeof(QsfRowEntry) <= QSF_ROWCACHE_ENTRY, "priced by qsf_rowcache_bytes");

int qsf_rowcache_init(QsfRowCache *c, uint32_t rows, uint64_t row_bytes, QsfLedger *ledger, QsfErr *err) {
    uint64_t places = 1, bytes = qsf_rowcache_bytes(rows, row_bytes);
    void *mem;
    memset(c, 0, sizeof *c);
    int rc = qsf_mem_map(ledger, QSF_MEM_EMBED, bytes, "embedding row cache", &mem, err);
    if (rc != QSF_OK || rows == 0) return rc;
    while (places < 2ull * rows) places *= 2;
    uint64_t stride = (row_bytes + 63) & ~63ull;
    *c = (QsfRowCache){ .mem = mem,
                        .bytes = bytes,
                        .rows = rows,
                        .row_bytes = row_bytes,
                        .stride = stride,
                        .data = mem,
                        .mask = (uint32_t)(places - 1),
                        .ledger = ledger };
    c->entry = (QsfRowEntry *)(void *)(c->data + rows * stride);
    c->index = (uint32_t *)(void *)(c->entry + rows);
    return QSF_OK;
}

void qsf_rowcache_free(QsfRowCache *c) {
    if (c->mem != NULL) qsf_mem_unmap(c->ledger, QSF_MEM_EMBED, c->mem, c->bytes);
    memset(c, 0, sizeof *c);
}

/* --- order of use --- */

static void unlink_entry(QsfRowCache *c, uint32_t e) {
    QsfRowEntry *x = &c->entry[e - 1];
    if (x->newer != 0)
        c->entry[x->newer - 1].older = x->older;
    else
        c->newest = x->older;
    if (x->older != 0)
        c->entry[x->older - 1].newer = x->newer;
    else
        c->oldest = x->newer;
}

static void link_newest(QsfRowCache *c, uint32_t e) {
    QsfRowEntry *x = &c->entry[e - 1];
    x->newer = 0;
    x->older = c->newest;
    if (c->newest != 0)
        c->entry[c->newest - 1].newer = e;
    else
        c->oldest = e;
    c->newest = e;
}

/* --- index --- */

/* Returns the home slot of an id: multiplying by 2^32 / golden ratio spreads neighbours
 * (Knuth, TAOCP 6.4). */
static uint32_t home(const QsfRowCache *c, uint32_t id) {
    uint32_t h = id * 2654435769u;
    return (h ^ h >> 16) & c->mask;
}

/* Returns the id's slot, or the free one where it would go: half of the slots are always free. */
static uint32_t place_of(const QsfRowCache *c, uint32_t id) {
    uint32_t at = home(c, id);
    while (c->index[at] != 0 && c->entry[c->index[at] - 1].id != id) at = (at + 1) & c->mask;
    return at;
}

/* Frees a slot and moves entries that a search would no longer find after the gap into it. */
static void free_place(QsfRowCache *c, uint32_t gap) {
    for (uint32_t at = (gap + 1) & c->mask; c->index[at] != 0; at = (at + 1) & c->mask) {
        uint32_t from = home(c, c->entry[c->index[at] - 1].id);
        if (((at - from) & c->mask) < ((at - gap) & c->mask)) continue;
        c->index[gap] = c->index[at];
        gap = at;
    }
    c->index[gap] = 0;
}

bool qsf_rowcache_has(const QsfRowCache *c, uint32_t id) {
    return c->rows > 0 && c->index[place_of(c, id)] != 0;
}

const uint8_t *qsf_rowcache_find(QsfRowCache *c, uint32_t id) {
    if (c->rows == 0) return NULL;
    uint32_t e = c->index[place_of(c, id)];
    if (e == 0) return NULL;
    if (e != c->newest) {
        unlink_entry(c, e);
        link_newest(c, e);
    }
    return c->data + (e - 1) * c->stride;
}

void qsf_rowcache_put(QsfRowCache *c, uint32_t id, const void *row) {
    if (c->rows == 0) return;
    uint32_t e = c->used < c->rows ? ++c->used : c->oldest;
    if (c->oldest == e) {
        free_place(c, place_of(c, c->entry[e - 1].id));
        unlink_entry(c, e);
    }
    c->entry[e - 1].id = id;
    link_newest(c, e);
    c->index[place_of(c, id)] = e;
    memcpy(c->data + (e - 1) * c->stride, row, c->row_bytes);
}
