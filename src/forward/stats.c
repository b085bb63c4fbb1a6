/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of a forward pass, and the names of the kernels that ran. */
#include <stdio.h>
#include <string.h>

#include "src/forward/state.h"

static uint64_t get(const atomic_uint_fast64_t *a) { return atomic_load_explicit(a, memory_order_relaxed); }
static void zero(atomic_uint_fast64_t *a) { atomic_store_explicit(a, 0, memory_order_relaxed); }
static uint32_t get32(const atomic_uint_fast32_t *a) {
    return (uint32_t)atomic_load_explicit(a, memory_order_relaxed);
}

void qsf_forward_stats(const QsfForward *f, QsfForwardStats *out) {
    const QsfCounters *n = &f->n;
    *out = (QsfForwardStats){
        .bytes_read = get(&n->io.bytes_read),
        .read_ns = get(&n->io.read_ns),
        .wait_ns = get(&n->io.wait_ns),
        .compute_ns = get(&n->compute_ns),
        .passes = get(&n->passes),
        .prefill_tokens = get(&n->prefill_tokens),
        .decode_tokens = get(&n->decode_tokens),
        .prefill_ns = get(&n->prefill_ns),
        .decode_ns = get(&n->decode_ns),
        .layer = get32(&n->layer),
        .chunk_done = get32(&n->chunk_done),
        .chunk_total = get32(&n->chunk_total),
    };
}

void qsf_forward_stats_reset(QsfForward *f) {
    QsfCounters *n = &f->n;
    atomic_uint_fast64_t *all[] = { &n->io.bytes_read, &n->io.read_ns, &n->io.wait_ns,
                                    &n->compute_ns,    &n->passes,     &n->prefill_tokens,
                                    &n->decode_tokens, &n->prefill_ns, &n->decode_ns };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) zero(all[i]);
}

static void append(char *dst, size_t cap, const char *name) {
    size_t len = strlen(dst);
    snprintf(dst + len, cap - len, "%s%s", len > 0 ? "," : "", name);
}

void qsf_forward_kernels(const QsfForward *f, char *dst, size_t cap) {
    if (cap == 0) return;
    dst[0] = '\0';
    uint32_t used = get32(&f->n.types_used);
    if (used == 0) return;
    for (unsigned t = 0; t < QK_TYPE_N; t++) {
        if (used >> t & 1) append(dst, cap, f->table->weight[t].name);
    }
    if (f->exact) append(dst, cap, "exact");
    append(dst, cap, f->kv.ops->name);
}
