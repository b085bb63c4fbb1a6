/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Observing the forward pass: the observed inputs of matrices match its weights; blocks whose
 * effect is undone. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

enum { N = 20, LAYERS = 3, HIDDEN = 64, FFN = 96, WIDEST = 96 };

static const char *path;
static int32_t ids[N];

/* Everything observed in one evaluation. */
typedef struct Seen {
    float x[LAYERS + 1][QSF_MATMUL_N][N][WIDEST], hidden[LAYERS + 1][QSF_MATMUL_N][N][HIDDEN];
    unsigned calls;
    const QsfRig *rig;
    uint32_t undo; /* block; LAYERS = none */
    float before[N][HIDDEN];
} Seen;

static int write_model(void **state) {
    static char own[512];
    (void)state;
    snprintf(own, sizeof own, "%s", qsf_test_tmp("tap.gguf"));
    path = own;
    for (int i = 0; i < N; i++) ids[i] = (i * 7919 + 1) % 300;
    return qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = LAYERS, .hidden = HIDDEN, .ffn = FFN });
}

static int remove_model(void **state) {
    (void)state;
    return unlink(path);
}

/* Copies the residual stream from the forward pass, or back. */
static void copy_hidden(const Seen *s, const QsfTapData *t, float (*to)[HIDDEN], bool back) {
    uint32_t stride;
    float *x = qsf_forward_tapped(s->rig->fwd, (QsfSlice){ QSF_BUF_X, 0, HIDDEN }, &stride);
    for (uint32_t i = 0; i < t->n_cols; i++)
        memcpy(back ? x + (size_t)i * stride : to[t->pos + i], back ? to[t->pos + i] : x + (size_t)i * stride,
               HIDDEN * sizeof *x);
}

static void see_block(Seen *s, const QsfTapData *t, uint32_t block) {
    assert_true(t->step == 0 || s->rig->model.prog.step[t->step - 1].block == block - 1);
    if (block == s->undo) copy_hidden(s, t, s->before, false);
    if (block == s->undo + 1) copy_hidden(s, t, s->before, true);
}

static void see(void *arg, const QsfTapData *t) {
    Seen *s = arg;
    const QsfProgram *p = &s->rig->model.prog;
    const uint32_t block = p->step[t->step].block;
    assert_true(block <= LAYERS && t->pos + t->n_cols <= N && t->k <= WIDEST && t->expert == QSF_NONE);
    s->calls++;
    if (t->x == NULL) {
        see_block(s, t, block);
        return;
    }
    const QsfMatmulClass c = p->unit[p->step[t->step].u.linear.unit].matmul_class;
    assert_int_equal(c == QSF_MATMUL_HEAD, block == LAYERS);
    assert_int_equal(t->k, c == QSF_MATMUL_FFN_OUT ? FFN : HIDDEN);
    for (uint32_t i = 0; i < t->n_cols; i++)
        memcpy(s->x[block][c][t->pos + i], t->x + (size_t)i * t->x_stride, t->k * sizeof(float));
    copy_hidden(s, t, s->hidden[block][c], false);
}

static void on_logits(void *arg, uint32_t pos, const float *logits) {
    float(*all)[300] = arg;
    memcpy(all[pos], logits, sizeof all[pos]);
}

static void eval(QsfRig *r, float (*logits)[300]) {
    QsfErr err = { 0 };
    qsf_forward_truncate(r->fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, N, on_logits, logits, &err), &err);
}

static void open_rig(QsfRig *r, const QsfRigOptions *o) {
    QsfRigOptions own = *o;
    QsfErr err = { 0 };
    own.path = path;
    qsf_test_expect_ok(qsf_rig_open(r, &own, &err), &err);
}

static Seen *watch(const QsfRigOptions *o) {
    QsfRig r;
    float logits[N][300];
    Seen *s = calloc(1, sizeof *s);
    assert_non_null(s);
    open_rig(&r, o);
    s->rig = &r;
    s->undo = LAYERS;
    qsf_forward_tap(r.fwd, see, s);
    eval(&r, logits);
    const unsigned calls = s->calls;
    qsf_forward_tap(r.fwd, NULL, NULL);
    eval(&r, logits);
    assert_int_equal(s->calls, calls);
    qsf_rig_close(&r);
    return s;
}

/* y (rows) = W x, W a tensor of floats. */
static void multiply(const QsfSource *s, const char *name, const float *x, double *y) {
    float row[WIDEST];
    QsfErr err = { 0 };
    const QsfTensor *t = qsf_source_find_tensor(s, name);
    assert_non_null(t);
    for (uint64_t r = 0; r < t->ne[1]; r++) {
        qsf_test_expect_ok(qsf_source_read_rows(s, t, r, 1, row, &err), &err);
        y[r] = 0;
        for (uint64_t k = 0; k < t->ne[0]; k++) y[r] += (double)row[k] * (double)x[k];
    }
}

static void near(const float *have, const double *want, int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (fabs((double)have[i] - want[i]) > 1e-4 * (1 + fabs(want[i])))
            fail_msg("%s: %d is %g, not %g", what, i, (double)have[i], want[i]);
}

static void norm(const QsfSource *s, const char *name, const float *x, double *y) {
    float w[HIDDEN];
    double sum = 0;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_source_read_rows(s, qsf_source_find_tensor(s, name), 0, 1, w, &err), &err);
    for (int i = 0; i < HIDDEN; i++) sum += (double)x[i] * (double)x[i];
    for (int i = 0; i < HIDDEN; i++) y[i] = (double)x[i] * (double)w[i] / sqrt(sum / HIDDEN + 1e-5);
}

/* The inputs observed in layer 1 for one position, compared with its weights. */
static void check_position(const QsfSource *s, const Seen *seen, int p) {
    double y[WIDEST], z[WIDEST];
    const float *in = seen->hidden[1][QSF_MATMUL_ATTN_IN][p], *mid = seen->hidden[1][QSF_MATMUL_FFN_IN][p];
    norm(s, "blk.1.attn_norm.weight", in, y);
    near(seen->x[1][QSF_MATMUL_ATTN_IN][p], y, HIDDEN, "input of QKV");
    multiply(s, "blk.1.attn_output.weight", seen->x[1][QSF_MATMUL_ATTN_OUT][p], y);
    for (int i = 0; i < HIDDEN; i++) y[i] += (double)in[i];
    near(mid, y, HIDDEN, "behind attention");
    norm(s, "blk.1.ffn_norm.weight", mid, y);
    near(seen->x[1][QSF_MATMUL_FFN_IN][p], y, HIDDEN, "input of gate and up");
    multiply(s, "blk.1.ffn_gate.weight", seen->x[1][QSF_MATMUL_FFN_IN][p], y);
    multiply(s, "blk.1.ffn_up.weight", seen->x[1][QSF_MATMUL_FFN_IN][p], z);
    for (int i = 0; i < FFN; i++) y[i] *= z[i] / (1 + exp(-y[i]));
    near(seen->x[1][QSF_MATMUL_FFN_OUT][p], y, FFN, "input of down");
    multiply(s, "blk.1.ffn_down.weight", seen->x[1][QSF_MATMUL_FFN_OUT][p], y);
    for (int i = 0; i < HIDDEN; i++) y[i] += (double)mid[i];
    near(seen->hidden[2][QSF_MATMUL_ATTN_IN][p], y, HIDDEN, "behind the layer");
    norm(s, "output_norm.weight", seen->hidden[LAYERS][QSF_MATMUL_HEAD][p], y);
    near(seen->x[LAYERS][QSF_MATMUL_HEAD][p], y, HIDDEN, "input of the head");
}

static void test_inputs(void **state) {
    (void)state;
    QsfLedger ledger;
    QsfSource *s;
    QsfErr err = { 0 };
    float row[HIDDEN];
    Seen *seen = watch(&(QsfRigOptions){ .exact = true });
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, path, &ledger, &err), &err);
    for (int p = 0; p < N; p++) {
        qsf_test_expect_ok(qsf_source_read_rows(s, qsf_source_find_tensor(s, "token_embd.weight"),
                                                (uint64_t)ids[p], 1, row, &err),
                           &err);
        assert_memory_equal(seen->hidden[0][QSF_MATMUL_ATTN_IN][p], row, sizeof row);
        check_position(s, seen, p);
    }
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
    free(seen);
}

/* Chunks, threads and streaming: the same bits. */
static void test_same_bits(void **state) {
    (void)state;
    Seen *want = watch(&(QsfRigOptions){ .threads = 1 }),
         *have = watch(&(QsfRigOptions){ .threads = 2, .batch = 7, .stream = true, .slot_bytes = 1 });
    assert_memory_equal(want->x, have->x, sizeof want->x);
    assert_memory_equal(want->hidden, have->hidden, sizeof want->hidden);
    assert_true(have->calls > want->calls);
    free(want);
    free(have);
}

/* A block whose effect on the residual stream is undone. */
static void test_undone(void **state) {
    (void)state;
    static const QsfRigOptions ways[] = { { .threads = 1 },
                                          { .threads = 2, .batch = 7, .stream = true, .slot_bytes = 1 } };
    float full[N][300], without[2][LAYERS][N][300], again[N][300];
    Seen *all = watch(&ways[0]), *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (int w = 0; w < 2; w++) {
        QsfRig r;
        open_rig(&r, &ways[w]);
        eval(&r, full);
        s->rig = &r;
        qsf_forward_tap(r.fwd, see, s);
        for (s->undo = 0; s->undo < LAYERS; s->undo++) {
            eval(&r, without[w][s->undo]);
            assert_memory_not_equal(without[w][s->undo], full, sizeof full);
            /* The output equals the input. */
            assert_memory_equal(
                s->hidden[s->undo + 1][s->undo + 1 < LAYERS ? QSF_MATMUL_ATTN_IN : QSF_MATMUL_HEAD],
                all->hidden[s->undo][QSF_MATMUL_ATTN_IN], sizeof all->hidden[0][0]);
        }
        eval(&r, again);
        assert_memory_equal(again, full, sizeof full);
        qsf_rig_close(&r);
    }
    assert_memory_equal(without[0], without[1], sizeof without[0]);
    free(all);
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_inputs), cmocka_unit_test(test_same_bits),
                                        cmocka_unit_test(test_undone) };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
