/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning, stop strings and ends of turns through the engine, with models that emit a script. */
#include "tests/harness/qsf_test.h"

#include "src/engine/reasoning_limit.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

#define TURNS "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}"
#define OPEN  "{% if add_generation_prompt %}<|assistant|><think>{% endif %}"
#define PLAIN "{% if add_generation_prompt %}<|assistant|>{% endif %}"

static char path[256];

static QSFWorker *worker_with(const char *script, const char *template) {
    snprintf(path, sizeof path, "%s", qsf_test_tmp("script.gguf"));
    QsfTinySpec spec = { .chat_template = template };
    assert_int_equal(qsf_test_write_script_llama(path, script, &spec), 0);
    QSFSettings s = qsf_rig_settings();
    s.params.ignore_eos = false;
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    return w;
}

static void done(QSFWorker *w) {
    qsf_worker_stop(w);
    unlink(path);
}

/* Submits "go" and, if given, an answer to continue; max 0 = to the end. */
static QsfSeen *ask(QSFWorker *w, const QSFMessage *last, int32_t max, const char *const *stop,
                    size_t n_stop) {
    QSFMessage m[2] = { { .role = "user", .content = "go", .len = 2 } };
    QSFRequest r = { .messages = m, .n_messages = 1, .stop = stop, .n_stop = n_stop };
    if (last != NULL) {
        m[1] = *last;
        r.n_messages = 2;
        r.continue_last = true;
    }
    qsf_rig_set_max(w, max);
    QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
    return s;
}

static void expect(const QsfSeen *s, const char *reasoning, const char *answer, QSFStop stop) {
    assert_string_equal(s->reasoning, reasoning);
    assert_string_equal(s->text, answer);
    assert_int_equal(s->end.stop, stop);
}

static void a_separate_channel(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> _deep _thought </think> <0x0A> _Hello _world", TURNS PLAIN);
    QsfSeen *s = ask(w, NULL, 0, NULL, 0);
    expect(s, "<think> deep thought</think>\n ", "Hello world", QSF_STOP_EOS);
    assert_int_equal(s->end.tokens, 7);
    assert_int_equal(s->end.reasoning_tokens, 4);
    done(w);
    /* Tags that the detokenizer hides, and whose tokens the template does not mention. */
    w = worker_with("![THINK] _deep ![/THINK] Hello", TURNS PLAIN);
    expect(ask(w, NULL, 0, NULL, 0), "[THINK] deep[/THINK]", "Hello", QSF_STOP_EOS);
    done(w);
    /* Tags of several tokens, found only in the template; the prompt contains the opening one. */
    w = worker_with("<b> _deep </ thi nk> Hello </think",
                    "{# </think> #}" TURNS "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}");
    expect(ask(w, NULL, 0, NULL, 0), "<think>\n<b> deep</think>", "Hello</think", QSF_STOP_EOS);
    done(w);
    /* Without a template, text is continued unchanged. */
    w = worker_with("<think> deep </think> Hello", NULL);
    expect(ask(w, NULL, 0, NULL, 0), "", "<think>deep</think>Hello", QSF_STOP_EOS);
    done(w);
}

static void interrupted_reasoning(void **state) {
    (void)state;
    QSFWorker *w = worker_with("deep thought </think> Hello +<think>", TURNS OPEN);
    QsfSeen *s = ask(w, NULL, 1, NULL, 0);
    expect(s, "<think>deep", "", QSF_STOP_LENGTH);
    assert_int_equal(s->end.reasoning_tokens, 1);
    expect(ask(w, NULL, 0, NULL, 0), "<think>deepthought</think>", "Hello", QSF_STOP_EOS);
    done(w);
}

/* Stopped anywhere and continued, the parts add up to the whole. Its words are special tokens, which are
 * parsed from text again. */
static void continuing(void **state) {
    static const char *const templates[] = { TURNS PLAIN, TURNS OPEN, TURNS PLAIN "{# </think> #}" };
    static const char *const scripts[] = { "<think> <a> <b> </think> <c> <d>",
                                           "<a> <b> </think> <c> <d> +<think>",
                                           "<think> <a> <b> </thi nk> <c> <d>" /* a tag of two tokens */ };
    static const int32_t most[] = { 5, 5, 4 }; /* after ordinary text a script does not continue */
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        QSFWorker *w = worker_with(scripts[i], templates[i]);
        for (int32_t n = 1; n <= most[i]; n++) {
            QsfStrbuf reasoning = QSF_STRBUF_INIT, text = QSF_STRBUF_INIT;
            QsfSeen *s = ask(w, NULL, n, NULL, 0);
            qsf_strbuf_adds(&reasoning, s->reasoning);
            qsf_strbuf_adds(&text, s->text);
            QSFMessage last = { .role = "assistant", .content = qsf_strbuf_str(&text), .len = text.len };
            last.reasoning = qsf_strbuf_str(&reasoning);
            last.reasoning_len = reasoning.len;
            s = ask(w, &last, 0, NULL, 0);
            qsf_strbuf_adds(&reasoning, s->reasoning);
            qsf_strbuf_adds(&text, s->text);
            assert_string_equal(qsf_strbuf_str(&reasoning), "<think><a><b></think>");
            assert_string_equal(qsf_strbuf_str(&text), "<c><d>");
            assert_int_equal(s->end.stop, QSF_STOP_EOS);
            qsf_strbuf_free(&reasoning);
            qsf_strbuf_free(&text);
        }
        done(w);
    }
}

static void stop_strings_end_answers_not_reasoning(void **state) {
    static const char *const stop[] = { "END", "\xF0\x9F\x98\x80", "ENDING" };
    (void)state;
    QSFWorker *w = worker_with("<think> END </think> one _E ND two", TURNS PLAIN);
    QsfSeen *s = ask(w, NULL, 0, stop, 3);
    expect(s, "<think>END</think>", "one ", QSF_STOP_STRING);
    assert_int_equal(s->end.tokens, 6);
    done(w);
    /* A character over four tokens; the one before it shares three bytes with it. */
    w = worker_with("a <0xF0> <0x9F> <0x98> <0x81> b", TURNS PLAIN);
    expect(ask(w, NULL, 0, stop, 3), "",
           "a\xF0\x9F\x98\x81"
           "b",
           QSF_STOP_EOS);
    done(w);
    w = worker_with("a <0xF0> <0x9F> <0x98> <0x80> b", TURNS PLAIN);
    s = ask(w, NULL, 0, stop, 3);
    expect(s, "", "a", QSF_STOP_STRING);
    assert_int_equal(s->end.tokens, 5);
    done(w);
}

/* No metadata names <end>. ignore_eos continues past it too. */
static void turns_end_as_the_template_ends_them(void **state) {
    QSFParams p;
    (void)state;
    QSFWorker *w = worker_with("Hello <end> more", TURNS PLAIN);
    expect(ask(w, NULL, 0, NULL, 0), "", "Hello", QSF_STOP_EOS);
    qsf_worker_get_params(w, &p);
    p.ignore_eos = true;
    qsf_worker_set_params(w, &p);
    QsfSeen *s = ask(w, NULL, 3, NULL, 0);
    assert_int_equal(s->end.stop, QSF_STOP_LENGTH);
    assert_null(strstr(s->text, "<end>"));
    /* With another template the token is an ordinary one, and no reasoning tags are known. */
    QSFSettings raw;
    qsf_worker_settings(w, &raw);
    snprintf(raw.chat_template, sizeof raw.chat_template, "raw");
    raw.params.ignore_eos = false;
    qsf_rig_load(w, path, &raw);
    p.ignore_eos = false;
    qsf_worker_set_params(w, &p);
    expect(ask(w, NULL, 0, NULL, 0), "", "Hello<end>more", QSF_STOP_EOS);
    done(w);
}

#define HEADS(role, end)                                                                                    \
    "!<|channel|> analysis !<|message|> deep !<|end|> !<|start|> " role " !<|channel|> final !<|message|> " \
    "Hello " end " more +!<|return|> +!<|call|>"
#define MESSAGES                                                                              \
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor " \
    "%}<|start|>assistant"

/* <|end|> ends a message, <|return|> the turn, and so does a message of another role. */
static void messages_with_channels(void **state) {
    static const char head[] = "<|channel|>analysis<|message|>";
    char reasoning[64];
    (void)state;
    snprintf(reasoning, sizeof reasoning, "%sdeep\n\n", head);
    QSFWorker *w = worker_with(HEADS("assistant", "!<|return|>"), MESSAGES);
    QsfSeen *s = ask(w, NULL, 0, NULL, 0);
    expect(s, reasoning, "Hello", QSF_STOP_EOS);
    assert_int_equal(s->end.tokens, 11);
    assert_null(qsf_worker_describe(w, "answer"));
    done(w);
    w = worker_with(HEADS("user", "!<|return|>"), MESSAGES);
    snprintf(reasoning, sizeof reasoning, "%sdeep", head);
    expect(ask(w, NULL, 0, NULL, 0), reasoning, "", QSF_STOP_EOS);
    done(w);
    w = worker_with(HEADS("assistant", "!<|call|>"), NULL); /* no template */
    snprintf(reasoning, sizeof reasoning, "%sdeep\n\n", head);
    expect(ask(w, NULL, 0, NULL, 0), reasoning, "Hello", QSF_STOP_EOS);
    done(w);
}

/* Tokens that are not shown are in the prompt that continues the answer, so that none is generated twice. */
static void hidden_tokens(void **state) {
    (void)state;
    QSFWorker *w = worker_with("!<|x|> <a> !<|y|> !<|z|> <b> !<|x2|>", TURNS PLAIN);
    for (int32_t n = 1; n <= 6; n++) {
        QsfSeen *s = ask(w, NULL, n, NULL, 0);
        QsfStrbuf text = QSF_STRBUF_INIT;
        qsf_strbuf_adds(&text, s->text);
        char *exact = qsf_worker_describe(w, "answer");
        assert_non_null(exact);
        QSFMessage last = { .role = "assistant", .content = qsf_strbuf_str(&text), .len = text.len };
        last.exact = exact;
        last.exact_len = strlen(exact);
        s = ask(w, &last, 0, NULL, 0);
        qsf_strbuf_adds(&text, s->text);
        assert_string_equal(qsf_strbuf_str(&text), "<a><b>");
        assert_int_equal(s->end.tokens, 6 - n);
        qsf_strbuf_free(&text);
        free(exact);
    }
    done(w);
}

static void set_limit(QSFWorker *w, int32_t most, const char *message) {
    QSFParams p;
    qsf_worker_get_params(w, &p);
    p.reasoning_limit = most + 1;
    snprintf(p.reasoning_message, sizeof p.reasoning_message, "%s", message);
    qsf_worker_set_params(w, &p);
}

/* From the limit on the closing token is taken when it is one of the likeliest; the script continues after
 * it. */
static void a_soft_limit(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> <a> <b> <c> </think> <d> <e>", TURNS PLAIN);
    set_limit(w, 2, "enough");
    QsfSeen *s = ask(w, NULL, 0, NULL, 0);
    expect(s, "<think><a></think>", "<d><e>", QSF_STOP_EOS);
    assert_true(s->end.reasoning_cut);
    assert_int_equal(s->end.reasoning_tokens, 3);
    assert_int_equal(s->end.hidden_tokens, 0);
    assert_string_equal(s->notice, "thinking was cut after 2 tokens");
    set_limit(w, -1, "");
    s = ask(w, NULL, 0, NULL, 0);
    expect(s, "<think><a><b><c></think>", "<d><e>", QSF_STOP_EOS);
    assert_false(s->end.reasoning_cut);
    set_limit(w, 4, ""); /* not reached before the end */
    assert_false(ask(w, NULL, 0, NULL, 0)->end.reasoning_cut);
    done(w);
    w = worker_with("<a> <b> </think> <c> <d> +<think>", TURNS OPEN);
    set_limit(w, 0, "enough"); /* at once, and without the sentence */
    expect(ask(w, NULL, 0, NULL, 0), "<think></think>", "<c><d>", QSF_STOP_EOS);
    done(w);
    /* Messages: the model itself begins the next one. */
    w = worker_with("!<|channel|> analysis !<|message|> <a> <b> "
                    "!<|end|> !<|start|> assistant !<|channel|> final !<|message|> <c>",
                    MESSAGES);
    set_limit(w, 2, "enough");
    expect(ask(w, NULL, 0, NULL, 0), "<|channel|>analysis<|message|><a>\n\n", "<c>", QSF_STOP_EOS);
    done(w);
}

/* A model that thinks again after it was told to answer. */
static void thoughts_after_the_limit(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> <a> </think> <b> <think>", TURNS PLAIN);
    set_limit(w, 1, "");
    QsfSeen *s = ask(w, NULL, 8, NULL, 0);
    expect(s, "<think></think>", "<b><b>", QSF_STOP_LENGTH);
    assert_int_equal(s->end.reasoning_tokens, 6);
    assert_int_equal(s->end.hidden_tokens, 4);
    done(w);
}

/* Asked to answer while it thinks: a sentence and the closing token, whatever is likely. */
static void answer_now(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> <a> <b> </think> <c>", TURNS PLAIN);
    set_limit(w, -1, "enough");
    const QSFMessage m = { .role = "user", .content = "go", .len = 2 };
    const QSFRequest r = { .messages = &m, .n_messages = 1 };
    const uint64_t id = qsf_worker_submit(w, &r);
    qsf_worker_answer_now(w); /* the answer has not begun */
    QsfSeen *s = qsf_rig_finish(w, id);
    expect(s, "<think>\n\nenough\n</think>", "<c>", QSF_STOP_EOS);
    assert_true(s->end.reasoning_cut);
    expect(ask(w, NULL, 0, NULL, 0), "<think><a><b></think>", "<c>", QSF_STOP_EOS); /* of one answer only */
    done(w);
}

/* Logits that never make the closing token likely. */
static void a_hard_limit(void **state) {
    (void)state;
    QsfReasoningLimit l = { .ids = { 7, 8, 0, 5 }, .close = 2, .after = 3, .n = 4 };
    const float logits[10] = { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    QSFParams p = { .reasoning_limit = 101 };
    for (uint32_t tokens = 0; tokens < 100 + QSF_REASONING_GRACE; tokens++)
        assert_int_equal(qsf_reasoning_limit_next(&l, &p, logits, 10, 9, tokens, true, false), -1);
    assert_false(l.cut);
    const uint32_t most = 100 + QSF_REASONING_GRACE;
    static const int32_t want[] = { 7, 8, 0, 5, -1 };
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(qsf_reasoning_limit_next(&l, &p, logits, 10, 9, most + (uint32_t)i, i < 3, false),
                         want[i]);
    assert_true(l.cut);
    /* Opened again it is closed without the sentence. */
    assert_int_equal(qsf_reasoning_limit_next(&l, &p, logits, 10, 9, most + 4, true, false), 0);
    /* Four tokens that are likelier leave it one of the likeliest; a limit that is raised applies at once. */
    QsfReasoningLimit soft = { .ids = { 5 }, .close = 0, .after = 1, .n = 1 };
    const float near[6] = { 2, 2, 2, 2, 0, 1 }, far[7] = { 2, 2, 2, 2, 2, 1, 2 };
    assert_int_equal(qsf_reasoning_limit_next(&soft, &p, far, 7, 9, 100, true, false), -1);
    p.reasoning_limit = 200;
    assert_int_equal(qsf_reasoning_limit_next(&soft, &p, near, 6, 9, 100, true, false), -1);
    p.reasoning_limit = 101;
    assert_int_equal(qsf_reasoning_limit_next(&soft, &p, near, 6, 9, 100, true, false), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_separate_channel),
        cmocka_unit_test(interrupted_reasoning),
        cmocka_unit_test(continuing),
        cmocka_unit_test(stop_strings_end_answers_not_reasoning),
        cmocka_unit_test(turns_end_as_the_template_ends_them),
        cmocka_unit_test(messages_with_channels),
        cmocka_unit_test(hidden_tokens),
        cmocka_unit_test(a_soft_limit),
        cmocka_unit_test(thoughts_after_the_limit),
        cmocka_unit_test(answer_now),
        cmocka_unit_test(a_hard_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
