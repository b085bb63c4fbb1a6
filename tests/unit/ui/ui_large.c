/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A conversation of 100,000 lines of code on the screen: memory, cells that change in a frame, search. Only
 * what can be counted is checked; times are printed (docs/PERFORMANCE.md). */
#include <malloc.h>
#include <time.h>

#include "tests/harness/app_rig.h"
#include "ui/screen.h"
#include "ui/search.h"

#define ANSWERS 50
#define LINES   2000 /* of each answer */

static const char *const code[] = {
    "static int sum(const int *v, size_t n) { /* of all */",
    "    for (size_t i = 0; i < n; i++) total += v[i] * 0x1f;",
    "    if (total > 100) printf(\"%d items\\n\", total); // needle",
    "    return total ? total : -1;",
    "}",
    "",
};

static double milliseconds(clock_t from) { return (double)(clock() - from) * 1000 / CLOCKS_PER_SEC; }

static void add_answers(Fixture *x) {
    UiBuf text = { 0 };
    ui_buf_puts(&text, "Here it is:\n\n```c\n");
    for (int i = 0; i < LINES; i++) {
        ui_buf_puts(&text, code[i % 6]);
        ui_buf_puts(&text, "\n");
    }
    ui_buf_puts(&text, "```\n");
    for (int i = 0; i < ANSWERS; i++)
        assert_non_null(ui_transcript_add(&x->app.chat, UI_ANSWER, ui_buf_str(&text), text.len));
    ui_buf_free(&text);
}

/* Bytes of the heap that are in use; 0 with a sanitizer, which replaces it. */
static size_t heap(void) { return mallinfo2().uordblks; }

static size_t changed_cells(const UiCanvas *c, UiCell *last) {
    size_t n = 0;
    for (int i = 0; i < c->rows * c->cols; i++) n += memcmp(&c->cells[i], &last[i], sizeof *last) != 0;
    memcpy(last, c->cells, (size_t)c->rows * (size_t)c->cols * sizeof *last);
    return n;
}

static void draw(UiChatView *v, const UiTranscript *t, UiCanvas *c) {
    assert_true(ui_canvas_resize(c, 30, 100));
    ui_chatview_sync(v, t, 100, 30);
    ui_chatview_draw(v, t, c, 0, 0);
}

static void test_large(void **state) {
    Fixture *x = *state;
    UiTranscript *t = &x->app.chat;
    UiChatView v = { .follow = true, .look.unicode = true, .max_width = 100 };
    UiCanvas c = { .unicode = true };
    add_answers(x);
    const size_t before = heap();
    clock_t from = clock();
    draw(&v, t, &c);
    print_message("%zu rows laid out in %.0f ms\n", v.total, milliseconds(from));
    assert_true(v.total >= (size_t)ANSWERS * LINES);
    const size_t view = heap() - before;
    print_message("%.2f bytes of the view for each row\n", (double)view / (double)v.total);
    assert_true(view < 4 * v.total);
    /* From end to end by pages: the rows that were near are given up. */
    from = clock();
    unsigned frames = 0;
    for (ui_chatview_home(&v); !v.follow; frames++) {
        ui_chatview_scroll(&v, 28);
        draw(&v, t, &c);
    }
    print_message("%u pages drawn, %.3f ms each\n", frames, milliseconds(from) / frames);
    print_message("%zu KB more than before\n", (heap() - before - view) >> 10);
    assert_true(heap() - before < view + (512 << 10));
    ui_chatview_free(&v);
    ui_canvas_free(&c);
}

/* Tokens of code arrive at the end of it. */
static void test_stream(void **state) {
    Fixture *x = *state;
    UiTranscript *t = &x->app.chat;
    UiChatView v = { .follow = true, .look.unicode = true, .max_width = 100 };
    UiCanvas c = { .unicode = true };
    UiCell *last = calloc(30 * 100, sizeof *last);
    assert_non_null(last);
    add_answers(x);
    UiItem *it = ui_transcript_add(t, UI_ANSWER, "```c\n", 5);
    assert_non_null(it);
    it->open = true;
    draw(&v, t, &c);
    (void)changed_cells(&c, last);
    const clock_t from = clock();
    size_t tokens = 0, cells = 0, lines = 0;
    for (int i = 0; i < 600; i++) {
        const char *line = code[i % 6];
        const size_t len = strlen(line);
        for (size_t at = 0; at <= len; at += 4, tokens++) {
            const size_t n = len - at < 4 ? len - at : 4;
            ui_item_append(t, it, line + at, n);
            if (at + 4 > len) ui_item_append(t, it, "\n", 1);
            draw(&v, t, &c);
            const size_t changed = changed_cells(&c, last);
            /* Only its own row changes; blanks at its start may be before a fence and are held back. */
            if (at > 8 && at + 4 <= len) assert_true(changed <= 100);
            cells += changed;
        }
        lines++;
    }
    print_message(
        "%zu tokens, %.1f cells changed by each, %.3f ms each: %.2f %% of a processor at 30 tok/s\n", tokens,
        (double)cells / (double)tokens, milliseconds(from) / (double)tokens,
        milliseconds(from) / (double)tokens * 3);
    /* A new line moves all that is on the screen. */
    assert_true(cells < tokens * 100 + lines * 3000);
    free(last);
    ui_chatview_free(&v);
    ui_canvas_free(&c);
}

static void test_search(void **state) {
    Fixture *x = *state;
    UiTranscript *t = &x->app.chat;
    UiChatView v = { .follow = true, .look.unicode = true, .max_width = 100 };
    UiCanvas c = { .unicode = true };
    UiSearch s = { 0 };
    char err[300];
    add_answers(x);
    draw(&v, t, &c);
    clock_t from = clock();
    assert_true(ui_search_start(&s, t, "need.e$", err, sizeof err));
    print_message("%zu places found in %.0f ms\n", s.n, milliseconds(from));
    assert_int_equal(s.n, ANSWERS * (LINES / 6));
    from = clock();
    for (int i = 0; i < 100; i++) {
        const UiMatch *m = ui_search_step(&s, -1);
        ui_chatview_show(&v, t, m->item, m->off);
        draw(&v, t, &c);
        ui_search_mark(s.search, &c, 0, 30, 100);
        size_t marked = 0;
        for (int k = 0; k < 30 * 100; k++) marked += c.cells[k].ink.style == UI_STYLE_MATCH;
        assert_true(marked >= 6);
    }
    print_message("100 places shown, %.3f ms each\n", milliseconds(from) / 100);
    from = clock();
    for (int i = 0; i < ANSWERS - 1; i++) assert_true(ui_chatview_jump_code(&v, t, -1));
    print_message("%d jumps by block of code, %.3f ms each\n", ANSWERS - 1,
                  milliseconds(from) / (ANSWERS - 1));
    ui_search_end(&s);
    ui_chatview_free(&v);
    ui_canvas_free(&c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = { T(test_large), T(test_stream), T(test_search) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
