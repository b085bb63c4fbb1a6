/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The question at a full context, /forget and /compact, on the scripted engine, which counts a byte and one
 * more for each message as tokens. */
#include "tests/harness/app_rig.h"
#include "ui/ctx_full.h"
#include "ui/exchanges.h"
#include "ui/screen.h"

#define CTX 200

static int begin(void **state) {
    if (setup(state) != 0) return 1;
    Fixture *x = *state;
    x->engine.stats.ctx_size = CTX;
    x->engine.stats.ctx_train = 1000;
    x->engine.stats.prefill_tps = 10;
    x->engine.stats.decode_tps = 2;
    x->engine.stats.context.kind[QSF_LAYERS_FULL].token_bytes = 1 << 20;
    return 0;
}

static void full(Fixture *x, const char *question, const char *text) {
    say(x, question);
    fake_text(&x->engine, text);
    fake_done(&x->engine, QSF_STOP_CONTEXT, 3);
    ui_app_pump(&x->app);
}

/* Two exchanges of 52 tokens, and one that fills the context. */
static void fill(Fixture *x) {
    say(x, "question1");
    answer(x, "answer1, which has forty-one characters.!");
    say(x, "question2");
    answer(x, "answer2, which has forty-one characters.!");
    full(x, "question3", "a long answer of some more words");
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

static void has_not(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("'%s' in: %s", part, text);
}

static void test_costs(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_open(&x->app));
    const char *text = last_said(x, UI_NOTICE);
    has(text, "1 forget the oldest exchange: 52 tokens leave, 95 are evaluated again, about 9.5s");
    has(text,
        "2 compact the oldest 2 exchanges to a summary: up to 25 tokens are written, 68 evaluated again, "
        "about 19s");
    has(text,
        "3 enlarge the context to 400 tokens: 200.0 MB more for the KV cache, nothing is evaluated again");
    has(text, "4 stop");
    has(text, "5 policy sliding");
    has(text, "Press 3, 4 or 5, or 1 or 2 and Enter\n");
    assert_string_equal(x->app.ask_keys, "1 forget  2 compact  3 enlarge  4 stop  5 policy");
    assert_int_equal(x->app.exit_code, 0);
}

/* More tokens than the context has room for, however much is forgotten. */
static void test_too_long(void **state) {
    Fixture *x = *state;
    char text[CTX + 1];
    memset(text, 'a', CTX);
    text[CTX] = '\0';
    say(x, "question1");
    answer(x, "answer1, which has forty-one characters.!");
    full(x, "question2", text);
    has_not(last_said(x, UI_NOTICE), "1 forget");
    has_not(last_said(x, UI_NOTICE), "2 compact");
    has(last_said(x, UI_NOTICE), "Press 3, 4 or 5\n");
    assert_true(ui_ctx_full_key(&x->app, '1'));
    has(last_said(x, UI_NOTICE), "that is not possible: this exchange alone fills the context");
    assert_true(ui_ctx_full_key(&x->app, '3'));
    assert_int_equal(x->app.settings.ctx, 2 * CTX);
}

static void test_forget(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_false(ui_ctx_full_key(&x->app, '6'));
    assert_true(ui_ctx_full_key(&x->app, '1'));
    assert_string_equal(x->engine.roles, "uaua");
    assert_true(x->engine.go_on);
    assert_string_equal(x->engine.last_content, "a long answer of some more words");
    assert_false(ui_ctx_full_open(&x->app));
    answer(x, " and the end");
    assert_string_equal(last_text(x), "a long answer of some more words and the end");
    say(x, "/undo 5");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
}

static void test_compact(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '2'));
    assert_string_equal(x->engine.roles, "uauau");
    assert_false(x->engine.go_on);
    assert_true(ui_app_busy(&x->app));
    say(x, "/undo"); /* has to wait */
    fake_text(&x->engine, " Two numbers.");
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
    assert_true(x->app.compact.ready);
    assert_int_equal(x->engine.n_submits, 4);
    ui_compact_take(&x->app);
    assert_string_equal(x->engine.roles, "uaua"); /* the summary, and the answer that continues */
    assert_true(x->engine.go_on);
    answer(x, "!");
    assert_string_equal(last_text(x), "a long answer of some more words!");
    say(x, "/undo");
    assert_string_equal(last_text(x), "Two numbers.");
}

/* A summary has a limit, and one that reaches it ends after a sentence. */
static void test_long_summary(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '2'));
    assert_int_equal(x->engine.max_tokens, CTX / 8);
    for (int i = 0; i < 25; i++) fake_text(&x->engine, i == 9 ? "." : "b");
    fake_done(&x->engine, QSF_STOP_LENGTH, 25);
    ui_app_pump(&x->app);
    ui_compact_take(&x->app);
    answer(x, "!");
    say(x, "/undo");
    assert_string_equal(last_text(x), "bbbbbbbbb.");
}

/* It changes nothing until it is taken; it may be dropped, or edited in the input. */
static void test_shown_summary(void **state) {
    Fixture *x = *state;
    UiScreen screen;
    const UiKey n = { .bytes = "n", .n = 1 }, eof = { .bytes = "\x04", .n = 1 }, e = { .bytes = "e", .n = 1 },
                down = { .action = UI_DO_PAGE_DOWN };
    fill(x);
    ui_ctx_full_stop(&x->app);
    ui_screen_init(&screen, &x->app, true);
    for (int k = 0; k < 3; k++) {
        say(x, "/compact");
        say(x, "queued");
        fake_text(&x->engine, "\nTwo numbers.\n");
        fake_done(&x->engine, QSF_STOP_EOS, 3);
        ui_app_pump(&x->app);
        ui_screen_ask_summary(&screen);
        assert_true(screen.pager.open && x->app.compact.ready);
        assert_string_equal(ui_buf_str(&screen.pager.title), "Instead of the oldest 2 exchanges:");
        ui_screen_key(&screen, &down);
        assert_true(screen.pager.open);
        assert_int_equal(ui_exchanges(&x->app), 3);
        assert_int_equal(x->app.queue.n, 1);
        free(ui_queue_take(&x->app.queue, 0, &(size_t){ 0 }));
        assert_true(ui_screen_summary_key(&screen, k == 0 ? &n : k == 1 ? &eof : &e));
        assert_false(screen.pager.open || x->app.compact.ready || ui_app_busy(&x->app));
        assert_int_equal(ui_exchanges(&x->app), 3);
    }
    UiInputView in;
    ui_input_view(&in);
    assert_string_equal(in.text, "/compact Two numbers.");
    ui_input_set("", 0);
    say(x, "/compact My own\nwords");
    assert_string_equal(last_said(x, UI_NOTICE), "compacted the oldest 2 exchanges");
    assert_int_equal(ui_exchanges(&x->app), 2); /* with that of the summary */
    const UiItem *first = NULL;
    for (size_t i = 0; i < x->app.chat.n && (!first || first->kind != UI_ANSWER); i++)
        if (x->app.chat.items[i]->in_context) first = x->app.chat.items[i];
    assert_string_equal(ui_buf_str(&first->raw), "My own\nwords");
    say(x, "/undo 2");
    say(x, "/compact again");
    assert_string_equal(last_said(x, UI_ERROR), "/compact: fewer than two exchanges");
    ui_screen_free(&screen);
}

/* Lines and scripts are not asked: it is printed. */
static void test_printed_summary(void **state) {
    Fixture *x = *state;
    fill(x);
    x->app.full_screen = false;
    say(x, "/compact");
    fake_text(&x->engine, "Two numbers.");
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
    assert_false(x->app.compact.ready);
    assert_true(x->engine.go_on);
}

static void test_stopped_summary(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '2'));
    fake_text(&x->engine, "half");
    ui_app_pump(&x->app);
    assert_true(ui_app_stop(&x->app));
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(&x->app);
    assert_int_equal(ui_exchanges(&x->app), 3);
    assert_int_equal(x->engine.n_submits, 4);
}

static void test_enlarge(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '3'));
    assert_int_equal(x->engine.wanted.ctx, 400);
    assert_int_equal(x->engine.n_submits, 3); /* continues when the plan is in force */
    fake_plan(&x->engine, 0, "a larger plan");
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_submits, 4);
    assert_true(x->engine.go_on);
}

static void test_refused(void **state) {
    Fixture *x = *state;
    x->engine.check_code = 4;
    (void)snprintf(x->engine.check_text, sizeof x->engine.check_text, "the budget is too small; more");
    full(x, "question", "an answer");
    const char *text = last_said(x, UI_NOTICE);
    has(text, "Press 4\n4 stop");
    assert_string_equal(x->app.ask_keys, "4 stop");
    for (const char *key = "1235"; *key; key++) {
        assert_true(ui_ctx_full_key(&x->app, *key));
        has(last_said(x, UI_NOTICE), "that is not possible");
        assert_true(ui_ctx_full_open(&x->app));
    }
    assert_true(ui_ctx_full_key(&x->app, '3'));
    has(last_said(x, UI_NOTICE), "that is not possible: the budget is too small; 4 stop");
    (void)snprintf(x->engine.check_text, sizeof x->engine.check_text, "needs 80 tokens; more");
    assert_true(ui_ctx_full_key(&x->app, '5'));
    has(last_said(x, UI_NOTICE), "that is not possible: needs 80 tokens; 4 stop");
    assert_int_equal(x->engine.n_submits, 1);
    assert_true(ui_ctx_full_key(&x->app, '4'));
    assert_false(ui_ctx_full_open(&x->app));
}

/* The answer continues with a policy. */
static void test_policy(void **state) {
    Fixture *x = *state;
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '5'));
    assert_string_equal(x->engine.wanted.eviction, "sliding");
    assert_int_equal(x->engine.n_submits, 3);
    (void)snprintf(x->engine.stats.eviction, sizeof x->engine.stats.eviction, "sliding");
    fake_plan(&x->engine, 0, "a plan with a policy");
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_submits, 4);
    assert_true(x->engine.go_on);
}

/* Commands in the question: what is offered stays true, and with space again the question is over. */
static void test_commands_in_question(void **state) {
    Fixture *x = *state;
    x->engine.stats.ctx_size = 150;
    fill(x);
    x->engine.check_code = 4;
    (void)snprintf(x->engine.check_text, sizeof x->engine.check_text, "too small");
    fake_plan(&x->engine, 4, "refused");
    ui_app_pump(&x->app);
    assert_string_equal(x->app.ask_keys, "1 forget  2 compact  4 stop");
    x->engine.check_code = 0;
    say(x, "/forget 2");
    assert_false(ui_ctx_full_open(&x->app));
    has(last_said(x, UI_NOTICE), "there is space in the context: /continue continues the answer");
    say(x, "/continue");
    assert_true(x->engine.go_on);
}

static size_t questions(const Fixture *x) {
    size_t n = 0;
    for (size_t i = 0; i < x->app.chat.n; i++)
        n += strstr(ui_buf_str(&x->app.chat.items[i]->raw), "\n4 stop") != NULL;
    return n;
}

/* /continue asks again what to do, after the choice to stop and for an answer that was cut in a larger
 * context; only the newest question is on the screen, and none when it is over. */
static void test_asks_again(void **state) {
    Fixture *x = *state;
    fill(x);
    x->engine.stats.ctx_size = 140;
    ui_app_tick(&x->app, 1);
    assert_true(ui_ctx_full_key(&x->app, '4'));
    assert_int_equal(questions(x), 0);
    say(x, "/continue");
    assert_int_equal(x->engine.n_submits, 3);
    assert_true(ui_ctx_full_open(&x->app));
    say(x, "/continue");
    assert_int_equal(questions(x), 1);
    has(last_said(x, UI_NOTICE), "1 forget the oldest exchange");
    assert_true(ui_ctx_full_key(&x->app, '1'));
    assert_true(x->engine.go_on);
    assert_int_equal(questions(x), 0);
    fake_done(&x->engine, QSF_STOP_LENGTH, 1);
    ui_app_pump(&x->app);
    x->engine.stats.ctx_size = 50;
    ui_app_tick(&x->app, 1);
    say(x, "/continue");
    has(last_said(x, UI_NOTICE), "3 enlarge the context to 176 tokens"); /* 95 have to fit */
    x->engine.stats.ctx_size = 60;
    ui_app_tick(&x->app, 1);
    say(x, "/continue");
    has(last_said(x, UI_NOTICE), "3 enlarge the context to 112 tokens");
    assert_true(ui_ctx_full_open(&x->app));
    ui_ctx_full_stop(&x->app);
    x->app.interactive = false;
    say(x, "/continue");
    assert_false(ui_ctx_full_open(&x->app));
    assert_int_equal(x->engine.n_submits, 5);
}

/* A message that is not sent or gets no answer leaves the question as it is: what it says stays true. */
static void test_not_sent(void **state) {
    Fixture *x = *state;
    static char text[CTX + 1];
    memset(text, 'a', CTX);
    fill(x);
    assert_false(ui_app_submit(&x->app, text, CTX));
    assert_true(ui_ctx_full_open(&x->app));
    say(x, "hello");
    assert_false(ui_ctx_full_open(&x->app));
    fake_error(&x->engine, 1, "cannot read the file");
    ui_app_pump(&x->app);
    assert_true(ui_ctx_full_open(&x->app));
    assert_true(ui_ctx_full_key(&x->app, '2')); /* a summary that fails */
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_true(ui_ctx_full_open(&x->app));
    assert_int_equal(questions(x), 1);
    say(x, "hello");
    answer(x, "hi");
    assert_int_equal(questions(x), 0);
    say(x, "/undo");
    assert_false(ui_ctx_full_open(&x->app));
}

/* A queued message waits for the choice; another message is the choice to stop. */
static void test_messages(void **state) {
    Fixture *x = *state;
    say(x, "question");
    say(x, "queued");
    fake_text(&x->engine, "an answer");
    fake_done(&x->engine, QSF_STOP_CONTEXT, 3);
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_submits, 1);
    ui_ctx_full_stop(&x->app);
    assert_int_equal(x->engine.n_submits, 2);
    fake_text(&x->engine, "another");
    fake_done(&x->engine, QSF_STOP_CONTEXT, 3);
    ui_app_pump(&x->app);
    assert_true(ui_ctx_full_open(&x->app));
    say(x, "hello");
    assert_false(ui_ctx_full_open(&x->app));
    assert_string_equal(x->engine.last_content, "hello");
}

/* In a pipe nothing is asked. */
static void test_pipe(void **state) {
    Fixture *x = *state;
    x->app.interactive = x->app.full_screen = false;
    full(x, "question", "an answer");
    assert_false(ui_ctx_full_open(&x->app));
    assert_int_equal(x->app.exit_code, 5);
}

/* What was forgotten and compacted is the same after a restart. */
static void test_session(void **state) {
    Fixture *x = *state;
    QSFSettings s;
    UiApp again;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "shorter");
    fill(x);
    assert_true(ui_ctx_full_key(&x->app, '1'));
    answer(x, " and the end");
    say(x, "/compact");
    fake_text(&x->engine, "Summary.");
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
    ui_compact_take(&x->app);
    say(x, "question4");
    answer(x, "answer444");
    say(x, "/undo");
    ui_app_finish(&x->app);
    ui_settings_default(&s);
    ui_app_init(&again, x->app.engine, &s);
    again.session.on = again.full_screen = true;
    assert_true(ui_app_resume(&again, "shorter"));
    const UiTranscript *t[2] = { &x->app.chat, &again.chat };
    char text[2][400] = { "", "" };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < t[k]->n; i++)
            if (t[k]->items[i]->in_context)
                (void)snprintf(text[k] + strlen(text[k]), sizeof text[k] - strlen(text[k]), "%u %s|",
                               t[k]->items[i]->number, ui_buf_str(&t[k]->items[i]->raw));
    assert_string_equal(text[0], text[1]);
    has(text[0], "conversation so far in a few sentences.|0 Summary.|5 question3|");
    ui_app_free(&again);
}

static void test_commands(void **state) {
    Fixture *x = *state;
    say(x, "/forget");
    has(last_said(x, UI_ERROR), "nothing to forget");
    say(x, "/compact");
    has(last_said(x, UI_ERROR), "fewer than two exchanges");
    fill(x);
    say(x, "/forget 0");
    has(last_said(x, UI_ERROR), "expects a number of exchanges");
    say(x, "/forget 2");
    assert_int_equal(ui_exchanges(&x->app), 1);
    say(x, "/forget 9");
    assert_int_equal(ui_exchanges(&x->app), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)
    const struct CMUnitTest tests[] = {
        T(test_costs),
        T(test_too_long),
        T(test_forget),
        T(test_compact),
        T(test_long_summary),
        T(test_policy),
        T(test_commands_in_question),
        T(test_stopped_summary),
        T(test_shown_summary),
        T(test_printed_summary),
        T(test_enlarge),
        T(test_refused),
        T(test_messages),
        T(test_asks_again),
        T(test_not_sent),
        T(test_pipe),
        T(test_session),
        T(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
