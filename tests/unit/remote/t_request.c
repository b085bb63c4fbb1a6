/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is sent: URLs, messages, fields by server, and what happens to fields that are refused. */
#include "tests/harness/qsf_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "qsf_remote.h"
#include "src/base/json.h"
#include "src/remote/body.h"
#include "src/remote/models.h"
#include "src/remote/problem.h"
#include "src/remote/url.h"

/* ---- URLs */

static void expect_url(const char *text, const char *base, bool loopback, bool encrypted) {
    QsfRemoteUrl u;
    QsfErr e = { 0 };
    assert_int_equal(qsf_remote_url_parse(text, &u, &e), QSF_OK);
    assert_string_equal(u.base, base);
    assert_int_equal(u.loopback, loopback);
    assert_int_equal(u.encrypted, encrypted);
}

static void test_urls(void **state) {
    (void)state;
    expect_url("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1", true, false);
    expect_url("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1", true, false);
    expect_url("http://localhost:8080/v1/", "http://localhost:8080/v1", true, false);
    expect_url("localhost:11434", "http://localhost:11434/v1", true, false);
    expect_url("https://api.example.com/api/v1", "https://api.example.com/api/v1", false, true);
    expect_url("https://example.com/prefix", "https://example.com/prefix/v1", false, true);
    expect_url("https://example.com/v1beta/openai", "https://example.com/v1beta/openai", false, true);
    expect_url("http://[::1]:80", "http://[::1]:80/v1", true, false);
    expect_url("http://127.evil.com", "http://127.evil.com/v1", false, false);
    expect_url("http://h:1/v1/chat/completions", "http://h:1/v1", false, false);
    expect_url("h:1/v1/chat/completions/", "http://h:1/v1", false, false);
    expect_url("https://h/api/v1/models", "https://h/api/v1", false, true);
    expect_url("http://h/models", "http://h/v1", false, false);
    expect_url("unix:/run/qsf.sock", "http://localhost/v1", true, false);
}

static void test_wrong_urls(void **state) {
    static const char *const wrong[] = { "",           "http://",        "ftp://x",    "http://u:p@x",
                                         "http://x?q", "http://x#m",     "http://x y", "unix:relative",
                                         "http://:80", "http://x\x1b[2J" };
    QsfRemoteUrl u;
    char longest[2000];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        QsfErr e = { 0 };
        if (qsf_remote_url_parse(wrong[i], &u, &e) == QSF_OK) fail_msg("%s", wrong[i]);
        assert_int_equal(e.code, QSF_E_USAGE);
        assert_null(strchr(e.msg, '\x1b'));
    }
    memset(longest, 'h', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    QsfErr e = { 0 };
    assert_int_equal(qsf_remote_url_parse(longest, &u, &e), QSF_E_USAGE);
}

static void test_origins(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = { { "http://h:1", "http://h:1/v1", true },    { "http://h:1/a", "http://H:1/b", true },
                  { "http://h:1", "http://h:2", false },      { "http://h", "https://h", false },
                  { "http://h", "http://h.evil.com", false }, { "unix:/a", "unix:/b", false },
                  { "unix:/a", "http://localhost", false },   { "unix:/a", "unix:/a", true } };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        QsfRemoteUrl a, b;
        QsfErr e = { 0 };
        assert_int_equal(qsf_remote_url_parse(pairs[i].a, &a, &e), QSF_OK);
        assert_int_equal(qsf_remote_url_parse(pairs[i].b, &b, &e), QSF_OK);
        if (qsf_remote_url_same_origin(&a, &b) != pairs[i].same) fail_msg("%s %s", pairs[i].a, pairs[i].b);
    }
}

static void test_names(void **state) {
    char err[300];
    (void)state;
    char *p = qsf_connect_path("localhost:8080", "qwen/3:8b", err, sizeof err);
    assert_string_equal(p, "connect:http://localhost:8080/v1#qwen/3:8b");
    assert_true(qsf_connect_is(p));
    assert_string_equal(qsf_connect_model(p), "qwen/3:8b");
    assert_true(qsf_connect_same(p, "connect:http://localhost:8080/v1#"));
    assert_false(qsf_connect_same(p, "connect:http://localhost:8081/v1#qwen/3:8b"));
    assert_false(qsf_connect_is("connect.gguf"));
    free(p);
    assert_null(qsf_connect_path("ftp://x", "", err, sizeof err));
    assert_non_null(strstr(err, "ftp://x"));
}

/* ---- keys */

static void write_key(const char *path, const char *text, size_t len) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    fclose(f);
}

static void test_keys(void **state) {
    char *path = strdup(qsf_test_tmp("key")), *key, err[400] = "";
    (void)state;
    write_key(path, "  sk-abc \r\nsecond line\n", 23);
    assert_true(qsf_connect_key(path, &key, err, sizeof err));
    assert_string_equal(key, "sk-abc");
    free(key);
    static const char *const wrong[] = { "", "\n", "sk abc", "sk-\x01x", "sk-\xc3\xa4" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_key(path, wrong[i], strlen(wrong[i]));
        assert_false(qsf_connect_key(path, &key, err, sizeof err));
        assert_null(key);
        assert_null(strstr(err, "sk")); /* never a part of it */
    }
    assert_false(qsf_connect_key("/nonexistent/key", &key, err, sizeof err));
    unsetenv("OPENAI_API_KEY");
    assert_true(qsf_connect_key(NULL, &key, err, sizeof err));
    assert_null(key);
    setenv("OPENAI_API_KEY", "sk-env", 1);
    assert_true(qsf_connect_key(NULL, &key, err, sizeof err));
    assert_string_equal(key, "sk-env");
    free(key);
    unsetenv("OPENAI_API_KEY");
    free(path);
}

/* ---- bodies */

static QSFSettings settings;

static void set(const char *name, const char *value) {
    char err[300];
    assert_int_equal(qsf_setting_set(&settings, qsf_setting_find(name), value, err, sizeof err), 0);
}

static int begin(void **state) {
    (void)state;
    qsf_settings_default(&settings);
    return 0;
}

/* The fields for a server, as a JSON object. */
static QsfJson *fields_for(QsfRemoteServer server, QsfFieldSet refused, QsfFieldSet *sent) {
    static const char *const stop[] = { "END", "\"\n" };
    const QsfFieldInput in = {
        .settings = &settings, .server = server, .refused = refused, .stop = stop, .n_stop = 2
    };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    qsf_strbuf_adds(&b, "{\"model\": \"m\"");
    assert_int_equal(qsf_fields_put(&in, &b, sent, &e), QSF_OK);
    qsf_strbuf_addc(&b, '}');
    QsfJson *v = qsf_json_parse(qsf_strbuf_str(&b), b.len, &e);
    if (!v) fail_msg("%s: %s", e.msg, qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return v;
}

static void test_only_what_is_set_is_sent(void **state) {
    QsfFieldSet sent;
    (void)state;
    QsfJson *v = fields_for(QSF_SERVER_LLAMA, 0, &sent);
    assert_null(qsf_json_get(v, "temperature"));
    assert_null(qsf_json_get(v, "max_tokens"));
    assert_null(qsf_json_get(v, "seed"));
    assert_int_equal(qsf_json_size(qsf_json_get(v, "stop")), 2);
    assert_string_equal(qsf_json_string(qsf_json_at(qsf_json_get(v, "stop"), 1), NULL), "\"\n");
    assert_true(qsf_json_bool(qsf_json_get(qsf_json_get(v, "stream_options"), "include_usage"), false));
    qsf_json_free(v);
    set("temperature", "0.7"); /* the default, but set */
    set("seed", "42");
    set("max-tokens", "100");
    v = fields_for(QSF_SERVER_LLAMA, 0, &sent);
    assert_float_equal(qsf_json_real(qsf_json_get(v, "temperature"), 0), 0.7, 1e-6);
    assert_int_equal(qsf_json_int(qsf_json_get(v, "seed"), 0), 42);
    assert_int_equal(qsf_json_int(qsf_json_get(v, "max_tokens"), 0), 100);
    qsf_json_free(v);
}

static void expect_field(QsfRemoteServer server, const char *field, bool there) {
    QsfFieldSet sent;
    QsfJson *v = fields_for(server, 0, &sent);
    if ((qsf_json_get(v, field) != NULL) != there) fail_msg("%s to %d", field, server);
    qsf_json_free(v);
}

static void test_fields_by_server(void **state) {
    (void)state;
    set("top-k", "5");
    set("repeat-penalty", "1.2");
    set("dry", "0.8");
    set("reasoning", "off");
    expect_field(QSF_SERVER_LLAMA, "top_k", true);
    expect_field(QSF_SERVER_OLLAMA, "top_k", false);
    expect_field(QSF_SERVER_OTHER, "top_k", true);
    expect_field(QSF_SERVER_LLAMA, "repeat_penalty", true);
    expect_field(QSF_SERVER_LLAMA, "repetition_penalty", false);
    expect_field(QSF_SERVER_VLLM, "repetition_penalty", true);
    expect_field(QSF_SERVER_LLAMA, "dry_multiplier", true);
    expect_field(QSF_SERVER_VLLM, "dry_multiplier", false);
    expect_field(QSF_SERVER_VLLM, "chat_template_kwargs", true);
    expect_field(QSF_SERVER_OTHER, "chat_template_kwargs", false);
    set("min-p", "0.1");
    set("reasoning-budget", "64");
    expect_field(QSF_SERVER_LMSTUDIO, "top_k", true);
    expect_field(QSF_SERVER_LMSTUDIO, "min_p", false);
    expect_field(QSF_SERVER_LMSTUDIO, "repeat_penalty", true);
    expect_field(QSF_SERVER_LMSTUDIO, "repetition_penalty", false);
    expect_field(QSF_SERVER_LLAMA, "reasoning_budget_tokens", true);
    expect_field(QSF_SERVER_VLLM, "thinking_token_budget", true);
    expect_field(QSF_SERVER_QSF, "reasoning_budget", true);
    expect_field(QSF_SERVER_LLAMA, "reasoning_budget", false);
    set("reasoning", "low");
    expect_field(QSF_SERVER_VLLM, "chat_template_kwargs", false);
    expect_field(QSF_SERVER_OTHER, "reasoning_effort", true);
    const QSFSetting *dry = qsf_setting_find("dry"), *min_p = qsf_setting_find("min-p");
    qsf_settings_default(&settings);
    set("dry", "0.8");
    assert_int_equal(qsf_field_effect(&settings, dry, QSF_SERVER_LLAMA, 0), QSF_FIELD_SENT);
    assert_int_equal(qsf_field_effect(&settings, dry, QSF_SERVER_VLLM, 0), QSF_FIELD_NONE);
    assert_int_equal(qsf_field_effect(&settings, min_p, QSF_SERVER_VLLM, 0), QSF_FIELD_UNSET);
    assert_int_equal(qsf_field_effect(&settings, qsf_setting_find("ctx"), QSF_SERVER_LLAMA, 0),
                     QSF_FIELD_NONE);
    assert_int_equal(qsf_field_effect(&settings, qsf_setting_find("show-thinking"), QSF_SERVER_LLAMA, 0),
                     QSF_FIELD_LOCAL);
}

static QsfFieldEffect effect_of(const char *name, const char *value, QsfRemoteServer server) {
    set(name, value);
    return qsf_field_effect(&settings, qsf_setting_find(name), server, 0);
}

/* A value that a server cannot be told has no effect there; the default leaves the choice to it. */
static void test_values_without_effect(void **state) {
    (void)state;
    assert_int_equal(effect_of("reasoning", "off", QSF_SERVER_LMSTUDIO), QSF_FIELD_NONE);
    assert_int_equal(effect_of("reasoning", "off", QSF_SERVER_OTHER), QSF_FIELD_SENT);
    assert_int_equal(effect_of("reasoning", "off", QSF_SERVER_OLLAMA), QSF_FIELD_SENT);
    assert_int_equal(effect_of("reasoning", "off", QSF_SERVER_LLAMA), QSF_FIELD_SENT);
    assert_int_equal(effect_of("reasoning", "on", QSF_SERVER_OLLAMA), QSF_FIELD_NONE);
    assert_int_equal(effect_of("reasoning", "high", QSF_SERVER_OTHER), QSF_FIELD_SENT);
    assert_int_equal(effect_of("reasoning", "auto", QSF_SERVER_OTHER), QSF_FIELD_UNSET);
    assert_int_equal(effect_of("seed", "random", QSF_SERVER_OTHER), QSF_FIELD_UNSET);
    assert_int_equal(effect_of("seed", "5", QSF_SERVER_OTHER), QSF_FIELD_SENT);
}

static void test_kinds(void **state) {
    (void)state;
    assert_int_equal(qsf_kind_find("llamacpp", "m", ""), QSF_SERVER_LLAMA);
    assert_int_equal(qsf_kind_find("", "m", "llama.cpp"), QSF_SERVER_LLAMA);
    assert_int_equal(qsf_kind_find("vllm", "hf.co/a/b", ""), QSF_SERVER_VLLM);
    assert_int_equal(qsf_kind_find("library", "qwen3:8b", ""), QSF_SERVER_OLLAMA);
    assert_int_equal(qsf_kind_find("bartowski", "hf.co/bartowski/x-GGUF:Q4_K_M", ""), QSF_SERVER_OLLAMA);
    assert_int_equal(qsf_kind_find("organization_owner", "qwen/qwen3-4b", ""), QSF_SERVER_LMSTUDIO);
    assert_int_equal(qsf_kind_find("qsf", "guide", ""), QSF_SERVER_QSF);
    assert_int_equal(qsf_kind_find("openai", "gpt", "cloudflare"), QSF_SERVER_OTHER);
    assert_int_equal(qsf_kind_find("", "", ""), QSF_SERVER_OTHER);
}

static void test_refused_fields(void **state) {
    QsfFieldSet sent, named;
    bool by_value;
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    set("top-k", "5");
    set("max-tokens", "9");
    set("seed", "3");
    qsf_json_free(fields_for(QSF_SERVER_OTHER, 0, &sent));
    assert_int_equal(qsf_fields_named(sent, "nothing is named here", &by_value), 0);
    assert_int_equal(qsf_fields_named(sent, "please stop this seed", &by_value), 0); /* words of English */
    assert_int_equal(qsf_fields_named(sent, "min_p is unknown", &by_value), 0);      /* was not sent */
    assert_int_equal(qsf_fields_named(sent, "xtop_k, top_kx", &by_value), 0);
    assert_int_equal(qsf_fields_named(sent, "'max_tokens' is too large: 9", &by_value), 0); /* a limit */
    named = qsf_fields_named(sent, "top_k must be -1, or at least 1", &by_value);
    assert_true(by_value && named != 0);
    QSFSettings other = settings;
    assert_int_equal(qsf_fields_changed(named, &settings, &other), 0);
    set("top-k", "6");
    assert_int_equal(qsf_fields_changed(named, &settings, &other), named);
    named = qsf_fields_named(sent, "Unrecognized request argument supplied: top_k", &by_value);
    assert_false(by_value);
    qsf_fields_list(named, &b);
    assert_string_equal(qsf_strbuf_str(&b), "top_k");
    qsf_strbuf_clear(&b);
    named |= qsf_fields_named(sent, "'max_tokens' is not supported. Use 'max_completion_tokens'; 'seed' too",
                              &by_value);
    qsf_fields_list(named, &b);
    assert_string_equal(qsf_strbuf_str(&b), "seed, max_tokens, top_k");
    QsfJson *v = fields_for(QSF_SERVER_OTHER, named, &sent);
    assert_null(qsf_json_get(v, "top_k"));
    assert_null(qsf_json_get(v, "max_tokens"));
    assert_int_equal(qsf_json_int(qsf_json_get(v, "max_completion_tokens"), 0), 9);
    qsf_json_free(v);
    assert_int_equal(qsf_field_effect(&settings, qsf_setting_find("top-k"), QSF_SERVER_OTHER, named),
                     QSF_FIELD_REFUSED);
    assert_int_equal(qsf_field_effect(&settings, qsf_setting_find("max-tokens"), QSF_SERVER_OTHER, named),
                     QSF_FIELD_SENT);
    qsf_strbuf_free(&b);
}

/* As a schema that names all types: an empty one is none to some servers. */
static void expect_any_json(QsfRemoteServer server) {
    QsfFieldSet sent;
    QsfJson *v = fields_for(server, 0, &sent);
    const QsfJson *format = qsf_json_get(v, "response_format");
    const QsfJson *schema = qsf_json_get(qsf_json_get(format, "json_schema"), "schema");
    assert_string_equal(qsf_json_string(qsf_json_get(format, "type"), NULL), "json_schema");
    assert_int_equal(qsf_json_size(qsf_json_get(schema, "type")), 6);
    qsf_json_free(v);
}

static void test_grammars(void **state) {
    QsfFieldSet sent;
    QsfErr e = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *path = strdup(qsf_test_tmp("schema.json"));
    (void)state;
    write_key(path, "{\"type\": \"object\"}", 18);
    set("json-schema", path);
    QsfJson *v = fields_for(QSF_SERVER_OTHER, 0, &sent);
    const QsfJson *format = qsf_json_get(v, "response_format");
    assert_string_equal(qsf_json_string(qsf_json_get(format, "type"), NULL), "json_schema");
    assert_non_null(qsf_json_get(qsf_json_get(qsf_json_get(format, "json_schema"), "schema"), "type"));
    qsf_json_free(v);
    set("json-schema", "any");
    v = fields_for(QSF_SERVER_OTHER, 0, &sent);
    assert_string_equal(qsf_json_string(qsf_json_get(qsf_json_get(v, "response_format"), "type"), NULL),
                        "json_object");
    qsf_json_free(v);
    expect_any_json(QSF_SERVER_LLAMA);
    expect_any_json(QSF_SERVER_LMSTUDIO);
    write_key(path, "{}\n", 3); /* the same as any */
    set("json-schema", path);
    expect_any_json(QSF_SERVER_LLAMA);
    write_key(path, "{\"type\": ", 9); /* what is not JSON would end the request */
    set("json-schema", path);
    const QsfFieldInput in = { .settings = &settings, .server = QSF_SERVER_OTHER };
    assert_int_not_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_OK);
    set("json-schema", "off");
    set("regex", "[a-z]+");
    e = (QsfErr){ 0 };
    assert_int_equal(qsf_fields_put(&in, &b, &sent, &e), QSF_E_USAGE);
    assert_non_null(strstr(e.msg, "regex"));
    v = fields_for(QSF_SERVER_VLLM, 0, &sent);
    assert_string_equal(qsf_json_string(qsf_json_get(qsf_json_get(v, "structured_outputs"), "regex"), NULL),
                        "[a-z]+");
    qsf_json_free(v);
    set("regex", "off");
    write_key(path, "root ::= \"a\"", 12);
    set("grammar", path);
    v = fields_for(QSF_SERVER_LLAMA, 0, &sent);
    assert_string_equal(qsf_json_string(qsf_json_get(v, "grammar"), NULL), "root ::= \"a\"");
    qsf_json_free(v);
    v = fields_for(QSF_SERVER_VLLM, 0, &sent);
    assert_null(qsf_json_get(v, "grammar"));
    assert_string_equal(qsf_json_string(qsf_json_get(qsf_json_get(v, "structured_outputs"), "grammar"), NULL),
                        "root ::= \"a\"");
    qsf_json_free(v);
    qsf_strbuf_free(&b);
    free(path);
}

/* A request with its last message in QSFRequest; NULL: refused. */
static QsfJson *body_for(QsfRemoteServer server, const QSFRequest *r, const QsfBodyLast *last) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    if (last && qsf_body_check(server, last, &e) != QSF_OK) {
        assert_int_equal(e.code, QSF_E_USAGE);
        return NULL;
    }
    qsf_body_begin("name \"x\"", r, &b);
    qsf_body_end(server, last, &b);
    qsf_strbuf_addc(&b, '}');
    QsfJson *v = qsf_json_parse(qsf_strbuf_str(&b), b.len, &e);
    if (!v) fail_msg("%s: %s", e.msg, qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return v;
}

static const char *last_text(const QsfJson *v, const char *key) {
    const QsfJson *list = qsf_json_get(v, "messages");
    return qsf_json_string(qsf_json_get(qsf_json_at(list, qsf_json_size(list) - 1), key), NULL);
}

static const char odd[] = "a \"quote\"\n\0\x1b \xff";
static const QSFMessage messages[] = {
    { .role = "system", .content = "s", .len = 1 },
    { .role = "user", .content = odd, .len = sizeof odd - 1 },
    { .role = "assistant", .content = "half", .len = 4, .reasoning = "r", .reasoning_len = 1 }
};

static void test_messages(void **state) {
    QSFRequest r = { .messages = messages, .n_messages = 3 };
    const QsfBodyLast half = { .text = "half", .len = 4, .closed = true };
    size_t len;
    (void)state;
    QsfJson *v = body_for(QSF_SERVER_VLLM, &r, NULL);
    assert_string_equal(qsf_json_string(qsf_json_get(v, "model"), NULL), "name \"x\"");
    const QsfJson *list = qsf_json_get(v, "messages");
    assert_int_equal(qsf_json_size(list), 3);
    const char *text = qsf_json_string(qsf_json_get(qsf_json_at(list, 1), "content"), &len);
    assert_int_equal(len, sizeof odd - 1 + 2); /* U+FFFD has three bytes */
    assert_memory_equal(text, odd, sizeof odd - 2);
    assert_null(last_text(v, "reasoning_content"));
    assert_null(qsf_json_get(v, "continue_final_message"));
    qsf_json_free(v);
    /* an answer is continued where that is known to work */
    r.continue_last = true;
    v = body_for(QSF_SERVER_VLLM, &r, &half);
    assert_string_equal(last_text(v, "content"), "half");
    assert_true(qsf_json_bool(qsf_json_get(v, "continue_final_message"), false));
    qsf_json_free(v);
    v = body_for(QSF_SERVER_OLLAMA, &r, &half);
    assert_string_equal(last_text(v, "content"), "half");
    assert_null(qsf_json_get(v, "continue_final_message"));
    qsf_json_free(v);
    v = body_for(QSF_SERVER_LLAMA, &r, &half);
    assert_true(qsf_json_bool(qsf_json_get(v, "continue_final_message"), false));
    assert_false(qsf_json_bool(qsf_json_get(v, "add_generation_prompt"), true));
    qsf_json_free(v);
    v = body_for(QSF_SERVER_QSF, &r, &half);
    assert_true(qsf_json_bool(qsf_json_get(v, "continue_final_message"), false));
    assert_null(qsf_json_get(v, "add_generation_prompt"));
    qsf_json_free(v);
    assert_null(body_for(QSF_SERVER_OTHER, &r, &half));
}

/* Reasoning that was cut is continued, or an answer follows it, where the server knows a way. */
static void test_reasoning_that_is_continued(void **state) {
    const QSFRequest r = { .messages = messages, .n_messages = 3, .continue_last = true };
    QsfBodyLast last = { .text = "", .thought = "hm \"x\"", .thought_len = 6 };
    (void)state;
    QsfJson *v = body_for(QSF_SERVER_LLAMA, &r, &last);
    assert_string_equal(last_text(v, "reasoning_content"), "hm \"x\"");
    assert_string_equal(last_text(v, "content"), "");
    assert_true(qsf_json_bool(qsf_json_get(v, "continue_final_message"), false));
    qsf_json_free(v);
    assert_null(body_for(QSF_SERVER_VLLM, &r, &last));
    assert_null(body_for(QSF_SERVER_OLLAMA, &r, &last));
    last.closed = true;
    v = body_for(QSF_SERVER_LLAMA, &r, &last);
    assert_string_equal(qsf_json_string(qsf_json_get(v, "continue_final_message"), NULL), "content");
    qsf_json_free(v);
    v = body_for(QSF_SERVER_VLLM, &r, &last);
    assert_string_equal(last_text(v, "reasoning"), "hm \"x\"");
    assert_string_equal(last_text(v, "reasoning_content"), "hm \"x\"");
    assert_true(qsf_json_bool(qsf_json_get(v, "continue_final_message"), false));
    qsf_json_free(v);
    assert_null(body_for(QSF_SERVER_OLLAMA, &r, &last));
    last.tagged = true; /* the server takes it for text */
    v = body_for(QSF_SERVER_OLLAMA, &r, &last);
    assert_string_equal(last_text(v, "content"), "<think>\nhm \"x\"\n</think>\n\n");
    assert_null(last_text(v, "reasoning"));
    qsf_json_free(v);
    assert_null(body_for(QSF_SERVER_OTHER, &r, &last));
}

/* ---- replies */

static void test_models(void **state) {
    static const char json[] =
        "{\"data\": [{\"id\": \"Qwen3-8B\", \"owned_by\": \"vllm\", \"max_model_len\": 4096},"
        "{\"id\": \"evil\\u001b[2J\"}, {\"id\": \"\"}, 7, {\"id\": \"qwen3-30b\"}]}";
    QsfRemoteModels m = { 0 };
    QsfErr e = { 0 };
    (void)state;
    assert_int_equal(qsf_remote_models_parse(&m, json, sizeof json - 1, &e), QSF_OK);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.items[0].ctx, 4096);
    assert_string_equal(m.items[0].owned_by, "vllm");
    assert_ptr_equal(qsf_remote_models_find(&m, "", &e), &m.items[0]);
    assert_ptr_equal(qsf_remote_models_find(&m, "30B", &e), &m.items[1]);
    assert_null(qsf_remote_models_find(&m, "qwen", &e));
    assert_non_null(strstr(e.msg, "several"));
    e = (QsfErr){ 0 };
    assert_null(qsf_remote_models_find(&m, "llama", &e));
    assert_non_null(strstr(e.msg, "Qwen3-8B, qwen3-30b"));
    e = (QsfErr){ 0 };
    assert_int_not_equal(qsf_remote_models_parse(&m, "{\"data\": {}}", 12, &e), QSF_OK);
    e = (QsfErr){ 0 };
    assert_int_not_equal(qsf_remote_models_parse(&m, "<html>", 6, &e), QSF_OK);
    e = (QsfErr){ 0 };
    assert_int_equal(qsf_remote_models_parse(&m, "{\"data\": []}", 12, &e), QSF_OK);
    assert_null(qsf_remote_models_find(&m, "", &e));
    e = (QsfErr){ 0 };
    assert_int_equal(qsf_remote_models_parse(&m, "{\"object\": \"list\", \"data\": null}", 32, &e), QSF_OK);
    assert_null(qsf_remote_models_find(&m, "", &e)); /* Ollama without models */
    assert_non_null(strstr(e.msg, "no models"));
    qsf_remote_models_free(&m);
}

static void expect_problem(const char *head, const char *body, int code, const char *text) {
    QsfReplyHead h;
    QsfErr e = { 0 };
    qsf_reply_head(&h, head, strlen(head));
    assert_int_equal(qsf_problem(&h, "http://s/v1", body, strlen(body), NULL, &e), code);
    if (!strstr(e.msg, text)) fail_msg("no \"%s\" in %s", text, e.msg);
    assert_null(strchr(e.msg, '\x1b'));
}

static void test_problems(void **state) {
    (void)state;
    expect_problem("401\n\n0\n\n\n", "{\"error\":{\"message\":\"bad key\"}}", 1, "OPENAI_API_KEY");
    expect_problem("429\n\n12\n\n\n", "", 1, "try again in 12 s");
    expect_problem("404\n\n0\n\n\n", "{\"detail\":\"Not Found\"}", 3, "Not Found");
    expect_problem("502\ntext/html; charset=x\n0\n\n\n", "<html><title>Bad\x1b Gateway</title>x", 1,
                   "Bad? Gateway");
    expect_problem("500\ntext/html\n0\n\n\n", "<p>one</p>\n <b>two</b>", 1, "one two");
    expect_problem("301\n\n0\nhttps://other/v1\n\n", "", 1, "https://other/v1");
    expect_problem("308\n\n0\n\n\n", "", 1, "redirect");
    expect_problem("418\n\n0\n\n\n", "", 1, "no reason");
    expect_problem("200\ntext/html\n0\n\n\n", "<title>Sign in</title>", 1, "not an answer");
    expect_problem("400\n\n0\n\n\n", "{\"error\":{\"message\":\"m\",\"code\":\"context_length_exceeded\"}}",
                   5, "m");
    expect_problem("503\n\n0\n\n\n", "{\"error\":{\"message\":\"Loading model\",\"code\":503}}", 1,
                   "not ready, or too busy: Loading model; /retry asks again");
    expect_problem(
        "400\n\n0\n\n\n",
        "{\"error\":{\"message\":\"This model's maximum context length is 9 tokens.\",\"code\":400}}", 5,
        "maximum context length");
    expect_problem("", "", 1, "HTTP 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_wrong_urls),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_keys),
        cmocka_unit_test_setup(test_only_what_is_set_is_sent, begin),
        cmocka_unit_test_setup(test_fields_by_server, begin),
        cmocka_unit_test_setup(test_values_without_effect, begin),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test_setup(test_refused_fields, begin),
        cmocka_unit_test_setup(test_grammars, begin),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_reasoning_that_is_continued),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
