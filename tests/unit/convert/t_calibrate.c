/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibration compared with sums computed here; the same result however the model is run; invalid texts. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "src/convert/calibrate/calibrate.h"
#include "src/convert/calibrate/calibration_run.h"
#include "src/convert/calibrate/calibration_text.h"
#include "tests/harness/gguf_build.h"

enum { N = 90, LAYERS = 2, HIDDEN = 64, FFN = 128, VOCAB = 300, WINDOW = 20, SKIP_AT = 20 };

static char model[512], text_path[512];
static atomic_int cancel;
static int32_t ids[N];
static QsfCalibratePlan plan;

static void make_plan(const char *path, QsfCalibratePlan *p) {
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    qsf_test_expect_ok(qsf_calibrate_plan(p, &m, WINDOW, &err), &err);
    qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
}

static int write_model(void **state) {
    (void)state;
    snprintf(model, sizeof model, "%s", qsf_test_tmp("calibrate.gguf"));
    snprintf(text_path, sizeof text_path, "%s", qsf_test_tmp("calibrate.txt"));
    for (int i = 0; i < N; i++) ids[i] = 3 + i * 7919 % 290;
    if (qsf_test_write_tiny_llama(model, &(QsfTinySpec){ .wtype = 8, .ctx = 64 })) return -1;
    make_plan(model, &plan);
    return 0;
}

static int remove_model(void **state) {
    (void)state;
    unlink(text_path);
    qsf_calibrate_plan_free(&plan);
    return unlink(model);
}

static void open_model(QsfRuntime *rt, int threads, uint64_t pin, uint32_t batch) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel, .transcript_bytes = qsf_calibrate_run_bytes(&plan) };
    qsf_settings_default(&o.settings);
    o.settings.ctx = 64;
    o.settings.threads = threads;
    o.settings.pin = pin;
    o.settings.batch = batch;
    atomic_store(&cancel, 0);
    qsf_test_expect_ok(qsf_runtime_open(rt, model, &o, &err), &err);
}

static QsfCalibration calibrate(QsfRuntime *rt) {
    const QsfCalibrateRun r = { .rt = rt, .plan = &plan, .ids = ids, .n = N, .bos = 1 };
    QsfCalibration c;
    QsfErr err = { 0 };
    int32_t before[N];
    memcpy(before, ids, sizeof ids);
    qsf_test_expect_ok(qsf_calibrate_run(&r, &c, &err), &err);
    assert_memory_equal(before, ids, sizeof ids);
    return c;
}

/* ---- by hand, a token at a time */

static const float *energies(const QsfRuntime *rt, const QsfCalibration *c, const char *name) {
    const QsfTensor *t = qsf_source_find_tensor(rt->model.src, name);
    assert_non_null(t);
    const float *e = qsf_calibration_of(c, (uint64_t)(t - qsf_source_tensor(rt->model.src, 0)));
    assert_non_null(e);
    return e;
}

typedef struct Plain {
    const QsfRuntime *rt;
    uint32_t skip; /* this block's effect is undone */
    double down[FFN], head[HIDDEN], cosine[LAYERS], p[VOCAB];
    float before[HIDDEN];
} Plain;

static void see_block(Plain *s, float *x, uint32_t block) {
    double xx = 0, yy = 0, xy = 0;
    if (block > 0 && block - 1 == s->skip) memcpy(x, s->before, sizeof s->before);
    for (int k = 0; k < HIDDEN; k++) {
        xx += pow((double)s->before[k], 2);
        yy += pow((double)x[k], 2);
        xy += (double)s->before[k] * (double)x[k];
        s->before[k] = x[k];
    }
    if (block > 0) s->cosine[block - 1] += xy / sqrt(xx * yy);
}

static void see(void *arg, const QsfTapData *t) {
    Plain *s = arg;
    const QsfProgram *p = &s->rt->model.prog;
    const uint32_t block = p->step[t->step].block;
    uint32_t stride;
    assert_int_equal(t->n_cols, 1);
    if (t->x == NULL) {
        see_block(s, qsf_forward_tapped(s->rt->fwd, (QsfSlice){ QSF_BUF_X, 0, HIDDEN }, &stride), block);
        return;
    }
    const QsfMatmulClass c = p->unit[p->step[t->step].u.linear.unit].matmul_class;
    for (uint32_t k = 0; k < t->k; k++) {
        if (c == QSF_MATMUL_FFN_OUT && block == 1) s->down[k] += pow((double)t->x[k], 2);
        if (c == QSF_MATMUL_HEAD) s->head[k] += pow((double)t->x[k], 2);
    }
}

/* Evaluates the tokens at `at` of the text, with BOS in place of a window's first token. */
static void step(QsfRuntime *rt, int at, Plain *s) {
    QsfErr err = { 0 };
    const int32_t id = at > 0 && at % WINDOW == 0 ? 1 : ids[at];
    double sum = 0;
    if (at % WINDOW == 0) qsf_forward_truncate(rt->fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(rt->fwd, &id, 1, NULL, NULL, &err), &err);
    const float *logits = qsf_forward_logits(rt->fwd);
    for (int i = 0; i < VOCAB; i++) sum += exp((double)logits[i]);
    for (int i = 0; i < VOCAB; i++) s->p[i] = exp((double)logits[i]) / sum;
}

static void near(double have, double want, const char *what) {
    if (fabs(have - want) > 1e-4 * fabs(want) + 1e-7) fail_msg("%s: %.9g, not %.9g", what, have, want);
}

/* Evaluates the window in the middle, without that layer. */
static double plain_skip(QsfRuntime *rt, uint32_t layer) {
    static double base[WINDOW][VOCAB];
    Plain s = { .rt = rt };
    double kl = 0;
    qsf_forward_tap(rt->fwd, see, &s);
    for (int pass = 0; pass < 2; pass++) {
        s.skip = pass ? layer : LAYERS;
        for (int at = 0; at < WINDOW; at++) {
            step(rt, SKIP_AT + at, &s);
            for (int i = 0; i < VOCAB; i++)
                if (pass)
                    kl += base[at][i] * log(base[at][i] / s.p[i]);
                else
                    base[at][i] = s.p[i];
        }
    }
    qsf_forward_tap(rt->fwd, NULL, NULL);
    return kl / WINDOW;
}

static void test_by_hand(void **state) {
    (void)state;
    QsfRuntime rt;
    Plain s = { .rt = &rt, .skip = LAYERS };
    open_model(&rt, 1, UINT64_MAX, 0);
    QsfCalibration c = calibrate(&rt);
    qsf_forward_tap(rt.fwd, see, &s);
    for (int at = 0; at < N; at++) step(&rt, at, &s);
    qsf_forward_tap(rt.fwd, NULL, NULL);
    for (int k = 0; k < HIDDEN; k++)
        near((double)energies(&rt, &c, "output.weight")[k], s.head[k] / N, "energy of the head");
    for (int k = 0; k < FFN; k++)
        near((double)energies(&rt, &c, "blk.1.ffn_down.weight")[k], s.down[k] / N, "energy of down");
    for (uint32_t l = 0; l < LAYERS; l++) {
        near((double)c.cosine[l], s.cosine[l] / N, "cosine");
        const double kl = plain_skip(&rt, l);
        assert_true(kl > 1e-6);
        near((double)c.skip_kl[l], kl, "skip");
        near((double)qsf_calibration_importance(&c, l), 1 - exp(-(double)c.skip_kl[l]), "importance");
    }
    assert_int_equal(c.tokens, N);
    assert_int_equal(c.skip_tokens, WINDOW);
    qsf_calibration_free(&c);
    qsf_runtime_close(&rt);
}

/* Sets an element of a norm to 0, or restores it: a channel that carries no signal. */
static void set_norm(uint64_t element, float value) {
    QsfLedger ledger;
    QsfSource *s;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, model, &ledger, &err), &err);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_norm.weight");
    FILE *f = fopen(model, "r+b");
    assert_true(t != NULL && t->dtype == 0 && f != NULL);
    assert_int_equal(fseek(f, (long)(t->offset + element * sizeof value), SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
}

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* A channel that this text does not use gets a hundredth of the median. */
static void test_floor(void **state) {
    (void)state;
    QsfRuntime rt;
    float sorted[HIDDEN];
    set_norm(5, 0);
    open_model(&rt, 1, UINT64_MAX, 0);
    QsfCalibration c = calibrate(&rt);
    const float *e = energies(&rt, &c, "blk.0.attn_q.weight");
    memcpy(sorted, e, sizeof sorted);
    qsort(sorted, HIDDEN, sizeof *sorted, ascending);
    assert_true(sorted[0] == e[5] && sorted[1] > e[5]);
    near((double)e[5], 0.01 * 0.5 * ((double)sorted[HIDDEN / 2 - 1] + (double)sorted[HIDDEN / 2]), "floor");
    qsf_calibration_free(&c);
    qsf_runtime_close(&rt);
    set_norm(5, 1);
}

static void test_same_bits(void **state) {
    (void)state;
    static const struct {
        int threads;
        uint64_t pin;
        uint32_t batch;
    } ways[] = { { 1, UINT64_MAX, 0 }, { 2, 0, 7 }, { 2, 60000, 16 } };
    QsfCalibration first = { 0 };
    for (size_t i = 0; i < 3; i++) {
        QsfRuntime rt;
        open_model(&rt, ways[i].threads, ways[i].pin, ways[i].batch);
        QsfCalibration c = calibrate(&rt);
        qsf_runtime_close(&rt);
        if (i > 0) {
            assert_int_equal(c.n_energies, (3 * HIDDEN + FFN) * LAYERS + HIDDEN);
            assert_memory_equal(first.energy, c.energy, c.n_energies * sizeof(float));
            assert_memory_equal(first.cosine, c.cosine, LAYERS * sizeof(float));
            assert_memory_equal(first.skip_kl, c.skip_kl, LAYERS * sizeof(float));
            qsf_calibration_free(&c);
        } else {
            first = c;
        }
    }
    qsf_calibration_free(&first);
}

static void cancel_later(void *arg, uint64_t done, uint64_t all) {
    (void)arg;
    assert_true(done <= all);
    if (done == N + 3) atomic_store(&cancel, 1); /* among the layers */
}

static void test_interrupted(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfCalibration c;
    QsfErr err = { 0 };
    open_model(&rt, 1, UINT64_MAX, 0);
    const QsfCalibrateRun r = {
        .rt = &rt, .plan = &plan, .ids = ids, .n = N, .bos = -1, .progress = cancel_later
    };
    assert_int_equal(qsf_calibrate_run(&r, &c, &err), QSF_E_INTERRUPTED);
    qsf_runtime_close(&rt);
}

/* ---- files */

static int with_text(const char *path, const char *bytes, size_t len, QsfCalibration *c, QsfErr *err) {
    QsfCalibrateOptions o = { .model = model, .text = path };
    qsf_settings_default(&o.settings);
    o.settings.threads = 1;
    qsf_err_clear(err);
    if (bytes != NULL) assert_int_equal(qsf_test_write_file(path, bytes, len), 0);
    return qsf_calibrate(c, &o, err);
}

#define CHAT                                                                                                 \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"abc abc abc abc abc\"}, {\"role\": \"assistant\", " \
    "\"content\": \"b c a\"}], \"id\": 3}\n"

static void test_texts(void **state) {
    (void)state;
    static const char plain[] = "abc def ghi abc abc abc def ghi jkl mno pqr stu vwx\n\nyz abc\n";
    static const char chats[] = "\n" CHAT CHAT " \n" CHAT;
    static const struct {
        const char *text;
        size_t len;
        const char *words;
    } bad[] = {
        /* clang-format off */
        { "", 0, "is empty" },
        { "abc", 3, "too few to calibrate with: at least 32 are needed" },
        { "abc\nd\xff", 6, "line 2 is not UTF-8 (byte offset 5)" },
        { CHAT "abc\n", sizeof CHAT + 3, "line 2: " },
        { CHAT "\n{\"messages\": []}", sizeof CHAT + 16, "line 3: expected an object with a list of \"messages\"" },
        { CHAT "{\"messages\": [{\"role\": \"user\"}]}", sizeof CHAT + 31, "line 2: message 1 lacks a string \"role\"" },
        /* clang-format on */
    };
    QsfCalibration c;
    QsfErr err = { 0 };
    qsf_test_expect_ok(with_text(text_path, plain, strlen(plain), &c, &err), &err);
    assert_true(c.tokens > QSF_CALIBRATE_TOKENS_MIN && c.skip_kl[1] > 0 && c.n_layers == LAYERS);
    qsf_calibration_free(&c);
    qsf_test_expect_ok(with_text(text_path, chats, strlen(chats), &c, &err), &err);
    const uint64_t three = c.tokens;
    qsf_calibration_free(&c);
    qsf_test_expect_ok(with_text(text_path, CHAT CHAT CHAT CHAT CHAT CHAT, 6 * strlen(CHAT), &c, &err), &err);
    assert_int_equal(c.tokens, 2 * three); /* white space between chats is ignored; each has a BOS */
    qsf_calibration_free(&c);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(with_text(text_path, bad[i].text, bad[i].len, &c, &err), QSF_E_MODEL);
        qsf_test_expect_err(&err, QSF_E_MODEL, bad[i].words);
        qsf_test_expect_err(&err, QSF_E_MODEL, text_path);
    }
    assert_int_equal(with_text("/nowhere/text", NULL, 0, &c, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "/nowhere/text: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_floor), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
