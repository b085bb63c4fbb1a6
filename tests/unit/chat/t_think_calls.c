/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls of earlier answers in prompts. */
#include "tests/harness/qsf_test.h"

#include "qsf_engine.h"
#include "tests/harness/think_rig.h"

static const char *const harmony[] = { "<|start|>",     "<|message|>", "<|channel|>", "<|end|>",
                                       "<|constrain|>", "<|return|>",  "<|call|>",    NULL };
static const char *const muse[] = { "<|start|>", "<|message|>", "<|eom|>", "<|eot|>", NULL };
#define HARMONY                                                                                             \
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}" \
    "<|message|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"

/* The prompt as text. */
static const char *encode(const QsfThinkRig *r, const QsfMsg *msgs, size_t n, bool go_on,
                          QsfThinkPrompt *where) {
    static QsfStrbuf text;
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    qsf_strbuf_free(&text);
    qsf_test_expect_ok(qsf_think_encode(&r->think, r->tmpl, r->tok, msgs, n,
                                        go_on ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE, &ids, where, &e),
                       &e);
    qsf_test_expect_ok(qsf_chat_show(r->tok, &ids, &text, NULL, &e), &e);
    qsf_ids_free(&ids);
    return qsf_strbuf_str(&text);
}

/* A token in the text of a prompt. */
#define T(token)         QSF_CHAT_MARK_OPEN token QSF_CHAT_MARK_CLOSE
#define HEAD             T("<|start|>") "assistant" T("<|channel|>")
#define CALL(head, args) HEAD head T("<|message|>") args T("<|call|>")
#define ANSWERS          HEAD "final" T("<|message|>")

/* A call is the message that it was, not text of a final message. */
static void calls_of_earlier_answers(void **state) {
    static const char *const rows[][2] = {
        { "[tool call to=functions.f] {\"a\": 1}",
          CALL("commentary to=functions.f " T("<|constrain|>") "json", "{\"a\": 1}") },
        { "[tool call to=python] 1+1\n\n2", CALL("analysis to=python", "1+1\n\n2") },
        { "Wait.\n\n[tool call to=functions.f] <|end|>\n\n[tool call to=functions.g] {}",
          ANSWERS "Wait." T("<|end|>") CALL("commentary to=functions.f", "<|end|>")
              CALL("commentary to=functions.g " T("<|constrain|>") "json", "{}") },
        { "[tool call to=a b] x", ANSWERS "[tool call to=a b] x" T("<|end|>") },
        { "a [tool call to=f] x", ANSWERS "a [tool call to=f] x" T("<|end|>") },
        { "Zqcallk", ANSWERS "Zqcallk" T("<|end|>") },
    };
    QsfThinkRig r;
    QsfThinkPrompt where;
    char expected[1000];
    (void)state;
    qsf_think_rig_open(&r, HARMONY, harmony);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const QsfMsg msgs[] = { { .role = "user", .content = rows[i][0], .len = strlen(rows[i][0]) },
                                { .role = "assistant", .content = rows[i][0], .len = strlen(rows[i][0]) },
                                { .role = "user", .content = "Zqcallk", .len = 7 } };
        snprintf(expected, sizeof expected,
                 T("<|start|>") "user" T("<|message|>") "%s" T("<|end|>") "%s" T("<|start|>") "user" T(
                     "<|message|>") "Zqcallk" T("<|end|>") T("<|start|>") "assistant",
                 rows[i][0], rows[i][1]);
        assert_string_equal(encode(&r, msgs, 3, false, &where), expected);
        assert_int_equal(where.lost, 0);
    }
    qsf_think_rig_close(&r);
    qsf_think_rig_open(
        &r,
        "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %} to=user{% endif %}"
        "<|message|>{{ m.content }}<|eom|>{% endfor %}",
        muse);
    const QsfMsg call = { .role = "assistant", .content = "[tool call to=f] x", .len = 18 };
    assert_string_equal(encode(&r, &call, 1, false, &where),
                        T("<|start|>") "assistant to=f" T("<|message|>") "x" T("<|eom|>"));
    qsf_think_rig_close(&r);
}

/* ---- templates that render calls ---- */

static const char *const solar[] = {
    "<|begin|>",         "<|think|>",           "<|content|>",        "<|end|>",
    "<|tool_calls|>",    "<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>",
    "<|tool_call:end|>", "<|flush|>",           "<|calls|>",          NULL
};
#define SOLAR(calls)                                                                                \
    "{% for m in messages %}<|begin|>{{ m.role }}{% if m.content or not m.tool_calls %}<|content|>" \
    "{{ m.content }}<|end|>{% endif %}" calls                                                       \
    "{% endfor %}{% if add_generation_prompt %}<|begin|>assistant{% endif %}"
#define SOLAR_CALLS                                                                                \
    "{% if m.tool_calls %}<|tool_calls|>{% for c in m.tool_calls %}<|tool_call:begin|>{{ c.id }}"  \
    "<|tool_call:name|>{{ c.function.name }}<|tool_call:args|>{{ c.function.arguments | tojson }}" \
    "<|tool_call:end|>{% endfor %}<|calls|>{% endif %}"

/* The prompt after a question, with an answer of this text. */
static void expect_answer(const QsfThinkRig *r, const char *answer, const char *before, const char *expected,
                          const char *after) {
    QsfThinkPrompt where;
    char whole[1000];
    const QsfMsg msgs[] = { { .role = "user", .content = answer, .len = strlen(answer) },
                            { .role = "assistant", .content = answer, .len = strlen(answer) } };
    snprintf(whole, sizeof whole, "%s%s%s", before, expected, after);
    assert_string_equal(encode(r, msgs, 2, false, &where), whole);
    assert_int_equal(where.lost, 0);
}

#define TEXT(text) T("<|content|>") text T("<|end|>")
#define SHOWN(i, name) \
    T("<|tool_call:begin|>") "call_" #i T("<|tool_call:name|>") name T("<|tool_call:args|>")

/* A template gets tool_calls; what is not a call with an object stays text, and so do all calls for a
 * template that refuses them or leaves them out. */
static void calls_of_blocks(void **state) {
    static const char one[] = "[tool call to=f] {\"a\": [1, 2.5, true, null], \"b\": \"<|end|>\"}";
    static const struct {
        const char *answer, *expected;
    } rows[] = {
        { one, T("<|tool_calls|>") SHOWN(1, "f") "{\"a\": [1, 2.5, true, null], \"b\": \"<|end|>\"}" T(
                   "<|tool_call:end|>") T("<|calls|>") },
        { "Wait.\n\n[tool call to=f] {}\n\n[tool call to=g.h] {\"k\": {}}\n",
          TEXT("Wait.") T("<|tool_calls|>") SHOWN(1, "f") "{}" T("<|tool_call:end|>")
              SHOWN(2, "g.h") "{\"k\": {}}" T("<|tool_call:end|>") T("<|calls|>") },
        { "[tool call to=f] [1]", TEXT("[tool call to=f] [1]") },
        { "[tool call to=f] {\"a\": ", TEXT("[tool call to=f] {\"a\": ") },
        { "[tool call to=f] {}\n\n[tool call to=g] x", TEXT("[tool call to=f] {}\n\n[tool call to=g] x") },
        { "Not [tool call to=f] {}", TEXT("Not [tool call to=f] {}") },
    };
    static const char *const others[] = {
        SOLAR(""), SOLAR("{% if m.tool_calls %}{% endif %}"),
        SOLAR("{% if m.tool_calls %}{{ raise_exception('no') }}{% endif %}"),
        SOLAR("{% if m.tool_calls %}{{ m.tool_calls[7].x.y }}{% endif %}"),
        SOLAR("{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments }}"
              "{{ c.function.arguments.zqkey + '' }}{% endfor %}")
    };
    QsfThinkRig r;
    char before[300];
    (void)state;
    qsf_think_rig_open(&r, SOLAR(SOLAR_CALLS), solar);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(before, sizeof before, "%suser%s%s%s%sassistant", T("<|begin|>"), T("<|content|>"),
                 rows[i].answer, T("<|end|>"), T("<|begin|>"));
        expect_answer(&r, rows[i].answer, before, rows[i].expected, T("<|begin|>") "assistant");
    }
    qsf_think_rig_close(&r);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        qsf_think_rig_open(&r, others[i], solar);
        snprintf(before, sizeof before, "%suser%s%s%s%sassistant%s", T("<|begin|>"), T("<|content|>"), one,
                 T("<|end|>"), T("<|begin|>"), T("<|content|>"));
        expect_answer(&r, one, before, one, T("<|end|>") T("<|begin|>") "assistant");
        qsf_think_rig_close(&r);
    }
}

static const char *const kimi[] = { "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", NULL };
#define KIMI                                                                                             \
    "{%- for m in messages -%}<|open|>message role=\"{{ m.role }}\"<|sep|>{{ m.content }}"               \
    "{%- for c in m.get('tool_calls') or [] -%}<|open|>call tool=\"{{ c.function.name }}\" "             \
    "index=\"{{ loop.index }}\"<|sep|>{%- for key, value in c.function.arguments.items() -%}"            \
    "<|open|>argument key=\"{{ key }}\" type=\"{{ 'string' if value is string else 'number' }}\"<|sep|>" \
    "{{ value if value is string else value | tojson }}<|close|>argument<|sep|>{%- endfor -%}"           \
    "<|close|>call<|sep|>{%- endfor -%}<|close|>message<|sep|><|end_of_msg|>{%- endfor -%}"
#define O T("<|open|>")
#define S T("<|sep|>")
#define C T("<|close|>")

static void calls_of_elements(void **state) {
    static const char answer[] = "Hm\n\n[tool call to=f] {\"z\": \"a \\\"b\\\"\\n<|sep|>\", \"n\": 3}";
    QsfThinkRig r;
    char before[300];
    (void)state;
    qsf_think_rig_open(&r, KIMI, kimi);
    snprintf(before, sizeof before, "%smessage role=\"user\"%s%s%smessage%s%s", O, S, answer, C, S,
             T("<|end_of_msg|>"));
    expect_answer(&r, answer, before,
                  O "message role=\"assistant\"" S "Hm" O "call tool=\"f\" index=\"1\"" S O
                    "argument key=\"z\" type=\"string\"" S "a \"b\"\n<|sep|>" C "argument" S O
                    "argument key=\"n\" type=\"number\"" S "3" C "argument" S C "call" S,
                  C "message" S T("<|end_of_msg|>"));
    qsf_think_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_of_earlier_answers),
                                        cmocka_unit_test(calls_of_blocks),
                                        cmocka_unit_test(calls_of_elements) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
