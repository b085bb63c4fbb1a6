/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Biases and bans as fields of each kind of server; tokens of texts; lists of the sampler; the size of a
 * context where the list of models does not say it. */
#include "tests/harness/qsf_test.h"

#include "src/remote/biases.h"
#include "src/remote/context.h"
#include "src/remote/fields.h"

static QSFSettings settings;

static void set(const char *name, const char *value) {
    char err[300] = "";
    if (qsf_setting_set(&settings, qsf_setting_find(name), value, err, sizeof err) != 0) fail_msg("%s", err);
}

static int begin(void **state) {
    (void)state;
    qsf_settings_default(&settings);
    return 0;
}

/* A field as the server gets it; "" = not at all. */
static const char *field(QsfRemoteServer server, const QsfTokenTexts *tokens, const char *name) {
    static char text[600];
    const QsfFieldInput in = { .settings = &settings, .server = server, .tokens = tokens };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    QsfFieldSet sent;
    char key[60];
    assert_int_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_OK);
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(qsf_strbuf_str(&b), key), *from = at ? at + strlen(key) : "";
    const char *end = strstr(from, ", \"stream_options\"");
    (void)snprintf(text, sizeof text, "%.*s", end ? (int)(end - from) : (int)strlen(from), from);
    qsf_strbuf_free(&b);
    return text;
}

static void know(QsfTokenTexts *t, const char *text, const char *reply) {
    QsfErr e = { 0 };
    assert_int_equal(qsf_token_texts_add(t, text, strlen(text), reply, strlen(reply), &e), QSF_OK);
}

static void expect_missing(QsfRemoteServer server, const QsfTokenTexts *t, const char *text) {
    QSFSettingItem item;
    const bool missing = qsf_biases_missing(&settings, server, t, &item);
    if (!text) {
        assert_false(missing);
        return;
    }
    assert_true(missing);
    assert_string_equal(item.text, text);
}

static void test_tokens_are_looked_up(void **state) {
    QsfTokenTexts t = { 0 };
    QsfStrbuf lost = QSF_STRBUF_INIT;
    (void)state;
    set("logit-bias", "#7=1.5,good=-3");
    set("ban", "bad,#9");
    expect_missing(QSF_SERVER_OTHER, &t, NULL);
    expect_missing(QSF_SERVER_QSF, &t, NULL);
    expect_missing(QSF_SERVER_LLAMA, &t, "good");
    know(&t, "good", "{\"tokens\": [21]}");
    expect_missing(QSF_SERVER_VLLM, &t, NULL); /* it has a field for texts that are banned */
    expect_missing(QSF_SERVER_LLAMA, &t, "bad");
    know(&t, "bad", "{\"tokens\": [31, 32]}");
    expect_missing(QSF_SERVER_LLAMA, &t, " bad"); /* as most words begin */
    know(&t, " bad", "{\"tokens\": [33]}");
    expect_missing(QSF_SERVER_LLAMA, &t, NULL);
    assert_string_equal(field(QSF_SERVER_LLAMA, &t, "logit_bias"),
                        "[[7, 1.5], [21, -3], [33, false], [9, false]]");
    assert_string_equal(field(QSF_SERVER_VLLM, &t, "logit_bias"),
                        "{\"7\": 1.5, \"21\": -3, \"9\": -100}, \"bad_words\": [\"bad\"]");
    assert_string_equal(field(QSF_SERVER_QSF, &t, "logit_bias"),
                        "[[7, 1.5], [\"good\", -3], [9, false]], \"bad_words\": [\"bad\"]");
    assert_string_equal(field(QSF_SERVER_OTHER, &t, "logit_bias"), "{\"7\": 1.5, \"9\": -100}");
    assert_string_equal(field(QSF_SERVER_OLLAMA, &t, "logit_bias"), "");
    assert_string_equal(field(QSF_SERVER_OLLAMA, &t, "bad_words"), "");
    qsf_biases_lost(&settings, QSF_SERVER_LLAMA, &t, &lost);
    assert_string_equal(qsf_strbuf_str(&lost), "");
    qsf_token_texts_free(&t);
    qsf_strbuf_free(&lost);
}

static void test_texts_that_are_no_token(void **state) {
    QsfTokenTexts t = { 0 };
    QsfStrbuf lost = QSF_STRBUF_INIT;
    (void)state;
    set("ban", "in between");
    know(&t, "in between", "{\"tokens\": [1, 2]}");
    know(&t, " in between", "{\"tokens\": [3, 2, \"x\"]}");
    assert_string_equal(field(QSF_SERVER_LLAMA, &t, "logit_bias"), "");
    qsf_biases_lost(&settings, QSF_SERVER_LLAMA, &t, &lost);
    assert_non_null(strstr(qsf_strbuf_str(&lost), "ban: \"in between\" has no effect: it is 2 tokens"));
    qsf_strbuf_clear(&lost);
    set("ban", "off");
    set("logit-bias", "x=1");
    QsfErr e = { 0 };
    assert_int_equal(qsf_token_texts_add(&t, "x", 1, NULL, 0, &e), QSF_OK); /* no such path there */
    assert_string_equal(field(QSF_SERVER_LLAMA, &t, "logit_bias"), "");
    qsf_biases_lost(&settings, QSF_SERVER_LLAMA, &t, &lost);
    assert_non_null(
        strstr(qsf_strbuf_str(&lost), "logit-bias: \"x\" has no effect: the server does not say"));
    static const char *const strange[] = { "", "[1]", "{\"tokens\": 1}", "{\"tokens\": [-4]}",
                                           "{\"tokens\": [1e99]}" };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "s%zu", i);
        know(&t, text, strange[i]);
        assert_int_equal(qsf_token_texts_find(&t, text, strlen(text))->id, -1);
    }
    qsf_token_texts_free(&t);
    qsf_strbuf_free(&lost);
}

static QsfFieldEffect effect(const char *name, QsfRemoteServer server) {
    return qsf_field_effect(&settings, qsf_setting_find(name), server, 0);
}

static void test_effects(void **state) {
    (void)state;
    assert_int_equal(effect("ban", QSF_SERVER_LLAMA), QSF_FIELD_UNSET);
    assert_int_equal(effect("ban", QSF_SERVER_OLLAMA), QSF_FIELD_NONE);
    set("ban", "x");
    set("logit-bias", "y=1");
    assert_int_equal(effect("ban", QSF_SERVER_LLAMA), QSF_FIELD_SENT);
    assert_int_equal(effect("ban", QSF_SERVER_VLLM), QSF_FIELD_SENT);
    assert_int_equal(effect("ban", QSF_SERVER_QSF), QSF_FIELD_SENT);
    assert_int_equal(effect("ban", QSF_SERVER_OTHER), QSF_FIELD_NONE); /* it knows ids only */
    assert_int_equal(effect("logit-bias", QSF_SERVER_LMSTUDIO), QSF_FIELD_NONE);
    assert_int_equal(effect("logit-bias", QSF_SERVER_LLAMA), QSF_FIELD_SENT);
    set("ban", "#3");
    assert_int_equal(effect("ban", QSF_SERVER_OTHER), QSF_FIELD_SENT);
}

/* A server that refuses the field refuses both settings, and is said to refuse one field. */
static void test_refused(void **state) {
    const QsfTokenTexts none = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    QsfFieldSet sent;
    bool by_value;
    (void)state;
    set("ban", "#3");
    set("logit-bias", "#4=1");
    const QsfFieldInput in = { .settings = &settings, .server = QSF_SERVER_OTHER, .tokens = &none };
    assert_int_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_OK);
    qsf_strbuf_clear(&b);
    const QsfFieldSet named = qsf_fields_named(sent, "Unsupported parameter: 'logit_bias'", &by_value);
    qsf_fields_list(named, &b);
    assert_string_equal(qsf_strbuf_str(&b), "logit_bias");
    assert_int_equal(qsf_field_effect(&settings, qsf_setting_find("ban"), QSF_SERVER_OTHER, named),
                     QSF_FIELD_REFUSED);
    qsf_strbuf_free(&b);
}

static void test_lists(void **state) {
    const QsfTokenTexts none = { 0 };
    (void)state;
    set("samplers", "typical,top-k,temperature");
    set("dry-breakers", "\\n,\\,,x");
    set("reasoning-budget-message", "Enough.");
    assert_string_equal(field(QSF_SERVER_LLAMA, &none, "reasoning_budget_message"), "\"Enough.\"");
    assert_non_null(
        strstr(field(QSF_SERVER_LLAMA, &none, "samplers"), "[\"typ_p\", \"top-k\", \"temperature\"]"));
    assert_non_null(strstr(field(QSF_SERVER_QSF, &none, "samplers"), "[\"typical\", "));
    assert_non_null(
        strstr(field(QSF_SERVER_LLAMA, &none, "dry_sequence_breakers"), "[\"\\n\", \",\", \"x\"]"));
    assert_string_equal(field(QSF_SERVER_VLLM, &none, "samplers"), "");
}

/* The limit of an answer that is asked for in two requests. */
static void test_spent(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    QsfFieldSet sent;
    (void)state;
    set("max-tokens", "50");
    QsfFieldInput in = { .settings = &settings, .server = QSF_SERVER_OTHER, .spent = 20 };
    assert_int_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_OK);
    assert_non_null(strstr(qsf_strbuf_str(&b), "\"max_tokens\": 30"));
    in.spent = 60;
    qsf_strbuf_clear(&b);
    assert_int_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_OK);
    assert_non_null(strstr(qsf_strbuf_str(&b), "\"max_tokens\": 1,"));
    qsf_strbuf_free(&b);
}

/* ---- contexts */

static void expect_size(QsfRemoteServer server, unsigned i, const char *json, uint32_t ctx, uint32_t train) {
    QsfContextSize size = { 0, 0 };
    qsf_context_read(server, i, "m:8b", json, strlen(json), &size);
    assert_int_equal(size.ctx, ctx);
    assert_int_equal(size.ctx_train, train);
}

static void expect_question(QsfRemoteServer server, unsigned i, const char *path, const char *body) {
    QsfStrbuf p = QSF_STRBUF_INIT, b = QSF_STRBUF_INIT;
    assert_int_equal(qsf_context_request(server, i, "m:8b", &p, &b), path != NULL);
    assert_string_equal(qsf_strbuf_str(&p), path ? path : "");
    assert_string_equal(qsf_strbuf_str(&b), body);
    qsf_strbuf_free(&p);
    qsf_strbuf_free(&b);
}

static void test_contexts(void **state) {
    (void)state;
    expect_question(QSF_SERVER_LLAMA, 0, "/props?autoload=false&model=m%3A8b", "");
    expect_question(QSF_SERVER_LLAMA, 1, NULL, "");
    expect_question(QSF_SERVER_OLLAMA, 1, "/api/show", "{\"model\": \"m:8b\"}");
    expect_question(QSF_SERVER_VLLM, 0, NULL, "");
    expect_size(QSF_SERVER_LLAMA, 0, "{\"default_generation_settings\":{\"n_ctx\":512}}", 512, 0);
    expect_size(QSF_SERVER_LLAMA, 0, "nothing", 0, 0);
    expect_size(QSF_SERVER_OLLAMA, 0,
                "{\"models\":[{\"name\":\"n\",\"context_length\":1},"
                "{\"name\":\"m:8b\",\"model\":\"m:8b\",\"context_length\":4096}]}",
                4096, 0);
    expect_size(QSF_SERVER_OLLAMA, 0, "{\"models\":[]}", 0, 0);
    expect_size(QSF_SERVER_OLLAMA, 1,
                "{\"parameters\":\"stop \\\"x\\\"\\nnum_ctx                        8192\","
                "\"model_info\":{\"general.architecture\":\"qwen3\",\"qwen3.context_length\":40960,"
                "\"qwen3.vision.context_length\":7}}",
                8192, 40960);
    expect_size(QSF_SERVER_OLLAMA, 1, "{\"parameters\":\"num_ctxx 3\\nnum_ctx -3\"}", 0, 0);
    expect_size(QSF_SERVER_LMSTUDIO, 0,
                "{\"data\":[{\"id\":\"m:8b\",\"state\":\"not-loaded\",\"max_context_length\":32768}]}", 0,
                32768);
    expect_size(QSF_SERVER_LMSTUDIO, 0,
                "{\"data\":[{\"id\":\"m:8b\",\"loaded_context_length\":4096,\"max_context_length\":32768}]}",
                4096, 32768);
    expect_size(QSF_SERVER_LMSTUDIO, 1,
                "{\"models\":[{\"key\":\"m:8b\",\"max_context_length\":9,\"loaded_instances\":"
                "[{\"id\":\"other\",\"config\":{\"context_length\":5}}]}]}",
                5, 9);
    expect_size(QSF_SERVER_LMSTUDIO, 1,
                "{\"models\":[{\"key\":\"k\",\"loaded_instances\":"
                "[{\"id\":\"m:8b\",\"config\":{\"context_length\":6}}]}]}",
                6, 0);
    expect_size(QSF_SERVER_LMSTUDIO, 1, "{\"models\":7}", 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tokens_are_looked_up, begin),
        cmocka_unit_test_setup(test_texts_that_are_no_token, begin),
        cmocka_unit_test_setup(test_effects, begin),
        cmocka_unit_test_setup(test_refused, begin),
        cmocka_unit_test_setup(test_lists, begin),
        cmocka_unit_test_setup(test_spent, begin),
        cmocka_unit_test(test_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
