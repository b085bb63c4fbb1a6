/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searching in the conversation. */
#include "tests/harness/app_rig.h"

#include "ui/screen.h"
#include "ui/search.h"

static void talk(Fixture *x) {
    say(x, "Where is the Ark?");
    answer(x, "The ark is here.\nNo, the ark is\nthere.");
    say(x, "ark, ark");
    answer(x, "Nothing");
}

static void test_places(void **state) {
    Fixture *x = *state;
    UiSearch s = { 0 };
    UiBuf lines = { 0 };
    char err[300];
    talk(x);
    assert_true(ui_search_start(&s, &x->app.chat, "ark", err, sizeof err));
    assert_int_equal(s.n, 5);
    assert_int_equal(s.at, 4);
    assert_int_equal(ui_search_step(&s, 1)->off, 13); /* round to the first */
    assert_int_equal(s.at, 0);
    assert_int_equal(ui_search_step(&s, -1)->off, 5);
    ui_search_lines(&s, &x->app.chat, &lines);
    assert_string_equal(ui_buf_str(&lines),
                        "#1  Where is the Ark?\n#2  The ark is here.\n#2  No, the ark is\n#3  ark, ark");
    /* A new message: the place stays what it is. */
    answer(x, "");
    say(x, "ark"), answer(x, "ark");
    ui_search_refresh(&s, &x->app.chat);
    assert_int_equal(s.n, 7);
    assert_int_equal(s.at, 4);
    assert_false(ui_search_start(&s, &x->app.chat, "zebra", err, sizeof err));
    assert_string_equal(err, "not found: zebra");
    assert_false(ui_search_start(&s, &x->app.chat, "(", err, sizeof err));
    assert_int_equal(s.n, 7); /* the search before stays */
    assert_true(ui_search_start(&s, &x->app.chat, "Ark", err, sizeof err));
    assert_int_equal(s.n, 1);
    assert_true(ui_search_start(&s, &x->app.chat, "^", err, sizeof err)); /* nothing is found without end */
    ui_search_end(&s);
    assert_null(ui_search_at(&s));
    ui_buf_free(&lines);
}

static void test_marks(void **state) {
    Fixture *x = *state;
    UiSearch s = { 0 };
    UiCanvas c = { .unicode = true };
    char err[300];
    say(x, "a tree");
    assert_true(ui_search_start(&s, &x->app.chat, "tree", err, sizeof err));
    assert_true(ui_canvas_resize(&c, 3, 20));
    ui_canvas_puts(&c, 1, 2, 20, UI_STYLE_TEXT, "é漢 tree, tree");
    ui_search_mark(&s, &c, 0, 3, 20);
    char marks[21] = "";
    for (int i = 0; i < 20; i++) marks[i] = c.cells[20 + i].ink.style == UI_STYLE_MATCH ? '^' : '.';
    assert_string_equal(marks, "......^^^^..^^^^....");
    ui_search_mark(&s, &c, 2, 9, 90); /* larger than the canvas */
    ui_canvas_free(&c);
    ui_search_end(&s);
}

static void test_command(void **state) {
    Fixture *x = *state;
    talk(x);
    say(x, "/search");
    assert_non_null(strstr(last_said(x, UI_ERROR), "what to search for"));
    assert_int_equal(x->app.view, UI_VIEW_NONE);
    say(x, "/search a.k");
    assert_int_equal(x->app.view, UI_VIEW_SEARCH);
    assert_string_equal(ui_buf_str(&x->app.view_text), "a.k");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = { T(test_places), T(test_marks), T(test_command) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
