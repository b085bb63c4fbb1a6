/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans for whole ranges of budgets, models and options: the properties of all of them. */
#include "src/plan/layout.h"
#include "src/plan/units.h"
#include "tests/harness/plans.h"
#include "tests/harness/qsf_test.h"

/* A piece, its rounding, and the reserve for a few more columns of prefill. */
static uint64_t tolerance(const QsfPlan *p) {
    return p->slot_bytes + MIB + p->rows[QSF_MEM_ACTIVATIONS] / p->batch * 4;
}

/* A plan that was left the choice of the types, or of the context too, is as good as one for what it has
 * chosen; where the context was lowered, one step of it may be left. */
static void check_named(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o) {
    QsfPlanOptions named = *o;
    QsfPlan same, all;
    named.k = (int)p->kv.k;
    named.v = (int)p->kv.v;
    named.budget = p->budget;
    qsf_plans_make(&same, m, &named);
    assert_true(qsf_kv_types_equal(same.kv, p->kv));
    assert_int_equal(p->ctx, same.ctx);
    assert_true(p->pinned_bytes == same.pinned_bytes && p->total == same.total);
    assert_true(p->batch == same.batch && p->embed_rows == same.embed_rows);
    assert_true(p->n_slots == same.n_slots && p->slot_bytes == same.slot_bytes);
    named.ctx = p->ctx;
    qsf_plans_make(&all, m, &named);
    const uint64_t step = qsf_kv_bytes(m->prog.kv, m->prog.n_kv, p->kv, 32),
                   left = p->ctx < p->wanted_ctx ? (step > 2 * MIB ? step : 2 * MIB) : 0;
    assert_true(p->pinned_bytes + left >= all.pinned_bytes);
    qsf_plan_free(&same);
    qsf_plan_free(&all);
}

static unsigned bits_of(QsfKvTypes t) { return 64 * qsf_kv_type_bits(t.k) + qsf_kv_type_bits(t.v); }

/* Budgets from the smallest to twice what holds everything: all are met, more memory never lowers a type and,
 * with the same types, never pins less and never shortens the context; and the budget is used. */
static void sweep(const QsfModel *m, QsfPlanOptions o) {
    uint64_t least = qsf_plan_smallest(m, &o), last = 0, most;
    uint32_t last_ctx = 0;
    unsigned last_bits = 0;
    QsfPlan p;
    o.budget = 1ull << 40;
    qsf_plans_make(&p, m, &o);
    most = 2 * p.total;
    qsf_plan_free(&p);
    for (uint64_t i = 0; i <= 60; i++) {
        o.budget = i < 8 ? least + i * MIB : least + (most - least) / 60 * i;
        qsf_plans_make(&p, m, &o);
        qsf_plans_check(m, &p, &o);
        check_named(m, &p, &o);
        assert_int_equal(p.budget, o.budget);
        assert_true(bits_of(p.kv) >= last_bits);
        if (bits_of(p.kv) > last_bits) last = last_ctx = 0;
        last_bits = bits_of(p.kv);
        assert_true(p.pinned_bytes >= last);
        assert_true(p.ctx >= last_ctx || p.streamed_bytes == 0);
        if (p.pinned_bytes > 0 && p.streamed_bytes > 0) assert_true(p.budget - p.total <= tolerance(&p));
        last = p.pinned_bytes;
        last_ctx = p.ctx;
        qsf_plan_free(&p);
    }
    assert_int_equal(last, p.weight_bytes);
}

static void test_sweep(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_COUNT; s++) {
        QsfModel m;
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        QsfPlanOptions o = qsf_plans_options(0);
        sweep(&m, o);
        o.ctx = 300;
        sweep(&m, o);
        o.slots = 1;
        o.batch = 32;
        sweep(&m, o);
        o = qsf_plans_options(0);
        for (o.embedding = QSF_EMBEDDING_RESIDENT; o.embedding < QSF_EMBEDDING_N; o.embedding++) sweep(&m, o);
        qsf_shape_model_free(&m);
    }
}

/* With positions in the cache, which keep their types where that is possible. */
static void test_sweep_kept(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_COUNT; s++) {
        QsfModel m;
        if (s == QSF_SHAPE_TINY) continue; /* its context ends at 512 */
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        QsfPlanOptions o = qsf_plans_options(0);
        o.ctx_floor = 600;
        o.keep_k = o.keep_v = true;
        o.kv_now = (QsfKvTypes){ QK_KV_F16, QK_KV_F16 };
        sweep(&m, o);
        o.kv_now = (QsfKvTypes){ QK_KV_Q8, QK_KV_Q4 };
        sweep(&m, o);
        qsf_shape_model_free(&m);
    }
}

/* Lowering the types of a cache never costs memory, however short the context. */
static void test_choices(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_COUNT; s++) {
        QsfModel m;
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        const QsfProgram *p = &m.prog;
        for (uint32_t ctx = 1; ctx <= 4096; ctx += ctx < 64 ? 1 : ctx / 3) {
            uint64_t last = UINT64_MAX;
            for (unsigned i = 0; i < qsf_kv_choices(); i++) {
                const QsfKvTypes t = qsf_kv_choice(i);
                const uint64_t all = qsf_kv_bytes(p->kv, p->n_kv, t, ctx) +
                                     qsf_recurrent_bytes(p, t, qsf_checkpoint_count(p, t, ctx, 1ull << 40));
                assert_true(all <= last);
                last = all;
            }
        }
        qsf_shape_model_free(&m);
    }
}

/* The same with compressed layers among the others: less is pinned than fits only where the next thing to pin
 * is a whole layer. */
static void test_compressed(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_TINY; s++) {
        QsfModel m;
        QsfPlan p;
        QsfErr err = { 0 };
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        QsfCompressed *layers = qsf_plans_press(&m);
        QsfPlanOptions o = qsf_plans_options(0);
        for (o.slots = 0; o.slots < 4; o.slots += 3) {
            uint64_t least = qsf_plan_smallest(&m, &o), seen = 0;
            o.budget = least - MIB;
            assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
            for (uint64_t i = 0; i < 80; i++) {
                o.budget = i < 20 ? least + i * MIB : least + (i - 19) * least / 2;
                qsf_plans_make(&p, &m, &o);
                qsf_plans_check(&m, &p, &o);
                if (p.pinned_bytes > 0 && p.streamed_bytes > 0)
                    assert_true(p.budget - p.total <= tolerance(&p) + layers[0].whole_bytes);
                assert_true(p.streamed_bytes == 0 || p.disk_bytes < p.streamed_bytes ||
                            p.pinned_bytes > p.weight_bytes / 2);
                seen |= p.streamed_bytes == 0 ? 4 : p.pinned_bytes == 0 ? 1 : 2;
                qsf_plan_free(&p);
            }
            assert_int_equal(seen, 7); /* all, some or none of it was pinned */
        }
        qsf_shape_model_free(&m);
        free(layers);
    }
}

/* One megabyte at a time, where settings are adjusted. */
static void test_every_megabyte(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_COUNT; s++) {
        QsfModel m;
        QsfPlan p;
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        QsfPlanOptions o = qsf_plans_options(0);
        uint64_t last = 0, least;
        unsigned last_bits = 0;
        o.ctx = 256;
        least = qsf_plan_smallest(&m, &o);
        for (o.budget = least; o.budget < least + 150 * MIB; o.budget += MIB) {
            qsf_plans_make(&p, &m, &o);
            qsf_plans_check(&m, &p, &o);
            if (bits_of(p.kv) > last_bits) last = 0;
            last_bits = bits_of(p.kv);
            assert_true(p.pinned_bytes >= last);
            last = p.pinned_bytes;
            qsf_plan_free(&p);
        }
        assert_true(last > 0);
        qsf_shape_model_free(&m);
    }
}

/* The smallest budget works and one MiB less does not; the refusal names one that works even if the program
 * is a little larger the next time, and at most one MiB more than the smallest. */
static void check_smallest(const QsfModel *m, QsfPlanOptions o, uint64_t jitter) {
    QsfPlan p;
    QsfErr err = { 0 };
    uint64_t smallest = o.budget = qsf_plan_smallest(m, &o);
    assert_int_equal(o.budget % MIB, 0);
    qsf_plans_make(&p, m, &o);
    qsf_plans_check(m, &p, &o);
    qsf_plan_free(&p);
    o.budget -= MIB;
    assert_int_equal(qsf_plan_make(&p, m, &o, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "sum ");
    o.budget = qsf_plans_advised(&err);
    assert_true(o.budget == smallest || o.budget == smallest + MIB);
    o.base_bytes += jitter;
    qsf_plans_make(&p, m, &o);
    qsf_plan_free(&p);
}

static void test_smallest(void **state) {
    (void)state;
    for (size_t s = 0; s < QSF_SHAPE_COUNT * 6; s++) {
        QsfModel m;
        qsf_plans_open_shape(&m, (QsfPlanShape)(s % QSF_SHAPE_COUNT));
        QsfPlanOptions o = qsf_plans_options(0);
        if (s / QSF_SHAPE_COUNT == 1) o.ctx = 300;
        if (s / QSF_SHAPE_COUNT == 2) o.pin_cap = 0;
        if (s / QSF_SHAPE_COUNT == 3) o.batch = 100, o.exact = true;
        if (s / QSF_SHAPE_COUNT == 4) o.slots = 4, o.ctx_floor = 200;
        if (s / QSF_SHAPE_COUNT == 5) o.threads = 16, o.pin_cap = MIB / 2;
        check_smallest(&m, o, s % 2 == 0 ? 200 * 1024 : 0);
        qsf_shape_model_free(&m);
    }
}

static uint32_t pick(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u; /* Numerical Recipes */
    return (*seed >> 8) % n;
}

static QsfPlanOptions any_options(uint32_t *seed) {
    QsfPlanOptions o = qsf_plans_options(
        pick(seed, 9) == 0 ? 0 : (uint64_t)pick(seed, 1u << pick(seed, 24)) << pick(seed, 14));
    if (pick(seed, 3) == 0) o.ctx = 1 + pick(seed, 5000);
    if (pick(seed, 3) == 0) o.ctx_floor = pick(seed, 3000);
    if (pick(seed, 3) == 0) o.slots = pick(seed, 9);
    if (pick(seed, 3) == 0) o.batch = 1 + pick(seed, 512);
    if (pick(seed, 3) == 0) o.pin_cap = (uint64_t)pick(seed, 4000) * MIB / 3;
    if (pick(seed, 3) == 0) o.available = (uint64_t)pick(seed, 8000) * MIB;
    if (pick(seed, 4) == 0) o.threads = 1 + (int)pick(seed, 256);
    o.exact = pick(seed, 5) == 0;
    o.k = (int)pick(seed, QK_KV_N + 1) - 1;
    o.v = (int)pick(seed, QK_KV_N + 1) - 1;
    return o;
}

static QsfShapeSpec any_shape(uint32_t *seed) {
    uint32_t heads = 1u << pick(seed, 6), hidden = heads * 64;
    return (QsfShapeSpec){ .layers = 1 + pick(seed, 40),
                           .hidden = hidden,
                           .heads = heads,
                           .kv_heads = heads >> pick(seed, 2),
                           .ffn = 64 * (1 + pick(seed, 100)),
                           .vocab = 1 + pick(seed, 100000),
                           .ctx = 1 + pick(seed, 9000),
                           .tied = pick(seed, 2) == 0,
                           .dtype = pick(seed, 2) == 0 ? QSF_SHAPE_Q4_0 : QSF_SHAPE_F32 };
}

/* For any model and options: a plan that is valid, or a refusal whose advice works. */
static void test_any(void **state) {
    (void)state;
    uint32_t seed = 1, plans = 0;
    for (int i = 0; i < 3000; i++) {
        QsfModel m;
        QsfPlan p;
        QsfErr err = { 0 };
        QsfShapeSpec shape = any_shape(&seed);
        if (shape.kv_heads == 0) shape.kv_heads = 1;
        QsfPlanOptions o = any_options(&seed);
        if (o.ctx != 0 && o.ctx < o.ctx_floor) o.ctx = o.ctx_floor;
        qsf_plans_open(&m, &shape);
        int rc = qsf_plan_make(&p, &m, &o, &err);
        if (rc == QSF_E_BUDGET) {
            o.budget = qsf_plans_advised(&err);
            qsf_plans_make(&p, &m, &o);
        }
        assert_true(rc == QSF_OK || rc == QSF_E_BUDGET);
        qsf_plans_check(&m, &p, &o);
        if (o.ctx != 0) assert_int_equal(p.ctx, o.ctx);
        if (o.batch != 0) assert_int_equal(p.batch, o.batch < p.ctx ? o.batch : p.ctx);
        plans += rc == QSF_OK;
        qsf_plan_free(&p);
        qsf_shape_model_free(&m);
    }
    assert_true(plans > 500);
}

static void test_spread(void **state) {
    (void)state;
    static const unsigned percent[] = { 3, 10, 20, 35, 50, 65, 79, 85, 92, 97 };
    for (size_t s = 0; s < QSF_SHAPE_COUNT; s++) {
        QsfModel m;
        if (s == QSF_SHAPE_TINY) continue;
        qsf_plans_open_shape(&m, (QsfPlanShape)s);
        for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
            QsfPlan p;
            QsfPlanOptions o = qsf_plans_options(1ull << 40);
            o.ctx = 512;
            qsf_plans_make(&p, &m, &o);
            uint64_t all = p.weight_bytes;
            qsf_plan_free(&p);
            o.pin_cap = all / 100 * percent[i];
            o.budget = all + 1024 * MIB;
            qsf_plans_make(&p, &m, &o);
            qsf_plans_check(&m, &p, &o);
            qsf_plans_check_spread(&m, &p);
            assert_true(o.pin_cap - p.pinned_bytes < 2 * MIB);
            qsf_plan_free(&p);
        }
        qsf_shape_model_free(&m);
    }
}

/* A model no larger than the slots it would stream through gets a shorter context instead; it still streams
 * when told to. */
static void test_toy(void **state) {
    (void)state;
    const QsfShapeSpec toy = { 1, 256, 4, 4, 256, 1000, 4096, false, QSF_SHAPE_F32 };
    QsfModel m;
    QsfPlan p;
    bool shorter = false;
    qsf_plans_open(&m, &toy);
    QsfPlanOptions o = qsf_plans_options(0);
    uint64_t least = qsf_plan_smallest(&m, &o);
    for (o.budget = least + 4 * MIB; o.budget < least + 30 * MIB; o.budget += MIB / 2) {
        qsf_plans_make(&p, &m, &o);
        qsf_plans_check(&m, &p, &o);
        assert_true(p.n_slots == 0 && p.streamed_bytes == 0);
        shorter |= p.ctx >= 512 && p.ctx < 4096;
        qsf_plan_free(&p);
    }
    assert_true(shorter);
    sweep(&m, qsf_plans_options(0));
    o.pin_cap = MIB;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_true(p.n_slots == 4 && p.streamed_bytes > 0);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* The budget that a refused prompt names leaves what it needs, also where weights stream up to
 * a limit of pins. */
static void test_beside(void **state) {
    static const uint64_t texts[] = { 0, MIB, 3 * MIB, 40 * MIB, 900 * MIB };
    static const uint64_t pins[] = { UINT64_MAX, 20 * MIB };
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++) {
        uint64_t last = 0;
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            QsfPlanOptions o = qsf_plans_options(0);
            o.pin_cap = pins[i];
            o.budget = qsf_plan_smallest_beside(&m, &o, texts[k]);
            assert_true(o.budget >= last && o.budget % MIB == 0);
            last = o.budget;
            qsf_plans_make(&p, &m, &o);
            assert_true(p.budget - p.total + QSF_PLAN_MESSAGE >= texts[k]);
            assert_true(p.streamed_bytes == 0 || texts[k] <= QSF_PLAN_MESSAGE || pins[i] != UINT64_MAX);
            qsf_plan_free(&p);
        }
    }
    qsf_shape_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_kept),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_every_megabyte),
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_toy),
        cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
