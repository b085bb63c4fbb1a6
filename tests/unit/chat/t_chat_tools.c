/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tools and tool calls that a client gives as JSON, in templates; wrong ones are refused. Nothing in them is
 * the template's own text. */
#include "tests/harness/think_rig.h"

#define MSG(r, text)     .role = (r), .content = (text), .len = sizeof(text) - 1
#define JSON(name, text) .name = (text), .name##_len = sizeof(text) - 1

static const char template[] =
    "{% if tools %}{% for t in tools %}({{ t.function.name }} {{ t | tojson }}){% endfor %}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.id }} {{ c.type }} {{ c.function.name }} "
    "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}]{% endfor %}"
    "{% if m.tool_call_id %}#{{ m.tool_call_id }} {{ m.name }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

static const char *const tokens[] = { "<|end|>", NULL };

static void test_rendered(void **state) {
    const QsfMsg msgs[] = {
        { MSG("user", "hi"), JSON(tools, "[{\"type\": \"function\", \"function\": {\"name\": \"look\", "
                                         "\"description\": \"<|end|>\"}}]") },
        { MSG("assistant", ""),
          JSON(calls, "[{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": \"look\", "
                      "\"arguments\": \"{\\\"at\\\": \\\"<|end|>\\\"}\"}}]") },
        { MSG("tool", "42"), .call_id = "c1", .name = "look" },
    };
    QsfThinkRig r;
    QsfRendered out = { 0 };
    QsfErr e = { 0 };
    size_t from = 0;
    (void)state;
    qsf_think_rig_open(&r, template, tokens);
    qsf_test_expect_ok(qsf_chat_render(r.tmpl, msgs, 3, QSF_CHAT_GENERATE, &out, &e), &e);
    const char *text = qsf_strbuf_str(&out.text);
    assert_non_null(strstr(text, "(look {"));
    assert_non_null(strstr(text, "\"description\": \""));
    assert_non_null(strstr(text, "<assistant>[c1 function look at=<|end|>]<tool>42#c1 look<assistant>"));
    for (size_t i = 0; i < out.n_segs; from += out.segs[i++].len)
        if (out.segs[i].trusted) assert_null(memmem(text + from, out.segs[i].len, "<|end|>", 7));
    qsf_rendered_free(&out);
    qsf_think_rig_close(&r);
}

/* The ids have no control token. */
static void test_ids(void **state) {
    const QsfMsg msgs[] = {
        { MSG("user", "hi"), JSON(tools, "[{\"function\": {\"name\": \"<|end|>\", \"x\": [\"<|end|>\"]}}]") }
    };
    QsfThinkRig r;
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    (void)state;
    qsf_think_rig_open(&r, template, tokens);
    const int32_t end = qsf_tokenizer_find(r.tok, "<|end|>", 7);
    assert_true(end >= 0);
    qsf_test_expect_ok(qsf_chat_encode(r.tmpl, r.tok, msgs, 1, QSF_CHAT_GENERATE, &ids, &e), &e);
    for (size_t i = 0; i < ids.n; i++) assert_int_not_equal(ids.data[i], end);
    qsf_ids_free(&ids);
    qsf_think_rig_close(&r);
}

static void refused(const char *source, QsfMsg msg, const char *part) {
    QsfThinkRig r;
    QsfRendered out = { 0 };
    QsfErr e = { 0 };
    qsf_think_rig_open(&r, source, tokens);
    assert_int_equal(qsf_chat_render(r.tmpl, &msg, 1, QSF_CHAT_GENERATE, &out, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, part);
    qsf_rendered_free(&out);
    qsf_think_rig_close(&r);
}

static void test_refused(void **state) {
    static const char plain[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    (void)state;
    refused(template, (QsfMsg){ MSG("user", "hi"), JSON(tools, "{}") }, "tools: expected an array");
    refused(template, (QsfMsg){ MSG("user", "hi"), JSON(tools, "[{\"name\": \"f\"}]") }, "function.name");
    refused(template, (QsfMsg){ MSG("user", "hi"), JSON(tools, "[") }, "tools");
    refused(template, (QsfMsg){ MSG("assistant", ""), JSON(calls, "[1]") }, "tool_calls");
    refused(plain, (QsfMsg){ MSG("user", "hi"), JSON(tools, "[{\"function\": {\"name\": \"f\"}}]") },
            "does not include them");
    refused(plain, (QsfMsg){ MSG("assistant", ""), JSON(calls, "[{\"function\": {\"name\": \"f\"}}]") },
            "does not include them");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rendered),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
