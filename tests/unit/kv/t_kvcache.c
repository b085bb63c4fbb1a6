/* SPDX-License-Identifier: GPL-3.0-or-later */
/* KV cache: every (layer, head, position) has its own place, sizes are charged, truncation drops positions,
 * another context length keeps the contents and touches no additional page. */
#include <sys/mman.h>

#include "kernels/kvsize.h"
#include "src/kv/cache.h"
#include "src/plan/kv_lend.h"
#include "src/plan/layout.h"
#include "tests/harness/qsf_test.h"

enum { LAYERS = 3, HEADS = 2, DIM = 10, CTX = 7 };

static const QsfKvSpec spec[LAYERS] = { { .block = 0, .heads = HEADS, .dim = DIM },
                                        { .block = 1, .heads = HEADS, .dim = DIM },
                                        { .block = 2, .heads = HEADS, .dim = DIM } };

/* A number that f16 holds exactly and that occurs in no other place. */
static float value(uint32_t layer, uint32_t pos, unsigned which, size_t i) {
    return (float)(layer * 512 + pos * 64 + which * 32 + i);
}

static void fill(QsfKvCache *c) {
    float k[HEADS * DIM], v[HEADS * DIM];
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t p = 0; p < CTX; p++) {
            for (size_t i = 0; i < HEADS * DIM; i++) {
                k[i] = value(l, p, 0, i);
                v[i] = value(l, p, 1, i);
            }
            qsf_kvcache_store(c, l, p, k, v);
        }
    }
}

static QsfKvTypes same(int type) { return (QsfKvTypes){ (qk_kv)type, (qk_kv)type }; }

/* Types that the positions had, the present ones last; the caches' own types if there are none. */
static QsfKvTypes history[3];
static size_t n_history;

/* What is read of a row that was stored as the cache has it, whose types were t. */
static void round_row(const QsfKvCache *c, uint32_t l, unsigned which, QsfKvTypes t, float *row) {
    static char tile[QK_KV_TILE * 80 * sizeof(float)];
    const qk_kv_ops *ops = &c->table->kv[qsf_kv_stored(&c->spec[l], t, which)];
    assert_true(ops->tile_bytes(c->spec[l].dim) <= sizeof tile);
    ops->store(tile, (int)which, 0, row, c->spec[l].dim);
    ops->load(row, tile, (int)which, 0, c->spec[l].dim);
}

/* Whether position pos of K (which 0) or V holds what `want` has become. */
static void expect(const QsfKvCache *c, uint32_t l, uint32_t h, uint32_t pos, unsigned which, float *want) {
    float got[80];
    qsf_kvcache_ops(c, l, which)
        ->load(got, which == 0 ? qsf_kvcache_k(c, l, h) : qsf_kvcache_v(c, l, h), (int)which, pos,
               c->spec[l].dim);
    if (n_history == 0) round_row(c, l, which, c->types, want);
    for (size_t i = 0; i < n_history; i++) {
        const qk_kv now = qsf_kv_stored(&c->spec[l], history[i], which);
        if (i == 0 || now != qsf_kv_stored(&c->spec[l], history[i - 1], which))
            round_row(c, l, which, history[i], want);
    }
    assert_memory_equal(got, want, c->spec[l].dim * sizeof *want);
}

static void check_rows(const QsfKvCache *c) {
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t p = 0; p < CTX; p++) {
            for (unsigned i = 0; i < HEADS * 2; i++) {
                float want[DIM];
                for (size_t d = 0; d < DIM; d++) want[d] = value(l, p, i % 2, i / 2 * DIM + d);
                expect(c, l, i / 2, p, i % 2, want);
            }
        }
    }
}

static void test_rows(void **state) {
    (void)state;
    qk_table t;
    qk_table_init(&t, qk_cpu_best());
    for (int kind = 0; kind < QK_KV_N; kind++) {
        QsfLedger ledger;
        QsfKvCache c;
        QsfErr err = { 0 };
        qsf_ledger_init(&ledger, 0);
        qsf_test_expect_ok(qsf_kvcache_init(&c, spec, LAYERS, &t, same(kind), CTX, &ledger, &err), &err);
        assert_true(ledger.used[QSF_MEM_KV] >=
                    2ull * LAYERS * HEADS * t.kv[kind].tile_bytes(DIM) * ((CTX + 15) / 16));
        fill(&c);
        check_rows(&c);
        qsf_kvcache_free(&c);
        assert_int_equal(ledger.total, 0);
        qsf_ledger_destroy(&ledger);
    }
}

/* What a cache cannot have becomes the next type with more bits. */
static void test_stored(void **state) {
    (void)state;
    const QsfKvSpec even = { .heads = 1, .dim = 24 }, odd = { .heads = 1, .dim = 10 },
                    latent = { .heads = 1, .dim = 64, .v_is_k = true };
    const QsfKvTypes four = same(QK_KV_Q4), six = same(QK_KV_Q6);
    assert_int_equal(qsf_kv_stored(&even, four, 0), QK_KV_Q4);
    assert_int_equal(qsf_kv_stored(&even, six, 1), QK_KV_Q8);
    assert_int_equal(qsf_kv_stored(&odd, four, 0), QK_KV_F16);
    const QsfKvSpec once = { .heads = 1, .dim = 32, .read_once = true }, shared = { .heads = 1, .dim = 32 };
    assert_int_equal(qsf_kv_stored(&once, same(QK_KV_Q2), 0), QK_KV_Q2);
    assert_int_equal(qsf_kv_stored(&shared, same(QK_KV_Q2), 0), QK_KV_Q4);
    assert_int_equal(qsf_kv_stored(&even, same(QK_KV_Q2), 1), QK_KV_Q4);
    assert_true(qsf_kv_has_recent(&once, (QsfKvTypes){ QK_KV_F16, QK_KV_Q2 }));
    assert_int_equal(qsf_kv_recent_type(&once, (QsfKvTypes){ QK_KV_F16, QK_KV_Q2 }, 0), QK_KV_F16);
    assert_int_equal(qsf_kv_recent_type(&once, (QsfKvTypes){ QK_KV_F16, QK_KV_Q2 }, 1), QK_KV_Q8);
    assert_false(qsf_kv_has_recent(&once, four));
    assert_int_equal(qsf_kv_stored(&latent, four, 0), QK_KV_Q8);
    assert_true(qsf_kv_types_equal(qsf_kv_types_used(&odd, 1, four), same(QK_KV_F16)));
    assert_true(qsf_kv_types_equal(qsf_kv_types_used(&latent, 1, six), same(QK_KV_Q8)));
    const QsfKvSpec both[] = { latent, even };
    assert_true(qsf_kv_types_equal(qsf_kv_types_used(both, 2, four), four));
    const QsfKvTypes mixed = { QK_KV_Q8, QK_KV_F16 };
    assert_true(qsf_kv_types_equal(qsf_kv_types_used(both, 2, mixed), mixed));
    /* fewer bits never take more memory */
    for (uint32_t dim = 1; dim <= 300; dim++) {
        const QsfKvSpec s = { .heads = 1, .dim = dim, .read_once = true };
        for (int i = 1; i < QK_KV_N; i++)
            assert_true(qsf_kv_tile(&s, same(i), 0) <= qsf_kv_tile(&s, same(i - 1), 0));
    }
}

static void test_truncate(void **state) {
    (void)state;
    QsfKvCache c = { .n_past = 5 };
    qsf_kvcache_truncate(&c, 9);
    assert_int_equal(c.n_past, 5);
    qsf_kvcache_truncate(&c, 2);
    assert_int_equal(c.n_past, 2);
    qsf_kvcache_truncate(&c, 0);
    assert_int_equal(c.n_past, 0);
    qsf_kvcache_free(&c);
}

static void test_budget(void **state) {
    (void)state;
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 100);
    assert_int_equal(qsf_kvcache_init(&c, spec, LAYERS, &t, same(QK_KV_F16), CTX, &ledger, &err),
                     QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "KV cache");
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

/* --- another context length --- */

typedef struct Shape {
    uint32_t layers, heads, dim;
} Shape;

/* A number that f16 holds exactly, for one element of one position. */
static float mark(uint32_t layer, uint32_t pos, unsigned which, size_t i) {
    return (float)((layer * 977 + pos * 131 + which * 59 + i * 7) % 2048);
}

static void store_position(QsfKvCache *c, uint32_t pos) {
    float k[160], v[160];
    for (uint32_t l = 0; l < c->n; l++) {
        const size_t n = (size_t)c->spec[l].heads * c->spec[l].dim;
        assert_true(n <= 160 && pos < c->ctx);
        for (size_t i = 0; i < n; i++) {
            k[i] = mark(l, pos, 0, i);
            v[i] = mark(l, pos, 1, i);
        }
        qsf_kvcache_store(c, l, pos, k, v);
    }
}

static void check_positions(const QsfKvCache *c) {
    for (uint32_t l = 0; l < c->n; l++) {
        const size_t dim = c->spec[l].dim;
        for (uint32_t p = 0; p < c->n_past; p++) {
            for (unsigned i = 0; i < c->spec[l].heads * 2; i++) {
                float want[80];
                if (i % 2 == 1 && c->spec[l].v_is_k) continue;
                for (size_t d = 0; d < dim; d++) want[d] = mark(l, p, i % 2, i / 2 * dim + d);
                expect(c, l, i / 2, p, i % 2, want);
            }
        }
    }
}

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static size_t resident_pages(const QsfKvCache *c) {
    static unsigned char in[1 << 16];
    size_t pages = c->map.bytes / 4096, n = 0;
    assert_true(pages <= sizeof in);
    assert_int_equal(mincore(c->mem, c->map.bytes, in), 0);
    for (size_t i = 0; i < pages; i++) n += in[i] & 1;
    return n;
}

static void check_charge(const QsfKvCache *c, const QsfLedger *ledger, uint32_t reserved) {
    const uint64_t bytes = qsf_lend_kv_bytes(c->spec, c->n, c->types, c->ctx, reserved);
    assert_int_equal(c->reserved, reserved);
    assert_int_equal(ledger->used[QSF_MEM_KV], bytes);
    if (sysconf(_SC_PAGESIZE) == 4096) assert_true(resident_pages(c) * 4096 <= bytes);
}

/* Random steps: positions are added and dropped, the context grows and shrinks. */
static void random_resizes(const QsfKvSpec *shape, uint32_t n, const qk_table *t, QsfKvTypes types,
                           uint32_t seed) {
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, shape, n, t, types, 1 + seed % 50, &ledger, &err), &err);
    for (int step = 0; step < 40; step++) {
        uint32_t more = next_random(&seed) % 40;
        while (more-- > 0 && c.n_past < c.ctx) store_position(&c, c.n_past++);
        if (next_random(&seed) % 4 == 0) qsf_kvcache_truncate(&c, next_random(&seed) % (c.n_past + 1));
        uint32_t ctx = c.n_past + next_random(&seed) % (step % 3 == 0 ? 600 : 30);
        if (ctx == 0) ctx = 1;
        /* charged only in part: no more is touched, also while tiles move */
        const uint32_t reserved = c.n_past + next_random(&seed) % (c.ctx - c.n_past + 1);
        qsf_test_expect_ok(qsf_kvcache_reserve(&c, reserved, &err), &err);
        check_charge(&c, &ledger, reserved);
        qsf_test_expect_ok(qsf_kvcache_resize(&c, ctx, c.types, &err), &err);
        assert_int_equal(c.ctx, ctx);
        check_charge(&c, &ledger, reserved < ctx ? reserved : ctx);
        check_positions(&c);
        qsf_test_expect_ok(qsf_kvcache_reserve(&c, ctx, &err), &err);
        assert_int_equal(ledger.used[QSF_MEM_KV], c.map.bytes);
        uint64_t least = 0;
        for (uint32_t i = 0; i < n; i++) least += qsf_kv_spec_bytes(&shape[i], types, ctx);
        assert_true(c.map.bytes >= least && c.map.bytes < least + 4096 && c.map.bytes % 4096 == 0);
        check_positions(&c);
    }
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void test_resize(void **state) {
    (void)state;
    static const Shape shapes[] = { { 1, 1, 2 }, { 3, 2, 10 }, { 2, 4, 16 }, { 5, 1, 64 }, { 1, 8, 6 } };
    qk_table t;
    qk_table_init(&t, QK_LEVEL_REF);
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes * QK_KV_N; i++) {
        const Shape *s = &shapes[i / QK_KV_N];
        QsfKvSpec shape[5]; /* no two layers alike, or all */
        for (uint32_t l = 0; l < s->layers; l++)
            shape[l] = (QsfKvSpec){ .block = l,
                                    .heads = s->heads + i % 2 * (l % 2),
                                    .dim = s->dim + i % 2 * (l % 3) * 6,
                                    .v_is_k = (i + l) % 4 == 3 };
        for (uint32_t seed = 1; seed <= 8; seed++)
            random_resizes(shape, s->layers, &t,
                           (QsfKvTypes){ (qk_kv)(i % QK_KV_N), (qk_kv)(seed % QK_KV_N) }, seed * 77 + i);
    }
}

/* Other types, with another length or the same one, and back. Each position is stored once in
 * each type on the way. */
static void convert(const QsfKvSpec *shape, uint32_t n, const qk_table *t, QsfKvTypes from, QsfKvTypes to,
                    uint32_t seed) {
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    const uint32_t ctx = 1 + next_random(&seed) % 300, used = next_random(&seed) % (ctx + 1);
    const uint32_t other = used + next_random(&seed) % 200 + 1,
                   k = used + next_random(&seed) % (ctx - used + 1);
    const uint32_t reserved = k < other ? k : other;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, shape, n, t, from, ctx, &ledger, &err), &err);
    qsf_test_expect_ok(qsf_kvcache_reserve(&c, reserved, &err), &err);
    while (c.n_past < used) store_position(&c, c.n_past++);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, seed % 2 == 0 ? other : ctx, to, &err), &err);
    assert_true(qsf_kv_types_equal(c.types, to));
    history[0] = from;
    history[1] = to;
    history[2] = from;
    n_history = 2;
    check_charge(&c, &ledger, reserved);
    check_positions(&c);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, ctx, from, &err), &err);
    n_history = 3;
    check_charge(&c, &ledger, reserved < ctx ? reserved : ctx);
    check_positions(&c);
    n_history = 0;
    while (c.n_past < ctx && c.n_past < reserved) store_position(&c, c.n_past++);
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void test_convert(void **state) {
    (void)state;
    static const QsfKvSpec shape[] = { { .block = 0, .heads = 2, .dim = 16 },
                                       { .block = 1, .heads = 1, .dim = 34, .v_is_k = true },
                                       { .block = 2, .heads = 3, .dim = 24 } };
    qk_table t;
    qk_table_init(&t, qk_cpu_best());
    for (uint32_t i = 0; i < QK_KV_N * QK_KV_N * QK_KV_N * QK_KV_N; i++) {
        const uint32_t k = i / QK_KV_N, v = k / QK_KV_N;
        const QsfKvTypes from = { (qk_kv)(i % QK_KV_N), (qk_kv)(k % QK_KV_N) };
        const QsfKvTypes to = { (qk_kv)(v % QK_KV_N), (qk_kv)(v / QK_KV_N) };
        convert(shape, 3, &t, from, to, 31 * i + 1);
    }
}

/* Unused positions hold no pages, whether the context grew or shrank. */
static void test_untouched(void **state) {
    (void)state;
    static const uint32_t ctxs[] = { 8192, 500, 4096, 100, 101, 3000, 8192, 128 };
    const QsfKvSpec shape[] = { { .block = 0, .heads = 1, .dim = 64 },
                                { .block = 1, .heads = 1, .dim = 64 },
                                { .block = 2, .heads = 1, .dim = 64 } };
    if (sysconf(_SC_PAGESIZE) != 4096) skip();
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, shape, 3, &t, same(QK_KV_F16), 4096, &ledger, &err), &err);
    madvise(c.mem, c.map.bytes, MADV_NOHUGEPAGE);
    assert_int_equal(resident_pages(&c), 0);
    for (c.n_past = 0; c.n_past < 100; c.n_past++) store_position(&c, c.n_past);
    const size_t runs = 6, most = runs * (7 * t.kv[QK_KV_F16].tile_bytes(64) / 4096 + 2);
    for (size_t i = 0; i < sizeof ctxs / sizeof *ctxs; i++) {
        qsf_test_expect_ok(qsf_kvcache_resize(&c, ctxs[i], c.types, &err), &err);
        madvise(c.mem, c.map.bytes, MADV_NOHUGEPAGE);
        assert_true(resident_pages(&c) <= most);
        check_positions(&c);
    }
    qsf_kvcache_truncate(&c, 0);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, 4096, c.types, &err), &err);
    assert_int_equal(resident_pages(&c), 0);
    qsf_kvcache_free(&c);
    qsf_ledger_destroy(&ledger);
}

/* Not enough memory: nothing is lost, and the old length can be restored. */
static void test_resize_refused(void **state) {
    (void)state;
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, spec, LAYERS, &t, same(QK_KV_F32), 50, &ledger, &err), &err);
    for (c.n_past = 0; c.n_past < 50; c.n_past++) store_position(&c, c.n_past);
    assert_int_equal(qsf_kvcache_resize(&c, 49, c.types, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "50 are in use");
    qsf_err_clear(&err);
    qsf_ledger_set_limit(&ledger, ledger.total + 4096);
    assert_int_equal(qsf_kvcache_resize(&c, 5000, c.types, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "KV cache");
    qsf_err_clear(&err);
    assert_int_equal(c.ctx, 50);
    check_positions(&c);
    qsf_ledger_set_limit(&ledger, 0);
    for (int grow = 0; grow < 2; grow++) {
        qsf_mem_inject_failure(1);
        int rc = qsf_kvcache_resize(&c, grow ? 900 : 20 + c.n_past, c.types, &err);
        qsf_mem_inject_failure(0);
        qsf_err_clear(&err);
        assert_true(rc != QSF_OK || !grow);
        check_positions(&c);
        qsf_kvcache_truncate(&c, 30);
        qsf_test_expect_ok(qsf_kvcache_resize(&c, 400, c.types, &err), &err);
        check_positions(&c);
    }
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

/* --- rings --- */

enum { WINDOW = 40, RING = 1088 }; /* WINDOW + QSF_KV_SLACK in whole blocks */

static const QsfKvSpec ringed[] = { { .block = 0, .heads = 2, .dim = 8, .window = WINDOW },
                                    { .block = 1, .heads = 1, .dim = 8 } };

static void add_positions(QsfKvCache *c, uint32_t n) {
    while (n > 0) {
        const uint32_t pass = n < 100 ? n : 100;
        qsf_kvcache_will_store(c, pass);
        for (uint32_t i = 0; i < pass; i++) store_position(c, c->n_past + i);
        c->n_past += pass;
        n -= pass;
    }
}

/* The windowed cache holds the window before n_past, the other one everything. */
static void check_window(const QsfKvCache *c) {
    float got[8], want[8];
    for (uint32_t l = 0; l < 2; l++) {
        const uint32_t from = l == 0 && c->n_past > WINDOW ? c->n_past - WINDOW : 0;
        const uint32_t ring = qsf_kvcache_ring(c, l);
        assert_int_equal(ring, l == 0 && c->ctx > RING ? RING : 0);
        for (uint32_t p = from; p < c->n_past; p++) {
            qsf_kvcache_ops(c, l, 0)->load(got, qsf_kvcache_k(c, l, 0), 0, ring > 0 ? p % ring : p, 8);
            for (size_t d = 0; d < 8; d++) want[d] = mark(l, p, 0, d);
            assert_memory_equal(got, want, sizeof want);
        }
    }
}

static void test_ring(void **state) {
    (void)state;
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, ringed, 2, &t, same(QK_KV_F16), 9000, &ledger, &err), &err);
    assert_int_equal(c.map.bytes, qsf_kv_bytes(ringed, 2, same(QK_KV_F16), 9000));
    assert_true(c.map.bytes <= (4 * RING + 2 * 9008) / 16 * qk_kv_tile_bytes(QK_KV_F16, 8) + 4096);
    add_positions(&c, 900);
    assert_int_equal(qsf_kvcache_keeps(&c, 3), 3); /* nothing is overwritten yet */
    add_positions(&c, 2100);
    check_window(&c);
    /* Positions before 3000 - RING are overwritten. */
    assert_int_equal(qsf_kvcache_keeps(&c, 3000 - RING + WINDOW), 3000 - RING + WINDOW);
    assert_int_equal(qsf_kvcache_keeps(&c, 3000 - RING), 0);
    assert_int_equal(qsf_kvcache_keeps(&c, 0), 0);
    qsf_kvcache_truncate(&c, 2000);
    check_window(&c);
    /* Going back does not bring anything back, nor does another context. */
    assert_int_equal(qsf_kvcache_keeps(&c, 3000 - RING), 0);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, 2500, c.types, &err), &err);
    check_window(&c);
    add_positions(&c, 500);
    check_window(&c);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, 5000, c.types, &err), &err);
    check_window(&c);
    assert_int_equal(qsf_kvcache_keeps(&c, 3000 - RING), 0);
    qsf_kvcache_truncate(&c, 0);
    add_positions(&c, 1000);
    assert_int_equal(qsf_kvcache_keeps(&c, 3), 3);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, 1001, c.types, &err), &err); /* all of it fits: not a ring */
    check_window(&c);
    qsf_test_expect_ok(qsf_kvcache_resize(&c, 4000, c.types, &err), &err);
    check_window(&c);
    add_positions(&c, 3000);
    check_window(&c);
    qsf_kvcache_free(&c);
    qsf_ledger_destroy(&ledger);
}

/* A ring is converted as it lies. */
static void test_convert_ring(void **state) {
    (void)state;
    static const QsfKvTypes types[] = { { QK_KV_F32, QK_KV_F16 },
                                        { QK_KV_F16, QK_KV_F32 },
                                        { QK_KV_F32, QK_KV_F32 } };
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = { 0 };
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_kvcache_init(&c, ringed, 2, &t, same(QK_KV_F16), 9000, &ledger, &err), &err);
    add_positions(&c, 1000);
    add_positions(&c, 900);
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        qsf_test_expect_ok(qsf_kvcache_resize(&c, 9000, i % 2 == 0 ? types[i / 2] : same(QK_KV_F16), &err),
                           &err);
        check_window(&c);
        add_positions(&c, 700);
        check_window(&c);
    }
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_stored),
        cmocka_unit_test(test_truncate),       cmocka_unit_test(test_budget),
        cmocka_unit_test(test_resize),         cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_resize_refused), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_convert),        cmocka_unit_test(test_convert_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
