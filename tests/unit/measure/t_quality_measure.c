/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a calibration says of skipped layers is what the plain computation gives: divergence and perplexity,
 * with softmax written out, of the same tokens in the same pieces. */
#include <math.h>

#include "src/measure/quality_measure.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

/* Two pieces of 64 tokens after the context, and a token that is only predicted. */
enum { LAYERS = 8, VOCAB = 400, PIECE = 64, PIECES = 2, CONTEXT = QSF_MEASURED_CONTEXT };
enum { N = CONTEXT + PIECES * PIECE + 1 };

static char path[512];
static atomic_int cancel;
static int32_t ids[N];
static float full[N][VOCAB], less[N][VOCAB];

static int write_model(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("measure.gguf"));
    ids[0] = 1;
    for (int i = 1; i < N; i++) ids[i] = 3 + i * 7919 % 390;
    return qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = LAYERS, .vocab = VOCAB });
}

static int remove_model(void **state) {
    (void)state;
    return unlink(path);
}

static void keep(void *arg, uint32_t pos, const float *logits) {
    float(*to)[VOCAB] = arg;
    memcpy(to[pos], logits, sizeof to[pos]);
}

/* The logits of a piece with what q leaves out, after an exact beginning. */
static void piece_with(QsfForward *f, const QsfQuality *q, uint32_t pos) {
    const QsfQuality all = { .value = 1 };
    QsfErr err = { 0 };
    qsf_forward_truncate(f, 0);
    qsf_test_expect_ok(qsf_forward_eval(f, ids, pos, NULL, NULL, &err), &err);
    qsf_forward_set_quality(f, q);
    qsf_test_expect_ok(qsf_forward_decode(f, ids + pos, PIECE, keep, less, &err), &err);
    qsf_forward_set_quality(f, &all);
}

static double log_sum(const float *x) {
    double sum = 0;
    for (uint32_t k = 0; k < VOCAB; k++) sum += exp((double)x[k]);
    return log(sum);
}

static void expect_row(QsfForward *f, const QsfModel *m, const QsfQualityChoice *row) {
    QsfQuality q = { .value = 0.5f };
    double kl = 0, nll = 0;
    qsf_quality_choice_apply(row, m, &q);
    for (uint32_t pos = CONTEXT; pos + 1 < N; pos += PIECE) piece_with(f, &q, pos);
    for (uint32_t pos = CONTEXT; pos + 1 < N; pos++) {
        const float *x = full[pos], *y = less[pos];
        const double x_sum = log_sum(x), y_sum = log_sum(y);
        for (uint32_t k = 0; k < VOCAB; k++) {
            const double p = (double)x[k] - x_sum;
            kl += exp(p) * (p - ((double)y[k] - y_sum));
        }
        nll += ((double)x[ids[pos + 1]] - x_sum) - ((double)y[ids[pos + 1]] - y_sum);
    }
    assert_true(kl > 0);
    kl /= PIECES * PIECE;
    assert_true(fabs((double)row->kl - kl) < 1e-4 * kl);
    assert_true(fabs((double)row->perplexity - exp(nll / (PIECES * PIECE))) < 1e-4);
}

static void skipped_layers(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel };
    QsfQualityTable table;
    unsigned seen = 0;
    qsf_settings_default(&o.settings);
    qsf_test_expect_ok(qsf_runtime_open(&rt, path, &o, &err), &err);
    const QsfQualityMeasure p = { .rt = &rt, .ids = ids, .n = N };
    qsf_test_expect_ok(qsf_quality_measure(&p, &table, &err), &err);
    assert_int_equal(table.n_tokens, PIECES * PIECE);
    qsf_forward_truncate(rt.fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(rt.fwd, ids, N, keep, full, &err), &err);
    for (unsigned i = 0; i < QSF_QUALITY_CHOICES; i++) {
        if (table.row[i].exit > 0 || qsf_blocks_count(&table.row[i].skip) == 0) continue;
        expect_row(rt.fwd, &rt.model, &table.row[i]);
        seen++;
    }
    assert_true(seen >= 3);
    qsf_runtime_close(&rt);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(skipped_layers) };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
