/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls in the text of answers, whole and while they are written. */
#include "serve/calls.h"

#include "src/base/json.h"
#include "tests/harness/qsf_test.h"

static const char tools[] =
    "[{\"function\": {\"name\": \"typed\", \"parameters\": {\"$defs\": {\"s\": {\"type\": \"string\"}}, "
    "\"properties\": {\"s\": {\"type\": \"string\"}, \"e\": {\"enum\": [\"1\", \"true\"]}, "
    "\"c\": {\"const\": \"2\"}, \"r\": {\"$ref\": \"#/$defs/s\"}, \"p\": {\"type\": \"string\", "
    "\"pattern\": \"[0-9]\"}, \"o\": "
    "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}, "
    "\"n\": {\"type\": [\"integer\", \"null\"]}, \"a\": {}}}}}, "
    "{\"function\": {\"name\": \"parts\", \"parameters\": {\"properties\": {\"s\": {\"type\": \"string\"}}, "
    "\"$defs\": {\"i\": {\"properties\": {\"v\": {\"type\": \"integer\"}, \"w\": {\"type\": \"string\"}}}}, "
    "\"anyOf\": [{\"$ref\": \"#/$defs/i\"}, {\"properties\": {\"v\": {\"$ref\": \"#/properties/s\"}}}]}}}]";
static const ServeCallTools given = { tools, sizeof tools - 1 };

#define VALUE(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define TYPED(values)     "<tool_call>\n<function=typed>\n" values "</function>\n</tool_call>"

static const struct {
    const char *text, *before; /* before: what is not a call */
    const char *name[2], *arguments[2];
} cases[] = {
    { "plain text", "plain text", { NULL }, { NULL } },
    { "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"x\"]}}\n</tool_call>",
      "Let me look.",
      { "f" },
      { "{\"a\": [1, \"x\"]}" } },
    { "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n"
      "<tool_call>{\"arguments\": \"{\\\"b\\\": 2}\", "
      "\"name\": \"g\"}</tool_call>",
      "",
      { "f", "g" },
      { "{}", "{\"b\": 2}" } },
    { "<tool_call>\n<function=f>\n<parameter=path>\n/tmp/a b\n</parameter>\n<parameter=n>\n3\n</parameter>\n"
      "</function>\n</tool_call>",
      "",
      { "f" },
      { "{\"path\": \"/tmp/a b\", \"n\": 3}" } },
    { TYPED(VALUE("s", "1") VALUE("e", "true") VALUE("c", "2") VALUE("r", "null")),
      "",
      { "typed" },
      { "{\"s\": \"1\", \"e\": \"true\", \"c\": \"2\", \"r\": \"null\"}" } },
    { TYPED(VALUE("s", "\"x\"") VALUE("p", "\"1\"") VALUE("o", "\"1</parameter>\"") VALUE("n", "null")),
      "",
      { "typed" },
      { "{\"s\": \"\\\"x\\\"\", \"p\": \"1\", \"o\": \"1</parameter>\", \"n\": null}" } },
    { TYPED(VALUE("p", "1") VALUE("o", "a b") VALUE("a", "1")
                VALUE("q", "[1]")), /* as templates write them */
      "",
      { "typed" },
      { "{\"p\": \"1\", \"o\": \"a b\", \"a\": 1, \"q\": [1]}" } },
    { "<tool_call>\n<function=parts>\n" VALUE("s", "1") VALUE("v", "\"2\"") VALUE("w", "3") "</function>",
      "",
      { "parts" },
      { "{\"s\": \"1\", \"v\": \"2\", \"w\": \"3\"}" } },
    { "<tool_call>\n<function=parts>\n" VALUE("v", "2") "</function>", "", { "parts" }, { "{\"v\": 2}" } },
    { "{\"name\": \"f\", \"parameters\": {\"q\": \"x\"}}", "", { "f" }, { "{\"q\": \"x\"}" } },
    { "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]", "", { "f", "g" }, { "{}", "{}" } },
    { "[tool call to=functions.f] {\"a\": 1}\n\n[tool call to=functions.g] {}",
      "",
      { "f", "g" },
      { "{\"a\": 1}", "{}" } },
    { "see\n\n[tool call to=f] {\"a\": 1}", "see", { "f" }, { "{\"a\": 1}" } },
    { "{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {\"a\": 1}}",
      "",
      { "f", "g" },
      { "{}", "{\"a\": 1}" } },
    { "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]", "", { "f" }, { "{}" } },
    { "{\"name\": \"Ann\", \"age\": 5}", "{\"name\": \"Ann\", \"age\": 5}", { NULL }, { NULL } },
    { "{\"no\": \"call\"}", "{\"no\": \"call\"}", { NULL }, { NULL } },
    { "<tool_call>{\"name\": ", "", { NULL }, { NULL } },
    { "<tool_call>{\"arguments\": {}}</tool_call>", "", { NULL }, { NULL } },
    { "a < b and [c]", "a < b and [c]", { NULL }, { NULL } },
};
#define CASES (sizeof cases / sizeof *cases)

static void is_call(const QsfJson *call, const char *name, const char *arguments) {
    const QsfJson *f = qsf_json_get(call, "function");
    assert_string_equal(qsf_json_string(qsf_json_get(f, "name"), NULL), name);
    assert_string_equal(qsf_json_string(qsf_json_get(f, "arguments"), NULL), arguments);
    assert_string_equal(qsf_json_string(qsf_json_get(call, "type"), NULL), "function");
    assert_non_null(qsf_json_string(qsf_json_get(call, "id"), NULL));
}

static void test_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT, list = QSF_STRBUF_INIT;
        QsfErr e = { 0 };
        size_t before, want = 0;
        while (want < 2 && cases[i].name[want] != NULL) want++;
        const size_t n = serve_calls_read(cases[i].text, strlen(cases[i].text), &given, false, true, &before,
                                          &b);
        if (n != want) fail_msg("%s: %zu calls", cases[i].text, n);
        if (n > 0) assert_int_equal(before, strlen(cases[i].before));
        if (n > 0) qsf_strbuf_addf(&list, "[%.*s]", (int)b.len - 2, b.data);
        QsfJson *j = n > 0 ? qsf_json_parse(list.data, list.len, &e) : NULL;
        assert_true(n == 0 || qsf_json_size(j) == n);
        for (size_t k = 0; k < n; k++) {
            is_call(qsf_json_at(j, k), cases[i].name[k], cases[i].arguments[k]);
            assert_int_equal(qsf_json_int(qsf_json_get(qsf_json_at(j, k), "index"), -1), k);
        }
        qsf_json_free(j);
        qsf_strbuf_free(&b);
        assert_int_equal(serve_calls_read(cases[i].text, strlen(cases[i].text), &given, true, false, &before,
                                          &b),
                         want > 0);
        qsf_strbuf_free(&b);
        qsf_strbuf_free(&list);
    }
}

/* What a stream shows never has a part of a call, never shrinks, and is a beginning of the text. */
static void test_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const size_t len = strlen(cases[i].text);
        size_t shown = 0;
        for (size_t n = 0; n <= len; n++) {
            const size_t now = serve_calls_before(cases[i].text, n);
            assert_true(now <= n);
            assert_true(now >= shown || cases[i].name[0] != NULL || cases[i].text[0] == '<');
            if (cases[i].name[0] != NULL && now > strlen(cases[i].before))
                fail_msg("%.*s", (int)now, cases[i].text);
            shown = now;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole), cmocka_unit_test(test_parts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
