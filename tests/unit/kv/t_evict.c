/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Eviction: the same logits for any threads and batches, far beyond the context; what is protected stays;
 * truncation before the last eviction keeps nothing; a change of the context keeps what is there. */
#include <math.h>

#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 160, N = 700 };

static const char *path;
static qk_level level = QK_LEVEL_UNKNOWN; /* the best, unless a test has the plain kernels too */

static int setup(void **state) {
    static char own[512];
    const QsfTinySpec spec = { .ctx = CTX };
    (void)state;
    snprintf(own, sizeof own, "%s", qsf_test_tmp("evict.gguf"));
    path = own;
    return qsf_test_write_tiny_llama(path, &spec);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void open_with(QsfRig *r, QsfEvictKind kind, uint32_t window, int threads, uint32_t batch) {
    const QsfRigOptions o = { .path = path, .threads = threads, .batch = batch, .ctx = CTX, .level = level };
    const QsfEvict e = { .kind = kind, .window = window, .protect = 20 };
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_evict(r->fwd, &e, &err), &err);
}

static int32_t id_at(const QsfRig *r, uint32_t i) {
    return (int32_t)((i * 7919u + i / 13 + 1) % r->model.hp.n_vocab);
}

static void eval(QsfRig *r, uint32_t from, uint32_t n) {
    static int32_t ids[N];
    QsfErr err = { 0 };
    for (uint32_t i = 0; i < n; i++) ids[i] = id_at(r, from + i);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, n, NULL, NULL, &err), &err);
}

/* A prompt of three contexts, then tokens one by one. */
static void run(QsfRig *r) {
    eval(r, 0, 500);
    for (uint32_t i = 500; i < N; i++) eval(r, i, 1);
    assert_int_equal(qsf_forward_n_past(r->fwd), N);
}

static void check_lists(const QsfRig *r) {
    const QsfKvCache *c = &r->fwd->kv;
    assert_true(c->lists.on);
    for (uint32_t i = 0; i < c->n; i++) {
        const qk_kv_slot *list = qsf_kvlist(&c->lists, i);
        uint8_t used[CTX / QK_KV_TILE] = { 0 };
        const uint32_t n = c->lists.n[i];
        assert_true(n > 2 && n <= CTX / QK_KV_TILE);
        assert_true(list[0].tile == 0 && list[1].tile == 1); /* protected */
        assert_int_equal(list[n - 1].tile, (N - 1) / QK_KV_TILE);
        for (uint32_t e = 0; e < n; e++) {
            assert_true(e == 0 || list[e - 1].tile < list[e].tile);
            assert_int_equal(used[list[e].slot]++, 0);
        }
    }
}

static void test_same(void **state) {
    (void)state;
    for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) {
        for (uint32_t window = 0; window <= 64; window += 64) {
            QsfRig a, b;
            level = window == 0 ? QK_LEVEL_UNKNOWN : QK_LEVEL_REF;
            open_with(&a, (QsfEvictKind)k, window, 1, 64);
            open_with(&b, (QsfEvictKind)k, window, 3, 7);
            run(&a);
            run(&b);
            check_lists(&a);
            assert_true(qsf_forward_kept(a.fwd) <= CTX);
            assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                                a.model.hp.n_vocab * sizeof(float));
            qsf_rig_close(&a);
            qsf_rig_close(&b);
            assert_int_equal(qsf_rig_leak(&a), 0);
        }
    }
    level = QK_LEVEL_UNKNOWN;
}

/* Before the last eviction nothing is kept, since a conversation of that length has evicted less; from there
 * on a truncation is exact. */
static void test_truncate(void **state) {
    (void)state;
    QsfRig a, b;
    open_with(&a, QSF_EVICT_SLIDING, 0, 1, 64);
    open_with(&b, QSF_EVICT_SLIDING, 0, 1, 64);
    run(&a);
    run(&b);
    const uint32_t last = a.fwd->kv.lists.evicted_at;
    assert_true(last > CTX && last < N - 5);
    assert_int_equal(qsf_forward_keeps(a.fwd, last - 1), 0);
    assert_int_equal(qsf_forward_keeps(a.fwd, last), last);
    assert_int_equal(qsf_forward_keeps(a.fwd, N - 5), N - 5);
    assert_int_equal(qsf_forward_truncate(a.fwd, N - 5), N - 5);
    for (uint32_t i = N - 5; i < N; i++) eval(&a, i, 1);
    const size_t bytes = a.model.hp.n_vocab * sizeof(float);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), bytes);
    assert_int_equal(qsf_forward_truncate(a.fwd, last - 1), 0);
    assert_false(a.fwd->kv.lists.on);
    run(&a);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), bytes);
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* After a truncation to any length a conversation continues as one that never had what was removed, also
 * where evictions after it depend on the attention before. */
static void check_truncation(QsfEvictKind kind, uint32_t to) {
    QsfRig a, b;
    open_with(&a, kind, 0, 1, 64);
    open_with(&b, kind, 0, 1, 64);
    for (uint32_t i = 0, n; i < CTX + CTX / 2; i += n) { /* prompts and answers */
        n = i / 64 % 2 == 0 ? 8 : 1;
        eval(&a, i, n);
    }
    const uint32_t kept = qsf_forward_truncate(a.fwd, to);
    assert_true(kept <= to);
    eval(&a, kept, to + 1 - kept);
    eval(&b, 0, to + 1);
    for (uint32_t i = to + 1; i < to + CTX; i++) {
        eval(&a, i, 1);
        eval(&b, i, 1);
    }
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                        a.model.hp.n_vocab * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

static void test_truncate_anywhere(void **state) {
    (void)state;
    for (uint32_t to = CTX - 60; to < CTX + CTX / 2; to += 13)
        for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) check_truncation((QsfEvictKind)k, to);
}

/* The border of the last messages is at hand, wherever the policy looks. */
static void test_borders(void **state) {
    (void)state;
    for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) {
        QsfRig r;
        open_with(&r, (QsfEvictKind)k, 0, 1, 64);
        for (uint32_t i = 0; i < 120; i += 30) {
            eval(&r, i, 20);
            for (uint32_t j = i + 20; j < i + 30; j++) eval(&r, j, 1);
        }
        assert_int_equal(qsf_forward_keeps(r.fwd, 119), k == QSF_EVICT_H2O ? 110 : 119);
        assert_int_equal(qsf_forward_truncate(r.fwd, 90), 90);
        assert_int_equal(qsf_forward_truncate(r.fwd, 85), k == QSF_EVICT_H2O ? 80 : 85);
        assert_int_equal(qsf_forward_truncate(r.fwd, 79), k == QSF_EVICT_H2O ? 0 : 79);
        qsf_rig_close(&r);
    }
}

typedef struct Interruption {
    QsfRig *rig;
    int taps; /* before it */
} Interruption;

static void interrupt(void *arg, const QsfTapData *t) {
    Interruption *i = arg;
    (void)t;
    if (i->taps-- == 0) atomic_store(&i->rig->cancel, 1);
}

/* A pass that was interrupted leaves no weights. */
static void test_cancelled(void **state) {
    (void)state;
    for (uint32_t at = 0; at < 150; at += 70) {
        int32_t ids[20];
        QsfRig a, b;
        QsfErr err = { 0 };
        open_with(&a, QSF_EVICT_H2O, 0, 1, 64);
        open_with(&b, QSF_EVICT_H2O, 0, 1, 64);
        eval(&a, 0, at);
        for (uint32_t i = 0; i < 20; i++) ids[i] = id_at(&a, 300 + i);
        Interruption in_pass = { &a, 6 }; /* in the second block */
        qsf_forward_tap(a.fwd, interrupt, &in_pass);
        assert_int_equal(qsf_forward_eval(a.fwd, ids, 20, NULL, NULL, &err), QSF_E_INTERRUPTED);
        qsf_forward_tap(a.fwd, NULL, NULL);
        atomic_store(&a.cancel, 0);
        assert_int_equal(qsf_forward_truncate(a.fwd, at), at); /* the border of a prompt */
        eval(&b, 0, at);
        for (uint32_t i = 0; i < a.fwd->kv.n; i++)
            assert_memory_equal(qsf_kvlist_mass(&a.fwd->kv.lists, i), qsf_kvlist_mass(&b.fwd->kv.lists, i),
                                CTX * sizeof(uint64_t));
        qsf_rig_close(&a);
        qsf_rig_close(&b);
    }
}

/* Tiles move when the memory changes, and no result with them. */
static void test_resize(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfRig a, b;
    open_with(&a, QSF_EVICT_H2O, 64, 2, 64);
    open_with(&b, QSF_EVICT_H2O, 64, 2, 64);
    run(&a);
    run(&b);
    assert_int_equal(qsf_kvcache_resize(&a.fwd->kv, 16, a.fwd->kv.types, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "are in use");
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_kvcache_resize(&a.fwd->kv, 128, a.fwd->kv.types, &err), &err);
    for (uint32_t i = 0; i < 30; i++) {
        eval(&a, i, 1);
        eval(&b, i, 1);
    }
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                        a.model.hp.n_vocab * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* They are converted, too: f32 holds every f16. */
static void test_convert(void **state) {
    (void)state;
    QsfErr err = { 0 };
    const QsfKvTypes f16 = { QK_KV_F16, QK_KV_F16 };
    static const QsfKvTypes wide[] = { { QK_KV_F32, QK_KV_F16 },
                                       { QK_KV_F32, QK_KV_F32 },
                                       { QK_KV_F16, QK_KV_F32 } };
    QsfRig a, b;
    open_with(&a, QSF_EVICT_H2O, 64, 2, 64);
    open_with(&b, QSF_EVICT_H2O, 64, 2, 64);
    run(&a);
    run(&b);
    for (uint32_t i = 0; i < 30; i++) {
        const uint32_t ctx = 128 + i % 4 * 16;
        qsf_test_expect_ok(qsf_kvcache_resize(&a.fwd->kv, ctx, wide[i % 3], &err), &err);
        qsf_test_expect_ok(qsf_kvcache_resize(&a.fwd->kv, 128, f16, &err), &err);
        eval(&a, i, 1);
        eval(&b, i, 1);
    }
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                        a.model.hp.n_vocab * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* Memory is short: the cache shrinks to what is protected and the least beside it, stays
 * small, and grows again. */
static void test_relieve(void **state) {
    (void)state;
    for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) {
        QsfRig r;
        QsfForwardStats s;
        open_with(&r, (QsfEvictKind)k, 0, 2, 64);
        assert_false(qsf_forward_relieve(r.fwd, true)); /* nothing there */
        eval(&r, 0, 150);
        uint32_t at = 150;
        for (int i = 0; i < 6; i++) {
            const uint32_t before = qsf_kvcache_tiles(&r.fwd->kv);
            const bool gave = qsf_forward_relieve(r.fwd, true);
            for (int j = 0; k == QSF_EVICT_SNAPKV && j < 40; j++) eval(&r, at++, 1); /* it observes first */
            const uint32_t after = qsf_kvcache_tiles(&r.fwd->kv);
            assert_int_equal(gave, before > 6);
            assert_true(after >= 6 && (after < before || !gave));
        }
        assert_int_equal(qsf_kvcache_tiles(&r.fwd->kv), 6); /* 2 protected, and 64 positions */
        qsf_forward_stats(r.fwd, &s);
        assert_true(s.reliefs > 0 && s.evictions >= s.reliefs && s.evicted > 0);
        for (uint32_t i = 0; i < 100; i++) eval(&r, at++, 1);
        assert_true(qsf_kvcache_tiles(&r.fwd->kv) <= 6);
        assert_int_equal(qsf_kvlist(&r.fwd->kv.lists, 0)[1].tile, 1);
        assert_false(qsf_forward_relieve(r.fwd, false));
        for (uint32_t i = 0; i < 100; i++) eval(&r, at++, 1);
        assert_true(qsf_kvcache_tiles(&r.fwd->kv) > 6);
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
}

/* What was evicted then is what a shorter cache has evicted: the results are the same. */
static void test_relieve_same(void **state) {
    (void)state;
    QsfRig a, b;
    const QsfEvict e = { .kind = QSF_EVICT_SLIDING, .window = 0, .protect = 20 };
    open_with(&a, QSF_EVICT_SLIDING, 0, 1, 64);
    open_with(&b, QSF_EVICT_SLIDING, 0, 3, 7);
    eval(&a, 0, 150);
    eval(&b, 0, 150);
    assert_true(qsf_forward_relieve(a.fwd, true));
    (void)qsf_kvcache_evict(&b.fwd->kv, &e, qsf_kvcache_tiles(&a.fwd->kv)); /* its memory is not discarded */
    qsf_gaps_close(b.fwd, QK_KV_TILE);
    for (uint32_t i = 150; i < 160; i++) { /* before a shrinks again */
        eval(&a, i, 1);
        eval(&b, i, 1);
    }
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                        a.model.hp.n_vocab * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* A head's key at a position of the first cache. */
static void key_at(const QsfRig *r, uint32_t cache, uint32_t head, uint32_t pos, float *row) {
    const QsfKvCache *c = &r->fwd->kv;
    const size_t place = (size_t)qsf_kvlist_slot(&c->lists, cache, pos / QK_KV_TILE) * QK_KV_TILE +
                         pos % QK_KV_TILE;
    qsf_kvcache_ops(c, cache, 0)
        ->load(row, qsf_kvcache_tile(c, cache, 0, head, 0), 0, place, c->spec[cache].dim);
}

/* Beyond the trained context what is kept is seen without gaps: keys are turned on, about exactly. Shorter
 * conversations leave them alone. */
static void check_turned(const QsfRig *r, const float *before) {
    const QsfKvLists *l = &r->fwd->kv.lists;
    const uint32_t tiles = qsf_kvlist_moved(l, 0)[qsf_kvlist(l, 0)[0].slot];
    float after[QSF_MAX_HEAD_DIM];
    const QsfRopeTable *t = &r->model.prog.rope[0];
    const uint32_t half = t->n_rot / 2;
    assert_true(tiles * QK_KV_TILE > N - 2 * CTX && N - tiles * QK_KV_TILE <= CTX);
    key_at(r, 0, 0, 5, after);
    for (uint32_t i = 0; i < half; i++) {
        const bool pairs = t->kind == QSF_ROPE_PAIRS;
        const uint32_t x = pairs ? 2 * i : i, y = pairs ? 2 * i + 1 : i + half;
        const double turn = (double)tiles * QK_KV_TILE * t->freq[i];
        const double want = (double)before[x] * cos(turn) - (double)before[y] * sin(turn);
        const double size = hypot((double)before[x], (double)before[y]);
        assert_true(fabs((double)after[x] - want) <= 0.02 * size + 1e-6);
    }
}

static void test_gaps(void **state) {
    (void)state;
    for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) {
        QsfRig a, b;
        float before[QSF_MAX_HEAD_DIM];
        open_with(&a, (QsfEvictKind)k, 64, 1, 64); /* trained for CTX positions */
        open_with(&b, (QsfEvictKind)k, 64, 3, 7);
        eval(&a, 0, 100);
        eval(&b, 0, 100);
        for (uint32_t i = 100; i < 120; i++) {
            eval(&a, i, 1);
            eval(&b, i, 1);
        }
        assert_true(a.fwd->kv.lists.on);
        assert_int_equal(qsf_kvlist_moved(&a.fwd->kv.lists, 0)[qsf_kvlist(&a.fwd->kv.lists, 0)[0].slot], 0);
        key_at(&a, 0, 0, 5, before);
        eval(&a, 120, 480);
        eval(&b, 120, 480);
        for (uint32_t i = 600; i < N; i++) {
            eval(&a, i, 1);
            eval(&b, i, 1);
        }
        assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd),
                            a.model.hp.n_vocab * sizeof(float));
        check_turned(&a, before);
        /* A new conversation begins without. */
        assert_int_equal(qsf_forward_truncate(a.fwd, 0), 0);
        run(&a);
        assert_int_equal(qsf_kvlist(&a.fwd->kv.lists, 0)[0].tile, 0);
        qsf_rig_close(&a);
        qsf_rig_close(&b);
    }
}

static void test_refused(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfRig r;
    const QsfEvict e = { .kind = QSF_EVICT_SLIDING, .protect = 120 };
    open_with(&r, QSF_EVICT_NONE, 0, 1, 64);
    assert_int_equal(qsf_forward_evict(r.fwd, &e, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "needs a context of at least 192");
    eval(&r, 0, CTX);
    int32_t id = 1;
    qsf_err_clear(&err);
    assert_int_equal(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &err), QSF_E_CONTEXT);
    qsf_rig_close(&r);
}

/* The heaviest tiles stay. */
static void test_choice(void **state) {
    (void)state;
    qk_kv_slot list[10];
    uint64_t mass[10 * QK_KV_TILE] = { 0 };
    for (uint32_t i = 0; i < 10; i++) list[i] = (qk_kv_slot){ .tile = 3 * i, .slot = 9 - i, .kept = 0xffff };
    mass[(9 - 3) * QK_KV_TILE + 5] = 100; /* entry 3 */
    mass[(9 - 2) * QK_KV_TILE + 1] = 50;
    for (int k = QSF_EVICT_SLIDING; k < QSF_EVICT_N; k++) {
        uint8_t out[10] = { 0 };
        const QsfEvictView v = { list, 10, 1, 4, mass, out };
        qsf_evict_choose((QsfEvictKind)k, &v);
        uint32_t n = 0;
        for (uint32_t i = 0; i < 10; i++) n += out[i];
        assert_int_equal(n, 4);
        assert_true(!out[0] && !out[9] && out[1]);
        assert_int_equal(out[3], k == QSF_EVICT_SLIDING);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_truncate_anywhere),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_relieve),
        cmocka_unit_test(test_relieve_same),
        cmocka_unit_test(test_gaps),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
