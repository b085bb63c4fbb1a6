/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gemma 3n and 4: column steps of several streams against straightforward computations, rows of a table that
 * stays in the file, shared caches, tensors for other inputs, and missing tensors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/forward/ops/ops.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

static uint64_t seed;

static float next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(seed >> 33) % 2001 - 1000) / 1000.0f;
}

/* ---- steps ---- */

enum { WIDTH = 150, STREAMS = 3, COLS = 2 };

static QsfModel model;
static QsfForward forward;
static qk_table table;
/* The streams, one vector, and coefficients. */
static QsfBuffer buffers[3] = { { .width = STREAMS * WIDTH, .stride = 464 },
                                { .width = WIDTH, .stride = 160, .off = 464 },
                                { .width = STREAMS * STREAMS, .stride = 16, .off = 624 } };
static QsfParam param = { .n = WIDTH * STREAMS };
static float columns[COLS * 640], weights[WIDTH * STREAMS];

static const QsfSlice streams = { 0, 0, STREAMS *WIDTH }, vector = { 1, 0, WIDTH };

static void set_up(void) {
    seed = 11;
    for (size_t i = 0; i < COLS * 640; i++) columns[i] = next();
    for (size_t i = 0; i < WIDTH * STREAMS; i++) weights[i] = next();
    model.prog.buf = buffers;
    model.prog.n_bufs = 3;
    model.prog.param = &param;
    qk_table_init(&table, qk_cpu_best());
    forward.table = &table;
    forward.model = &model;
    forward.cols = columns;
    forward.l.n_cols = COLS;
    forward.params.mem = weights;
}

static void expect_near(double got, double want, const char *what, size_t i) {
    if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
        fail_msg("%s %zu is %g, expected %g", what, i, got, want);
}

static void test_matvec(void **state) {
    (void)state;
    set_up();
    QsfStep s = { .op = QSF_OP_MATVEC, .in = vector, .out = { { 2, 0, STREAMS } } };
    qsf_column_step(&forward, &s, 1, 2);
    const float *x = qsf_col(&forward, vector, 1), *y = qsf_col(&forward, s.out[0], 1);
    for (size_t r = 0; r < STREAMS; r++) {
        double sum = 0;
        for (size_t i = 0; i < WIDTH; i++) sum += (double)weights[r * WIDTH + i] * (double)x[i];
        expect_near((double)y[r], sum, "row", r);
    }
}

static void test_sparse(void **state) {
    const double scale = 0.75;
    double x[WIDTH], mean = 0, var = 0;
    unsigned kept = 0;
    (void)state;
    set_up();
    float *y = qsf_col(&forward, vector, 1);
    for (size_t i = 0; i < WIDTH; i++) mean += (x[i] = (double)y[i]) / WIDTH;
    for (size_t i = 0; i < WIDTH; i++) var += pow(x[i] - mean, 2) / (WIDTH - 1);
    QsfStep s = { .op = QSF_OP_SPARSE, .out = { vector }, .u.scale = (float)scale };
    qsf_column_step(&forward, &s, 1, 2);
    for (size_t i = 0; i < WIDTH; i++) {
        const double want = fmax(x[i] - mean - scale * sqrt(var), 0);
        expect_near((double)y[i], want, "element", i);
        kept += y[i] > 0.0f;
    }
    assert_true(kept > WIDTH / 20 && kept < WIDTH / 2);
}

static void test_match(void **state) {
    double x[STREAMS * WIDTH], wanted = 0;
    (void)state;
    set_up();
    float *y = qsf_col(&forward, streams, 1);
    memset(y + WIDTH, 0, WIDTH * sizeof *y); /* a vector without a direction stays as it is */
    for (size_t i = 0; i < STREAMS * WIDTH; i++) x[i] = (double)y[i];
    for (size_t i = 0; i < WIDTH; i++) wanted += pow((double)qsf_col(&forward, vector, 1)[i], 2);
    QsfStep s = { .op = QSF_OP_MATCH, .in = vector, .out = { streams } };
    qsf_column_step(&forward, &s, 1, 2);
    for (size_t v = 0; v < STREAMS; v++) {
        double length = 0;
        for (size_t i = 0; i < WIDTH; i++) length += pow(x[v * WIDTH + i], 2);
        for (size_t i = v * WIDTH; i < (v + 1) * WIDTH; i++)
            expect_near((double)y[i], length > 0 ? x[i] * sqrt(wanted / length) : 0, "element", i);
    }
}

static void test_predict(void **state) {
    double x[STREAMS * WIDTH];
    (void)state;
    set_up();
    float *y = qsf_col(&forward, streams, 1);
    for (size_t i = 0; i < STREAMS * WIDTH; i++) x[i] = (double)y[i];
    QsfStep s = {
        .op = QSF_OP_PREDICT, .in = { 2, 0, STREAMS * STREAMS }, .out = { streams }, .u.streams = STREAMS
    };
    const float *coef = qsf_col(&forward, s.in, 1);
    qsf_column_step(&forward, &s, 1, 2);
    for (size_t i = 0; i < STREAMS; i++)
        for (size_t e = 0; e < WIDTH; e++) {
            double sum = x[i * WIDTH + e];
            for (size_t j = 0; j < STREAMS; j++) sum += (double)coef[i * STREAMS + j] * x[j * WIDTH + e];
            expect_near((double)y[i * WIDTH + e], sum, "element", i * WIDTH + e);
        }
}

static void test_correct(void **state) {
    double x[STREAMS * WIDTH];
    (void)state;
    set_up();
    float *y = qsf_col(&forward, streams, 1);
    for (size_t i = 0; i < STREAMS * WIDTH; i++) x[i] = (double)y[i];
    QsfStep s = {
        .op = QSF_OP_CORRECT, .in = vector, .in2 = { 2, 0, STREAMS }, .out = { streams }, .u.streams = STREAMS
    };
    const float *in = qsf_col(&forward, vector, 1), *coef = qsf_col(&forward, s.in2, 1);
    qsf_column_step(&forward, &s, 1, 2);
    for (size_t i = 0; i < STREAMS; i++)
        for (size_t e = 0; e < WIDTH; e++)
            expect_near((double)y[i * WIDTH + e],
                        x[i * WIDTH + e] + ((double)in[e] - x[e]) * (1 + (double)coef[i]), "element",
                        i * WIDTH + e);
}

/* ---- models ---- */

enum {
    VOCAB = 300,
    LAYERS = 4,
    HIDDEN = 64,
    HEADS = 2,
    DIM = 32,
    WINDOW_DIM = 16,
    FFN = 96,
    INPUT = 32,
    TOKENS = 50
};

/* Writes a matrix of Q4_0 with random nibbles. */
static void matrix(QsfGgufBuild *b, const char *name, uint64_t cols, uint64_t rows) {
    const size_t bytes = cols * rows / 32 * 18;
    uint8_t *data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i += 18) {
        const uint16_t scale = 0x2000; /* 1/128 */
        memcpy(data + i, &scale, sizeof scale);
        for (size_t k = 2; k < 18; k++) data[i + k] = (uint8_t)(next() * 127 + 128);
    }
    qsf_gb_tensor(b, name, 2, 2, (uint64_t[]){ cols, rows }, data, bytes);
    free(data);
}

static void ones(QsfGgufBuild *b, const char *name, uint32_t n) {
    float x[HIDDEN];
    for (uint32_t i = 0; i < n; i++) x[i] = 1.0f + 0.1f * next();
    qsf_gb_tensor(b, name, 0, 1, (uint64_t[]){ n }, x, n * sizeof *x);
}

static const char *named(uint32_t block, const char *name) {
    static char buf[64];
    snprintf(buf, sizeof buf, "blk.%u.%s.weight", block, name);
    return buf;
}

static void metadata(QsfGgufBuild *b, const char *arch) {
    static const uint8_t pattern[LAYERS] = { 1, 0, 1, 0 };
    qsf_gb_str(b, "general.architecture", arch);
    qsf_gb_u32(b, "gemma4.block_count", LAYERS);
    qsf_gb_u32(b, "gemma4.context_length", 256);
    qsf_gb_u32(b, "gemma4.embedding_length", HIDDEN);
    qsf_gb_u32(b, "gemma4.feed_forward_length", FFN);
    qsf_gb_u32(b, "gemma4.attention.head_count", HEADS);
    qsf_gb_u32(b, "gemma4.attention.head_count_kv", 1);
    qsf_gb_u32(b, "gemma4.attention.key_length", DIM);
    qsf_gb_u32(b, "gemma4.attention.key_length_swa", WINDOW_DIM);
    qsf_gb_u32(b, "gemma4.attention.value_length_swa", WINDOW_DIM);
    qsf_gb_u32(b, "gemma4.attention.sliding_window", 8);
    qsf_gb_array(b, "gemma4.attention.sliding_window_pattern", QSF_META_BOOL, LAYERS, pattern, LAYERS);
    qsf_gb_u32(b, "gemma4.attention.shared_kv_layers", 2);
    qsf_gb_u32(b, "gemma4.embedding_length_per_layer_input", INPUT);
    qsf_gb_u32(b, "gemma4.rope.dimension_count", DIM);
    qsf_gb_u32(b, "gemma4.rope.dimension_count_swa", WINDOW_DIM);
    qsf_gb_f32(b, "gemma4.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_tiny_vocab(b, VOCAB);
}

static void write_block(QsfGgufBuild *b, uint32_t l) {
    const uint32_t dim = l % 2 == 0 ? WINDOW_DIM : DIM;
    ones(b, named(l, "attn_norm"), HIDDEN);
    ones(b, named(l, "post_attention_norm"), HIDDEN);
    ones(b, named(l, "ffn_norm"), HIDDEN);
    ones(b, named(l, "post_ffw_norm"), HIDDEN);
    ones(b, named(l, "post_norm"), HIDDEN);
    ones(b, named(l, "attn_q_norm"), dim);
    ones(b, named(l, "attn_k_norm"), dim); /* also where it is not used */
    matrix(b, named(l, "attn_q"), HIDDEN, HEADS * dim);
    matrix(b, named(l, "attn_k"), HIDDEN, dim);
    if (l != 1) matrix(b, named(l, "attn_v"), HIDDEN, dim);
    matrix(b, named(l, "attn_output"), HEADS * dim, HIDDEN);
    matrix(b, named(l, "ffn_gate"), HIDDEN, FFN);
    matrix(b, named(l, "ffn_up"), HIDDEN, FFN);
    matrix(b, named(l, "ffn_down"), FFN, HIDDEN);
    matrix(b, named(l, "inp_gate"), HIDDEN, INPUT);
    matrix(b, named(l, "proj"), INPUT, HIDDEN);
}

/* A model with other rows of per_layer_token_embd, another architecture, or n more tensors. */
static void write_variant(const char *path, bool other_table, const char *arch, const char *const *more,
                          size_t n) {
    QsfGgufBuild b = { .version = 3 };
    const uint64_t factors = DIM / 2;
    float factor[DIM / 2];
    metadata(&b, arch);
    seed = other_table ? 8 : 7;
    matrix(&b, "per_layer_token_embd.weight", LAYERS * INPUT, VOCAB);
    seed = 9;
    matrix(&b, "token_embd.weight", HIDDEN, VOCAB);
    matrix(&b, "per_layer_model_proj.weight", HIDDEN, LAYERS * INPUT);
    ones(&b, "per_layer_proj_norm.weight", INPUT);
    ones(&b, "output_norm.weight", HIDDEN);
    for (uint64_t i = 0; i < factors; i++) factor[i] = i < 4 ? 1.0f : 1e30f;
    qsf_gb_tensor(&b, "rope_freqs.weight", 0, 1, &factors, factor, sizeof factor);
    for (uint32_t l = 0; l < LAYERS; l++) write_block(&b, l);
    for (size_t i = 0; i < n; i++) ones(&b, more[i], 8);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
}

static void write_model(const char *path, bool other_table) {
    write_variant(path, other_table, "gemma4", NULL, 0);
}

/* The logits after TOKENS tokens, in pieces of `piece`. */
static void logits_of(const QsfRigOptions *o, uint32_t piece, float *out) {
    QsfRig r;
    QsfErr err = { 0 };
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = 3 + i * 37 % (VOCAB - 30);
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    for (uint32_t at = 0; at < TOKENS; at += piece) {
        const uint32_t n = TOKENS - at < piece ? TOKENS - at : piece;
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + at, n, NULL, NULL, &err), &err);
    }
    memcpy(out, qsf_forward_logits(r.fwd), r.model.hp.n_vocab * sizeof *out);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static void check_budgets(const char *path, bool exact) {
    static const QsfRigOptions how[] = {
        { .stream = true, .slot_bytes = 1 },
        { .stream = true, .batch = 7 },
        { .pin_cap = 9000 },
        { .threads = 2, .pin_cap = 20000 },
        { .threads = 3, .stream = true, .n_slots = 2 },
    };
    static float want[4096], got[4096];
    const QsfRigOptions whole = { .path = path, .exact = exact, .level = QK_LEVEL_UNKNOWN };
    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    logits_of(&whole, TOKENS, want);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        QsfRigOptions o = how[i];
        o.path = path;
        o.exact = exact;
        o.level = QK_LEVEL_UNKNOWN;
        logits_of(&o, i % 2 == 0 ? TOKENS : 1 + 10 * (uint32_t)i, got);
        if (memcmp(got, want, sizeof got) != 0) fail_msg("%s: other logits with variant %zu", path, i);
    }
}

static void test_budgets(void **state) {
    const char *path = qsf_test_tmp("gemma.gguf");
    (void)state;
    write_model(path, false);
    check_budgets(path, false);
    check_budgets(path, true);
    unlink(path);
}

/* A long conversation: caches with a window are rings. Going back gives the logits of a fresh start, whether
 * the window is still there or everything is evaluated again. */
enum { LONG = 2600, LONG_CTX = 3000 };

static void eval_long(QsfRig *r) {
    static int32_t ids[LONG];
    QsfErr err = { 0 };
    const uint32_t past = qsf_forward_n_past(r->fwd);
    for (uint32_t i = 0; i < LONG; i++) ids[i] = (int32_t)(3 + i * 37u % (VOCAB - 30));
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids + past, LONG - past, NULL, NULL, &err), &err);
}

static void test_rings(void **state) {
    static const uint32_t to[] = { LONG - 1, LONG - 900, LONG - 901, LONG - 1500, 5, LONG - 2 };
    static const uint32_t batch[] = { 2048, 100, 7, 7 }; /* the last one with weights in unused KV memory */
    static float want[4096];
    const char *path = qsf_test_tmp("rings.gguf");
    (void)state;
    write_model(path, false);
    for (size_t b = 0; b < sizeof batch / sizeof *batch; b++) {
        QsfRig r;
        QsfErr err = { 0 };
        QsfRigOptions o = { .path = path, .batch = batch[b], .ctx = LONG_CTX, .level = QK_LEVEL_UNKNOWN };
        if (b == 3) o.pin_cap = 20000, o.kv_step = 96;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        const size_t bytes = r.model.hp.n_vocab * sizeof *want;
        eval_long(&r);
        if (b == 0) memcpy(want, qsf_forward_logits(r.fwd), bytes);
        for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
            const uint32_t keeps = qsf_forward_keeps(r.fwd, to[i]);
            assert_int_equal(keeps, to[i] >= LONG - 901 ? to[i] : 0);
            assert_int_equal(qsf_forward_truncate(r.fwd, to[i]), keeps);
            eval_long(&r);
            assert_memory_equal(qsf_forward_logits(r.fwd), want, bytes);
        }
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
    unlink(path);
}

static void test_budgets_of_cases(void **state) {
    static const char *const name[] = { "gemma3n", "gemma4", "gemma4_dense", "gemma4_moe" };
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char file[64];
        snprintf(file, sizeof file, "architectures/%s/model.gguf", name[i]);
        const char *path = qsf_test_data(file);
        if (path == NULL) continue;
        seen++;
        check_budgets(path, false);
    }
    if (seen == 0) skip();
}

/* The rows of the table matter, and are read one per token. */
static void test_token_rows(void **state) {
    float a[VOCAB], b[VOCAB];
    const char *path = qsf_test_tmp("gemma.gguf");
    const QsfRigOptions o = { .path = path, .level = QK_LEVEL_UNKNOWN };
    (void)state;
    write_model(path, false);
    logits_of(&o, TOKENS, a);
    QsfRig r;
    QsfErr err = { 0 };
    QsfForwardStats before, after;
    const int32_t id = 5;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_settle(r.fwd, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &before);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &after);
    assert_int_equal(after.bytes_read - before.bytes_read, LAYERS * INPUT / 32 * 18);
    qsf_rig_close(&r);
    write_model(path, true);
    logits_of(&o, TOKENS, b);
    unlink(path);
    assert_memory_not_equal(a, b, sizeof a);
}

/* ---- tensors ---- */

/* Opens the model after renaming one of its tensors, by a letter. */
static int open_renamed(const char *path, const char *name, QsfErr *err) {
    static unsigned char bytes[1 << 20];
    QsfLedger ledger;
    QsfModel m;
    qsf_ledger_init(&ledger, 0);
    write_model(path, false);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t len = fread(bytes, 1, sizeof bytes, f), n = strlen(name);
    fclose(f);
    assert_true(len > 0 && len < sizeof bytes);
    size_t at = 0;
    while (at + n < len && memcmp(bytes + at, name, n) != 0) at++;
    assert_true(at + n < len);
    bytes[at] = 'x';
    assert_int_equal(qsf_test_write_file(path, bytes, len), 0);
    const int rc = qsf_model_open(&m, path, NULL, &ledger, err);
    if (rc == QSF_OK) qsf_model_close(&m);
    unlink(path);
    assert_int_equal(ledger.total, 0);
    return rc;
}

static void test_missing_tensors(void **state) {
    static const char *const name[] = {
        "per_layer_token_embd.weight", "per_layer_model_proj.weight", "per_layer_proj_norm.weight",
        "blk.1.inp_gate.weight",       "blk.2.proj.weight",           "blk.3.post_norm.weight",
        "blk.0.attn_k.weight",         "rope_freqs.weight",
    };
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char want[96];
        QsfErr err = { 0 };
        snprintf(want, sizeof want, "tensor '%s' is missing", name[i]);
        assert_int_not_equal(open_renamed(qsf_test_tmp("gemma.gguf"), name[i], &err), QSF_OK);
        qsf_test_expect_err(&err, QSF_E_MODEL, want);
    }
}

static void test_other_inputs(void **state) {
    static const char *const tower[] = { "v.blk.0.ln1.weight", "mm.0.weight", "a.conv1d.1.bias" },
                             *const unknown[] = { "video.weight" };
    const char *path = qsf_test_tmp("gemma.gguf");
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    (void)state;
    qsf_ledger_init(&ledger, 0);
    write_variant(path, false, "gemma4", tower, 3);
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    assert_int_equal(m.prog.n_ignored, 3);
    assert_string_equal(m.prog.ignored, tower[0]);
    qsf_model_close(&m);
    write_variant(path, false, "gemma4", unknown, 1);
    assert_int_not_equal(qsf_model_open(&m, path, NULL, &ledger, &err), QSF_OK);
    qsf_test_expect_err(&err, QSF_E_MODEL, "tensor 'video.weight' is not supported");
    qsf_err_clear(&err);
    write_variant(path, false, "clip", tower, 3);
    assert_int_not_equal(qsf_model_open(&m, path, NULL, &ledger, &err), QSF_OK);
    qsf_test_expect_err(&err, QSF_E_MODEL, "projector of a multimodal model");
    unlink(path);
    assert_int_equal(ledger.total, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matvec),       cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_match),        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_correct),      cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_rings),        cmocka_unit_test(test_budgets_of_cases),
        cmocka_unit_test(test_token_rows),   cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_other_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
