/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When the engine is asked to evaluate what is typed, and with what; on the scripted engine, with a clock of
 * the test. */
#include "tests/harness/app_rig.h"
#include "tests/harness/gguf_build.h"
#include "ui/ahead.h"

static double clock_now = 1000;

/* Looks at the line now, and again when that was asked for. */
static void rest(Fixture *x, const char *line) {
    const double at = ui_ahead_watch(&x->app, line, strlen(line), clock_now);
    if (at == 0) return;
    assert_true(at > clock_now);
    clock_now = at;
    assert_true(ui_ahead_watch(&x->app, line, strlen(line), clock_now) == 0);
}

static int begin(void **state) {
    if (setup(state) != 0) return 1;
    Fixture *x = *state;
    x->engine.stats.ctx_size = 4000;
    clock_now += 100;
    return 0;
}

static void test_it_waits_for_the_keys(void **state) {
    Fixture *x = *state;
    const char *line = "why is the sky blue";
    assert_true(ui_ahead_watch(&x->app, "", 0, clock_now) == 0);
    for (size_t n = 1; n <= strlen(line); n++, clock_now += 0.1)
        assert_true(ui_ahead_watch(&x->app, line, n, clock_now) > clock_now);
    assert_int_equal(x->engine.n_aheads, 0);
    rest(x, line);
    assert_int_equal(x->engine.n_aheads, 1);
    assert_string_equal(x->engine.ahead, line);
    rest(x, line); /* nothing new */
    assert_int_equal(x->engine.n_aheads, 1);
    rest(x, "why is the sky bluer today"); /* more */
    assert_int_equal(x->engine.n_aheads, 2);
    assert_int_equal(x->engine.n_aheads_stopped, 0);
    rest(x, "why was the sky"); /* another text */
    assert_int_equal(x->engine.n_aheads_stopped, 1);
    assert_int_equal(x->engine.n_aheads, 3);
    (void)ui_ahead_watch(&x->app, "", 0, clock_now);
    assert_int_equal(x->engine.n_aheads_stopped, 2);
    assert_int_equal(x->app.chat.n, 1); /* nothing but the notice of the load */
}

static void test_only_messages(void **state) {
    Fixture *x = *state;
    static const char *const lines[] = { "/undo", "/", "  ", "exit", "/edit 3 a b c" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) rest(x, lines[i]);
    assert_int_equal(x->engine.n_aheads, 0);
    rest(x, "//usr is a folder ");
    assert_string_equal(x->engine.ahead, "/usr is a folder");
    say(x, "a question");
    rest(x, "the next question"); /* an answer is written */
    assert_int_equal(x->engine.n_aheads, 1);
    answer(x, "an answer");
    clock_now = ui_now(); /* of the event */
    rest(x, "the next question");
    assert_int_equal(x->engine.n_aheads, 2);
    x->app.full_screen = false;
    rest(x, "the next question, on a pipe");
    assert_int_equal(x->engine.n_aheads, 2);
}

static void test_the_setting(void **state) {
    Fixture *x = *state;
    rest(x, "one two three");
    assert_int_equal(x->engine.n_aheads, 1);
    say(x, "/set prefill-ahead off");
    rest(x, "one two three four");
    assert_int_equal(x->engine.n_aheads, 1);
    assert_int_equal(x->engine.n_aheads_stopped, 1);
    say(x, "/set prefill-ahead on");
    rest(x, "one two three four five");
    assert_int_equal(x->engine.n_aheads, 2);
    say(x, "/show");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "prefill-ahead       on        next token"));
    assert_null(strstr(last_said(x, UI_OUTPUT), "not now"));
    (void)snprintf(x->engine.why_not_ahead, sizeof x->engine.why_not_ahead, "recurrent\n");
    say(x, "/show settings");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "next token; not now: recurrent\n"));
}

/* A new plan has taken back what was evaluated; a queued message comes first. */
static void test_what_changes_beside_it(void **state) {
    Fixture *x = *state;
    rest(x, "one two three");
    fake_plan(&x->engine, 0, "a plan");
    ui_app_pump(&x->app);
    clock_now = ui_now();
    rest(x, "one two three");
    assert_int_equal(x->engine.n_aheads, 2);
    x->app.queue.held = ui_queue_insert(&x->app.queue, 0, "first", 5);
    rest(x, "one two three four");
    assert_int_equal(x->engine.n_aheads, 2);
    ui_queue_free(&x->app.queue);
}

/* A byte is a token of the scripted engine. */
static void test_how_much_is_ready(void **state) {
    Fixture *x = *state;
    const char *line = "one two three";
    ui_app_tick(&x->app, clock_now);
    rest(x, line);
    assert_int_equal(ui_ahead_ready(&x->app, 14), 0);
    x->engine.stats.ahead_total = 114;
    x->engine.stats.ahead_done = 110;
    ui_app_tick(&x->app, clock_now);
    assert_int_equal(ui_ahead_ready(&x->app, 14), 10);
    assert_int_equal(ui_ahead_ready(&x->app, 5), 5);
    x->engine.stats.ahead_done = 101; /* the first token of every prompt is not one of this message */
    ui_app_tick(&x->app, clock_now);
    assert_int_equal(ui_ahead_ready(&x->app, 14), 0);
    x->engine.stats.ahead_done = 50; /* of the conversation, too */
    ui_app_tick(&x->app, clock_now);
    assert_int_equal(ui_ahead_ready(&x->app, 14), 0);
    (void)ui_ahead_watch(&x->app, "", 0, clock_now);
    x->engine.stats.ahead_done = 110;
    ui_app_tick(&x->app, clock_now);
    assert_int_equal(ui_ahead_ready(&x->app, 14), 0);
}

static void test_pastes_and_files(void **state) {
    Fixture *x = *state;
    char path[400], line[600], mark[UI_FOLD_BYTES + 1] = "";
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("ahead.txt"));
    if (strchr(path, ' ') != NULL) {
        print_message("skip: a name after @ ends at a space\n");
        skip();
    }
    assert_int_equal(qsf_test_write_file(path, "in the file\n", 12), 0);
    (void)snprintf(line, sizeof line, "look at @%s please", path);
    rest(x, line);
    assert_non_null(strstr(x->engine.ahead, "in the file"));
    (void)snprintf(line, sizeof line, "look at @%s please and", path);
    (void)ui_ahead_watch(&x->app, line, strlen(line), clock_now); /* the file is behind more text now */
    assert_int_equal(x->engine.n_aheads_stopped, 1);
    assert_int_equal(qsf_test_write_file(path, "\0\1\2", 3), 0);
    const size_t before = x->app.chat.n;
    rest(x, line);
    assert_int_equal(x->engine.n_aheads, 1); /* it cannot be attached: Enter will say so */
    assert_int_equal(x->app.chat.n, before);
    unlink(path);
    UiFold fold = { .text = strdup("1\n2\n3"), .len = 5, .lines = 3, .tokens = 5 };
    assert_true(ui_folds_add(&x->app.folds, fold, mark));
    (void)snprintf(line, sizeof line, "sum %s now", mark);
    rest(x, line);
    assert_string_equal(x->engine.ahead, "sum 1\n2\n3 now");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_it_waits_for_the_keys),  T(test_only_messages),     T(test_the_setting),
        T(test_what_changes_beside_it), T(test_how_much_is_ready), T(test_pastes_and_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
