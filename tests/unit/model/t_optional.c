/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files without an optional tensor or key compute what files with the neutral tensor or the default value
 * compute: factors of 1, an identity matrix, a second matrix whose product is 1. */
#include <math.h>
#include <stdlib.h>

#include "src/model/build.h"
#include "src/model/mla.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/gguf_edit.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 300, LAYERS = 2, HIDDEN = 32, HEADS = 4, HEAD = 8, EXPERTS = 4, MAX_NAMES = 64, TOKENS = 12 };

/* A scratch file; unlike the harness's, its name stays. */
static const char *scratch(bool copy) {
    static char path[2][512];
    if (path[copy][0] == '\0')
        snprintf(path[copy], sizeof path[copy], "%s", qsf_test_tmp(copy ? "edited.gguf" : "optional.gguf"));
    return path[copy];
}

/* ---- models ---- */

/* A tensor: of each block, unless its name begins with '/'. Values are random around 0, or 1 for vectors. */
typedef struct Tensor {
    const char *name;
    uint32_t ne[3];
    enum { RANDOM, ZEROS, ONES, UNIT } fill; /* UNIT: the identity matrix */
} Tensor;

typedef struct Number {
    const char *key;
    uint32_t v;
} Number;

#define END_TENSORS \
    { NULL, { 0 }, RANDOM }
#define END_NUMBERS \
    { NULL, 0 }

static const Number usual[] = { { "block_count", LAYERS },        { "embedding_length", HIDDEN },
                                { "context_length", 64 },         { "attention.head_count", HEADS },
                                { "attention.head_count_kv", 2 }, { "feed_forward_length", HIDDEN },
                                { "attention.key_length", HEAD }, { "attention.value_length", HEAD },
                                { "vocab_size", VOCAB },          END_NUMBERS };

static const Tensor ends[] = { { "/token_embd.weight", { HIDDEN, VOCAB }, RANDOM },
                               { "/output_norm.weight", { HIDDEN }, RANDOM },
                               END_TENSORS };

#define NORMS \
    { "attn_norm.weight", { HIDDEN }, RANDOM }, { "ffn_norm.weight", { HIDDEN }, RANDOM }
#define QKV                                                                                               \
    { "attn_q.weight", { HIDDEN, HIDDEN }, RANDOM }, { "attn_k.weight", { HIDDEN, HIDDEN / 2 }, RANDOM }, \
        { "attn_v.weight", { HIDDEN, HIDDEN / 2 }, RANDOM }, {                                            \
        "attn_output.weight", { HIDDEN, HIDDEN }, RANDOM                                                  \
    }
#define MLP                                                                                               \
    { "ffn_gate.weight", { HIDDEN, HIDDEN }, RANDOM }, { "ffn_up.weight", { HIDDEN, HIDDEN }, RANDOM }, { \
        "ffn_down.weight", { HIDDEN, HIDDEN }, RANDOM                                                     \
    }

static uint64_t seed;

static float next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return (float)(int32_t)(seed >> 32) / 2147483648.0f;
}

static float value(const Tensor *t, uint64_t i) {
    const bool vector = t->ne[1] == 0;
    switch (t->fill) {
    case ZEROS: return 0;
    case ONES: return 1;
    case UNIT: return i / t->ne[0] == i % t->ne[0] ? 1.0f : 0.0f;
    default: return vector ? 1 + 0.2f * next() : next() / sqrtf((float)t->ne[0]);
    }
}

/* Values depend on the name, not on which other tensors there are. */
static void add(QsfGgufBuild *b, const char *name, const Tensor *t) {
    uint64_t ne[3] = { t->ne[0], t->ne[1], t->ne[2] }, n = 1;
    const uint32_t dims = ne[1] == 0 ? 1 : ne[2] == 0 ? 2 : 3;
    seed = 5381;
    for (const char *c = name; *c != '\0'; c++) seed = seed * 33 + (unsigned char)*c;
    for (uint32_t i = 0; i < dims; i++) n *= ne[i];
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++) v[i] = value(t, i);
    qsf_gb_tensor(b, name, 0, dims, ne, v, n * sizeof *v);
    free(v);
}

static void add_numbers(QsfGgufBuild *b, const char *arch, const Number *n, const Number *instead) {
    char key[128];
    for (; n->key != NULL; n++) {
        bool replaced = false;
        for (const Number *k = instead; k != NULL && k->key != NULL; k++)
            replaced |= strcmp(k->key, n->key) == 0;
        if (replaced) continue;
        snprintf(key, sizeof key, "%s.%s", arch, n->key);
        qsf_gb_u32(b, key, n->v);
    }
}

static void add_tensors(QsfGgufBuild *b, const Tensor *t) {
    char name[128];
    for (; t->name != NULL; t++) {
        if (t->name[0] == '/') add(b, t->name + 1, t);
        for (uint32_t i = 0; t->name[0] != '/' && i < LAYERS; i++) {
            snprintf(name, sizeof name, "blk.%u.%s", i, t->name);
            add(b, name, t);
        }
    }
}

static const char *write_model(const char *arch, const Number *numbers, const Tensor *tensors) {
    const char *path = scratch(false);
    QsfGgufBuild b = { 0 };
    char key[128];
    qsf_gb_str(&b, "general.architecture", arch);
    add_numbers(&b, arch, usual, numbers);
    add_numbers(&b, arch, numbers, NULL);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    qsf_gb_f32(&b, key, 1e-5f);
    snprintf(key, sizeof key, "%s.attention.layer_norm_epsilon", arch);
    qsf_gb_f32(&b, key, 1e-5f);
    qsf_gb_tiny_vocab(&b, VOCAB);
    add_tensors(&b, ends);
    add_tensors(&b, tensors);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    return path;
}

/* ---- what they compute ---- */

typedef struct Logits {
    float v[VOCAB];
} Logits;

static Logits eval(const char *path, uint32_t ctx) {
    Logits out;
    int32_t ids[TOKENS];
    QsfErr err = { 0 };
    QsfRig r;
    const QsfRigOptions o = { .path = path, .ctx = ctx, .exact = true, .level = QK_LEVEL_UNKNOWN };
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    for (int i = 0; i < TOKENS; i++) ids[i] = 3 + i * 7;
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, TOKENS, NULL, NULL, &err), &err);
    memcpy(out.v, qsf_forward_logits(r.fwd), sizeof out.v);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return out;
}

static double difference(const Logits *a, const Logits *b) {
    double max = 0;
    for (int i = 0; i < VOCAB; i++) max = fmax(max, fabs((double)a->v[i] - (double)b->v[i]));
    return max;
}

/* The same model without a tensor or with another key. */
static Logits edited_at(const char *path, uint32_t ctx, const char *a, const char *b, const char *c) {
    const char *const edits[] = { a, b, c, NULL };
    const char *copy = scratch(true);
    assert_int_equal(qsf_test_edit_gguf(path, copy, edits), 0);
    return eval(copy, ctx);
}

static Logits edited(const char *path, const char *a, const char *b) {
    return edited_at(path, 32, a, a != NULL ? b : NULL, NULL);
}

static void expect_same(Logits a, Logits b) { assert_true(difference(&a, &b) < 1e-5); }
static void expect_other(Logits a, Logits b) { assert_true(difference(&a, &b) > 1e-3); }

/* ---- rotation ---- */

static void test_rope_factors(void **state) {
    static const Tensor tensors[] = { NORMS,
                                      QKV,
                                      { "ffn_up.weight", { HIDDEN, 2 * HIDDEN }, RANDOM },
                                      { "ffn_down.weight", { HIDDEN, HIDDEN }, RANDOM },
                                      { "/rope_factors_short.weight", { HEAD / 2 }, RANDOM },
                                      { "/rope_factors_long.weight", { HEAD / 2 }, ONES },
                                      END_TENSORS };
    static const Number numbers[] = { { "rope.scaling.original_context_length", 24 }, END_NUMBERS };
    const char *path = write_model("phi3", numbers, tensors);
    const char *type = "str=phi3.rope.scaling.type=longrope",
               *no_long = "drop-tensor=rope_factors_long.weight",
               *no_short = "drop-tensor=rope_factors_short.weight";
    (void)state;
    const Logits plain = edited_at(path, 16, type, no_long, no_short);
    expect_other(plain, edited_at(path, 16, type, NULL, NULL)); /* short contexts have factors */
    expect_same(plain, edited_at(path, 32, type, NULL, NULL));  /* of long ones they are 1 */
    expect_same(plain, edited_at(path, 32, type, no_long, NULL));
    expect_same(plain, edited_at(path, 16, type, no_short, NULL));
    expect_same(plain, edited_at(path, 16, no_long, no_short, NULL));
}

/* Frequencies of the pairs that turn with the fourth position are 0. */
static void test_rope_sections(void **state) {
    static const Tensor tensors[] = { NORMS,
                                      QKV,
                                      MLP,
                                      { "attn_q_norm.weight", { HEAD }, RANDOM },
                                      { "attn_k_norm.weight", { HEAD }, RANDOM },
                                      END_TENSORS };
    static const struct {
        const char *arch;
        uint32_t part[4];
        bool turns[HEAD / 2];
    } cases[] = { { "qwen3vl", { 2, 1, 1, 0 }, { true, true, true, true } },
                  { "qwen3vl", { 1, 1, 1, 1 }, { true, true, true, false } },
                  { "qwen3vl", { 4, 0, 0, 0 }, { true, false, false, true } },
                  { "qwen2vl", { 4, 0, 0, 0 }, { true, true, true, true } },
                  { "qwen2vl", { 1, 1, 0, 2 }, { true, true, false, false } } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfGgufBuild b = { 0 };
        QsfModel m;
        QsfErr err = { 0 };
        QsfLedger ledger;
        char key[64];
        const char *path = scratch(false);
        qsf_ledger_init(&ledger, 0);
        qsf_gb_str(&b, "general.architecture", cases[i].arch);
        add_numbers(&b, cases[i].arch, usual, NULL);
        snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", cases[i].arch);
        qsf_gb_f32(&b, key, 1e-5f);
        snprintf(key, sizeof key, "%s.rope.dimension_sections", cases[i].arch);
        qsf_gb_array(&b, key, QSF_META_U32, 4, cases[i].part, sizeof cases[i].part);
        qsf_gb_tiny_vocab(&b, VOCAB);
        add_tensors(&b, ends);
        add_tensors(&b, strcmp(cases[i].arch, "qwen3vl") == 0
                            ? tensors
                            : (const Tensor[]){ NORMS, QKV, MLP, END_TENSORS });
        assert_int_equal(qsf_gb_write(&b, path), 0);
        qsf_gb_free(&b);
        qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
        for (uint32_t k = 0; k < HEAD / 2; k++)
            if ((m.prog.rope[0].freq[k] > 0) != cases[i].turns[k]) fail_msg("case %zu, pair %u", i, k);
        qsf_model_close(&m);
        qsf_ledger_destroy(&ledger);
    }
}

/* ---- latent attention ---- */

/* Without rope.scaling.type a factor scales positions linearly, and scores all the same. */
static void test_scores(void **state) {
    enum { LATENT = 16, ROPE = 4, NOPE = 8 };
    static const Number numbers[] = { { "attention.kv_lora_rank", LATENT },
                                      { "attention.key_length", LATENT + ROPE },
                                      { "attention.key_length_mla", NOPE + ROPE },
                                      { "attention.value_length_mla", HEAD },
                                      { "attention.head_count_kv", 1 },
                                      { "rope.dimension_count", ROPE },
                                      { "rope.scaling.original_context_length", 16 },
                                      { "leading_dense_block_count", LAYERS },
                                      END_NUMBERS };
    static const Tensor tensors[] = { NORMS,
                                      MLP,
                                      { "attn_q.weight", { HIDDEN, HEADS * (NOPE + ROPE) }, RANDOM },
                                      { "attn_kv_a_mqa.weight", { HIDDEN, LATENT + ROPE }, RANDOM },
                                      { "attn_kv_a_norm.weight", { LATENT }, RANDOM },
                                      { "attn_k_b.weight", { NOPE, LATENT, HEADS }, RANDOM },
                                      { "attn_v_b.weight", { LATENT, HEAD, HEADS }, RANDOM },
                                      { "attn_output.weight", { HIDDEN, HIDDEN }, RANDOM },
                                      END_TENSORS };
    const char *path = write_model("deepseek2", numbers, tensors), *copy = scratch(true);
    const char *const edits[] = { "f32=deepseek2.rope.scaling.factor=4",
                                  "f32=deepseek2.rope.scaling.yarn_log_multiplier=0.07", NULL };
    const double ln = 0.1 * log(4), factor = (1 + ln) * (1 + 0.7 * ln);
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    (void)state;
    assert_int_equal(qsf_test_edit_gguf(path, copy, edits), 0);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&m, copy, NULL, &ledger, &err), &err);
    for (uint32_t i = 0; i < m.prog.n_steps; i++)
        if (m.prog.step[i].op == QSF_OP_ATTENTION)
            assert_true(fabs((double)m.prog.step[i].u.attention.scale * sqrt(NOPE + ROPE) / factor / factor -
                             1) < 1e-6);
    assert_true(fabs(m.prog.rope[0].freq[0] - 0.25) < 1e-12);
    assert_true(fabs(m.prog.rope[0].magnitude - 1) < 1e-12);
    qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
}

/* ---- networks ---- */

#define ROUTER \
    { "ffn_gate_inp.weight", { HIDDEN, EXPERTS }, RANDOM }
#define DOWN \
    { "ffn_down_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, RANDOM }

static const Number sparse[] = { { "expert_count", EXPERTS }, { "expert_used_count", 2 }, END_NUMBERS };

/* Without a gate experts are down(act(up(x))): as with up(x) = 1 and the gate in the place of up. */
static void test_experts_without_gate(void **state) {
    static const Tensor with[] = { NORMS,
                                   QKV,
                                   ROUTER,
                                   DOWN,
                                   { "ffn_up_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, ZEROS },
                                   { "ffn_up_exps.bias", { HIDDEN, EXPERTS }, ONES },
                                   { "ffn_gate_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, UNIT },
                                   END_TENSORS };
    static const Tensor without[] = {
        NORMS, QKV, ROUTER, DOWN, { "ffn_up_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, UNIT }, END_TENSORS
    };
    (void)state;
    const Logits a = eval(write_model("llama", sparse, with), 32);
    expect_same(a, eval(write_model("llama", sparse, without), 32));
}

/* A shared expert without one of its matrices; see QsfFfnSpec.parts. */
static void test_shared_expert(void **state) {
    static const Number numbers[] = { { "expert_count", EXPERTS },
                                      { "expert_used_count", 2 },
                                      { "ssm.conv_kernel", 4 },
                                      { "kda.head_dim", HEAD },
                                      { "expert_shared_count", 1 },
                                      { "attention.kv_lora_rank", 16 },
                                      { "attention.key_length_mla", 12 },
                                      { "attention.value_length_mla", HEAD },
                                      { "attention.head_count_kv", 1 },
                                      { "rope.dimension_count", 4 },
                                      END_NUMBERS };
#define KIMI                                                                                                 \
    NORMS, ROUTER, DOWN, { "ffn_up_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, RANDOM },                      \
        { "ffn_gate_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, RANDOM },                                     \
        { "attn_q.weight", { HIDDEN, HEADS * 12 }, RANDOM },                                                 \
        { "attn_kv_a_mqa.weight", { HIDDEN, 20 }, RANDOM }, { "attn_kv_a_norm.weight", { 16 }, RANDOM },     \
        { "attn_k_b.weight", { 8, 16, HEADS }, RANDOM }, { "attn_v_b.weight", { 16, HEAD, HEADS }, RANDOM }, \
    {                                                                                                        \
        "attn_output.weight", { HIDDEN, HIDDEN }, RANDOM                                                     \
    }
    static const Tensor unit_up[] = { KIMI,
                                      { "ffn_gate_shexp.weight", { HIDDEN, HIDDEN }, RANDOM },
                                      { "ffn_up_shexp.weight", { HIDDEN, HIDDEN }, UNIT },
                                      { "ffn_down_shexp.weight", { HIDDEN, HIDDEN }, RANDOM },
                                      END_TENSORS };
    static const Tensor unit_down[] = { KIMI,
                                        { "ffn_gate_shexp.weight", { HIDDEN, HIDDEN }, RANDOM },
                                        { "ffn_up_shexp.weight", { HIDDEN, HIDDEN }, RANDOM },
                                        { "ffn_down_shexp.weight", { HIDDEN, HIDDEN }, UNIT },
                                        END_TENSORS };
    static const Tensor unit_gate[] = { KIMI,
                                        { "ffn_gate_shexp.weight", { HIDDEN, HIDDEN }, UNIT },
                                        { "ffn_up_shexp.weight", { HIDDEN, HIDDEN }, ZEROS },
                                        { "ffn_up_shexp.bias", { HIDDEN }, ONES },
                                        { "ffn_down_shexp.weight", { HIDDEN, HIDDEN }, RANDOM },
                                        END_TENSORS };
    static const char *const arch = "kimi-linear";
    const char *path;
    (void)state;
    path = write_model(arch, numbers, unit_up);
    expect_same(eval(path, 32), edited(path, "drop-tensor=blk.0.ffn_up_shexp.weight",
                                       "drop-tensor=blk.1.ffn_up_shexp.weight"));
    const Logits no_gate = edited(path, "drop-tensor=blk.0.ffn_gate_shexp.weight",
                                  "drop-tensor=blk.1.ffn_gate_shexp.weight"); /* up is the identity */
    path = write_model(arch, numbers, unit_down);
    expect_same(eval(path, 32), edited(path, "drop-tensor=blk.0.ffn_down_shexp.weight",
                                       "drop-tensor=blk.1.ffn_down_shexp.weight"));
    expect_same(no_gate, eval(write_model(arch, numbers, unit_gate), 32));
}

/* Nemotron-H without the projections of its experts' space, which is then the block's own. */
static void test_latent(void **state) {
    static const Number numbers[] = { { "ssm.conv_kernel", 4 },   { "ssm.inner_size", HIDDEN },
                                      { "ssm.state_size", 8 },    { "ssm.time_step_rank", HEADS },
                                      { "ssm.group_count", 1 },   { "expert_count", EXPERTS },
                                      { "expert_used_count", 2 }, END_NUMBERS };
#define NEMOTRON                                                  \
    ROUTER, DOWN, { "attn_norm.weight", { HIDDEN }, RANDOM }, {   \
        "ffn_up_exps.weight", { HIDDEN, HIDDEN, EXPERTS }, RANDOM \
    }
    static const Tensor with[] = { NEMOTRON,
                                   { "ffn_latent_down.weight", { HIDDEN, HIDDEN }, UNIT },
                                   { "ffn_latent_up.weight", { HIDDEN, HIDDEN }, UNIT },
                                   END_TENSORS };
    static const Tensor without[] = { NEMOTRON, END_TENSORS };
    (void)state;
    const Logits a = eval(write_model("nemotron_h_moe", numbers, with), 32);
    expect_same(a, eval(write_model("nemotron_h_moe", numbers, without), 32));
}

/* ---- norms ---- */

static uint32_t count_steps(const char *path, const char *label) {
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    uint32_t n = 0;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    for (uint32_t i = 0; i < m.prog.n_steps; i++) n += strcmp(m.prog.step[i].label, label) == 0;
    qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
    return n;
}

/* One of the norms of q and k, and in one block only. */
static void test_one_head_norm(void **state) {
    static const Number numbers[] = { { "leading_dense_block_count", LAYERS }, END_NUMBERS };
    static const Tensor tensors[] = { QKV,
                                      MLP,
                                      { "attn_norm.weight", { HIDDEN }, RANDOM },
                                      { "post_attention_norm.weight", { HIDDEN }, RANDOM },
                                      { "attn_q_norm.weight", { HEAD }, RANDOM },
                                      { "attn_k_norm.weight", { HEAD }, RANDOM },
                                      END_TENSORS };
    const char *path = write_model("glm4moe", numbers, tensors), *copy = scratch(true);
    const char *const no_k[] = { "drop-tensor=blk.0.attn_k_norm.weight",
                                 "drop-tensor=blk.1.attn_k_norm.weight", NULL };
    const char *const no_q[] = { "drop-tensor=blk.1.attn_q_norm.weight", NULL };
    (void)state;
    assert_int_equal(qsf_test_edit_gguf(path, copy, no_k), 0);
    assert_int_equal(count_steps(copy, "attn_q_norm"), 2);
    assert_int_equal(count_steps(copy, "attn_k_norm"), 0);
    assert_int_equal(qsf_test_edit_gguf(path, copy, no_q), 0);
    assert_int_equal(count_steps(copy, "attn_q_norm"), 1);
    assert_int_equal(count_steps(copy, "attn_k_norm"), 2);
}

/* ---- keys ---- */

/* MPT without attention.max_alibi_bias has none; Gemma 2 without attention.sliding_window has one of 4096. */
static void test_defaults(void **state) {
    static const Tensor mpt[] = { NORMS,
                                  { "attn_qkv.weight", { HIDDEN, 2 * HIDDEN }, RANDOM },
                                  { "attn_output.weight", { HIDDEN, HIDDEN }, RANDOM },
                                  { "ffn_up.weight", { HIDDEN, HIDDEN }, RANDOM },
                                  { "ffn_down.weight", { HIDDEN, HIDDEN }, RANDOM },
                                  END_TENSORS };
    static const Tensor gemma[] = { NORMS,
                                    QKV,
                                    MLP,
                                    { "post_attention_norm.weight", { HIDDEN }, RANDOM },
                                    { "post_ffw_norm.weight", { HIDDEN }, RANDOM },
                                    END_TENSORS };
    const char *path = write_model("mpt", (const Number[]){ END_NUMBERS }, mpt);
    QsfLedger ledger;
    QsfModel m;
    QsfErr err = { 0 };
    (void)state;
    const Logits absent = eval(path, 32);
    expect_same(absent, edited(path, "f32=mpt.attention.max_alibi_bias=0", NULL));
    expect_other(absent, edited(path, "f32=mpt.attention.max_alibi_bias=8", NULL));
    path = write_model("gemma2", (const Number[]){ END_NUMBERS }, gemma);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    uint32_t window = 0;
    for (uint32_t i = 0; i < m.prog.n_steps; i++)
        if (m.prog.step[i].op == QSF_OP_ATTENTION && m.prog.step[i].block == 0)
            window = m.prog.step[i].u.attention.window;
    assert_int_equal(window, 4096);
    qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope_factors),  cmocka_unit_test(test_rope_sections),
        cmocka_unit_test(test_scores),        cmocka_unit_test(test_experts_without_gate),
        cmocka_unit_test(test_shared_expert), cmocka_unit_test(test_one_head_norm),
        cmocka_unit_test(test_latent),        cmocka_unit_test(test_defaults),
    };
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(scratch(false));
    (void)remove(scratch(true));
    return rc;
}
