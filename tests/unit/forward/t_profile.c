/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of steps: the same logits with and without them, what is counted, and the names of kernels. */
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

#define N_STEPS 256

static char path[256];
static QsfStepTime times[N_STEPS];

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("profile.gguf"));
    return qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .wtype = 8 });
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void open_rig(QsfRig *r, qk_level level, bool stream) {
    QsfErr e = { 0 };
    const QsfRigOptions o = { .path = path, .threads = 2, .level = level, .stream = stream, .batch = 4 };
    qsf_test_expect_ok(qsf_rig_open(r, &o, &e), &e);
    assert_true(r->model.prog.n_steps <= N_STEPS);
    memset(times, 0, sizeof times);
}

/* Evaluates ten tokens in three passes, of which the last one computes logits, and one more. */
static void evaluate(QsfRig *r) {
    static const int32_t ids[] = { 1, 270, 5, 280, 9, 11, 290, 13, 260, 2 };
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, 10, NULL, NULL, &e), &e);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, 1, NULL, NULL, &e), &e);
}

static void test_same_logits(void **state) {
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        static float want[300];
        QsfProfile p = { .step = times };
        QsfRig r;
        open_rig(&r, QK_LEVEL_UNKNOWN, stream != 0);
        evaluate(&r);
        memcpy(want, qsf_forward_logits(r.fwd), sizeof want);
        (void)qsf_forward_truncate(r.fwd, 0);
        qsf_forward_profile(r.fwd, &p);
        evaluate(&r);
        assert_memory_equal(want, qsf_forward_logits(r.fwd), sizeof want);
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
}

static void test_counts(void **state) {
    QsfProfile p = { .step = times };
    QsfRig r;
    (void)state;
    open_rig(&r, QK_LEVEL_REF, true);
    const QsfProgram *prog = &r.model.prog;
    qsf_forward_profile(r.fwd, &p);
    evaluate(&r);
    for (uint32_t i = 0; i < prog->n_steps; i++) {
        /* Logits of one position in two of four passes. */
        const bool head = i >= prog->head_step;
        assert_int_equal(times[i].calls, head ? 2 : 4);
        assert_int_equal(times[i].positions, head ? 2 : 11);
        assert_true(times[i].ns > 0);
    }
    assert_int_equal(p.embed.calls, 4);
    assert_int_equal(p.embed.positions, 11);
    /* Four inputs of matrices in each of two blocks, and that of the head. */
    assert_int_equal(p.quantize[QK_ACT_Q8].calls, 4 * 2 * 4 + 2);
    assert_int_equal(p.quantize[QK_ACT_Q8K].calls, 0);
    qsf_forward_profile(r.fwd, NULL);
    evaluate(&r);
    assert_int_equal(times[0].calls, 4);
    assert_int_equal(p.embed.calls, 4);
    qsf_rig_close(&r);
}

/* Finds a kernel of the steps of one kind; returns its level, NULL if they do not use it. */
static const char *level_of(const QsfRig *r, QsfOp op, const char *name) {
    QsfKernel k[QSF_STEP_KERNELS];
    for (uint32_t i = 0; i < r->model.prog.n_steps; i++) {
        const QsfStep *s = &r->model.prog.step[i];
        if (s->op != op) continue;
        const unsigned n = qsf_forward_step_kernels(r->fwd, s, k);
        assert_true(n > 0 && n <= QSF_STEP_KERNELS);
        for (unsigned j = 0; j < n; j++)
            if (strcmp(k[j].name, name) == 0) return k[j].level;
    }
    return NULL;
}

static void test_names(void **state) {
    QsfRig r;
    (void)state;
    open_rig(&r, QK_LEVEL_REF, false);
    assert_string_equal(level_of(&r, QSF_OP_LINEAR, "q8_0_ref"), "ref");
    assert_string_equal(level_of(&r, QSF_OP_LINEAR, "silu_mul"), "ref");
    assert_string_equal(level_of(&r, QSF_OP_NORM, "rms_norm"), "ref");
    assert_string_equal(level_of(&r, QSF_OP_ATTENTION, "f16_attend"), "ref");
    assert_string_equal(qsf_forward_quantize_kernel(r.fwd, QK_ACT_Q8).level, "ref");
    assert_null(level_of(&r, QSF_OP_NORM, "layer_norm"));
    qsf_rig_close(&r);
    open_rig(&r, QK_LEVEL_UNKNOWN, false);
    const char *name = r.table.weight[QK_Q8_0].name, *level = level_of(&r, QSF_OP_LINEAR, name);
    assert_non_null(level);
    assert_string_equal(strrchr(name, '_') + 1, level); /* the name of a matrix kernel ends with its level */
    qsf_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_logits), cmocka_unit_test(test_counts),
                                        cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
