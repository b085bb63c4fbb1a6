/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streaming: slot states, chunks of units, and a loader whose chunks hold the file's bytes for every order of
 * events: passes with and without the head, aborts, cancels, read errors. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/plan/layout.h"
#include "src/stream/slots.h"
#include "src/stream/weights.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

/* --- slots --- */

static uint8_t memory[4][64];

static QsfSlots ring(uint32_t n) {
    QsfSlots s;
    qsf_slots_init(&s, n, memory[0], sizeof memory[0]);
    return s;
}

static void test_transitions(void **state) {
    (void)state;
    QsfChunk c = { .unit = 7 }, d = { .unit = 8 };
    QsfSlots s = ring(2);
    /* EMPTY: nothing to finish, use or release. */
    assert_false(qsf_slots_end_load(&s, true));
    assert_null(qsf_slots_acquire(&s));
    assert_false(qsf_slots_release(&s));
    assert_true(qsf_slots_can_load(&s));
    /* EMPTY -> LOADING: nothing else may use it; the next slot may be LOADING at the same time. */
    QsfSlot *x = qsf_slots_begin_load(&s, &c);
    assert_ptr_equal(x, &s.slot[0]);
    assert_int_equal(x->state, QSF_SLOT_LOADING);
    assert_int_equal(x->chunk.unit, 7);
    assert_ptr_equal(x->data, memory[0]);
    assert_null(qsf_slots_acquire(&s));
    assert_false(qsf_slots_release(&s));
    assert_false(qsf_slots_reset(&s));
    QsfSlot *y = qsf_slots_begin_load(&s, &d);
    assert_ptr_equal(y, &s.slot[1]);
    assert_int_equal(y->state, QSF_SLOT_LOADING);
    assert_false(qsf_slots_can_load(&s));
    assert_null(qsf_slots_begin_load(&s, &c));
    /* LOADING -> READY, the oldest first. */
    assert_true(qsf_slots_end_load(&s, true));
    assert_int_equal(x->state, QSF_SLOT_READY);
    assert_int_equal(y->state, QSF_SLOT_LOADING);
    assert_false(qsf_slots_release(&s));
    /* READY -> IN_USE; the next slot, which is LOADING, is not available yet. */
    assert_ptr_equal(qsf_slots_acquire(&s), x);
    assert_int_equal(x->state, QSF_SLOT_IN_USE);
    assert_null(qsf_slots_acquire(&s));
    assert_null(qsf_slots_begin_load(&s, &c));
    assert_true(qsf_slots_end_load(&s, true));
    assert_false(qsf_slots_end_load(&s, true));
    assert_null(qsf_slots_begin_load(&s, &c)); /* IN_USE and READY: full */
    /* IN_USE -> EMPTY */
    assert_true(qsf_slots_release(&s));
    assert_int_equal(x->state, QSF_SLOT_EMPTY);
    assert_false(qsf_slots_release(&s));
    assert_ptr_equal(qsf_slots_begin_load(&s, &c), x);
    assert_ptr_equal(qsf_slots_acquire(&s), y);
    assert_true(qsf_slots_end_load(&s, true));
    /* READY and IN_USE -> EMPTY by a reset, and the ring starts over. */
    assert_true(qsf_slots_reset(&s));
    assert_int_equal(x->state, QSF_SLOT_EMPTY);
    assert_int_equal(y->state, QSF_SLOT_EMPTY);
    assert_ptr_equal(qsf_slots_begin_load(&s, &c), x);
}

/* LOADING -> EMPTY: slots read before a failure can still be used, later ones cannot, until a reset. */
static void test_failed_load(void **state) {
    (void)state;
    QsfChunk c = { .unit = 7 };
    QsfSlots s = ring(4);
    for (int i = 0; i < 4; i++) assert_non_null(qsf_slots_begin_load(&s, &c));
    assert_true(qsf_slots_end_load(&s, true));
    assert_true(qsf_slots_end_load(&s, false));
    assert_int_equal(s.slot[1].state, QSF_SLOT_EMPTY);
    assert_false(qsf_slots_reset(&s));
    assert_true(qsf_slots_end_load(&s, true));
    assert_int_equal(s.slot[2].state, QSF_SLOT_EMPTY);
    assert_true(qsf_slots_end_load(&s, true));
    assert_false(qsf_slots_can_load(&s));
    assert_ptr_equal(qsf_slots_acquire(&s), &s.slot[0]);
    assert_true(qsf_slots_release(&s));
    assert_null(qsf_slots_acquire(&s));
    assert_false(qsf_slots_can_load(&s));
    assert_true(qsf_slots_reset(&s));
    assert_true(qsf_slots_can_load(&s));
    s = ring(0); /* nothing streams */
    assert_false(qsf_slots_can_load(&s));
    assert_null(qsf_slots_begin_load(&s, &c));
}

/* Filled and used in the same order, for every number of slots, with the maximum number of loads at a
 * time. */
static void test_order(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= QSF_MAX_SLOTS; n++) {
        QsfSlots s = ring(n);
        uint32_t loaded = 0, used = 0;
        for (uint32_t step = 0; step < 100; step++) {
            QsfChunk c = { .unit = loaded };
            while (qsf_slots_begin_load(&s, &c) != NULL) c.unit = ++loaded;
            for (uint32_t i = 0; i <= step % n; i++) qsf_slots_end_load(&s, true);
            QsfSlot *t = qsf_slots_acquire(&s);
            assert_non_null(t);
            assert_int_equal(t->chunk.unit, used++);
            assert_true(qsf_slots_release(&s));
        }
        assert_int_equal(loaded - used, n - 1);
    }
}

/* --- chunks --- */

/* A window begins and ends at page boundaries of file and memory and contains its rows. */
static void check_window(const QsfUnit *u, const QsfChunk *c, const QsfPart *p) {
    uint64_t off = u->tensor[p->tensor]->offset + p->row0 * u->row_bytes[p->tensor];
    uint64_t bytes = (p->row1 - p->row0) * u->row_bytes[p->tensor];
    assert_int_equal((p->file_off | p->window | p->window_bytes) % QSF_WINDOW, 0);
    assert_true(p->file_off <= off && off + bytes <= p->file_off + p->window_bytes);
    assert_int_equal(p->at - p->window, off - p->file_off);
    assert_true(p->window_bytes < bytes + 2 * QSF_WINDOW && p->window + p->window_bytes <= c->bytes);
}

/* Any split of a unit covers each row once, in order, inside its slot. */
static void test_chunks(void **state) {
    (void)state;
    QsfModel m;
    const QsfShapeSpec spec = { 1, 256, 4, 2, 700, 333, 64, false, 1 };
    qsf_shape_model(&m, &spec);
    for (uint32_t i = 0; i < qsf_unit_count(&m); i++) {
        QsfUnit u;
        qsf_unit_at(&m, i, &u);
        uint64_t least = qsf_unit_min_slot(&u);
        assert_int_equal(qsf_unit_chunk_items(&u, u.items, least - 1), 0);
        for (uint64_t slot = least; slot < least * 40; slot += least / 3) {
            uint32_t step = qsf_unit_chunk_items(&u, u.items, slot), rows[QSF_UNIT_TENSORS] = { 0 };
            assert_true(step > 0 && step % QSF_ROW_QUANTUM == 0);
            for (uint32_t at = 0; at < u.items; at += step) {
                QsfChunk c;
                qsf_chunk_make(&u, at, at + step < u.items ? at + step : u.items, &c);
                assert_true(c.bytes <= slot);
                for (unsigned p = 0; p < c.n_parts; p++) {
                    check_window(&u, &c, &c.part[p]);
                    assert_int_equal(c.part[p].row0, rows[c.part[p].tensor]);
                    rows[c.part[p].tensor] = c.part[p].row1;
                }
            }
            for (unsigned t = 0; t < u.n; t++) assert_int_equal(rows[t], u.rows[t]);
        }
    }
    qsf_shape_model_free(&m);
}

/* --- the loader, through the weights --- */

typedef struct Bench {
    QsfLedger ledger;
    QsfModel model;
    QsfPlan plan;
    uint32_t pinned[64];
    QsfStreamCounters counters;
    atomic_int cancel;
    QsfWeights *w;
} Bench;

static const char *path;

/* An interleaving that is undone only by its inverse: a group in reverse order. */
static void pack_reversed(void *dst, const void *src, size_t row_bytes, size_t k) {
    (void)k;
    for (size_t i = 0; i < 16 * row_bytes; i++)
        ((uint8_t *)dst)[i] = ((const uint8_t *)src)[16 * row_bytes - 1 - i];
}

static void unpack_reversed(void *dst, const void *group, unsigned r, size_t k) {
    size_t bytes = 2 * k, end = (16 - r) * bytes;
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)dst)[i] = ((const uint8_t *)group)[end - 1 - i];
}

static uint64_t interleaved_types; /* of every bench */

static const qk_table *table(void) {
    static qk_table t;
    qk_table_init(&t, QK_LEVEL_REF);
    t.weight[QK_F16].pack = pack_reversed;
    t.weight[QK_F16].unpack_row = unpack_reversed;
    return &t;
}

static int write_model(void **state) {
    (void)state;
    interleaved_types = 0;
    static char own[512];
    snprintf(own, sizeof own, "%s", qsf_test_tmp("stream.gguf"));
    path = own;
    const QsfTinySpec spec = {
        .layers = 3, .hidden = 96, .ffn = 200, .heads = 4, .kv_heads = 2, .head_dim = 24, .wtype = 1
    };
    return qsf_test_write_tiny_llama(path, &spec);
}

static int with_packing(void **state) {
    int rc = write_model(state);
    interleaved_types = 1u << QK_F16;
    return rc;
}

static int remove_model(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    return unlink(path);
}

/* every: pin each unit divisible by every, 0 = none. slot 0 = the smallest that works. */
static void open_bench(Bench *b, uint32_t every, uint32_t n_slots, uint64_t slot) {
    QsfErr err = { 0 };
    QsfShape s;
    memset(b, 0, sizeof *b);
    qsf_ledger_init(&b->ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&b->model, path, NULL, &b->ledger, &err), &err);
    qsf_shape_make(&s, &b->model, table());
    b->plan = (QsfPlan){ .n_units = s.n_units,
                         .pinned_items = b->pinned,
                         .n_slots = n_slots,
                         .slot_bytes = qsf_pages(slot > s.min_slot ? slot : s.min_slot) };
    for (uint32_t i = 0; i < s.n_units; i++) b->pinned[i] = every != 0 && i % every == 0 ? UINT32_MAX : 0;
    const QsfWeightsOptions o = { .model = &b->model,
                                  .plan = &b->plan,
                                  .table = table(),
                                  .interleaved_types = interleaved_types,
                                  .ledger = &b->ledger,
                                  .cancel = &b->cancel,
                                  .counters = &b->counters };
    qsf_test_expect_ok(qsf_weights_create(&b->w, &o, &err), &err);
}

static void close_bench(Bench *b) {
    qsf_weights_destroy(b->w);
    qsf_model_close(&b->model);
    assert_int_equal(b->ledger.total, 0);
    qsf_ledger_destroy(&b->ledger);
}

/* The rows of a view, in either layout. */
static void check_rows(const QsfUnit *u, const QsfWeightView *v, unsigned i, const uint8_t *want) {
    static uint8_t row[1 << 16];
    const QsfPart *p = &v->part[i];
    size_t bytes = (size_t)u->row_bytes[p->tensor];
    for (uint32_t r = 0; r < v->interleaved[i]; r++) {
        unpack_reversed(row, v->rows[i] + r / 16 * 16 * bytes, r % 16, u->k);
        assert_memory_equal(row, want + r * bytes, bytes);
    }
    size_t from = v->interleaved[i] * bytes;
    assert_memory_equal(v->rows[i] + from, want + from, (p->row1 - p->row0) * bytes - from);
}

/* They equal those of the file, which is read here without the file layer and its injected faults. */
static void check_bytes(const Bench *b, const QsfUnit *u, const QsfWeightView *v) {
    static uint8_t want[1 << 20];
    for (unsigned i = 0; i < v->n_parts; i++) {
        const QsfPart *p = &v->part[i];
        const QsfTensor *t = u->tensor[p->tensor];
        size_t len = (size_t)((p->row1 - p->row0) * u->row_bytes[p->tensor]);
        off_t off = (off_t)(t->offset + p->row0 * u->row_bytes[p->tensor]);
        assert_true(len <= sizeof want);
        assert_int_equal(pread(qsf_source_file(b->model.src, t->file)->fd, want, len, off), len);
        assert_int_equal(v->interleaved[i],
                         v->streamed || interleaved_types == 0 ? 0 : (p->row1 - p->row0) / 16 * 16);
        check_rows(u, v, i, want);
    }
}

/* Walks units [0, limit); returns the code of the first failure. */
static int walk(Bench *b, uint32_t limit, QsfErr *err) {
    for (uint32_t i = 0; i < limit; i++) {
        const QsfUnit *u = qsf_weights_unit(b->w, i);
        QsfWeightView v;
        for (uint32_t item = 0; item < u->items; item = v.item1) {
            int rc = qsf_weights_acquire(b->w, i, item, &v, err);
            if (rc != QSF_OK) return rc;
            assert_true(v.unit == i && v.item0 == item && v.item1 > item);
            assert_int_equal(v.streamed, item >= b->pinned[i]);
            check_bytes(b, u, &v);
            qsf_weights_release(b->w, &v);
        }
    }
    return QSF_OK;
}

static int run_pass(Bench *b, bool head, QsfErr *err) {
    int rc = qsf_weights_begin_pass(b->w, head, err);
    if (rc != QSF_OK) return rc;
    rc = walk(b, qsf_weights_n_units(b->w) - (head ? 0 : 1), err);
    qsf_weights_end_pass(b->w, rc == QSF_OK);
    return rc;
}

/* Other pins: a `part` of 0 pins nothing, 1 everything, n one n-th of every unit. */
static void replan(Bench *b, uint32_t part) {
    QsfErr err = { 0 };
    for (uint32_t i = 0; i < b->plan.n_units; i++) {
        uint32_t items = qsf_weights_unit(b->w, i)->items;
        b->pinned[i] = part == 0 ? 0 : part == 1 ? items : items / part / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    }
    qsf_weights_park(b->w, &b->plan, 0);
    assert_int_equal(qsf_weights_begin_pass(b->w, true, &err), QSF_E_RUNTIME);
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_weights_resume(b->w, &b->plan, 0, &err), &err);
}

/* Pins change between passes, settled or not, and the ledger follows immediately. */
static void test_replan(void **state) {
    (void)state;
    static const uint32_t parts[] = { 2, 1, 3, 2, 0, 5, 1, 4, 1, 1, 2, 0, 1 };
    for (int settle = 0; settle < 2; settle++) {
        Bench b;
        QsfErr err = { 0 };
        open_bench(&b, 0, 3, 0);
        uint64_t before = b.ledger.used[QSF_MEM_PINNED];
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            b.plan.n_slots = 1 + (uint32_t)i % QSF_MAX_SLOTS;
            replan(&b, parts[i]);
            uint64_t want = before;
            for (uint32_t u = 0; u < b.plan.n_units; u++)
                want += qsf_unit_pinned_bytes(qsf_weights_unit(b.w, u), b.pinned[u]);
            assert_int_equal(b.ledger.used[QSF_MEM_PINNED], want);
            if (settle) qsf_test_expect_ok(qsf_weights_settle(b.w, NULL, NULL, &err), &err);
            if (i % 3 != 2) qsf_test_expect_ok(run_pass(&b, i % 2 == 0, &err), &err);
        }
        qsf_test_expect_ok(qsf_weights_settle(b.w, NULL, NULL, &err), &err);
        assert_int_equal(atomic_load(&b.counters.pin_done), atomic_load(&b.counters.pin_total));
        replan(&b, 0);
        assert_int_equal(b.ledger.used[QSF_MEM_PINNED], before);
        qsf_test_expect_ok(run_pass(&b, true, &err), &err);
        close_bench(&b);
    }
}

/* Growing in small steps never reads a window twice, and every row is correct. */
static void test_grow_in_small_steps(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b, 0, 2, 0);
    for (uint32_t items = 0; items <= 208; items += QSF_ROW_QUANTUM) {
        for (uint32_t i = 0; i < b.plan.n_units; i++) {
            uint32_t all = qsf_weights_unit(b.w, i)->items;
            b.pinned[i] = items < all ? items : all;
        }
        qsf_weights_park(b.w, &b.plan, 0);
        qsf_test_expect_ok(qsf_weights_resume(b.w, &b.plan, 0, &err), &err);
        qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    }
    uint64_t most = 0;
    for (uint32_t i = 0; i < b.plan.n_units; i++)
        most += qsf_unit_pinned_bytes(qsf_weights_unit(b.w, i), b.pinned[i]);
    assert_true(atomic_load(&b.counters.pin_read) <= most);
    close_bench(&b);
}

static void test_passes(void **state) {
    (void)state;
    const uint64_t slots[] = { 0, 60000, 1 << 20 };
    for (uint32_t n = 1; n <= QSF_MAX_SLOTS; n++) {
        for (size_t s = 0; s < 3; s++) {
            for (uint32_t every = 0; every <= 4; every++) {
                Bench b;
                QsfErr err = { 0 };
                open_bench(&b, every, n, slots[s]);
                static const bool heads[] = { true, true, false, false, true, false, true };
                for (size_t i = 0; i < sizeof heads; i++)
                    qsf_test_expect_ok(run_pass(&b, heads[i], &err), &err);
                close_bench(&b);
            }
        }
    }
}

/* Only the head streams: nothing can be prefetched for a pass that may not need it. */
static void test_only_head_streams(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b, 1, 2, 0);
    close_bench(&b);
    open_bench(&b, 0, 2, 0);
    QsfWeights *streams_all = b.w;
    memset(b.pinned, 0xFF, sizeof b.pinned);
    b.pinned[b.plan.n_units - 1] = 0;
    const QsfWeightsOptions o = { .model = &b.model,
                                  .plan = &b.plan,
                                  .table = table(),
                                  .interleaved_types = interleaved_types,
                                  .ledger = &b.ledger,
                                  .counters = &b.counters };
    qsf_test_expect_ok(qsf_weights_create(&b.w, &o, &err), &err);
    qsf_weights_destroy(streams_all);
    for (int i = 0; i < 4; i++) qsf_test_expect_ok(run_pass(&b, i != 1, &err), &err);
    close_bench(&b);
}

/* Each streamed byte is read once per pass. */
static void test_bytes_per_pass(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b, 3, 2, 60000);
    uint64_t streamed = 0, ahead = 2 * 61440;
    for (uint32_t i = 0; i < qsf_weights_n_units(b.w); i++) {
        if (!qsf_weights_pinned(b.w, i)) streamed += qsf_weights_unit(b.w, i)->bytes;
    }
    uint64_t before = atomic_load(&b.counters.bytes_read);
    for (int i = 0; i < 5; i++) qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    uint64_t got = atomic_load(&b.counters.bytes_read) - before;
    /* A tiny unit consists mostly of windows: two additional pages for each tensor of a chunk. */
    uint64_t pad = 5ull * qsf_weights_n_units(b.w) * 4 * QSF_UNIT_TENSORS * 2 * QSF_WINDOW;
    assert_true(got + ahead >= 5 * streamed && got <= 5 * streamed + ahead + pad);
    close_bench(&b);
}

/* A pass that is aborted anywhere starts over with the first chunk. */
static void test_abort_anywhere(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 3; n++) {
        Bench b;
        QsfErr err = { 0 };
        open_bench(&b, 3, n, 0);
        for (uint32_t stop = 0; stop < qsf_weights_n_units(b.w); stop++) {
            qsf_test_expect_ok(qsf_weights_begin_pass(b.w, true, &err), &err);
            qsf_test_expect_ok(walk(&b, stop, &err), &err);
            QsfWeightView v;
            qsf_test_expect_ok(qsf_weights_acquire(b.w, stop, 0, &v, &err), &err); /* and never released */
            qsf_weights_end_pass(b.w, false);
            qsf_test_expect_ok(run_pass(&b, stop % 2 == 0, &err), &err);
        }
        /* A pass that was started and abandoned. */
        qsf_test_expect_ok(qsf_weights_begin_pass(b.w, true, &err), &err);
        qsf_test_expect_ok(run_pass(&b, true, &err), &err);
        close_bench(&b);
    }
}

static void test_wrong_order(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    QsfWeightView v;
    open_bench(&b, 0, 2, 0);
    qsf_test_expect_ok(qsf_weights_begin_pass(b.w, true, &err), &err);
    assert_int_equal(qsf_weights_acquire(b.w, 3, 0, &v, &err), QSF_E_RUNTIME);
    qsf_weights_end_pass(b.w, false);
    qsf_err_clear(&err);
    qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    close_bench(&b);
}

/* An error inside unit `at` is reported when the pass reaches it, names file and offset, and disappears when
 * the file is readable again. */
static void test_faults(void **state) {
    (void)state;
    const int faults[] = { EIO, 0 };
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t at = 0; at < 13; at++) {
            Bench b;
            QsfErr err = { 0 };
            open_bench(&b, 0, 2, 0);
            const QsfTensor *t = qsf_weights_unit(b.w, at)->tensor[0];
            qsf_test_expect_ok(run_pass(&b, true, &err), &err);
            qsf_file_inject_fault(t->offset + t->bytes / 2, faults[i]);
            int rc = QSF_OK;
            for (int tries = 0; tries < 2 && rc == QSF_OK; tries++) rc = run_pass(&b, true, &err);
            assert_int_equal(rc, QSF_E_RUNTIME);
            qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
            qsf_test_expect_err(&err, QSF_E_RUNTIME, "offset");
            qsf_file_inject_fault(UINT64_MAX, 0);
            qsf_err_clear(&err);
            for (int tries = 0; tries < 3; tries++) qsf_test_expect_ok(run_pass(&b, true, &err), &err);
            close_bench(&b);
        }
    }
}

/* Pins are read in the background: creation succeeds, the pass that needs the rows fails, and the next one
 * reads the missing ones. */
static void test_fault_while_pinning(void **state) {
    (void)state;
    for (uint32_t at = 0; at < 13; at++) {
        Bench b;
        QsfErr err = { 0 };
        QsfUnit u;
        open_bench(&b, 0, 2, 0);
        qsf_unit_at(&b.model, at, &u);
        qsf_file_inject_fault(u.tensor[0]->offset + 9, EIO);
        replan(&b, 1);
        assert_int_equal(run_pass(&b, true, &err), QSF_E_RUNTIME);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, "offset");
        assert_false(qsf_weights_stale(b.w));
        qsf_file_inject_fault(UINT64_MAX, 0);
        qsf_err_clear(&err);
        qsf_test_expect_ok(run_pass(&b, true, &err), &err);
        assert_int_equal(atomic_load(&b.counters.pin_done), atomic_load(&b.counters.pin_total));
        qsf_test_expect_ok(run_pass(&b, false, &err), &err);
        close_bench(&b);
    }
}

/* Rows by index, in place or dequantized, and only those that exist. */
static void test_single_rows(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    uint8_t buf[1024], want[1024];
    open_bench(&b, 0, 2, 0);
    replan(&b, 2);
    qsf_test_expect_ok(qsf_weights_settle(b.w, NULL, NULL, &err), &err);
    for (uint32_t i = 0; i < b.plan.n_units; i++) {
        const QsfUnit *u = qsf_weights_unit(b.w, i);
        for (unsigned t = 0; t < u->n; t++) {
            uint32_t none, rows;
            qsf_unit_rows(u, 0, b.pinned[i], t, &none, &rows);
            for (uint32_t r = 0; r < u->rows[t]; r++) {
                size_t bytes = (size_t)u->row_bytes[t];
                const uint8_t *row = qsf_weights_pinned_row(b.w, i, t, r, buf);
                assert_int_equal(row != NULL, r < rows);
                assert_int_equal(qsf_weights_has_row(b.w, i, t, r), r < rows);
                if (row == NULL) continue;
                off_t off = (off_t)(u->tensor[t]->offset + r * bytes);
                assert_true(bytes <= sizeof want);
                assert_int_equal(
                    pread(qsf_source_file(b.model.src, u->tensor[t]->file)->fd, want, bytes, off), bytes);
                assert_memory_equal(row, want, bytes);
            }
        }
    }
    close_bench(&b);
}

/* If the rows of a tensor are not a multiple of 16, they do not split a group of the next one: rows that do
 * not form a whole group stay rows. */
static void test_cut_groups(void **state) {
    (void)state;
    char own[512];
    const char *usual = path;
    snprintf(own, sizeof own, "%s", qsf_test_tmp("stream24.gguf"));
    const QsfTinySpec spec = {
        .layers = 2, .hidden = 96, .ffn = 200, .heads = 4, .kv_heads = 1, .head_dim = 24, .wtype = 1
    };
    assert_int_equal(qsf_test_write_tiny_llama(own, &spec), 0);
    path = own;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b, 1, 0, 0);
    qsf_test_expect_ok(qsf_weights_settle(b.w, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_weights_begin_pass(b.w, true, &err), &err);
    for (uint32_t i = 0; i < b.plan.n_units; i++) {
        QsfWeightView v;
        qsf_test_expect_ok(qsf_weights_acquire(b.w, i, 0, &v, &err), &err);
        check_bytes(&b, qsf_weights_unit(b.w, i), &v);
        qsf_weights_release(b.w, &v);
    }
    qsf_weights_end_pass(b.w, true);
    close_bench(&b);
    unlink(own);
    path = usual;
}

static void test_budget(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b, 0, 2, 0);
    qsf_weights_destroy(b.w);
    qsf_ledger_set_limit(&b.ledger, b.ledger.total + 300 * 1024); /* the stack fits, the slots do not */
    b.plan.slot_bytes = 1 << 20;
    const QsfWeightsOptions o = {
        .model = &b.model, .plan = &b.plan, .ledger = &b.ledger, .counters = &b.counters
    };
    assert_int_equal(qsf_weights_create(&b.w, &o, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "slots");
    close_bench(&b);
}

static void *cancel_soon(void *arg) {
    usleep(30000);
    atomic_store((atomic_int *)arg, 1);
    return NULL;
}

/* A consumer waiting for a chunk that never arrives is released. */
static void test_cancel_while_waiting(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    QsfWeightView v, v2;
    pthread_t t;
    open_bench(&b, 0, 1, 0);
    qsf_test_expect_ok(qsf_weights_begin_pass(b.w, true, &err), &err);
    qsf_test_expect_ok(qsf_weights_acquire(b.w, 0, 0, &v, &err), &err);
    assert_int_equal(pthread_create(&t, NULL, cancel_soon, &b.cancel), 0);
    const uint64_t t0 = qsf_test_cpu_ns();
    assert_int_equal(qsf_weights_acquire(b.w, 0, v.item1, &v2, &err),
                     QSF_E_INTERRUPTED); /* its one slot is in use */
    assert_true(qsf_test_cpu_ns() - t0 < 2000000000u);
    assert_true(atomic_load(&b.counters.wait_ns) > 0);
    pthread_join(t, NULL);
    qsf_weights_end_pass(b.w, false);
    atomic_store(&b.cancel, 0);
    qsf_err_clear(&err);
    qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    close_bench(&b);
}

static void test_changed_file(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    struct stat st;
    open_bench(&b, 0, 2, 0);
    qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    assert_int_equal(stat(path, &st), 0);
    const struct timespec later[2] = { st.st_atim, { st.st_mtim.tv_sec + 5, 0 } },
                          back[2] = { st.st_atim, st.st_mtim };
    assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0);
    assert_int_equal(run_pass(&b, true, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
    assert_int_equal(utimensat(AT_FDCWD, path, back, 0), 0);
    qsf_err_clear(&err);
    qsf_test_expect_ok(run_pass(&b, true, &err), &err);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transitions),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_failed_load),
        cmocka_unit_test(test_replan),
        cmocka_unit_test(test_grow_in_small_steps),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_only_head_streams),
        cmocka_unit_test(test_bytes_per_pass),
        cmocka_unit_test(test_abort_anywhere),
        cmocka_unit_test(test_wrong_order),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_fault_while_pinning),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_cancel_while_waiting),
        cmocka_unit_test(test_changed_file),
        cmocka_unit_test(test_single_rows),
        cmocka_unit_test(test_cut_groups),
    };
    int failed = cmocka_run_group_tests_name("rows", tests, write_model, remove_model);
    return failed + cmocka_run_group_tests_name("packed", tests, with_packing, remove_model);
}
