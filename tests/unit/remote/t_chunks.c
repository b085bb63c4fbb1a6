/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chunks and errors in the forms of several servers, and reasoning in the text of an answer. */
#include "tests/harness/qsf_test.h"

#include "src/remote/delta.h"
#include "src/remote/inline_think.h"

static int parse(QsfDelta *d, const char *json) {
    QsfErr e = { 0 };
    return qsf_delta_parse(d, json, strlen(json), &e);
}

static void expect(const char *json, const char *text, const char *reasoning, QsfDeltaEnd end) {
    QsfDelta d = { 0 };
    qsf_delta_begin(&d);
    assert_int_equal(parse(&d, json), QSF_OK);
    assert_string_equal(qsf_strbuf_str(&d.text), text);
    assert_string_equal(qsf_strbuf_str(&d.reasoning), reasoning);
    assert_int_equal(d.end, end);
    assert_false(d.is_error);
    qsf_delta_free(&d);
}

#define CHOICE(inside) "{\"choices\":[{\"index\":0," inside "}]}"

static void test_text(void **state) {
    (void)state;
    expect(CHOICE("\"delta\":{\"content\":\"hi\"},\"finish_reason\":null"), "hi", "", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"content\":null,\"reasoning_content\":\"hm\"}"), "", "hm", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"reasoning\":\"hm\"}"), "", "hm", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"reasoning_content\":\"a\",\"reasoning\":\"a\"}"), "", "a", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"message\":{\"content\":\"whole\"},\"finish_reason\":\"stop\""), "whole", "",
           QSF_DELTA_STOP);
    expect(CHOICE("\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"p\"},{\"text\":\"q\"}]}"), "pq", "",
           QSF_DELTA_GOES_ON);
    expect("{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}", "", "", QSF_DELTA_GOES_ON);
    expect("{\"choices\":[]}", "", "", QSF_DELTA_GOES_ON);
    expect("{\"choices\":{\"a\":1}}", "", "", QSF_DELTA_GOES_ON);
    expect("{\"choices\":[3,null,{\"delta\":7}]}", "", "", QSF_DELTA_GOES_ON);
}

/* Servers that cut between tokens send half of an emoji, as an escape or as bytes. */
static void test_half_characters(void **state) {
    (void)state;
    expect(CHOICE("\"delta\":{\"content\":\"a\\ud83d\"}"), "a\xEF\xBF\xBD", "", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"content\":\"\\ude00b\"}"),
           "\xEF\xBF\xBD"
           "b",
           "", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"content\":\"\\ud83d\\n\\ud83d\\ude00\\\\ud83d\"}"),
           "\xEF\xBF\xBD\n\xF0\x9F\x98\x80\\ud83d", "", QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"content\":\"a\xF0\x9F\"}"), "a\xEF\xBF\xBD\xEF\xBF\xBD", "",
           QSF_DELTA_GOES_ON);
    expect(CHOICE("\"delta\":{\"content\":\"\x98z\"}"), "\xEF\xBF\xBDz", "", QSF_DELTA_GOES_ON);
    QsfDelta d = { 0 };
    qsf_delta_begin(&d);
    assert_int_equal(parse(&d, "{\"a\": \"\\ud8"), QSF_E_RUNTIME);
    assert_int_equal(parse(&d, "\\"), QSF_E_RUNTIME);
    qsf_delta_free(&d);
}

static void test_ends(void **state) {
    (void)state;
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"length\""), "", "", QSF_DELTA_LENGTH);
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"content_filter\""), "", "", QSF_DELTA_FILTER);
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"tool_calls\""), "", "", QSF_DELTA_STOP);
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"stop\",\"stop_reason\":\"END\""), "", "",
           QSF_DELTA_STRING);
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"stop\",\"stop_reason\":2"), "", "", QSF_DELTA_STOP);
    expect(CHOICE("\"delta\":{},\"finish_reason\":\"abort\""), "", "", QSF_DELTA_FAILED);
    expect(CHOICE("\"delta\":{},\"finish_reason\":7"), "", "", QSF_DELTA_GOES_ON);
}

static void test_tool_calls(void **state) {
    QsfDelta d = { 0 };
    (void)state;
    qsf_delta_begin(&d);
    (void)parse(
        &d,
        CHOICE(
            "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}"));
    assert_string_equal(qsf_strbuf_str(&d.text), "\n[tool call] f ");
    (void)parse(
        &d, CHOICE("\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}}]}"));
    assert_string_equal(qsf_strbuf_str(&d.text), "{\"a\"");
    (void)parse(&d, CHOICE("\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"g\"}}]}"));
    assert_string_equal(qsf_strbuf_str(&d.text), "\n[tool call] g ");
    qsf_delta_free(&d);
}

static void test_usage(void **state) {
    QsfDelta d = { 0 };
    (void)state;
    qsf_delta_begin(&d);
    assert_int_equal(d.usage.completion, -1);
    (void)parse(&d, "{\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":4,"
                    "\"prompt_tokens_details\":{\"cached_tokens\":8},"
                    "\"completion_tokens_details\":{\"reasoning_tokens\":2}}}");
    assert_int_equal(d.usage.prompt, 11);
    assert_int_equal(d.usage.completion, 4);
    assert_int_equal(d.usage.cached, 8);
    assert_int_equal(d.usage.reasoning, 2);
    (void)parse(&d, "{\"timings\":{\"cache_n\":9,\"predicted_per_second\":12.5,\"prompt_per_second\":300}}");
    assert_true(d.usage.live == false);
    (void)parse(&d, "{\"timings\":{\"cache_n\":9,\"prompt_n\":3,\"predicted_n\":5}}");
    assert_true(d.usage.live);
    assert_int_equal(d.usage.prompt, 12);
    assert_int_equal(d.usage.completion, 5);
    (void)parse(&d, "{\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":4}}");
    (void)parse(
        &d,
        "{\"usage\":null,\"prompt_progress\":{\"total\":100,\"cache\":10,\"processed\":40,\"time_ms\":60}}");
    assert_int_equal(d.usage.cached, 9);
    assert_float_equal(d.usage.decode_tps, 12.5, 1e-9);
    assert_float_equal(d.usage.prompt_tps, 300, 1e-9);
    assert_int_equal(d.usage.read, 40);
    assert_int_equal(d.usage.to_read, 100);
    assert_int_equal(d.usage.read_before, 10);
    assert_int_equal(d.usage.read_ms, 60);
    (void)parse(&d,
                "{\"usage\":{\"completion_tokens\":-5,\"prompt_tokens\":9e99}}"); /* nonsense is left out */
    assert_int_equal(d.usage.completion, 4);
    assert_int_equal(d.usage.prompt, 11);
    qsf_delta_free(&d);
}

static void expect_error(const char *json, const char *text, bool full) {
    QsfDelta d = { 0 };
    qsf_delta_begin(&d);
    assert_int_equal(parse(&d, json), QSF_OK);
    assert_true(d.is_error);
    assert_string_equal(qsf_strbuf_str(&d.error), text);
    assert_int_equal(d.context_full, full);
    qsf_delta_free(&d);
}

static void test_errors(void **state) {
    (void)state;
    expect_error("{\"error\":{\"message\":\"no\",\"code\":400}}", "no", false);
    expect_error("{\"error\":\"plain\"}", "plain", false);
    expect_error("{\"error\":{}}", "", false);
    expect_error("{\"object\":\"error\",\"message\":\"old vLLM\"}", "old vLLM", false);
    expect_error("{\"detail\":\"Not Found\"}", "Not Found", false);
    expect_error("{\"detail\":[{\"loc\":[\"body\",\"top_k\"],\"msg\":\"extra\"}]}", "body: top_k: extra",
                 false);
    expect_error("{\"error\":{\"message\":\"m\",\"type\":\"exceed_context_size_error\"}}", "m", true);
    expect_error("{\"error\":{\"message\":\"m\",\"code\":\"context_length_exceeded\"}}", "m", true);
    expect_error("{\"error\":{\"message\":\"the model's context length is only 9 tokens\",\"code\":400}}",
                 "the model's context length is only 9 tokens", true);
    expect("{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"x\"}}]}", "x", "", QSF_DELTA_GOES_ON);
}

static void test_not_json(void **state) {
    QsfDelta d = { 0 };
    QsfErr e = { 0 };
    (void)state;
    qsf_delta_begin(&d);
    assert_int_equal(qsf_delta_parse(&d, "<html>\x1b[2J", 10, &e), QSF_E_RUNTIME);
    assert_non_null(strstr(e.msg, "not JSON: <html>?[2J"));
    assert_int_not_equal(parse(&d, "[1, 2]"), QSF_OK);
    assert_int_not_equal(parse(&d, ""), QSF_OK);
    assert_int_not_equal(parse(&d, "{\"choices\":"), QSF_OK);
    qsf_delta_free(&d);
}

/* The same for any split into pieces. */
static void expect_split(const char *text, const char *reasoning, const char *answer) {
    const size_t len = strlen(text);
    for (size_t piece = 1; piece <= len; piece++) {
        QsfInlineThink t = { 0 };
        QsfStrbuf r = QSF_STRBUF_INIT, a = QSF_STRBUF_INIT;
        for (size_t at = 0; at < len; at += piece)
            qsf_inline_think_add(&t, text + at, at + piece < len ? piece : len - at, &r, &a);
        qsf_inline_think_end(&t, &r, &a);
        assert_string_equal(qsf_strbuf_str(&r), reasoning);
        assert_string_equal(qsf_strbuf_str(&a), answer);
        qsf_strbuf_free(&r);
        qsf_strbuf_free(&a);
        qsf_inline_think_free(&t);
    }
}

static void test_inline_reasoning(void **state) {
    (void)state;
    expect_split("<think>a</think>b", "a", "b");
    expect_split("\n <think>a < b </ x <</think>\nb <think>c", "a < b </ x <", "\nb <think>c");
    expect_split("an answer with <think>", "", "an answer with <think>");
    expect_split("<thin", "", "<thin");
    expect_split("<think>never closed</thin", "never closed</thin", "");
    expect_split("  ", "", "  ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),     cmocka_unit_test(test_half_characters),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_tool_calls),
        cmocka_unit_test(test_usage),    cmocka_unit_test(test_errors),
        cmocka_unit_test(test_not_json), cmocka_unit_test(test_inline_reasoning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
