/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frequencies of YaRN with and without rounding, with the numbers of gpt-oss. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "src/model/model.h"
#include "tests/harness/gguf_build.h"

#define PAIRS 32
#define BASE  150000.0
#define CTX   4096.0
#define SCALE 32.0

static QsfLedger ledger;

/* The pair that turns n times over the trained context, not rounded: huggingface/transformers
 * modeling_rope_utils.py, find_correction_dim. */
static double pair_of(double n) { return PAIRS * log(CTX / (n * 2 * acos(-1.0))) / log(BASE); }

static double expected(int i, bool truncate) {
    const double w = pow(BASE, -(double)i / PAIRS);
    const double low = truncate ? floor(pair_of(32)) : pair_of(32),
                 high = truncate ? ceil(pair_of(1)) : pair_of(1);
    const double ramp = fmin(1, fmax(0, (i - low) / (high - low)));
    return w / SCALE * ramp + w * (1 - ramp);
}

static void check(const char *more, bool truncate, double out[PAIRS]) {
    const char *const keys[] = { "llama.rope.scaling.type=str:yarn",
                                 "llama.rope.scaling.factor=float:32",
                                 "llama.rope.scaling.original_context_length=int:4096",
                                 "llama.rope.freq_base=float:150000",
                                 more,
                                 NULL };
    const char *path = qsf_test_tmp("rope.gguf");
    QsfModel m;
    QsfErr e = { 0 };
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .head_dim = 2 * PAIRS }), 0);
    qsf_test_expect_ok(qsf_model_open(&m, path, keys, &ledger, &e), &e);
    assert_int_equal(m.prog.n_ropes, 1);
    assert_int_equal(m.prog.rope[0].n_rot, 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        out[i] = m.prog.rope[0].freq[i];
        if (fabs(out[i] / expected(i, truncate) - 1) > 1e-9)
            fail_msg("pair %d: %g, expected %g", i, out[i], expected(i, truncate));
    }
    qsf_model_close(&m);
    unlink(path);
}

static void test_truncate(void **state) {
    double rounded[PAIRS], exact[PAIRS], most = 1;
    (void)state;
    check(NULL, true, rounded); /* files without the key, as those of llama.cpp */
    check("llama.qsf.rope.yarn_truncate=bool:true", true, rounded);
    check("llama.qsf.rope.yarn_truncate=bool:false", false, exact);
    for (int i = 0; i < PAIRS; i++) {
        const double r = rounded[i] > exact[i] ? rounded[i] / exact[i] : exact[i] / rounded[i];
        if (i < 9 || i > 17) assert_true(r < 1 + 1e-9);
        most = r > most ? r : most;
    }
    assert_true(most > 1.7);
}

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_truncate) };
    return cmocka_run_group_tests(tests, setup, NULL);
}
