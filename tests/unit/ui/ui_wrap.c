/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Word wrap by cells, and the view of wrapped lines based on it. */
#include "tests/harness/qsf_test.h"
#include "ui/chatview.h"
#include "ui/flow.h"
#include "ui/wrap.h"

/* The lines of s at that width, joined by '|', with one dot per cell of indent. */
static const char *wrapped(const char *s, int width) {
    static char out[1000];
    size_t len = strlen(s), off = 0, n = 0;
    unsigned indent = 0, next = 0;
    out[0] = '\0';
    while (off < len) {
        UiLine line;
        off = ui_wrap_next(s, len, off, indent, width, &line, &next);
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s%.*s", n ? "|" : "", (int)line.indent,
                              "........", (int)line.len, s + line.off);
        indent = next;
    }
    return out;
}

static void test_words(void **state) {
    (void)state;
    assert_string_equal(wrapped("one two three", 20), "one two three");
    assert_string_equal(wrapped("one two three", 8), "one two|three");
    assert_string_equal(wrapped("one two three", 7), "one two|three");
    assert_string_equal(wrapped("one two three", 6), "one|two|three");
    assert_string_equal(wrapped("one  two", 4), "one|two");
    assert_string_equal(wrapped("a\n\nb", 4), "a||b");
    assert_string_equal(wrapped("abcdefghij", 4), "abcd|efgh|ij");
    assert_string_equal(wrapped("a bcdefghij", 4), "a|bcde|fghi|j");
    assert_string_equal(wrapped("abc", 1), "a|b|c");
    assert_string_equal(wrapped("abc", 0), "a|b|c");
}

static void test_hanging(void **state) {
    (void)state;
    assert_string_equal(wrapped("- one two three", 9), "- one two|..three");
    assert_string_equal(wrapped("12. one two three", 12), "12. one two|....three");
    assert_string_equal(wrapped("    code goes on", 14), "    code goes|....on");
    assert_string_equal(wrapped("-one two", 5), "-one|two");
    assert_string_equal(wrapped("- a b\nc d e f g h", 5), "- a b|c d e|f g h");
}

static void test_wide(void **state) {
    (void)state;
    assert_string_equal(wrapped("双缓冲区", 5), "双缓|冲区");
    assert_string_equal(wrapped("a双b缓", 3), "a双|b缓");
    /* A grapheme cluster is never split: e with an accent, a family. */
    assert_string_equal(wrapped("e\u0301e\u0301e\u0301", 2), "e\u0301e\u0301|e\u0301");
    assert_string_equal(wrapped("双", 1), "双");
    assert_string_equal(wrapped("a\tb", 20), "a\tb");
    assert_string_equal(wrapped("a\tb", 8), "a|b");
}

/* Every byte of the text is in a line, or is a blank or newline between two. */
static void test_nothing_lost(void **state) {
    (void)state;
    static const char text[] =
        "The  quick - brown\n  fox \xff\xfe jumps 双缓冲 over\tthe lazy \xf0\x9f\x98\x80 dog\n\n- x y z w\n";
    for (int width = 1; width < 40; width++) {
        size_t off = 0, end = 0;
        unsigned indent = 0, next = 0;
        while (off < sizeof text - 1) {
            UiLine line;
            size_t to = ui_wrap_next(text, sizeof text - 1, off, indent, width, &line, &next);
            assert_true(to > off);
            for (size_t i = end; i < line.off; i++) assert_true(strchr(" \t\n", text[i]));
            end = line.off + line.len;
            off = to;
            indent = next;
        }
        for (size_t i = end; i < sizeof text - 1; i++) assert_true(strchr(" \t\n", text[i]));
    }
}

/* ---- the view ---- */

static void fill(UiTranscript *t, int n) {
    char text[80];
    for (int i = 0; i < n; i++) {
        int len = snprintf(text, sizeof text, "message number %d with some words in it", i);
        assert_non_null(ui_transcript_add(t, i % 2 ? UI_ANSWER : UI_USER, text, (size_t)len));
    }
}

static const char *screen_row(UiChatView *v, const UiTranscript *t, int width, int height, int row) {
    static UiBuf text;
    UiCanvas c = { 0 };
    ui_canvas_resize(&c, height, width);
    ui_chatview_draw(v, t, &c, 0, 0);
    ui_buf_clear(&text);
    ui_canvas_text(&c, row, &text);
    ui_canvas_free(&c);
    return ui_buf_str(&text);
}

static void test_follow(void **state) {
    (void)state;
    UiTranscript t = { 0 };
    UiChatView v = { .follow = true };
    fill(&t, 20);
    ui_chatview_sync(&v, &t, 60, 10);
    assert_int_equal(ui_chatview_below(&v), 0);
    assert_non_null(strstr(screen_row(&v, &t, 60, 10, 9), "number 19"));
    ui_chatview_scroll(&v, -5);
    assert_int_equal(ui_chatview_below(&v), 5);
    assert_false(v.follow);
    /* New text does not move the text being read. */
    char before[200];
    (void)snprintf(before, sizeof before, "%s", screen_row(&v, &t, 60, 10, 0));
    fill(&t, 2);
    ui_chatview_sync(&v, &t, 60, 10);
    assert_string_equal(screen_row(&v, &t, 60, 10, 0), before);
    ui_chatview_scroll(&v, 1000);
    assert_true(v.follow);
    ui_chatview_home(&v);
    assert_non_null(strstr(screen_row(&v, &t, 60, 10, 1), "number 0"));
    ui_chatview_free(&v);
    ui_transcript_clear(&t);
}

/* Streaming wraps only the last line again, with the same result as wrapping all of it. */
static void test_streaming(void **state) {
    (void)state;
    static const char text[] =
        "- The quick brown fox jumps over\nthe lazy dog\n\n12. and 双缓冲 again e\u0301 until\n";
    for (int width = 4; width < 50; width += 3) {
        UiTranscript t = { 0 };
        UiChatView v = { .follow = true }, whole = { .follow = true };
        UiItem *it = ui_transcript_add(&t, UI_ANSWER, "", 0);
        for (size_t i = 0; i < sizeof text - 1; i++) {
            assert_true(ui_item_append(&t, it, text + i, 1));
            ui_chatview_sync(&v, &t, width, 10);
        }
        ui_chatview_sync(&whole, &t, width, 10);
        assert_int_equal(v.total, whole.total);
        assert_int_equal(v.blocks[0].text.n, whole.blocks[0].text.n);
        for (size_t i = 0; i < v.blocks[0].text.n; i++) {
            assert_int_equal(v.blocks[0].text.lines[i].off, whole.blocks[0].text.lines[i].off);
            assert_int_equal(v.blocks[0].text.lines[i].len, whole.blocks[0].text.lines[i].len);
            assert_int_equal(v.blocks[0].text.lines[i].indent, whole.blocks[0].text.lines[i].indent);
        }
        ui_chatview_free(&v);
        ui_chatview_free(&whole);
        ui_transcript_clear(&t);
    }
}

/* A resize keeps the reading position. */
static void test_resize_anchor(void **state) {
    (void)state;
    UiTranscript t = { 0 };
    UiChatView v = { .follow = true };
    fill(&t, 60);
    ui_chatview_sync(&v, &t, 60, 10);
    ui_chatview_scroll(&v, -41);
    ui_chatview_sync(&v, &t, 60, 10);
    size_t item = 0;
    char first[200] = "";
    for (int row = 0; row < 3 && !strstr(first, "number"); row++)
        (void)snprintf(first, sizeof first, "%s", screen_row(&v, &t, 60, 10, row));
    item = (size_t)atoi(strstr(first, "number") + 7);
    ui_chatview_sync(&v, &t, 30, 10);
    ui_chatview_sync(&v, &t, 60, 10);
    char again[200] = "";
    for (int row = 0; row < 4 && !strstr(again, "number"); row++)
        (void)snprintf(again, sizeof again, "%s", screen_row(&v, &t, 60, 10, row));
    assert_int_equal(atoi(strstr(again, "number") + 7), item);
    ui_chatview_free(&v);
    ui_transcript_clear(&t);
}

static void test_escapes_are_shown(void **state) {
    (void)state;
    UiTranscript t = { 0 };
    UiChatView v = { .follow = true };
    UiItem *it = ui_transcript_add(&t, UI_ANSWER, "", 0);
    ui_item_append(&t, it, "plain ", 6);
    ui_item_append(&t, it, "\x1b]0;title\x07 \xc2\x9b", 12);
    ui_item_append(&t, it, "31m end", 7);
    ui_item_close(it);
    ui_chatview_sync(&v, &t, 60, 4);
    const char *row = screen_row(&v, &t, 60, 4, 1);
    assert_null(strchr(row, '\x1b'));
    assert_null(strstr(row, "\xc2\x9b"));
    assert_non_null(strstr(row, "plain ^[]0;title^G"));
    assert_non_null(strstr(row, "end"));
    /* The model sees what it wrote. */
    assert_int_equal(it->raw.len, 25);
    ui_chatview_free(&v);
    ui_transcript_clear(&t);
}

static void add_text(void *arg, const char *s, size_t len) { ui_buf_add(arg, s, len); }

/* Streamed in parts of `part` bytes, after col cells of something else. */
static void assert_flow(const char *text, int width, int col, const char *want) {
    const size_t len = strlen(text);
    for (size_t part = 1; part <= len; part++) {
        UiBuf got = { 0 };
        UiFlow f = { .write = add_text, .arg = &got, .width = width, .col = col };
        for (size_t i = 0; i < len;) {
            size_t n = part < len - i ? part : len - i;
            while (i + n < len && ((unsigned char)text[i + n] & 0xc0) == 0x80) n++; /* whole characters */
            ui_flow_add(&f, text + i, n);
            i += n;
        }
        ui_flow_end(&f);
        assert_string_equal(ui_buf_str(&got), want);
        ui_buf_free(&got);
    }
}

/* Line mode: words are not broken, however the text arrives; lines of code stay as they are. */
static void test_flow(void **state) {
    (void)state;
    assert_flow("one two three four", 9, 0, "one two\nthree\nfour");
    assert_flow("one two three", 9, 6, "one\ntwo three");
    assert_flow("one two three four", 0, 0, "one two three four");
    assert_flow("a  b\n\n  c", 20, 0, "a  b\n\n  c");
    assert_flow("longer-than-a-line x", 8, 0, "longer-than-a-line x");
    assert_flow("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 4, 0, "\xe6\xbc\xa2\xe5\xad\x97\n\xe6\xbc\xa2");
    assert_flow("see:\n```c\nint a = 1; int b;\n```\nso it is", 8, 0,
                "see:\n```c\nint a = 1; int b;\n```\nso it is");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),         cmocka_unit_test(test_hanging),
        cmocka_unit_test(test_wide),          cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_follow),        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_resize_anchor), cmocka_unit_test(test_escapes_are_shown),
        cmocka_unit_test(test_flow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
