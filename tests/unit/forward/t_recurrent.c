/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent state: checkpoints, passes that fail, convolutions and scans against a computation in double, and
 * conversations that go back. */
#include <math.h>

#include "src/engine/timeline.h"
#include "src/forward/ops/ops.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 256, N = 40, FLOATS = 32, VOCAB_MAX = 512 };

/* Every mixer, alone and beside attention. */
static const char *const cases[] = { "mamba",         "mamba2",     "jamba", "falcon-h1",
                                     "granitehybrid", "nemotron_h", "lfm2",  "lfm2moe" };
#define N_CASES (sizeof cases / sizeof *cases)

static const char *case_file(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    return qsf_test_data(path);
}

static int32_t id_at(uint32_t pos) { return (int32_t)((pos * 7919u + 11) % 250); }

/* ---- checkpoints of numbers ---- */

static QsfStateSpec specs[] = { { .block = 0, .floats = 16, .at = 0 },
                                { .block = 1, .floats = 9, .at = 16 } };
static const QsfKvTypes none = { QK_KV_F32, QK_KV_F32 };
static const QsfProgram numbers = { .state = specs, .n_states = 2, .state_floats = FLOATS };

/* One position: the new state is the position's number in all elements. */
static void pass(QsfRecurrent *r, uint32_t pos) {
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < specs[s].floats; i++) qsf_recurrent_new(r, s)[i] = (float)pos;
}

static void advance(QsfRecurrent *r, uint32_t pos) {
    pass(r, pos);
    qsf_recurrent_commit(r);
}

static void expect_state(const QsfRecurrent *r, uint32_t pos) {
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < specs[s].floats; i++)
            assert_true(qsf_recurrent_old(r, s)[i] == (float)pos); /* exact: small integers */
}

static void open_numbers(QsfRecurrent *r, QsfLedger *l, uint32_t slots) {
    QsfErr err = { 0 };
    qsf_ledger_init(l, 0);
    qsf_test_expect_ok(qsf_recurrent_init(r, &numbers, none, slots, l, &err), &err);
    assert_int_equal(l->used[QSF_MEM_KV], qsf_recurrent_bytes(&numbers, none, slots));
}

static void test_checkpoints(void **state) {
    QsfRecurrent r;
    QsfLedger l;
    (void)state;
    open_numbers(&r, &l, 3);
    expect_state(&r, 0);
    for (uint32_t pos = 1; pos <= 30; pos++) {
        advance(&r, pos);
        if (pos % 10 == 0) qsf_recurrent_save(&r, pos);
    }
    assert_int_equal(qsf_recurrent_before(&r, 30), 30);
    assert_int_equal(qsf_recurrent_before(&r, 29), 20);
    assert_int_equal(qsf_recurrent_before(&r, 9), 0);
    pass(&r, 99); /* a pass that fails */
    expect_state(&r, 30);
    assert_int_equal(qsf_recurrent_restore(&r, 25), 20);
    expect_state(&r, 20);
    assert_int_equal(qsf_recurrent_before(&r, 30), 20); /* the one at 30 belonged to other tokens */
    assert_int_equal(qsf_recurrent_restore(&r, 3), 0);
    expect_state(&r, 0);
    assert_int_equal(r.n, 0);
    qsf_recurrent_free(&r);
    assert_int_equal(l.total, 0);
}

/* What other conversations begin with stays, unless there are too few slots. */
static void test_lead(void **state) {
    (void)state;
    for (uint32_t slots = 1; slots < 9; slots++) {
        QsfRecurrent r;
        QsfLedger l;
        open_numbers(&r, &l, slots);
        r.lead = 20;
        for (uint32_t pos = 1; pos <= 3000; pos++) {
            advance(&r, pos);
            if (pos % 10 == 0) qsf_recurrent_save(&r, pos);
        }
        assert_int_equal(r.n, slots);
        assert_int_equal(r.pos[r.n - 1], 3000);
        assert_int_equal(qsf_recurrent_before(&r, 29), slots >= QSF_LEAD_SLOTS ? 20 : 0);
        QsfErr err = { 0 };
        qsf_test_expect_ok(qsf_recurrent_resize(&r, 0, &err), &err);
        assert_int_equal(r.n, 0);
        qsf_recurrent_free(&r);
    }
}

static void test_no_slots(void **state) {
    QsfRecurrent r;
    QsfLedger l;
    (void)state;
    open_numbers(&r, &l, 0);
    advance(&r, 1);
    qsf_recurrent_save(&r, 1);
    assert_int_equal(qsf_recurrent_restore(&r, 1), 0);
    qsf_recurrent_free(&r);
}

/* In a long sequence the distance to the checkpoint before a position grows with its distance
 * from the end. */
static void test_thinning(void **state) {
    QsfRecurrent r;
    QsfLedger l;
    (void)state;
    open_numbers(&r, &l, 8);
    for (uint32_t pos = 1; pos <= 3000; pos++) {
        advance(&r, pos);
        if (pos % 10 == 0) qsf_recurrent_save(&r, pos);
    }
    assert_int_equal(r.n, 8);
    for (uint32_t i = 1; i < r.n; i++) assert_true(r.pos[i] > r.pos[i - 1]);
    assert_int_equal(r.pos[7], 3000);
    assert_true(r.pos[6] >= 2900 && r.pos[5] >= 2700 && r.pos[0] <= 2200);
    for (uint32_t slots = 8; slots-- > 0;) {
        QsfErr err = { 0 };
        const uint32_t newest = r.pos[r.n - 1];
        qsf_test_expect_ok(qsf_recurrent_resize(&r, slots, &err), &err);
        assert_int_equal(r.n, slots);
        assert_int_equal(l.used[QSF_MEM_KV], qsf_recurrent_bytes(&numbers, none, slots));
        if (slots > 1) assert_true(r.pos[r.n - 1] <= newest);
        expect_state(&r, 3000);
    }
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_recurrent_resize(&r, 2, &err), &err);
    qsf_recurrent_save(&r, 3000);
    advance(&r, 3001);
    assert_int_equal(qsf_recurrent_restore(&r, 3000), 3000);
    expect_state(&r, 3000);
    qsf_recurrent_free(&r);
}

/* ---- whole models ---- */

static bool open_case(QsfRig *r, const char *name, uint32_t batch, int threads) {
    QsfErr err = { 0 };
    const char *path = case_file(name);
    if (path == NULL) return false;
    const QsfRigOptions o = {
        .path = path, .threads = threads, .batch = batch, .ctx = CTX, .level = QK_LEVEL_UNKNOWN
    };
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    return true;
}

static void eval_to(QsfRig *r, uint32_t end) {
    int32_t ids[CTX];
    QsfErr err = { 0 };
    const uint32_t past = qsf_forward_n_past(r->fwd);
    for (uint32_t i = past; i < end; i++) ids[i - past] = id_at(i);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, end - past, NULL, NULL, &err), &err);
}

static size_t logits_bytes(const QsfRig *r) { return r->model.hp.n_vocab * sizeof(float); }

static void close_rig(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

/* Truncates to every position, evaluates up to the end again, and gets the same logits. */
static void test_truncate(void **state) {
    float want[VOCAB_MAX];
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        QsfRig r;
        if (!open_case(&r, cases[i], 16, 1)) continue;
        seen++;
        eval_to(&r, 7);
        for (uint32_t n = 8; n < 20; n++) eval_to(&r, n);
        eval_to(&r, N);
        memcpy(want, qsf_forward_logits(r.fwd), logits_bytes(&r));
        for (uint32_t n = N; n-- > 0;) {
            const uint32_t keeps = qsf_forward_keeps(r.fwd, n);
            assert_true(keeps <= n && (n < 19 || keeps >= 19));
            assert_int_equal(qsf_forward_truncate(r.fwd, n), keeps);
            assert_int_equal(qsf_forward_n_past(r.fwd), keeps);
            eval_to(&r, N);
            assert_memory_equal(qsf_forward_logits(r.fwd), want, logits_bytes(&r));
        }
        close_rig(&r);
    }
    if (seen == 0) skip();
}

static void cancel_at_layer(void *arg, const QsfTapData *t) {
    QsfRig *r = arg;
    if (r->model.prog.step[t->step].block == r->model.hp.n_layers - 1) atomic_store(&r->cancel, 1);
}

/* A pass that is cancelled in the last block changes nothing. */
static void test_cancelled_pass(void **state) {
    float want[VOCAB_MAX];
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        QsfRig r;
        QsfErr err = { 0 };
        const int32_t ids[3] = { 5, 6, 7 };
        if (!open_case(&r, cases[i], 16, 2)) continue;
        seen++;
        eval_to(&r, N);
        memcpy(want, qsf_forward_logits(r.fwd), logits_bytes(&r));
        qsf_forward_truncate(r.fwd, 0);
        eval_to(&r, 12);
        qsf_forward_tap(r.fwd, cancel_at_layer, &r);
        for (size_t n = 1; n <= 3; n += 2) {
            assert_int_equal(qsf_forward_eval(r.fwd, ids, n, NULL, NULL, &err), QSF_E_INTERRUPTED);
            assert_int_equal(qsf_forward_n_past(r.fwd), 12);
            atomic_store(&r.cancel, 0);
        }
        qsf_forward_tap(r.fwd, NULL, NULL);
        eval_to(&r, N);
        assert_memory_equal(qsf_forward_logits(r.fwd), want, logits_bytes(&r));
        close_rig(&r);
    }
    if (seen == 0) skip();
}

/* ---- against a computation in double ---- */

static const QsfStep *find_step(const QsfRig *r, QsfOp op) {
    for (uint32_t i = 0; i < r->model.prog.n_steps; i++)
        if (r->model.prog.step[i].op == op) return &r->model.prog.step[i];
    fail_msg("the program has no step %s", qsf_op_name(op));
    return NULL;
}

static void fill(const QsfForward *f, QsfSlice s, uint32_t n_cols, uint32_t seed) {
    for (uint32_t c = 0; c < n_cols; c++)
        for (uint32_t i = 0; i < s.width; i++) {
            seed = seed * 1664525u + 1013904223u;
            qsf_col(f, s, c)[i] = (float)(seed >> 8) / 8388608.0f - 1;
        }
}

/* Copies the columns of a slice to doubles (n_cols, width). */
static double *copy_cols(const QsfForward *f, QsfSlice s, uint32_t n_cols) {
    double *d = calloc((size_t)n_cols * s.width, sizeof *d);
    assert_non_null(d);
    for (uint32_t c = 0; c < n_cols; c++)
        for (uint32_t i = 0; i < s.width; i++) d[(size_t)c * s.width + i] = (double)qsf_col(f, s, c)[i];
    return d;
}

static void expect_near(double got, double want) {
    if (fabs(got - want) > 2e-6 * (1 + fabs(want))) fail_msg("got %.9g, want %.9g", got, want);
}

typedef int (*StepFn)(QsfForward *f, const QsfStep *s, QsfErr *err);

/* Runs the step on the columns in pieces, with a commit after each. */
static void run_pieces(QsfForward *f, const QsfStep *s, StepFn fn, uint32_t n_cols) {
    QsfErr err = { 0 };
    for (uint32_t c = 0; c < n_cols; c += f->n_cols) {
        f->col0 = c;
        f->n_cols = c == 0 ? 5 : n_cols - c;
        qsf_test_expect_ok(fn(f, s, &err), &err);
        qsf_recurrent_commit(&f->recurrent);
    }
}

static void check_conv(const char *name, uint32_t n_cols) {
    QsfRig r;
    if (!open_case(&r, name, 16, 2)) skip();
    QsfForward *f = r.fwd;
    const QsfStep *s = find_step(&r, QSF_OP_CONV);
    const QsfConvStep *p = &s->u.conv;
    fill(f, s->in, n_cols, 1);
    double *x = copy_cols(f, s->in, n_cols);
    const float *w = qsf_param(f, p->weight), *bias = qsf_param(f, p->bias);
    run_pieces(f, s, qsf_conv, n_cols);
    for (uint32_t c = 0; c < n_cols; c++)
        for (uint32_t i = 0; i < s->in.width; i++) {
            double sum = bias != NULL ? (double)bias[i] : 0;
            for (uint32_t k = 0; k < p->kernel; k++)
                if (c + k + 1 >= p->kernel)
                    sum += (double)w[i * p->kernel + k] *
                           x[(size_t)(c + k + 1 - p->kernel) * s->in.width + i];
            if (p->act == QSF_ACT_SILU) sum /= 1 + exp(-sum);
            expect_near((double)qsf_col(f, s->out[0], c)[i], sum);
        }
    free(x);
    close_rig(&r);
}

static void test_conv(void **state) {
    (void)state;
    check_conv("mamba2", 11);
    check_conv("lfm2", 16);
}

static void check_scan(const char *name, QsfOp op, uint32_t n_cols) {
    QsfRig r;
    if (!open_case(&r, name, 16, 2)) skip();
    QsfForward *f = r.fwd;
    const QsfStep *s = find_step(&r, op);
    const QsfScanStep *p = &s->u.scan;
    const size_t tile = QSF_STATE_TILE;
    fill(f, s->in, n_cols, 1);
    fill(f, s->in2, n_cols, 2);
    fill(f, s->in3, n_cols, 3);
    qsf_col(f, s->in2, 1)[0] = 25; /* softplus is the identity there */
    double *x = copy_cols(f, s->in, n_cols), *dt = copy_cols(f, s->in2, n_cols),
           *bc = copy_cols(f, s->in3, n_cols);
    const float *a = qsf_param(f, p->a), *d = qsf_param(f, p->d);
    run_pieces(f, s, qsf_scan, n_cols);
    for (uint32_t h = 0; h < p->heads; h++)
        for (uint32_t e = 0; e < p->dim; e++) {
            double st[512] = { 0 };
            const size_t at = (size_t)h * p->dim + e, g = h / (p->heads / p->groups);
            for (uint32_t c = 0; c < n_cols; c++) {
                const double *b = bc + (size_t)c * s->in3.width + g * p->n,
                             *cc = b + (size_t)p->groups * p->n;
                const double t = log1p(exp(dt[(size_t)c * s->in2.width + h])),
                             in = x[(size_t)c * s->in.width + at];
                double y = (double)d[h] * in;
                for (uint32_t k = 0; k < p->n; k++) {
                    const size_t in_tile = (h / tile * p->n + k) * tile + h % tile;
                    const double rate = (double)(op == QSF_OP_SCAN1 ? a[in_tile] : a[h]);
                    st[k] = st[k] * exp(t * rate) + b[k] * in * t;
                    y += st[k] * cc[k];
                }
                expect_near((double)qsf_col(f, s->out[0], c)[at], y);
            }
        }
    free(x);
    free(dt);
    free(bc);
    close_rig(&r);
}

static void test_scans(void **state) {
    (void)state;
    check_scan("mamba", QSF_OP_SCAN1, 13);
    check_scan("jamba", QSF_OP_SCAN1, 13);
    check_scan("mamba2", QSF_OP_SCAN2, 13);
    check_scan("falcon-h1", QSF_OP_SCAN2, 16);
}

/* ---- conversations ---- */

typedef struct Answer {
    int32_t ids[64];
    uint32_t n;
} Answer;

static void greedy(void *arg, QSFParams *out) {
    (void)arg;
    *out = (QSFParams){ .top_p = 1, .repeat_penalty = 1, .max_tokens = 24, .ignore_eos = true };
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    Answer *a = arg;
    (void)text;
    (void)len;
    if (id >= 0) a->ids[a->n++] = id;
    return 0;
}

/* Answers the first n tokens of a conversation. */
static Answer answer(QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *reused) {
    Answer a = { .n = 0 };
    QsfGeneration out;
    QsfErr err = { 0 };
    const QsfGenerate g = { .prompt = ids, .n_prompt = n, .params = greedy, .text = on_text, .arg = &a };
    qsf_test_expect_ok(qsf_timeline_generate(t, &g, &out, &err), &err);
    assert_int_equal(a.n, 24);
    *reused = out.reused_tokens;
    return a;
}

static void open_timeline(QsfRuntime *rt, QsfTimeline *t, const char *path) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { 0 };
    qsf_settings_default(&o.settings);
    o.settings.threads = 2;
    o.settings.ctx = CTX;
    qsf_test_expect_ok(qsf_runtime_open(rt, path, &o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(t, rt, &err), &err);
}

static void close_timeline(QsfRuntime *rt, QsfTimeline *t) {
    qsf_timeline_free(t);
    qsf_runtime_close(rt);
}

static Answer fresh(const char *path, const int32_t *ids, size_t n) {
    QsfRuntime rt;
    QsfTimeline t;
    uint32_t reused;
    open_timeline(&rt, &t, path);
    const Answer a = answer(&t, ids, n, &reused);
    close_timeline(&rt, &t);
    return a;
}

/* A question, a second one, /retry, /undo and another second question: each answer is that of
 * a fresh conversation. */
static void check_conversation(const char *path) {
    QsfRuntime rt;
    QsfTimeline t;
    int32_t ids[CTX];
    uint32_t reused;
    open_timeline(&rt, &t, path);
    assert_int_equal(rt.plan.checkpoints, QSF_CHECKPOINTS_MAX);
    for (uint32_t i = 0; i < 20; i++) ids[i] = id_at(i);
    const Answer first = answer(&t, ids, 20, &reused);
    memcpy(ids + 20, first.ids, 24 * sizeof *ids);
    for (uint32_t i = 44; i < 60; i++) ids[i] = id_at(i);
    const Answer second = answer(&t, ids, 60, &reused);
    assert_int_equal(reused, 43); /* all that was evaluated: the last token of an answer is not */
    const Answer retried = answer(&t, ids, 60, &reused);
    assert_int_equal(reused, 43); /* the question is evaluated again */
    assert_memory_equal(&retried, &second, sizeof second);
    const Answer want = fresh(path, ids, 60);
    assert_memory_equal(&second, &want, sizeof want);
    for (uint32_t i = 44; i < 70; i++) ids[i] = id_at(i + 1);
    const Answer other = answer(&t, ids, 70, &reused), want_other = fresh(path, ids, 70);
    assert_int_equal(reused, 43);
    assert_memory_equal(&other, &want_other, sizeof other);
    ids[10]++; /* a different first question */
    const Answer edited = answer(&t, ids, 50, &reused), want_edited = fresh(path, ids, 50);
    assert_int_equal(reused, 0);
    assert_memory_equal(&edited, &want_edited, sizeof edited);
    close_timeline(&rt, &t);
}

static void test_conversation(void **state) {
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        const char *path = case_file(cases[i]);
        if (path == NULL) continue;
        seen++;
        check_conversation(path);
    }
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints),  cmocka_unit_test(test_lead),
        cmocka_unit_test(test_no_slots),     cmocka_unit_test(test_thinning),
        cmocka_unit_test(test_truncate),     cmocka_unit_test(test_cancelled_pass),
        cmocka_unit_test(test_conv),         cmocka_unit_test(test_scans),
        cmocka_unit_test(test_conversation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
