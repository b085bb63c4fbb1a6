/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which experts stay in memory: those that are used most, also when fewer fit than one token uses, and when
 * others come once; after a change of subject the new ones. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/stream/expert_pool.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { LAYERS = 8, EXPERTS = 32, USED = 4, ALL = LAYERS * EXPERTS, PAGES = 40 };

typedef struct Rig {
    QsfLedger ledger;
    QsfSource *src;
    QsfStreamCounters counters;
    QsfTensor tensor;
    QsfWeightUnit units[2 * ALL];
    QsfExpertPool *pool;
    char path[512];
} Rig;

/* Experts of two pages each, which lie anywhere in a file. */
static void make_units(Rig *r) {
    for (uint32_t i = 0; i < 2 * ALL; i++) {
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

static void open_rig(Rig *r, uint32_t slots) {
    const QsfTinySpec spec = {
        .layers = 2, .hidden = 96, .ffn = 300, .heads = 4, .kv_heads = 2, .vocab = 301
    };
    QsfErr err = { 0 };
    memset(r, 0, sizeof *r);
    snprintf(r->path, sizeof r->path, "%s", qsf_test_tmp("policy.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(r->path, &spec), 0);
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&r->src, r->path, &r->ledger, &err), &err);
    make_units(r);
    const QsfLoaderOptions o = {
        .src = r->src, .stream = { .kind = QSF_IO_MMAP }, .ledger = &r->ledger, .counters = &r->counters
    };
    qsf_test_expect_ok(qsf_expert_pool_create(&r->pool, r->units, 2 * ALL, &r->ledger, &err), &err);
    qsf_test_expect_ok(qsf_expert_pool_resize(r->pool, slots, &err), &err);
    qsf_test_expect_ok(qsf_expert_pool_start(r->pool, &o, &err), &err);
}

static void close_rig(Rig *r) {
    qsf_expert_pool_destroy(r->pool);
    qsf_source_close(r->src);
    assert_int_equal(r->ledger.total, 0);
    qsf_ledger_destroy(&r->ledger);
    unlink(r->path);
}

static uint32_t random_below(uint32_t n) {
    static uint32_t state = 1;
    return ((state = state * 1664525u + 1013904223u) >> 8) % n;
}

/* Three of the six experts that begin with `hot`, and any other one. */
static void choose(uint32_t hot, uint32_t *id) {
    const uint32_t first = random_below(6);
    for (uint32_t k = 0; k < 3; k++) id[k] = (hot + (first + k) % 6) % EXPERTS;
    id[3] = (hot + 6 + random_below(EXPERTS - 6)) % EXPERTS;
}

/* One token of all layers; returns how many experts were read. */
static uint32_t token(Rig *r, uint32_t hot) {
    uint32_t misses = 0;
    qsf_expert_pool_begin_pass(r->pool, 1);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        uint32_t id[USED], unit[USED];
        choose(hot + layer, id);
        for (uint32_t k = 0; k < USED; k++) {
            unit[k] = 2 * (layer * EXPERTS + id[k]);
            misses += !qsf_expert_pool_has(r->pool, unit[k]);
            qsf_expert_pool_use(r->pool, unit[k], 0);
            qsf_expert_pool_request(r->pool, unit[k]);
        }
        qsf_expert_pool_read_ahead(r->pool, false);
        for (uint32_t i = 0; i < 2 * USED; i++) {
            QsfErr err = { 0 };
            const uint8_t *data;
            QsfChunk c;
            qsf_test_expect_ok(qsf_expert_pool_acquire(r->pool, unit[i / 2] + i % 2, &c, &data, &err), &err);
            assert_int_equal(c.unit, unit[i / 2] + i % 2);
            qsf_expert_pool_release(r->pool, unit[i / 2] + i % 2);
        }
    }
    return misses;
}

/* Share of the chosen experts that are there, of n tokens. */
static double hits(Rig *r, uint32_t hot, uint32_t n) {
    uint32_t misses = 0;
    for (uint32_t i = 0; i < n; i++) misses += token(r, hot);
    return 1 - (double)misses / (n * LAYERS * USED);
}

static void expect_hits(double least, double most, double h) {
    if (h < least || h > most) fail_msg("%.2f hits, expected %.2f to %.2f", h, least, most);
}

/* Room for the six of each layer, and some more. */
static void often_used_ones_stay(void **state) {
    Rig r;
    (void)state;
    open_rig(&r, LAYERS * 8);
    (void)hits(&r, 0, 100);
    expect_hits(0.74, 0.85, hits(&r, 0, 200));
    close_rig(&r);
}

/* Of each layer half of what one token uses: what was used least recently would always be needed next. */
static void less_than_a_token(void **state) {
    Rig r;
    (void)state;
    open_rig(&r, LAYERS * USED / 2);
    (void)hits(&r, 0, 100);
    expect_hits(0.15, 0.5, hits(&r, 0, 200));
    close_rig(&r);
}

static void another_subject(void **state) {
    Rig r;
    (void)state;
    open_rig(&r, LAYERS * 8);
    (void)hits(&r, 0, 1000);
    (void)hits(&r, 13, 48); /* three half-lives */
    expect_hits(0.7, 0.85, hits(&r, 13, 100));
    close_rig(&r);
}

/* All of them fit: each is read once. Scores are scaled on the way. */
static void all_fit(void **state) {
    Rig r;
    (void)state;
    open_rig(&r, ALL);
    (void)hits(&r, 0, 9000);
    assert_int_equal(token(&r, 0), 0);
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(often_used_ones_stay),
        cmocka_unit_test(less_than_a_token),
        cmocka_unit_test(another_subject),
        cmocka_unit_test(all_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
