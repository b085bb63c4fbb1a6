/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that fail or change while an engine streams them: the answer ends with an error that names file and
 * offset, and the next request continues with the file as it is then. */
#include "tests/harness/qsf_test.h"

#include <errno.h>
#include <sys/stat.h>

#include "qsf_cli.h"
#include "src/base/file.h"
#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

#define LONG   16384 /* an answer that is still running when the file changes, however late this thread is */
#define PROMPT "tell me"

static char path[256], other[256];
static unsigned char *bytes; /* the whole model */
static size_t n_bytes;
static uint64_t down_offset; /* of a tensor in the middle */
static char whole[65536];

/* Loaded with nothing pinned, in the middle of an endless answer. */
static uint64_t stream(QSFWorker *w, QsfSeen *seen) {
    QSFSettings s = qsf_rig_settings();
    s.pin = 0;
    s.ctx = LONG;
    qsf_rig_load(w, path, &s);
    memset(seen, 0, sizeof *seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen->text_events == 0) assert_true(qsf_rig_take(w, id, seen));
    return id;
}

/* What was delivered remains valid; the beginning of it, if it is more than `whole`. */
static void check_text(const QsfSeen *seen) {
    const size_t n = strlen(whole);
    assert_memory_equal(seen->text, whole, seen->len < n ? seen->len : n);
}

static void expect_error(QSFWorker *w, uint64_t id, QsfSeen *seen) {
    while (qsf_rig_take(w, id, seen)) {
    }
    assert_int_equal(seen->end.type, QSF_EVENT_ERROR);
    if (strstr(seen->end_text, path) == NULL) fail_msg("%s is not named in: %s", path, seen->end_text);
    check_text(seen);
}

static QsfSeen *ask(QSFWorker *w) {
    qsf_rig_set_max(w, 20);
    return qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
}

static void expect_answer(QSFWorker *w, uint32_t notices) {
    QsfSeen *seen = ask(w);
    if (seen->end.type != QSF_EVENT_DONE) fail_msg("%s", seen->end_text);
    assert_int_equal(seen->end.tokens, 20);
    assert_int_equal(seen->notices, notices);
    if (notices > 0) assert_non_null(strstr(seen->notice, path));
    check_text(seen);
}

static void put_back(void) { assert_int_equal(qsf_test_write_file(path, bytes, n_bytes), 0); }

static void a_read_error_ends_the_answer_only(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFWorker *w = qsf_rig_worker();
    uint64_t id = stream(w, &seen);
    qsf_file_inject_fault(down_offset + 5000, EIO);
    expect_error(w, id, &seen);
    assert_int_equal(seen.end.code, QSF_EXIT_RUNTIME);
    const char *at = strstr(seen.end_text, "byte offset ");
    assert_non_null(at);
    uint64_t off = strtoull(at + strlen("byte offset "), NULL, 10);
    assert_true(off <= down_offset + 5000 && off + (8u << 20) > down_offset); /* of the read that failed */
    QsfSeen *again = ask(w);                                                  /* the disk still fails */
    assert_int_equal(again->end.type, QSF_EVENT_ERROR);
    qsf_file_inject_fault(UINT64_MAX, 0);
    expect_answer(w, 0);
    qsf_worker_stop(w);
}

/* Weights are pinned in the background after LOADED: an unreadable one is an error of the first answer. */
static void a_model_is_ready_before_its_weights(void **state) {
    (void)state;
    QSFStats st;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker();
    qsf_file_inject_fault(down_offset + 5000, EIO);
    qsf_rig_load(w, path, &s);
    qsf_worker_stats(w, &st);
    assert_true(st.state == QSF_STATE_IDLE && st.streamed_bytes == 0 && st.pin_done < st.pin_total);
    QsfSeen *seen = ask(w);
    assert_int_equal(seen->end.type, QSF_EVENT_ERROR);
    assert_non_null(strstr(seen->end_text, path));
    qsf_file_inject_fault(UINT64_MAX, 0);
    expect_answer(w, 0);
    qsf_worker_stats(w, &st);
    assert_true(st.pin_done == st.pin_total);
    qsf_worker_stop(w);
}

static void a_truncated_file_comes_back(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    uint64_t id = stream(w, &seen);
    assert_int_equal(truncate(path, (off_t)(n_bytes / 2)), 0);
    expect_error(w, id, &seen);
    for (int i = 0; i < 2; i++) { /* as long as it is damaged */
        QsfSeen *again = ask(w);
        assert_int_equal(again->end.type, QSF_EVENT_ERROR);
        assert_int_equal(again->end.code, QSF_EXIT_MODEL);
        assert_non_null(strstr(again->end_text, path));
        qsf_worker_stats(w, &st);
        assert_int_equal(st.state, QSF_STATE_EMPTY);
    }
    put_back();
    expect_answer(w, 2); /* one that the model has no chat template, as at the first load */
    expect_answer(w, 0);
    qsf_worker_stats(w, &st);
    assert_true(st.pinned_bytes == 0 && st.streamed_bytes > 0); /* with the settings it had */
    qsf_worker_stop(w);
}

static void another_file_takes_its_place(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    uint64_t id = stream(w, &seen);
    assert_int_equal(qsf_test_write_tiny_llama(other, NULL), 0);
    assert_int_equal(rename(other, path), 0);
    expect_error(w, id, &seen);
    QsfSeen *again = ask(w);
    if (again->end.type != QSF_EVENT_DONE) fail_msg("%s", again->end_text);
    /* and one about a context longer than the new model was trained for, one about its template */
    assert_int_equal(again->notices, 3);
    qsf_worker_stats(w, &st);
    assert_int_equal(st.n_layers, 2); /* the new one */
    put_back();
    QSFSettings s = qsf_rig_settings();
    qsf_rig_load(w, path, &s); /* on request: stale data is dropped */
    expect_answer(w, 0);
    qsf_worker_stop(w);
}

static void a_plan_change_finds_another_file(void **state) {
    (void)state;
    QSFSettings s = qsf_rig_settings();
    s.params.max_tokens = 20;
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    expect_answer(w, 0); /* everything is in RAM: the file is no longer needed */
    assert_int_equal(truncate(path, 100), 0);
    expect_answer(w, 0);
    s.pin = 0;
    qsf_worker_replan(w, &s);
    qsf_rig_plan(w);
    QsfSeen *seen = ask(w);
    assert_int_equal(seen->end.type, QSF_EVENT_ERROR);
    put_back();
    expect_answer(w, 2);
    qsf_worker_stop(w);
}

static int read_back(void) {
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (f == NULL || fstat(fileno(f), &st) != 0) return -1;
    n_bytes = (size_t)st.st_size;
    bytes = malloc(n_bytes);
    bool ok = bytes != NULL && fread(bytes, 1, n_bytes, f) == n_bytes;
    fclose(f);
    return ok ? 0 : -1;
}

static int find_tensor(void) {
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_model_open(&m, path, NULL, &ledger, &err);
    if (rc == QSF_OK) {
        down_offset = qsf_source_find_tensor(m.src, "blk.3.ffn_down.weight")->offset;
        qsf_model_close(&m);
    }
    qsf_ledger_destroy(&ledger);
    return rc;
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(path, sizeof path, "%s", qsf_test_tmp("fault.gguf"));
    snprintf(other, sizeof other, "%s", qsf_test_tmp("fault_other.gguf"));
    const QsfTinySpec spec = {
        .layers = 6, .hidden = 256, .heads = 8, .kv_heads = 4, .ffn = 1024, .ctx = LONG, .vocab = 2000
    };
    if (qsf_test_write_tiny_llama(path, &spec) != 0 || read_back() != 0 || find_tensor() != 0) return -1;
    QSFWorker *w = qsf_rig_worker_with(path, 600);
    snprintf(whole, sizeof whole, "%s", qsf_rig_finish(w, qsf_rig_submit(w, PROMPT))->text);
    qsf_worker_stop(w);
    return whole[0] == '\0';
}

static int teardown(void **state) {
    (void)state;
    free(bytes);
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_error_ends_the_answer_only),
        cmocka_unit_test(a_model_is_ready_before_its_weights),
        cmocka_unit_test(a_truncated_file_comes_back),
        cmocka_unit_test(another_file_takes_its_place),
        cmocka_unit_test(a_plan_change_finds_another_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
