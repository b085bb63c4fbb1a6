/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sources of embedding rows: a table that is filled in the background, the pinned head of a tied model, the
 * cache of recently used rows, the file; the counters of each; files that change. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/file.h"
#include "src/plan/layout.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 300 };

static char path[512];

static void open_model(QsfRig *r, const QsfTinySpec *spec, const QsfRigOptions *o) {
    QsfErr err = { 0 };
    QsfRigOptions with_path = *o;
    if (*path == '\0') {
        snprintf(path, sizeof path, "%s", qsf_test_tmp("embed.gguf"));
        assert_int_equal(qsf_test_write_tiny_llama(path, spec), 0);
    }
    with_path.path = path;
    with_path.level = QK_LEVEL_UNKNOWN;
    qsf_test_expect_ok(qsf_rig_open(r, &with_path, &err), &err);
    assert_int_equal(r->model.hp.n_vocab, VOCAB);
}

static void close_model(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

static int clean(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    if (*path != '\0') unlink(path);
    *path = '\0';
    return 0;
}

static void eval(QsfRig *r, const int32_t *ids, size_t n) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, n, NULL, NULL, &err), &err);
}

static void settle(QsfRig *r) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_forward_settle(r->fwd, NULL, NULL, &err), &err);
}

static QsfForwardStats stats(const QsfRig *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->fwd, &s);
    return s;
}

static void embed_from(QsfRig *r, bool table, uint32_t rows) {
    QsfErr err = { 0 };
    QsfPlan p = r->plan;
    p.embed_resident = table;
    p.embed_rows = rows;
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &p, r->pool, &err), &err);
}

static uint64_t charged(QsfRig *r) {
    QsfLedger now;
    qsf_ledger_snapshot(&r->ledger, &now);
    return now.used[QSF_MEM_EMBED];
}

/* Offset of a byte in the middle of a token's row. */
static uint64_t offset_of(const QsfRig *r, uint32_t id) {
    const QsfTensor *t = qsf_source_find_tensor(r->model.src, "token_embd.weight");
    return t->offset + t->bytes / VOCAB * id + 5;
}

static void test_row_cache(void **state) {
    (void)state;
    QsfRig r;
    static const int32_t prompt[] = { 1, 2, 3, 2, 1, 4, 9, 3 };
    static const int32_t again[] = { 9 }, evicted[] = { 2 };
    open_model(&r, &(QsfTinySpec){ .wtype = 8 }, &(QsfRigOptions){ .threads = 1 });
    embed_from(&r, false, 4);
    settle(&r);
    uint64_t row = qsf_source_find_tensor(r.model.src, "token_embd.weight")->bytes / VOCAB;
    assert_int_equal(charged(&r), qsf_rowcache_bytes(4, row));
    qsf_forward_stats_reset(r.fwd);
    eval(&r, prompt, 8); /* misses 1 2 3 4, then 9 replaces 3, then 3 replaces 2 */
    QsfForwardStats s = stats(&r);
    assert_int_equal(s.embed_misses, 6);
    assert_int_equal(s.embed_hits, 2);
    assert_int_equal(s.bytes_read, 6 * row);
    eval(&r, again, 1);
    assert_int_equal(stats(&r).embed_hits, 3);
    qsf_file_inject_fault(offset_of(&r, 9), EIO);
    eval(&r, again, 1); /* from the cache: the disk is not read */
    qsf_file_inject_fault(offset_of(&r, 2), EIO);
    uint32_t past = qsf_forward_n_past(r.fwd);
    QsfErr err = { 0 };
    assert_int_equal(qsf_forward_eval(r.fwd, evicted, 1, NULL, NULL, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "offset");
    assert_int_equal(qsf_forward_n_past(r.fwd), past);
    assert_false(qsf_forward_stale(r.fwd));
    qsf_file_inject_fault(UINT64_MAX, 0);
    eval(&r, evicted, 1);
    embed_from(&r, false, 0);
    assert_int_equal(charged(&r), 0);
    qsf_forward_stats_reset(r.fwd);
    eval(&r, again, 1);
    eval(&r, again, 1);
    assert_int_equal(stats(&r).embed_misses, 2);
    assert_int_equal(stats(&r).embed_hits, 0);
    close_model(&r);
}

/* Usable before it is complete; then the file is no longer read. */
static void test_table(void **state) {
    (void)state;
    QsfRig r;
    static const int32_t last[] = { VOCAB - 1, VOCAB - 2 };
    float want[VOCAB];
    open_model(&r, &(QsfTinySpec){ .wtype = 0, .hidden = 1024, .layers = 1 },
               &(QsfRigOptions){ .threads = 2 });
    assert_true(r.plan.embed_resident);
    uint64_t bytes = qsf_source_find_tensor(r.model.src, "token_embd.weight")->bytes;
    assert_int_equal(charged(&r), qsf_pages(bytes));
    assert_true(bytes > 1 << 20); /* more than one read */
    eval(&r, last, 2);
    assert_int_equal(stats(&r).embed_misses, 2);
    memcpy(want, qsf_forward_logits(r.fwd), sizeof want);
    settle(&r);
    qsf_forward_stats_reset(r.fwd);
    qsf_forward_truncate(r.fwd, 0);
    qsf_file_inject_fault(offset_of(&r, VOCAB - 1), EIO);
    eval(&r, last, 2);
    assert_int_equal(stats(&r).embed_misses, 0);
    assert_int_equal(stats(&r).bytes_read, 0);
    assert_memory_equal(qsf_forward_logits(r.fwd), want, sizeof want);
    qsf_file_inject_fault(UINT64_MAX, 0);
    embed_from(&r, false, 10);
    assert_int_equal(charged(&r), qsf_rowcache_bytes(10, bytes / VOCAB));
    eval(&r, last, 2);
    assert_int_equal(stats(&r).embed_misses, 2);
    close_model(&r);
}

/* It needs no waiting: every evaluation continues filling it. */
static void test_table_fills(void **state) {
    (void)state;
    QsfRig r;
    static const int32_t last[] = { VOCAB - 1 };
    open_model(&r, &(QsfTinySpec){ .wtype = 0, .hidden = 1024, .layers = 1 },
               &(QsfRigOptions){ .threads = 2 });
    for (int i = 0; i < 6; i++) eval(&r, last, 1);
    assert_true(stats(&r).embed_misses < 6);
    qsf_forward_stats_reset(r.fwd);
    eval(&r, last, 1);
    assert_int_equal(stats(&r).embed_misses, 0);
    close_model(&r);
}

/* Damage in a part of the table that no token needs only affects callers that wait for all of it. */
static void test_table_fault(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    static const int32_t ids[] = { 5, 6 }, bad[] = { 200 };
    open_model(&r, &(QsfTinySpec){ .wtype = 0 }, &(QsfRigOptions){ .threads = 1 });
    qsf_file_inject_fault(offset_of(&r, 200), EIO);
    for (int i = 0; i < 3; i++) eval(&r, ids, 2);
    assert_int_equal(qsf_forward_settle(r.fwd, NULL, NULL, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
    assert_int_equal(qsf_forward_eval(r.fwd, bad, 1, NULL, NULL, NULL), QSF_E_RUNTIME);
    qsf_file_inject_fault(UINT64_MAX, 0);
    settle(&r);
    eval(&r, bad, 1);
    close_model(&r);
}

static void test_tied(void **state) {
    (void)state;
    QsfRig r;
    static const int32_t ids[] = { 7, 299, 7 };
    open_model(&r, &(QsfTinySpec){ .wtype = 8, .tied = true }, &(QsfRigOptions){ .threads = 1 });
    settle(&r);
    qsf_forward_stats_reset(r.fwd);
    eval(&r, ids, 3);
    assert_int_equal(stats(&r).bytes_read, 0);
    assert_int_equal(stats(&r).embed_misses, 0);
    assert_int_equal(charged(&r), 0);
    close_model(&r);
    open_model(&r, NULL, &(QsfRigOptions){ .threads = 1, .stream = true });
    embed_from(&r, false, 2);
    qsf_forward_stats_reset(r.fwd);
    eval(&r, ids, 3);
    assert_int_equal(stats(&r).embed_misses, 2);
    assert_int_equal(stats(&r).embed_hits, 1);
    close_model(&r);
}

/* --- counters per layer --- */

static void check_layers(const QsfRig *r) {
    QsfLayerStats l[8], sum = { 0 };
    QsfForwardStats s = stats(r);
    uint32_t n = qsf_forward_layers(r->fwd, l, 8);
    assert_int_equal(n, r->model.hp.n_layers + 1);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(l[i].pinned_bytes <= l[i].weight_bytes && l[i].weight_bytes > 0);
        assert_true(l[i].compute_ns > 0);
        sum.weight_bytes += l[i].weight_bytes;
        sum.pinned_bytes += l[i].pinned_bytes;
        sum.wait_ns += l[i].wait_ns;
        sum.compute_ns += l[i].compute_ns;
    }
    assert_int_equal(sum.weight_bytes, r->plan.weight_bytes);
    assert_int_equal(sum.pinned_bytes, r->plan.pinned_bytes);
    assert_int_equal(sum.wait_ns, s.wait_ns);
    assert_int_equal(sum.compute_ns, s.compute_ns);
    assert_true(s.prefill_ns >= s.compute_ns + s.wait_ns);
}

/* Set to all or nothing, starting now. */
static void pin_all(QsfRig *r, bool all) {
    QsfErr err = { 0 };
    uint32_t items[32] = { 0 };
    QsfPlan p = r->plan;
    p.pinned_items = items;
    for (uint32_t i = 0; all && i < p.n_units; i++) items[i] = UINT32_MAX;
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &p, r->pool, &err), &err);
    r->plan.pinned_bytes = all ? p.weight_bytes : 0;
}

static void test_layers(void **state) {
    (void)state;
    static const int32_t ids[12] = { 1, 2, 3 };
    for (int stream = 0; stream < 2; stream++) {
        QsfRig r;
        QsfLayerStats l[8];
        open_model(&r, &(QsfTinySpec){ .wtype = 8, .layers = 3 },
                   &(QsfRigOptions){ .threads = 2, .stream = stream == 1, .batch = 5 });
        eval(&r, ids, 12);
        check_layers(&r);
        memset(l, 0, sizeof l);
        assert_int_equal(qsf_forward_layers(r.fwd, l, 2), 4); /* does not fill more than allowed */
        assert_true(l[1].weight_bytes > 0 && l[2].weight_bytes == 0);
        for (int i = 0; i < 2; i++) assert_true((l[i].read_bytes > 0) == (stream == 1));
        if (stream == 0) { /* a running loader relies on it */
            qsf_forward_stats_reset(r.fwd);
            qsf_forward_layers(r.fwd, l, 8);
            for (int i = 0; i < 4; i++)
                assert_true(l[i].compute_ns == 0 && l[i].wait_ns == 0 && l[i].read_bytes == 0);
        }
        if (stream == 1) {
            pin_all(&r, true);
            check_layers(&r);
            pin_all(&r, false);
            check_layers(&r);
        }
        close_model(&r);
    }
}

typedef struct Progress {
    uint64_t done, total;
    uint32_t calls;
} Progress;

static void progress(void *arg, uint64_t done, uint64_t total) {
    Progress *p = arg;
    assert_true(done >= p->done && done <= total);
    *p = (Progress){ done, total, p->calls + 1 };
}

static void test_settle(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    Progress p = { 0 };
    char name[64], notice[256];
    open_model(&r, &(QsfTinySpec){ .wtype = 8, .layers = 4, .hidden = 256 },
               &(QsfRigOptions){ .threads = 1 });
    qsf_test_expect_ok(qsf_forward_settle(r.fwd, progress, &p, &err), &err);
    QsfForwardStats s = stats(&r);
    assert_int_equal(s.pin_done, s.pin_total);
    assert_int_equal(s.pin_total, r.plan.weight_bytes);
    assert_true(s.pin_read >= s.pin_total);
    assert_true(p.calls == 0 || p.total == s.pin_total);
    qsf_forward_io(r.fwd, name, sizeof name, notice, sizeof notice);
    assert_true(*name != '\0');
    close_model(&r);
}

/* --- files that change --- */

static void set_mtime(long shift) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const struct timespec t[2] = { st.st_atim, { st.st_mtim.tv_sec + shift, st.st_mtim.tv_nsec } };
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void test_changed_file(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    static const int32_t ids[] = { 5, 6, 7 };
    open_model(&r, &(QsfTinySpec){ .wtype = 8 }, &(QsfRigOptions){ .threads = 1 });
    settle(&r);
    set_mtime(100);
    eval(&r, ids, 3); /* everything is in RAM */
    assert_false(qsf_forward_stale(r.fwd));
    set_mtime(-100);
    embed_from(&r, false, 1);
    settle(&r);
    eval(&r, ids, 3);
    set_mtime(100);
    eval(&r, ids + 2, 1); /* the row is in the cache */
    assert_false(qsf_forward_stale(r.fwd));
    assert_int_equal(qsf_forward_eval(r.fwd, ids, 1, NULL, NULL, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
    assert_true(qsf_forward_stale(r.fwd));
    assert_int_equal(qsf_forward_n_past(r.fwd), 7);
    close_model(&r);
    unlink(path);
    *path = '\0';
    open_model(&r, &(QsfTinySpec){ .wtype = 8 }, &(QsfRigOptions){ .threads = 1, .stream = true });
    eval(&r, ids, 3);
    assert_false(qsf_forward_stale(r.fwd));
    set_mtime(100);
    assert_int_equal(qsf_forward_eval(r.fwd, ids, 1, NULL, NULL, NULL), QSF_E_RUNTIME);
    assert_true(qsf_forward_stale(r.fwd));
    close_model(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_row_cache, clean),
        cmocka_unit_test_teardown(test_table, clean),
        cmocka_unit_test_teardown(test_table_fills, clean),
        cmocka_unit_test_teardown(test_table_fault, clean),
        cmocka_unit_test_teardown(test_tied, clean),
        cmocka_unit_test_teardown(test_layers, clean),
        cmocka_unit_test_teardown(test_settle, clean),
        cmocka_unit_test_teardown(test_changed_file, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
