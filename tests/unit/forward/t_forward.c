/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward pass: the same logits, bit for bit, however it is run; it remains usable after errors. */
#include <errno.h>
#include <malloc.h>
#include <math.h>

#include "src/base/file.h"
#include "src/base/sanitizer.h"
#include "src/forward/ops/ops.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { N_TOKENS = 70 };

static const char *path; /* of the model written by the test */

static void write_tiny(const QsfTinySpec *spec) {
    static char own[512];
    snprintf(own, sizeof own, "%s", qsf_test_tmp("forward.gguf"));
    path = own;
    assert_int_equal(qsf_test_write_tiny_llama(path, spec), 0);
}

static int clean(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    if (path != NULL) unlink(path);
    path = NULL;
    return 0;
}

static void open_rig(QsfRig *r, const QsfRigOptions *o) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(r, o, &err), &err);
}

static void close_rig(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

/* Logits of all positions, one row after the other. */
typedef struct Rows {
    float *x; /* (n, n_vocab) */
    uint32_t n_vocab, n;
} Rows;

static void collect(void *arg, uint32_t pos, const float *logits) {
    Rows *rows = arg;
    assert_int_equal(pos, rows->n++);
    memcpy(rows->x + (size_t)pos * rows->n_vocab, logits, rows->n_vocab * sizeof *logits);
}

static Rows new_rows(uint32_t n_vocab) {
    Rows r = { .x = calloc((size_t)N_TOKENS * n_vocab, sizeof(float)), .n_vocab = n_vocab };
    assert_non_null(r.x);
    return r;
}

static const int32_t *ids_below(uint32_t n_vocab) {
    static int32_t ids[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++) ids[i] = (int32_t)((i * 7919u + 1) % n_vocab);
    return ids;
}

/* Opens, evaluates all in one call, closes. */
static Rows run_all(const QsfRigOptions *o) {
    QsfRig r;
    QsfErr err = { 0 };
    open_rig(&r, o);
    Rows rows = new_rows(r.model.hp.n_vocab);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(rows.n_vocab), N_TOKENS, collect, &rows, &err),
                       &err);
    assert_int_equal(rows.n, N_TOKENS);
    assert_memory_equal(qsf_forward_logits(r.fwd), rows.x + (size_t)(N_TOKENS - 1) * rows.n_vocab,
                        rows.n_vocab * sizeof(float));
    close_rig(&r);
    return rows;
}

static void same_rows(const Rows *a, const Rows *b) {
    assert_memory_equal(a->x, b->x, (size_t)a->n * a->n_vocab * sizeof(float));
}

/* A prompt without logits, then token by token. */
static void check_steps(const QsfRigOptions *o, const Rows *want) {
    QsfRig r;
    QsfErr err = { 0 };
    const uint32_t prompt = 23;
    const int32_t *ids = ids_below(want->n_vocab);
    open_rig(&r, o);
    for (uint32_t done = 0, n = prompt; done < N_TOKENS; done += n, n = 1) {
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + done, n, NULL, NULL, &err), &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), want->x + (size_t)(done + n - 1) * want->n_vocab,
                            want->n_vocab * sizeof(float));
    }
    assert_int_equal(qsf_forward_n_past(r.fwd), N_TOKENS);
    close_rig(&r);
}

/* Threads, residency, slots and chunks of one model file, at the best level and, if n_levels is 2, the
 * reference. */
static void check_ways_at(const char *file, bool exact, size_t n_levels) {
    const qk_level levels[] = { QK_LEVEL_UNKNOWN, QK_LEVEL_REF };
    static const QsfRigOptions ways[] = {
        { .threads = 2, .batch = 64 },
        { .threads = 3, .batch = 7 },
        { .threads = 1, .batch = 1 },
        { .threads = 2, .stream = true },
        { .threads = 2, .stream = true, .n_slots = 1 },
        { .threads = 1, .stream = true, .n_slots = 1, .slot_bytes = 1, .batch = 7 },
        { .threads = 3, .stream = true, .n_slots = 2, .slot_bytes = 1, .batch = 64 },
        { .threads = 2, .stream = true, .n_slots = 4, .slot_bytes = 1, .batch = 1 },
        { .threads = 2, .pin_cap = 60000, .n_slots = 2, .batch = 16 },
    };
    for (size_t l = 0; l < n_levels; l++) {
        const QsfRigOptions base = { .path = file, .threads = 1, .exact = exact, .level = levels[l] };
        Rows want = run_all(&base);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            QsfRigOptions o = ways[i];
            o.path = file;
            o.exact = exact;
            o.level = levels[l];
            Rows got = run_all(&o);
            same_rows(&got, &want);
            free(got.x);
            if (i == 0 || i == 6) check_steps(&o, &want);
        }
        free(want.x);
    }
}

static void check_ways(const char *file, bool exact) { check_ways_at(file, exact, 2); }

static void test_same_bits_f32(void **state) {
    (void)state;
    write_tiny(&(QsfTinySpec){
        .tied = true, .biases = true, .rope_freqs = true, .wtype = 0, .ffn = 120, .layers = 3 });
    check_ways(path, false);
    check_ways(path, true);
}

static void test_same_bits_f16(void **state) {
    (void)state;
    write_tiny(&(QsfTinySpec){
        .wtype = 1, .hidden = 72, .heads = 6, .kv_heads = 3, .head_dim = 12, .ffn = 100, .vocab = 333 });
    check_ways(path, false);
}

static void test_same_bits_q4_0(void **state) {
    (void)state;
    write_tiny(&(QsfTinySpec){ .wtype = 2, .hidden = 128, .ffn = 352, .vocab = 1000, .biases = true });
    check_ways(path, false);
    check_ways(path, true);
}

static void test_same_bits_q8_0(void **state) {
    (void)state;
    write_tiny(&(QsfTinySpec){ .wtype = 8, .tied = true, .heads = 4, .kv_heads = 4 });
    check_ways(path, false);
}

static void test_same_bits_files(void **state) {
    (void)state;
    static const char *const files[] = { "models/stories260K.gguf",        "parity/quant_q4_k_m/model.gguf",
                                         "parity/quant_q6_k/model.gguf",   "parity/quant_q5_1/model.gguf",
                                         "parity/quant_q2_k/model.gguf",   "parity/quant_q3_k_m/model.gguf",
                                         "parity/quant_iq4_nl/model.gguf", "parity/quant_iq4_xs/model.gguf",
                                         "parity/quant_tq1_0/model.gguf",  "parity/quant_tq2_0/model.gguf" };
    size_t n = sizeof files / sizeof *files;
#if QSF_ADDRESS_SANITIZER
    n = 4; /* the kernels of the others are checked with sanitizers in checkkern */
#endif
    if (qsf_test_quick()) n = 2;
    for (size_t i = 0; i < n; i++) {
        const char *file = qsf_test_data(files[i]);
        if (file == NULL) skip();
        char copy[1024];
        snprintf(copy, sizeof copy, "%s", file);
        check_ways_at(copy, false, i < 2 ? 2 : 1); /* the reference is slow */
    }
}

static void test_truncate(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    write_tiny(NULL);
    open_rig(&r, &(QsfRigOptions){ .path = path, .threads = 2, .level = QK_LEVEL_UNKNOWN });
    const int32_t *ids = ids_below(300);
    size_t bytes = 300 * sizeof(float);
    float want[300];
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 30, NULL, NULL, &err), &err);
    memcpy(want, qsf_forward_logits(r.fwd), bytes);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + 5, 9, NULL, NULL, &err), &err);
    assert_memory_not_equal(qsf_forward_logits(r.fwd), want, bytes);
    qsf_forward_truncate(r.fwd, 12);
    assert_int_equal(qsf_forward_n_past(r.fwd), 12);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + 12, 18, NULL, NULL, &err), &err);
    assert_memory_equal(qsf_forward_logits(r.fwd), want, bytes);
    close_rig(&r);
}

static void test_bad_calls(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    write_tiny(NULL);
    open_rig(&r, &(QsfRigOptions){ .path = path, .ctx = 40 });
    const int32_t *ids = ids_below(300);
    assert_int_equal(qsf_forward_ctx(r.fwd), 40);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 30, NULL, NULL, &err), &err);
    assert_int_equal(qsf_forward_eval(r.fwd, ids, 11, NULL, NULL, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "40");
    qsf_err_clear(&err);
    const int32_t outside[] = { 5, 300 }, negative[] = { -1 };
    assert_int_equal(qsf_forward_eval(r.fwd, outside, 2, NULL, NULL, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "300");
    assert_int_equal(qsf_forward_eval(r.fwd, negative, 1, NULL, NULL, NULL), QSF_E_MODEL);
    assert_int_equal(qsf_forward_n_past(r.fwd), 30);
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 0, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 10, NULL, NULL, &err), &err);
    assert_int_equal(qsf_forward_eval(r.fwd, ids, 1, NULL, NULL, NULL), QSF_E_CONTEXT);
    close_rig(&r);
}

static void set_cancel(void *arg, uint32_t pos, const float *logits) {
    (void)logits;
    if (pos == 12) atomic_store((atomic_int *)arg, 1);
}

/* Whole chunks are kept; the rest is as if it had never been requested. */
static void test_cancel(void **state) {
    (void)state;
    write_tiny(NULL);
    for (int stream = 0; stream < 2; stream++) {
        QsfRig r;
        QsfErr err = { 0 };
        const int32_t *ids = ids_below(300);
        const QsfRigOptions o = {
            .path = path, .threads = 2, .batch = 5, .stream = stream == 1, .level = QK_LEVEL_UNKNOWN
        };
        Rows want = run_all(&o);
        open_rig(&r, &o);
        assert_int_equal(qsf_forward_eval(r.fwd, ids, 30, set_cancel, &r.cancel, &err), QSF_E_INTERRUPTED);
        assert_int_equal(err.code, QSF_E_INTERRUPTED);
        uint32_t past = qsf_forward_n_past(r.fwd);
        assert_true(past > 5 && past < 20 &&
                    past % (stream ? 4 : 5) == 0); /* 4: the maximum number of logits of a pass */
        assert_int_equal(qsf_forward_eval(r.fwd, ids, 1, NULL, NULL, NULL), QSF_E_INTERRUPTED);
        assert_int_equal(qsf_forward_n_past(r.fwd), past);
        atomic_store(&r.cancel, 0);
        qsf_err_clear(&err);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + past, 30 - past, NULL, NULL, &err), &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), want.x + 29 * 300, 300 * sizeof(float));
        close_rig(&r);
        free(want.x);
    }
}

static void test_read_faults(void **state) {
    (void)state;
    static const char *const where[] = { "token_embd.weight",     "blk.0.attn_q.weight",
                                         "blk.1.attn_v.weight",   "blk.0.ffn_up.weight",
                                         "blk.1.ffn_down.weight", "output.weight" };
    write_tiny(NULL);
    const int32_t *ids = ids_below(300);
    const QsfRigOptions o = { .path = path,
                              .threads = 2,
                              .stream = true,
                              .n_slots = 2,
                              .slot_bytes = 1,
                              .batch = 8,
                              .level = QK_LEVEL_UNKNOWN };
    Rows want = run_all(&o);
    for (size_t i = 0; i < 2 * sizeof where / sizeof *where; i++) {
        QsfRig r;
        QsfErr err = { 0 };
        open_rig(&r, &o);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 20, NULL, NULL, &err), &err);
        const QsfTensor *t = qsf_source_find_tensor(r.model.src, where[i / 2]);
        uint64_t row = i / 2 == 0 ? (uint64_t)ids[25] : t->ne[1] / 2;
        qsf_file_inject_fault(t->offset + t->bytes / t->ne[1] * row + 8, i % 2 == 0 ? EIO : 0);
        assert_int_equal(qsf_forward_eval(r.fwd, ids + 20, 20, NULL, NULL, &err), QSF_E_RUNTIME);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, "offset");
        uint32_t past = qsf_forward_n_past(
            r.fwd); /* prefetched data, or whole passes without the head, may be done */
        assert_true(past < 40 && past % 8 == 4);
        qsf_file_inject_fault(UINT64_MAX, 0);
        qsf_err_clear(&err);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + past, N_TOKENS - past, NULL, NULL, &err), &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), want.x + (size_t)(N_TOKENS - 1) * 300,
                            300 * sizeof(float));
        close_rig(&r);
    }
    free(want.x);
}

/* A fault at any byte of the file while loading or afterwards: an error or none, never a leak, and the next
 * try works. */
static void test_load_faults(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    write_tiny(&(QsfTinySpec){ .wtype = 8, .biases = true, .rope_freqs = true });
    open_rig(&r, &(QsfRigOptions){ .path = path });
    uint64_t size = qsf_source_bytes(r.model.src),
             first = qsf_source_find_tensor(r.model.src, "token_embd.weight")->offset;
    close_rig(&r);
    uint32_t failed_at_once = 0, failed_later = 0;
    for (uint64_t at = first; at < size; at += (size - first) / 400) {
        qsf_err_clear(&err);
        qsf_file_inject_fault(at, EIO);
        int rc = qsf_rig_open(&r, &(QsfRigOptions){ .path = path }, &err);
        bool open = rc == QSF_OK;
        if (open) rc = qsf_forward_eval(r.fwd, ids_below(300), 3, NULL, NULL, &err);
        qsf_file_inject_fault(UINT64_MAX, 0);
        if (rc != QSF_OK) { /* alignment padding is never read */
            qsf_test_expect_err(&err, QSF_E_RUNTIME, path);
            failed_later += open;
            failed_at_once += !open;
        }
        qsf_err_clear(&err);
        if (open && rc != QSF_OK) {
            assert_int_equal(qsf_forward_n_past(r.fwd), 0);
            qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 3, NULL, NULL, &err), &err);
            assert_false(qsf_forward_stale(r.fwd));
        }
        if (open) close_rig(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
    assert_true(failed_at_once > 0 && failed_later > 10); /* norms during loading, matrices afterwards */
}

static void overwrite(uint64_t off, const void *bytes, size_t len) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)off, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void test_invalid_numbers(void **state) {
    (void)state;
    static const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f };
    for (size_t i = 0; i < 4; i++) {
        QsfRig r;
        QsfErr err = { 0 };
        write_tiny(NULL);
        open_rig(&r, &(QsfRigOptions){ .path = path });
        uint64_t off = qsf_source_find_tensor(r.model.src, "output_norm.weight")->offset;
        close_rig(&r);
        overwrite(off + 12, &bad[i], sizeof bad[i]);
        open_rig(&r, &(QsfRigOptions){ .path = path, .level = QK_LEVEL_UNKNOWN });
        int rc = qsf_forward_eval(r.fwd, ids_below(300), 10, NULL, NULL, &err);
        if (i < 3 || rc != QSF_OK) { /* the last one is finite and may remain so */
            assert_int_equal(rc, QSF_E_RUNTIME);
            qsf_test_expect_err(&err, QSF_E_RUNTIME, "the model produced invalid numbers");
        }
        close_rig(&r);
    }
}

static void test_counters(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    QsfForwardStats s;
    char names[256];
    write_tiny(&(QsfTinySpec){ .wtype = 8 });
    open_rig(&r, &(QsfRigOptions){
                     .path = path, .threads = 2, .stream = true, .batch = 8, .level = QK_LEVEL_REF });
    qsf_forward_kernels(r.fwd, names, sizeof names);
    assert_string_equal(names, "");
    qsf_forward_stats_reset(r.fwd);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 20, NULL, NULL, &err), &err);
    for (int i = 0; i < 3; i++)
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 1, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &s);
    assert_int_equal(s.prefill_tokens, 20);
    assert_int_equal(s.decode_tokens, 3);
    assert_int_equal(s.passes, 6);
    assert_int_equal(s.layer, 2);
    assert_true(s.chunk_done == 1 && s.chunk_total == 1);
    assert_true(s.prefill_ns > 0 && s.decode_ns > 0 && s.compute_ns > 0 && s.read_ns > 0);
    uint64_t parts = s.attention_ns + s.prep_ns + s.sync_ns;
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) {
        assert_true(s.matmul_ns[g] > 0);
        parts += s.matmul_ns[g];
    }
    assert_true(s.attention_ns > 0 && s.prep_ns > 0 && parts <= s.compute_ns);
    /* Six passes over the layers, four of them with the head, some of it read before the reset or prefetched;
     * at most two extra windows for each of 8 tensors. */
    uint64_t head = qsf_source_find_tensor(r.model.src, "output.weight")->bytes,
             body = r.plan.streamed_bytes - head;
    assert_true(s.bytes_read <= 7 * (body + 14 * 2 * 4096) + 4 * (head + 2 * 4096) + 23 * 68);
    assert_true(s.bytes_read + 2 * r.plan.slot_bytes >= 6 * body + 4 * head);
    qsf_forward_kernels(r.fwd, names, sizeof names);
    assert_string_equal(names, "q8_0_ref,f16");
    char shorter[6];
    qsf_forward_kernels(r.fwd, shorter, sizeof shorter);
    assert_string_equal(shorter, "q8_0_");
    close_rig(&r);
}

/* After creation neither the ledger nor the heap grows. */
static void test_no_allocation(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    write_tiny(&(QsfTinySpec){ .wtype = 2 });
    open_rig(&r, &(QsfRigOptions){ .path = path, .threads = 2, .stream = true, .level = QK_LEVEL_UNKNOWN });
    const int32_t *ids = ids_below(300);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 10, NULL, NULL, &err), &err);
    uint64_t charged = qsf_rig_leak(&r);
    size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 20; i++) (void)qsf_forward_eval(r.fwd, ids + i, i % 3 == 0 ? 7 : 1, NULL, NULL, &err);
    size_t after = mallinfo2().uordblks;
    qsf_test_expect_ok(err.code, &err);
    assert_int_equal(after, heap);
    assert_int_equal(qsf_rig_leak(&r), charged);
    close_rig(&r);
}

/* --- parity with logits of another engine --- */

typedef struct Judge {
    const float *ref;
    uint32_t n_vocab;
    double kl;
} Judge;

static double log_sum(const float *x, uint32_t n, double max) {
    double s = 0;
    for (uint32_t i = 0; i < n; i++) s += exp(x[i] - max);
    return max + log(s);
}

static double max_of(const float *x, uint32_t n) {
    double m = x[0];
    for (uint32_t i = 1; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* Adds KL(softmax(ref) || softmax(ours)). */
static void judge(void *arg, uint32_t pos, const float *y) {
    Judge *j = arg;
    const float *r = j->ref + (size_t)pos * j->n_vocab;
    double zr = log_sum(r, j->n_vocab, max_of(r, j->n_vocab)),
           zy = log_sum(y, j->n_vocab, max_of(y, j->n_vocab));
    for (uint32_t i = 0; i < j->n_vocab; i++) j->kl += exp(r[i] - zr) * ((r[i] - zr) - (y[i] - zy));
}

static uint32_t read_ids(const char *file, int32_t *ids, uint32_t most) {
    FILE *f = fopen(file, "r");
    uint32_t n = 0;
    assert_non_null(f);
    while (n < most && fscanf(f, "%d", &ids[n]) == 1) n++;
    fclose(f);
    return n;
}

static double mean_kl(const char *model, const char *tokens, const char *logits, bool exact, qk_level level) {
    static int32_t ids[4096];
    QsfRig r;
    QsfErr err = { 0 };
    uint32_t n = read_ids(tokens, ids, 4096);
    open_rig(&r, &(QsfRigOptions){ .path = model, .threads = 2, .exact = exact, .level = level });
    Judge j = { .n_vocab = r.model.hp.n_vocab };
    size_t count = (size_t)n * j.n_vocab;
    float *ref = malloc(count * sizeof *ref);
    FILE *f = fopen(logits, "rb");
    assert_true(ref != NULL && f != NULL && fread(ref, sizeof *ref, count, f) == count);
    fclose(f);
    j.ref = ref;
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, n, judge, &j, &err), &err);
    free(ref);
    close_rig(&r);
    return j.kl / n;
}

/* The result of the other engine with the same file; 1e-5 where it is unknown. */
static double allowed(const char *about) {
    char text[4096];
    FILE *f = fopen(about, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *other = strstr(text, "other_engine"), *kl = other != NULL ? strstr(other, "\"kl\":") : NULL;
    return kl != NULL ? 1.5 * strtod(kl + 5, NULL) : 1e-5;
}

static void check_kl(const char *what, qk_level level, double kl, double most) {
    if (!(kl <= most)) fail_msg("%s at level %d: mean KL %.3e, at most %.3e", what, (int)level, kl, most);
}

static void test_parity(void **state) {
    (void)state;
    if (qsf_test_quick()) skip(); /* run_parity checks the same cases, limits and levels */
    static const char *const cases[] = { "llama",        "llama3",      "llama_linear", "quant_f16",
                                         "quant_bf16",   "quant_q8_0",  "quant_q4_0",   "quant_q4_1",
                                         "quant_q5_0",   "quant_q5_1",  "quant_q4_k_m", "quant_q5_k_m",
                                         "quant_q6_k",   "quant_q2_k",  "quant_q3_k_m", "quant_iq4_nl",
                                         "quant_iq4_xs", "quant_tq1_0", "quant_tq2_0" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char rel[64], model[1024], tokens[1024], logits[1024], about[1024];
        snprintf(rel, sizeof rel, "parity/%s", cases[i]);
        const char *dir = qsf_test_data(rel);
        if (dir == NULL) skip();
        snprintf(model, sizeof model, "%s/model.gguf", dir);
        snprintf(tokens, sizeof tokens, "%s/tokens.txt", dir);
        snprintf(logits, sizeof logits, "%s/logits.f32", dir);
        snprintf(about, sizeof about, "%s/about.json", dir);
        for (int level = QK_LEVEL_REF; level < QK_LEVEL_N; level++) {
            if (!qk_cpu_has((qk_level)level)) continue;
            check_kl(cases[i], (qk_level)level, mean_kl(model, tokens, logits, true, (qk_level)level), 1e-5);
            check_kl(cases[i], (qk_level)level, mean_kl(model, tokens, logits, false, (qk_level)level),
                     allowed(about));
        }
    }
}

static void test_real_model(void **state) {
    (void)state;
    char model[1024], tokens[1024], logits[1024];
    const char *dir = qsf_test_data("models");
    if (dir == NULL) skip();
    snprintf(model, sizeof model, "%s/stories260K.gguf", dir);
    snprintf(tokens, sizeof tokens, "%s/stories260K.tokens.txt", dir);
    snprintf(logits, sizeof logits, "%s/stories260K.logits.f32", dir);
    for (int level = QK_LEVEL_REF; level < QK_LEVEL_N; level++) {
        if (qk_cpu_has((qk_level)level)) {
            check_kl("stories260K", (qk_level)level, mean_kl(model, tokens, logits, false, (qk_level)level),
                     1e-5);
        }
    }
}

typedef struct Work {
    const QsfForward *fwd;
    double last;
    uint32_t moves;
} Work;

static void see_work(void *arg, const QsfTapData *t) {
    Work *w = arg;
    QsfForwardStats s;
    (void)t;
    qsf_forward_stats(w->fwd, &s);
    assert_true(s.work >= w->last && s.work >= s.chunk_done && s.work < s.chunk_done + 8);
    w->moves += s.work > w->last;
    w->last = s.work;
}

/* The work of an eval moves with the steps of a batch, never back, and ends at its tokens. */
static void test_work(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    QsfForwardStats s;
    write_tiny(&(QsfTinySpec){ .layers = 6 });
    open_rig(&r, &(QsfRigOptions){ .path = path, .threads = 2, .batch = 8, .level = QK_LEVEL_REF });
    for (int round = 0; round < 2; round++) {
        Work w = { .fwd = r.fwd };
        qsf_forward_stats_reset(r.fwd);
        qsf_forward_tap(r.fwd, see_work, &w);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 20, NULL, NULL, &err), &err);
        qsf_forward_tap(r.fwd, NULL, NULL);
        assert_true(w.moves > 3 * 6 * 3); /* three batches, six layers with some steps each */
        qsf_forward_stats(r.fwd, &s);
        assert_true(s.work == 20 && s.chunk_done == 20);
    }
    close_rig(&r);
}

/* ---- a step that takes long ---- */

static struct {
    atomic_int cancel;
    unsigned calls, stop_at;
    size_t macs, most;
} slow;

static void count_call(const qk_mm *m, size_t lo, size_t hi) {
    const size_t macs = (hi - lo) * m->n_cols * m->k;
    slow.macs += macs;
    if (macs > slow.most) slow.most = macs;
    if (++slow.calls == slow.stop_at) atomic_store(&slow.cancel, 1);
}

/* A product of many columns is computed in calls that end soon, all of it and nothing twice, and no call
 * follows a cancellation. */
static void test_stoppable(void **state) {
    enum { K = 4096, ROWS = 1000, COLS = 5000 };
    static const struct {
        qk_level level;
        size_t cols, most;
        unsigned stop_at, calls; /* calls: 0 = any number */
    } cases[] = { { QK_LEVEL_REF, COLS, 8u << 20, 0, 0 },     { QK_LEVEL_REF, COLS, 8u << 20, 3, 3 },
                  { QK_LEVEL_REF, 1, 4u << 20, 0, 1 },        { QK_LEVEL_N - 1, COLS, 256u << 20, 0, 0 },
                  { QK_LEVEL_N - 1, COLS, 256u << 20, 1, 1 }, { QK_LEVEL_N - 1, 1, 4u << 20, 0, 1 } };
    const qk_weight_ops ops = { .matmul = count_call, .matmul16 = count_call };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qk_table table = { .level = cases[i].level };
        const QsfForward f = { .table = &table, .cancel = &slow.cancel };
        float y; /* nothing is written: the kernel counts */
        const qk_mm mm = { .k = K, .n_cols = cases[i].cols, .y = &y };
        slow.calls = 0;
        slow.macs = slow.most = 0;
        slow.stop_at = cases[i].stop_at;
        atomic_store(&slow.cancel, 0);
        qsf_multiply_stoppable(&f, &ops, &mm, 0, 0, ROWS, 0);
        assert_true(slow.most <= cases[i].most);
        if (cases[i].stop_at == 0) assert_int_equal(slow.macs, (size_t)ROWS * cases[i].cols * K);
        if (cases[i].calls > 0) assert_int_equal(slow.calls, cases[i].calls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),
        cmocka_unit_test_teardown(test_same_bits_f32, clean),
        cmocka_unit_test_teardown(test_same_bits_f16, clean),
        cmocka_unit_test_teardown(test_same_bits_q4_0, clean),
        cmocka_unit_test_teardown(test_same_bits_q8_0, clean),
        cmocka_unit_test(test_same_bits_files),
        cmocka_unit_test_teardown(test_truncate, clean),
        cmocka_unit_test_teardown(test_bad_calls, clean),
        cmocka_unit_test_teardown(test_cancel, clean),
        cmocka_unit_test_teardown(test_read_faults, clean),
        cmocka_unit_test_teardown(test_load_faults, clean),
        cmocka_unit_test_teardown(test_invalid_numbers, clean),
        cmocka_unit_test_teardown(test_counters, clean),
        cmocka_unit_test_teardown(test_no_allocation, clean),
        cmocka_unit_test(test_parity),
        cmocka_unit_test(test_stoppable),
        cmocka_unit_test(test_real_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
