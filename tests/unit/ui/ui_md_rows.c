/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers as rows of the screen: layout at several widths, and the same rows whatever the pieces in which an
 * answer arrives. */
#include "tests/harness/qsf_test.h"
#include "ui/md/answer.h"

typedef struct Rig {
    UiMdAnswer a;
    UiMdCache cache;
    UiCanvas c;
    UiBuf out;
} Rig;

static const UiMdLook plain = { .width = 40, .unicode = true };

/* The rows, each with its newline. */
static const char *rows_of(Rig *r, const char *text) {
    ui_buf_clear(&r->out);
    ui_md_cache_frame(&r->cache);
    for (size_t k = 0; k < r->a.rows; k++) {
        assert_true(ui_canvas_resize(&r->c, 1, 200));
        (void)ui_md_answer_draw(&r->a, &r->cache, text, k, &r->c, 0, 0, 200, false);
        ui_canvas_text(&r->c, 0, &r->out);
        ui_buf_puts(&r->out, "\n");
    }
    return ui_buf_str(&r->out);
}

static void rig_free(Rig *r) {
    ui_md_answer_free(&r->a);
    ui_md_cache_free(&r->cache);
    ui_canvas_free(&r->c);
    ui_buf_free(&r->out);
}

static void check_look(const char *text, bool open, UiMdLook look, const char *rows) {
    Rig r = { .c.unicode = look.unicode };
    ui_md_answer_sync(&r.a, &r.cache, text, strlen(text), open, &look);
    assert_string_equal(rows_of(&r, text), rows);
    rig_free(&r);
}

static void check(int width, const char *text, const char *rows) {
    UiMdLook look = plain;
    look.width = width;
    check_look(text, false, look, rows);
}

static void check_ascii(int width, const char *text, const char *rows) {
    check_look(text, false, (UiMdLook){ .width = width }, rows);
}

/* As it is while the answer is being written. */
static void check_open(const char *text, const char *rows) { check_look(text, true, plain, rows); }

static void test_text(void **state) {
    (void)state;
    check(12, "one two three four", "one two\nthree four\n");
    check(12, "# Title\n\nText", "Title\n\nText\n");
    check(12, "a\nb\n\n\n\nc\n\n", "a\nb\n\nc\n");
    check(12, "a\n***\nb", "a\n────────────\nb\n");
    check_ascii(12, "a\n***\nb", "a\n------------\nb\n");
    check(20, "**bold** `code` ~~old~~ [image](x)", "bold code ~~old~~\nimage (x)\n");
    check(12, "", "");
}

static void test_lists(void **state) {
    (void)state;
    check(14, "- one two three\n- four\n  - five six seven",
          "• one two\n  three\n• four\n  ◦ five six\n    seven\n");
    check(14, "1. one\n2. two", " 1. one\n 2. two\n");
    check(14, "9. one two three\n10. two", " 9. one two\n    three\n10. two\n");
    check(14, "- [ ] todo\n- [x] done", "☐ todo\n☑ done\n");
    check_ascii(14, "- [ ] todo\n- [x] done\n- b\n1. c", "[ ] todo\n[x] done\n- b\n 1. c\n");
    check(14, "- a\n\n  b\n\n- c", "• a\n\n  b\n\n• c\n");
    check(14, "-\n- b", "•\n• b\n");
}

static void test_quotes(void **state) {
    (void)state;
    check(12, "> one two three\n>\n> > four\n\nfive", "│ one two\n│ three\n│\n│ │ four\n\nfive\n");
    check_ascii(12, "> a\n> - b", "| a\n| - b\n");
    check(12, ">>>>>>>>>>>> deep text", "│ │ │ deep\n│ │ │ text\n");
}

/* clang-format off */
static void test_code(void **state) {
    (void)state;
    check(20, "a\n```c\nint x;\n\n\ty\n```\nb", "a\n┌─ c  [1] ──────────\n│ int x;\n│\n│         y\n\nb\n");
    check_ascii(12, "```\nabcdefghijklmn\n```", "+- [1] -----\n| abcdefghij\n|>klmn\n");
    /* HTML that ends on its line does not hide the fence after it. */
    check(20, "<!-- c -->\n```c\na\n\nb\n```\n```\nd\n```",
          "<!-- c -->\n┌─ c  [1] ──────────\n│ a\n│\n│ b\n\n┌─ [2] ─────────────\n│ d\n");
    check(20, "- a\n  ```sh\n  ls\n  ```\n\n```\n```",
          "• a\n  ┌─ sh  [1] ───────\n  │ ls\n\n┌─ [2] ─────────────\n");
    check(20, "a\n\n    b\n    c", "a\n\n┌─ [1] ─────────────\n│ b\n│ c\n");
}

static void test_tables(void **state) {
    (void)state;
    static const char table[] = "| name | n |\n|------|--:|\n| a | 1 |\n| long text here | 200 |\n";
    check(40, table,
          "name           │   n\n───────────────┼────\na              │   1\nlong text here │ 200\n");
    check_ascii(40, table,
                "name           |   n\n---------------+----\na              |   1\nlong text here | 200\n");
    check(
        16, table,
        "name       │   n\n───────────┼────\na          │   1\n───────────┼────\nlong text  │ 200\nhere       │\n");
    check(8, table, "name: a\nn: 1\n\nname:\n  long\n  text\n  here\nn: 200\n");
    check(40, "| a |\n|---|\n", "a\n─\n");
    check(40, "| a<br>b | c |\n|:---:|---|\n| xxx | |\n", " a  │ c\n b  │\n────┼──\nxxx │\n");
}
/* clang-format on */

static void test_links(void **state) {
    (void)state;
    UiMdLook look = plain;
    look.links = true;
    check(60, "[a *b*](http://c.d) <http://e.f> [g@h.i](mailto:g@h.i) ![p](q.png)",
          "a b (http://c.d) http://e.f g@h.i [image: p] (q.png)\n");
    check_look("[a](http://b.c) [d](e f) [g](h.md)", false, look, "a [d](e f) g (h.md)\n");
    check(40, "[a][1] and [b]\n\ntext\n\n[1]: http://x\n[b]: y\n", "a (http://x) and b (y)\n\ntext\n");
}

/* What is open is shown as it will be; what may be a mark is held back. */
static void test_guesses(void **state) {
    (void)state;
    check_open("a **b", "a b\n");
    check_open("a **b*", "a b\n");
    check_open("a **b** *", "a b\n");
    check_open("a `b c", "a b c\n");
    check_open("a `", "a\n");
    check_open("a [link](http://x", "a link\n");
    check_open("a [lin", "a lin\n");
    check_open("a [1", "a [1\n");
    check_open("x = a[i", "x = a[i\n");
    check_open("5 * 3 snake_ca", "5 * 3 snake_ca\n");
    check_open("text\n-", "text\n");
    check_open("text\n--", "text\n");
    check_open("text\n1", "text\n");
    check_open("- a\n- [", "• a\n");
    check_open("- a\n- [x] b", "• a\n☑ b\n");
    check_open("text\n\n```py", "text\n");
    check_look("t\n\n```py\nx\n``", true, (UiMdLook){ .width = 12 }, "t\n\n+- py  [1] -\n| x\n");
    check_open("text\n\n| a | b |", "text\n");
    check_open("text\n\n| a | b |\n|--", "text\n");
    check_open("| a | b |\n|---|---|\n| **x", "a │ b\n──┼──\nx │\n");
    check_open("| a | b\nc", "| a | b\nc\n");
    check_open("**done\n\nnext", "**done\n\nnext\n");
    check_open("R&", "R\n");
    check_open("a \\(", "a\n");
    check_open("a \\(x_1 = \\fra", "a x₁ =\n");
    check_open("a **b \\(x_1", "a b x₁\n");
    check_open("$$\nx = \\frac{a", "x = a/\n");
    check_open("$$", "");
    check_open("| a |\n|-", "");
    check_open("a\\", "a\n");
    check_open("# He", "He\n");
    check_open("##", "");
}

/* clang-format off */
static const char document[] =
    "# Title *with* style\n\nSome **bold _text_** and `code`, a [link](http://x.y/z) and\n<http://auto.link>.\n\n"
    "- one\n- two\n  - nested `x`\n\n  para\n- [x] done\n\n1. first\n2. second\n\n   ```python\n   def f():\n       pass\n   ```\n"
    "\n> quote\nlazy\n\n> - item\n>\n>   more\n\n| a | b |\n|---|:-:|\n| 1 | **2** |\n| x | `y` |\n\nafter\n"
    "```c\nint main(void) {\n\treturn 0; /* comment\n over lines */\n}\n```\ntext\n\n    indented\n\n    code\n\n"
    "<div>\nhtml *no*\n</div>\n\n<!-- comment\n\nstill -->\n\n***\n[ref] and ![img](p.png) &amp; &copy; 双缓冲 e\u0301\n\n"
    "Setext\n======\n\n~~~\nlast\n~~~\n\n[ref]: /target \"t\"\n\n* * *\n- x\n\n+ y\n10) z\n"
    "\n$$\nx_1 = \\frac{a}{b_2} \\\\\n- y * z\n$$\n\n- in \\(a_1 * b\\) and $c_1$ or $5\n\n| $d_1$ | e |\n|-|:-|\n| 1 | 2 |\n";
/* clang-format on */

/* Random lengths; the same rows as at once. */
static void test_splits(void **state) {
    (void)state;
    static const int widths[] = { 12, 40, 100 };
    for (unsigned seed = 1; seed <= 60; seed++) {
        UiMdLook look = plain;
        look.width = widths[seed % 3];
        Rig whole = { .c.unicode = true }, parts = { .c.unicode = true };
        unsigned x = seed * 2654435761u;
        const size_t len = sizeof document - 1;
        for (size_t n = 0; n < len;) {
            x = x * 1664525u + 1013904223u;
            n += 1 + (x >> 16) % (seed % 2 ? 7 : 90);
            ui_md_answer_sync(&parts.a, &parts.cache, document, n < len ? n : len, true, &look);
            (void)rows_of(&parts, document);
        }
        ui_md_answer_sync(&parts.a, &parts.cache, document, len, false, &look);
        ui_md_answer_sync(&whole.a, &whole.cache, document, len, false, &look);
        const char *expected = rows_of(&whole, document);
        assert_string_equal(rows_of(&parts, document), expected);
        assert_true(whole.a.split.n > 12);
        rig_free(&whole);
        rig_free(&parts);
    }
}

/* Parts are what a document is in one piece. */
static void test_parts(void **state) {
    (void)state;
    Rig r = { .c.unicode = true };
    UiMdDoc d = { 0 };
    size_t from = 0;
    UiBuf whole = { 0 }, parts = { 0 };
    const size_t len = strlen(document);
    assert_true(ui_md_parse(&d, document, len, len, false));
    for (size_t i = 0; i < d.n_blocks; i++) ui_buf_printf(&whole, "%d.", d.blocks[i].kind);
    assert_true(ui_md_split(&r.a.split, document, len, true));
    for (size_t i = 0; i < r.a.split.n; i++, from = 0) {
        from = r.a.split.parts[i].off;
        const size_t end = i + 1 < r.a.split.n ? r.a.split.parts[i + 1].off : len;
        if (from >= len) break;
        assert_true(ui_md_parse(&d, document + from, end - from, end - from, false));
        for (size_t k = 0; k < d.n_blocks; k++) ui_buf_printf(&parts, "%d.", d.blocks[k].kind);
    }
    assert_string_equal(ui_buf_str(&parts), ui_buf_str(&whole));
    ui_buf_free(&whole);
    ui_buf_free(&parts);
    ui_md_free(&d);
    rig_free(&r);
}

/* A place in the text is found again at another width. */
static void test_places(void **state) {
    (void)state;
    Rig r = { .c.unicode = true };
    UiMdLook look = plain;
    const size_t len = strlen(document);
    for (int width = 10; width < 120; width += 7) {
        look.width = width;
        ui_md_answer_sync(&r.a, &r.cache, document, len, false, &look);
        size_t last = 0;
        for (size_t k = 0; k < r.a.rows; k++) {
            const size_t at = ui_md_answer_source(&r.a, &r.cache, document, k);
            assert_true(at >= last && at <= len);
            last = at;
            const size_t row = ui_md_answer_row(&r.a, &r.cache, document, at);
            assert_true(row >= k || ui_md_answer_source(&r.a, &r.cache, document, row) <= at);
        }
    }
    rig_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_lists),  cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_code),    cmocka_unit_test(test_tables), cmocka_unit_test(test_links),
        cmocka_unit_test(test_guesses), cmocka_unit_test(test_splits), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
