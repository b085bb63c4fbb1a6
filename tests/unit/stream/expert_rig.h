/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pool of small experts without a model, for tests of what is kept and what is read. */
#ifndef QSF_TESTS_EXPERT_RIG_H
#define QSF_TESTS_EXPERT_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/stream/expert_pool.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { LAYERS = 8, EXPERTS = 32, USED = 4, ALL = LAYERS * EXPERTS, PAGES = 40, MANY = 80 };

typedef struct Rig {
    QsfLedger ledger;
    QsfSource *src;
    QsfStreamCounters counters;
    QsfTensor tensor;
    uint32_t layers;
    QsfWeightUnit units[2 * MANY * EXPERTS];
    QsfExpertPool *pool;
    char path[512];
} Rig;

/* Experts of two pages each, which lie anywhere in a file. */
static inline void make_units(Rig *r) {
    for (uint32_t i = 0; i < 2 * r->layers * EXPERTS; i++) {
        QsfUnit *u = &r->units[i].u;
        *u = (QsfUnit){ .index = i, .layer = i / (2 * EXPERTS), .n = 1, .on_demand = true, .k = 64 };
        u->tensor[0] = &r->tensor;
        u->offset[0] = (uint64_t)(i % PAGES) * QSF_WINDOW;
        u->rows[0] = u->items = 16;
        u->row_bytes[0] = QSF_WINDOW / 16;
        u->bytes = QSF_WINDOW;
        u->expert = i / 2 % EXPERTS;
        u->n_expert = EXPERTS;
        u->n_used = USED;
    }
}

static inline void open_rig_as(Rig *r, uint32_t layers, uint32_t slots, QsfGuessing ahead) {
    const QsfTinySpec spec = {
        .layers = 2, .hidden = 96, .ffn = 300, .heads = 4, .kv_heads = 2, .vocab = 301
    };
    QsfErr err = { 0 };
    memset(r, 0, sizeof *r);
    snprintf(r->path, sizeof r->path, "%s", qsf_test_tmp("policy.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(r->path, &spec), 0);
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&r->src, r->path, &r->ledger, &err), &err);
    r->layers = layers;
    make_units(r);
    const QsfLoaderOptions o = { .src = r->src,
                                 .stream = { .kind = QSF_IO_MMAP, .ahead = ahead },
                                 .ledger = &r->ledger,
                                 .counters = &r->counters };
    qsf_test_expect_ok(qsf_expert_pool_create(&r->pool, r->units, 2 * layers * EXPERTS, &r->ledger, &err),
                       &err);
    qsf_test_expect_ok(qsf_expert_pool_resize(r->pool, slots, &err), &err);
    qsf_test_expect_ok(qsf_expert_pool_start(r->pool, &o, &err), &err);
}

static inline void open_rig(Rig *r, uint32_t slots) { open_rig_as(r, LAYERS, slots, QSF_GUESSING_OFF); }

static inline void open_rig_of(Rig *r, uint32_t layers, uint32_t slots) {
    open_rig_as(r, layers, slots, QSF_GUESSING_OFF);
}

static inline void open_rig_ahead(Rig *r, uint32_t slots, QsfGuessing ahead) {
    open_rig_as(r, LAYERS, slots, ahead);
}

static inline void close_rig(Rig *r) {
    qsf_expert_pool_destroy(r->pool);
    qsf_source_close(r->src);
    assert_int_equal(r->ledger.total, 0);
    qsf_ledger_destroy(&r->ledger);
    unlink(r->path);
}

#endif
