/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that are computed when they are read: transposed, cut, joined, scaled and packed ones, compared
 * with values computed by the test; and any range of bytes with the same range of the whole. */
#include <pthread.h>

#include "tests/harness/derive_rig.h"

/* --- transposed --- */

static void test_transposed(void **state) {
    (void)state;
    begin();
    add("wte.weight", 1, TOKENS, HIDDEN);
    add("wpe.weight", 2, 16, HIDDEN);
    add("h.0.attn.c_attn.weight", 3, HIDDEN, 3 * HIDDEN);
    add("h.0.attn.c_proj.weight", 4, HIDDEN, HIDDEN);
    add("h.0.mlp.c_fc.weight", 5, HIDDEN, 4 * HIDDEN);
    open_good("{\"architectures\":[\"GPT2LMHeadModel\"],\"n_embd\":128,\"n_head\":4,\"n_layer\":1,"
              "\"n_positions\":16,"
              "\"vocab_size\":9}");
    const QsfTensor *t = find("blk.0.attn_qkv.weight");
    assert_int_equal(t->ne[0], HIDDEN);
    assert_int_equal(t->ne[1], 3 * HIDDEN);
    for (uint64_t r = 0; r < 3 * HIDDEN; r += 5)
        for (uint64_t c = 0; c < HIDDEN; c += 3) expect_element(t, r, c, value(3, c * 3 * HIDDEN + r));
    expect_ranges();
    qsf_source_close(source);
}

/* --- cut and joined --- */

static void test_heads(void **state) {
    (void)state;
    begin();
    add("gpt_neox.embed_in.weight", 1, TOKENS, HIDDEN);
    add("embed_out.weight", 1, TOKENS, HIDDEN);
    add("gpt_neox.layers.0.attention.query_key_value.weight", 2, 3 * HIDDEN, HIDDEN);
    add("gpt_neox.layers.0.attention.query_key_value.bias", 3, 1, 3 * HIDDEN);
    open_good("{\"architectures\":[\"GPTNeoXForCausalLM\"],\"hidden_size\":128,\"num_attention_heads\":4,"
              "\"num_hidden_layers\":1,\"intermediate_size\":8,\"vocab_size\":9}");
    const QsfTensor *t = find("blk.0.attn_qkv.weight"), *b = find("blk.0.attn_qkv.bias");
    for (uint64_t part = 0; part < 3; part++) {
        for (uint64_t head = 0; head < 4; head++) {
            for (uint64_t i = 0; i < 32; i++) {
                const uint64_t from = (head * 3 + part) * 32 + i, to = part * HIDDEN + head * 32 + i;
                expect_element(t, to, 5, value(2, from * HIDDEN + 5));
                expect_element(b, 0, to, value(3, from));
            }
        }
    }
    expect_ranges();
    qsf_source_close(source);
}

/* Groups of two queries, a key and a value; queries and keys as pairs. */
static void test_groups(void **state) {
    (void)state;
    begin();
    add("model.tok_embeddings.weight", 1, TOKENS, HIDDEN);
    add("output.weight", 1, TOKENS, HIDDEN);
    add("model.layers.0.attention.wqkv.weight", 2, 2 * HIDDEN, HIDDEN);
    open_good("{\"architectures\":[\"InternLM2ForCausalLM\"],\"hidden_size\":128,\"num_attention_heads\":4,"
              "\"num_key_value_heads\":2,\"num_hidden_layers\":1,\"intermediate_size\":8,\"vocab_size\":9,"
              "\"max_position_embeddings\":16}");
    const QsfTensor *q = find("blk.0.attn_q.weight"), *k = find("blk.0.attn_k.weight"),
                    *v = find("blk.0.attn_v.weight");
    assert_int_equal(q->ne[1], HIDDEN);
    assert_int_equal(v->ne[1], HIDDEN / 2);
    for (uint64_t i = 0; i < 32; i++) {
        const uint64_t pair = i % 2 * 16 + i / 2;
        for (uint64_t head = 0; head < 4; head++)
            expect_element(q, head * 32 + i, 7,
                           value(2, ((head / 2 * 4 + head % 2) * 32 + pair) * HIDDEN + 7));
        for (uint64_t head = 0; head < 2; head++) {
            expect_element(k, head * 32 + i, 7, value(2, ((head * 4 + 2) * 32 + pair) * HIDDEN + 7));
            expect_element(v, head * 32 + i, 7, value(2, ((head * 4 + 3) * 32 + i) * HIDDEN + 7));
        }
    }
    expect_ranges();
    qsf_source_close(source);
}

/* --- scaled and packed --- */

#define LLAMA                                                                                          \
    "\"hidden_size\":128,\"num_attention_heads\":2,\"num_hidden_layers\":1,\"intermediate_size\":160," \
    "\"vocab_size\":9,\"max_position_embeddings\":16,"
#define FP8 \
    "{\"architectures\":[\"LlamaForCausalLM\"]," LLAMA "\"quantization_config\":{\"quant_method\":\"fp8\""

static void add_llama(void) {
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add("lm_head.weight", 1, TOKENS, HIDDEN);
}

/* F8 weights of `rows` x 128, and n scales with the given shape. */
static void add_f8(const char *name, uint64_t rows, const uint64_t *shape, uint32_t n_dims, uint64_t n) {
    const uint64_t dims[] = { rows, HIDDEN };
    unsigned char *codes = malloc(rows * HIDDEN);
    float scales[512];
    char full[128];
    assert_non_null(codes);
    assert_true(n <= 512);
    for (uint64_t i = 0; i < rows * HIDDEN; i++) codes[i] = (unsigned char)(i * 31 % 0x78);
    for (uint64_t i = 0; i < n; i++) scales[i] = 0.3f + (float)i;
    add_bytes(name, "F8_E4M3", dims, 2, codes, rows * HIDDEN);
    snprintf(full, sizeof full, "%s_scale_inv", name);
    add_bytes(full, "F32", shape, n_dims, scales, n * sizeof *scales);
    free(codes);
}

static void test_f8(void **state) {
    static const struct {
        const char *block;
        uint64_t shape[2];
        uint32_t n_dims, block_r, block_c;
    } rows[] = { { ",\"weight_block_size\":[64,32]", { 3, 4 }, 2, 64, 32 },
                 { "", { 1, 1 }, 0, 160, 128 },
                 { "", { 160, 1 }, 2, 1, 128 } };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char config[512];
        const uint64_t n = rows[i].shape[0] * rows[i].shape[1];
        add_llama();
        add_f8("model.layers.0.mlp.up_proj.weight", 160, rows[i].shape, rows[i].n_dims, n);
        snprintf(config, sizeof config, FP8 "%s}}", rows[i].block);
        open_good(config);
        const QsfTensor *t = find("blk.0.ffn_up.weight");
        assert_int_equal(t->dtype, QK_GGML_BF16);
        for (uint64_t r = 0; r < 160; r += 7) {
            for (uint64_t c = 0; c < HIDDEN; c += 5) {
                const unsigned char code = (unsigned char)((r * HIDDEN + c) * 31 % 0x78);
                const uint64_t per_row = (HIDDEN + rows[i].block_c - 1) / rows[i].block_c;
                const float scale = 0.3f + (float)(r / rows[i].block_r * per_row + c / rows[i].block_c);
                expect_element(t, r, c, rounded(qsf_float_of(QK_GGML_F8_E4M3, &code) * scale));
            }
        }
        expect_ranges();
        qsf_source_close(source);
    }
}

static void expect_refused(const char *config, const char *words) {
    QsfErr e = { 0 };
    if (open_dir(config, &e) == QSF_OK) fail_msg("was accepted: %s", words);
    qsf_test_expect_err(&e, QSF_E_MODEL, words);
    assert_int_equal(ledger.total, 0);
}

static void test_bad_scales(void **state) {
    static const uint64_t shape[] = { 2, 4 }, one[] = { 1 };
    (void)state;
    add_llama();
    add_f8("model.layers.0.mlp.up_proj.weight", 160, shape, 2, 8);
    expect_refused(FP8 ",\"weight_block_size\":[64,32]}}", "a different number of scales");
    add_llama();
    add_f8("model.layers.0.mlp.up_proj.weight", 160, shape, 2, 8);
    expect_refused(FP8 "}}", "a different number of scales");
    add_llama();
    expect_refused(FP8 ",\"weight_block_size\":[64]}}", "'weight_block_size' is not a list of two sizes");
    add_llama();
    add_f8("model.layers.0.mlp.up_proj.weight", 160, one, 1, 1);
    expect_refused("{\"architectures\":[\"LlamaForCausalLM\"]," LLAMA "\"x\":0}", "up_proj.weight_scale_inv");
    add_llama();
    add_f8("model.layers.0.self_attn.q_proj.weight", 100, one, 1, 1);
    expect_refused(FP8 "}}", "100 rows, but 2 heads of 64");
}

#define BITNET \
    "{\"architectures\":[\"BitNetForCausalLM\"]," LLAMA "\"quantization_config\":{\"quant_method\":\"bitnet\""

static void add_trits(const char *name, uint64_t packed_rows, float scale) {
    const uint64_t dims[] = { packed_rows, HIDDEN }, one[] = { 1 };
    unsigned char *codes = malloc(packed_rows * HIDDEN);
    char full[128];
    assert_non_null(codes);
    for (uint64_t i = 0; i < packed_rows * HIDDEN; i++)
        codes[i] = (unsigned char)(i % 3 | i / 3 % 3 << 2 | i / 9 % 3 << 4 | i / 27 % 3 << 6);
    add_bytes(name, "U8", dims, 2, codes, packed_rows * HIDDEN);
    snprintf(full, sizeof full, "%s_scale", name);
    add_bytes(full, "F32", one, 1, &scale, sizeof scale);
    free(codes);
}

static void test_trits(void **state) {
    (void)state;
    add_llama();
    add_trits("model.layers.0.mlp.up_proj.weight", 40, 0.4f);
    open_good(BITNET "}}");
    const QsfTensor *t = find("blk.0.ffn_up.weight");
    assert_int_equal(t->dtype, QK_GGML_I2_S);
    assert_int_equal(t->ne[1], 160);
    const float scale = 1.0f / 0.4f;
    assert_memory_equal(&t->scale, &scale, sizeof scale);
    unsigned char *all = whole(t);
    for (uint64_t r = 0; r < 160; r++) {
        for (uint64_t c = 0; c < HIDDEN; c++) {
            const uint64_t i = r % 40 * HIDDEN + c, digit[] = { 1, 3, 9, 27 };
            const unsigned got = (unsigned)all[r * 32 + c % 32] >> (6 - 2 * (c / 32)) & 3u;
            assert_int_equal(got, i / digit[r / 40] % 3);
        }
    }
    assert_memory_equal(all + 160 * 32, &scale, sizeof scale);
    free(all);
    expect_ranges();
    qsf_source_close(source);

    add_llama();
    add_trits("model.layers.0.mlp.up_proj.weight", 40, 0.4f);
    open_good(BITNET ",\"linear_class\":\"autobitlinear\",\"quantization_mode\":\"offline\"}}");
    const float factor = 0.4f;
    assert_memory_equal(&find("blk.0.ffn_up.weight")->scale, &factor, sizeof factor);
    qsf_source_close(source);

    add_llama();
    add_trits("model.layers.0.mlp.up_proj.weight", 40, 0.0f);
    expect_refused(BITNET "}}", "is 0 or not a number");
    add_llama();
    expect_refused(BITNET ",\"quantization_mode\":\"online\"}}", "'online'");
}

/* Threads read at the same time, more of them than there is memory for. */
static void *read_all(void *arg) {
    QsfErr e = { 0 };
    const unsigned char *want = arg;
    const QsfTensor *t = find("blk.0.attn_qkv.weight");
    for (int i = 0; i < 20; i++) {
        unsigned char *got = whole(t);
        if (memcmp(got, want, t->bytes) != 0) return &source;
        free(got);
    }
    (void)e;
    return NULL;
}

static void test_threads(void **state) {
    pthread_t thread[8];
    (void)state;
    begin();
    add("gpt_neox.embed_in.weight", 1, TOKENS, HIDDEN);
    add("embed_out.weight", 1, TOKENS, HIDDEN);
    add("gpt_neox.layers.0.attention.query_key_value.weight", 2, 3 * HIDDEN, HIDDEN);
    open_good("{\"architectures\":[\"GPTNeoXForCausalLM\"],\"hidden_size\":128,\"num_attention_heads\":4,"
              "\"num_hidden_layers\":1,\"intermediate_size\":8,\"vocab_size\":9}");
    unsigned char *want = whole(find("blk.0.attn_qkv.weight"));
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&thread[i], NULL, read_all, want), 0);
    for (int i = 0; i < 8; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    free(want);
    qsf_source_close(source);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = { TEST(test_transposed), TEST(test_heads),      TEST(test_groups),
                                        TEST(test_f8),         TEST(test_bad_scales), TEST(test_trits),
                                        TEST(test_threads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
