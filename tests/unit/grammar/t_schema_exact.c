/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of a JSON Schema beyond what a double can hold; keywords with values of a wrong kind; $ref in draft
 * 7; paths in messages. */
#include "tests/harness/qsf_test.h"

#include "src/grammar/automaton.h"

static int compile(QsfGrammar **g, const char *schema, QsfErr *err) {
    *err = (QsfErr){ 0 };
    *g = NULL;
    return qsf_grammar_new(g, QSF_KIND_SCHEMA, schema, strlen(schema), err);
}

static bool matches(QsfAutomaton *a, const char *text) {
    QsfErr err = { 0 };
    uint32_t state;
    assert_int_equal(qsf_automaton_feed(a, qsf_automaton_start(a), text, strlen(text), &state, &err), QSF_OK);
    return state != 0 && qsf_automaton_ends(a, state);
}

static void check(const char *schema, const char *valid, const char *wrong) {
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr err;
    if (compile(&g, schema, &err) != QSF_OK) fail_msg("%s: %s", schema, err.msg);
    assert_int_equal(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &err), QSF_OK);
    if (valid != NULL && !matches(a, valid)) fail_msg("%s: %s", schema, valid);
    if (wrong != NULL && matches(a, wrong)) fail_msg("%s: %s", schema, wrong);
    qsf_automaton_free(a);
    qsf_grammar_free(g);
}

static void test_exact_numbers(void **state) {
    static const char *const cases[][3] = {
        { "{\"type\":\"integer\",\"maximum\":18446744073709551615}", "18446744073709551615",
          "18446744073709551616" },
        { "{\"type\":\"integer\",\"exclusiveMaximum\":18446744073709551616}", "18446744073709551615",
          "18446744073709551616" },
        { "{\"minimum\":-9223372036854775809}", "-9223372036854775809", "-9223372036854775810" },
        { "{\"type\":\"integer\",\"minimum\":9007199254740993}", "9007199254740993", "9007199254740992" },
        { "{\"minimum\":0.12345678901234567891}", "0.12345678901234567891", "0.1234567890123456789" },
        { "{\"maximum\":1e400}", "1", "1e400" }, /* numbers with a bound have no exponents */
        { "{\"maximum\":12345678901234567890e-10}", "1234567890.123456789", "1234567890.1234567891" },
        { "{\"enum\":[10000000000000000000]}", "10000000000000000000", "10000000000000000001" },
        { "{\"type\":\"integer\",\"enum\":[10000000000000000000,1.5]}", "10000000000000000000", "1.5" },
        { "{\"enum\":[100000000000000000000.5,3],\"type\":\"integer\"}", "3", "100000000000000000000.5" },
        { "{\"enum\":[9007199254740993,9007199254740992],\"maximum\":9007199254740992}", "9007199254740992",
          "9007199254740993" },
        { "{\"const\":9007199254740993,\"enum\":[9007199254740993,9007199254740992]}", "9007199254740993",
          "9007199254740992" },
        { "{\"enum\":[18446744073709551615,7],\"minimum\":18446744073709551615.0}", "18446744073709551615",
          "7" },
        { "{\"oneOf\":[{\"type\":\"integer\",\"maximum\":9007199254740992},"
          "{\"type\":\"integer\",\"minimum\":9007199254740993}]}",
          "9007199254740993", "\"a\"" },
        { "{\"enum\":[\"18446744073709551616\",\"a\\\\\",\"NaN\",18446744073709551615]}", "\"NaN\"",
          "18446744073709551616" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(cases[i][0], cases[i][1], cases[i][2]);
}

static void test_refused(void **state) {
    static const char *const cases[][2] = {
        { "{\"const\":NaN}", "NaN is not JSON" },
        { "{\"enum\":[1,-Infinity]}", "Infinity is not JSON" },
        { "{\"maximum\":1e9999}", "#/maximum: a number has more than 800 digits" },
        { "{\"enum\":[0.1,0.10000000000000000001]}", "are too close to each other" },
        { "{\"enum\":[1],\"exclusiveMinimum\":true}",
          "#/exclusiveMinimum: exclusiveMinimum is not a number" },
        { "{\"type\":\"string\",\"items\":3}", "#/items: items is not a schema or a list" },
        { "{\"type\":\"string\",\"required\":\"a\"}", "#/required: required is not a list of names" },
        { "{\"type\":\"null\",\"properties\":[]}", "#/properties: properties is not an object" },
        { "{\"properties\":{\"a/b~c\":{\"type\":\"null\",\"pattern\":1}}}",
          "#/properties/a~1b~0c/pattern: pattern is not a text" },
        { "{\"anyOf\":[]}", "#/anyOf: anyOf is empty" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfGrammar *g;
        QsfErr err;
        assert_int_equal(compile(&g, cases[i][0], &err), QSF_E_USAGE);
        if (strstr(err.msg, cases[i][1]) == NULL) fail_msg("%s: %s", cases[i][0], err.msg);
    }
}

/* In draft 7 the keywords beside $ref do not count, for values of an enum either. */
static void test_draft7_ref(void **state) {
    static const char rest[] = "\"definitions\":{\"s\":{\"type\":\"string\"}},\"enum\":[{\"a\":\"x\"},7],"
                               "\"properties\":{\"a\":{\"$ref\":\"#/definitions/s\",\"minLength\":5}}}";
    char text[400];
    (void)state;
    (void)snprintf(text, sizeof text, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",%s", rest);
    check(text, "{\"a\": \"x\"}", NULL);
    (void)snprintf(text, sizeof text, "{%s", rest);
    check(text, "7", "{\"a\": \"x\"}");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_exact_numbers), cmocka_unit_test(test_refused),
                                        cmocka_unit_test(test_draft7_ref) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
