/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions: what it shows for each, and that it fits any window. */
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "qsf_text.h"
#include "tests/harness/app_rig.h"
#include "ui/format.h"
#include "ui/session_picker.h"
#include "ui/sessions.h"

static const char *path_of(const char *name) {
    static char path[700];
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/%s.jsonl", getenv("XDG_DATA_HOME"), name);
    return path;
}

/* A session of these lines, last used that many days after 2001-01-01 12:00 UTC. */
static void session(const char *name, int day, const char *lines) {
    char err[300] = "";
    QSFChatLog *l = qsf_chatlog_open(name, err, sizeof err);
    if (!l) fail_msg("%s", err);
    qsf_chatlog_close(l);
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
    struct timeval tv[2] = { { .tv_sec = 978350400 + day * 86400 }, { .tv_sec = 978350400 + day * 86400 } };
    assert_int_equal(utimes(path_of(name), tv), 0);
}

#define USER(text)  "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"" text "\"}\n"
#define ANSWER      "{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"yes\",\"stop\":\"eos\"}\n"
#define MODEL(path) "{\"kind\":\"model\",\"text\":\"" path "\"}\n"
#define FORGET(n)   "{\"kind\":\"forget\",\"n\":" #n "}\n"
#define COMPACT(n)  "{\"kind\":\"forget\",\"name\":\"sum\",\"text\":\"up\",\"n\":" #n "}\n"
#define UNDO(n)     "{\"kind\":\"undo\",\"n\":" #n "}\n"

static void make_all(void) {
    session("plain", 1, MODEL("/models/tiny-q4.gguf") USER("why is\\n  the sky   blue?") ANSWER ANSWER);
    session("undone", 2, USER("gone") ANSWER UNDO(2) USER("kept") ANSWER USER("more") UNDO(1));
    session("evil \xc2\x9b", 3,
            MODEL("/x/\\u001b[31mred.gguf") USER("\\u001b]0;title\\u0007 \\u202e\\u009b hi"));
    session("torn", 4, USER("whole") "not json\n{\"kind\":\"mess");
    session(
        "a name of many words that is longer than a window of forty cells", 5,
        USER(
            "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97"
            " and then long words "
            "that go on and on and on and on and on and on and on and on and on and on and on") ANSWER);
    session("empty", 6, "");
}

static char *list(const char *current, int width) {
    UiBuf b = { 0 };
    ui_sessions_list(&b, current, NULL, width, false);
    assert_false(b.failed);
    char *text = ui_strdup_len(ui_buf_str(&b), b.len);
    ui_buf_free(&b);
    return text;
}

/* The line that contains part. */
static const char *line_with(const char *text, const char *part) {
    static char line[1000];
    const char *at = strstr(text, part);
    if (!at) fail_msg("no '%s' in\n%s", part, text);
    const char *begin = at;
    while (begin > text && begin[-1] != '\n') begin--;
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(begin, "\n"), begin);
    return line;
}

/* Forgotten messages are still shown when the session is resumed: it is not empty. */
static void test_forgotten(void **state) {
    Fixture *x = *state;
    static const char *const names[] = { "forgot-all", "forgot-one", "compacted", "cleared", "asked" };
    static const size_t counts[] = { 4, 4, 6, 1, 1 };
    session("forgot-all", 1, USER("hello") ANSWER USER("more") ANSWER FORGET(2) FORGET(9));
    session("forgot-one", 2, USER("hello") ANSWER FORGET(2) USER("more") ANSWER);
    session("compacted", 3, USER("hello") ANSWER USER("more") ANSWER COMPACT(4));
    session("cleared", 4, USER("gone") ANSWER FORGET(2) "{\"kind\":\"clear\"}\n" USER("hello"));
    session("asked", 5, USER("hello"));
    char *text = list("", 120);
    for (int i = 0; i < 5; i++) {
        char want[60], command[60];
        (void)snprintf(want, sizeof want, "  %zu  ", counts[i]);
        assert_non_null(strstr(line_with(text, names[i]), want));
        assert_non_null(strstr(line_with(text, names[i]), "hello"));
        /* As many as the resumed chat has. */
        (void)snprintf(command, sizeof command, "/load %s", names[i]);
        (void)snprintf(want, sizeof want, "resumed %s: %zu message", names[i], counts[i]);
        say(x, command);
        assert_non_null(strstr(last_said(x, UI_NOTICE), want));
    }
    free(text);
}

/* Another model may have written the last answer. */
static void test_resumed_model(void **state) {
    Fixture *x = *state;
    session("models", 1, MODEL("/m/first.gguf") USER("hello") ANSWER MODEL("/m/second.gguf"));
    say(x, "/load models");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "resumed models: 2 messages, "));
    assert_non_null(strstr(last_said(x, UI_NOTICE), ", second"));
}

/* Names of models of servers may have slashes, and say little without the server. */
static void test_models_of_servers(void **state) {
    (void)state;
    session("server", 1, MODEL("connect:http://h:8080/v1#org/model.gguf") USER("hello") ANSWER);
    session("prefix", 2, MODEL("connect:https://h/api/v1#n\\u00e4me x") USER("hello") ANSWER);
    session("socket", 3, MODEL("connect:unix:/run/a.sock#guide") USER("hello") ANSWER);
    session("damaged", 4, MODEL("connect:") USER("hello") ANSWER);
    char *text = list("", 200);
    assert_non_null(strstr(line_with(text, "server"), "org/model.gguf at h:8080"));
    assert_non_null(strstr(line_with(text, "prefix"), " x at h/api"));
    assert_non_null(strstr(line_with(text, "socket"), "guide at unix:/run/a.sock"));
    assert_non_null(strstr(line_with(text, "damaged"), "hello"));
    free(text);
}

/* The text of a file that goes with a message is not what the user said. */
static void test_title_without_files(void **state) {
    Fixture *x = *state;
    char title[100];
    session("files", 1, USER("look at @~/a.c please\\n\\n/home/me/a.c:\\n```c\\nint x;\\n```") ANSWER);
    session("none", 2, USER("what is this:\\n\\nhere:\\n```c\\nint x;\\n```") ANSWER);
    char *text = list("", 200);
    assert_non_null(strstr(line_with(text, "files"), "look at @~/a.c please"));
    assert_null(strstr(line_with(text, "files"), "int x"));
    assert_non_null(strstr(line_with(text, "none "), "int x"));
    free(text);
    say(x, "/load files");
    ui_app_title(&x->app, title, sizeof title);
    assert_string_equal(title, "look at @~/a.c please");
}

/* Nothing was said: no file is left, unless the user asked for it. */
static void test_empty_sessions(void **state) {
    Fixture *x = *state;
    static const struct {
        const char *line;
        bool left;
    } cases[] = {
        { "/set temperature 0.3", false }, { "/help", false },       { "/system Be brief.", true },
        { "/rename A title", true },       { "/save other", false }, { "/as user hello", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "begun%zu", i);
        x->app.session.on = true;
        assert_true(ui_app_resume(&x->app, name));
        assert_int_equal(access(path_of(name), F_OK), 0);
        say(x, cases[i].line);
        ui_session_close(&x->app.session);
        if ((access(path_of(name), F_OK) == 0) != cases[i].left) fail_msg("%s", cases[i].line);
    }
    /* One that was there before, with messages that were removed, stays. */
    session("old", 1, USER("hello") ANSWER UNDO(2));
    assert_true(ui_app_resume(&x->app, "old"));
    ui_session_close(&x->app.session);
    assert_int_equal(access(path_of("old"), F_OK), 0);
}

static void test_messages(void **state) {
    (void)state;
    make_all();
    char *text = list("undone", 120);
    static const char *const order[] = { "empty", "a name of many", "torn", "evil", "undone", "plain" };
    for (size_t i = 1; i < 6; i++) assert_true(strstr(text, order[i - 1]) < strstr(text, order[i]));
    assert_non_null(strstr(line_with(text, "plain"), "2001-01-02 "));
    assert_non_null(strstr(line_with(text, "plain"), "  2  tiny-q4"));
    assert_non_null(strstr(line_with(text, "plain"), "  why is the sky blue?"));
    assert_non_null(strstr(line_with(text, "undone"), "* undone"));
    assert_non_null(strstr(line_with(text, "undone"), "  2  "));
    assert_non_null(strstr(line_with(text, "undone"), "  kept"));
    assert_non_null(strstr(line_with(text, "torn"), "[2 damaged lines] whole"));
    /* The columns of all lines start at the same place. */
    assert_int_equal(strstr(line_with(text, "plain"), "2001") - line_with(text, "plain"),
                     strstr(line_with(text, "undone"), "2001") - line_with(text, "undone"));
    free(text);
}

static void keep(void *arg, UiKind kind, const char *text) {
    (void)kind;
    char **kept = arg;
    free(*kept);
    *kept = ui_strdup_len(text, strlen(text));
}

/* What a command says last in line mode. */
static char *list_in_lines(Fixture *x, const char *command) {
    char *kept = NULL;
    x->app.full_screen = false;
    x->app.hooks = (UiHooks){ .arg = &kept, .said = keep };
    say(x, command);
    x->app.hooks = (UiHooks){ 0 };
    x->app.full_screen = true;
    assert_non_null(kept);
    return kept;
}

/* Titles and texts are searched, as far as they are part of the conversation; also long ones. */
static void test_search(void **state) {
    Fixture *x = *state;
    char *long_text = malloc(20001);
    memset(long_text, 'x', 20000);
    long_text[20000] = '\0';
    memcpy(long_text + 19000, " needle ", 8);
    UiBuf b = { 0 };
    ui_buf_printf(&b, "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"%s\"}\n", long_text);
    session("long", 1, ui_buf_str(&b));
    session("titled", 2, USER("hello") "{\"kind\":\"set\",\"name\":\"title\",\"text\":\"The Needle\"}\n");
    session("undone", 3, USER("hello") ANSWER USER("needle") ANSWER UNDO(2));
    session("forgotten", 4, USER("needle") ANSWER FORGET(2) USER("hello"));
    session("killed", 5, USER("hello") "{\"kind\":\"part\",\"text\":\"a NEEDLE\"}\n");
    session("cleared", 6, USER("needle") ANSWER "{\"kind\":\"clear\"}\n");
    char *said = list_in_lines(x, "/sessions n[e]+dle");
    static const char *const found[] = { "  long ", "  titled ", "  forgotten ", "  killed " };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (!strstr(said, found[i])) fail_msg("no%sin\n%s", found[i], said);
    assert_null(strstr(said, "undone"));
    assert_null(strstr(said, "cleared"));
    assert_non_null(strstr(line_with(said, "titled"), "  The Needle"));
    free(said);
    said = list_in_lines(x, "/sessions NEEDLE"); /* a capital letter: case counts */
    assert_non_null(strstr(said, "killed"));
    assert_null(strstr(said, "long"));
    free(said);
    said = list_in_lines(x, "/sessions nothing like it");
    assert_string_equal(said, "nothing found");
    free(said);
    said = list_in_lines(x, "/sessions (a");
    assert_non_null(strstr(said, "(a: "));
    free(said);
    said = list_in_lines(x, "/sessions (x+x+)+y"); /* takes exponential time */
    assert_string_equal(said, "nothing found");
    free(said);
    ui_buf_free(&b);
    free(long_text);
}

/* The title: the first words, or what /rename says, also in a copy, in another file and after a kill. */
static void test_titles(void **state) {
    Fixture *x = *state;
    char title[100];
    x->app.session.on = true;
    ui_session_use(&x->app.session, "renamed");
    say(x, "why is\n  the sky blue?"), answer(x, "because");
    ui_app_title(&x->app, title, sizeof title);
    assert_string_equal(title, "why is   the sky blue?");
    say(x, "/rename The \x1b sky");
    assert_string_equal(last_said(x, UI_NOTICE), "the title is now: The ^[ sky");
    char *text = list("renamed", 120); /* the chat has not been closed */
    assert_non_null(strstr(line_with(text, "renamed"), "  The ^[ sky"));
    free(text);
    say(x, "/save copy");
    say(x, "/new other");
    ui_app_title(&x->app, title, sizeof title);
    assert_string_equal(title, "");
    say(x, "/load copy");
    ui_app_title(&x->app, title, sizeof title);
    assert_string_equal(title, "The ^[ sky");
    assert_int_equal(unlink(path_of("copy")), 0); /* it is written again */
    say(x, "more"), answer(x, "yes");
    text = list("copy", 120);
    assert_non_null(strstr(line_with(text, "copy"), "  The ^[ sky"));
    free(text);
    char name[100], lots[800];
    memset(lots, 0, sizeof lots);
    for (size_t i = 0; i < 260; i++) memcpy(lots + i * 3, "\xe6\xbc\xa2", 3);
    UiBuf b = { 0 };
    ui_buf_printf(&b, "/rename %s", lots);
    say(x, ui_buf_str(&b));
    ui_buf_free(&b);
    ui_app_title(&x->app, name, sizeof name);
    assert_int_equal(strlen(name) % 3, 0);
    assert_true(strlen(name) > 90);
}

static void type(UiPicker *p, const char *text) {
    for (; *text; text++) {
        UiKey k = { .n = 1, .bytes = { *text } };
        assert_int_equal(ui_picker_key(p, &k, 20), UI_PICK_NOTHING);
    }
}

static UiPick press(UiPicker *p, const char *bytes, UiAction action) {
    UiKey k = { .n = strlen(bytes), .action = action };
    memcpy(k.bytes, bytes, k.n);
    return ui_picker_key(p, &k, 20);
}

static void picker_text(UiPicker *p, int rows, int cols, UiBuf *b) {
    UiCanvas c = { 0 };
    assert_true(ui_canvas_resize(&c, rows, cols));
    ui_picker_draw(p, &c, 0, rows, cols, 978350400 + 7 * 86400);
    ui_buf_clear(b);
    for (int i = 0; i < rows; i++) {
        ui_canvas_text(&c, i, b);
        ui_buf_puts(b, "\n");
    }
    ui_canvas_free(&c);
}

static void test_picker(void **state) {
    (void)state;
    UiPicker p = { 0 };
    UiBuf b = { 0 };
    assert_false(ui_picker_open(&p, "", ""));
    make_all();
    assert_true(ui_picker_open(&p, "undone", ""));
    assert_int_equal(p.at.n, 6);
    assert_string_equal(ui_picker_name(&p), "empty"); /* the newest */
    assert_int_equal(press(&p, "\x1b[B", UI_DO_EDIT), UI_PICK_NOTHING);
    assert_int_equal(press(&p, "\x1b[B", UI_DO_EDIT), UI_PICK_NOTHING);
    assert_string_equal(ui_picker_name(&p), "torn");
    assert_int_equal(press(&p, "\r", UI_DO_EDIT), UI_PICK_LOAD);
    for (int cols = 1; cols <= 120; cols++) picker_text(&p, cols % 25, cols, &b); /* nothing outside */
    picker_text(&p, 12, 100, &b);
    assert_non_null(strstr(line_with(ui_buf_str(&b), "sky blue"), "tiny-q4"));
    assert_non_null(strstr(line_with(ui_buf_str(&b), "sky blue"), "2 msg"));
    assert_non_null(strstr(line_with(ui_buf_str(&b), "sky blue"), "6 days ago"));
    assert_non_null(strstr(line_with(ui_buf_str(&b), "whole"), "> [2 damaged lines] whole"));
    assert_non_null(strstr(line_with(ui_buf_str(&b), "kept"), " *kept"));
    type(&p, "TINY sky");
    assert_int_equal(p.at.n, 1);
    assert_string_equal(ui_picker_name(&p), "plain");
    picker_text(&p, 12, 100, &b);
    assert_non_null(strstr(ui_buf_str(&b), "TINY sky_"));
    assert_non_null(strstr(ui_buf_str(&b), "1 of 1 (6 without the filter)"));
    type(&p, "\xc3\xa4");
    assert_int_equal(p.at.n, 0);
    assert_null(ui_picker_name(&p));
    assert_int_equal(press(&p, "\r", UI_DO_EDIT), UI_PICK_NOTHING);
    type(&p, "\x7f"); /* one character of two bytes */
    assert_int_equal(p.at.n, 1);
    /* Del asks; only y deletes. */
    assert_int_equal(press(&p, "\x1b[3~", UI_DO_EDIT), UI_PICK_NOTHING);
    picker_text(&p, 12, 100, &b);
    assert_non_null(strstr(ui_buf_str(&b), "delete plain, 2 messages?"));
    assert_int_equal(press(&p, "n", UI_DO_EDIT), UI_PICK_NOTHING);
    assert_int_equal(press(&p, "y", UI_DO_EDIT), UI_PICK_NOTHING); /* it is text again */
    type(&p, "\x15");
    assert_int_equal(p.at.n, 6);
    assert_int_equal(press(&p, "\x1b[3~", UI_DO_EDIT), UI_PICK_NOTHING);
    assert_int_equal(press(&p, "y", UI_DO_EDIT), UI_PICK_DELETE);
    assert_string_equal(ui_picker_name(&p), "empty");
    char err[300];
    assert_true(qsf_chatlog_delete("empty", err, sizeof err));
    ui_picker_refresh(&p);
    assert_int_equal(p.at.n, 5);
    assert_int_equal(press(&p, "\x1b", UI_DO_ESCAPE), UI_PICK_NOTHING);
    assert_false(p.open);
    assert_true(ui_picker_open(&p, "", "sky"));
    assert_int_equal(p.at.n, 1);
    ui_picker_close(&p);
    ui_buf_free(&b);
}

static void test_ago(void **state) {
    (void)state;
    char text[40];
    const double noon = 978350400 + 12 * 3600; /* 2001-01-02 00:00 UTC; TZ is UTC */
    setenv("TZ", "UTC", 1);
    tzset();
    static const struct {
        double ago;
        const char *want;
    } rows[] = { { 5, "just now" },      { 90, "1 min ago" },         { 7300, "2 h ago" },
                 { 86400, "yesterday" }, { 3 * 86400, "3 days ago" }, { 9 * 86400, "2000-12-24" },
                 { -90, "2001-01-02" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ui_format_ago(noon + 12 * 3600 - rows[i].ago, noon + 12 * 3600, text, sizeof text);
        assert_string_equal(text, rows[i].want);
    }
    ui_format_ago(0, noon, text, sizeof text);
    assert_string_equal(text, "");
}

static void test_context_in_use(void **state) {
    Fixture *x = *state;
    char err[300] = "";
    make_all();
    QSFChatLog *l = qsf_chatlog_open("plain", err, sizeof err);
    assert_non_null(l);
    char *text = list("", 100);
    assert_non_null(strstr(line_with(text, "plain"), "[in use] why is"));
    free(text);
    text = list("plain", 100); /* it belongs to this chat */
    assert_null(strstr(text, "in use"));
    free(text);
    qsf_chatlog_close(l);
    char *said = list_in_lines(x, "/sessions");
    assert_non_null(strstr(said, "why is"));
    assert_null(strstr(said, "in use"));
    free(said);
}

static void expect_fits(const char *text, int width) {
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n");
        if ((int)qsf_text_width(p, len) > width) fail_msg("wider than %d: %.*s", width, (int)len, p);
        for (size_t i = 0; i < len; i++) assert_true((unsigned char)p[i] >= 0x20 && p[i] != 0x7f);
        p += len + (p[len] == '\n');
    }
    assert_null(strstr(text, "\xc2\x9b"));
    assert_null(strstr(text, "\xe2\x80\xae"));
}

static void test_fits(void **state) {
    (void)state;
    make_all();
    for (int width = 40; width <= 200; width++) {
        char *text = list("plain", width);
        expect_fits(text, width);
        if (width == 40) {
            assert_non_null(strstr(line_with(text, "* plain"), "2001-01-02"));
            assert_non_null(strstr(text, "\n    2 messages, tiny-q4, why is"));
        } else if (width == 68) {
            assert_non_null(strstr(line_with(text, "* plain"), "why is"));
        }
        free(text);
    }
}

static void snapshot(const char *name, off_t bytes) {
    char *path = qsf_chatlog_snapshot(name);
    assert_non_null(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), bytes), 0);
    fclose(f);
    free(path);
}

static void test_snapshots(void **state) {
    (void)state;
    make_all();
    char *text = list("", 120);
    assert_null(strstr(text, "snapshot"));
    free(text);
    snapshot("plain", 88 << 20);
    snapshot("undone", 3 << 19);
    snapshot("deleted", 1 << 20);
    qsf_chatlog_drop_snapshots();
    char *gone = qsf_chatlog_snapshot("deleted"), *kept = qsf_chatlog_snapshot("plain");
    assert_int_not_equal(access(gone, F_OK), 0);
    assert_int_equal(access(kept, F_OK), 0);
    free(gone);
    free(kept);
    for (int width = 40; width <= 200; width++) {
        text = list("plain", width);
        expect_fits(text, width);
        assert_non_null(strstr(text, "\n  all snapshots: 89.5 MB"));
        if (width < 78)
            assert_non_null(strstr(text, "2 messages, 88.0 MB, "));
        else
            assert_non_null(strstr(line_with(text, "* plain"), "       2   88.0 MB  "));
        if (width >= 78) assert_non_null(strstr(line_with(text, "torn"), "       1         -  "));
        free(text);
    }
}

static void test_none(void **state) {
    Fixture *x = *state;
    char *said = list_in_lines(x, "/sessions");
    assert_string_equal(said, "no sessions yet");
    free(said);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_none),
                                        T(test_messages),
                                        T(test_resumed_model),
                                        T(test_models_of_servers),
                                        T(test_title_without_files),
                                        T(test_empty_sessions),
                                        T(test_forgotten),
                                        T(test_context_in_use),
                                        T(test_fits),
                                        T(test_snapshots),
                                        T(test_search),
                                        T(test_titles),
                                        T(test_picker),
                                        T(test_ago) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
