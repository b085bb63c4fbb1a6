/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of a forward pass, and the names of the kernels that ran. */
#include <stdio.h>
#include <string.h>

#include "src/forward/forward_impl.h"

static void zero(atomic_uint_fast64_t *a) { atomic_store_explicit(a, 0, memory_order_relaxed); }
static uint32_t get32(const atomic_uint_fast32_t *a) {
    return (uint32_t)atomic_load_explicit(a, memory_order_relaxed);
}

/* --- layers --- */

int qsf_counters_open(QsfForward *f, QsfErr *err) {
    size_t n = f->model->hp.n_layers + 1u;
    uint64_t bytes = qsf_pages(n * (sizeof *f->n.io.layer + sizeof *f->n.bytes));
    void *mem;
    int rc = qsf_mem_map(f->ledger, QSF_MEM_META, bytes, "layer counters", &mem, err);
    if (rc != QSF_OK) return rc;
    f->n.layer_bytes = bytes;
    f->n.io.layer = mem;
    f->n.bytes = (QsfLayerBytes *)(void *)(f->n.io.layer + n);
    return QSF_OK;
}

void qsf_counters_close(QsfForward *f) {
    qsf_mem_unmap(f->ledger, QSF_MEM_META, f->n.io.layer, f->n.layer_bytes);
}

/* What a token uses of `pinned` bytes, if it uses `active` of all. */
static uint64_t share(uint64_t active, uint64_t pinned, uint64_t all) {
    return active >= all ? pinned : (uint64_t)((double)active * ((double)pinned / (double)all));
}

/* Counts the bytes of the weights that an answer uses, pinned and streamed, per layer. */
void qsf_counters_pins(QsfForward *f) {
    const QsfQuality *q = &f->reduction.quality;
    const uint32_t n_units = qsf_weights_n_units(f->weights);
    uint64_t streamed = 0;
    for (uint32_t i = 0; i < n_units;) {
        uint32_t layer = qsf_weights_unit(f->weights, i)->layer;
        uint64_t weight = 0, pinned = 0, experts = 0, in = 0;
        for (; i < n_units && qsf_weights_unit(f->weights, i)->layer == layer; i++) {
            const QsfUnit *u = qsf_weights_unit(f->weights, i);
            const uint64_t active = qsf_quality_unit_bytes(q, u);
            weight += active;
            experts += u->on_demand;
            in += u->on_demand && qsf_weights_pinned(f->weights, i);
            if (active > 0 && u->on_demand)
                pinned += qsf_weights_pinned(f->weights, i) ? active
                                                            : (uint64_t)((double)active * f->expert_hits);
            else if (active > 0)
                pinned += share(active, qsf_unit_item_bytes(u, 0, qsf_weights_items(f->weights, i)),
                                u->bytes);
        }
        streamed += weight - pinned;
        atomic_store_explicit(&f->n.bytes[layer].weight, weight, memory_order_relaxed);
        atomic_store_explicit(&f->n.bytes[layer].pinned, pinned, memory_order_relaxed);
        atomic_store_explicit(&f->n.bytes[layer].experts, experts / 2, memory_order_relaxed);
        atomic_store_explicit(&f->n.bytes[layer].experts_pinned, in / 2, memory_order_relaxed);
    }
    atomic_store_explicit(&f->n.streamed, streamed, memory_order_relaxed);
}

static uint32_t experts_in(const QsfForward *f, uint32_t layer) {
    return (uint32_t)(qsf_counted(&f->n.bytes[layer].experts_pinned) +
                      qsf_counted(&f->n.io.layer[layer].experts_in));
}

uint32_t qsf_forward_layers(const QsfForward *f, QsfLayerStats *out, uint32_t max) {
    uint32_t n = f->model->hp.n_layers + 1;
    for (uint32_t i = 0; i < n && i < max; i++) {
        const QsfLayerCounters *c = &f->n.io.layer[i];
        out[i] = (QsfLayerStats){ .weight_bytes = qsf_counted(&f->n.bytes[i].weight),
                                  .pinned_bytes = qsf_counted(&f->n.bytes[i].pinned),
                                  .read_bytes = qsf_counted(&c->read_bytes),
                                  .wait_ns = qsf_counted(&c->wait_ns),
                                  .compute_ns = qsf_counted(&c->compute_ns),
                                  .experts = (uint32_t)qsf_counted(&f->n.bytes[i].experts),
                                  .experts_in = experts_in(f, i),
                                  .expert_uses = qsf_counted(&c->expert_uses),
                                  .expert_misses = qsf_counted(&c->expert_misses) };
    }
    return n;
}

/* --- all together --- */

void qsf_forward_stats(const QsfForward *f, QsfForwardStats *out) {
    const QsfCounters *n = &f->n;
    *out = (QsfForwardStats){
        .bytes_read = qsf_counted(&n->io.bytes_read),
        .read_ns = qsf_counted(&n->io.read_ns),
        .wait_ns = qsf_counted(&n->io.wait_ns),
        .compute_ns = qsf_counted(&n->compute_ns),
        .attention_ns = qsf_counted(&n->attention_ns),
        .prep_ns = qsf_counted(&n->prep_ns),
        .sync_ns = qsf_counted(&n->sync_ns),
        .passes = qsf_counted(&n->passes),
        .prefill_tokens = qsf_counted(&n->prefill_tokens),
        .decode_tokens = qsf_counted(&n->decode_tokens),
        .expert_uses = qsf_counted(&n->io.expert_uses),
        .expert_misses = qsf_counted(&n->io.expert_misses),
        .expert_reads = qsf_counted(&n->io.expert_reads),
        .expert_slots = (uint32_t)qsf_counted(&n->io.expert_slots),
        .ahead_read = qsf_counted(&n->io.ahead_read),
        .ahead_used = qsf_counted(&n->io.ahead_used),
        .ahead_wasted = qsf_counted(&n->io.ahead_wasted),
        .exited_tokens = qsf_counted(&n->exited_tokens),
        .head_sketched = qsf_counted(&n->head_sketched),
        .head_rows = qsf_counted(&n->head_rows),
        .prefill_ns = qsf_counted(&n->prefill_ns),
        .decode_ns = qsf_counted(&n->decode_ns),
        .layer = get32(&n->layer),
        .chunk_done = get32(&n->chunk_done),
        .chunk_total = get32(&n->chunk_total),
        .work = (double)qsf_counted(&n->work) / f->model->prog.n_steps,
        .pin_done = qsf_counted(&n->io.pin_done),
        .pin_total = qsf_counted(&n->io.pin_total),
        .pin_read = qsf_counted(&n->io.pin_read),
        .streamed_bytes = qsf_counted(&n->streamed),
        .lent_bytes = qsf_counted(&n->lent),
        .embed_hits = qsf_counted(&n->embed_hits),
        .embed_misses = qsf_counted(&n->embed_misses),
        .evictions = qsf_counted(&n->evictions),
        .evicted = qsf_counted(&n->evicted),
        .reliefs = qsf_counted(&n->reliefs),
        .missing = (uint32_t)atomic_load_explicit(&n->missing, memory_order_relaxed),
        .converted = atomic_load_explicit(&n->converted, memory_order_relaxed) != 0,
        .threads = atomic_load_explicit(&f->threads.now[0], memory_order_relaxed),
        .prefill_threads = atomic_load_explicit(&f->threads.now[1], memory_order_relaxed),
        .n_protected = (uint32_t)atomic_load_explicit(&n->n_protected, memory_order_relaxed),
    };
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) out->matmul_ns[g] = qsf_counted(&n->matmul_ns[g]);
    for (uint32_t i = 0; i < f->model->hp.n_layers; i++) out->experts_in += experts_in(f, i);
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++)
        out->expert_depth[i] = (uint32_t)qsf_counted(&n->io.expert_depth[i]);
}

void qsf_forward_stats_reset(QsfForward *f) {
    QsfCounters *n = &f->n;
    atomic_uint_fast64_t *all[] = {
        &n->io.bytes_read,    &n->io.read_ns,      &n->io.wait_ns,    &n->io.pin_read,   &n->compute_ns,
        &n->attention_ns,     &n->prep_ns,         &n->sync_ns,       &n->passes,        &n->prefill_tokens,
        &n->decode_tokens,    &n->prefill_ns,      &n->decode_ns,     &n->embed_hits,    &n->embed_misses,
        &n->exited_tokens,    &n->head_sketched,   &n->head_rows,     &n->work,          &n->io.expert_uses,
        &n->io.expert_misses, &n->io.expert_reads, &n->io.ahead_read, &n->io.ahead_used, &n->io.ahead_wasted
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) zero(all[i]);
    f->work_before = f->pass_cols = 0;
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) zero(&n->matmul_ns[g]);
    for (uint32_t l = 0; l <= f->model->hp.n_layers; l++) {
        zero(&n->io.layer[l].read_bytes);
        zero(&n->io.layer[l].wait_ns);
        zero(&n->io.layer[l].compute_ns);
        zero(&n->io.layer[l].expert_uses);
        zero(&n->io.layer[l].expert_misses);
    }
}

static void append(char *dst, size_t cap, const char *name) {
    size_t len = strlen(dst);
    snprintf(dst + len, cap - len, "%s%s", len > 0 ? "," : "", name);
}

void qsf_forward_kernels(const QsfForward *f, char *dst, size_t cap) {
    if (cap == 0) return;
    dst[0] = '\0';
    uint64_t used = qsf_counted(&f->n.types_used);
    if (used == 0) return;
    for (unsigned t = 0; t < QK_TYPE_N; t++) {
        if (used >> t & 1) append(dst, cap, f->table->weight[t].name);
    }
    if (f->exact) append(dst, cap, "exact");
    char kv[QSF_KV_TYPES_TEXT];
    qsf_kv_types_print(f->kv.types, kv, sizeof kv);
    append(dst, cap, kv);
}
