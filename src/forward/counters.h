/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of a forward pass, from which QsfForwardStats are made. Any thread reads them; the thread that
 * evaluates and the loader write them. */
#ifndef QSF_FORWARD_COUNTERS_H
#define QSF_FORWARD_COUNTERS_H

#include "src/forward/forward.h"
#include "src/stream/weights.h"

/* Counters of one layer, or of the head. Written by replans, read by any thread. */
typedef struct QsfLayerBytes {
    atomic_uint_fast64_t weight, pinned;
    atomic_uint_fast64_t experts, experts_pinned; /* in all, and those of a plan without slots for them */
} QsfLayerBytes;

typedef struct QsfCounters {
    QsfStreamCounters io; /* io.layer: META */
    QsfLayerBytes *bytes; /* (n_layers + 1); io.layer points to them */
    uint64_t layer_bytes; /* of the mapping that holds both */
    atomic_uint_fast64_t embed_hits, embed_misses;
    atomic_uint_fast64_t matmul_ns[QSF_MATMUL_N], attention_ns, prep_ns, sync_ns; /* as in QsfForwardStats */
    atomic_uint_fast64_t compute_ns, passes, prefill_tokens, decode_tokens, exited_tokens, prefill_ns,
        decode_ns;
    atomic_uint_fast32_t layer, chunk_done, chunk_total;
    atomic_uint_fast64_t work;                            /* as in QsfForwardStats */
    atomic_uint_fast64_t evictions, evicted, reliefs;     /* positions; as in QsfForwardStats */
    atomic_uint_fast32_t missing, n_protected, converted; /* as in QsfForwardStats */
    atomic_uint_fast64_t head_sketched, head_rows;        /* as in QsfForwardStats */
    atomic_uint_fast64_t streamed, lent;                  /* as in QsfForwardStats */
    atomic_uint_fast64_t types_used;                      /* bit t = weight type t was multiplied */
} QsfCounters;

static inline void qsf_count(atomic_uint_fast64_t *a, uint64_t v) {
    atomic_fetch_add_explicit(a, v, memory_order_relaxed);
}
static inline uint64_t qsf_counted(const atomic_uint_fast64_t *a) {
    return atomic_load_explicit(a, memory_order_relaxed);
}

/* forward_stats.c: the counters of layers; qsf_counters_pins: after a change of what is pinned. */
int qsf_counters_open(QsfForward *f, QsfErr *err);
void qsf_counters_close(QsfForward *f);
void qsf_counters_pins(QsfForward *f);

#endif
