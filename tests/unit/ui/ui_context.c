/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Context usage after /clear, /undo and a resumed session; messages that are too long for it; and settings
 * that are refused before any change is reported. The scripted engine counts a byte as a token. */
#include "tests/harness/app_rig.h"

#define CTX 200

static int begin(void **state) {
    if (setup(state) != 0) return 1;
    Fixture *x = *state;
    x->engine.stats.ctx_size = CTX;
    x->engine.stats.ctx_train = 1000;
    return 0;
}

static void talk(Fixture *x) {
    x->engine.stats.ctx_used = 8;
    say(x, "one");
    answer(x, "two"); /* two messages of three bytes */
}

static uint32_t used(Fixture *x) {
    ui_app_tick(&x->app, 1);
    return x->app.stats.ctx_used;
}

static size_t n_said(const Fixture *x, UiKind kind) {
    size_t n = 0;
    for (size_t i = 0; i < x->app.chat.n; i++) n += x->app.chat.items[i]->kind == kind;
    return n;
}

static void test_clear(void **state) {
    Fixture *x = *state;
    talk(x);
    assert_int_equal(used(x), 8);
    x->engine.stats.ctx_used = 100; /* the KV cache keeps its contents */
    assert_int_equal(used(x), 100);
    say(x, "/clear");
    assert_int_equal(used(x), 0);
    say(x, "/system be brief");
    assert_int_equal(used(x), 9);
    talk(x);
    assert_int_equal(used(x), 8); /* the engine's own number again */
}

static void test_undo(void **state) {
    Fixture *x = *state;
    talk(x);
    talk(x);
    x->engine.stats.ctx_used = 100;
    say(x, "/undo");
    assert_int_equal(used(x), 8);
}

static void test_resume(void **state) {
    Fixture *x = *state;
    QSFSettings s;
    UiApp again;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "full");
    talk(x);
    ui_app_finish(&x->app);
    ui_settings_default(&s);
    ui_app_init(&again, x->app.engine, &s);
    again.session.on = again.full_screen = true;
    x->engine.stats.ctx_used = 0;
    assert_true(ui_app_resume(&again, "full"));
    fake_loaded(&x->engine);
    ui_app_pump(&again);
    ui_app_tick(&again, 1);
    assert_int_equal(again.stats.ctx_used, 8);
    ui_app_free(&again);
}

/* The engine's cache differs from the conversation after a failed or withdrawn turn; each
 * answer brings its own number. */
static void test_failed_turns(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "more");
    x->engine.stats.ctx_used = 60; /* of the prompt that was being read */
    assert_int_equal(used(x), 60);
    fake_error(&x->engine, 1, "cannot read the file");
    ui_app_pump(&x->app);
    assert_int_equal(used(x), 8); /* the question left the context */
    say(x, "/retry");
    assert_int_equal(used(x), 60); /* the engine's again */
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_int_equal(used(x), 8);
    say(x, "/retry");
    fake_text(&x->engine, "half");
    fake_error(&x->engine, 1, "cannot read the file");
    ui_app_pump(&x->app);
    assert_int_equal(used(x), 8 + 5 + 5); /* what was delivered stays */
    say(x, "/undo");
    assert_int_equal(used(x), 8);
}

static void test_retry(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/undo");
    assert_int_equal(used(x), 0);
    talk(x);
    say(x, "/retry");
    x->engine.stats.ctx_used = 4;
    assert_int_equal(used(x), 4); /* of the prompt */
    x->engine.stats.ctx_used = 9;
    answer(x, "four");
    assert_int_equal(used(x), 9);
}

/* The keys say what changes, and only that; a plan gets the tokens of the conversation. */
static void test_budget_keys(void **state) {
    Fixture *x = *state;
    static const uint64_t mb = 1 << 20;
    const struct {
        QSFBudgetStep step;
        const char *text;
    } rows[] = {
        { { 149 * mb, 0, 0, 0, 896, 1264, 0 },
          "RAM budget 200 -> 149 MB: all weights stay in RAM, context of 896 instead of 1264" },
        { { 149 * mb, 0, 0, 0, 64, 64, 0 }, "RAM budget 200 -> 149 MB: all weights stay in RAM" },
        { { 300 * mb, 0, 9 * mb, 0, 64, 64, 0 }, "RAM budget 200 -> 300 MB: all weights are in RAM" },
        { { 149 * mb, mb / 4, 0, 0, 64, 64, 0 }, "RAM budget 200 -> 149 MB: 0.2 MB per token from disk" },
        { { 149 * mb, 1, 0, 0, 64, 64, 0 }, "RAM budget 200 -> 149 MB: 0.1 MB per token from disk" },
        { { 149 * mb, 20 * mb, 20 * mb, 0, 64, 64, 0 },
          "RAM budget 200 -> 149 MB: still 20 MB per token from disk" },
        { { 149 * mb, 37 * mb, 9 * mb, 0, 64, 64, 0 },
          "RAM budget 200 -> 149 MB: 37 instead of 9.0 MB per token from disk" },
        { { 0, 0, 0, 0, 64, 64, QSF_BUDGET_LEAST }, "RAM budget 200 MB: no smaller one works" },
        { { 0, 0, 0, 0, 64, 64, QSF_BUDGET_KEEP },
          "RAM budget 200 MB: a smaller one has no room for the conversation and an answer" },
        { { 0, 0, 0, 0, 64, 64, QSF_BUDGET_ALL },
          "RAM budget 200 MB: all weights are in RAM, with the whole context of 64" },
        { { 0, 0, 5, 190 * mb, 64, 64, QSF_BUDGET_FREE },
          "RAM budget 200 MB: more would not help, as only 190 MB are available with it" },
    };
    char said[200];
    talk(x);
    talk(x);
    say(x, "/undo"); /* the cache has more than the conversation */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        x->engine.stats.budget = 200 * mb;
        x->engine.step[0] = rows[i].step;
        x->app.replanning = false;
        ui_app_budget_key(&x->app, false, said, sizeof said);
        assert_string_equal(said, rows[i].text);
    }
    assert_int_equal(x->app.settings.ctx_tokens, used(x));
    assert_true(used(x) > 0);
}

/* Another conversation, and one that continues in a new program before its model is loaded. */
static void test_other_session(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "first");
    talk(x);
    say(x, "/new second");
    assert_int_equal(used(x), 0);
    talk(x);
    talk(x);
    say(x, "/load first");
    assert_int_equal(used(x), 8);
}

/* A pipe does not count at every change; what it prints is true all the same. */
static void test_pipe(void **state) {
    Fixture *x = *state;
    x->app.full_screen = x->app.interactive = false;
    talk(x);
    say(x, "/clear");
    assert_int_equal(x->engine.n_counts, 0);
    x->app.full_screen = true; /* to see what is printed */
    say(x, "/stats");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "context  0 of 200 tokens"));
    say(x, "/context");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "conversation       0 of 200 tokens"));
}

static void test_context_command(void **state) {
    Fixture *x = *state;
    QSFContextInfo *c = &x->engine.stats.context;
    c->kept = 120;
    c->evicted = 30;
    c->n_protected = 12;
    c->kind[QSF_LAYERS_FULL] = (QSFLayerKindInfo){ 6, 200, 2048, 409600 };
    c->kind[QSF_LAYERS_RECURRENT] = (QSFLayerKindInfo){ 1, 0, 0, 2u << 20 };
    talk(x);
    say(x, "/context");
    const char *text = last_said(x, UI_OUTPUT);
    assert_non_null(strstr(text, "conversation       8 of 200 tokens\n"));
    assert_non_null(strstr(text, "positions        120 kept, 30 evicted, 12 protected\n"));
    assert_non_null(strstr(text, "full attention     6 layers  2.00 KB per token, 0.4 MB for 200\n"));
    assert_non_null(strstr(text, "recurrent          1 layer   2.0 MB, any length\n"));
    assert_null(strstr(text, "window"));
    say(x, "/context 400");
    assert_int_equal(x->app.settings.ctx, 400);
    assert_int_equal(x->engine.n_replans, 1);
}

/* The context changes in place: no load, and the number is the conversation's, whatever the cache lost. */
static void test_ctx_in_place(void **state) {
    Fixture *x = *state;
    talk(x);
    talk(x);
    say(x, "/ctx 10");
    assert_int_equal(x->engine.n_loads, 1);
    assert_int_equal(x->engine.wanted.ctx, 10);
    x->engine.stats.ctx_size = 10;
    x->engine.stats.ctx_used = 3;
    fake_plan(&x->engine, 0, "done");
    ui_app_pump(&x->app);
    assert_int_equal(used(x), 16);
    assert_int_equal(x->app.stats.ctx_size, 10);
}

/* Detected while it is typed, with few counts; not sent with Enter, and the text stays in the input line. */
static void test_too_long(void **state) {
    Fixture *x = *state;
    static char text[1000];
    memset(text, 'a', sizeof text);
    talk(x);
    ui_app_tick(&x->app, 1);
    assert_int_equal(ui_app_too_long(&x->app, text, 100, 0), 0);
    assert_int_equal(x->engine.n_counts, 0); /* a token has at least one byte */
    for (size_t n = 200; n < 400; n++) assert_true(ui_app_too_long(&x->app, text, n, 0) > 0);
    assert_true(x->engine.n_counts < 30);
    assert_in_range(ui_app_too_long(&x->app, text, 900, 0), 700, 720);
    int submits = x->engine.n_submits;
    assert_false(ui_app_submit(&x->app, text, 300));
    assert_int_equal(x->engine.n_submits, submits);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    assert_true(ui_app_submit(&x->app, text, 150));
}

static void test_advice(void **state) {
    Fixture *x = *state;
    char text[80];
    ui_app_tick(&x->app, 1);
    ui_app_context_advice(&x->app, 300, true, text, sizeof text);
    assert_string_equal(text,
                        "/ctx 1000, /kv policy sliding"); /* not longer than the model was trained for */
    talk(x);
    x->engine.stats.ctx_train = 100000;
    ui_app_tick(&x->app, 1);
    ui_app_context_advice(&x->app, 3000, true, text,
                          sizeof text); /* a message that is longer than the context */
    assert_string_equal(text, "/ctx 4096, /kv policy sliding");
    ui_app_context_advice(&x->app, 200000, true, text, sizeof text);
    assert_string_equal(text, "/kv policy sliding");
    /* it fits without what was said before, but only just */
    ui_app_context_advice(&x->app, 205, true, text, sizeof text);
    assert_string_equal(text, "/forget 1: fits, /ctx 512, /kv policy sliding");
    ui_app_context_advice(&x->app, 205, true, text, 30); /* parts are not cut */
    assert_string_equal(text, "/forget 1: fits, /ctx 512");
    (void)snprintf(x->engine.stats.eviction, sizeof x->engine.stats.eviction, "h2o");
    ui_app_tick(&x->app, 2);
    assert_false(ui_app_context_advice(&x->app, 200000, true, text, sizeof text));
    assert_string_equal(text, "shorten the message");
    assert_false(ui_app_context_advice(&x->app, 200000, false, text, sizeof text));
    assert_string_equal(text, "/clear");
}

/* Without a message the last exchange stays: it continues, or it is the conversation that was
 * opened again. */
static void test_last_exchange_stays(void **state) {
    Fixture *x = *state;
    static char text[CTX + 1];
    char advice[80];
    memset(text, 'a', CTX);
    say(x, "one");
    fake_text(&x->engine, text);
    fake_done(&x->engine, QSF_STOP_LENGTH, 3);
    ui_app_pump(&x->app);
    x->engine.stats.ctx_used = CTX;
    ui_app_tick(&x->app, 1);
    assert_true(ui_app_context_advice(&x->app, CTX + 5, false, advice, sizeof advice));
    assert_string_equal(advice, "/ctx 512, /kv policy sliding");
    ui_app_context_advice(&x->app, CTX + 5, true, advice, sizeof advice);
    assert_string_equal(advice, "/forget 1: fits, /ctx 512, /kv policy sliding");
    x->engine.check_code = 4; /* neither a context nor a policy */
    x->engine.stats.budget++;
    x->app.interactive = x->app.full_screen = false;
    say(x, "/continue");
    fake_error(&x->engine, 5, "shorten it or set a larger --ctx");
    x->app.full_screen = true;
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_ERROR),
                        "the conversation has 204 tokens, more than the context of 200: /clear");
}

/* In a pipe: the advice keeps the answer that continues. */
static void test_full_pipe(void **state) {
    Fixture *x = *state;
    static char text[CTX + 1];
    memset(text, 'a', CTX);
    talk(x);
    say(x, "two");
    fake_text(&x->engine, text + 50);
    fake_done(&x->engine, QSF_STOP_CONTEXT, 3);
    x->app.interactive = false;
    x->engine.stats.ctx_used = CTX;
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_NOTICE),
                        "the context is full: /forget 1: fits, /ctx 512, /kv policy sliding; then /continue");
    say(x, "/undo");
    say(x, text + 10); /* fills the context: there is no answer */
    fake_done(&x->engine, QSF_STOP_CONTEXT, 0);
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_NOTICE),
                        "the context is full: /forget 1: fits, /ctx 512, /kv policy sliding; then /retry");
}

static const char *hint(Fixture *x) {
    static char text[80];
    ui_app_tick(&x->app, 1);
    const int64_t more = ui_app_too_long(&x->app, "", 0, 0);
    if (more == 0) return "";
    ui_app_context_advice(&x->app, CTX + more, false, text, sizeof text);
    return text;
}

/* A conversation that became longer than the context, as after a resume: what is offered fits, is possible,
 * and is true after each step. */
static void test_long_conversation(void **state) {
    Fixture *x = *state;
    x->engine.stats.ctx_size = 100000;
    for (int i = 0; i < 25; i++) {
        say(x, "a question");
        answer(x, "some answer");
    }
    x->engine.stats.ctx_used = 575;
    assert_string_equal(hint(x), "");
    say(x, "/ctx 200");
    x->engine.stats.ctx_size = CTX; /* 23 tokens each: 8 of them fit, 7 with space for an answer */
    x->engine.stats.ctx_used = 3;
    fake_plan(&x->engine, 0, "done");
    ui_app_pump(&x->app);
    assert_string_equal(hint(x), "/forget 18: fits, /ctx 1000, /kv policy sliding");
    const int counts = x->engine.n_counts;
    for (int i = 0; i < 10; i++) (void)hint(x);
    assert_int_equal(x->engine.n_counts, counts);
    say(x, "/forget 10");
    assert_string_equal(hint(x), "/forget 8: fits, /ctx 1000, /kv policy sliding");
    x->engine.stats.ctx_train = 100000;
    x->engine.check_code = 4; /* neither a context nor a policy is possible */
    x->engine.stats.budget++;
    assert_string_equal(hint(x), "/forget 8: fits");
    x->engine.check_code = 0;
    x->engine.stats.budget++;
    assert_string_equal(hint(x), "/forget 8: fits, /ctx 1024, /kv policy sliding");
    say(x, "/forget 8");
    assert_string_equal(hint(x), "");
    say(x, "and another");
    assert_true(ui_app_busy(&x->app));
}

/* The engine refused a prompt: the chat adds advice that applies here. */
static void test_refused(void **state) {
    Fixture *x = *state;
    talk(x);
    static char text[301];
    memset(text, 'a', 300);
    x->app.full_screen = false;
    say(x, text);
    fake_error(&x->engine, 5, "the prompt has 309 tokens: give a larger --ctx");
    x->app.full_screen = true;
    ui_app_pump(&x->app);
    assert_string_equal(
        last_said(x, UI_ERROR),
        "the prompt has 309 tokens, more than the context of 200: /ctx 1000, /kv policy sliding");
}

/* One line, nothing changed, nothing reverted; also while an answer is generated. */
static void test_setting_refused(void **state) {
    Fixture *x = *state;
    x->engine.check_code = 4;
    (void)snprintf(x->engine.check_text, sizeof x->engine.check_text,
                   "1 MB is too little; raise /budget to 16");
    uint64_t budget = x->app.settings.ram_budget;
    for (int busy = 0; busy < 2; busy++) {
        size_t notices = n_said(x, UI_NOTICE);
        if (busy) say(x, "hello");
        say(x, "/budget 1");
        assert_string_equal(last_said(x, UI_ERROR), "ram-budget 1M: 1 MB is too little; raise /budget to 16");
        say(x, "/ctx 1000000");
        assert_string_equal(last_said(x, UI_ERROR), "ctx 1000000: 1 MB is too little; raise /budget to 16");
        assert_int_equal(n_said(x, UI_ERROR), 2 * (busy + 1));
        assert_int_equal(n_said(x, UI_NOTICE), notices);
    }
    assert_int_equal(x->engine.n_replans, 0);
    assert_int_equal(x->engine.n_loads, 1);
    assert_int_equal(x->app.settings.ram_budget, budget);
    assert_int_equal(x->app.settings.ctx, 0);
}

/* A change that waits for the end of an answer says so. */
static void test_when(void **state) {
    Fixture *x = *state;
    say(x, "hello");
    say(x, "/batch 8");
    assert_string_equal(last_said(x, UI_NOTICE), "batch takes effect when the answer is finished");
    say(x, "/model other.gguf");
    assert_string_equal(last_said(x, UI_NOTICE), "other.gguf will be loaded when the answer is finished");
}

/* A refused /continue does not change the answer. */
static void test_continue_refused(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/continue");
    fake_error(&x->engine, 1, "no");
    ui_app_pump(&x->app);
    assert_string_equal(ui_transcript_last(&x->app.chat)->stop, "eos");
    say(x, "/continue");
    fake_text(&x->engine, " and");
    fake_error(&x->engine, 1, "no");
    ui_app_pump(&x->app);
    assert_string_equal(ui_transcript_last(&x->app.chat)->stop, "error");
}

/* Nothing on the screen would show that /continue did anything. */
static void test_continue_finished(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/continue");
    fake_done(&x->engine, QSF_STOP_EOS, 0);
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_NOTICE), "the answer is finished: the model adds nothing to it");
    say(x, "/continue");
    const size_t notices = n_said(x, UI_NOTICE);
    answer(x, ", three");
    assert_int_equal(n_said(x, UI_NOTICE), notices);
    assert_string_equal(last_text(x), "two, three");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_clear),
        T(test_undo),
        T(test_resume),
        T(test_too_long),
        T(test_advice),
        T(test_long_conversation),
        T(test_failed_turns),
        T(test_retry),
        T(test_budget_keys),
        T(test_other_session),
        T(test_pipe),
        T(test_context_command),
        T(test_ctx_in_place),
        T(test_refused),
        T(test_when),
        T(test_setting_refused),
        T(test_continue_refused),
        T(test_continue_finished),
        T(test_full_pipe),
        T(test_last_exchange_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
