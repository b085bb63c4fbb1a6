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
    ui_search_mark(s.search, &c, 0, 3, 20);
    char marks[21] = "";
    for (int i = 0; i < 20; i++) marks[i] = c.cells[20 + i].ink.style == UI_STYLE_MATCH ? '^' : '.';
    assert_string_equal(marks, "......^^^^..^^^^....");
    ui_search_mark(s.search, &c, 2, 9, 90); /* larger than the canvas */
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

static void press(UiPager *p, const char *bytes, UiAction action) {
    UiKey k = { .action = action, .n = strlen(bytes) };
    memcpy(k.bytes, bytes, k.n);
    ui_pager_key(p, &k, 5);
}

static void press_each(UiPager *p, const char *text) {
    for (; *text; text++) press(p, (char[]){ *text, '\0' }, UI_DO_EDIT);
}

/* The last row of the pager; the first line shown is in *top. */
static const char *foot_of_width(UiPager *p, UiCanvas *c, int *top, int cols) {
    static UiBuf b;
    ui_buf_clear(&b);
    assert_true(ui_canvas_resize(c, 6, cols));
    ui_pager_draw(p, c, 0, 6, cols);
    ui_canvas_text(c, 5, &b);
    *top = p->top;
    return ui_buf_str(&b);
}

static const char *foot_of(UiPager *p, UiCanvas *c, int *top) { return foot_of_width(p, c, top, 60); }

static void test_pager(void **state) {
    (void)state;
    UiPager p = { 0 };
    UiCanvas c = { .unicode = true };
    UiBuf text = { 0 };
    int top;
    for (int i = 1; i <= 40; i++) ui_buf_printf(&text, i % 10 == 0 ? "the ten %d\n" : "line %d\n", i);
    ui_pager_show(&p, "title", ui_buf_str(&text), text.len);
    assert_non_null(strstr(foot_of(&p, &c, &top), "1-4 of 40  PgUp/PgDn scroll, / searches"));
    assert_string_equal(foot_of_width(&p, &c, &top, 40), " 1-4/40 PgUp/PgDn, / searches, q closes");
    press(&p, "\x06", UI_DO_SEARCH);
    press_each(&p, "/Tens\x7f\x7f");
    assert_string_equal(foot_of(&p, &c, &top), " //Te");
    assert_int_equal(c.cursor_row, 5);
    assert_int_equal(c.cursor_col, 5);
    press_each(&p, "\x15ten\r");
    assert_string_equal(foot_of(&p, &c, &top), " 1/4 ten  n N / Esc");
    assert_int_equal(top, 8);
    assert_int_equal(c.cells[2 * 60 + 5].ink.style, UI_STYLE_MATCH);
    press_each(&p, "nn");
    assert_string_equal(foot_of(&p, &c, &top), " 3/4 ten  n N / Esc");
    assert_true(top <= 29 && top + 4 > 29);
    press_each(&p, "NNN");
    assert_string_equal(foot_of(&p, &c, &top), " 4/4 ten  n N / Esc");
    assert_int_equal(top, 36);
    press(&p, "\x1b", UI_DO_ESCAPE);
    assert_true(p.open);
    assert_non_null(strstr(foot_of(&p, &c, &top), "37-40 of 40"));
    /* Beginning with what is shown; what is wrong is reported, and another key closes. */
    press(&p, "\x1b[H", UI_DO_EDIT);
    press(&p, "\x1b[6~", UI_DO_PAGE_DOWN);
    for (int i = 0; i < 5; i++) press(&p, " ", UI_DO_EDIT), (void)foot_of(&p, &c, &top);
    press_each(&p, "/ten\r");
    assert_string_equal(foot_of(&p, &c, &top), " 2/4 ten  n N / Esc");
    press_each(&p, "/zebra\r");
    assert_non_null(strstr(foot_of(&p, &c, &top), "not found: zebra"));
    press_each(&p, "/(\rn");
    assert_true(p.find.problem[0] && p.find.n == 0);
    press_each(&p, "/");
    assert_true(ui_pager_paste(&p, "li\nx", 4));
    press_each(&p, "\r");
    assert_non_null(strstr(foot_of(&p, &c, &top), "/36 li "));
    press_each(&p, "x");
    assert_false(p.open);
    /* In the help, whose lines depend on the width. */
    ui_pager_help(&p);
    press_each(&p, "/suspend\r");
    assert_non_null(strstr(foot_of(&p, &c, &top), "1/1 suspend"));
    assert_true(ui_canvas_resize(&c, 6, 40));
    ui_pager_draw(&p, &c, 0, 6, 40);
    assert_int_equal(p.find.n, 1);
    press_each(&p, "/");
    assert_false(ui_pager_paste(&(UiPager){ .open = true }, "a", 1));
    ui_pager_free(&p);
    ui_canvas_free(&c);
    ui_buf_free(&text);
}

/* The line at the top of the transcript. */
static const char *top_line(UiChatView *v, UiCanvas *c, const UiTranscript *t) {
    static UiBuf b;
    ui_buf_clear(&b);
    ui_canvas_resize(c, 6, 60);
    ui_chatview_sync(v, t, 60, 6);
    ui_chatview_draw(v, t, c, 0, 0);
    ui_canvas_text(c, 0, &b);
    return ui_buf_str(&b);
}

static void test_code_jumps(void **state) {
    Fixture *x = *state;
    const UiTranscript *t = &x->app.chat;
    UiChatView v = { .follow = true };
    UiCanvas c = { .unicode = true };
    UiBuf text = { 0 };
    assert_false(ui_chatview_jump_code(&v, t, 1));
    for (int i = 1; i <= 3; i++) {
        say(x, "more");
        ui_buf_clear(&text);
        ui_buf_puts(&text,
                    "Look:\n\n```c\nint x;\n```\n\nand\n\n- item\n\n      indented\n\nthen\n\n```sh\n");
        for (int k = 0; k < 200; k++) ui_buf_printf(&text, "echo %d\n", k);
        ui_buf_puts(&text, "```\nend\n");
        answer(x, ui_buf_str(&text));
    }
    for (int raw = 0; raw < 2; raw++) {
        v.raw = raw == 1;
        ui_chatview_end(&v);
        (void)top_line(&v, &c, t);
        assert_false(ui_chatview_jump_code(&v, t, 1));
        for (int i = 9; i > 0; i--) {
            if (raw && i % 3 == 2) continue; /* not between fences */
            char want[16];
            (void)snprintf(want, sizeof want, "[%d]", i);
            assert_true(ui_chatview_jump_code(&v, t, -1));
            const char *line = top_line(&v, &c, t);
            if (!strstr(line, raw ? "```" : want)) fail_msg("%d: %s", i, line);
        }
        assert_false(ui_chatview_jump_code(&v, t, -1));
        ui_chatview_home(&v);
        for (int i = 1; i <= (raw ? 6 : 9); i++) {
            (void)top_line(&v, &c, t);
            assert_true(ui_chatview_jump_code(&v, t, 1));
        }
        assert_non_null(strstr(top_line(&v, &c, t), raw ? "```sh" : "[9]"));
    }
    ui_chatview_free(&v);
    ui_canvas_free(&c);
    ui_buf_free(&text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = { T(test_places), T(test_marks), T(test_command), T(test_pager),
                                        T(test_code_jumps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
