/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory plan: sums hold, the order of giving way holds, refusals tell the truth. */
#include "src/stream/plan.h"
#include "src/stream/units.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

#define MIB (1ull << 20)
enum { Q4_0 = 2, F32 = 0 };

static const QsfShapeSpec small = {22, 2048, 32, 4, 5632, 32000, 2048, false, Q4_0};  /* 1.1B */
static const QsfShapeSpec big = {32, 4096, 32, 32, 11008, 32000, 4096, false, Q4_0};  /* 7B */
static const QsfShapeSpec tied = {
    16, 2048, 32, 8, 8192, 128256, 131072, true, Q4_0
}; /* 1B, large vocabulary */
static const QsfShapeSpec tiny = {5, 64, 8, 4, 172, 512, 512, true, F32};             /* 260K */
static const QsfShapeSpec *const shapes[] = {&small, &big, &tied, &tiny};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static QsfPlanOptions options(uint64_t budget) {
    return (QsfPlanOptions){ .budget = budget,
                             .available = 16384 * MIB,
                             .kv = -1,
                             .pin_cap = UINT64_MAX,
                             .threads = 2,
                             .base_bytes = 6 * MIB,
                             .tokenizer_bytes = 3 * MIB,
                             .meta_bytes = MIB / 4,
                             .transcript_bytes = MIB / 2 };
}

static uint64_t sum_of(const uint64_t *rows) {
    uint64_t sum = 0;
    for (int i = 0; i < QSF_MEM_N; i++) sum += rows[i];
    return sum;
}

/* What must be true of every plan. */
static void check_plan(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o) {
    uint64_t pinned = 0, streamed = 0;
    assert_int_equal(sum_of(p->rows), p->total);
    assert_true(p->total <= p->budget);
    assert_int_equal(p->n_units, qsf_unit_count(m));
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        if (p->pinned[i]) pinned += u.bytes;
        else streamed += u.bytes;
        if (!p->pinned[i]) assert_true(qsf_unit_chunk_items(&u, u.items, p->slot_bytes) > 0);
    }
    assert_int_equal(pinned, p->pinned_bytes);
    assert_int_equal(streamed, p->streamed_bytes);
    assert_int_equal(pinned + streamed, p->weight_bytes);
    assert_true(pinned <= o->pin_cap);
    assert_true(p->rows[QSF_MEM_SLOTS] == p->n_slots * p->slot_bytes);
    assert_true(streamed == 0 || p->n_slots > 0);
    assert_true(p->ctx >= 1 && p->batch >= 1 && p->batch <= 512);
    assert_true(p->rows[QSF_MEM_KERNEL] >= MIB + p->budget / 1000 * 3);
}

static void test_forty_budgets(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        QsfModel m;
        qsf_shape_model(&m, shapes[s]);
        QsfPlanOptions o = options(0);
        uint64_t least = qsf_plan_smallest(&m, &o), most = least * 4 + 2048 * MIB, last = 0;
        for (int i = 0; i <= 40; i++) {
            QsfPlan p;
            QsfErr err = {0};
            o.budget = least + (most - least) / 40 * (uint64_t)i;
            qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
            check_plan(&m, &p, &o);
            assert_true(p.budget == o.budget);
            assert_true(p.ctx >= last || p.streamed_bytes == 0); /* more memory never shortens the context */
            last = p.ctx;
            qsf_plan_free(&p);
        }
        qsf_shape_model_free(&m);
    }
}

static uint64_t advised(const QsfErr *err) {
    const char *last = strrchr(err->msg, '\n');
    unsigned long long mb = 0;
    int end = 0;
    if (last == NULL || sscanf(last, "\nsmallest budget that works: %llu MB%n", &mb, &end) != 1 ||
        last[end] != '\0') {
        fail_msg("no advice at the end of: %s", err->msg);
    }
    return mb * MIB;
}

/* The smallest budget works and one MiB less does not; the refusal names one that works even when the program
 * starts out a little bigger the next time, and at most one MiB more than the smallest. */
static void test_smallest(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SHAPES * 4; s++) {
        QsfModel m;
        QsfPlan p;
        QsfErr err = {0};
        qsf_shape_model(&m, shapes[s % N_SHAPES]);
        QsfPlanOptions o = options(0);
        if (s / N_SHAPES == 1) o.ctx = 300;
        if (s / N_SHAPES == 2) o.pin_cap = 0;
        if (s / N_SHAPES == 3) o.batch = 100, o.exact = true;
        o.budget = qsf_plan_smallest(&m, &o);
        assert_int_equal(o.budget % MIB, 0);
        qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
        check_plan(&m, &p, &o);
        qsf_plan_free(&p);
        uint64_t smallest = o.budget;
        o.budget -= MIB;
        assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
        qsf_test_expect_err(&err, QSF_E_BUDGET, "sum ");
        o.budget = advised(&err);
        assert_true(o.budget == smallest || o.budget == smallest + MIB);
        o.base_bytes += s % 2 == 0 ? 200 * 1024 : 0;
        qsf_err_clear(&err);
        qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
        qsf_plan_free(&p);
        qsf_shape_model_free(&m);
    }
}

static void test_refusal_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(5 * MIB);
    o.ctx = 2048;
    assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
    for (int i = 0; i < QSF_MEM_N; i++) {
        bool listed = strstr(err.msg, qsf_mem_cat_name((QsfMemCat)i)) != NULL;
        assert_true(listed || i == QSF_MEM_EMBED);
    }
    assert_non_null(strstr(err.msg, "sum "));
    assert_non_null(strstr(err.msg, "--ctx"));
    assert_non_null(strstr(err.msg, "5 MB"));
    qsf_shape_model_free(&m);
}

static void test_user_values_stay(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(0);
    o.ctx = 1000;
    o.batch = 48;
    o.kv = QK_KV_F32;
    for (o.budget = qsf_plan_smallest(&m, &o); o.budget < 900 * MIB; o.budget += 37 * MIB) {
        qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
        check_plan(&m, &p, &o);
        assert_int_equal(p.ctx, 1000);
        assert_int_equal(p.batch, 48);
        assert_int_equal(p.kv, QK_KV_F32);
        qsf_plan_free(&p);
    }
    qsf_shape_model_free(&m);
}

static void test_pin_cap(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(2000 * MIB);
    o.pin_cap = 0;
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    assert_int_equal(p.pinned_bytes, 0);
    assert_int_equal(p.streamed_bytes, p.weight_bytes);
    assert_true(p.n_slots == 2 && !p.embed_resident);
    qsf_plan_free(&p);
    o.pin_cap = 100 * MIB;
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    assert_true(p.pinned_bytes > 95 * MIB);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_all_fits(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(900 * MIB);
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    assert_true(p.n_slots == 0 && p.streamed_bytes == 0 && p.embed_resident && p.batch == 512 &&
                p.ctx == 2048);
    assert_string_equal(p.note, "");
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_auto(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(0);
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    assert_true(p.streamed_bytes == 0 && p.batch == 512);
    assert_true(p.budget < p.total + 4 * MIB); /* what it needs, not what there is */
    qsf_plan_free(&p);
    o.available = 800 * MIB;
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    assert_true(p.budget <= 400 * MIB && p.streamed_bytes > 0);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* Pinned units lie evenly: no quarter of the layers has much more than its share. */
static void test_spread(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &big);
    QsfPlanOptions o = options(2000 * MIB);
    o.ctx = 512;
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    uint64_t quarter[4] = {0}, sum = 0;
    for (uint32_t i = 0; i + 1 < p.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(&m, i, &u);
        if (p.pinned[i]) quarter[u.layer / 8] += u.bytes;
    }
    for (int i = 0; i < 4; i++) sum += quarter[i];
    for (int i = 0; i < 4; i++) {
        assert_true(quarter[i] > sum / 4 / 10 * 8);
        assert_true(quarter[i] < sum / 4 / 10 * 12);
    }
    assert_true(p.pinned_bytes > 1500 * MIB);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* A 7B model answers in 200 MB, with the context lowered and said so. */
static void test_7b_in_200(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &big);
    QsfPlanOptions o = options(QSF_BUDGET_DEFAULT);
    o.tokenizer_bytes = 4 * MIB;
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    check_plan(&m, &p, &o);
    assert_true(p.ctx >= QSF_CTX_MIN && p.ctx < 512); /* 512 tokens of f16 keys and values take 256 MB */
    assert_non_null(strstr(p.note, "context lowered from 4096 to"));
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = {0};
    qsf_shape_model(&m, &small);
    QsfPlanOptions o = options(200 * MIB);
    qsf_test_expect_ok(qsf_plan_make(&p, &m, &o, &err), &err);
    char *text = qsf_plan_text(&p);
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (int i = 0; i < QSF_MEM_N; i++) assert_non_null(strstr(text, qsf_mem_cat_name((QsfMemCat)i)));
    assert_non_null(strstr(text, "200.00 MB"));
    free(text);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forty_budgets), cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_refusal_text),  cmocka_unit_test(test_user_values_stay),
        cmocka_unit_test(test_pin_cap),       cmocka_unit_test(test_all_fits),
        cmocka_unit_test(test_auto),          cmocka_unit_test(test_spread),
        cmocka_unit_test(test_7b_in_200),     cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
