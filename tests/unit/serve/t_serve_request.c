/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bodies of requests: texts are decoded in place, every field is honored or refused by its name, and a part
 * of a body is never more than an error. */
#include "serve/control.h"
#include "serve/request.h"

#include "tests/harness/qsf_test.h"

typedef struct Body {
    ServeRequest r;
    ServeError e;
    char *text;
    bool ok;
} Body;

/* The text is copied without the NUL, so that a sanitizer sees reads behind it. */
static Body parse_bytes(bool chat, const char *text, size_t len) {
    Body b = { .text = malloc(len > 0 ? len : 1) };
    QSFSettings base;
    qsf_settings_default(&base);
    if (len > 0) memcpy(b.text, text, len);
    b.ok = serve_request_parse(&b.r, chat, b.text, len, &base, &b.e);
    assert_true(b.ok == (b.e.status == 0));
    assert_true(b.ok || b.e.message[0] != '\0');
    return b;
}

static Body parse(bool chat, const char *text) { return parse_bytes(chat, text, strlen(text)); }

static void done(Body *b) {
    serve_request_free(&b->r);
    free(b->text);
}

static void is_message(const QSFMessage *m, const char *role, const char *content) {
    assert_string_equal(m->role, role);
    assert_int_equal(m->len, strlen(content));
    assert_memory_equal(m->content, content, m->len);
}

static void test_messages(void **state) {
    (void)state;
    Body b = parse(true,
                   "{\"messages\": [{\"role\": \"developer\", \"content\": \"a\\n\\u00e9\\ud83d\\ude00\"},"
                   " {\"content\": [{\"type\": \"text\", \"text\": \"one \\\"\"}, {\"text\": \"two\", "
                   "\"type\": \"text\"}, {\"type\": \"text\", \"text\": \"\"}], \"role\": \"user\"},"
                   " {\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"why\", "
                   "\"tool_calls\": [ {\"id\": \"c\"} ]},"
                   " {\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"\", \"name\": null}]}");
    assert_true(b.ok);
    assert_int_equal(b.r.n_messages, 4);
    is_message(&b.r.messages[0], "system", "a\n\xC3\xA9\xF0\x9F\x98\x80");
    is_message(&b.r.messages[1], "user", "one \"two");
    is_message(&b.r.messages[2], "assistant", "");
    assert_int_equal(b.r.messages[2].calls_len, strlen("[ {\"id\": \"c\"} ]"));
    assert_memory_equal(b.r.messages[2].reasoning, "why", 3);
    is_message(&b.r.messages[3], "tool", "");
    assert_string_equal(b.r.messages[3].call_id, "c");
    assert_null(b.r.messages[3].name);
    done(&b);
}

#define CHAT(more) "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]" more "}"

static void test_fields(void **state) {
    (void)state;
    Body b = parse(
        true, CHAT(", \"temperature\": 0.5, \"top_k\": 7, \"seed\": 18446744073709551615, \"stop\": "
                   "[\"a\\tb\", \"c\"], \"max_tokens\": null, \"max_completion_tokens\": 9, \"stream\": "
                   "true, \"stream_options\": {\"include_usage\": true}, \"logprobs\": true, "
                   "\"top_logprobs\": 2, \"logit_bias\": {\"12\": -100, \"3\": 1.5}, \"user\": [1, {}]"));
    assert_true(b.ok);
    const QSFParams *p = &b.r.settings.params;
    assert_true(p->temperature > 0.49F && p->temperature < 0.51F && p->top_k == 7);
    assert_true(p->seed_set && p->seed == UINT64_MAX && p->max_tokens == 9);
    assert_int_equal(b.r.n_stop, 2);
    assert_string_equal(b.r.stop[0], "a\tb");
    assert_true(b.r.stream && b.r.usage && b.r.logprobs && b.r.top_logprobs == 2);
    assert_string_equal(p->logit_bias, "#12=-100,#3=1.5");
    done(&b);
    b = parse(true,
              CHAT(", \"seed\": -1, \"response_format\": {\"json_schema\": {\"schema\": {\"a\": \"\\n\"}, "
                   "\"name\": \"n\"}, \"type\": \"json_schema\"}"));
    assert_true(b.ok && !b.r.settings.params.seed_set);
    assert_int_equal(b.r.grammar_kind, QSF_GRAMMAR_SCHEMA);
    assert_int_equal(b.r.grammar_len, strlen("{\"a\": \"\\n\"}"));
    assert_memory_equal(b.r.grammar, "{\"a\": \"\\n\"}", b.r.grammar_len);
    done(&b);
    b = parse(true,
              CHAT(", \"logit_bias\": [[7, 2], [\"a,b\", -1.5], [9, false], [\"#\", 1]], \"bad_words\": "
                   "[\"x,\", \"\\n\"], \"dry_sequence_breakers\": [\":\"], \"regex\": \"a+\", \"least\": "
                   "0.5, \"reasoning_budget_message\": \"Enough.\""));
    if (!b.ok) fail_msg("%s", b.e.message);
    p = &b.r.settings.params;
    assert_string_equal(p->logit_bias, "#7=2,a\\,b=-1.5,#9=-inf,\\#=1");
    assert_string_equal(p->ban, "x\\,,\\n");
    assert_string_equal(p->dry_breakers, ":");
    assert_string_equal(p->reasoning_message, "Enough.");
    assert_int_equal(b.r.grammar_kind, QSF_GRAMMAR_REGEX);
    done(&b);
    b = parse(true, CHAT(", \"tools\": [{}], \"tool_choice\": \"none\", \"reasoning_effort\": \"none\""));
    assert_true(b.ok && b.r.tools == NULL && b.r.settings.params.reasoning == 2);
    done(&b);
    b = parse(true,
              CHAT(", \"tools\": [{}], \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": "
                   "\"f\"}}, \"parallel_tool_calls\": true, \"response_format\": {\"type\": "
                   "\"json_object\"}"));
    assert_true(b.ok && strcmp(b.r.call, "f") == 0 && b.r.one_call && b.r.grammar == NULL);
    done(&b);
    static const char *const beside[] = {
        CHAT(", \"grammar\": \"root ::= [a]\", \"response_format\": {\"type\": \"text\"}"),
        CHAT(", \"response_format\": {\"type\": \"text\", \"json_schema\": null}, \"grammar\": \"root ::= "
             "[a]\", \"functions\": null, \"stream_options\": {\"include_usage\": null, \"other\": null}"),
    };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        b = parse(true, beside[i]);
        if (!b.ok) fail_msg("%s", b.e.message);
        assert_int_equal(b.r.grammar_kind, QSF_GRAMMAR_GBNF);
        done(&b);
    }
    b = parse(true, CHAT(", \"max_completion_tokens\": 7, \"max_tokens\": 9, \"top_p\": null, \"top_p\": 1"));
    assert_true(b.ok && b.r.settings.params.max_tokens == 7);
    done(&b);
    b = parse(false, "\xEF\xBB\xBF{\"prompt\": \"after a byte order mark\"}");
    assert_true(b.ok);
    done(&b);
    b = parse(false, "{\"prompt\": [\"p\\u0000q\"], \"echo\": true}");
    assert_true(b.ok && b.r.messages[0].len == 3 && b.r.echo && b.r.settings.params.max_tokens == 16);
    done(&b);
}

static void test_ids(void **state) {
    static const char *const forms[] = { "[ 7,0 , 31999]", "[[7, 0,31999] ]" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "{\"prompt\": %s, \"echo\": true}", forms[i]);
        Body b = parse(false, text);
        if (!b.ok) fail_msg("%s", b.e.message);
        assert_int_equal(b.r.n_ids, 3);
        assert_memory_equal(b.r.ids, ((int32_t[]){ 7, 0, 31999 }), 3 * sizeof *b.r.ids);
        assert_int_equal(b.r.n_messages, 1);
        assert_true(serve_request_held(&b.r) >= 3 * sizeof *b.r.ids);
        done(&b);
        for (size_t n = 0; n < strlen(text); n++) { /* a part of it */
            b = parse_bytes(false, text, n);
            assert_false(b.ok);
            done(&b);
        }
    }
    Body b = parse(false, "{\"prompt\": [\"7\"]}");
    assert_true(b.ok && b.r.ids == NULL);
    done(&b);
    static const char *const wrong[][2] = {
        { "[]", "the prompt is empty" },
        { "[[]]", "the prompt is empty" },
        { "[\"a\", \"b\"]", "only one prompt" },
        { "[[1], [2]]", "only one prompt" },
        { "[\"a\", 1]", "only one prompt" },
        { "[1, \"a\"]", "numbers" },
        { "[1, [2]]", "numbers" },
        { "[[[1]]]", "numbers" },
        { "[-1]", "from 0 to 2147483647" },
        { "[2147483648]", "from 0 to 2147483647" },
        { "[1.5]", "from 0 to 2147483647" },
        { "[01]", "leading zeros" },
        { "[null]", "expected a string, token ids" },
        { "{}", "expected a string, token ids" },
        { "1", "expected a string, token ids" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "{\"prompt\": %s}", wrong[i][0]);
        b = parse(false, text);
        if (strstr(b.e.message, wrong[i][1]) == NULL) fail_msg("%s: %s", text, b.e.message);
        assert_string_equal(b.e.param, "prompt");
        done(&b);
    }
}

/* Reasoning that is continued, or that an answer follows. */
static void expect_thought(const char *last, const char *how, int thought) {
    char text[300];
    (void)snprintf(
        text, sizeof text,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", %s}], "
        "\"continue_final_message\": %s}",
        last, how);
    Body b = parse(true, text);
    if (!b.ok) fail_msg("%s: %s", text, b.e.message);
    assert_true(b.r.continue_last);
    assert_int_equal(b.r.messages[1].thought, thought);
    done(&b);
}

static void test_continued(void **state) {
    (void)state;
    expect_thought("\"content\": \"\", \"reasoning_content\": \"r\"", "true", QSF_THOUGHT_OPEN);
    expect_thought("\"content\": \"\", \"reasoning_content\": \"r\"", "\"reasoning_content\"",
                   QSF_THOUGHT_OPEN);
    expect_thought("\"content\": \"\", \"reasoning_content\": \"r\"", "\"content\"", QSF_THOUGHT_CLOSED);
    expect_thought("\"content\": \"c\", \"reasoning_content\": \"r\"", "true", QSF_THOUGHT_CLOSED);
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *param, *part;
    } bad[] = {
        { CHAT(", \"nothing\": 0"), "nothing", "nothing" },
        { CHAT(", \"nothing\": nul"), "", "not JSON" },
        { CHAT(", \"grammar\": \"root ::= [a]\", \"response_format\": {\"type\": \"json_object\"}"),
          "response_format", "combined" },
        { CHAT(", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}}}, "
               "\"grammar\": \"root ::= [a]\""),
          "grammar", "combined" },
        { CHAT(", \"continue_final_message\": \"all\""), "continue_final_message", "content or" },
        { CHAT(", \"logit_bias\": [[1]]"), "logit_bias", "pairs" },
        { CHAT(", \"logit_bias\": [[1, 2, 3]]"), "logit_bias", "pairs" },
        { CHAT(", \"logit_bias\": [[]]"), "logit_bias", "pairs" },
        { CHAT(", \"logit_bias\": [[1, true]]"), "logit_bias", "false" },
        { CHAT(", \"logit_bias\": [[\"\", 1]]"), "logit_bias", "1 to 255" },
        { CHAT(", \"bad_words\": [\"a\\u0000\"]"), "bad_words", "NUL" },
        { CHAT(", \"regex\": \"a\", \"grammar\": \"root ::= [a]\""), "grammar", "combined" },
        { CHAT(", \"prompt\": \"p\""), "prompt", "not supported" },
        { CHAT(", \"top_p\": 1, \"seed\": 1, \"top_p\": 1"), "top_p", "occurs twice" },
        { CHAT(", \"user\": 1, \"user\": 1"), "user", "occurs twice" },
        { CHAT(", \"messages\": []"), "messages", "occurs twice" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"role\": \"user\"}]}",
          "messages[0].role", "occurs twice" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\", "
          "\"text\": \"b\"}]}]}",
          "messages[0].content", "text occurs twice" },
        { CHAT(", \"n\": 0"), "n", "from 1 to 16" },
        { CHAT(", \"n\": 17"), "n", "from 1 to 16" },
        { CHAT(", \"temperature\": 00"), "temperature", "leading zeros" },
        { CHAT(", \"top_p\": -01"), "top_p", "leading zeros" },
        { CHAT(", \"max_tokens\": -1"), "max_tokens", "from 1 to" },
        { CHAT(", \"max_tokens\": 0"), "max_tokens", "from 1 to" },
        { CHAT(", \"seed\": \"random\""), "seed", "-1 for a random" },
        { CHAT(", \"seed\": 18446744073709551616"), "seed", "-1 for a random" },
        { CHAT(", \"seed\": 1.5"), "seed", "-1 for a random" },
        { CHAT(", \"seed\": 01"), "seed", "-1 for a random" },
        { CHAT(", \"a\\u001b\": 1"), "a?", "\"a?\" is not supported" },
        { CHAT(", \"seed\" 1"), "", "not JSON: byte" },
        { CHAT(", \"temperature\": 1e9"), "temperature", "temperature" },
        { CHAT(", \"stream\": \"yes\""), "stream", "true or false" },
        { CHAT(", \"stop\": \"a\\u0000\""), "stop", "NUL" },
        { CHAT(", \"tools\": {}"), "tools", "array" },
        { CHAT(", \"tool_choice\": {\"type\": \"function\"}"), "tool_choice", "the name of a function" },
        { CHAT(", \"tool_choice\": \"must\""), "tool_choice", "required" },
        { CHAT(", \"tool_choice\": \"required\""), "tool_choice", "needs tools" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]}",
          "messages[0].content", "text" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"tool_calls\": [1]}]}", "messages[0]",
          "assistant" },
        { "{}", "messages", "missing" },
        { "{\"messages\": nul}", "", "not JSON" },
        { "{\"messages\": []} {", "", "not JSON" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Body b = parse(true, bad[i].text);
        if (b.ok || strstr(b.e.message, bad[i].part) == NULL) fail_msg("%s: %s", bad[i].text, b.e.message);
        assert_int_equal(b.e.status, 400);
        assert_string_equal(b.e.param, bad[i].param);
        done(&b);
    }
}

/* Every beginning of a body is an error; a body with another byte at some place is read or an error. */
static void test_cut(void **state) {
    static const char text[] = CHAT(
        ", \"stop\": [\"a\\u00e9\"], \"logit_bias\": [[1, 2], [\"b\", false]], \"response_format\": "
        "{\"type\": \"json_object\"}, \"tools\": null, \"top_p\": 0.25");
    char copy[sizeof text];
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        Body b = parse_bytes(true, text, n);
        assert_false(b.ok);
        done(&b);
        for (const char *c = "\"{}[],:\\0x\xFF"; *c != '\0'; c++) {
            memcpy(copy, text, sizeof text);
            copy[n] = *c;
            b = parse_bytes(true, copy, sizeof text - 1);
            done(&b);
        }
    }
}

/* Which answer a client means. */
static void expect_control(const char *body, int status, uint64_t id) {
    ServeError e = { 0 };
    uint64_t got = 1;
    const bool ok = serve_control_parse(body, strlen(body), &got, &e);
    if (ok != (status == 0) || e.status != status) fail_msg("%s: %d", body, e.status);
    if (ok) assert_true(got == id);
}

static void test_control(void **state) {
    char large[5000];
    (void)state;
    expect_control("{\"action\": \"reasoning_end\", \"id\": \"chatcmpl-00000000000000ff\", \"model\": \"m\"}",
                   0, 255);
    expect_control("{\"action\": \"reasoning_end\", \"id\": \"chatcmpl-ff\"}", 0, 0);
    expect_control("{\"action\": \"reasoning_end\", \"id\": \"cmpl-00000000000000ff\"}", 0, 0);
    expect_control("{\"action\": \"stop\", \"id\": \"chatcmpl-00000000000000ff\"}", 400, 0);
    expect_control("{\"action\": \"reasoning_end\", \"id\": 7}", 400, 0);
    expect_control("[]", 400, 0);
    expect_control("", 400, 0);
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    expect_control(large, 413, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),       cmocka_unit_test(test_messages), cmocka_unit_test(test_fields),
        cmocka_unit_test(test_continued), cmocka_unit_test(test_control),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
