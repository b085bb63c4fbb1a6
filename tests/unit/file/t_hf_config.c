/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What config.json may contain, the metadata made from it, and what is refused, with which message. */
#include "tests/harness/hf_rig.h"

static int open_with(const char *last, QsfSource **s, QsfErr *e) {
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .last = last }), 0);
    qsf_err_clear(e);
    return qsf_source_open(s, dir, &ledger, e);
}

/* --- what is accepted --- */

/* A key and its value, or NAN if it is absent. */
typedef struct Want {
    const char *last, *key;
    double value;
} Want;

#define NONE (-1.0)

static void test_consumed(void **state) {
    static const Want rows[] = {
        /* clang-format off */
        { ",\"num_key_value_heads\":null", "llama.attention.head_count_kv", 4 },
        { ",\"rope_scaling\":null", "llama.rope.scaling.type", NONE },
        { ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}", "llama.rope.scaling.factor", 2.5 },
        { ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":4}", "llama.rope.scaling.factor", 4 },
        { ",\"rope_scaling\":{\"rope_type\":\"default\"}", "llama.rope.scaling.factor", NONE },
        { ",\"rope_theta\":null", "llama.rope.freq_base", 10000 },
        { ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":16,"
          "\"original_max_position_embeddings\":128}",
          "llama.rope.scaling.original_context_length", 128 },
        { ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":16,"
          "\"original_max_position_embeddings\":128}",
          "llama.rope.scaling.yarn_beta_fast", 16 },
        { ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5}", "llama.rope.freq_base", 5e5 },
        { ",\"rope_parameters\":{\"rope_theta\":1000000}", "llama.rope.freq_base", 1e6 },
        { ",\"rms_norm_eps\":null", "llama.attention.layer_norm_rms_epsilon", (double)1e-6f },
        { ",\"sliding_window\":null", "llama.context_length", 512 },
        { ",\"sliding_window\":128", "llama.context_length", 128 },
        { ",\"sliding_window\":128", "llama.attention.sliding_window", 128 },
        { ",\"sliding_window\":4096", "llama.context_length", 512 },
        { ",\"bos_token_id\":3,\"eos_token_id\":2", "tokenizer.ggml.bos_token_id", 7 }, /* tokenizer_config.json wins */
        { ",\"eos_token_id\":2", "tokenizer.ggml.eos_token_id", 2 },
        { ",\"eos_token_id\":[]", "tokenizer.ggml.eos_token_id", NONE },
        { ",\"eos_token_id\":null", "tokenizer.ggml.eos_token_id", NONE },
        { ",\"eos_token_id\":-1", "tokenizer.ggml.eos_token_id", NONE },
        { ",\"partial_rotary_factor\":1.0", "llama.rope.dimension_count", 6 },
        { ",\"num_hidden_layers\":2.0", "llama.block_count", 2 },
        { ",\"unheard_of\":{\"a\":[1]}", "llama.block_count", 2 },
        /* clang-format on */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfErr e = { 0 };
        QsfSource *s;
        float v;
        if (i == 0) { /* four KV heads need weights of that size */
            assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .kv_heads = 4, .last = rows[i].last }),
                             0);
            qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
        } else {
            qsf_test_expect_ok(open_with(rows[i].last, &s, &e), &e);
        }
        if (qsf_meta_has(s, rows[i].key) != (rows[i].value > NONE)) fail_msg("row %zu: %s", i, rows[i].key);
        qsf_test_expect_ok(qsf_meta_f32(s, rows[i].key, (float)NONE, &v, &e), &e);
        if (v < (float)rows[i].value || v > (float)rows[i].value)
            fail_msg("row %zu: %s is %g", i, rows[i].key, (double)v);
        qsf_source_close(s);
    }
}

/* YaRN of gpt-oss does not round; the key is written only then. */
static void test_truncate(void **state) {
    static const char *const rows[] = { "", "\"truncate\":null,", "\"truncate\":true,",
                                        "\"truncate\":false," };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char last[200];
        QsfErr e = { 0 };
        QsfSource *s;
        bool v;
        snprintf(
            last, sizeof last,
            ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,%s\"original_max_position_embeddings\":128}",
            rows[i]);
        qsf_test_expect_ok(open_with(last, &s, &e), &e);
        assert_int_equal(qsf_meta_has(s, "llama.qsf.rope.yarn_truncate"), i == 3);
        qsf_test_expect_ok(qsf_meta_bool(s, "llama.qsf.rope.yarn_truncate", true, &v, &e), &e);
        assert_int_equal(v, i != 3);
        qsf_source_close(s);
    }
}

/* A Git LFS pointer in the place of any file of a directory is named; tokenizing needs no weights. */
static void test_pointers(void **state) {
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 135\n";
    static const char *const names[] = { "config.json",
                                         "model.safetensors",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "chat_template.jinja",
                                         "generation_config.json",
                                         "model.safetensors.index.json" };
    char path[128];
    QsfErr e = { 0 };
    QsfSource *s;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(
            qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .shards = strstr(names[i], "index") != NULL }), 0);
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        if (strstr(names[i], "index") != NULL) assert_int_equal(unlink(path), 0);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(qsf_test_write_in(dir, names[i], pointer, sizeof pointer - 1), 0);
        qsf_err_clear(&e);
        assert_int_equal(qsf_source_open(&s, dir, &ledger, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL,
                            "Git LFS pointer, not the file itself: fetch it with git lfs pull");
        assert_non_null(strstr(e.msg, path));
        qsf_err_clear(&e);
        int rc = qsf_source_open_tokens(&s, dir, &ledger, &e);
        if (strstr(names[i], "model.safetensors") != NULL) {
            qsf_test_expect_ok(rc, &e);
            assert_true(qsf_meta_has(s, "tokenizer.ggml.tokens"));
            qsf_source_close(s);
        } else {
            qsf_test_expect_err(&e, QSF_E_MODEL, path);
        }
        assert_int_equal(unlink(path), 0);
    }
}

/* The ids in config.json count without weights too, whatever the architecture; without a vocabulary the
 * missing weights come first. */
static void test_tokens_only(void **state) {
    const QsfHfSpec spec = { .arch = "TomorrowForCausalLM", .last = ",\"eos_token_id\":2" };
    char path[128];
    QsfErr e = { 0 };
    QsfSource *s;
    uint32_t v;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &spec), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(unlink(path), 0);
    for (int full = 0; full < 2; full++) {
        int rc = full ? qsf_source_open(&s, dir, &ledger, &e) : qsf_source_open_tokens(&s, dir, &ledger, &e);
        qsf_test_expect_ok(rc, &e);
        assert_int_equal(qsf_source_n_tensors(s), 0);
        qsf_test_expect_ok(qsf_meta_u32(s, "tokenizer.ggml.eos_token_id", 99, &v, &e), &e);
        assert_int_equal(v, 2);
        qsf_source_close(s);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 2; i++) { /* only config.json is left, then there is a model in another format */
        if (i == 1) assert_int_equal(qsf_test_write_in(dir, "m-Q4_K_M.gguf", "GGUF", 4), 0);
        assert_int_equal(qsf_source_open(&s, dir, &ledger, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "is a directory without weights (model.safetensors, or");
        assert_int_equal(strstr(e.msg, "it contains m-Q4_K_M.gguf: open that file") != NULL, i == 1);
        qsf_err_clear(&e);
    }
    snprintf(path, sizeof path, "%s/m-Q4_K_M.gguf", dir);
    assert_int_equal(unlink(path), 0);
}

/* Mistral does not state its number of KV heads when it is eight. */
static void test_mistral(void **state) {
    QsfErr e = { 0 };
    QsfSource *s;
    const char *text;
    uint32_t v;
    (void)state;
    const QsfHfSpec spec = { .heads = 8,
                             .hidden = 32,
                             .kv_heads = 8,
                             .arch = "MistralForCausalLM",
                             .last = ",\"num_key_value_heads\":null,\"sliding_window\":64" };
    assert_int_equal(qsf_test_write_hf_dir(dir, &spec), 0);
    qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_meta_str(s, "general.architecture", &text, NULL, &e), &e);
    assert_string_equal(text, "llama");
    qsf_test_expect_ok(qsf_meta_u32(s, "llama.attention.head_count_kv", 0, &v, &e), &e);
    assert_int_equal(v, 8);
    qsf_source_close(s);
}

/* Granite's factors are 1 where config.json does not have them, that of scores too. */
static void test_granite(void **state) {
    static const char *const keys[] = { "granite.attention.scale", "granite.embedding_scale",
                                        "granite.residual_scale", "granite.logit_scale" };
    QsfErr e = { 0 };
    QsfSource *s;
    float v;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .arch = "GraniteForCausalLM" }), 0);
    qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
    for (size_t i = 0; i < 4; i++) {
        qsf_test_expect_ok(qsf_meta_f32(s, keys[i], 0, &v, &e), &e);
        if (v < 1 || v > 1) fail_msg("%s is %g", keys[i], (double)v);
    }
    qsf_source_close(s);
}

/* Added tokens without an embedding row are dropped. */
static void test_dropped_tokens(void **state) {
    QsfErr e = { 0 };
    QsfSource *s;
    QsfMetaArray a;
    bool present;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .vocab = 8, .last = ",\"eos_token_id\":7" }),
                     0);
    qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_meta_array_open(s, "tokenizer.ggml.tokens", QSF_META_STRING, &a, &present, &e),
                       &e);
    assert_int_equal(a.count, 8);
    qsf_meta_array_close(&a);
    qsf_source_close(s);
}

/* Sampling values recommended by the authors of the model. */
static void test_generation(void **state) {
    static const struct {
        const char *json, *key;
        double value;
    } rows[] = {
        { "{\"temperature\":0.6}", "general.sampling.temp", (double)0.6f },
        { "{\"temperature\":1}", "general.sampling.temp", 1 },
        { "{\"do_sample\":true,\"top_k\":20}", "general.sampling.top_k", 20 },
        { "{\"top_k\":20.5}", "general.sampling.top_k", NONE },
        { "{\"top_k\":-1}", "general.sampling.top_k", NONE },
        { "{\"top_p\":0.95}", "general.sampling.top_p", (double)0.95f },
        { "{\"top_p\":\"high\"}", "general.sampling.top_p", NONE },
        { "{\"top_p\":null}", "general.sampling.top_p", NONE },
        { "{\"top_p\":1e300}", "general.sampling.top_p", NONE },
        { "{\"min_p\":0.05}", "general.sampling.min_p", (double)0.05f },
        { "{\"repetition_penalty\":1.05}", "general.sampling.penalty_repeat", (double)1.05f },
        { "{\"do_sample\":false,\"temperature\":0.6}", "general.sampling.temp", NONE },
        { "{\"do_sample\":false,\"repetition_penalty\":2}", "general.sampling.penalty_repeat", 2 },
        { "[1]", "general.sampling.temp", NONE },
    };
    QsfErr e = { 0 };
    QsfSource *s;
    float v;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(qsf_test_write_in(dir, "generation_config.json", rows[i].json, strlen(rows[i].json)),
                         0);
        qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
        qsf_test_expect_ok(qsf_meta_f32(s, rows[i].key, (float)NONE, &v, &e), &e);
        if (v < (float)rows[i].value || v > (float)rows[i].value)
            fail_msg("row %zu: %s is %g", i, rows[i].key, (double)v);
        qsf_source_close(s);
    }
    assert_int_equal(qsf_test_write_in(dir, "generation_config.json", "{,}", 3), 0);
    assert_int_equal(qsf_source_open(&s, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "generation_config.json");
}

/* The ids of tokenizer.ggml.eos_token_ids, separated by blanks; "" without the key. */
static const char *read_ends(const QsfSource *s, char *out, size_t cap) {
    QsfMetaArray a;
    QsfErr e = { 0 };
    bool present;
    size_t n = 0;
    out[0] = '\0';
    qsf_test_expect_ok(qsf_meta_array_open(s, "tokenizer.ggml.eos_token_ids", QSF_META_I64, &a, &present, &e),
                       &e);
    for (uint64_t i = 0; present && i < a.count; i++) {
        int64_t id;
        qsf_test_expect_ok(qsf_meta_array_i64(&a, &id, &e), &e);
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", i > 0 ? " " : "", (long long)id);
    }
    if (present) qsf_meta_array_close(&a);
    return out;
}

/* Tokens that end an answer, from both files; 7 and 8 are special, 0 to 6 are text. */
static void test_ends(void **state) {
    static const struct {
        const char *config, *generation, *ids;
        uint32_t eos;
        const char *notice; /* NULL: none */
    } rows[] = {
        { "8", NULL, "", 8, NULL },
        { "[8,7]", NULL, "8 7", 8, NULL },
        { "[8,8]", NULL, "", 8, NULL },
        { "8", "{\"eos_token_id\":7}", "7 8", 8, NULL },
        { "null", "{\"eos_token_id\":[7,8,7]}", "7 8", 7, NULL },
        { "null", "{\"eos_token_id\":7}", "", 7, NULL },
        { "null", "{\"eos_token_id\":null}", "", 99, NULL },
        { "null", "{\"eos_token_id\":-1}", "", 99, NULL },
        { "8", "{\"eos_token_id\":[-1,4000000,\"x\",2.5,1]}", "1 8", 8,
          "generation_config.json: 'eos_token_id' contains 4000000, which is not one of the " },
        { "8", "{\"eos_token_id\":\"7\"}", "", 8,
          "generation_config.json: 'eos_token_id' contains a string" },
        { "8", "{\"eos_token_id\":[[7]]}", "", 8, "generation_config.json: 'eos_token_id' contains a list" },
        { "8", "{\"eos_token_id\":{\"id\":7}}", "", 8,
          "generation_config.json: 'eos_token_id' contains an object" },
        { "8", "{\"eos_token_id\":true}", "", 8,
          "generation_config.json: 'eos_token_id' contains a truth value" },
        { "8", "{\"eos_token_id\":NaN}", "", 8,
          "generation_config.json: 'eos_token_id' contains a real number" },
        { "[8,\"7\"]", NULL, "", 8, "config.json: 'eos_token_id' contains a string" },
        { "[8,70000]", NULL, "", 8, "config.json: 'eos_token_id' contains 70000" },
        { "[8,2]", "{\"eos_token_id\":[8,1]}", "8 1", 8, NULL }, /* a default of another vocabulary */
        { "[8,2]", NULL, "8 2", 8, NULL },
    };
    QsfErr e = { 0 };
    QsfSource *s;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char last[64], ids[64], path[128];
        uint32_t eos;
        snprintf(last, sizeof last, ",\"eos_token_id\":%s", rows[i].config);
        assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .last = last }), 0);
        const char *generation = rows[i].generation;
        snprintf(path, sizeof path, "%s/generation_config.json", dir);
        (void)unlink(path);
        if (generation != NULL)
            assert_int_equal(qsf_test_write_in(dir, "generation_config.json", generation, strlen(generation)),
                             0);
        qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
        qsf_test_expect_ok(qsf_meta_u32(s, "tokenizer.ggml.eos_token_id", 99, &eos, &e), &e);
        if (strcmp(read_ends(s, ids, sizeof ids), rows[i].ids) != 0 || eos != rows[i].eos)
            fail_msg("row %zu: \"%s\", EOS %u", i, ids, eos);
        const char *want = rows[i].notice != NULL ? rows[i].notice : "";
        if (strncmp(qsf_source_notice(s), want, strlen(want)) != 0 ||
            (*want == '\0' && *qsf_source_notice(s) != '\0'))
            fail_msg("row %zu: %s", i, qsf_source_notice(s));
        qsf_source_close(s);
    }
}

/* --- what is refused --- */

static void test_refused(void **state) {
    static const char *const rows[][2] = {
        { ",\"architectures\":null", "'architectures' is missing" },
        { ",\"architectures\":[]", "'architectures' is missing" },
        { ",\"rms_norm_eps\":NaN", "'rms_norm_eps'" },
        { ",\"architectures\":[7]", "'architectures' is missing" },
        { ",\"architectures\":\"LlamaForCausalLM\"", "'architectures' is missing" },
        { ",\"architectures\":[\"T5ForConditionalGeneration\"]",
          "'T5ForConditionalGeneration' is not supported as a directory" },
        { ",\"architectures\":[\"LlamaForCausalLM\\u0000x\"]", "'architectures' is missing" },
        { ",\"hidden_act\":\"silu\\u0000\"", "'hidden_act' is '?'" },
        { ",\"rope_scaling\":{\"type\":\"linear\\u0000\",\"factor\":4}", "type '?'" },
        { ",\"architectures\":[\"BertModel\"]", "open the tokenizer file" },
        { ",\"quantization_config\":{\"quant_method\":\"gptq\"}", "quantized by 'gptq'" },
        { ",\"quantization_config\":{}", "quantized by '?'" },
        { ",\"hidden_act\":\"gelu\"", "'hidden_act' is 'gelu'" },
        { ",\"hidden_act\":3", "'hidden_act' is '3'" },
        { ",\"partial_rotary_factor\":0.5", "below 1" },
        { ",\"num_hidden_layers\":null", "'num_hidden_layers' is missing" },
        { ",\"num_hidden_layers\":0", "'num_hidden_layers' is 0" },
        { ",\"hidden_size\":-24", "'hidden_size' is -24" },
        { ",\"hidden_size\":\"24\"", "'hidden_size' is nan" },
        { ",\"hidden_size\":23", "not a multiple of the 4 heads" },
        { ",\"intermediate_size\":1e12", "'intermediate_size' is 1e+12" },
        { ",\"num_attention_heads\":2.5", "'num_attention_heads' is 2.5" },
        { ",\"num_key_value_heads\":3", "does not divide the 4 heads" },
        { ",\"head_dim\":5", "expected an even number" },
        { ",\"head_dim\":8", "has 12 rows, but 2 heads of 8" },
        { ",\"vocab_size\":[]", "'vocab_size' is nan" },
        { ",\"max_position_embeddings\":null", "'max_position_embeddings' is missing" },
        { ",\"sliding_window\":0", "'sliding_window' is 0" },
        { ",\"rms_norm_eps\":-1", "'rms_norm_eps' is -1" },
        { ",\"rms_norm_eps\":\"x\"", "'rms_norm_eps' is nan" },
        { ",\"tie_word_embeddings\":1", "not true or false" },
        { ",\"rope_theta\":0", "'rope_theta' is 0" },
        { ",\"rope_theta\":1e300", "'rope_theta' is 1e+300" },
        { ",\"rope_scaling\":7", "is not an object" },
        { ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}", "type 'dynamic'" },
        { ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}",
          "'original_max_position_embeddings' is missing" },
        { ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":1,"
          "\"original_max_position_embeddings\":128}",
          "'truncate' of rope_scaling is not true or false" },
        { ",\"quantization\":{\"group_size\":64,\"bits\":4}", "quantized by MLX" },
        { ",\"quantization_config\":{\"quant_method\":\"fp8\",\"transform_config\":{\"config_groups\":{}}}",
          "'transform_config'" },
        { ",\"quantization_config\":{\"quant_method\":\"bitnet\",\"use_rms_norm\":true}", "'use_rms_norm'" },
        { ",\"rope_scaling\":{\"factor\":4}", "type '?'" },
        { ",\"rope_scaling\":{\"type\":\"linear\"}", "'factor' is missing" },
        { ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}", "'factor' is 0" },
        { ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}", "'low_freq_factor' is missing" },
        { ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4,"
          "\"original_max_position_embeddings\":8192}",
          "not above low_freq_factor" },
        { ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4}",
          "'original_max_position_embeddings' is missing" },
        { ",\"eos_token_id\":\"</s>\"", "not a token id" },
        { ",\"eos_token_id\":-2", "not a token id" },
        { ",\"eos_token_id\":9", "'eos_token_id' is 9, but there are 9 tokens" },
        { ",", "config.json" },
        { ",\"a\":", "config.json" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfErr e = { 0 };
        QsfSource *s;
        if (open_with(rows[i][0], &s, &e) == QSF_OK) fail_msg("was accepted: %s", rows[i][0]);
        qsf_test_expect_err(&e, QSF_E_MODEL, rows[i][1]);
        qsf_test_expect_err(&e, QSF_E_MODEL, dir);
        assert_null(s);
        assert_int_equal(ledger.total, 0);
    }
    assert_int_equal(qsf_test_write_in(dir, "config.json", "[1]", 3), 0);
    QsfErr e = { 0 };
    QsfSource *s;
    assert_int_equal(qsf_source_open(&s, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "not a JSON object");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = { TEST(test_consumed),   TEST(test_mistral),
                                        TEST(test_granite),    TEST(test_dropped_tokens),
                                        TEST(test_generation), TEST(test_truncate),
                                        TEST(test_pointers),   TEST(test_tokens_only),
                                        TEST(test_ends),       TEST(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
