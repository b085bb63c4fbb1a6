/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports of unusual text: JSON remains valid, and control characters are removed. */
#include "src/base/json.h"
#include "tests/harness/app_rig.h"

static char path[500];

static char *exported(Fixture *x, const char *ending) {
    char command[520];
    (void)snprintf(path, sizeof path, "%s.%s", qsf_test_tmp("export"), ending);
    unlink(path);
    (void)snprintf(command, sizeof command, "/export %s", path);
    say(x, command);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 100000);
    assert_non_null(text);
    assert_true(fread(text, 1, 99999, f) > 0);
    fclose(f);
    unlink(path);
    return text;
}

static QsfJson *parsed(Fixture *x) {
    QsfErr err = { 0 };
    char *text = exported(x, "json");
    QsfJson *v = qsf_json_parse(text, strlen(text), &err);
    if (!v && strstr(err.msg, "jansson")) {
        free(text);
        skip();
    }
    if (!v) fail_msg("%s in %s", err.msg, text);
    free(text);
    return v;
}

static const char *string_at(const QsfJson *v, size_t i, const char *key) {
    size_t len;
    const char *s = qsf_json_string(qsf_json_get(qsf_json_at(qsf_json_get(v, "messages"), i), key), &len);
    return s ? s : "(none)";
}

/* Every single byte, pairs that look like UTF-8, and truncated ones. */
static void test_any_bytes(void **state) {
    Fixture *x = *state;
    char all[256 * 4 + 1];
    size_t n = 0;
    for (int c = 1; c < 256; c++) {
        all[n++] = (char)c;
        all[n++] = 'x';
        all[n++] = (char)c;
        all[n++] = (char)0x85;
    }
    all[n] = '\0';
    say(x, "/system \"quoted\" \x1b[31m \xff \xc2\x9b");
    say(x, "question \\ \" \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82");
    answer(x, all);
    ui_session_use(&x->app.session, "na\"me \xc2\x9b \xfe");
    UiItem *last = ui_transcript_last(&x->app.chat);
    (void)snprintf(last->label, sizeof last->label, "mo\"del\x1b");
    (void)snprintf(x->app.stats.model_name, sizeof x->app.stats.model_name, "mo\"del\x1b\xff");
    last->time = 1e300;
    QsfJson *v = parsed(x);
    assert_string_equal(string_at(v, 0, "content"), "\"quoted\" \x1b[31m \xef\xbf\xbd \xc2\x9b");
    assert_string_equal(string_at(v, 2, "time"), "");
    assert_non_null(strstr(string_at(v, 2, "content"), "\x1bx\x1b"));
    qsf_json_free(v);
}

/* The reason why an answer ended is text from the session file. */
static void test_stop_of_the_file(void **state) {
    Fixture *x = *state;
    char err[300] = "";
    static const char stop[] = "e\"os\\\n\x1b\xff";
    QSFChatLog *l = qsf_chatlog_open("odd", err, sizeof err);
    assert_non_null(l);
    QSFLogRecord r = { .kind = QSF_LOG_MESSAGE, .role = "user", .text = "q", .len = 1 };
    assert_true(qsf_chatlog_append(l, &r, err, sizeof err));
    r = (QSFLogRecord){ .kind = QSF_LOG_MESSAGE, .role = "assistant", .text = "a", .len = 1, .stop = stop };
    assert_true(qsf_chatlog_append(l, &r, err, sizeof err));
    qsf_chatlog_close(l);
    assert_true(ui_app_resume(&x->app, "odd"));
    QsfJson *v = parsed(x);
    assert_string_equal(string_at(v, 1, "stop"), "e\"os\\\n\x1b\xef\xbf\xbd");
    qsf_json_free(v);
}

static void test_text_is_clean(void **state) {
    Fixture *x = *state;
    static const char *const endings[] = { "md", "txt", "json" };
    say(x, "/system be \x1b[5m brief");
    say(x, "red \x1b[31m please\n\ttab");
    answer(x, "\x1b]0;title\x07 \xc2\x9b 31m \x7f \xff \xe2\x80\xae k\xc3\xa4se");
    ui_session_use(&x->app.session, "na\xc2\x9bme");
    UiItem *last = ui_transcript_last(&x->app.chat);
    (void)snprintf(last->label, sizeof last->label,
                   "mo\x1b"
                   "del");
    for (int i = 0; i < 3; i++) {
        char *text = exported(x, endings[i]);
        for (const char *p = text; *p; p++)
            assert_true((unsigned char)*p >= 0x20 || *p == '\n' || *p == '\t');
        assert_null(strstr(text, "\xc2\x9b"));
        assert_null(strchr(text, '\x7f'));
        assert_non_null(strstr(text, "k\xc3\xa4se"));
        free(text);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_any_bytes), T(test_stop_of_the_file), T(test_text_is_clean) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
