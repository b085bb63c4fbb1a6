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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_of_earlier_answers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
