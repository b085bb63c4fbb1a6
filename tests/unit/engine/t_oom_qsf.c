/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures while a model is calibrated and converted to a QSF file, and while the file is verified and
 * opened (tests/harness/oom.h). */
#include "tests/harness/oom.h"

#include "src/convert/calibrate/calibrate.h"
#include "src/convert/calibrate/tensor_uses.h"
#include "src/convert/pack/gguf_out.h"
#include "src/file/qsf/verify.h"
#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_made.h"

#if OWN_MALLOC

static char gguf[256], qsf[256], back[256];
static QsfPackOptions how; /* of the current sweep */
static QsfUses uses;

typedef struct Run {
    QsfLedger ledger;
    QsfSource *src, *back;
} Run;

static int open_gguf(Run *r, QsfErr *err) { return qsf_source_open(&r->src, gguf, &r->ledger, err); }

static int carry(Run *r, QsfErr *err) {
    int rc = qsf_pack(r->src, qsf, &how, NULL, err);
    if (rc != QSF_OK) assert_int_not_equal(access(qsf, F_OK), 0);
    return rc;
}

static int verify(Run *r, QsfErr *err) {
    QsfVerifyReport report;
    return qsf_verify_file(qsf, &r->ledger, &report, err);
}

/* Also reads a byte of each tensor, which decompresses compressed layers. */
static int open_qsf(Run *r, QsfErr *err) {
    unsigned char byte;
    int rc = r->back != NULL ? QSF_OK : qsf_source_open(&r->back, qsf, &r->ledger, err);
    for (uint64_t i = 0; rc == QSF_OK && i < qsf_source_n_tensors(r->back); i++)
        rc = qsf_source_read_bytes(r->back, qsf_source_tensor(r->back, i), 0, &byte, 1, err);
    return rc;
}

static int find_uses(Run *r, QsfErr *err) { return qsf_uses_of_source(&uses, r->src, &r->ledger, err); }

static int write_back(Run *r, QsfErr *err) {
    const QsfGgufOptions o = { .dry = false };
    QsfGgufReport report;
    int rc = qsf_write_gguf(r->back, back, &o, &report, err);
    if (rc != QSF_OK) assert_int_not_equal(access(back, F_OK), 0);
    return rc;
}

/* Runs a step, and repeats it if it fails: memory fails only once. */
static bool twice(Outcome *o, int number, int (*step)(Run *, QsfErr *), Run *r) {
    for (int i = 0; i < 2; i++) {
        QsfErr err = { 0 };
        if (step(r, &err) == QSF_OK) return true;
        failed_step(o, number, err.msg);
        if (!err.memory) fail_msg("step %d: not reported as lack of memory: %s", number, err.msg);
    }
    return false;
}

static void run_steps(Outcome *o, int (*const *steps)(Run *, QsfErr *), int n) {
    Run r = { .src = NULL };
    char text[64];
    qsf_ledger_init(&r.ledger, 0);
    unlink(qsf);
    unlink(back);
    bool ok = true;
    for (int i = 0; ok && i < n; i++) ok = twice(o, i + 1, steps[i], &r);
    if (ok) {
        snprintf(text, sizeof text, "%llu tensors", (unsigned long long)qsf_source_n_tensors(r.back));
        add_text(o, text);
    }
    qsf_source_close(r.src);
    qsf_source_close(r.back);
    qsf_uses_free(&uses);
    assert_int_equal(r.ledger.total, 0);
    qsf_ledger_destroy(&r.ledger);
}

static void run(Outcome *o) {
    static int (*const steps[])(Run *, QsfErr *) = { open_gguf, carry, verify, open_qsf };
    run_steps(o, steps, 4);
}

/* To QSF and back. */
static void run_named(Outcome *o) {
    static int (*const steps[])(Run *,
                                QsfErr *) = { open_gguf, find_uses, carry, verify, open_qsf, write_back };
    run_steps(o, steps, 6);
}

static void write_model(bool twins) {
    const QsfTinySpec spec = { .layers = 2,
                               .hidden = 32,
                               .heads = 2,
                               .kv_heads = 1,
                               .ffn = 32,
                               .vocab = 260,
                               .ctx = 64,
                               .twins = twins };
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("oom.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("oom.qsf"));
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
}

/* ---- calibration */

static char chats[256];
static QsfCalibration scores;

static int calibrate_step(Run *r, QsfErr *err) {
    (void)r;
    QsfCalibrateOptions o = { .model = gguf, .text = chats };
    qsf_settings_default(&o.settings);
    o.settings.threads = 1;
    return qsf_calibrate(&scores, &o, err);
}

static void run_calibration(Outcome *o) {
    Run r = { .src = NULL };
    char text[64];
    if (!twice(o, 1, calibrate_step, &r)) return;
    snprintf(text, sizeof text, "%llu tokens, %.9g %.9g", (unsigned long long)scores.tokens,
             (double)scores.skip_kl[0], (double)scores.skip_kl[1]);
    add_text(o, text);
    qsf_calibration_free(&scores);
}

static void test_calibration(void **state) {
    (void)state;
    static const char line[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"what is this abc abc abc abc abc abc\"}]}\n";
    (void)snprintf(chats, sizeof chats, "%s", qsf_test_tmp("oom.jsonl"));
    assert_int_equal(qsf_test_write_file(chats, line, strlen(line)), 0);
    write_model(false);
    find_libc();
    sweep(run_calibration, ALLOCATION, 15, 3000);
    sweep(run_calibration, MAPPING, 3, 3000);
    unlink(chats);
    unlink(gguf);
}

static void test_allocations(void **state) {
    (void)state;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_calibration_make(&scores, 2, 0, 0, &err), &err);
    const QsfPackOptions ways[] = {
        { .flags = QSFF_LINES, .calibration = &scores },
        { .type = { .how = QSF_PACK_MIXED }, .flags = QSFF_PAGES | QSFF_LINES, .x16 = true },
        { .type = { .how = QSF_PACK_MIXED }, .target = 60000, .flags = QSFF_LINES },
        { .flags = QSFF_LINES, .codec = QSF_COMPRESS_AUTO },
    };
    find_libc();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        how = ways[i];
        write_model(how.codec != QSFF_STORED);
        sweep(run, ALLOCATION, 15, 3000);
        if (i > 0) continue;
        sweep(run, ALLOCATIONS_FROM_THEN_ON, 15, 3000);
        sweep(run, MAPPING, 3, 3000);
    }
    qsf_calibration_free(&scores);
    unlink(gguf);
    unlink(qsf);
}

static void test_named(void **state) {
    (void)state;
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("oom.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("oom.qsf"));
    (void)snprintf(back, sizeof back, "%s", qsf_test_tmp("oom-back.gguf"));
    assert_int_equal(qsf_test_write_tiny_mamba(gguf, 1), 0);
    how = (QsfPackOptions){ .flags = QSFF_LINES, .uses = &uses };
    find_libc();
    sweep(run_named, ALLOCATION, 15, 3000);
    sweep(run_named, MAPPING, 3, 3000);
    unlink(gguf);
    unlink(qsf);
    unlink(back);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_allocations), cmocka_unit_test(test_named),
                                        cmocka_unit_test(test_calibration) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
