/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/stream/demand.h"

#include <stdlib.h>

#include "src/base/clock.h"
#include "src/stream/checksums.h"

#define NAME "expert slots"

/* A chunk that is being read, or has arrived. */
typedef struct Buffer {
    uint8_t *data;
    QsfChunk chunk;
    unsigned n_reads;
    QsfIoRead read[QSF_UNIT_TENSORS];
} Buffer;

struct QsfDemand {
    QsfLoaderOptions o;
    QsfIo *io;
    void *memory;
    uint64_t memory_bytes, busy_since;
    Buffer buffer[QSF_MAX_SLOTS]; /* ring: n of n_buffers in use, the oldest is first */
    uint32_t n_buffers, first, n;
    uint32_t unit[2 * QSF_MAX_EXPERTS]; /* the list */
    uint32_t n_units, load, item;       /* its length; the next chunk to read */
};

void qsf_demand_request(QsfDemand *d, uint32_t unit) {
    if (d->n_units < 2 * QSF_MAX_EXPERTS) d->unit[d->n_units++] = unit;
}

/* bytes: 0 when reads are started, because what is cached is copied then. */
static void count(const QsfDemand *d, const QsfUnit *u, uint64_t bytes, uint64_t waited_since) {
    QsfStreamCounters *n = d->o.counters;
    const uint64_t ns = qsf_now_ns() - waited_since;
    atomic_fetch_add_explicit(&n->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->wait_ns, ns, memory_order_relaxed);
    if (n->layer == NULL) return;
    atomic_fetch_add_explicit(&n->layer[u->layer].read_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->layer[u->layer].wait_ns, ns, memory_order_relaxed);
}

static void start(QsfDemand *d, Buffer *b) {
    const QsfWeightUnit *w = &d->o.units[d->unit[d->load]];
    const uint64_t t0 = qsf_now_ns();
    const uint32_t left = w->u.items - d->item, n = w->chunk_items < left ? w->chunk_items : left;
    qsf_chunk_make(&w->u, d->item, d->item + n, &b->chunk);
    b->n_reads = 0;
    for (unsigned i = 0; i < b->chunk.n_parts; i++) {
        const QsfPart *p = &b->chunk.part[i];
        QsfIoRead *r = &b->read[b->n_reads++];
        *r = (QsfIoRead){ .file = w->u.tensor[p->tensor]->file,
                          .off = p->file_off,
                          .len = p->window_bytes,
                          .dst = b->data + p->window };
        qsf_io_start(d->io, r);
    }
    count(d, &w->u, 0, t0);
    d->item += n;
    if (d->item < w->u.items) return;
    d->item = 0;
    d->load++;
}

void qsf_demand_read_ahead(QsfDemand *d) {
    while (d->n < d->n_buffers && d->load < d->n_units) {
        if (d->n == 0) d->busy_since = qsf_now_ns();
        start(d, &d->buffer[(d->first + d->n++) % d->n_buffers]);
    }
}

static int wait_reads(QsfDemand *d, Buffer *b, uint64_t *got, QsfErr *err) {
    QsfErr later = { 0 };
    int rc = QSF_OK;
    for (unsigned i = 0; i < b->n_reads; i++) { /* all, even after a failure: their memory is in use */
        int one = qsf_io_wait(d->io, &b->read[i], rc == QSF_OK ? err : &later);
        if (rc == QSF_OK) rc = one;
        *got += b->read[i].got;
    }
    b->n_reads = 0;
    qsf_err_clear(&later);
    return rc;
}

static int verify(QsfDemand *d, QsfWeightUnit *w, const Buffer *b, QsfErr *err) {
    int rc = QSF_OK;
    if (d->o.sums == NULL || b->chunk.item0 != w->checked_items) return QSF_OK;
    for (unsigned i = 0; rc == QSF_OK && i < b->chunk.n_parts; i++) {
        const QsfPart *p = &b->chunk.part[i];
        rc = qsf_checksums_add(d->o.sums, w, p->tensor, p->row0, p->row1, b->data + p->at, err);
    }
    if (rc == QSF_OK) w->checked_items = b->chunk.item1;
    return rc;
}

int qsf_demand_acquire(QsfDemand *d, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err) {
    Buffer *b = &d->buffer[d->first];
    QsfWeightUnit *w = &d->o.units[unit];
    uint64_t got = 0;
    qsf_demand_read_ahead(d);
    const uint64_t t0 = qsf_now_ns();
    if (d->n == 0 || b->chunk.unit != unit || b->chunk.item0 != item)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: expert unit %u was not requested", unit);
    int rc = wait_reads(d, b, &got, err);
    count(d, &w->u, got, t0);
    if (rc == QSF_OK) rc = verify(d, w, b, err);
    *c = b->chunk;
    *data = b->data;
    return rc;
}

void qsf_demand_release(QsfDemand *d) {
    d->first = (d->first + 1) % d->n_buffers;
    if (--d->n == 0 && d->load == d->n_units) d->n_units = d->load = d->item = 0;
    qsf_demand_read_ahead(d);
    const uint64_t now = qsf_now_ns();
    atomic_fetch_add_explicit(&d->o.counters->read_ns, now - d->busy_since, memory_order_relaxed);
    d->busy_since = now;
}

void qsf_demand_reset(QsfDemand *d) {
    QsfErr ignored = { 0 };
    uint64_t got = 0;
    for (uint32_t i = 0; i < d->n; i++)
        (void)wait_reads(d, &d->buffer[(d->first + i) % d->n_buffers], &got, &ignored);
    qsf_err_clear(&ignored);
    d->first = d->n = d->n_units = d->load = d->item = 0;
}

int qsf_demand_create(QsfDemand **out, const QsfLoaderOptions *o, uint32_t n_buffers, QsfErr *err) {
    *out = NULL;
    QsfDemand *d = calloc(1, sizeof *d);
    if (d == NULL) return qsf_err_memory(err, NAME);
    d->o = *o;
    d->n_buffers = n_buffers < QSF_MAX_SLOTS ? n_buffers : QSF_MAX_SLOTS;
    d->memory_bytes = d->n_buffers * o->slot_bytes;
    int rc = qsf_mem_map(o->ledger, QSF_MEM_SLOTS, d->memory_bytes, NAME, &d->memory, err);
    for (uint32_t i = 0; rc == QSF_OK && i < d->n_buffers; i++)
        d->buffer[i].data = (uint8_t *)d->memory + i * o->slot_bytes;
    const QsfIoOptions io = { .src = o->src,
                              .config = o->stream,
                              .buffers = d->memory,
                              .buffer_bytes = d->memory_bytes,
                              .ledger = o->ledger };
    if (rc == QSF_OK) rc = qsf_io_create(&d->io, &io, err);
    if (rc != QSF_OK) {
        qsf_demand_destroy(d);
        return rc;
    }
    *out = d;
    return QSF_OK;
}

void qsf_demand_destroy(QsfDemand *d) {
    if (d == NULL) return;
    qsf_io_destroy(d->io); /* waits for reads in flight */
    if (d->memory != NULL) qsf_mem_unmap_named(d->o.ledger, QSF_MEM_SLOTS, d->memory, d->memory_bytes, NAME);
    free(d);
}
