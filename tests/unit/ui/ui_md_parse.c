/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as blocks and runs: examples of CommonMark's and GitHub's rules, as text. */
#include "tests/harness/qsf_test.h"
#include "ui/md/parse.h"

/* Where a block is: "> " for quotes, the marks of items. */
static void dump_box(const UiMdDoc *d, uint32_t i, UiBuf *out) {
    const UiMdBox *box = &d->boxes[i];
    if (i == 0) return;
    dump_box(d, box->parent, out);
    if (box->kind == UI_MD_QUOTE) ui_buf_puts(out, "> ");
    if (box->kind != UI_MD_ITEM) return;
    if (box->ordered)
        ui_buf_printf(out, "%u. ", (unsigned)box->number);
    else
        ui_buf_puts(out, "- ");
    if (box->task) ui_buf_puts(out, box->done ? "[x] " : "[ ] ");
}

static void dump_marks(const UiMdRun *run, bool end, UiBuf *out) {
    static const struct {
        unsigned style;
        const char *text;
    } marks[] = { { UI_MD_BOLD, "B" }, { UI_MD_ITALIC, "I" }, { UI_MD_MONO, "M" }, { UI_MD_STRIKE, "S" } };
    for (size_t i = 0; i < 4; i++) {
        if (run->style & marks[i].style) ui_buf_printf(out, "%s%s", end ? "/" : "", marks[i].text);
    }
}

static void dump_run(const UiMdDoc *d, const char *text, const UiMdRun *run, UiBuf *out) {
    const UiMdLink *link = &d->links[run->link];
    if (run->style & (UI_MD_HARD | UI_MD_SOFT)) {
        ui_buf_puts(out, run->style & UI_MD_HARD ? "\\" : "/");
        return;
    }
    if (run->style & 0x1f || run->link) ui_buf_puts(out, "{");
    dump_marks(run, false, out);
    if (run->style & UI_MD_IMAGE) ui_buf_puts(out, "image");
    if (run->style & 0x1f) ui_buf_puts(out, " ");
    ui_buf_add(out, ui_md_text(d, text, run), run->len);
    if (run->link) ui_buf_printf(out, "|%.*s", (int)link->len, ui_buf_str(&d->own) + link->off);
    if (run->style & 0x1f || run->link) ui_buf_puts(out, "}");
}

static void dump_block(const UiMdDoc *d, const char *text, const UiMdBlock *b, UiBuf *out) {
    static const char *const names[] = { "p", "h", "hr", "code", "html", "table", "cell" };
    if (b->blank) ui_buf_puts(out, "~");
    dump_box(d, b->box, out);
    ui_buf_puts(out, names[b->kind]);
    if (b->kind == UI_MD_HEADING || (b->kind == UI_MD_CELL && b->level)) ui_buf_printf(out, "%d", b->level);
    if (b->kind == UI_MD_TABLE) ui_buf_printf(out, " %ux%u", (unsigned)b->rows, (unsigned)b->columns);
    if (b->kind == UI_MD_CODE)
        ui_buf_printf(out, "%s #%u %.*s", b->fenced ? "" : " indented", (unsigned)b->number, (int)b->info_len,
                      ui_buf_str(&d->own) + b->info);
    ui_buf_puts(out, ":");
    for (uint32_t i = 0; i < b->n; i++) dump_run(d, text, &d->runs[b->run + i], out);
    ui_buf_puts(out, "\n");
}

static const char *dumped(const char *text, size_t len, size_t keep) {
    static UiBuf out;
    UiMdDoc d = { 0 };
    ui_buf_clear(&out);
    assert_true(ui_md_parse(&d, text, len, keep, false));
    for (size_t i = 0; i < d.n_blocks; i++) dump_block(&d, text, &d.blocks[i], &out);
    ui_md_free(&d);
    return ui_buf_str(&out);
}

static void check(const char *text, const char *blocks) {
    assert_string_equal(dumped(text, strlen(text), strlen(text)), blocks);
}

static void test_blocks(void **state) {
    (void)state;
    check("", "");
    check("\n\n", "");
    check("one\ntwo\n\nthree", "p:one/two\n~p:three\n");
    check("# One\n## Two ##\nThree\n===\nFour\n---\n#five\n####### six",
          "h1:One\nh2:Two\nh1:Three\nh2:Four\np:#five/####### six\n");
    check("a\n***\n- - -\n___", "p:a\nhr:\nhr:\nhr:\n");
    check("> a\nb\n>> c\n\n> d", "> p:a/b\n> > p:c\n~> p:d\n");
    check("<div>\n*a*\n\n*b*", "html:<div>/*a*/\n~p:{I b}\n");
    check("a\n    b", "p:a/b\n");
}

static void test_lists(void **state) {
    (void)state;
    check("- a\n- b\n\n- c", "- p:a\n- p:b\n~- p:c\n");
    check("1. a\n1. b\n3. c", "1. p:a\n2. p:b\n3. p:c\n");
    check("7) a\n   - b\n     c\n   - d\n8) e", "7. p:a\n7. - p:b/c\n7. - p:d\n8. p:e\n");
    check("- a\n\n  b\n- c", "- p:a\n~- p:b\n- p:c\n");
    check("-\n- b", "- p:\n- p:b\n");
    check("- [ ] a\n- [x] b\n- [X] c\n- [y] d", "- [ ] p:a\n- [x] p:b\n- [x] p:c\n- p:[y] d\n");
    check("- > a\n  > b\n- # c", "- > p:a/b\n- h1:c\n");
    check("- a\n+ b", "- p:a\n- p:b\n");
    check("2. a\n\nb", "2. p:a\n~p:b\n");
    check("a\n2. b\n1. c", "p:a/2. b\n1. p:c\n");
    check("- ```\n  x\n  ```\n- y", "- code #1 :x/\n- p:y\n");
}

static void test_code(void **state) {
    (void)state;
    check("```c\nint x;\n\n  y\n```\nz", "code #1 c:int x;//  y/\np:z\n");
    check("~~~ python title=\"a b\"\n```\n~~~", "code #1 python title=\"a b\":```/\n");
    check("```\nopen", "code #1 :open/\n");
    check("```\na\n\n\n```\n\nb", "code #1 :a///\n~p:b\n");
    check("a\n\n    b\n\n    c\n\nd", "p:a\n~code indented #1 :b//c/\n~p:d\n");
    check("> ```\n> a\n> ```\n\n```x\n```", "> code #1 :a/\n~code #2 x:\n");
    check("````\n```\n````", "code #1 :```/\n");
    check("1. a\n   ```c\n   b\n     c\n   ```", "1. p:a\n1. code #1 c:b/  c/\n");
}

static void test_tables(void **state) {
    (void)state;
    check("| a | b |\n|---|:-:|\n| 1 | *2* |\n| 3 |",
          "table 3x2:\ncell:a\ncell2:b\ncell:1\ncell2:{I 2}\ncell:3\ncell2:\n");
    check("a | b\n--:|---\nc \\| d | `e`\n\nf",
          "table 2x2:\ncell3:a\ncell:b\ncell3:c | d\ncell:{M e}\n~p:f\n");
    check("| a |\n| b |", "p:| a |/| b |\n");
    /* One dash for a column is enough. */
    check("| a | b |\n|-|:--|\n| c | d |\n\ne", "table 2x2:\ncell:a\ncell1:b\ncell:c\ncell1:d\n~p:e\n");
    check("> | a |\n> | :-: |\n> | c |", "> table 2x1:\n> cell2:a\n> cell2:c\n");
    check("a\n- | -\n", "p:a\n- p:| -\n");
}

static void test_inlines(void **state) {
    (void)state;
    check("**a** *b* ***c*** __d__ _e_ snake_case_name",
          "p:{B a} {I b} {BI c} {B d} {I e} snake_case_name\n");
    check("**a *b* c**", "p:{B a }{BI b}{B  c}\n");
    check("`` a`b `` `c", "p:{M a`b} `c\n");
    check("~~a~~ ~b~", "p:{S a} {S b}\n");
    check("\\*a\\* 2 * 3 * 4", "p:*a* 2 * 3 * 4\n");
    check("&amp; &lt;b&gt; &copy; &#65; &#x42; &nosuch; &#27;", "p:& <b> © A B &nosuch; ^[\n");
    check("a  \nb\\\nc<br>d", "p:a\\b\\c\\d\n");
    check("a <b>c</b>", "p:a <b>c</b>\n");
}

static void test_links(void **state) {
    (void)state;
    check("[a](http://b.c) [d *e*](<f g> \"title\")", "p:{a|http://b.c} {d |f g}{I e|f g}\n");
    check(
        "<http://a.b> http://c.d www.e.f <g@h.i>",
        "p:{http://a.b|http://a.b} {http://c.d|http://c.d} {www.e.f|http://www.e.f} {g@h.i|mailto:g@h.i}\n");
    check("![a cat](c.png) ![](d.png)", "p:{image |c.png}{image a cat|c.png} {image |d.png}\n");
    check("[a] [b][A]\n\n[a]: http://c?d&amp;e", "p:{a|http://c?d&e} {b|http://c?d&e}\n");
    check("(see https://a.b/c_d(e)?f=g&h.) xhttp://a http:// www.",
          "p:(see {https://a.b/c_d(e)?f=g&h|https://a.b/c_d(e)?f=g&h}.) xhttp://a http:// www.\n");
    check("[a] [1] a[i]", "p:[a] [1] a[i]\n");
}

/* What follows the part that is kept helps to parse it and is not shown. */
static void test_kept(void **state) {
    (void)state;
    assert_string_equal(dumped("a **b**", 7, 5), "p:a {B b}\n");
    assert_string_equal(dumped("[a]\n\n[a]: b\n\n[c", 15, 3), "p:{a|b}\n");
}

static void test_bounds(void **state) {
    (void)state;
    enum { N = 1 << 16 };
    static char text[N];
    UiMdDoc d = { 0 };
    static const char *const parts[] = { ">",  "- ",  "[",    "![",         "*",    "**a_ ", "`",
                                         "<",  "|",   "&",    "1. ",        "\n|",  "\\",    "$",
                                         "$a", "\\(", "$$\n", "\\[\\frac{", "|\n-|" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t len = strlen(parts[i]);
        for (size_t k = 0; k < N; k++) text[k] = parts[i][k % len];
        assert_true(ui_md_parse(&d, text, N, N, false));
        for (size_t k = 0; k < d.n_boxes; k++) assert_true(d.boxes[k].depth <= UI_MD_NEST);
    }
    /* A wide table with short rows is text. */
    memset(text, '|', N);
    for (size_t k = 0; k < 2000; k++) text[k] = k % 2 ? '|' : 'a';
    text[2000] = '\n';
    for (size_t k = 2001; k < 4001; k++) text[k] = k % 2 ? '|' : '-';
    for (size_t k = 4001; k < N; k++) text[k] = k % 3 ? '\n' : 'a';
    for (size_t k = 4001; k + 1 < N; k++) text[k] = k % 2 ? '\n' : 'a';
    assert_true(ui_md_parse(&d, text, N, N, false));
    assert_true(d.n_blocks + d.n_runs <= 4 * (size_t)N + 300);
    ui_md_free(&d);
}

static bool collect(void *arg, const UiMdCode *code) {
    ui_buf_printf(arg, "%u %.*s[%.*s] %.*s", code->number, (int)code->lang_len, code->info,
                  (int)code->info_len, code->info, (int)code->len, code->text);
    return code->number < 2;
}

static void test_codes(void **state) {
    (void)state;
    static const char text[] = "a\n```c x=1\nint a;\n\n  b\n```\n- ```\n  c\n  ```\n\n```d\n```\n";
    UiBuf out = { 0 };
    assert_int_equal(ui_md_codes(text, sizeof text - 1, collect, &out), 2);
    assert_string_equal(ui_buf_str(&out), "1 c[c x=1] int a;\n\n  b\n2 [] c\n");
    ui_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_lists),   cmocka_unit_test(test_code),
        cmocka_unit_test(test_tables), cmocka_unit_test(test_inlines), cmocka_unit_test(test_links),
        cmocka_unit_test(test_kept),   cmocka_unit_test(test_bounds),  cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
