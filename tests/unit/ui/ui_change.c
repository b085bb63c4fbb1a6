/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages that are changed: /edit, /as. */
#include "tests/harness/app_rig.h"

/* Two exchanges: "one" and "two", answered by A and B. */
static void talk(Fixture *x) {
    say(x, "one");
    answer(x, "A");
    say(x, "two");
    answer(x, "B");
}

static void test_edit_takes_the_text_back(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/edit");
    assert_string_equal(ui_buf_str(&x->app.draft), "two");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    ui_buf_clear(&x->app.draft);
    say(x, "/edit 1");
    assert_string_equal(ui_buf_str(&x->app.draft), "one");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    say(x, "/edit");
    assert_string_equal(last_said(x, UI_ERROR), "/edit: there is no message to edit");
}

static void test_edit_replaces(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/edit 1 one more");
    assert_int_equal(x->engine.n_submits, 3);
    assert_string_equal(ui_buf_str(&ui_transcript_last_of(&x->app.chat, UI_USER)->raw), "one more");
    answer(x, "C");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    say(x, "/edit 2 My own"); /* numbers of messages that were replaced are not given again */
    assert_string_equal(last_said(x, UI_ERROR), "/edit: message 2 is on another branch; /goto 2 goes to it");
    say(x, "/edit 6 My own");
    assert_int_equal(x->engine.n_submits, 3); /* an answer is not asked for again */
    assert_string_equal(ui_buf_str(&ui_transcript_last(&x->app.chat)->raw), "My own");
    say(x, "/edit 7");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/edit 7 TEXT replaces it"));
    say(x, "/edit 9");
    assert_string_equal(last_said(x, UI_ERROR), "/edit: there is no message 9; /tree shows all");
    say(x, "/edit x y");
    assert_non_null(strstr(last_said(x, UI_ERROR), "'x' is not the number"));
}

static void test_as(void **state) {
    Fixture *x = *state;
    say(x, "/as user What is it?");
    say(x, "/as assistant A test.");
    assert_int_equal(x->engine.n_submits, 0);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    assert_int_equal(ui_transcript_last(&x->app.chat)->kind, UI_ANSWER);
    say(x, "/as system Be brief.");
    assert_string_equal(ui_buf_str(&x->app.system), "Be brief.");
    say(x, "/as robot x");
    assert_non_null(strstr(last_said(x, UI_ERROR), "expects user, assistant or system"));
    say(x, "/as user");
    assert_non_null(strstr(last_said(x, UI_ERROR), "and a text"));
    say(x, "next");
    assert_int_equal(x->engine.n_submits, 1);
}

/* On the full screen: a text may follow a command in lines of its own, and is never sent by mistake. */
static void test_commands_of_several_lines(void **state) {
    Fixture *x = *state;
    say(x, "/system one\ntwo");
    assert_string_equal(ui_buf_str(&x->app.system), "one\ntwo");
    say(x, "/as user\nline one\nline two");
    assert_string_equal(last_text(x), "line one\nline two");
    say(x, "/rename a\nb");
    assert_string_equal(last_said(x, UI_ERROR),
                        "/rename takes one line; //rename sends the text to the model");
    say(x, "/nonsense\nb");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/nonsense"));
    assert_int_equal(x->engine.n_submits, 0);
    say(x, "/usr/bin is\na folder");
    assert_int_equal(x->engine.n_submits, 1);
}

/* The file has the conversation as it is now. */
static void test_in_the_session(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "changed");
    talk(x);
    say(x, "/edit 3 three");
    answer(x, "D");
    say(x, "/as assistant E");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/edit 6 TEXT replaces it"));
    say(x, "/as user four");
    say(x, "/as assistant E");
    ui_app_finish(&x->app);
    ui_app_free(&x->app);
    QSFSettings settings;
    ui_settings_default(&settings);
    memset(&x->engine, 0, sizeof x->engine);
    ui_app_init(&x->app, fake_engine(&x->engine), &settings);
    x->app.session.on = true;
    assert_true(ui_app_resume(&x->app, "changed"));
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 6);
    assert_string_equal(last_text(x), "E");
    assert_string_equal(ui_buf_str(&ui_transcript_last_of(&x->app.chat, UI_USER)->raw), "four");
}

/* The roles are the other way round, and the text is put into the input. */
static void test_swap(void **state) {
    Fixture *x = *state;
    say(x, "/swap");
    assert_string_equal(x->engine.roles, "u"); /* it begins the conversation */
    fake_text(&x->engine, "Hello!");
    fake_done(&x->engine, QSF_STOP_EOS, 2);
    ui_app_pump(&x->app);
    assert_string_equal(ui_buf_str(&x->app.draft), "Hello!");
    say(x, "/system Be brief.");
    talk(x);
    say(x, "/swap");
    assert_string_equal(x->engine.roles, "uauau"); /* no system prompt; the instruction and two exchanges */
    assert_string_equal(x->engine.last_content, "B");
    assert_int_equal(x->engine.max_tokens, 400);
    say(x, "/undo");
    assert_non_null(strstr(last_said(x, UI_ERROR), "the model is writing your next message"));
    fake_reasoning(&x->engine, "<think>hm</think>");
    fake_text(&x->engine, "\n/quit it? ");
    fake_done(&x->engine, QSF_STOP_EOS, 2);
    ui_app_pump(&x->app);
    assert_string_equal(ui_buf_str(&x->app.draft), "//quit it?");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    assert_string_equal(last_text(x), "B");
    /* A template that refuses it. */
    say(x, "/swap");
    fake_error(&x->engine, 2, "");
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_ERROR), "the model cannot write your message: it failed");
    /* What does not fit is not tried: the cache stays what it is. */
    x->app.stats.ctx_size = x->engine.stats.ctx_size = 5;
    const int asked = x->engine.n_submits;
    say(x, "/swap");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/swap: with the roles exchanged the conversation has "));
    assert_int_equal(x->engine.n_submits, asked);
    x->app.stats.ctx_size = x->engine.stats.ctx_size = 0;
    say(x, "/swap");
    fake_error(&x->engine, 2, "roles must alternate");
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_ERROR), "the model cannot write your message: roles must alternate");
    say(x, "/as user three");
    say(x, "/swap");
    assert_string_equal(last_said(x, UI_ERROR), "/swap: the last message is yours: /retry answers it");
    say(x, "/swap text");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/swap has no argument"));
}

/* Without an input line it is sent. */
static void test_swap_in_lines(void **state) {
    Fixture *x = *state;
    talk(x);
    x->app.full_screen = false;
    say(x, "/swap");
    fake_text(&x->engine, " @file and more ");
    fake_done(&x->engine, QSF_STOP_EOS, 2);
    ui_app_pump(&x->app);
    assert_string_equal(x->engine.roles, "uauau");
    assert_string_equal(x->engine.last_content, "@file and more");
    answer(x, "C");
    assert_string_equal(last_text(x), "C");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_edit_takes_the_text_back),
        T(test_edit_replaces),
        T(test_as),
        T(test_commands_of_several_lines),
        T(test_in_the_session),
        T(test_swap),
        T(test_swap_in_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
