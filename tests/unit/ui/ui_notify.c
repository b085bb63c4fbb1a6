/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When and how the end of an answer is told. */
#include "tests/harness/qsf_test.h"

#include "ui/notify.h"

static void expect(UiNotify how, UiNotifyTerm t, const char *want) {
    UiBuf b = { 0 };
    ui_notify_bytes(how, &t, "done", &b);
    assert_string_equal(ui_buf_str(&b), want);
    ui_buf_free(&b);
}

static void test_bytes(void **state) {
    (void)state;
    const UiNotifyTerm plain = { .term = "xterm-256color" },
                       vte = { .term = "xterm-256color", .vte = "7200" },
                       wez = { .term = "xterm-256color", .program = "WezTerm" },
                       tmux = { .term = "tmux-256color", .tmux = "/tmp/tmux", .program = "WezTerm" };
    expect(UI_NOTIFY_OFF, wez, "");
    expect(UI_NOTIFY_BELL, wez, "\a");
    expect(UI_NOTIFY_AUTO, (UiNotifyTerm){ 0 }, "\a");
    expect(UI_NOTIFY_AUTO, plain, "\a");
    expect(UI_NOTIFY_AUTO, vte, "\x1b]777;notify;qsf-chat;done\a");
    expect(UI_NOTIFY_AUTO, wez, "\x1b]9;done\a");
    expect(UI_NOTIFY_AUTO, tmux, "\a"); /* tmux passes a bell on */
    expect(UI_NOTIFY_OSC, plain, "\x1b]9;done\a");
    expect(UI_NOTIFY_OSC, (UiNotifyTerm){ .term = "foot-extra" }, "\x1b]777;notify;qsf-chat;done\a");
    UiBuf b = { 0 };
    ui_notify_bytes(UI_NOTIFY_OSC, &tmux, "done", &b);
    assert_non_null(strstr(ui_buf_str(&b), "\x1bPtmux;\x1b\x1b]9;done\a\x1b\\"));
    ui_buf_clear(&b);
    ui_notify_title(&plain, "qsf", &b);
    ui_notify_title(&plain, NULL, &b);
    ui_notify_title(&(UiNotifyTerm){ .term = "linux" }, "qsf", &b);
    ui_notify_title(&(UiNotifyTerm){ 0 }, "qsf", &b);
    assert_string_equal(ui_buf_str(&b), "\x1b[22;2t\x1b]2;qsf\a\x1b[23;2t");
    ui_buf_free(&b);
}

static void test_words(void **state) {
    (void)state;
    UiNotify how = UI_NOTIFY_AUTO;
    assert_true(ui_notify_parse("off", &how));
    assert_int_equal(how, UI_NOTIFY_OFF);
    assert_false(ui_notify_parse("loud", &how));
    assert_int_equal(how, UI_NOTIFY_OFF);
}

static void test_watch(void **state) {
    (void)state;
    UiNotifyWatch w = { 0 };
    assert_int_equal(ui_notify_watch(&w, false, false, true, 0), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, true, false, false, 1), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, false, false, false, 11), UI_NOTIFY_NOTHING); /* it was short */
    assert_int_equal(ui_notify_watch(&w, true, false, false, 20), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, true, false, true, 29), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, false, false, false, 30.5), UI_NOTIFY_TELL);
    assert_int_equal(ui_notify_watch(&w, false, false, false, 31), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, false, false, true, 32), UI_NOTIFY_TAKE_BACK);
    assert_int_equal(ui_notify_watch(&w, false, false, true, 33), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, true, false, false, 40), UI_NOTIFY_NOTHING);
    assert_int_equal(ui_notify_watch(&w, false, true, false, 90), UI_NOTIFY_NOTHING); /* stopped by ^C */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
