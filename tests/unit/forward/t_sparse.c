/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sparse attention: what an indexer chooses, and attention over it, against a computation in double. */
#include <math.h>

#include "src/forward/ops/ops.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 256, PAST = 60, COLS = 3, DIM_MAX = 128, POSITIONS = PAST + COLS };

static bool open_case(QsfRig *r, const char *name) {
    char path[128];
    QsfErr err = { 0 };
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    const QsfRigOptions o = { .path = qsf_test_data(path),
                              .ctx = CTX,
                              .threads = 2,
                              .batch = COLS,
                              .level = QK_LEVEL_UNKNOWN,
                              .exact = true };
    if (o.path == NULL) return false;
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    r->fwd->past = PAST;
    r->fwd->col0 = 0;
    r->fwd->n_cols = COLS;
    return true;
}

static void close_rig(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

static uint32_t seed = 1;

/* A number from -1 to 1. */
static float number(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1;
}

static void fill(const QsfForward *f, QsfSlice s) {
    for (uint32_t c = 0; c < COLS; c++)
        for (uint32_t i = 0; i < s.width; i++) qsf_col(f, s, c)[i] = number();
}

static void fill_cache(const QsfForward *f, uint32_t kv) {
    const QsfKvSpec *spec = &f->model->prog.kv[kv];
    float k[4 * DIM_MAX], v[4 * DIM_MAX];
    assert_true(spec->heads * spec->dim <= 4 * DIM_MAX);
    for (uint32_t t = 0; t < POSITIONS; t++) {
        for (uint32_t i = 0; i < spec->heads * spec->dim; i++) {
            k[i] = number();
            v[i] = number();
        }
        qsf_kvcache_store(&f->kv, kv, t, k, v);
    }
}

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static const QsfStep *find_step(const QsfRig *r, QsfOp op) {
    for (uint32_t i = 0; i < r->model.prog.n_steps; i++) {
        const QsfStep *s = &r->model.prog.step[i];
        if (s->op == op && (op != QSF_OP_ATTENTION || s->in2.buf != QSF_NONE)) return s;
    }
    fail_msg("the program has no step %s", qsf_op_name(op));
    return NULL;
}

/* ---- the indexer ---- */

/* Scores of positions, or of blocks for a head. */
static uint32_t scores(const QsfForward *f, const QsfStep *s, uint32_t c, uint32_t head, double *score) {
    const QsfIndexStep *p = &s->u.index;
    const size_t dim = f->model->prog.kv[p->kv].dim, block = p->block > 0 ? p->block : 1;
    const float *q = qsf_col(f, s->in, c);
    const uint32_t n = PAST + c + 1;
    float key[DIM_MAX];
    for (uint32_t t = 0; t < n; t++) {
        double x = 0;
        qsf_kvcache_ops(&f->kv, p->kv, 0)->load(key, qsf_kvcache_k(&f->kv, p->kv, 0), 0, t, dim);
        if (p->block > 0)
            x = dot(q + head * dim, key, dim);
        else
            for (uint32_t h = 0; h < p->heads; h++)
                x += fmax(dot(q + h * dim, key, dim), 0) * (double)qsf_col(f, s->in2, c)[h];
        score[t / block] = t % block == 0 ? x : fmax(score[t / block], x);
    }
    return (uint32_t)((n + block - 1) / block);
}

static void check_chosen(const QsfForward *f, const QsfStep *s, uint32_t c, uint32_t head) {
    const QsfIndexStep *p = &s->u.index;
    double score[POSITIONS], lowest = INFINITY, highest = -INFINITY;
    bool chosen[POSITIONS] = { false };
    const uint32_t n = scores(f, s, c, head, score);
    const uint32_t *out = (const uint32_t *)(const void *)qsf_col(f, s->out[0], c) + head * p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        assert_true(out[i] < n && !chosen[out[i]]);
        chosen[out[i]] = true;
    }
    for (uint32_t i = 0; p->block > 0 && i < p->local; i++) {
        assert_true(chosen[n - 1 - i]);
        score[n - 1 - i] = INFINITY;
    }
    if (p->local > 0) assert_int_equal(out[p->n - 1], n - 1);
    for (uint32_t t = 0; t < n; t++) {
        if (chosen[t])
            lowest = fmin(lowest, score[t]);
        else
            highest = fmax(highest, score[t]);
    }
    assert_true(lowest >= highest - 1e-5);
}

/* ---- attention ---- */

static void check_attention(const QsfForward *f, const QsfStep *s, uint32_t c, const float *queries) {
    const QsfAttentionStep *a = &s->u.attention;
    const QsfKvSpec *kv = &f->model->prog.kv[a->kv];
    const uint32_t block = a->block > 0 ? a->block : 1, per_head = s->in2.width / kv->heads;
    for (uint32_t h = 0; h < a->heads; h++) {
        const uint32_t kv_head = h / (a->heads / kv->heads);
        const uint32_t *chosen = (const uint32_t *)(const void *)qsf_col(f, s->in2, c) + kv_head * per_head;
        double sum = 0, want[DIM_MAX] = { 0 };
        float k[DIM_MAX], v[DIM_MAX];
        for (uint32_t i = 0; i < per_head * block; i++) {
            const uint32_t t = chosen[i / block] * block + i % block;
            if (t > PAST + c) continue;
            qsf_kvcache_ops(&f->kv, a->kv, 0)->load(k, qsf_kvcache_k(&f->kv, a->kv, kv_head), 0, t, kv->dim);
            if (!kv->v_is_k)
                qsf_kvcache_ops(&f->kv, a->kv, 1)
                    ->load(v, qsf_kvcache_v(&f->kv, a->kv, kv_head), 1, t, kv->dim);
            const double w = exp((double)a->scale * dot(queries + h * kv->dim, k, kv->dim));
            sum += w;
            for (uint32_t d = 0; d < kv->dim; d++) want[d] += w * (double)(kv->v_is_k ? k : v)[d];
        }
        for (uint32_t d = 0; d < kv->dim; d++) {
            const double got = (double)qsf_col(f, s->out[0], c)[h * kv->dim + d];
            if (!(fabs(got - want[d] / sum) < 1e-5)) fail_msg("got %.9g, want %.9g", got, want[d] / sum);
        }
    }
}

static void check_case(const char *name) {
    QsfRig r;
    QsfErr err = { 0 };
    float queries[COLS][8 * DIM_MAX];
    if (!open_case(&r, name)) skip();
    QsfForward *f = r.fwd;
    const QsfStep *index = find_step(&r, QSF_OP_INDEX), *attention = find_step(&r, QSF_OP_ATTENTION);
    assert_int_equal(attention->in2.buf, index->out[0].buf);
    fill_cache(f, index->u.index.kv);
    fill_cache(f, attention->u.attention.kv);
    fill(f, index->in);
    if (index->in2.buf != QSF_NONE) fill(f, index->in2);
    qsf_test_expect_ok(qsf_index(f, index, &err), &err);
    for (uint32_t c = 0; c < COLS; c++)
        for (uint32_t h = 0; h < (index->u.index.block > 0 ? index->u.index.heads : 1); h++)
            check_chosen(f, index, c, h);
    fill(f, attention->in);
    for (uint32_t c = 0; c < COLS; c++)
        memcpy(queries[c], qsf_col(f, attention->in, c), attention->in.width * sizeof(float));
    qsf_test_expect_ok(qsf_sparse_attention(f, attention, &err), &err);
    for (uint32_t c = 0; c < COLS; c++) check_attention(f, attention, c, queries[c]);
    close_rig(&r);
}

static void test_positions(void **state) {
    (void)state;
    check_case("deepseek32");
}

static void test_blocks(void **state) {
    (void)state;
    check_case("minimax-m3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
