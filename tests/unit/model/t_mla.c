/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multi-head latent attention: the absorbed form against the same model with all heads expanded, and the same
 * bytes for any budget, chunk and number of threads, with heads of 16 rows and of others. */
#include <math.h>
#include <stdlib.h>

#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 300, LAYERS = 2, TOKENS = 70 };

typedef struct Shape {
    uint32_t hidden, heads, q_lora, kv_lora, nope, rope, v, ffn;
    uint32_t wtype; /* of matrices: 0 F32, 2 Q4_0 */
} Shape;

static uint64_t seed;

static float next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(seed >> 33) % 2001 - 1000) / 1000.0f;
}

/* Writes n random floats: matrices of F32, or blocks of Q4_0 with random nibbles. */
static void matrix(QsfGgufBuild *b, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) n *= ne[i];
    const size_t bytes = type == 2 ? n / 32 * 18 : n * sizeof(float);
    uint8_t *data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; type != 2 && i < n; i++) {
        const float x = next() / sqrtf((float)ne[0]);
        memcpy(data + i * sizeof x, &x, sizeof x);
    }
    for (size_t i = 0; type == 2 && i < bytes; i += 18) {
        const uint16_t scale = 0x2400; /* 1/64 */
        memcpy(data + i, &scale, sizeof scale);
        for (size_t k = 2; k < 18; k++) data[i + k] = (uint8_t)(next() * 127 + 128);
    }
    qsf_gb_tensor(b, name, type, n_dims, ne, data, bytes);
    free(data);
}

static const char *named(uint32_t block, const char *name) {
    static char buf[64];
    snprintf(buf, sizeof buf, "blk.%u.%s.weight", block, name);
    return buf;
}

static void matrix2(QsfGgufBuild *b, const Shape *s, uint32_t block, const char *name, uint32_t k,
                    uint32_t n) {
    matrix(b, named(block, name), s->wtype, 2, (uint64_t[]){ k, n });
}

static void ones(QsfGgufBuild *b, const char *name, uint32_t n) {
    float x[512];
    for (uint32_t i = 0; i < n; i++) x[i] = 1.0f + 0.1f * next();
    qsf_gb_tensor(b, name, 0, 1, (uint64_t[]){ n }, x, n * sizeof *x);
}

/* The products of a block: expanded as rows (head: nope, then v) of one matrix, or per head, where K's are
 * transposed. Only for F32, so that both are the same numbers. */
static void products(QsfGgufBuild *b, const Shape *s, uint32_t block, bool expanded) {
    const uint64_t r = s->kv_lora, h = s->heads, both = s->nope + s->v;
    if (s->wtype != 0) {
        matrix(b, named(block, "attn_k_b"), s->wtype, 3, (uint64_t[]){ s->nope, r, h });
        matrix(b, named(block, "attn_v_b"), s->wtype, 3, (uint64_t[]){ r, s->v, h });
        return;
    }
    float *kv = calloc(h * both * r, sizeof *kv), *k = calloc(h * s->nope * r, sizeof *k),
          *v = calloc(h * s->v * r, sizeof *v);
    assert_true(kv != NULL && k != NULL && v != NULL);
    for (size_t i = 0; i < h * both * r; i++) kv[i] = next() / sqrtf((float)r);
    for (size_t i = 0; i < h; i++)
        for (size_t c = 0; c < r; c++) {
            const float *head = kv + i * both * r + c;
            for (size_t d = 0; d < s->nope; d++) k[(i * r + c) * s->nope + d] = head[d * r];
            for (size_t d = 0; d < s->v; d++) v[(i * s->v + d) * r + c] = head[(s->nope + d) * r];
        }
    if (expanded) {
        qsf_gb_tensor(b, named(block, "attn_kv_b"), 0, 2, (uint64_t[]){ r, h * both }, kv,
                      h * both * r * sizeof *kv);
    } else {
        qsf_gb_tensor(b, named(block, "attn_k_b"), 0, 3, (uint64_t[]){ s->nope, r, h }, k,
                      h * s->nope * r * sizeof *k);
        qsf_gb_tensor(b, named(block, "attn_v_b"), 0, 3, (uint64_t[]){ r, s->v, h }, v,
                      h * s->v * r * sizeof *v);
    }
    free(kv);
    free(k);
    free(v);
}

static void metadata(QsfGgufBuild *b, const Shape *s) {
    qsf_gb_str(b, "general.architecture", "minicpm3");
    qsf_gb_u32(b, "minicpm3.block_count", LAYERS);
    qsf_gb_u32(b, "minicpm3.context_length", 256);
    qsf_gb_u32(b, "minicpm3.embedding_length", s->hidden);
    qsf_gb_u32(b, "minicpm3.feed_forward_length", s->ffn);
    qsf_gb_u32(b, "minicpm3.attention.head_count", s->heads);
    qsf_gb_u32(b, "minicpm3.attention.key_length", s->nope + s->rope);
    qsf_gb_u32(b, "minicpm3.attention.value_length", s->v);
    qsf_gb_u32(b, "minicpm3.attention.kv_lora_rank", s->kv_lora);
    if (s->q_lora > 0) qsf_gb_u32(b, "minicpm3.attention.q_lora_rank", s->q_lora);
    qsf_gb_u32(b, "minicpm3.rope.dimension_count", s->rope);
    qsf_gb_f32(b, "minicpm3.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_tiny_vocab(b, VOCAB);
}

static void write_model(const char *path, const Shape *s, bool expanded) {
    QsfGgufBuild b = { .version = 3 };
    seed = 7;
    metadata(&b, s);
    matrix(&b, "token_embd.weight", 0, 2, (uint64_t[]){ s->hidden, VOCAB });
    ones(&b, "output_norm.weight", s->hidden);
    for (uint32_t l = 0; l < LAYERS; l++) {
        ones(&b, named(l, "attn_norm"), s->hidden);
        if (s->q_lora > 0) {
            matrix2(&b, s, l, "attn_q_a", s->hidden, s->q_lora);
            ones(&b, named(l, "attn_q_a_norm"), s->q_lora);
        }
        matrix2(&b, s, l, s->q_lora > 0 ? "attn_q_b" : "attn_q", s->q_lora > 0 ? s->q_lora : s->hidden,
                s->heads * (s->nope + s->rope));
        matrix2(&b, s, l, "attn_kv_a_mqa", s->hidden, s->kv_lora + s->rope);
        ones(&b, named(l, "attn_kv_a_norm"), s->kv_lora);
        products(&b, s, l, expanded);
        matrix2(&b, s, l, "attn_output", s->heads * s->v, s->hidden);
        ones(&b, named(l, "ffn_norm"), s->hidden);
        matrix2(&b, s, l, "ffn_gate", s->hidden, s->ffn);
        matrix2(&b, s, l, "ffn_up", s->hidden, s->ffn);
        matrix2(&b, s, l, "ffn_down", s->ffn, s->hidden);
    }
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
}

/* The logits after TOKENS tokens, in pieces of `piece`. */
static void logits_of(const QsfRigOptions *o, uint32_t piece, float *out) {
    QsfRig r;
    QsfErr err = { 0 };
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = 3 + i * 37 % (VOCAB - 3);
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    for (uint32_t at = 0; at < TOKENS; at += piece) {
        const uint32_t n = TOKENS - at < piece ? TOKENS - at : piece;
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + at, n, NULL, NULL, &err), &err);
    }
    memcpy(out, qsf_forward_logits(r.fwd), VOCAB * sizeof *out);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static const Shape shapes[] = {
    { .hidden = 64, .heads = 3, .q_lora = 32, .kv_lora = 32, .nope = 32, .rope = 16, .v = 32, .ffn = 96 },
    /* Heads of 24 and 10 rows. */
    { .hidden = 64, .heads = 5, .kv_lora = 24, .nope = 14, .rope = 6, .v = 10, .ffn = 64 },
};

static void test_absorbed(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("mla.gguf");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        float want[VOCAB], got[VOCAB];
        const QsfRigOptions o = { .path = path, .exact = true };
        write_model(path, &shapes[i], true);
        logits_of(&o, TOKENS, want);
        write_model(path, &shapes[i], false);
        logits_of(&o, TOKENS, got);
        double most = 0;
        for (int k = 0; k < VOCAB; k++) most = fmax(most, fabs((double)want[k]));
        assert_true(most > 0.01);
        for (int k = 0; k < VOCAB; k++)
            if (fabs((double)want[k] - (double)got[k]) > 1e-4 * most)
                fail_msg("shape %zu: logit %d is %g, expected %g", i, k, (double)got[k], (double)want[k]);
    }
    unlink(path);
}

static void check_budgets(const char *path, bool exact) {
    static const QsfRigOptions how[] = {
        { .stream = true, .slot_bytes = 1 },
        { .stream = true, .batch = 7 },
        { .pin_cap = 9000 },
        { .threads = 2, .pin_cap = 20000 },
        { .threads = 3, .stream = true, .n_slots = 2 },
    };
    float want[VOCAB], got[VOCAB];
    const QsfRigOptions whole = { .path = path, .exact = exact, .level = QK_LEVEL_UNKNOWN };
    logits_of(&whole, TOKENS, want);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        QsfRigOptions o = how[i];
        o.path = path;
        o.exact = exact;
        o.level = QK_LEVEL_UNKNOWN;
        logits_of(&o, i % 2 == 0 ? TOKENS : 1 + 10 * (uint32_t)i, got);
        if (memcmp(got, want, sizeof got) != 0) fail_msg("other logits with variant %zu", i);
    }
}

static void test_budgets(void **state) {
    /* Q4_0 is interleaved, unless a head's rows are not a multiple of 16. */
    static const Shape quantized[] = {
        { .hidden = 64,
          .heads = 3,
          .q_lora = 32,
          .kv_lora = 32,
          .nope = 32,
          .rope = 16,
          .v = 32,
          .ffn = 96,
          .wtype = 2 },
        { .hidden = 64, .heads = 4, .kv_lora = 96, .nope = 64, .rope = 8, .v = 24, .ffn = 64, .wtype = 2 },
    };
    const char *path = qsf_test_tmp("mla.gguf");
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        write_model(path, i < 2 ? &shapes[i] : &quantized[i - 2], false);
        check_budgets(path, false);
        check_budgets(path, true);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_absorbed), cmocka_unit_test(test_budgets) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
