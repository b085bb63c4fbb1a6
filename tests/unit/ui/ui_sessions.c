/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions: what it shows for each, and that it fits any window. */
#include <sys/stat.h>
#include <sys/time.h>

#include "qsf_text.h"
#include "tests/harness/app_rig.h"
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
    ui_sessions_list(&b, current, width, false);
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
        (void)snprintf(want, sizeof want, "session %s, %zu message", names[i], counts[i]);
        say(x, command);
        assert_non_null(strstr(last_said(x, UI_NOTICE), want));
    }
    free(text);
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
    say(x, "/sessions");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "why is"));
    assert_null(strstr(last_said(x, UI_OUTPUT), "in use"));
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
    say(x, "/sessions");
    assert_string_equal(last_said(x, UI_OUTPUT), "no sessions yet");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_none),           T(test_messages), T(test_forgotten),
                                        T(test_context_in_use), T(test_fits),     T(test_snapshots) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
