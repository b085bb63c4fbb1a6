/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text files that go with a message. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/app_rig.h"
#include "ui/complete.h"
#include "ui/compose/mention.h"

static void put(const char *name, const void *data, size_t len) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* In a directory with a few files. */
static int begin(void **state) {
    char dir[400];
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("attach"));
    if (!mkdtemp(dir) || chdir(dir) != 0 || mkdir("sub", 0700) != 0) return 1;
    put("x.c", "int x;\n", 7);
    put("with blank.txt", "a ``` b", 7);
    put("utf16", "\xff\xfeh\0\xe9\0", 6);
    put("binary", "a\0b", 3);
    put("sub/a.txt", "A\n", 2);
    put("sub/b.txt", "B\n", 2);
    put("sub/c.bin", "\1", 1);
    return setup(state);
}

/* The paths that a text names, with | after each. */
static const char *named(const char *text) {
    static char list[400];
    UiMentions m = { .text = text, .len = strlen(text) };
    list[0] = '\0';
    while (ui_mention_next(&m))
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s|", m.path);
    return list;
}

static void test_mentions(void **state) {
    (void)state;
    static const struct {
        const char *text, *paths;
    } rows[] = {
        { "@x.c", "x.c|" },
        { "see @x.c, (@utf16) and @sub/a.txt!?", "x.c|utf16|sub/a.txt|" },
        { "two\n@x.c\nlines", "x.c|" },
        { "@\"with blank.txt\" @with\\ blank.txt.", "with blank.txt|with blank.txt|" },
        { "@nobody @ @, a@x.c @@x.c @\"x.c @\"no\"", "" },
        { "@sub @x.c/", "sub|" },
        { "@", "" },
        { "@\"odd\\nna\\\"me\"", "odd\nna\"me|" },
        { "@\"back\\slash\" @\"back\\\\slash\"", "back\\slash|back\\slash|" },
        { "", "" },
    };
    put("odd\nna\"me", "odd", 3);
    put("back\\slash", "b", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(named(rows[i].text), rows[i].paths) != 0)
            fail_msg("'%s' names %s", rows[i].text, named(rows[i].text));
}

static const char *sent(const Fixture *x) {
    const UiItem *it = ui_transcript_last_of(&x->app.chat, UI_USER);
    return it ? ui_buf_str(&it->raw) : "";
}

/* The word that looks like a file and is none. */
static void check_missing(const char *text, const char *missing) {
    UiMentions m = { .text = text, .len = strlen(text) };
    while (ui_mention_next(&m)) {
    }
    assert_int_equal(m.missing_len, strlen(missing));
    assert_memory_equal(text + m.missing, missing, m.missing_len);
}

static void test_missing(void **state) {
    Fixture *x = *state;
    check_missing("see @x.c, @y.c! and @sub/z", "y.c");
    check_missing("@\"no such file\"", "no such file");
    check_missing("@somebody, @x.c: @@y.c a@y.c @ ... @.", "");
    say(x, "see (@sub/z.txt)");
    assert_string_equal(last_said(x, UI_NOTICE), "there is no file sub/z.txt: it is sent as text");
    assert_string_equal(sent(x), "see (@sub/z.txt)");
}

/* What the model gets, and what the screen shows. */
static void test_send(void **state) {
    Fixture *x = *state;
    size_t len;
    say(x, "explain @x.c and @\"with blank.txt\" or @x.c");
    assert_string_equal(sent(x), "explain @x.c and @\"with blank.txt\" or @x.c\n\nx.c:\n```c\nint x;\n```"
                                 "\n\nwith blank.txt:\n````txt\na ``` b\n````");
    const char *shown = ui_item_shown(ui_transcript_last_of(&x->app.chat, UI_USER), &len);
    assert_non_null(strstr(shown, "or @x.c\n[attached: x.c 7 B, 7 tokens]\n[attached: with blank.txt 7 B, "));
    answer(x, "done");
    say(x, "@utf16");
    assert_string_equal(sent(x), "@utf16\n\nutf16:\n```\nh\xc3\xa9\n```");
    answer(x, "done");
    say(x, "mail a@x.c");
    assert_string_equal(sent(x), "mail a@x.c");
}

static void test_refused(void **state) {
    Fixture *x = *state;
    assert_false(ui_app_submit(&x->app, "what is @binary", 15));
    assert_string_equal(last_said(x, UI_ERROR), "binary: it is not text and cannot be attached");
    say(x, "/read http://x.y/z");
    assert_non_null(strstr(last_said(x, UI_ERROR), "http://x.y/z is a URL: download it first"));
    assert_false(ui_app_submit(&x->app, "what is @sub", 12));
    assert_non_null(strstr(last_said(x, UI_ERROR), "sub: it is a directory: /read with a pattern"));
    assert_int_equal(chmod("x.c", 0), 0);
    if (access("x.c", R_OK) != 0) {
        assert_false(ui_app_submit(&x->app, "@x.c", 4));
        assert_string_equal(last_said(x, UI_ERROR), "x.c: Permission denied");
    }
    assert_int_equal(x->engine.n_submits, 0);
}

/* The RAM budget and the context limit what can be attached. */
static void test_limits(void **state) {
    Fixture *x = *state;
    static char big[200000];
    memset(big, 'a', sizeof big);
    put("big", big, sizeof big);
    x->engine.stats.ctx_size = 1000;
    ui_app_tick(&x->app, 1);
    assert_false(ui_app_submit(&x->app, "@big", 4));
    assert_true(x->app.not_sent > 1000);
    x->engine.stats.ctx_size = 0;
    x->engine.stats.budget = (uint64_t)2 << 20;
    x->engine.stats.mem[0] = (QSFMemRow){ "weights", 1 << 20, 1 << 20 };
    x->engine.stats.n_mem = 1;
    ui_app_tick(&x->app, 2);
    assert_false(ui_app_submit(&x->app, "@big", 4));
    assert_non_null(strstr(last_said(x, UI_ERROR), "RAM budget exceeded: the message has 0.19 MB"));
    assert_int_equal(x->engine.n_submits, 0);
    /* Before it is sent, the list says so. */
    char text[200];
    ui_attach_look(&x->app, "@big", 4);
    assert_int_equal(x->app.attach.n, 1);
    ui_attach_describe(x->app.attach.listed[0], text, sizeof text);
    assert_non_null(strstr(text, ": longer than the RAM budget has space for"));
}

/* A file is looked at again only when it changes. */
static void test_look(void **state) {
    Fixture *x = *state;
    const UiAttach *at = &x->app.attach;
    char text[100];
    ui_attach_look(&x->app, "@x.c @utf16", 11);
    assert_int_equal(at->n, 2);
    const int counts = x->engine.n_counts;
    ui_attach_look(&x->app, "@utf16 @x.c", 11);
    assert_int_equal(x->engine.n_counts, counts);
    assert_string_equal(at->listed[0]->path, "utf16");
    assert_int_equal(ui_attach_tokens(&x->app), 7 + 3);
    put("x.c", "int xyz;\n", 9);
    ui_attach_look(&x->app, "@x.c", 4);
    ui_attach_describe(at->listed[0], text, sizeof text);
    assert_string_equal(text, "x.c 9 B, 9 tokens");
    ui_attach_look(&x->app, "/read @x.c", 10);
    assert_int_equal(at->n, 0);
    /* More files than are remembered. */
    for (int i = 0; i < UI_ATTACH_MAX + 10; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "@f%d", i);
        put(name + 1, "text", 4);
        ui_attach_look(&x->app, name, strlen(name));
        assert_int_equal(at->n, 1);
        assert_string_equal(at->listed[0]->path, name + 1);
    }
    assert_int_equal(at->n_known, UI_ATTACH_MAX);
}

static char noticed[400]; /* last notice in line mode */
static int n_noticed;

static void on_said(void *arg, UiKind kind, const char *text) {
    (void)arg;
    if (kind != UI_NOTICE) return;
    (void)snprintf(noticed, sizeof noticed, "%s", text);
    n_noticed++;
}

static void use_lines(Fixture *x) {
    x->app.full_screen = false;
    x->app.hooks.said = on_said;
    noticed[0] = '\0';
}

/* On the screen /read mentions the files in the input; in lines, in the next message. */
static void test_read(void **state) {
    Fixture *x = *state;
    say(x, "/read sub/*");
    assert_string_equal(ui_buf_str(&x->app.draft), "@sub/a.txt @sub/b.txt ");
    assert_string_equal(last_said(x, UI_ERROR), "sub/c.bin: it is not text and cannot be attached");
    say(x, "/read with blank.txt");
    assert_non_null(strstr(ui_buf_str(&x->app.draft), "@\"with blank.txt\" "));
    say(x, "/read nothing*");
    assert_string_equal(last_said(x, UI_ERROR), "/read: no file is named nothing*; nothing was attached");
    say(x, "/read sub");
    assert_non_null(strstr(last_said(x, UI_ERROR), "it is a directory"));
    say(x, "/read");
    assert_string_equal(last_said(x, UI_ERROR), "/read expects a file, or a pattern such as src/*.c");
    for (int i = 0; i < UI_ATTACH_MAX + 1; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "many%d", i);
        put(name, "text", 4);
    }
    say(x, "/read many*");
    assert_string_equal(last_said(x, UI_ERROR),
                        "/read: more than 64 files are named many*; nothing was attached");
    use_lines(x);
    say(x, "/read x.c");
    assert_string_equal(noticed, "attached to the next message: x.c 7 B, 7 tokens");
    say(x, "explain");
    assert_string_equal(sent(x), "explain\n@x.c\n\nx.c:\n```c\nint x;\n```");
    answer(x, "done");
    say(x, "again");
    assert_string_equal(sent(x), "again");
}

/* Patterns in every part of a path. */
static void test_patterns(void **state) {
    Fixture *x = *state;
    UiBuf *draft = &x->app.draft;
    assert_true(mkdir("sub2", 0700) == 0 && mkdir("sub2/deep", 0700) == 0 &&
                mkdir("sub2/deep/er", 0700) == 0);
    put("sub2/a.txt", "A\n", 2);
    put("sub2/.hidden.txt", "H\n", 2);
    put("sub2/deep/line\nbreak.txt", "L\n", 2);
    assert_int_equal(symlink(".", "sub2/deep/loop"), 0);
    static const struct {
        const char *typed, *mentions;
    } rows[] = {
        { "sub*/a.txt", "@sub/a.txt @sub2/a.txt " },
        { "./s?b[12]/*.txt", "@./sub2/a.txt " },
        { "sub2/*/*.txt", "@\"sub2/deep/line\\nbreak.txt\" " },
        { "*/*/line*", "@\"sub2/deep/line\\nbreak.txt\" " },
        { "sub2/.*.txt", "@sub2/.hidden.txt " },
        { "sub2/*/loop/loop/line*", "@\"sub2/deep/loop/loop/line\\nbreak.txt\" " },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ui_buf_clear(draft);
        char line[100];
        (void)snprintf(line, sizeof line, "/read %s", rows[i].typed);
        say(x, line);
        assert_string_equal(ui_buf_str(draft), rows[i].mentions);
    }
    say(x, "/read **/a.txt");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/read: ** is not supported: write a * for each folder"));
    say(x, "/read sub*");
    assert_string_equal(last_said(x, UI_ERROR),
                        "/read: only folders are named sub*: sub*/* means their files; nothing was attached");
    say(x, "/read */*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*");
    assert_non_null(strstr(last_said(x, UI_ERROR), "more than 16 parts"));
    /* What is sent can be read again. */
    ui_buf_clear(draft);
    say(x, "/read sub2/*/*.txt");
    say(x, ui_buf_str(draft));
    assert_non_null(strstr(sent(x), "\n\nsub2/deep/line break.txt:\n```txt\nL\n```"));
}

/* Files of the command line: notice of all of them, with their sum, when the model is loaded. */
static void test_first_message(void **state) {
    Fixture *x = *state;
    size_t len;
    use_lines(x);
    x->app.model_ready = false;
    assert_true(ui_attach_add(&x->app, "x.c"));
    assert_true(ui_attach_add(&x->app, "with blank.txt"));
    ui_attach_announce(&x->app);
    assert_string_equal(noticed, "");
    x->app.model_ready = true;
    ui_attach_announce(&x->app);
    assert_string_equal(noticed, "2 files: 14 B, 14 tokens");
    const int n = n_noticed;
    ui_attach_announce(&x->app); /* once */
    assert_int_equal(n_noticed, n);
    assert_true(ui_attach_add(&x->app, "utf16"));
    ui_attach_announce(&x->app);
    assert_string_equal(noticed, "3 files: 17 B, 17 tokens");
    say(x, "explain");
    const char *shown = ui_item_shown(ui_transcript_last_of(&x->app.chat, UI_USER), &len);
    assert_non_null(strstr(shown, "tokens]\n[3 files: 17 B, 17 tokens]"));
    answer(x, "done");
    assert_true(ui_attach_add(&x->app, "utf16"));
    ui_attach_announce(&x->app);
    assert_string_equal(noticed, "attached to the next message: utf16 3 B, 3 tokens");
}

/* A queued message reads its files when it is sent; if that fails, it waits. */
static void test_queued(void **state) {
    Fixture *x = *state;
    say(x, "one");
    assert_false(ui_app_submit(&x->app, "@binary", 7));
    assert_true(ui_app_submit(&x->app, "@x.c", 4));
    assert_true(ui_app_submit(&x->app, "@utf16", 6));
    put("x.c", "int y;\n", 7);
    answer(x, "done");
    assert_string_equal(sent(x), "@x.c\n\nx.c:\n```c\nint y;\n```");
    put("utf16", "\0", 1);
    answer(x, "done");
    assert_int_equal(x->engine.n_submits, 2);
    assert_int_equal(x->app.queue.n, 1);
    assert_true(x->app.queue.held);
    assert_string_equal(last_said(x, UI_ERROR), "utf16: it is not text and cannot be attached");
}

/* Tab completes the path after an @. */
static void test_complete(void **state) {
    Fixture *x = *state;
    UiCompletion c = { 0 };
    assert_true(ui_complete(&c, &x->app, "see @x", 6));
    assert_int_equal(c.from, 5);
    assert_string_equal(c.choices[0].text, "x.c ");
    assert_true(ui_complete(&c, &x->app, "two\nlines @sub/", 15));
    assert_int_equal(c.n, 3);
    assert_string_equal(c.choices[0].text, "sub/a.txt ");
    assert_true(ui_complete(&c, &x->app, "@wi", 3));
    assert_string_equal(c.choices[0].text, "\"with blank.txt\" ");
    assert_true(ui_complete(&c, &x->app, "@\"with bl", 9));
    assert_int_equal(c.from, 1);
    assert_string_equal(c.choices[0].text, "\"with blank.txt\" ");
    assert_true(ui_complete(&c, &x->app, "@su", 3));
    assert_string_equal(c.choices[0].text, "sub/");
    assert_false(ui_complete(&c, &x->app, "a@x", 3));
    assert_false(ui_complete(&c, &x->app, "@x.c and", 8));
    assert_false(ui_complete(&c, &x->app, "@@x", 3));
    ui_complete_free(&c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_mentions),      T(test_missing), T(test_send),     T(test_refused),
        T(test_limits),        T(test_look),    T(test_read),     T(test_patterns),
        T(test_first_message), T(test_queued),  T(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
