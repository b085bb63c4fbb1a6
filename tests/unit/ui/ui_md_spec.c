/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short examples of our own for each section, and the examples of CommonMark's specification, through the
 * parts of an answer, as plain text: what a reader sees of the HTML that they expect. The text of the
 * specification is CC-BY-SA and not part of this program: it is read from
 * $QSF_TEST_DATA/commonmark/spec.json, which spec.commonmark.org has for each version. */
#include <ctype.h>
#include <stdlib.h>

#include "src/base/json.h"
#include "tests/harness/qsf_test.h"
#include "ui/md/part.h"

/* Of version 0.31.2, which md4c 0.4.8 (of version 0.30) treats in another way. */
static const int known[] = {
    25,  /* entities that ui/md/entity.c does not have */
    173, /* <textarea> as a block */
    356, /* marks beside symbols that are not ASCII */
};

static bool is_known(int example) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == example) return true;
    return false;
}

/* Bytes of a tag, a comment or the like at s, 0 = it is text. Raw HTML is text on the screen and tags in the
 * expected HTML: it is left out of both. */
static size_t tag_length(const char *s) {
    static const char *const ends[][2] = { { "<!--", "-->" }, { "<?", "?>" }, { "<![CDATA[", "]]>" } };
    for (size_t i = 0; i < 3; i++) {
        const char *end = strncmp(s, ends[i][0], strlen(ends[i][0])) == 0 ? strstr(s + 2, ends[i][1]) : NULL;
        if (end) return (size_t)(end - s) + strlen(ends[i][1]);
    }
    const char *end = *s == '<' && (isalpha((unsigned char)s[1]) || s[1] == '/' || s[1] == '!')
                          ? strchr(s, '>')
                          : NULL;
    return end ? (size_t)(end - s) + 1 : 0;
}

/* The alt text of an image of the expected HTML. */
static void add_alt(const char *tag, size_t len, UiBuf *out) {
    const char *alt = strstr(tag, "alt=\"");
    if (strncmp(tag, "<img ", 5) != 0 || !alt || alt > tag + len) return;
    alt += 5;
    ui_buf_add(out, alt, strcspn(alt, "\""));
}

static void strip(const char *s, UiBuf *out, bool html) {
    while (*s) {
        const size_t n = tag_length(s);
        if (n > 0 && html) add_alt(s, n, out);
        if (n == 0) ui_buf_add(out, s, 1);
        s += n > 0 ? n : 1;
    }
}

static void unescape(const char *s, UiBuf *out) {
    static const char *const names[][2] = {
        { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" }, { "&amp;", "&" }
    };
    while (*s) {
        size_t i = 0;
        while (i < 4 && strncmp(s, names[i][0], strlen(names[i][0])) != 0) i++;
        ui_buf_add(out, i < 4 ? names[i][1] : s, 1);
        s += i < 4 ? strlen(names[i][0]) : 1;
    }
}

/* Without white space. */
static void squeeze(const UiBuf *in, UiBuf *out) {
    ui_buf_clear(out);
    for (size_t i = 0; i < in->len; i++)
        if (!strchr(" \t\n\r", in->data[i])) ui_buf_add(out, in->data + i, 1);
}

static void expected(const char *html, UiBuf *out) {
    UiBuf a = { 0 }, b = { 0 }, c = { 0 };
    strip(html, &a, true);
    unescape(ui_buf_str(&a), &b);
    strip(ui_buf_str(&b), &c, false);
    squeeze(&c, out);
    ui_buf_free(&a);
    ui_buf_free(&b);
    ui_buf_free(&c);
}

/* The lines of a part of code without its fences. */
static void add_code(const UiMdAnswer *a, const char *text, size_t i, UiBuf *out) {
    const UiMdPart *part = &a->split.parts[i];
    const size_t end = i + 1 < a->split.n ? a->split.parts[i + 1].off : a->len;
    size_t at = part->off, info;
    const size_t fence = ui_md_fence(text + at, strcspn(text + at, "\n"), &info);
    for (bool first = !part->continues; at < end; first = false) {
        const size_t n = strcspn(text + at, "\n"), len = ui_md_fence(text + at, n, &info);
        const bool blank = strspn(text + at + info, " \t") == n - info;
        const bool closing = !first && len >= fence && fence > 0 && blank &&
                             strchr("`~", text[at + strspn(text + at, " ")]) &&
                             text[at + strspn(text + at, " ")] ==
                                 text[part->off + strspn(text + part->off, " ")];
        if (!first && !closing) ui_buf_add(out, text + at, n);
        if (!first) ui_buf_puts(out, "\n");
        at += n + 1;
    }
}

/* What a reader sees, with the tags of raw HTML and other marks than those of Markdown. */
static void shown(const char *text, UiBuf *out) {
    static const UiMdLook look = { .width = 4000, .unicode = true };
    UiMdAnswer a = { 0 };
    UiMdCache cache = { 0 };
    UiMdRows rows = { 0 };
    ui_buf_clear(out);
    ui_md_answer_sync(&a, &cache, text, strlen(text), false, &look);
    for (size_t i = 0; i < a.split.n; i++) {
        UiCodeState state;
        size_t codes;
        ui_md_part(&a, &cache, text, i, &rows, &codes, &state);
        if (a.split.parts[i].kind == UI_MD_PART_CODE) {
            add_code(&a, text, i, out);
            continue;
        }
        const UiMdDoc *d = &cache.doc;
        for (size_t k = 0; k < d->n_blocks; k++) {
            for (uint32_t r = 0; r < d->blocks[k].n; r++) {
                const UiMdRun *run = &d->runs[d->blocks[k].run + r];
                ui_buf_add(out, ui_md_text(d, text + a.split.parts[i].off, run), run->len);
            }
            ui_buf_puts(out, "\n");
        }
    }
    ui_md_rows_free(&rows);
    ui_md_answer_free(&a);
    ui_md_cache_free(&cache);
}

static void rendered(const char *text, UiBuf *out) {
    UiBuf all = { 0 }, bare = { 0 };
    shown(text, &all);
    strip(ui_buf_str(&all), &bare, false);
    squeeze(&bare, out);
    ui_buf_free(&all);
    ui_buf_free(&bare);
}

static QsfJson *read_spec(void) {
    const char *path = qsf_test_data("commonmark/spec.json");
    UiBuf text = { 0 };
    QsfErr err = { 0 };
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) return NULL;
    char bytes[4096];
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;) ui_buf_add(&text, bytes, n);
    assert_int_equal(fclose(f), 0);
    QsfJson *all = qsf_json_parse(ui_buf_str(&text), text.len, &err);
    if (!all) fail_msg("%s: %s", path, err.msg);
    ui_buf_free(&text);
    return all;
}

static void test_examples(void **state) {
    (void)state;
    QsfJson *all = read_spec();
    UiBuf want = { 0 }, got = { 0 };
    int wrong = 0;
    if (!all) skip();
    for (size_t i = 0; i < qsf_json_size(all); i++) {
        const QsfJson *e = qsf_json_at(all, i);
        size_t len;
        const int example = (int)qsf_json_int(qsf_json_get(e, "example"), 0);
        const char *markdown = qsf_json_string(qsf_json_get(e, "markdown"), &len);
        const char *html = qsf_json_string(qsf_json_get(e, "html"), &len);
        assert_true(markdown && html);
        expected(html, &want);
        rendered(markdown, &got);
        if (is_known(example) || strcmp(ui_buf_str(&want), ui_buf_str(&got)) == 0) continue;
        print_message("example %d (%s):\n%s-- expected %s\n-- but was %s\n", example,
                      qsf_json_string(qsf_json_get(e, "section"), &len), markdown, ui_buf_str(&want),
                      ui_buf_str(&got));
        wrong++;
    }
    ui_buf_free(&want);
    ui_buf_free(&got);
    qsf_json_free(all);
    assert_int_equal(wrong, 0);
}

/* ---- our own ---- */

static void unquote(const char *s, size_t len, UiBuf *out) {
    ui_buf_clear(out);
    ui_buf_puts(out, "");
    for (size_t i = 0; i < len; i++) {
        const bool escape = s[i] == '\\' && i + 1 < len && strchr("nt\\", s[i + 1]);
        const char c = !escape ? s[i] : s[++i] == 'n' ? '\n' : s[i] == 't' ? '\t' : '\\';
        ui_buf_add(out, &c, 1);
    }
}

/* White space becomes one blank, and none at the ends. */
static void collapse(const UiBuf *in, UiBuf *out) {
    ui_buf_clear(out);
    ui_buf_puts(out, "");
    for (size_t i = 0; i < in->len; i++) {
        const bool blank = in->data[i] && strchr(" \t\n\r", in->data[i]);
        if (blank && out->len > 0 && out->data[out->len - 1] != ' ') ui_buf_puts(out, " ");
        if (!blank) ui_buf_add(out, in->data + i, 1);
    }
    if (out->len > 0 && out->data[out->len - 1] == ' ') out->data[--out->len] = '\0';
}

static void test_own(void **state) {
    (void)state;
    const char *source = getenv("QSF_SRCDIR");
    char path[1000], line[1000];
    UiBuf markdown = { 0 }, want = { 0 }, all = { 0 }, got = { 0 };
    unsigned n = 0, wrong = 0;
    (void)snprintf(path, sizeof path, "%s/tests/unit/ui/md_examples.txt", source ? source : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *arrow = strstr(line, " => ");
        if (!arrow || strncmp(line, "# MARK", 6) == 0) continue;
        unquote(line, (size_t)(arrow - line), &markdown);
        unquote(arrow + 4, strcspn(arrow + 4, "\n"), &want);
        shown(ui_buf_str(&markdown), &all);
        collapse(&all, &got);
        collapse(&want, &all);
        n++;
        if (strcmp(ui_buf_str(&all), ui_buf_str(&got)) == 0) continue;
        print_message("%s-- but was '%s'\n", line, ui_buf_str(&got));
        wrong++;
    }
    assert_int_equal(fclose(f), 0);
    ui_buf_free(&markdown);
    ui_buf_free(&want);
    ui_buf_free(&all);
    ui_buf_free(&got);
    assert_int_equal(wrong, 0);
    assert_true(n >= 300);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_own), cmocka_unit_test(test_examples) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
