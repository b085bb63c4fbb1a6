/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures while a Hugging Face model directory is opened (tests/harness/oom.h): one file, shards. */
#include "tests/harness/oom.h"

#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/st_build.h"

#if OWN_MALLOC

static char dir[64];

/* Twice, as memory fails only once. */
static QsfSource *open_dir(Outcome *o, QsfLedger *ledger) {
    for (int i = 0; i < 2; i++) {
        QsfErr err = { 0 };
        QsfSource *s;
        if (qsf_source_open(&s, dir, ledger, &err) == QSF_OK) return s;
        failed_step(o, 1, err.msg);
        assert_int_equal(ledger->total, 0);
        if (!err.memory) fail_msg("not reported as lack of memory: %s", err.msg);
    }
    return NULL;
}

static void run_open(Outcome *o) {
    QsfLedger ledger;
    char line[120];
    qsf_ledger_init(&ledger, 0);
    QsfSource *s = open_dir(o, &ledger);
    for (uint64_t i = 0; s != NULL && i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        float sum = 0, row[64];
        for (uint64_t r = 0; r < qsf_tensor_n_rows(t); r++)
            if (qsf_source_read_rows(s, t, r, 1, row, NULL) == QSF_OK) sum += row[0] * (float)(r + 1);
        snprintf(line, sizeof line, "%s %g ", t->name, (double)sum);
        add_text(o, line);
    }
    if (s != NULL) {
        snprintf(line, sizeof line, "%zu keys", qsf_meta_count(s));
        add_text(o, line);
    }
    qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void sweeps(const QsfHfSpec *spec) {
    assert_int_equal(qsf_test_write_hf_dir(dir, spec), 0);
    sweep(run_open, ALLOCATION, 10, 20000);
    sweep(run_open, ALLOCATIONS_FROM_THEN_ON, 10, 20000);
    sweep(run_open, MAPPING, 3, 2000);
    qsf_test_remove_hf_dir(dir);
    assert_non_null(mkdtemp(strcpy(dir, "/tmp/qsfoom.XXXXXX")));
}

static void one_file(void **state) {
    (void)state;
    sweeps(&(QsfHfSpec){
        .layers = 1,
        .last = ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
                "\"high_freq_factor\":4,\"original_max_position_embeddings\":256}" });
}

static void several_files(void **state) {
    (void)state;
    sweeps(&(QsfHfSpec){ .shards = true, .biases = true, .dtype = "BF16" });
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_file), cmocka_unit_test(several_files) };
    find_libc();
    strcpy(dir, "/tmp/qsfoom.XXXXXX");
    if (mkdtemp(dir) == NULL) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    qsf_test_remove_hf_dir(dir);
    return rc;
}

#endif
