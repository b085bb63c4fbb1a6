/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schemas that say which members an object has together: dependencies, oneOf of required names, anyOf that
 * forbids; random ones against the verdicts of an independent validator in tests/data/members.jsonl. */
#include "tests/harness/qsf_test.h"

#include "src/base/json.h"
#include "src/base/strbuf.h"
#include "src/grammar/automaton.h"

#define DRAFT7 "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
#define ABC    "\"properties\":{\"a\":{},\"b\":{},\"c\":{}}"

typedef struct Schema {
    QsfGrammar *g;
    QsfAutomaton *a;
} Schema;

static int open_schema(Schema *s, const char *text, size_t len, QsfErr *err) {
    *s = (Schema){ 0 };
    *err = (QsfErr){ 0 };
    const int rc = qsf_grammar_new(&s->g, QSF_KIND_SCHEMA, text, len, err);
    return rc == QSF_OK ? qsf_automaton_new(&s->a, s->g, QSF_AUTOMATON_BYTES, err) : rc;
}

static void close_schema(Schema *s) {
    qsf_automaton_free(s->a);
    qsf_grammar_free(s->g);
}

static bool matches(Schema *s, const char *text) {
    QsfErr err = { 0 };
    uint32_t state;
    qsf_test_expect_ok(qsf_automaton_feed(s->a, qsf_automaton_start(s->a), text, strlen(text), &state, &err),
                       &err);
    return state != 0 && qsf_automaton_ends(s->a, state);
}

/* A letter for each text: y = matches. */
static void test_members(void **state) {
    static const char *const texts[] = { "{}",
                                         "{\"a\": 1}",
                                         "{\"b\": 1}",
                                         "{\"a\": 1, \"b\": 1}",
                                         "{\"a\": 1, \"c\": 1}",
                                         "{\"a\": 1, \"b\": 1, \"c\": 1}",
                                         "{\"z\": 1}",
                                         "1" };
    static const char *const cases[][2] = {
        { DRAFT7 ABC ",\"dependencies\":{\"a\":[\"b\"]}}", "y-yy-y--" },
        { DRAFT7 ABC ",\"dependencies\":{\"a\":[\"b\",\"c\"],\"b\":[\"a\"]}}", "y----y--" },
        { DRAFT7 "\"type\":\"object\",\"dependencies\":{\"a\":[\"b\"]}}", "y-yy-yy-" },
        /* a name that only others need is there only with them; one that no other part has is never there */
        { "{\"properties\":{\"a\":{}},\"dependencies\":{\"a\":[\"b\"],\"z\":[\"a\"]}}", "y--y----" },
        { "{" ABC ",\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "-yy-y---" },
        { "{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "-yy-y---" },
        { "{" ABC ",\"oneOf\":[{\"required\":[\"a\",\"b\"]},{\"required\":[\"b\",\"c\"]},"
          "{\"required\":[]}]}",
          "yyy-y---" },
        { "{" ABC ",\"additionalProperties\":false,\"required\":[\"a\"],"
          "\"oneOf\":[{\"required\":[\"b\"]},{\"required\":[\"c\"],\"description\":\"t\"}]}",
          "---yy---" },
        /* an integer is valid for the schema without a type, and only for that */
        { "{\"type\":[\"object\",\"integer\"]," ABC
          ",\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
          "-yy-y--y" },
        { "{\"type\":[\"object\",\"integer\"]," ABC ",\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\"]},"
          "{\"type\":\"object\",\"required\":[\"b\"]}]}",
          "-yy-y---" },
        { "{\"type\":[\"object\",\"integer\"]," ABC
          ",\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
          "-yy-y---" },
        /* schemas of a choice that contradict what is required, by themselves or by their own choices */
        { "{" ABC ",\"required\":[\"a\"],\"anyOf\":[{\"properties\":{\"a\":false}},{\"required\":[\"b\"]}]}",
          "---y-y--" },
        { "{" ABC ",\"type\":\"object\",\"required\":[\"a\"],\"anyOf\":[{\"anyOf\":["
          "{\"properties\":{\"a\":false}}]},{\"required\":[\"c\"]}]}",
          "----yy--" },
        { DRAFT7 ABC ",\"anyOf\":[{\"required\":[\"a\"],\"properties\":{\"b\":false}},"
                     "{\"required\":[\"b\"]}],\"dependencies\":{\"a\":[\"b\"]}}",
          "--yy-y--" },
        { "{\"type\":[\"object\",\"integer\"],\"properties\":{\"a\":false},\"required\":[\"a\"]}",
          "-------y" },
        /* values of a list, too */
        { DRAFT7 "\"enum\":[{},{\"a\":1},{\"a\":1,\"b\":1},1],\"dependencies\":{\"a\":[\"b\"]}}",
          "y--y---y" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Schema s;
        QsfErr err;
        qsf_test_expect_ok(open_schema(&s, cases[i][0], strlen(cases[i][0]), &err), &err);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            if (matches(&s, texts[k]) != (cases[i][1][k] == 'y')) fail_msg("%s: %s", cases[i][0], texts[k]);
        close_schema(&s);
    }
}

static void refuse(const char *schema, const char *why) {
    Schema s;
    QsfErr err;
    assert_int_equal(open_schema(&s, schema, strlen(schema), &err), QSF_E_USAGE);
    qsf_test_expect_err(&err, QSF_E_USAGE, why);
    close_schema(&s);
}

static void test_refused(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    refuse("{\"properties\":{\"a\":{\"dependencies\":{\"b/c\":{\"required\":[\"d\"]}}}}}",
           "#/properties/a/dependencies/b~1c: only a list of names");
    refuse("{\"dependencies\":{\"a\":[1]}}", "#/dependencies/a: only a list of names");
    refuse("{\"dependencies\":[]}", "#/dependencies: dependencies is not an object");
    refuse("{\"dependentRequired\":{\"a\":[\"b\"]}}", "#/dependentRequired: the keyword dependentRequired");
    refuse("{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"a\"]}]}", "#: required names");
    refuse("{\"oneOf\":[{\"required\":[1]},{\"required\":[\"a\"]}]}", "#: this is not a list of names");
    refuse("{\"type\":\"string\",\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
           "the types contradict");
    refuse("{\"oneOf\":[{\"required\":[\"a\"],\"not\":{}},{\"required\":[\"b\"]}]}", "#/oneOf");
    refuse(
        "{\"type\":\"object\",\"required\":[\"a\"],\"anyOf\":[{\"anyOf\":[{\"properties\":{\"a\":false}}]}]}",
        "#/anyOf: no schema of anyOf agrees");
    /* a limit for what takes too many combinations, and for names */
    for (int i = 0; i < 60; i++)
        qsf_strbuf_addf(&b, "%s\"a%d\":[\"b%d\"]", i > 0 ? "," : "{\"dependencies\":{", i, i);
    qsf_strbuf_adds(&b, "}}");
    refuse(qsf_strbuf_str(&b), "#: more than 256 ways to combine");
    qsf_strbuf_clear(&b);
    for (int i = 0; i < 300; i++)
        qsf_strbuf_addf(&b, "%s\"a%d\"", i > 0 ? "," : "{\"dependencies\":{\"a\":[", i);
    qsf_strbuf_adds(&b, "]}}");
    refuse(qsf_strbuf_str(&b), "#: too many names");
    qsf_strbuf_free(&b);
}

/* The digit of value i: an object with some of the members, or a string. */
static void check_value(Schema *s, const char *verdicts, uint32_t i, const char *line) {
    char text[64] = "\"x\"";
    size_t n = 0;
    for (uint32_t k = 0; i < 16 && k < 4; k++)
        if (i >> k & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%c\": 1", n > 0 ? ", " : "{", 'a' + (int)k);
    if (i < 16) (void)snprintf(text + n, sizeof text - n, n > 0 ? "}" : "{}");
    const bool match = matches(s, text), valid = verdicts[i] == '1';
    /* without a type, strings need not be written */
    if (match != valid && (i < 16 || match))
        fail_msg("%s is %s: %s", text, match ? "taken" : "refused", line);
}

/* Returns false if the schema is refused, which it may be if no object is valid. */
static bool check_line(const char *line) {
    QsfErr err = { 0 };
    QsfJson *v = qsf_json_parse(line, strlen(line), &err);
    assert_non_null(v);
    const char *from = strstr(line, "\"schema\": ") + strlen("\"schema\": "),
               *to = strstr(line, ", \"valid\": ");
    const char *verdicts = qsf_json_string(qsf_json_get(v, "valid"), NULL);
    assert_non_null(verdicts);
    assert_int_equal(strlen(verdicts), 17);
    assert_non_null(to);
    Schema s;
    const bool ok = open_schema(&s, from, (size_t)(to - from), &err) == QSF_OK;
    if (!ok && memchr(verdicts, '1', 16) != NULL) fail_msg("%s: %s", line, err.msg);
    if (!ok) qsf_test_expect_err(&err, QSF_E_USAGE, "nothing is valid");
    for (uint32_t i = 0; ok && i < 17; i++) check_value(&s, verdicts, i, line);
    close_schema(&s);
    qsf_json_free(v);
    return ok;
}

static void test_verdicts(void **state) {
    const char *src = getenv("QSF_SRCDIR");
    char path[4096], line[8192];
    uint32_t n = 0, n_ok = 0;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/data/members.jsonl", src != NULL ? src : ".");
    FILE *f = fopen(path, "r");
    if (f == NULL) fail_msg("%s cannot be read", path);
    for (; fgets(line, sizeof line, f) != NULL; n++) n_ok += check_line(line);
    fclose(f);
    assert_int_equal(n, 400);
    assert_true(n_ok > 250);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
