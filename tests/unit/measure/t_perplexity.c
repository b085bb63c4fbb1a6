/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Perplexity compared with the plain computation: which tokens are scored, their probabilities, divergence
 * from a stored base; the same result however the model is run. */
#include <math.h>

#include "src/measure/perplexity.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { N = 90 };

static char model[512], base_path[512];
static atomic_int cancel;

static int write_model(void **state) {
    (void)state;
    QsfTinySpec spec = { .vocab = 400, .wtype = 8 }; /* Q8_0: quantized activations differ from exact ones */
    snprintf(model, sizeof model, "%s", qsf_test_tmp("ppl.gguf"));
    snprintf(base_path, sizeof base_path, "%s", qsf_test_tmp("ppl.kl"));
    return qsf_test_write_tiny_llama(model, &spec);
}

static int remove_model(void **state) {
    (void)state;
    unlink(model);
    unlink(base_path);
    return 0;
}

static void open_model(QsfRuntime *rt, int threads, uint64_t pin, bool exact) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel, .exact = exact };
    qsf_settings_default(&o.settings);
    o.settings.ctx = 64;
    o.settings.threads = threads;
    o.settings.pin = pin;
    atomic_store(&cancel, 0);
    qsf_test_expect_ok(qsf_runtime_open(rt, model, &o, &err), &err);
}

static void fill(int32_t *ids) {
    ids[0] = 1;
    for (int i = 1; i < N; i++) ids[i] = 3 + i * 7919 % 390;
}

/* -log p of the token after ids[0..n): softmax written out, one position at a time. */
typedef struct Plain {
    double p[400]; /* the distribution */
    uint32_t last;
} Plain;

static void keep_last(void *arg, uint32_t pos, const float *logits) {
    Plain *q = arg;
    double sum = 0;
    if (pos != q->last) return;
    for (int i = 0; i < 400; i++) sum += exp((double)logits[i]);
    for (int i = 0; i < 400; i++) q->p[i] = exp((double)logits[i]) / sum;
}

static Plain plain(QsfRuntime *rt, const int32_t *ids, uint32_t n) {
    Plain q = { .last = n - 1 };
    QsfErr err = { 0 };
    qsf_forward_truncate(rt->fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(rt->fwd, ids, n, keep_last, &q, &err), &err);
    return q;
}

/* The literal definition: every token once, in the first window that holds it and the token before it. */
static double plain_nll(QsfRuntime *rt, const int32_t *ids, int n, int window, int stride, int bos,
                        size_t *scored) {
    double sum = 0;
    int done = 1;
    *scored = 0;
    for (int begin = 0; done < n; begin += stride) {
        int end = begin + window < n ? begin + window : n;
        for (int t = done; t < end; t++) {
            int32_t copy[N];
            if (t == begin) continue; /* there is no token before it */
            memcpy(copy, ids, sizeof copy);
            if (begin > 0 && bos >= 0) copy[begin] = bos;
            sum += -log(plain(rt, copy + begin, (uint32_t)(t - begin)).p[ids[t]]);
            ++*scored;
        }
        done = end;
    }
    return sum / (double)*scored;
}

static void test_against_plain(void **state) {
    (void)state;
    static const struct {
        int n, window, stride, bos;
    } cases[] = {
        { 40, 64, 32, 1 }, { N, 32, 16, -1 },  { N, 32, 16, 1 },  { N, 32, 32, 1 },
        { N, 32, 31, -1 }, { 64, 64, 64, -1 }, { 65, 64, 64, 1 }, { 48, 32, 16, 1 },
        { 49, 32, 16, 1 }, { 2, 64, 32, -1 },  { 20, 2, 1, -1 },  { 20, 2, 2, 1 },
    };
    QsfRuntime rt;
    int32_t ids[N], before[N];
    open_model(&rt, 1, UINT64_MAX, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfPerplexityResult r;
        QsfErr err = { 0 };
        size_t scored;
        fill(ids);
        memcpy(before, ids, sizeof ids);
        QsfPerplexity p = { .rt = &rt,
                            .ids = ids,
                            .n = (size_t)cases[i].n,
                            .window = (uint32_t)cases[i].window,
                            .stride = (uint32_t)cases[i].stride,
                            .bos = cases[i].bos };
        double want = plain_nll(&rt, ids, cases[i].n, cases[i].window, cases[i].stride, cases[i].bos,
                                &scored);
        qsf_test_expect_ok(qsf_perplexity_run(&p, &r, &err), &err);
        assert_int_equal(r.n_scored, scored);
        assert_int_equal(r.nll.n, scored);
        assert_true(fabs(r.nll.mean - want) < 1e-9);
        assert_memory_equal(ids, before, sizeof ids);
    }
    qsf_runtime_close(&rt);
}

static void test_same_however_run(void **state) {
    (void)state;
    static const struct {
        int threads;
        uint64_t pin;
    } ways[] = { { 1, UINT64_MAX }, { 2, UINT64_MAX }, { 1, 0 }, { 3, 0 }, { 2, 150000 } };
    QsfPerplexityResult first = { 0 };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        QsfRuntime rt;
        QsfPerplexityResult r;
        QsfErr err = { 0 };
        int32_t ids[N];
        fill(ids);
        open_model(&rt, ways[i].threads, ways[i].pin, false);
        QsfPerplexity p = { .rt = &rt, .ids = ids, .n = N, .window = 40, .stride = 13, .bos = 1 };
        qsf_test_expect_ok(qsf_perplexity_run(&p, &r, &err), &err);
        qsf_runtime_close(&rt);
        if (i == 0) first = r;
        assert_memory_equal(&r, &first, sizeof r);
    }
}

/* A base written by one back end, compared with another. */
static void save_base(int32_t *ids) {
    QsfRuntime rt;
    QsfPerplexityResult r;
    QsfErr err = { 0 };
    QsfKlWriter w;
    QsfKlAbout a = { .n_rows = N - 1,
                     .n_vocab = 400,
                     .complete = true,
                     .n_ids = N,
                     .window = 64,
                     .stride = 32,
                     .name = "tiny" };
    open_model(&rt, 1, UINT64_MAX, true);
    qsf_test_expect_ok(qsf_kl_create(&w, base_path, &a, &err), &err);
    QsfPerplexity p = { .rt = &rt, .ids = ids, .n = N, .window = 64, .stride = 32, .bos = -1, .save = &w };
    qsf_test_expect_ok(qsf_perplexity_run(&p, &r, &err), &err);
    qsf_test_expect_ok(qsf_kl_finish(&w, ids, &err), &err);
    qsf_kl_discard(&w);
    qsf_runtime_close(&rt);
}

static int ascending(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static QsfPerplexityResult against_base(QsfKlReader *base, int32_t *ids, bool exact, float *kl) {
    QsfRuntime rt;
    QsfPerplexityResult r;
    QsfErr err = { 0 };
    open_model(&rt, 2, 0, exact);
    QsfPerplexity p = {
        .rt = &rt, .ids = ids, .n = N, .window = 64, .stride = 32, .bos = -1, .base = base, .kl = kl
    };
    qsf_test_expect_ok(qsf_perplexity_run(&p, &r, &err), &err);
    qsf_runtime_close(&rt);
    return r;
}

static double plain_kl(const double *p, const double *q, size_t *same) {
    double kl = 0;
    int a = 0, b = 0;
    for (int i = 0; i < 400; i++) {
        kl += p[i] * log(p[i] / q[i]);
        if (p[i] > p[a]) a = i;
        if (q[i] > q[b]) b = i;
    }
    *same += a == b;
    return kl;
}

static void test_divergence(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfKlReader base;
    int32_t ids[N];
    float kl[N];
    double want[N], sum = 0, squares = 0;
    size_t same = 0, n = N - 1;
    fill(ids);
    save_base(ids);
    qsf_test_expect_ok(qsf_kl_open(&base, base_path, &err), &err);
    QsfPerplexityResult self = against_base(&base, ids, true, kl), r = against_base(&base, ids, false, kl);
    qsf_kl_close(&base);
    assert_true(self.kl.mean == 0 && self.kl_max == 0 && self.excess.mean == 0);
    assert_int_equal(self.same_top, n);

    QsfRuntime ours, theirs;
    open_model(&ours, 1, UINT64_MAX, false);
    open_model(&theirs, 1, UINT64_MAX, true);
    double nll = 0, base_nll = 0;
    for (int t = 1; t < N; t++) {
        int begin = t < 64 ? 0 : 32;
        Plain p = plain(&theirs, ids + begin, (uint32_t)(t - begin)),
              q = plain(&ours, ids + begin, (uint32_t)(t - begin));
        want[t - 1] = plain_kl(p.p, q.p, &same);
        sum += want[t - 1];
        nll -= log(q.p[ids[t]]);
        base_nll -= log(p.p[ids[t]]);
    }
    qsf_runtime_close(&ours);
    qsf_runtime_close(&theirs);
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (want[i] - mean) * (want[i] - mean);
    qsort(want, n, sizeof *want, ascending);
    assert_true(mean > 1e-6); /* the two differ */
    assert_true(fabs(r.kl.mean - mean) < 1e-6);
    assert_true(fabs(qsf_mean_error(&r.kl) - sqrt(squares / (double)(n - 1) / (double)n)) < 1e-6);
    assert_true(fabs(r.kl_median - want[n / 2]) < 1e-6); /* n is odd */
    assert_true(fabs(r.kl_max - want[n - 1]) < 1e-6);
    assert_true(fabs(r.kl_p99 - want[(size_t)ceil(0.99 * (double)n) - 1]) < 1e-6);
    assert_int_equal(r.same_top, same);
    assert_true(fabs(r.base_nll.mean - base_nll / (double)n) < 1e-6);
    assert_true(fabs(r.excess.mean - (nll - base_nll) / (double)n) < 1e-6);
}

static void test_cancel_and_bad_ids(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfPerplexityResult r;
    QsfErr err = { 0 };
    int32_t ids[N];
    fill(ids);
    open_model(&rt, 1, UINT64_MAX, false);
    QsfPerplexity p = { .rt = &rt, .ids = ids, .n = N, .window = 64, .stride = 32, .bos = 1 };
    atomic_store(&cancel, 2);
    qsf_perplexity_run(&p, &r, &err);
    qsf_test_expect_err(&err, QSF_E_INTERRUPTED, "interrupted");
    atomic_store(&cancel, 0);
    qsf_err_clear(&err);
    ids[N - 1] = 400; /* never evaluated, only looked up */
    qsf_perplexity_run(&p, &r, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, "400");
    qsf_runtime_close(&rt);
}

static void test_windows(void **state) {
    (void)state;
    QsfScoreWindow w;
    size_t windows;
    assert_false(qsf_score_window(0, 8, 4, 0, &w));
    assert_false(qsf_score_window(1, 8, 4, 0, &w));
    assert_int_equal(qsf_score_count(8, 8, 4, &windows), 7);
    assert_int_equal(windows, 1);
    assert_int_equal(qsf_score_count(9, 8, 4, &windows), 8);
    assert_int_equal(windows, 2);
    assert_int_equal(qsf_score_count(12, 8, 4, &windows), 11);
    assert_int_equal(windows, 2);
    /* no overlap: one token of a window has no token before it */
    assert_int_equal(qsf_score_count(24, 8, 8, &windows), 21);
    assert_int_equal(windows, 3);
    /* a last window of one token has nothing to score */
    assert_int_equal(qsf_score_count(17, 8, 8, &windows), 14);
    assert_int_equal(windows, 2);
    assert_true(qsf_score_window(100, 8, 3, 2, &w));
    assert_true(w.begin == 6 && w.first == 11 && w.end == 14);
    assert_false(qsf_score_window(100, 8, 3, SIZE_MAX / 2, &w));
}

static void test_statistics(void **state) {
    (void)state;
    float v[101], x[] = { 1000, 1001, 999.5f };
    QsfMean m = { 0 };
    for (int i = 0; i < 101; i++) v[i] = (float)(i * 37 % 101);
    for (int i = 0; i < 101; i++) qsf_mean_add(&m, (double)v[i]);
    qsf_score_sort(v, 101);
    for (int i = 0; i < 101; i++) assert_true(v[i] == (float)i);
    assert_true(qsf_score_median(v, 101) == 50 && qsf_score_median(v, 100) == 49.5);
    assert_true(qsf_score_quantile(v, 101, 0.99) == 99 && qsf_score_quantile(v, 1, 0.99) == 0);
    assert_true(qsf_score_quantile(v, 101, 0) == 0 && qsf_score_quantile(v, 101, 1) == 100);
    assert_true(fabs(m.mean - 50) < 1e-12);
    assert_true(fabs(qsf_mean_error(&m) - sqrt(858.5 / 101)) < 1e-9); /* variance n (n + 1) / 12 */
    assert_true(fabs(qsf_score_log_sum(x, 3) - (1001 + log(1 + exp(-1) + exp(-1.5)))) < 1e-9);
    assert_true(qsf_mean_error(&(QsfMean){ .n = 1 }) == 0);
    /* P = (1/2, 1/4, 1/4), Q = (1/4, 1/2, 1/4), at other offsets: KL is log(2) / 4. */
    const float p[] = { 3, (float)(3 - log(2)), (float)(3 - log(2)) }, q[] = { -5, (float)(log(2) - 5), -5 };
    assert_true(fabs(qsf_score_divergence(p, qsf_score_log_sum(p, 3), q, 3) - log(2) / 4) < 1e-6);
    assert_true(qsf_score_divergence(p, qsf_score_log_sum(p, 3), p, 3) == 0);
    const float a[] = { 3, 4, 0 }, b[] = { 4, 3, 0 }, none[3] = { 0 };
    assert_true(fabs(qsf_score_cosine(a, b, 3) - 0.96) < 1e-12);
    assert_true(qsf_score_cosine(a, none, 3) == 0 && qsf_score_cosine(none, none, 3) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),       cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_against_plain), cmocka_unit_test(test_same_however_run),
        cmocka_unit_test(test_divergence),    cmocka_unit_test(test_cancel_and_bad_ids),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
