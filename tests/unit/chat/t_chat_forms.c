/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How templates are adapted to: contents as lists of parts, reasoning as a part, variables that switch
 * reasoning, and messages that a template leaves out. */
#include "tests/harness/qsf_test.h"

#include "src/chat/chat.h"
#include "src/file/source.h"
#include "tests/harness/tiny_vocab.h"

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }

typedef struct Rig {
    QsfLedger ledger;
    QsfTestVocab v;
    QsfSource *src;
    QsfTokenizer *tok;
    QsfChatTemplate *t;
} Rig;

static void rig_open(Rig *r, const char *template) {
    QsfErr e = { 0 };
    char notice[200];
    *r = (Rig){ 0 };
    qsf_ledger_init(&r->ledger, 0);
    qsf_tv_bpe(&r->v);
    qsf_gb_str(&r->v.gb, "tokenizer.chat_template", template);
    r->src = qsf_tv_source(&r->v, "gpt2", &r->ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    qsf_test_expect_ok(qsf_tokenizer_open(&r->tok, r->src, &r->ledger, &e), &e);
    qsf_test_expect_ok(qsf_chat_template_open(&r->t, r->src, r->tok, NULL, notice, sizeof notice, &e), &e);
    assert_string_equal(notice, "");
    assert_string_equal(qsf_chat_template_name(r->t), "model");
}

static void rig_close(Rig *r) {
    qsf_chat_template_close(r->t);
    qsf_tokenizer_close(r->tok);
    qsf_source_close(r->src);
    qsf_tv_free(&r->v);
    qsf_ledger_destroy(&r->ledger);
}

static void expect(const char *template, const QsfMsg *msgs, size_t n, QsfReason reason, const char *text) {
    Rig r;
    QsfRendered out = { 0 };
    QsfErr e = { 0 };
    rig_open(&r, template);
    qsf_test_expect_ok(
        qsf_chat_render(r.t, msgs, n, QSF_CHAT_GENERATE | QSF_CHAT_REASON * (unsigned)reason, &out, &e), &e);
    assert_string_equal(qsf_strbuf_str(&out.text), text);
    assert_int_equal(out.lost, 0);
    qsf_rendered_free(&out);
    rig_close(&r);
}

/* --- parts --- */

#define LOOP(role)                                                                                        \
    "{% for p in m['content'] %}{% if p['type'] == 'text' %}" role "{{ p['text'] }}{% elif p['type'] == " \
    "'image' %}<image>{% endif %}{% endfor %}"

static void test_parts(void **state) {
    static const QsfMsg msgs[] = { MSG("system", "Be kind."), MSG("user", "Hi"), MSG("assistant", "Yo."),
                                   MSG("user", "Bye") };
    static const struct {
        const char *template, *text;
    } rows[] = {
        { "{% for m in messages %}<{{ m.role }}>" LOOP("") "{% endfor %}",
          "<system>Be kind.<user>Hi<assistant>Yo.<user>Bye" },
        { "{% for m in messages %}<{{ m.role }}>{{ m.content[0].text }}{% endfor %}",
          "<system>Be kind.<user>Hi<assistant>Yo.<user>Bye" },
        /* fails with strings */
        { "{% for m in messages %}{{ '<' + m.content[0]['text'] + '>' }}{% endfor %}",
          "<Be kind.><Hi><Yo.><Bye>" },
        { "{% for m in messages %}{% if m.content is string %}{{ raise_exception('no') }}{% endif %}" LOOP(
              "/") "{% "
                   "endfor %}",
          "/Be kind./Hi/Yo./Bye" },
        /* only some roles have parts */
        { "{% for m in messages %}{% if m.role == 'user' %}" LOOP(
              "u:") "{% else %}{{ '|' + m.content + '|' }}{% "
                    "endif %}{% endfor %}",
          "|Be kind.|u:Hi|Yo.|u:Bye" },
        { "{% for m in messages %}{% if m.role == 'assistant' %}" LOOP(
              "a:") "{% else %}{{ '|' + m.content + '|' "
                    "}}{% endif %}{% endfor %}",
          "|Be kind.||Hi|a:Yo.|Bye|" },
        { "{% for m in messages %}{% if m.role == 'system' %}" LOOP(
              "s:") "{% else %}{{ '|' + m.content + '|' }}{% "
                    "endif %}{% endfor %}",
          "s:Be kind.|Hi||Yo.||Bye|" },
        /* strings where a template takes both */
        { "{% for m in messages %}{% if m.content is string %}({{ m.content }}){% else %}" LOOP(
              "") "{% endif %}{% "
                  "endfor %}",
          "(Be kind.)(Hi)(Yo.)(Bye)" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(rows[i].template, msgs, 4, QSF_REASON_AUTO, rows[i].text);
    expect("{% for m in messages %}{{ m.content|upper }} {% endfor %}", msgs + 1, 3, QSF_REASON_AUTO,
           "HI YO. BYE ");
}

#define ASSISTANT                                                                                   \
    "{% for m in messages %}{% if m.role == 'assistant' and m.content is not string %}{% for b in " \
    "m.content %}"                                                                                  \
    "{% if b.type == 'text' %}{{ b.text }}{% elif b['type'] == 'thinking' %}"
#define OTHERS "{% endif %}{% endfor %}{% else %}({{ m.content }}){% endif %}{% endfor %}"

/* Earlier reasoning as a part of its own. */
static void test_thinking_part(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi"),
                                   { .role = "assistant",
                                     .content = "Yo.",
                                     .len = 3,
                                     .reasoning = "<think>\nhm\n</think>\n",
                                     .reasoning_len = 20 },
                                   MSG("user", "Bye") };
    static const QsfMsg plain[] = { MSG("user", "Hi"), MSG("assistant", "Yo."), MSG("user", "Bye") };
    const QsfMsg only[] = { msgs[0],
                            { .role = "assistant", .content = "", .reasoning = "hm", .reasoning_len = 2 },
                            msgs[2] };
    (void)state;
    expect(ASSISTANT "[THINK]{{ b.thinking }}[/THINK]" OTHERS, msgs, 3, QSF_REASON_AUTO,
           "(Hi)[THINK]hm[/THINK]Yo.(Bye)");
    expect(ASSISTANT "[THINK]{{ b.thinking }}[/THINK]" OTHERS, plain, 3, QSF_REASON_AUTO, "(Hi)(Yo.)(Bye)");
    expect(ASSISTANT "[THINK]{{ b.thinking }}[/THINK]" OTHERS, only, 3, QSF_REASON_AUTO,
           "(Hi)[THINK]hm[/THINK](Bye)");
    expect(ASSISTANT "[{% for p in b.thinking %}{{ p.text }}{% endfor %}]" OTHERS, msgs, 3, QSF_REASON_AUTO,
           "(Hi)[hm]Yo.(Bye)");
    expect(ASSISTANT OTHERS, msgs, 3, QSF_REASON_AUTO, "(Hi)(Yo.)(Bye)"); /* left out by the template */
    /* the answer would be lost */
    expect("{% for m in messages %}({{ m.content if m.content is string else m.content[0]['thinking'] }}){% "
           "endfor %}",
           msgs, 3, QSF_REASON_AUTO, "(Hi)(Yo.)(Bye)");
}

/* --- messages that are left out --- */

static void test_lost(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "/no_think How old are you?"), MSG("assistant", "Not very."),
                                   MSG("user", "x") };
    const QsfMsg with_system[] = { MSG("system", "A hidden rule."), msgs[0], msgs[1], msgs[2] };
    static const struct {
        const char *template;
        size_t n, lost;
        const char *note;
    } rows[] = {
        { "{% for m in messages %}{{ m.content }}{% endfor %}", 3, 0, NULL },
        { "{% for m in messages %}{{ m.content|replace('/no_think', '')|upper }}{% endfor %}", 1, 0, NULL },
        { "hello there", 1, 1, "leaves out your message" },
        { "an x in the text", 3, 3, "leaves out your message" },
        { "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", 3, 2,
          "leaves out message 2 of 3 (assistant)" },
        { "{{ messages[-1].content }}", 3, 2, "message 2 of 3" },
        { "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}", 4, 0,
          NULL }, /* merged */
        { "{% for m in messages if m.role != 'system' %}{% if 'hidden' in m.content %}{{ "
          "raise_exception('no') }}{% "
          "endif %}{{ m.content }}{% endfor %}",
          4, 1, "leaves out message 1 of 4 (system)" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Rig r;
        QsfRendered out = { 0 };
        QsfErr e = { 0 };
        char note[200];
        rig_open(&r, rows[i].template);
        qsf_test_expect_ok(qsf_chat_render(r.t, rows[i].n == 4 ? with_system : msgs, rows[i].n,
                                           QSF_CHAT_GENERATE, &out, &e),
                           &e);
        if (out.lost != rows[i].lost) fail_msg("row %zu: %zu", i, out.lost);
        if (out.lost > 0) {
            qsf_chat_lost_note(r.t, rows[i].n == 4 ? with_system : msgs, rows[i].n, out.lost, note,
                               sizeof note);
            if (strstr(note, rows[i].note) == NULL) fail_msg("row %zu: %s", i, note);
        }
        qsf_rendered_free(&out);
        rig_close(&r);
    }
}

/* Filters that leave nothing of a text recognizable do not lose it, nor is a system message added twice. */
static void test_changed(void **state) {
    static const char *const texts[] = { "\xC3\xA9\xF0\x9F\x98\x80", "<b>&", "\\\"\n", "\xC3\xA9" };
    static const char *const filters[] = { "upper",           "escape",         "tojson",
                                           "trim|capitalize", "e|string|upper", "urlencode" };
    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        QsfStrbuf template = QSF_STRBUF_INIT;
        Rig r;
        qsf_strbuf_addf(&template, "{%% for m in messages %%}<{{ m.role }}>{{ m.content|%s }}{%% endfor %%}",
                        filters[i]);
        rig_open(&r, qsf_strbuf_str(&template));
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            const QsfMsg m = { .role = "user", .content = texts[k], .len = strlen(texts[k]) };
            QsfMsg all[3] = { m, m, m };
            QsfRendered out = { 0 };
            QsfErr e = { 0 };
            all[0].role = "system";
            qsf_test_expect_ok(qsf_chat_render(r.t, all, 3, QSF_CHAT_GENERATE, &out, &e), &e);
            if (out.lost != 0) fail_msg("%s, text %zu: message %zu", filters[i], k, out.lost);
            if (strncmp(qsf_strbuf_str(&out.text), "<system>", 8) != 0)
                fail_msg("%s, text %zu: merged", filters[i], k);
            qsf_rendered_free(&out);
        }
        rig_close(&r);
        qsf_strbuf_free(&template);
    }
}

/* --- switches --- */

static void test_switches(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi") };
    static const struct {
        const char *template;
        const char *text[QSF_REASON_N]; /* after the message; auto, on, off, low, medium, high */
        const char *off_note;           /* NULL: off does what it says */
    } rows[] = {
        { "{{ ' on' if enable_thinking is not defined or enable_thinking else ' off' }}",
          { " on", " on", " off", " on", " on", " on" },
          NULL },
        { "{% if thinking %} on{% endif %}", { "", " on", "", " on", " on", " on" }, NULL },
        { "{% set reasoning = reasoning if reasoning is not undefined else true %}{{ reasoning }}",
          { "True", "True", "False", "True", "True", "True" },
          NULL },
        { "{% if skip_thinking %} off{% endif %}", { "", "", " off", "", "", "" }, NULL },
        /* words */
        { "{% if thinking_mode is defined and thinking_mode == 'disabled' %} off{% endif %}",
          { "", "", " off", "", "", "" },
          NULL },
        { "{% if thinking_mode is defined and thinking_mode not in ['think', 'no_think'] %}{{ "
          "raise_exception('x') }}{% "
          "endif %}{{ thinking_mode|default('auto') }}",
          { "auto", "think", "no_think", "think", "think", "think" },
          NULL },
        { "{{ thinking_mode|default('chat') }}{{ '!' if thinking_mode == 'thinking' }}",
          { "chat", "thinking!", "chat", "thinking!", "thinking!", "thinking!" },
          NULL },
        { "{{ '+' if thinking == 'on' }}", { "", "+", "", "+", "+", "+" }, QSF_REASON_SAME },
        { "{{ ' off' if reasoning_mode == 'none' else ' deep' if reasoning_mode == 'deep' }}",
          { "", " deep", " off", " deep", " deep", " deep" },
          NULL },
        { "{{ ' off' if think_mode == 'instant' }}", { "", "", " off", "", "", "" }, NULL },
        { "{% set m = thinking_mode|default('direct') %}{% if m not in ['direct', 'full'] %}{{ "
          "raise_exception('x') }}{% endif %}{{ m }}",
          { "direct", "full", "direct", "full", "full", "full" },
          NULL },
        { "{{ ' off' if thinking == 'minimal' else ' on' if thinking == 'extended' }}",
          { "", " on", " off", " on", " on", " on" },
          NULL },
        { "{{ ' off' if reasoning_mode == 'whatever' else ' deep' if reasoning_mode == 'deep' }}",
          { "", " deep", "", " deep", " deep", " deep" },
          QSF_REASON_SAME },
        /* words that are something else */
        { "{{ enable_thinking }}{{ '' if messages[0].x in ['none', 'high'] }}",
          { "", "True", "False", "True", "True", "True" },
          NULL },
        { "{% if thinking %} on{% endif %}{{ '' if messages[0].x in ['none', 'no', 'high'] }}",
          { "", " on", "", " on", " on", " on" },
          NULL },
        /* budgets */
        { "{% if not thinking_budget is defined %}{% set thinking_budget = -1 %}{% endif %}{{ "
          "thinking_budget }}",
          { "-1", "-1", "0", "512", "2048", "8192" },
          NULL },
        { "{% if thinking_budget %} {{ thinking_budget }}{% endif %}",
          { "", " 2048", "", " 512", " 2048", " 8192" },
          NULL },
        { "{{ ' off' if enable_thinking is false }}{{ thinking_budget }}",
          { "", "", " off", "512", "2048", "8192" },
          NULL },
        /* efforts */
        { "{{ reasoning_effort|default('medium') }}",
          { "medium", "medium", "low", "low", "medium", "high" },
          QSF_REASON_LOWERS },
        { "{{ reasoning_strength|default('high') }}{{ '' if reasoning_strength == 'minimal' }}",
          { "high", "high", "minimal", "low", "medium", "high" },
          QSF_REASON_LOWERS },
        { "{% set e = reasoning_effort|default('none') %}{% if e not in ['none', 'high'] %}{{ "
          "raise_exception('x') }}{% "
          "endif %}{{ e }}",
          { "none", "high", "none", "high", "high", "high" },
          NULL },
        { "{% if thinking is undefined %}{% set thinking = true %}{% endif %}{% if thinking_effort is "
          "undefined %}{% "
          "set thinking_effort = 'max' %}{% endif %}{% if thinking and thinking_effort not in ['low', "
          "'high', 'max'] "
          "%}{{ raise_exception('x') }}{% endif %}{{ thinking_effort if thinking else 'off' }}",
          { "max", "max", "off", "low", "high", "high" },
          NULL },
        { "{% if thinking and reasoning_effort == 'high' %}!{% endif %}{{ thinking }}",
          { "", "True", "False", "True", "True", "!True" },
          NULL },
        /* only none */
        { "{% if reasoning_effort == 'none' %} off{% endif %}", { "", "", " off", "", "", "" }, NULL },
        { "{% if reasoning_effort | default('high') == 'off' %} off{% endif %}",
          { "", "", " off", "", "", "" },
          NULL },
        { "{% if thinking_effort == 'disabled' %} off{% endif %}", { "", "", " off", "", "", "" }, NULL },
        { "{% if reasoning_level == 'no_think' %} off{% endif %}", { "", "", " off", "", "", "" }, NULL },
        { "{% if reasoning_effort|default('high') == 'minimal' %} off{% endif %}",
          { "", "", " off", "", "", "" },
          QSF_REASON_LOWERS },
        /* no switches */
        { "{{ '' if messages else 'please skip the thinking process' }} enable_thinking",
          { " enable_thinking", " enable_thinking", " enable_thinking", " enable_thinking",
            " enable_thinking", " enable_thinking" },
          QSF_REASON_NO_SWITCH },
        { "{% set ns = namespace(enable_thinking=true) %}{% set ns.enable_thinking = false %}{% set "
          "thinking = 1 %}{{ "
          "ns.enable_thinking }}{{ thinking }}",
          { "False1", "False1", "False1", "False1", "False1", "False1" },
          QSF_REASON_NO_SWITCH },
        { "{% for thinking in [1] %}{{ thinking }}{% endfor %}{{ messages[0].thinking }}{{ {'thinking': "
          "2}.thinking }}",
          { "12", "12", "12", "12", "12", "12" },
          QSF_REASON_NO_SWITCH },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfStrbuf template = QSF_STRBUF_INIT, want = QSF_STRBUF_INIT;
        qsf_strbuf_addf(&template, "{%% for m in messages %%}{{ m.content }}{%% endfor %%}%s",
                        rows[i].template);
        for (int reason = 0; reason < QSF_REASON_N; reason++) {
            qsf_strbuf_clear(&want);
            qsf_strbuf_addf(&want, "Hi%s", rows[i].text[reason]);
            expect(qsf_strbuf_str(&template), msgs, 1, (QsfReason)reason, qsf_strbuf_str(&want));
        }
        Rig r;
        rig_open(&r, qsf_strbuf_str(&template));
        const char *note = qsf_chat_reasoning_note(r.t, QSF_REASON_OFF);
        if ((note == NULL) != (rows[i].off_note == NULL) ||
            (note != NULL && strcmp(note, rows[i].off_note) != 0))
            fail_msg("row %zu: %s", i, note != NULL ? note : "nothing");
        assert_null(qsf_chat_reasoning_note(r.t, QSF_REASON_AUTO));
        rig_close(&r);
        qsf_strbuf_free(&template);
        qsf_strbuf_free(&want);
    }
    assert_string_equal(qsf_chat_reasoning_note(NULL, QSF_REASON_ON), QSF_REASON_NO_SWITCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_thinking_part), cmocka_unit_test(test_lost),
        cmocka_unit_test(test_changed), cmocka_unit_test(test_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
