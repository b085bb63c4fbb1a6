/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention: its steps against a computation in double, models that give the same bytes for any
 * pieces, and bad metadata. */
#include <math.h>

#include "src/forward/ops/ops.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 256, N = 40, COLS = 16, DIM_MAX = 128 };

static const char *const cases[] = { "qwen35", "qwen35moe", "qwen3next", "rwkv7", "arwkv7", "kimi-linear" };
#define N_CASES (sizeof cases / sizeof *cases)

static const char *case_file(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    return qsf_test_data(path);
}

static bool open_case(QsfRig *r, const char *name, const QsfRigOptions *with) {
    QsfErr err = { 0 };
    QsfRigOptions o = *with;
    o.path = case_file(name);
    o.ctx = CTX;
    o.level = QK_LEVEL_UNKNOWN;
    if (o.path == NULL) return false;
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    return true;
}

static void close_rig(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

/* ---- against a computation in double ---- */

static const QsfStep *find_step(const QsfRig *r, QsfOp op, const char *label) {
    for (uint32_t i = 0; i < r->model.prog.n_steps; i++) {
        const QsfStep *s = &r->model.prog.step[i];
        if (s->op == op && (label == NULL || strcmp(s->label, label) == 0)) return s;
    }
    fail_msg("the program has no step %s", qsf_op_name(op));
    return NULL;
}

/* Numbers from low to 1. */
static void fill(const QsfForward *f, QsfSlice s, float low, uint32_t seed) {
    for (uint32_t c = 0; c < COLS; c++)
        for (uint32_t i = 0; i < s.width; i++) {
            seed = seed * 1664525u + 1013904223u;
            qsf_col(f, s, c)[i] = low + (1 - low) * (float)(seed >> 8) / 16777216.0f;
        }
}

static void expect_near(float got, double want) {
    if (!(fabs((double)got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("got %.9g, want %.9g", (double)got, want);
}

typedef int (*StepFn)(QsfForward *f, const QsfStep *s, QsfErr *err);

/* Runs the step on the columns in pieces of 5, 1 and the rest, as passes do. */
static void run_pieces(QsfForward *f, const QsfStep *s, StepFn fn) {
    QsfErr err = { 0 };
    (void)qsf_recurrent_restore(&f->recurrent, 0);
    for (uint32_t c = 0; c < COLS; c += f->n_cols) {
        f->col0 = c;
        f->n_cols = c == 0 ? 5 : c == 5 ? 1 : COLS - c;
        qsf_test_expect_ok(fn(f, s, &err), &err);
        qsf_recurrent_commit(&f->recurrent);
    }
}

static void check_delta(QsfForward *f, const QsfStep *s) {
    const QsfDeltaStep *p = &s->u.delta;
    const uint32_t keys = p->k_heads * p->k_dim, decays = p->per_channel ? p->k_dim : 1;
    fill(f, s->in, -0.5f, 1);
    fill(f, s->in2, 0.5f, 2);
    fill(f, s->in3, 0, 3);
    run_pieces(f, s, qsf_delta);
    for (uint32_t h = 0; h < p->v_heads; h++)
        for (uint32_t j = 0; j < p->v_dim; j++) {
            const uint32_t kh = p->tiled ? h % p->k_heads : h / (p->v_heads / p->k_heads);
            double st[DIM_MAX] = { 0 };
            for (uint32_t c = 0; c < COLS; c++) {
                const float *q = qsf_col(f, s->in, c) + kh * p->k_dim, *k = q + keys;
                const float *decay = qsf_col(f, s->in2, c) + h * decays;
                double seen = 0, y = 0;
                for (uint32_t i = 0; i < p->k_dim; i++) {
                    st[i] *= (double)decay[p->per_channel ? i : 0];
                    seen += st[i] * (double)k[i];
                }
                const double v = (double)qsf_col(f, s->in, c)[2 * keys + h * p->v_dim + j],
                             d = (double)qsf_col(f, s->in3, c)[h] * (v - seen);
                for (uint32_t i = 0; i < p->k_dim; i++) {
                    st[i] += (double)k[i] * d;
                    y += st[i] * (double)q[i];
                }
                expect_near(qsf_col(f, s->out[0], c)[h * p->v_dim + j], y * (double)p->scale);
            }
        }
}

static void test_delta(void **state) {
    QsfRig r;
    (void)state;
    if (!open_case(&r, "qwen35", &(QsfRigOptions){ .batch = COLS, .threads = 2 })) skip();
    QsfStep s = *find_step(&r, QSF_OP_DELTA, NULL);
    check_delta(r.fwd, &s);
    s.u.delta.tiled = false;
    check_delta(r.fwd, &s);
    /* A decay per channel, in the buffer of the output's gate. */
    s.in2 = find_step(&r, QSF_OP_ACT, "gate")->out[0];
    assert_int_equal(s.in2.width, s.u.delta.v_heads * s.u.delta.k_dim);
    s.u.delta.per_channel = true;
    check_delta(r.fwd, &s);
    close_rig(&r);
}

#define FIXED_DECAY 0.75f

static const float *wkv_input(const QsfForward *f, const QsfStep *s, unsigned i, uint32_t h, uint32_t c) {
    const QsfWkvStep *p = &s->u.wkv;
    if (i == QSF_WKV_K || i == QSF_WKV_V) h = h / (p->heads / p->kv_heads);
    return qsf_col(f, s->in, c) + i * p->slot + h * p->dim;
}

static void check_wkv(QsfForward *f, const QsfStep *s) {
    const QsfWkvStep *p = &s->u.wkv;
    fill(f, s->in, -0.125f, 1);
    for (uint32_t c = 0; c < COLS; c++) /* keys whose product is below 1, so that states stay small */
        for (uint32_t i = 0; i < 2 * p->slot; i++) qsf_col(f, s->in, c)[QSF_WKV_A * p->slot + i] /= 8;
    run_pieces(f, s, qsf_wkv);
    for (uint32_t h = 0; h < p->heads; h++)
        for (uint32_t j = 0; j < p->dim; j++) {
            double st[DIM_MAX] = { 0 };
            for (uint32_t c = 0; c < COLS; c++) {
                const float *in[QSF_WKV_SLOTS];
                double seen = 0, before = 0, after = 0;
                for (unsigned i = 0; i < QSF_WKV_SLOTS; i++) in[i] = wkv_input(f, s, i, h, c);
                const double v = (double)in[QSF_WKV_V][j];
                for (uint32_t i = 0; i < p->dim; i++) seen += (double)in[QSF_WKV_A][i] * st[i];
                for (uint32_t i = 0; i < p->dim; i++) {
                    const double r = (double)in[QSF_WKV_R][i],
                                 w = p->kind == QSF_WKV_FIXED ? FIXED_DECAY : (double)in[QSF_WKV_W][i];
                    double k = (double)in[QSF_WKV_K][i];
                    if (p->kind == QSF_WKV_GLA) k *= 1 - w;
                    before += r * st[i];
                    st[i] = w * st[i] + k * v;
                    if (p->kind == QSF_WKV_V7) st[i] -= (double)in[QSF_WKV_B][i] * seen;
                    after += r * st[i];
                }
                expect_near(qsf_col(f, s->out[0], c)[h * p->dim + j], p->kind == QSF_WKV_V6 ? before : after);
            }
        }
}

static void check_bonus(QsfForward *f, const QsfStep *s) {
    const QsfWkvStep *p = &s->u.wkv;
    const float *u = qsf_param(f, p->param);
    fill(f, s->in, -1, 4);
    fill(f, s->out[0], 1, 5); /* ones */
    for (uint32_t c = 0; c < COLS; c++) qsf_wkv_bonus(f, s, c);
    for (uint32_t c = 0; c < COLS; c++)
        for (uint32_t h = 0; h < p->heads; h++) {
            double sum = 0;
            for (uint32_t i = 0; i < p->dim; i++)
                sum += (double)wkv_input(f, s, QSF_WKV_R, h, c)[i] *
                       (double)wkv_input(f, s, QSF_WKV_K, h, c)[i] * (double)u[h * p->dim + i];
            for (uint32_t i = 0; i < p->dim; i++)
                expect_near(qsf_col(f, s->out[0], c)[h * p->dim + i],
                            1 + sum * (double)wkv_input(f, s, QSF_WKV_V, h, c)[i]);
        }
}

static void check_shift(QsfForward *f, const QsfStep *s) {
    fill(f, s->in, -1, 6);
    run_pieces(f, s, qsf_shift);
    for (uint32_t c = 0; c < COLS; c++)
        for (uint32_t i = 0; i < s->in.width; i++)
            expect_near(qsf_col(f, s->out[0], c)[i], c == 0 ? 0 : (double)qsf_col(f, s->in, c - 1)[i]);
}

static void test_wkv(void **state) {
    QsfRig r;
    (void)state;
    if (!open_case(&r, "rwkv7", &(QsfRigOptions){ .batch = COLS, .threads = 2 })) skip();
    QsfStep s = *find_step(&r, QSF_OP_WKV, NULL);
    float decays[DIM_MAX], *rows[] = { decays };
    for (size_t i = 0; i < DIM_MAX; i++) decays[i] = FIXED_DECAY;
    r.model.prog.slopes = rows;
    for (int kind = QSF_WKV_V6; kind <= QSF_WKV_V7; kind++) {
        s.u.wkv.kind = (QsfWkvKind)kind;
        check_wkv(r.fwd, &s);
    }
    s.u.wkv.kind = QSF_WKV_GLA;
    s.u.wkv.kv_heads = 1;
    check_wkv(r.fwd, &s);
    check_bonus(r.fwd, find_step(&r, QSF_OP_WKV_BONUS, NULL));
    check_shift(r.fwd, find_step(&r, QSF_OP_SHIFT, NULL));
    close_rig(&r);
}

/* ---- whole models ---- */

static void collect(void *arg, uint32_t pos, const float *logits) {
    float **rows = arg;
    (void)pos;
    memcpy(rows[0], logits, sizeof(float) * 256);
    rows[0] += 256;
}

/* Evaluates N tokens, `piece` at a time; returns the first 256 logits of each. */
static float *evaluate(const char *name, const QsfRigOptions *o, uint32_t piece) {
    QsfRig r;
    if (!open_case(&r, name, o)) return NULL;
    float *rows = calloc((size_t)N * 256, sizeof *rows), *at = rows;
    assert_non_null(rows);
    for (uint32_t i = 0; i < N; i += piece) {
        int32_t ids[N];
        QsfErr err = { 0 };
        const uint32_t n = N - i < piece ? N - i : piece;
        for (uint32_t k = 0; k < n; k++) ids[k] = (int32_t)(((i + k) * 7919u + 11) % 250);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, n, collect, &at, &err), &err);
    }
    assert_ptr_equal(at, rows + (size_t)N * 256);
    close_rig(&r);
    return rows;
}

static void test_same_bytes(void **state) {
    static const struct {
        QsfRigOptions o;
        uint32_t piece;
    } ways[] = {
        { { .batch = 7, .threads = 2 }, N },
        { { .batch = 1 }, N },
        { { .batch = N, .threads = 3 }, 1 },
        { { .batch = N, .stream = true, .n_slots = 2, .threads = 2 }, 13 },
    };
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < N_CASES; i++)
        for (int exact = 0; exact < 2; exact++) {
            float *want = evaluate(cases[i], &(QsfRigOptions){ .batch = N, .exact = exact }, N);
            if (want == NULL) continue;
            seen++;
            for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
                QsfRigOptions o = ways[k].o;
                o.exact = exact;
                float *got = evaluate(cases[i], &o, ways[k].piece);
                assert_memory_equal(got, want, (size_t)N * 256 * sizeof *got);
                free(got);
            }
            free(want);
        }
    if (seen == 0) skip();
}

/* ---- bad metadata ---- */

static void test_wrong_metadata(void **state) {
    static const struct {
        const char *name, *override, *part;
    } wrong[] = {
        { "qwen35", "qwen35.ssm.group_count=int:3", "ssm.group_count' is 3, which does not divide" },
        { "qwen35", "qwen35.ssm.group_count=int:0", "ssm.group_count' is 0" },
        { "qwen35", "qwen35.ssm.group_count=null", "ssm.group_count' is missing" },
        { "qwen35", "qwen35.ssm.conv_kernel=int:0", "ssm.conv_kernel' is 0" },
        { "qwen35", "qwen35.ssm.conv_kernel=int:3", "ssm_conv1d.weight' has the shape" },
        { "qwen35", "qwen35.ssm.conv_kernel=null", "ssm.conv_kernel' is missing" },
        { "qwen35", "qwen35.ssm.state_size=int:32", "ssm.inner_size' is 64, expected 4 heads of 32" },
        { "qwen35", "qwen35.ssm.state_size=null", "ssm.state_size' is missing" },
        { "qwen35", "qwen35.ssm.time_step_rank=int:0", "ssm.time_step_rank' is 0" },
        { "qwen35", "qwen35.ssm.inner_size=null", "ssm.inner_size' is missing" },
        { "qwen35", "qwen35.full_attention_interval=int:0", "full_attention_interval' is 0" },
        { "qwen35", "qwen35.full_attention_interval=int:1", "attn_q.weight' is missing" },
        { "qwen35", "qwen35.attention.value_length=int:16", "attention.value_length' is 16, expected 32" },
        { "qwen3next", "qwen3next.ssm.group_count=int:1", "has the shape" },
        { "kimi-linear", "kimi-linear.kda.head_dim=null", "kda.head_dim' is missing" },
        { "kimi-linear", "kimi-linear.kda.head_dim=int:16", "has the shape" },
        { "kimi-linear", "kimi-linear.ssm.conv_kernel=int:0", "ssm.conv_kernel' is 0" },
        { "rwkv7", "rwkv7.wkv.head_size=int:48", "wkv.head_size' is 48, which does not divide" },
        { "rwkv7", "rwkv7.wkv.head_size=int:0", "wkv.head_size' is 0" },
        { "rwkv7", "rwkv7.wkv.head_size=null", "wkv.head_size' is missing" },
        { "rwkv7", "rwkv7.attention.decay_lora_rank=int:16", "time_mix_w1.weight' has the shape" },
        { "rwkv7", "rwkv7.attention.iclr_lora_rank=null", "iclr_lora_rank' is missing" },
        { "rwkv7", "rwkv7.attention.gate_lora_rank=int:0", "gate_lora_rank' is 0" },
        { "rwkv7", "rwkv7.token_shift_count=int:1", "token_shift_count' is 1" },
        { "arwkv7", "arwkv7.token_shift_count=int:2", "token_shift_count' is 2" },
    };
    QsfLedger ledger;
    unsigned seen = 0;
    (void)state;
    qsf_ledger_init(&ledger, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const overrides[] = { wrong[i].override, NULL }, *path = case_file(wrong[i].name);
        QsfModel m;
        QsfErr err = { 0 };
        if (path == NULL) continue;
        seen++;
        if (qsf_model_open(&m, path, overrides, &ledger, &err) == QSF_OK)
            fail_msg("%s: %s was accepted", wrong[i].name, wrong[i].override);
        qsf_test_expect_err(&err, QSF_E_MODEL, wrong[i].part);
        qsf_test_expect_err(&err, QSF_E_MODEL, path);
        assert_int_equal(ledger.total, 0);
    }
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_wkv),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_wrong_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
