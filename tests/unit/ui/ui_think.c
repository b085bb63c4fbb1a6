/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning before an answer, and stop strings: in the chat, its files, and on the screen. */
#include "tests/harness/app_rig.h"
#include "ui/format.h"
#include "ui/screen.h"

/* ---- reasoning, stop strings ---- */

static void think(Fixture *x, const char *thought, const char *text, QSFStop stop) {
    fake_reasoning(&x->engine, "<think>\n");
    fake_reasoning(&x->engine, thought);
    if (*text) fake_text(&x->engine, text);
    fake_done(&x->engine, stop, 5);
    ui_app_pump(&x->app);
}

static void test_reasoning_is_separate(void **state) {
    Fixture *x = *state;
    size_t len;
    say(x, "why");
    fake_reasoning(&x->engine, "<think>\nso ");
    ui_app_pump(&x->app);
    assert_true(x->app.answer->thought->open);
    fake_reasoning(&x->engine, "it is\n</think>\n");
    fake_text(&x->engine, "because");
    ui_app_pump(&x->app);
    assert_false(x->app.answer->thought->open);
    fake_done(&x->engine, QSF_STOP_EOS, 9);
    ui_app_pump(&x->app);
    const UiItem *it = ui_transcript_last(&x->app.chat);
    assert_string_equal(ui_buf_str(&it->raw), "because");
    assert_memory_equal(ui_item_shown(it->thought, &len), "so it is", 8);
    assert_int_equal(len, 8);
    assert_int_equal(it->thought->tokens, 2);
    assert_int_equal(it->tokens, 9);
    say(x, "more");
    assert_string_equal(x->engine.roles, "uau"); /* reasoning is not a message */
    assert_string_equal(x->engine.reasoning, "<think>\nso it is\n</think>\n");
    answer(x, "x");
    say(x, "/undo 2");
    assert_null(ui_transcript_last(&x->app.chat));
}

/* A second block, after the answer has begun: displayed without the tags between them. */
static void test_two_blocks(void **state) {
    Fixture *x = *state;
    size_t len;
    say(x, "why");
    fake_reasoning(&x->engine, "<think>plan</think>");
    fake_text(&x->engine, "ans");
    fake_reasoning(&x->engine, "<think>");
    fake_reasoning(&x->engine, "sec\x1B");
    fake_reasoning(&x->engine, "ret</think>");
    answer(x, "wer");
    const UiItem *it = ui_transcript_last(&x->app.chat);
    assert_string_equal(last_text(x), "answer");
    assert_string_equal(ui_buf_str(&it->thought->raw), "<think>plan</think><think>sec\x1Bret</think>");
    const char *shown = ui_item_shown(it->thought, &len);
    assert_memory_equal(shown, "plan\n\nsec", 9);
    assert_null(memchr(shown, '<', len));
}

/* Only reasoning: it is kept, reported, and continued. */
static void test_only_reasoning(void **state) {
    Fixture *x = *state;
    say(x, "why");
    think(x, "hm", "", QSF_STOP_LENGTH);
    const UiItem *it = ui_transcript_last(&x->app.chat);
    assert_int_equal(it->kind, UI_ANSWER);
    assert_non_null(strstr(last_said(x, UI_NOTICE), "still thinking"));
    say(x, "/continue");
    assert_true(x->engine.go_on);
    assert_string_equal(x->engine.reasoning, "<think>\nhm");
    fake_reasoning(&x->engine, "m</think>");
    fake_text(&x->engine, "so");
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
    assert_string_equal(ui_buf_str(&it->thought->raw), "<think>\nhmm</think>");
    assert_string_equal(last_text(x), "so");
    say(x, "/retry");
    assert_string_equal(x->engine.roles, "u");
    assert_string_equal(x->engine.reasoning, "");
    /* Cut between reasoning and answer. */
    think(x, "hm</think>", "", QSF_STOP_LENGTH);
    assert_non_null(strstr(last_said(x, UI_NOTICE), "no text yet"));
    say(x, "/retry");
    /* Stopped before the first word: as if it had not been asked; the previous answer is restored. */
    fake_reasoning(&x->engine, "<think>\n");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    it = ui_transcript_last(&x->app.chat);
    assert_string_equal(ui_buf_str(&it->thought->raw), "<think>\nhm</think>");
    assert_int_equal(it->nth, 2);
    assert_int_equal(it->of, 2);
}

/* The time between an answer that was cut and its continuation is not spent on thinking. */
static void test_time(void **state) {
    Fixture *x = *state;
    say(x, "why");
    think(x, "hm", "", QSF_STOP_LENGTH);
    UiItem *thought = ui_transcript_last(&x->app.chat)->thought;
    thought->time -= 1000; /* as if it had begun, */
    thought->seconds = 10; /* and ended, that long ago */
    say(x, "/continue");
    think(x, "m", "", QSF_STOP_LENGTH);
    assert_in_range(thought->seconds, 10, 100);
    say(x, "/continue");
    fake_reasoning(&x->engine, "m");
    ui_app_pump(&x->app);
    assert_true(thought->open);
    fake_text(&x->engine, "so");
    ui_app_pump(&x->app);
    assert_false(thought->open);
    assert_in_range(thought->seconds, 10, 100);
}

static void test_reasoning_in_sessions(void **state) {
    Fixture *x = *state;
    size_t len;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "thoughts");
    say(x, "why");
    think(x, "a</think>", "one", QSF_STOP_LENGTH);
    say(x, "/continue");
    answer(x, " two");
    say(x, "again");
    think(x, "b", "", QSF_STOP_INTERRUPTED);
    say(x, "/continue");
    fake_reasoning(&x->engine, "c</think>");
    fake_text(&x->engine, "three");
    ui_app_pump(&x->app);
    ui_app_tick(&x->app, 1e9); /* one part, then the program is killed */
    ui_session_close(&x->app.session);
    x->app.running = UI_REQUEST_NONE;
    x->app.answer = NULL;
    x->engine.busy = false;
    assert_true(ui_app_resume(&x->app, "thoughts"));
    const UiItem *first = NULL, *last = ui_transcript_last(&x->app.chat);
    for (size_t i = 0; i < x->app.chat.n && !first; i++)
        if (x->app.chat.items[i]->kind == UI_ANSWER) first = x->app.chat.items[i];
    assert_string_equal(ui_buf_str(&first->raw), "one two");
    assert_string_equal(ui_buf_str(&first->thought->raw), "<think>\na</think>");
    assert_string_equal(ui_buf_str(&last->raw), "three");
    assert_string_equal(ui_buf_str(&last->thought->raw), "<think>\nbc</think>");
    assert_memory_equal(ui_item_shown(last->thought, &len), "bc", 2);
    assert_int_equal(len, 2);
}

static void read_file(const char *path, char *dst, size_t cap) {
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    dst[fread(dst, 1, cap - 1, f)] = '\0';
    fclose(f);
    unlink(path);
}

static void test_reasoning_in_exports(void **state) {
    Fixture *x = *state;
    static const struct {
        const char *name, *has;
    } rows[] = {
        { "x.json", "\"content\": \"one\", \"reasoning\": \"deep\"" },
        { "x.md", "<details><summary>Thinking</summary>\n\ndeep\n\n</details>\n\none\n" },
        { "x.txt", "[thinking]\ndeep\n[answer]\none\n" },
    };
    char line[600], got[4096];
    say(x, "why");
    think(x, "deep\n</think>\n", "one", QSF_STOP_EOS);
    say(x, "again");
    think(x, "\n</think>\n", "two", QSF_STOP_EOS); /* an empty one counts as none */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[500];
        (void)snprintf(path, sizeof path, "%s", qsf_test_tmp(rows[i].name));
        (void)snprintf(line, sizeof line, "/export %s", path);
        say(x, line);
        read_file(path, got, sizeof got);
        if (!strstr(got, rows[i].has)) fail_msg("%s:\n%s", rows[i].name, got);
        assert_null(strstr(got, "<think>"));
        assert_null(strstr(strstr(got, "again"), "hinking"));
    }
}

static void test_think_command(void **state) {
    Fixture *x = *state;
    assert_false(x->app.settings.show_thinking);
    say(x, "/think");
    assert_true(x->app.settings.show_thinking);
    say(x, "/think hide");
    assert_false(x->app.settings.show_thinking);
    say(x, "/think on");
    assert_non_null(strstr(last_said(x, UI_ERROR), "show, hide, now or a number"));
    say(x, "/set show-thinking on");
    assert_true(x->app.settings.show_thinking);
}

static void test_answer_now(void **state) {
    Fixture *x = *state;
    say(x, "/think now");
    assert_string_equal(last_said(x, UI_ERROR), "/think now: no answer is thinking");
    say(x, "/think 300");
    assert_int_equal(x->app.settings.params.reasoning_limit, 301);
    say(x, "hi");
    assert_true(ui_app_answer_now(&x->app)); /* the prompt is being read */
    fake_reasoning(&x->engine, "<think>a long thought");
    ui_app_pump(&x->app);
    say(x, "/think now");
    assert_int_equal(x->engine.n_answer_now, 2);
    fake_reasoning(&x->engine, "</think>");
    fake_text(&x->engine, "yes");
    x->engine.cut = true;
    x->engine.hidden = 7;
    ui_app_pump(&x->app);
    fake_done(&x->engine, QSF_STOP_EOS, 9);
    ui_app_pump(&x->app);
    assert_false(ui_app_answer_now(&x->app));
    char fold[80];
    ui_format_thought(ui_transcript_last(&x->app.chat)->thought, fold, sizeof fold);
    assert_non_null(strstr(fold, ", cut"));
    assert_string_equal(last_said(x, UI_NOTICE), "the model kept thinking: 7 tokens are hidden");
}

static void test_stop_strings(void **state) {
    Fixture *x = *state;
    say(x, "/stop ###");
    say(x, "/stop \\n\\nUser: \\\\ \\x");
    say(x, "/stop ###");
    say(x, "hi");
    assert_int_equal(x->engine.n_stop, 2);
    assert_string_equal(x->engine.stop[0], "###");
    assert_string_equal(x->engine.stop[1], "\n\nUser: \\ \\x");
    say(x, "/stop off");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "next answer"));
    answer(x, "a");
    say(x, "/continue");
    assert_int_equal(x->engine.n_stop, 0);
    answer(x, "b");
    say(x, "/stop");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "no stop strings"));
}

/* ---- on the screen ---- */

static const char *frame(UiScreen *s, int cols, int rows) {
    static UiBuf shot;
    static const UiMenu no_menu = { .chosen = -1 };
    UiInputView in = { .prompt = "> ", .text = "", .menu = &no_menu };
    ui_screen_draw(s, &in, rows, cols);
    ui_buf_clear(&shot);
    for (int row = 0; row < rows; row++) {
        ui_canvas_text(&s->canvas, row, &shot);
        ui_buf_puts(&shot, "\n");
    }
    return ui_buf_str(&shot);
}

static void shows(UiScreen *s, int cols, int rows, const char *part, bool there) {
    const char *text = frame(s, cols, rows);
    if ((strstr(text, part) != NULL) != there) fail_msg("%s\"%s\" in\n%s", there ? "no " : "", part, text);
}

static void press(UiScreen *s, const char *bytes) {
    UiKeys keys = { 0 };
    UiKey k;
    for (; *bytes; bytes++) {
        if (ui_keys_feed(&keys, *bytes, &k)) ui_screen_key(s, &k);
    }
    ui_keys_free(&keys);
}

static void test_folded_on_the_screen(void **state) {
    Fixture *x = *state;
    UiScreen s;
    ui_screen_init(&s, &x->app, true);
    say(x, "why");
    fake_reasoning(&x->engine, "<think>\nfirst the seven seas,\n");
    ui_app_pump(&x->app);
    shows(&s, 80, 24, " ▸ thinking, 1 tok", true);
    shows(&s, 80, 24, "seven seas", false);
    shows(&s, 80, 24, "^T thinking", true);
    press(&s, "\x14");
    shows(&s, 80, 24, " ▾ thinking, 1 tok", true);
    shows(&s, 80, 24, "   first the seven seas,\n ▌", true);
    fake_reasoning(&x->engine, "then\x1b[2J the sky\n</think>\n\n");
    fake_text(&x->engine, "because");
    fake_done(&x->engine, QSF_STOP_EOS, 5);
    ui_app_pump(&x->app);
    shows(&s, 80, 24, "   first the seven seas,\n   then^[[2J the sky\n because\n", true);
    for (int cols = 3; cols < 50; cols += 2) (void)frame(&s, cols, 9);
    press(&s, "\x14");
    shows(&s, 80, 24, " ▸ thought, 2 tok", true);
    shows(&s, 80, 24, "the sky", false);
    shows(&s, 40, 12, "ai > ▸ thought, 2 tok", true);
    shows(&s, 40, 12, "\n     because", true);
    ui_screen_free(&s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_reasoning_is_separate),
        T(test_two_blocks),
        T(test_reasoning_is_separate),
        T(test_only_reasoning),
        T(test_reasoning_in_sessions),
        T(test_time),
        T(test_reasoning_in_exports),
        T(test_think_command),
        T(test_answer_now),
        T(test_stop_strings),
        T(test_folded_on_the_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
