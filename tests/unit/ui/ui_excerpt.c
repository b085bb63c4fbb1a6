/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Taking text out of the conversation: the clipboard, blocks of code, HTML. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/harness/app_rig.h"
#include "ui/chatview.h"
#include "ui/cliptool.h"
#include "ui/commands.h"
#include "ui/complete.h"
#include "ui/excerpt.h"
#include "ui/html.h"
#include "ui/osc.h"

static void test_osc52(void **state) {
    (void)state;
    static const char *const samples[][2] = {
        { "", "\x1b]52;c;\a" },
        { "a", "\x1b]52;c;YQ==\a" },
        { "ab", "\x1b]52;c;YWI=\a" },
        { "abc", "\x1b]52;c;YWJj\a" },
        { "\xff\xfe~?", "\x1b]52;c;//5+Pw==\a" },
        { "k\xc3\xa4se\n", "\x1b]52;c;a8Okc2UK\a" },
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        UiBuf b = { 0 };
        assert_true(ui_osc52(&b, UI_OSC_PLAIN, samples[i][0], strlen(samples[i][0])));
        assert_string_equal(ui_buf_str(&b), samples[i][1]);
        ui_buf_free(&b);
    }
}

static void test_wrapping(void **state) {
    (void)state;
    UiBuf b = { 0 };
    assert_int_equal(ui_osc_wrap("xterm-256color", NULL), UI_OSC_PLAIN);
    assert_int_equal(ui_osc_wrap(NULL, ""), UI_OSC_PLAIN);
    assert_int_equal(ui_osc_wrap("screen-256color", "/tmp/tmux-0/default,1,0"), UI_OSC_TMUX);
    assert_int_equal(ui_osc_wrap("screen.xterm-256color", NULL), UI_OSC_SCREEN);
    assert_true(ui_osc52(&b, UI_OSC_TMUX, "a", 1));
    assert_string_equal(ui_buf_str(&b), "\x1b]52;c;YQ==\a\x1bPtmux;\x1b\x1b]52;c;YQ==\a\x1b\\");
    ui_buf_clear(&b);
    /* Pieces that GNU screen passes on; together they are the sequence. */
    char text[200], whole[400] = "";
    memset(text, 'x', sizeof text);
    assert_true(ui_osc52(&b, UI_OSC_SCREEN, text, sizeof text));
    size_t n = 0;
    for (const char *p = b.data, *end; p < b.data + b.len; p = end + 2) {
        assert_memory_equal(p, "\x1bP", 2);
        end = strstr(p, "\x1b\\");
        assert_non_null(end);
        assert_true(end - p - 2 <= 76);
        memcpy(whole + n, p + 2, (size_t)(end - p) - 2);
        n += (size_t)(end - p) - 2;
    }
    assert_int_equal(n, 7 + (sizeof text + 2) / 3 * 4 + 1);
    assert_memory_equal(whole, "\x1b]52;c;eHh4", 11);
    assert_int_equal(whole[n - 1], '\a');
    ui_buf_free(&b);
}

static void test_limit(void **state) {
    (void)state;
    UiBuf b = { 0 };
    char *text = calloc(1, UI_OSC52_MAX + 1);
    assert_non_null(text);
    assert_true(ui_osc52(&b, UI_OSC_PLAIN, text, UI_OSC52_MAX));
    assert_int_equal(b.len, 7 + 99992 + 1);
    ui_buf_clear(&b);
    assert_false(ui_osc52(&b, UI_OSC_PLAIN, text, UI_OSC52_MAX + 1));
    assert_int_equal(b.len, 0);
    ui_buf_free(&b);
    free(text);
}

/* ---- commands, with a clipboard program in a folder of the test */

static char folder[400];

static void in_folder(char *dst, const char *name) { (void)snprintf(dst, 500, "%s/%s", folder, name); }

/* A program that writes its input to the file `clip`, or runs `body`. */
static void program(const char *name, const char *body) {
    char path[500];
    in_folder(path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "#!/bin/sh\n%s\n", body);
    (void)fchmod(fileno(f), 0700);
    assert_int_equal(fclose(f), 0);
}

static char *slurp(const char *name) {
    static char text[200000];
    char path[500];
    if (*name == '/')
        (void)snprintf(path, sizeof path, "%s", name);
    else
        in_folder(path, name);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("no %s", path);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

static int begin(void **state) {
    (void)snprintf(folder, sizeof folder, "%s.XXXXXX", qsf_test_tmp("take"));
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    char path[600];
    (void)snprintf(path, sizeof path, "%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    /* As if they were not installed; tests replace those that they need. */
    static const char *const tools[] = { "wl-copy", "xclip", "xsel", "pbcopy", "clip.exe" };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) program(tools[i], "exit 127");
    unsetenv("WAYLAND_DISPLAY");
    unsetenv("DISPLAY");
    ui_cliptool_seconds = 60; /* they end, however slow this machine is */
    return setup(state);
}

static const char talk[] =
    "Look:\n\n```c\nint main(void) { return 0; }\n```\n\n- item\n\n  ~~~sh x\n  ls -l\n\n  "
    "# c\n  ~~~\n";

static void talk_about_code(Fixture *x) {
    say(x, "first question");
    answer(x, talk);
    say(x, "```\nnot an answer\n```");
    answer(x, "```\nthree\n```\nand \x1b[31m red");
}

static void test_copy(void **state) {
    Fixture *x = *state;
    program("xclip", "cat >clip; echo \"$*\" >args");
    setenv("DISPLAY", ":9", 1);
    say(x, "/copy");
    assert_string_equal(last_said(x, UI_ERROR), "there is no answer to copy");
    say(x, "/copy code 1");
    assert_string_equal(last_said(x, UI_ERROR), "there is no code in this conversation");
    talk_about_code(x);
    say(x, "/copy");
    assert_string_equal(last_said(x, UI_NOTICE), "copied answer 4 (4 lines, 28 bytes) by xclip");
    assert_string_equal(slurp("clip"), "```\nthree\n```\nand ^[[31m red");
    assert_string_equal(slurp("args"), "-selection clipboard\n");
    say(x, "/copy 1");
    assert_string_equal(last_said(x, UI_NOTICE), "copied message 1 (1 line, 14 bytes) by xclip");
    assert_string_equal(slurp("clip"), "first question");
    say(x, "/copy code 1");
    assert_string_equal(last_said(x, UI_NOTICE), "copied code 1 (c, 1 line, 28 bytes) by xclip");
    assert_string_equal(slurp("clip"), "int main(void) { return 0; }");
    say(x, "/copy code  2");
    assert_string_equal(last_said(x, UI_NOTICE), "copied code 2 (sh, 3 lines, 10 bytes) by xclip");
    assert_string_equal(slurp("clip"), "ls -l\n\n# c");
    say(x, "/copy code");
    assert_string_equal(slurp("clip"), "three");
    say(x, "/copy code 4");
    assert_string_equal(last_said(x, UI_ERROR), "there is no code 4: this conversation has 3 blocks of code");
    say(x, "/copy all");
    assert_non_null(strstr(slurp("clip"), "## You\n\nfirst question\n"));
    say(x, "/copy 9");
    assert_string_equal(last_said(x, UI_ERROR), "there is no message 9");
    say(x, "/copy codes");
    assert_non_null(strstr(last_said(x, UI_ERROR), "code K or all"));
    unsetenv("DISPLAY");
    say(x, "/copy");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no wl-copy, xclip"));
}

/* The next program is tried; one that hangs does not stop the chat, and is ended by the next copy. */
static void test_tools_that_fail(void **state) {
    Fixture *x = *state;
    talk_about_code(x);
    setenv("DISPLAY", ":9", 1);
    setenv("WAYLAND_DISPLAY", "w", 1);
    program("wl-copy", "exit 3");
    program("xclip", "kill -9 $$");
    say(x, "/copy");
    assert_non_null(strstr(last_said(x, UI_ERROR), "by signal 9"));
    program("xsel", "cat >clip");
    say(x, "/copy code 3");
    assert_string_equal(last_said(x, UI_NOTICE), "copied code 3 (1 line, 5 bytes) by xsel");
    assert_string_equal(slurp("clip"), "three");
    assert_int_equal(mkfifo("never", 0600), 0);
    program("wl-copy", "echo $$ >pid; exec cat never");
    ui_cliptool_seconds = UI_TOOL_SECONDS;
    say(x, "/copy");
    ui_cliptool_seconds = 60;
    assert_non_null(strstr(last_said(x, UI_NOTICE), "by wl-copy"));
    const int fifo = open("never", O_WRONLY); /* it has begun to read */
    const pid_t pid = (pid_t)strtol(slurp("pid"), NULL, 10);
    assert_true(fifo >= 0 && pid > 0);
    program("wl-copy", "cat >clip");
    say(x, "/copy code 1");
    assert_string_equal(slurp("clip"), "int main(void) { return 0; }");
    assert_true(waitpid(pid, NULL, 0) == pid || errno == ECHILD);
    close(fifo);
}

static void test_windows(void **state) {
    Fixture *x = *state;
    program("clip.exe", "cat >clip");
    say(x, "q");
    answer(x, "a\xc3\xa4\xf0\x9f\x98\x80");
    say(x, "/copy");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "by clip.exe"));
    (void)slurp("clip");
    assert_memory_equal(slurp("clip"),
                        "\xff\xfe"
                        "a\0\xe4\0\x3d\xd8\0\xde",
                        10);
}

static void test_save_code(void **state) {
    Fixture *x = *state;
    char err[500];
    talk_about_code(x);
    say(x, "/save-code 1 main.c");
    assert_string_equal(last_said(x, UI_NOTICE), "wrote code 1 (c, 1 line, 29 bytes) to main.c");
    assert_string_equal(slurp("main.c"), "int main(void) { return 0; }\n");
    say(x, "/save-code 3 main.c");
    assert_string_equal(last_said(x, UI_ERROR), "main.c exists: /save-code! 3 main.c replaces it");
    assert_string_equal(slurp("main.c"), "int main(void) { return 0; }\n");
    say(x, "/save-code! 3 main.c");
    assert_string_equal(slurp("main.c"), "three\n");
    assert_int_equal(symlink("main.c", "link"), 0);
    say(x, "/save-code 1 link");
    assert_string_equal(slurp("main.c"), "three\n");
    (void)snprintf(err, sizeof err, "%s", last_said(x, UI_ERROR));
    assert_non_null(strstr(err, "link exists"));
    static const char *const wrong[] = { "/save-code", "/save-code 1", "/save-code x y", "/save-code 0 y" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        say(x, wrong[i]);
        assert_non_null(strstr(last_said(x, UI_ERROR), "number of a block of code"));
    }
    say(x, "/save-code 7 y");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no code 7"));
    say(x, "/save-code 1 no/such/folder");
    assert_non_null(strstr(last_said(x, UI_ERROR), "cannot write"));
}

/* The numbers of blocks stay when the conversation is forgotten or cleared in the context. */
static void test_numbers_stay(void **state) {
    Fixture *x = *state;
    program("wl-copy", "cat >clip");
    setenv("WAYLAND_DISPLAY", "w", 1);
    talk_about_code(x);
    say(x, "/forget 1");
    say(x, "/copy code 1");
    assert_string_equal(slurp("clip"), "int main(void) { return 0; }");
    say(x, "/copy code 3");
    assert_string_equal(slurp("clip"), "three");
}

static void test_completion(void **state) {
    Fixture *x = *state;
    UiCompletion c = { 0 };
    talk_about_code(x);
    program("main.c", "");
    assert_true(ui_complete(&c, &x->app, "/copy code ", 11));
    assert_int_equal(c.n, 3);
    assert_string_equal(c.choices[1].text, "2");
    assert_string_equal(c.choices[1].help, "sh");
    assert_true(ui_complete(&c, &x->app, "/save-code ", 11));
    assert_int_equal(c.n, 3);
    assert_string_equal(c.choices[0].text, "1 ");
    assert_true(ui_complete(&c, &x->app, "/save-code 1 ma", 15));
    assert_string_equal(c.choices[0].text, "main.c");
    assert_int_equal(c.from, 13);
    assert_true(ui_complete(&c, &x->app, "/copy a", 7));
    assert_string_equal(c.choices[0].text, "all");
    ui_complete_free(&c);
}

/* ---- HTML */

static const char *html(const char *markdown) {
    static UiBuf b;
    ui_buf_clear(&b);
    (void)ui_html_markdown(&b, markdown, strlen(markdown), 1);
    assert_false(b.failed);
    return ui_buf_str(&b);
}

static void test_html(void **state) {
    (void)state;
    static const char *const samples[][2] = {
        { "a & b < c > \"d\" 'e'", "<p>a &amp; b &lt; c &gt; &quot;d&quot; &#39;e&#39;</p>\n" },
        { "# T **b**", "<h3>T <strong>b</strong></h3>\n" },
        { "**a *b* `c`** ~~d~~",
          "<p><strong>a </strong><strong><em>b</em></strong><strong> </strong><strong><code>c</code></strong>"
          " "
          "<del>d</del></p>\n" },
        { "- a\n- [x] b\n  > q\n",
          "<ul>\n<li>a\n</li>\n<li class=\"task\">&#9745; b\n<blockquote>\n<p>q</p>\n"
          "</blockquote>\n</li>\n</ul>\n" },
        { "3. a\n\n4. b\n", "<ol start=\"3\">\n<li><p>a</p>\n</li>\n<li><p>b</p>\n</li>\n</ol>\n" },
        { "|a|b|\n|---|--:|\n|1|<i>|\n",
          "<table>\n<tr><th>a</th><th class=\"right\">b</th></tr>\n<tr><td>1</td>"
          "<td class=\"right\">&lt;i&gt;</td></tr>\n"
          "</table>\n" },
        { "---", "<hr>\n" },
        { "a  \nb\nc", "<p>a<br>\nb<br>\nc</p>\n" },
        { "[t](https://a.b/?x=1&y=\"2\")",
          "<p><a rel=\"noopener noreferrer\" href=\"https://a.b/?x=1&amp;y=&quot;2&quot;\">t</a></p>\n" },
        { "[t](JavaScript:alert(1)) [u](data:text/html,x) [v](/etc/passwd)", "<p>t u v (/etc/passwd)</p>\n" },
        { "a[^1] *[b](c)* d\n\n[^1]: note", "<p>a^1 (note) <em>b (c)</em> d</p>\n" },
        { "[a](http://) [b](%20https://a)", "<p>a b</p>\n" },
        { "[a](MAILTO:a@b)", "<p><a rel=\"noopener noreferrer\" href=\"MAILTO:a@b\">a</a></p>\n" },
        { "![pic](https://a.b/c.png)",
          "<p><a rel=\"noopener noreferrer\" href=\"https://a.b/c.png\">pic</a></p>\n" },
        { "<script>alert(1)</script>", "<pre>&lt;script&gt;alert(1)&lt;/script&gt;\n</pre>\n" },
        { "a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n" },
        { "```c\nint x; // <\n```",
          "<figure><figcaption>c [1]</figcaption><pre><code><span class=\"t\">int</span> x; "
          "<span class=\"c\">// "
          "&lt;</span>\n</code></pre></figure>\n" },
        { "```\"><script>\nx\n```",
          "<figure><figcaption>&quot;&gt;&lt;script&gt; [1]</figcaption><pre><code>x\n"
          "</code></pre></figure>\n" },
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        assert_string_equal(html(samples[i][0]), samples[i][1]);
}

/* Markdown of all kinds. */
static void noise(char *dst, size_t cap) {
    static const char *const parts[] = {
        "- a\n", "  - b\n", "> ",         "1. c\n",        "\n",        "```c\n", "int x;\n",
        "**",    "*",       "`",          "[l](http://x)", "<b>",       "</li>",  "|a|b|\n|---|---|\n|c|d|\n",
        "~~",    "# h\n",   "    code\n", "&lt;",          "- [ ] t\n", "a\n",    "\n\n",
        "---\n", "<!--",    "-->\n"
    };
    static unsigned seed = 7;
    size_t n = 0;
    dst[0] = '\0';
    while (n + 40 < cap && (seed = seed * 1664525u + 1013904223u) >> 27 != 0) {
        const char *p = parts[(seed >> 12) % (sizeof parts / sizeof *parts)];
        n += (size_t)snprintf(dst + n, cap - n, "%s", p);
    }
}

/* Every tag that is opened is closed, whatever the nesting. */
static void test_html_is_balanced(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char text[400] = "", open[200][16];
        size_t depth = 0;
        noise(text, sizeof text);
        for (const char *p = html(text); (p = strchr(p, '<')) != NULL;) {
            char name[16] = "";
            const bool closes = p[1] == '/';
            const size_t len = strcspn(p + 1 + closes, " >");
            assert_true(len < sizeof name);
            memcpy(name, p + 1 + closes, len);
            p = strchr(p, '>');
            assert_non_null(p);
            if (strcmp(name, "br") == 0 || strcmp(name, "hr") == 0) continue;
            if (!closes)
                (void)snprintf(open[depth++], sizeof *open, "%s", name);
            else if (depth == 0 || strcmp(open[--depth], name) != 0)
                fail_msg("</%s> in the HTML of:\n%s\n%s", name, text, html(text));
            assert_true(depth < 150);
        }
        if (depth != 0) fail_msg("<%s> is not closed in the HTML of:\n%s", open[depth - 1], text);
    }
}

static void count_code(void *arg, unsigned k, const UiMdCode *code) {
    (void)code;
    *(unsigned *)arg = k;
}

/* The numbers in the heads of blocks of code on the screen, in order from 1; returns the last one. */
static unsigned numbers_on_screen(UiChatView *v, const UiTranscript *t) {
    UiCanvas c = { 0 };
    UiBuf text = { 0 };
    unsigned last = 0, k;
    ui_chatview_sync(v, t, 60, 2000);
    ui_canvas_resize(&c, 2000, 60);
    ui_chatview_draw(v, t, &c, 0, 0);
    for (int row = 0; row < 2000; row++) {
        ui_buf_clear(&text);
        ui_canvas_text(&c, row, &text);
        const char *head = strstr(ui_buf_str(&text), "+-");
        const char *open = head ? strchr(head, '[') : NULL;
        if (open && strstr(open, "] --") && sscanf(open, "[%u]", &k) == 1) {
            if (k != last + 1) fail_msg("code %u follows code %u on the screen", k, last);
            last = k;
        }
    }
    ui_canvas_free(&c);
    ui_buf_free(&text);
    return last;
}

/* The screen and the commands number the same blocks, also after one was removed before them. */
static void test_numbers_on_the_screen(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        UiTranscript t = { 0 };
        UiChatView v = { .follow = true };
        for (int i = 0; i < 12; i++) {
            char text[400];
            unsigned n = 0;
            do noise(text, sizeof text);
            while (strchr(text, '<')); /* HTML that does not end */
            UiItem *it = ui_transcript_add(&t, i % 3 == 1 ? UI_USER : UI_ANSWER, text, strlen(text));
            assert_non_null(it);
            ui_item_close(it);
            const unsigned all = ui_excerpt_codes(&t, count_code, &n);
            assert_int_equal(all, n);
            const unsigned shown = numbers_on_screen(&v, &t);
            if (shown != n)
                fail_msg("%u blocks of code on the screen, %u are numbered; last:\n%s", shown, n, text);
        }
        unsigned n = 0;
        ui_transcript_remove(&t, t.items[0]);
        (void)ui_excerpt_codes(&t, count_code, &n);
        assert_int_equal(numbers_on_screen(&v, &t), n);
        ui_chatview_free(&v);
        ui_transcript_clear(&t);
    }
}

static void test_export_html(void **state) {
    Fixture *x = *state;
    say(x, "/system be <brief>");
    say(x, "<script>alert('q')</script>");
    answer(x, "```c\nint x;\n```\n[a](javascript:x)");
    UiItem *last = ui_transcript_last(&x->app.chat);
    (void)snprintf(last->label, sizeof last->label, "mo<del>");
    assert_true(ui_item_think(&x->app.chat, last, "<think>first </details><b>", 26, 5));
    say(x, "/export page.html");
    assert_string_equal(last_said(x, UI_NOTICE), "wrote page.html");
    const char *page = slurp("page.html");
    assert_memory_equal(page, "<!DOCTYPE html>", 15);
    static const char *const has[] = { "be &lt;brief&gt;",
                                       "&lt;script&gt;alert(&#39;q&#39;)",
                                       "mo&lt;del&gt;",
                                       "<details><summary>Thinking</summary>",
                                       "&lt;/details&gt;&lt;b&gt;",
                                       "<span class=\"t\">int</span> x;",
                                       "prefers-color-scheme: dark",
                                       "default-src 'none'" };
    for (size_t i = 0; i < sizeof has / sizeof *has; i++) {
        if (!strstr(page, has[i])) fail_msg("no %s in\n%s", has[i], page);
    }
    static const char *const lacks[] = { "<script", "javascript:", "src=", "url(", "@import", "href=" };
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) assert_null(strstr(page, lacks[i]));
}

/* Without a name: a new file each time. */
static void test_export_names(void **state) {
    Fixture *x = *state;
    say(x, "What is /etc/passwd?  Tell me!");
    answer(x, "a file");
    say(x, "/export");
    assert_string_equal(last_said(x, UI_NOTICE), "wrote What-is-etc-passwd-Tell-me.md");
    say(x, "/export");
    assert_string_equal(last_said(x, UI_NOTICE), "wrote What-is-etc-passwd-Tell-me-2.md");
    say(x, "/export html");
    assert_string_equal(last_said(x, UI_NOTICE), "wrote What-is-etc-passwd-Tell-me.html");
    say(x, "/export page.pdf");
    assert_non_null(strstr(last_said(x, UI_ERROR), "must end in .md, .txt, .json or .html"));
    say(x, "/export page.HTML");
    say(x, "/export page.HTML");
    assert_string_equal(last_said(x, UI_ERROR), "page.HTML exists: /export! page.HTML replaces it");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_osc52),
        cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_html),
        cmocka_unit_test(test_html_is_balanced),
        cmocka_unit_test(test_numbers_on_the_screen),
        T(test_copy),
        T(test_tools_that_fail),
        T(test_windows),
        T(test_save_code),
        T(test_numbers_stay),
        T(test_completion),
        T(test_export_html),
        T(test_export_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
