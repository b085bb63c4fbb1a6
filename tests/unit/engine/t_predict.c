/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Predictions: the arithmetic, and that measuring a real file gives plausible figures within its time and
 * memory. */
#include <math.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/engine/predict.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

#define MIB (1ull << 20)

static void test_arithmetic(void **state) {
    (void)state;
    QsfPrediction p;
    qsf_predict_from(&p, 100, 400, 1000, 8000); /* the disk allows 10, computation 20 */
    assert_true(p.disk_bps == 1000 && p.compute_bps == 8000);
    assert_true(p.disk_tps == 10 && p.compute_tps == 20 && p.tps == 10);
    qsf_predict_from(&p, 100, 400, 4000, 8000);
    assert_true(p.disk_tps == 40 && p.tps == 20);
    qsf_predict_from(&p, 0, 400, 1000, 8000); /* nothing streams: the disk does not limit it */
    assert_true(p.disk_bps == 0 && p.disk_tps == 0 && p.tps == 20);
    qsf_predict_from(&p, 100, 400, 0, 8000); /* not measurable */
    assert_true(p.disk_tps == 0 && p.tps == 0);
    qsf_predict_from(&p, 100, 400, 1000, 0);
    assert_true(p.compute_tps == 0 && p.tps == 0);
    qsf_predict_from(&p, 0, 0, 0, 0);
    assert_true(p.tps == 0);
}

static void test_shapes_only(void **state) {
    (void)state;
    const QsfShapeSpec spec = { 2, 256, 4, 2, 704, 333, 64, false, 2 };
    QsfModel m;
    qk_table t;
    QsfPrediction out;
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_shape_model(&m, &spec);
    const QsfPlan p = { .budget = 64 * MIB, .streamed_bytes = 1, .weight_bytes = 2 };
    qsf_predict(&out, &p, &m, &t, NULL); /* no file to read from */
    assert_true(out.tps == 0 && out.disk_bps == 0 && out.compute_bps == 0);
    qsf_shape_model_free(&m);
}

static void check(const QsfRig *r, const QsfPlan *p, QsfPool *pool) {
    QsfPrediction out;
    const uint64_t t0 = qsf_test_cpu_ns();
    qsf_predict(&out, p, &r->model, &r->table, pool);
    assert_true(qsf_test_cpu_ns() - t0 < 10000000000u); /* 0.4 s on an idle machine */
    assert_true(out.compute_bps > 1e5 && out.compute_bps < 1e13);
    assert_true(fabs(out.compute_tps * (double)p->weight_bytes / out.compute_bps - 1) < 1e-9);
    assert_true(out.disk_bps >= 0 && (p->streamed_bytes > 0 || out.disk_bps == 0));
    if (p->streamed_bytes == 0) assert_true(out.tps == out.compute_tps);
}

static void test_real_file(void **state) {
    (void)state;
    const char *path = qsf_test_data("models/stories260K.gguf");
    QsfErr err = { 0 };
    QsfRig r;
    if (path == NULL) skip();
    const QsfRigOptions o = { .path = path, .threads = 2, .level = QK_LEVEL_UNKNOWN };
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    QsfPlan p = r.plan;
    check(&r, &p, r.pool);
    check(&r, &p, NULL);
    p.streamed_bytes = p.weight_bytes / 2;
    check(&r, &p, r.pool);
    p.budget = 8 * MIB; /* a smaller buffer */
    check(&r, &p, r.pool);
    QsfPrediction out;
    p.exact = true; /* other kernels: not measured */
    qsf_predict(&out, &p, &r.model, &r.table, r.pool);
    assert_true(out.compute_bps == 0 && out.tps == 0);
    p.exact = false;
    p.budget = 1000; /* less than a page */
    qsf_predict(&out, &p, &r.model, &r.table, r.pool);
    assert_true(out.compute_bps == 0 && out.disk_bps == 0 && out.tps == 0);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* A kernel that is slow unless it reads in the way `fast`. */
static qk_way fast;
static void (*real_matmul16)(const qk_mm *m, size_t row0, size_t row1);
static void slow_matmul16(const qk_mm *m, size_t row0, size_t row1) {
    real_matmul16(m, row0, row1);
    for (uint64_t t0 = qsf_now_ns(); m->way != fast && qsf_now_ns() - t0 < 3000000u;) {
    }
}

static void test_ways(void **state) {
    (void)state;
    const QsfTinySpec spec = { .hidden = 256, .heads = 4, .ffn = 512, .wtype = 8 };
    const char *path = qsf_test_tmp("ways.gguf");
    QsfErr err = { 0 };
    QsfRig r;
    qk_table t;
    qk_table_init(&t, qk_cpu_best());
    if (!(qsf_interleaved_types(&t) >> QK_Q8_0 & 1)) skip(); /* a build with the reference only */
    if (qsf_test_emulated("measured ways")) skip();
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    const QsfRigOptions o = { .path = path, .threads = 2, .level = QK_LEVEL_UNKNOWN };
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    QsfPlan p = r.plan;
    p.budget = 64 * MIB;
    real_matmul16 = t.weight[QK_Q8_0].matmul16;
    t.weight[QK_Q8_0].matmul16 = slow_matmul16;
    const qk_way other = t.weight[QK_Q4_K].way;
    for (fast = 0; fast < QK_WAY_N; fast++) {
        int tries = 0; /* a way that loses one round because of other programs is not chosen */
        do qsf_measure_ways(&t, &p, &r.model, fast % 2 == 0 ? r.pool : NULL);
        while (t.weight[QK_Q8_0].way != fast && ++tries < 100);
        assert_int_equal(t.weight[QK_Q8_0].way, fast);
        assert_int_equal(t.weight[QK_Q4_K].way, other); /* not in the model */
    }
    const qk_way last = t.weight[QK_Q8_0].way;
    fast = QK_WAY_TURNS;
    p.exact = true;
    qsf_measure_ways(&t, &p, &r.model, NULL);
    p.exact = false;
    p.budget = 1000;
    qsf_measure_ways(&t, &p, &r.model, NULL);
    assert_int_equal(t.weight[QK_Q8_0].way, last); /* neither could be measured */
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_shapes_only),
                                        cmocka_unit_test(test_real_file), cmocka_unit_test(test_ways) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
