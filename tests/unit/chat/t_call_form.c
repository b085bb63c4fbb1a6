/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forms of tool calls that are found in templates, and which texts match the grammars of these. */
#include "src/chat/call_form.h"

#include "src/grammar/automaton.h"
#include "tests/harness/think_rig.h"

#define BEGIN                                                \
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" \
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
#define CALL "{% for c in m.tool_calls or [] %}{% set f = c.function %}"
#define END  "{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"

static const char hermes[] = BEGIN CALL "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": "
                                        "{{ f.arguments | tojson }}}\n</tool_call>\n" END;
static const char llama[] = BEGIN CALL "{\"name\": \"{{ f.name }}\", \"parameters\": "
                                       "{{ f.arguments | tojson }}}" END;
static const char mistral[] = BEGIN "{% if m.tool_calls %}[TOOL_CALLS] [{% endif %}" CALL
                                    "{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}, "
                                    "\"id\": \"{{ c.id }}\"}]" END;
static const char coder[] = BEGIN CALL
    "<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}"
    "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n"
    "</tool_call>" END;

static const char *const no_tokens[] = { NULL };

static const char tools[] =
    "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"type\": "
    "\"integer\"}, \"s\": {\"type\": \"string\"}, \"e\": {\"enum\": [\"x\", \"y z\"]}}, "
    "\"required\": [\"a\"], \"additionalProperties\": false}}}, "
    "{\"function\": {\"name\": \"u\", \"parameters\": {\"required\": [\"z\"]}}}, "
    "{\"function\": {\"name\": \"g\\\"h\"}}]";

static void make_grammar(QsfThinkRig *r, const QsfCallWish *wish, QsfStrbuf *out) {
    QsfCallForm f;
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_call_form_find(&f, r->tmpl, &e), &e);
    qsf_test_expect_ok(qsf_call_form_grammar(&f, r->tok, wish, out, &e), &e);
}

static bool matches(const char *gbnf, const char *text) {
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    uint32_t state;
    qsf_test_expect_ok(qsf_grammar_new(&g, QSF_KIND_GBNF, gbnf, strlen(gbnf), &e), &e);
    qsf_test_expect_ok(qsf_automaton_new(&a, g, 1u << 20, &e), &e);
    qsf_test_expect_ok(qsf_automaton_feed(a, qsf_automaton_start(a), text, strlen(text), &state, &e), &e);
    const bool ok = state != 0 && qsf_automaton_ends(a, state);
    qsf_automaton_free(a);
    qsf_grammar_free(g);
    return ok;
}

#define TWO                                                                     \
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 5}}\n</tool_call>\n" \
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 6}}\n</tool_call>"

/* What strings cannot be held to as text is JSON, and what is required is always there. */
static const char typed[] =
    "[{\"function\": {\"name\": \"f\", \"parameters\": {\"$defs\": {\"s\": {\"type\": \"string\"}}, "
    "\"properties\": {\"v\": %s}, \"required\": [\"v\"]}}}]";

static const struct {
    const char *schema, *text;
    bool ok;
} values[] = {
    { "{\"type\": \"string\", \"enum\": [\"1\"]}", "1", true },
    { "{\"type\": \"string\", \"enum\": [\"1\"]}", "\"1\"", false },
    { "{\"const\": \"1\"}", "1", true },
    { "{\"const\": \"1\"}", "2", false },
    { "{\"const\": 1}", "1", true },
    { "{\"const\": 1}", "x", false },
    { "{\"enum\": [\"1\", 2]}", "\"1\"", true },
    { "{\"enum\": [\"1\", 2]}", "2", true },
    { "{\"enum\": [\"1\", 2]}", "1", false },
    { "{\"type\": \"null\"}", "null", true },
    { "{\"type\": \"null\"}", "x", false },
    { "{\"type\": [\"integer\", \"null\"]}", "null", true },
    { "{\"type\": [\"integer\", \"null\"]}", "x", false },
    { "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}", "\"x\"", true },
    { "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}", "x", false },
    { "{\"allOf\": [{\"type\": \"integer\"}, {\"minimum\": 7}]}", "7", true },
    { "{\"allOf\": [{\"type\": \"integer\"}, {\"minimum\": 7}]}", "6", false },
    { "{\"type\": \"string\", \"pattern\": \"^a+$\"}", "\"aa\"", true },
    { "{\"type\": \"string\", \"pattern\": \"^a+$\"}", "aa", false },
    { "{\"$ref\": \"#/$defs/s\", \"description\": \"a place\"}", "any text", true },
    { "{\"type\": \"string\", \"title\": \"a title\"}", "any text", true },
    { "{}", "any text", true },
};

static const struct {
    const char *template, *name, *text;
    bool one, ok;
} cases[] = {
    { hermes, NULL, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 5}}\n</tool_call>", false, true },
    { hermes, "", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":5}}", false, true },
    { hermes, "", "<tool_call>\n{\"name\": \"g\\\"h\", \"arguments\": {}}\n</tool_call>", false, true },
    { hermes, "f", "<tool_call>\n{\"name\": \"g\\\"h\", \"arguments\": {}}\n</tool_call>", false, false },
    { hermes, "", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", false, false },
    { hermes, "", "<tool_call>\n{\"name\": \"f\", \"arguments\": 5}\n</tool_call>", false, false },
    { hermes, "", "Let me look.", false, false },
    { hermes, "", "", false, false },
    { hermes, "", TWO, false, true },
    { hermes, "", TWO, true, false },
    { llama, "", "{\"name\": \"f\", \"parameters\": {\"a\": 5, \"s\": \"<\"}}", false, true },
    { llama, "", "{\"name\": \"f\", \"parameters\": {\"a\": 5, \"q\": \"<\"}}", false, false },
    { llama, "", "{\"name\": \"f\", \"arguments\": {\"a\": 5}}", false, false },
    { mistral, "", "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 5}}]", false, true },
    { mistral, "",
      "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 5}}, {\"name\": \"f\", \"arguments\": "
      "{\"a\": 6}}]",
      false, true },
    { mistral, "",
      "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 5}}, {\"name\": \"f\", \"arguments\": "
      "{\"a\": 6}}]",
      true, false },
    { mistral, "", "[TOOL_CALLS] []", false, false },
    { coder, "", "<tool_call>\n<function=f>\n<parameter=a>\n5\n</parameter>\n</function>\n</tool_call>",
      false, true },
    { coder, "",
      "<tool_call>\n<function=f>\n<parameter=a>\n-5\n</parameter>\n<parameter=s>\na < b </p x\n</parameter>\n"
      "<parameter=e>\ny z\n</parameter>\n</function>\n</tool_call>",
      false, false }, /* "</p" ends a text */
    { coder, "",
      "<tool_call>\n<function=f>\n<parameter=a>\n-5\n</parameter>\n<parameter=s>\na <</b> c\n</parameter>\n"
      "<parameter=e>\ny z\n</parameter>\n</function>\n</tool_call>",
      false, true },
    { coder, "", "<tool_call>\n<function=f>\n<parameter=a>\nfive\n</parameter>\n</function>\n</tool_call>",
      false, false },
    { coder, "", "<tool_call>\n<function=f>\n</function>\n</tool_call>", false, false },
    { coder, "", "<tool_call>\n<function=u>\n<parameter=z>\n1\n</parameter>\n</function>\n</tool_call>",
      false, true },
    { coder, "", "<tool_call>\n<function=u>\n</function>\n</tool_call>", false, false },
    { coder, "", "<tool_call>\n<function=g\"h>\n</function>", false, true },
};

static void test_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const QsfCallWish wish = { tools, sizeof tools - 1, cases[i].name, cases[i].one, NULL, 0 };
        QsfStrbuf gbnf = QSF_STRBUF_INIT;
        QsfThinkRig r;
        qsf_think_rig_open(&r, cases[i].template, no_tokens);
        make_grammar(&r, &wish, &gbnf);
        if (matches(qsf_strbuf_str(&gbnf), cases[i].text) != cases[i].ok)
            fail_msg("case %zu: \"%s\" with\n%s", i, cases[i].text, qsf_strbuf_str(&gbnf));
        qsf_strbuf_free(&gbnf);
        qsf_think_rig_close(&r);
    }
}

static void test_values(void **state) {
    (void)state;
    QsfThinkRig r;
    qsf_think_rig_open(&r, coder, no_tokens);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        QsfStrbuf json = QSF_STRBUF_INIT, gbnf = QSF_STRBUF_INIT;
        char text[200];
        qsf_strbuf_addf(&json, typed, values[i].schema);
        const QsfCallWish wish = { json.data, json.len, "", false, NULL, 0 };
        make_grammar(&r, &wish, &gbnf);
        (void)snprintf(
            text, sizeof text,
            "<tool_call>\n<function=f>\n<parameter=v>\n%s\n</parameter>\n</function>\n</tool_call>",
            values[i].text);
        if (matches(qsf_strbuf_str(&gbnf), text) != values[i].ok)
            fail_msg("value %zu: \"%s\" with\n%s", i, text, qsf_strbuf_str(&gbnf));
        qsf_strbuf_free(&gbnf);
        qsf_strbuf_free(&json);
    }
    qsf_think_rig_close(&r);
}

/* Schemas that are put together at their root; P(k, v): a parameter. */
#define P(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define INTEGER       "{\"type\": \"integer\"}"
#define STRING        "{\"type\": \"string\"}"
#define AB            "\"properties\": {\"a\": " INTEGER ", \"b\": " INTEGER "}"

static const struct {
    const char *schema, *text;
    bool ok;
} roots[] = {
    { "{\"$ref\": \"#/$defs/r\", \"$defs\": {\"r\": {\"type\": \"object\", \"properties\": {\"a\": " INTEGER
      "}, \"required\": [\"a\"]}}}",
      P("a", "5"), true },
    { "{\"$ref\": \"#/$defs/r\", \"$defs\": {\"r\": {\"properties\": {\"a\": " INTEGER
      "}, \"required\": [\"a\"]}}}",
      "", false },
    { "{\"properties\": {\"a\": " INTEGER ", \"b\": {\"$ref\": \"#/properties/a\"}}}",
      P("a", "1") P("b", "2"), true },
    { "{\"properties\": {\"a\": " INTEGER ", \"b\": {\"$ref\": \"#/properties/a\"}}}", P("b", "x"), false },
    { "{\"properties\": {\"a/~%\": " INTEGER ", \"b\": {\"items\": {\"$ref\": \"#/properties/a~1~0%25\"}}}}",
      P("a/~%", "1") P("b", "[2]"), true },
    { "{\"properties\": {\"a/~%\": " INTEGER ", \"b\": {\"items\": {\"$ref\": \"#/properties/a~1~0%25\"}}}}",
      P("b", "[true]"), false },
    { "{\"allOf\": [{\"properties\": {\"a\": " INTEGER
      "}, \"required\": [\"b\"]}, {\"properties\": {\"b\": " STRING "}, \"required\": [\"a\"]}]}",
      P("a", "1") P("b", "x"), true },
    { "{\"allOf\": [{\"properties\": {\"a\": " INTEGER
      "}, \"required\": [\"b\"]}, {\"properties\": {\"b\": " STRING "}, \"required\": [\"a\"]}]}",
      P("a", "1"), false },
    /* both hold for a value, which is JSON then */
    { "{\"allOf\": [{\"properties\": {\"a\": " STRING
      "}}, {\"properties\": {\"a\": {\"enum\": [\"x\", 1]}}}]}",
      P("a", "\"x\""), true },
    { "{\"allOf\": [{\"properties\": {\"a\": " STRING
      "}}, {\"properties\": {\"a\": {\"enum\": [\"x\", 1]}}}]}",
      P("a", "1"), false },
    { "{\"properties\": {\"a\": " STRING ", \"b\": " STRING
      "}, \"anyOf\": [{\"required\": [\"a\"]}, {\"required\": "
      "[\"b\"]}]}",
      P("b", "x"), true },
    { "{\"properties\": {\"a\": " STRING ", \"b\": " STRING
      "}, \"anyOf\": [{\"required\": [\"a\"]}, {\"required\": "
      "[\"b\"]}]}",
      P("a", "x") P("b", "y"), true },
    { "{\"properties\": {\"a\": " STRING ", \"b\": " STRING
      "}, \"anyOf\": [{\"required\": [\"a\"]}, {\"required\": "
      "[\"b\"]}]}",
      "", false },
    { "{\"oneOf\": [{\"properties\": {\"k\": {\"const\": \"i\"}, \"v\": " INTEGER
      "}, \"required\": [\"k\", \"v\"]}, "
      "{\"properties\": {\"k\": {\"const\": \"s\"}, \"v\": " STRING "}, \"required\": [\"k\", \"v\"]}]}",
      P("k", "i") P("v", "5"), true },
    { "{\"oneOf\": [{\"properties\": {\"k\": {\"const\": \"i\"}, \"v\": " INTEGER
      "}, \"required\": [\"k\", \"v\"]}, "
      "{\"properties\": {\"k\": {\"const\": \"s\"}, \"v\": " STRING "}, \"required\": [\"k\", \"v\"]}]}",
      P("k", "s") P("v", "\"t\""), true },
    { "{\"oneOf\": [{\"properties\": {\"k\": {\"const\": \"i\"}, \"v\": " INTEGER
      "}, \"required\": [\"k\", \"v\"]}, "
      "{\"properties\": {\"k\": {\"const\": \"s\"}, \"v\": " STRING "}, \"required\": [\"k\", \"v\"]}]}",
      P("k", "s") P("v", "5"), false },
    /* an alternative that contradicts itself is none, nor is one that is not an object */
    { "{\"properties\": {\"a\": " INTEGER
      "}, \"additionalProperties\": false, \"anyOf\": [{\"required\": [\"b\"]}, "
      "{\"type\": \"string\"}, {\"required\": [\"a\"]}]}",
      P("a", "5"), true },
    { "{\"properties\": {\"a\": " INTEGER
      "}, \"additionalProperties\": false, \"anyOf\": [{\"required\": [\"b\"]}, "
      "{\"type\": \"string\"}, {\"required\": [\"a\"]}]}",
      "", false },
    /* just one of them; with the first the second; what is not described comes last */
    { "{" AB ", \"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", P("b", "1"), true },
    { "{" AB ", \"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", P("a", "1"), true },
    { "{" AB ", \"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", P("a", "1") P("b", "2"),
      false },
    { "{" AB ", \"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", "", false },
    { "{" AB ", \"dependencies\": {\"a\": [\"b\"]}}", P("a", "1") P("b", "2"), true },
    { "{" AB ", \"dependencies\": {\"a\": [\"b\"]}}", P("b", "2"), true },
    { "{" AB ", \"dependencies\": {\"a\": [\"b\"]}}", "", true },
    { "{" AB ", \"dependencies\": {\"a\": [\"b\"]}}", P("a", "1"), false },
    { "{" AB ", \"dependencies\": {\"a\": [\"z\"], \"y\": [\"a\"]}}", P("a", "1") P("z", "{}"), true },
    { "{" AB ", \"dependencies\": {\"a\": [\"z\"], \"y\": [\"a\"]}}", P("a", "1"), false },
    { "{" AB ", \"dependencies\": {\"a\": [\"z\"], \"y\": [\"a\"]}}", P("b", "1") P("z", "{}"), false },
    { "{" AB ", \"dependencies\": {\"a\": [\"z\"], \"y\": [\"a\"]}}", P("a", "1") P("z", "{}") P("y", "1"),
      false },
    { "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", "
      "\"$ref\": \"#/definitions/r\", \"required\": [\"z\"], "
      "\"definitions\": {\"r\": {\"properties\": {\"a\": " INTEGER "}, \"required\": [\"a\"]}}}",
      P("a", "5"), true },
};

/* Arguments are an object, whatever else the schema allows. */
static void test_objects(void **state) {
    static const char call[] = "{\"name\": \"f\", \"parameters\": %s}";
    static const char *const schemas[] = {
        "true",
        "{\"title\": \"t\"}",
        ("{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"$ref\": \"#/definitions/r\", "
         "\"type\": \"object\", \"definitions\": {\"r\": {\"type\": [\"object\", \"null\"]}}}"),
        "{\"anyOf\": [{\"type\": \"object\"}, {\"type\": \"null\"}]}",
    };
    (void)state;
    QsfThinkRig r;
    qsf_think_rig_open(&r, llama, no_tokens);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        QsfStrbuf json = QSF_STRBUF_INIT, gbnf = QSF_STRBUF_INIT;
        char text[100];
        qsf_strbuf_addf(&json, "[{\"function\": {\"name\": \"f\", \"parameters\": %s}}]", schemas[i]);
        const QsfCallWish wish = { json.data, json.len, "", false, NULL, 0 };
        make_grammar(&r, &wish, &gbnf);
        (void)snprintf(text, sizeof text, call, "{\"a\": 1}");
        assert_true(matches(qsf_strbuf_str(&gbnf), text));
        (void)snprintf(text, sizeof text, call, "null");
        assert_false(matches(qsf_strbuf_str(&gbnf), text));
        qsf_strbuf_free(&gbnf);
        qsf_strbuf_free(&json);
    }
    qsf_think_rig_close(&r);
}

static void test_roots(void **state) {
    (void)state;
    QsfThinkRig r;
    qsf_think_rig_open(&r, coder, no_tokens);
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        QsfStrbuf json = QSF_STRBUF_INIT, gbnf = QSF_STRBUF_INIT;
        char text[300];
        qsf_strbuf_addf(&json, "[{\"function\": {\"name\": \"f\", \"parameters\": %s}}]", roots[i].schema);
        const QsfCallWish wish = { json.data, json.len, "", false, NULL, 0 };
        make_grammar(&r, &wish, &gbnf);
        (void)snprintf(text, sizeof text, "<tool_call>\n<function=f>\n%s</function>\n</tool_call>",
                       roots[i].text);
        if (matches(qsf_strbuf_str(&gbnf), text) != roots[i].ok)
            fail_msg("root %zu: \"%s\" with\n%s", i, text, qsf_strbuf_str(&gbnf));
        qsf_strbuf_free(&gbnf);
        qsf_strbuf_free(&json);
    }
    qsf_think_rig_close(&r);
}

static void refuse(const char *function, const char *why) {
    QsfStrbuf json = QSF_STRBUF_INIT, gbnf = QSF_STRBUF_INIT;
    QsfThinkRig r;
    QsfCallForm f;
    QsfErr e = { 0 };
    qsf_think_rig_open(&r, coder, no_tokens);
    qsf_strbuf_addf(&json, "[{\"function\": %s}]", function);
    const QsfCallWish wish = { json.data, json.len, "", false, NULL, 0 };
    qsf_test_expect_ok(qsf_call_form_find(&f, r.tmpl, &e), &e);
    assert_int_equal(qsf_call_form_grammar(&f, r.tok, &wish, &gbnf, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, why);
    qsf_strbuf_free(&gbnf);
    qsf_strbuf_free(&json);
    qsf_think_rig_close(&r);
}

/* What cannot be written as parameters is named. */
static void test_refused(void **state) {
    QsfStrbuf many = QSF_STRBUF_INIT;
    (void)state;
    refuse("{\"name\": \"f\", \"parameters\": {\"allOf\": [true, {\"enum\": [{}]}]}}",
           "'f': #/allOf/1: a list of whole");
    refuse("{\"name\": \"f\", \"parameters\": {\"type\": \"string\"}}", "nothing is valid");
    refuse("{\"name\": \"f\", \"parameters\": {\"$ref\": \"#/no\"}}", "leads nowhere");
    refuse("{\"name\": \"f\", \"parameters\": {\"allOf\": [{\"dependencies\": {\"a\": {}}}]}}",
           "'f': #/allOf/0: this is not a list of names");
    refuse("{\"name\": \"f\", \"parameters\": {\"allOf\": [{\"minProperties\": 1}]}}",
           "'f': #/allOf/0: the keyword minProperties");
    refuse("{\"name\": \"f\", \"parameters\": {\"required\": [\"a\"], \"dependencies\": {\"a\": [\"b\"]}, "
           "\"properties\": {\"b\": false}}}",
           "nothing is valid");
    refuse("{\"name\": \"f\", \"parameters\": {\"properties\": {\"a>b\": true}}}",
           "parameter 'a>b' cannot be written");
    refuse("{\"name\": \"f>\"}", "function 'f>' cannot be written");
    qsf_strbuf_adds(&many, "{\"name\": \"f\", \"parameters\": {\"anyOf\": [{}");
    for (int i = 0; i < 32; i++) qsf_strbuf_addf(&many, ", {\"required\": [\"a%d\"]}", i);
    qsf_strbuf_adds(&many, "]}}");
    refuse(qsf_strbuf_str(&many), "too many alternatives");
    qsf_strbuf_free(&many);
}

/* Marks that are tokens are generated as tokens; an answer may match a schema instead. */
static void test_tokens_and_schema(void **state) {
    static const char *const tokens[] = { "[TOOL_CALLS]", NULL };
    static const char schema[] = "{\"enum\": [1, 2]}";
    const QsfCallWish wish = { tools, sizeof tools - 1, NULL, false, schema, sizeof schema - 1 };
    QsfStrbuf gbnf = QSF_STRBUF_INIT;
    QsfThinkRig r;
    char mark[32];
    (void)state;
    qsf_think_rig_open(&r, mistral, tokens);
    make_grammar(&r, &wish, &gbnf);
    (void)snprintf(mark, sizeof mark, "<[%d]>", (int)qsf_tokenizer_find(r.tok, "[TOOL_CALLS]", 12));
    assert_non_null(strstr(qsf_strbuf_str(&gbnf), mark));
    assert_true(matches(qsf_strbuf_str(&gbnf), "2"));
    assert_false(matches(qsf_strbuf_str(&gbnf), "3"));
    assert_false(
        matches(qsf_strbuf_str(&gbnf), "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 5}}]"));
    qsf_strbuf_free(&gbnf);
    qsf_think_rig_close(&r);
}

static void unknown(const char *source) {
    QsfThinkRig r;
    QsfCallForm f;
    QsfErr e = { 0 };
    qsf_think_rig_open(&r, source, no_tokens);
    assert_int_equal(qsf_call_form_find(&f, r.tmpl, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "in a form that a grammar cannot enforce");
    qsf_think_rig_close(&r);
}

static void test_unknown(void **state) {
    (void)state;
    unknown(BEGIN "{% for c in m.tool_calls or [] %}{% endfor %}{% endfor %}");
    unknown(BEGIN CALL "CALL {{ f.name }}({{ f.arguments | tojson }})" END);
    unknown(BEGIN CALL
            "{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson | tojson }}}" END);
    unknown(BEGIN CALL
            "Calling: {\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}" END);
    unknown(BEGIN CALL
            "<tool_call>{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}</call>" END);
    unknown(
        BEGIN
        "{% if m.tool_calls %}{{ raise_exception('no') }}{% endif %}{% for c in m.tool_calls or [] %}" END);
}

static void test_no_tool(void **state) {
    const QsfCallWish wish = { tools, sizeof tools - 1, "h", false, NULL, 0 };
    QsfStrbuf gbnf = QSF_STRBUF_INIT;
    QsfThinkRig r;
    QsfCallForm f;
    QsfErr e = { 0 };
    (void)state;
    qsf_think_rig_open(&r, hermes, no_tokens);
    qsf_test_expect_ok(qsf_call_form_find(&f, r.tmpl, &e), &e);
    assert_int_equal(qsf_call_form_grammar(&f, r.tok, &wish, &gbnf, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "'h'");
    qsf_strbuf_free(&gbnf);
    qsf_think_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_roots),   cmocka_unit_test(test_objects),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_tokens_and_schema),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_no_tool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
