/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks: drafts of a model whose block computes what the model does; the same logits and drafts
 * however positions came, were taken back, and are read; files without the tensors of a block. */
#include <stdlib.h>

#include "src/forward/nextn.h"
#include "src/model/nextn.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 300, N = 40, DRAFTS = 4 };

static int32_t ids[N];

static const char *write_model(const QsfTinyNextn *k) {
    static char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("nextn.gguf"));
    assert_int_equal(qsf_test_write_tiny_nextn(path, k), 0);
    return path;
}

/* ---- a model and its blocks ---- */

typedef struct Both {
    QsfRig rig;
    QsfNextn *x;
} Both;

/* most: bytes of a plan of the blocks. */
static void open_both(Both *b, const QsfTinyNextn *k, const QsfRigOptions *o, bool borrow, uint64_t most) {
    QsfErr err = { 0 };
    QsfRigOptions own = *o;
    uint64_t rows[QSF_MEM_N] = { 0 };
    own.path = write_model(k);
    own.k_type = own.v_type = "f16";
    qsf_test_expect_ok(qsf_rig_open(&b->rig, &own, &err), &err);
    const QsfPlanOptions po = { .threads = b->rig.plan.threads, .pin_cap = UINT64_MAX, .k = -1, .v = -1 };
    const QsfForwardOptions fo = {
        .table = &b->rig.table, .pool = b->rig.pool, .ledger = &b->rig.ledger, .cancel = &b->rig.cancel
    };
    const uint64_t before = qsf_rig_leak(&b->rig);
    qsf_test_expect_ok(qsf_nextn_create(&b->x, &b->rig.model, 0, k->extra, borrow, &err), &err);
    qsf_test_expect_ok(qsf_nextn_plan(b->x, &po, b->rig.plan.ctx, b->rig.plan.kv, true, most, rows, &err),
                       &err);
    qsf_test_expect_ok(qsf_nextn_load(b->x, b->rig.fwd, &fo, &err), &err);
    uint64_t planned = 0;
    for (unsigned i = 0; i < QSF_MEM_N; i++) planned += rows[i];
    assert_in_range(qsf_rig_leak(&b->rig) - before, 1, planned);
}

static void close_both(Both *b) {
    qsf_nextn_destroy(b->x);
    qsf_rig_close(&b->rig);
    assert_int_equal(qsf_rig_leak(&b->rig), 0);
}

static void eval(Both *b, uint32_t n, uint32_t piece) {
    QsfErr err = { 0 };
    for (uint32_t at = qsf_forward_n_past(b->rig.fwd), m; at < n; at += m) {
        m = n - at < piece ? n - at : piece;
        qsf_test_expect_ok(qsf_forward_eval(b->rig.fwd, ids + at, m, NULL, NULL, &err), &err);
    }
}

static int32_t likeliest(const Both *b) {
    float margin;
    return qsf_forward_likeliest(qsf_forward_logits(b->rig.fwd), b->rig.model.hp.n_vocab, &margin);
}

/* ---- tests ---- */

static void check_copies(const QsfTinyNextn *k, bool borrow, uint64_t most) {
    Both b;
    QsfErr err = { 0 };
    int32_t draft[DRAFTS], id;
    float margin;
    open_both(&b, k, &(QsfRigOptions){ .batch = 7, .level = QK_LEVEL_UNKNOWN }, borrow, most);
    assert_false(qsf_nextn_ready(b.x, NULL));
    eval(&b, N, N);
    qsf_nextn_prepare(b.x);
    id = likeliest(&b);
    for (unsigned round = 0; round < 3; round++) {
        assert_true(qsf_nextn_ready(b.x, NULL));
        assert_int_equal(qsf_nextn_draft(b.x, id, DRAFTS, 0, draft, &margin), DRAFTS);
        for (unsigned i = 0; i < DRAFTS; i++) {
            qsf_test_expect_ok(qsf_forward_eval(b.rig.fwd, &id, 1, NULL, NULL, &err), &err);
            id = likeliest(&b);
            assert_int_equal(draft[i], id);
        }
    }
    close_both(&b);
}

/* Each block says what the model says. */
static void test_copies(void **state) {
    (void)state;
    for (uint32_t extra = 1; extra <= 3; extra += 2)
        check_copies(&(QsfTinyNextn){ .announced = extra, .extra = extra, .copies = true }, true, UINT64_MAX);
}

/* Also with the sketch of a large head, the model's or one that is read twice. */
static void test_sketch(void **state) {
    (void)state;
    const QsfTinyNextn k = { .announced = 1, .extra = 1, .copies = true, .vocab = 33000 };
    check_copies(&k, true, UINT64_MAX);
    check_copies(&k, false, UINT64_MAX);
}

typedef struct Result {
    float logits[N][VOCAB];
    int32_t draft[2][DRAFTS];
} Result;

static void on_logits(void *arg, uint32_t pos, const float *logits) {
    Result *r = arg;
    memcpy(r->logits[pos], logits, sizeof r->logits[pos]);
}

/* Position 20 is reached twice, with drafts in between, and other tokens after it the first time. */
static void run_ways(const QsfRigOptions *o, bool borrow, uint64_t most, bool back, Result *out) {
    Both b;
    float margin;
    open_both(&b, &(QsfTinyNextn){ .announced = 2, .extra = 2 }, o, borrow, most);
    memset(out, 0, sizeof *out);
    if (back) {
        eval(&b, 20, 6);
        assert_int_equal(qsf_nextn_draft(b.x, 5, DRAFTS, 0, out->draft[0], &margin), DRAFTS);
        for (uint32_t i = 20; i < 26; i++) ids[i] += 3;
        eval(&b, 26, 3);
        for (uint32_t i = 20; i < 26; i++) ids[i] -= 3;
        assert_int_equal(qsf_forward_truncate(b.rig.fwd, 20), 20);
        assert_true(qsf_nextn_ready(b.x, NULL));
    } else {
        eval(&b, 20, N);
    }
    assert_int_equal(qsf_nextn_draft(b.x, 9, DRAFTS, 0, out->draft[0], &margin), DRAFTS);
    eval(&b, N, back ? 1 : N);
    assert_int_equal(qsf_nextn_draft(b.x, 5, DRAFTS, 0, out->draft[1], &margin), DRAFTS);
    qsf_nextn_watch(b.x, 1, on_logits, out);
    assert_int_equal(qsf_forward_truncate(b.rig.fwd, 0), 0);
    eval(&b, N, back ? 11 : N);
    close_both(&b);
}

static void test_same(void **state) {
    (void)state;
    Result *want = malloc(sizeof *want), *have = malloc(sizeof *have);
    assert_true(want != NULL && have != NULL);
    run_ways(&(QsfRigOptions){ .threads = 1 }, true, UINT64_MAX, false, want);
    run_ways(&(QsfRigOptions){ .threads = 2, .batch = 5 }, true, UINT64_MAX, true, have);
    assert_memory_equal(have, want, sizeof *have);
    /* Nothing of the model is pinned, and little of its blocks. */
    run_ways(&(QsfRigOptions){ .threads = 1, .stream = true }, false, 700u << 10, true, have);
    assert_memory_equal(have, want, sizeof *have);
    free(want);
    free(have);
}

/* A head that streams cannot be lent. */
static void test_head(void **state) {
    (void)state;
    Both b;
    const char *why;
    open_both(&b, &(QsfTinyNextn){ .announced = 1, .extra = 1 }, &(QsfRigOptions){ .stream = true }, true,
              UINT64_MAX);
    eval(&b, 4, 4);
    assert_false(qsf_nextn_ready(b.x, &why));
    assert_string_equal(why, "the head is not in memory");
    close_both(&b);
}

static void test_missing(void **state) {
    (void)state;
    char notice[400];
    QsfModel m, x;
    QsfErr err = { 0 };
    QsfLedger ledger;
    qsf_ledger_init(&ledger, 0);
    const char *path = write_model(&(QsfTinyNextn){ .announced = 2, .extra = 1 });
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    assert_int_equal(qsf_nextn_count(&m), 1);
    qsf_nextn_notice(&m, notice, sizeof notice);
    assert_string_equal(notice, "");
    assert_int_equal(qsf_nextn_open(&x, &m, 1, true, &err), QSF_E_MODEL);
    assert_non_null(strstr(err.msg, "'blk.3.nextn.eh_proj.weight' is missing"));
    err = (QsfErr){ 0 };
    assert_int_equal(qsf_nextn_open(&x, &m, 2, true, &err), QSF_E_MODEL);
    assert_non_null(strstr(err.msg, "no next-token block 2"));
    qsf_model_close(&m);
    err = (QsfErr){ 0 };
    path = write_model(&(QsfTinyNextn){ .announced = 1, .extra = 0 });
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    qsf_nextn_notice(&m, notice, sizeof notice);
    assert_non_null(strstr(notice, "announces a next-token block (hy_v3.nextn_predict_layers is 1)"));
    qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_copies), cmocka_unit_test(test_sketch),
                                        cmocka_unit_test(test_same), cmocka_unit_test(test_head),
                                        cmocka_unit_test(test_missing) };
    for (int i = 0; i < N; i++) ids[i] = (i * 7919 + 1) % VOCAB;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
