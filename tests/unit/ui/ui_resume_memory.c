/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A session that is resumed takes the memory that is available: what does not fit is refused, what is not
 * needed stays in the file, and time grows with the file only. */
#include "tests/harness/app_rig.h"
#include "ui/app_internal.h"

static void said(Fixture *x, const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say(x, text);
}

static void begin(Fixture *x, const char *name) {
    said(x, "/new %s", name);
    say(x, name), answer(x, "yes");
}

/* What a change made the chat ask of the engine, until nothing is left to do. */
static void settle(Fixture *x) {
    while (x->app.running == UI_REQUEST_LOAD || x->app.replanning) {
        if (x->app.running == UI_REQUEST_LOAD)
            fake_loaded(&x->engine);
        else
            fake_plan(&x->engine, 0, "as asked");
        ui_app_pump(&x->app);
        x->engine.n_events = x->engine.taken = 0;
    }
}

#define MB (1u << 20)

/* Writes a session with one message of `bytes` bytes, an answer and a short exchange. after: records that
 * follow the answer, which may take the large message out of the context. */
static void make_large(const char *name, size_t bytes, const char *after) {
    char path[700], err[300];
    QSFChatLog *l = qsf_chatlog_open(name, err, sizeof err);
    assert_non_null(l);
    qsf_chatlog_close(l);
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/%s.jsonl", getenv("XDG_DATA_HOME"), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"kind\":\"message\",\"role\":\"user\",\"text\":\"", f);
    for (size_t i = 0; i < bytes / 10; i++) fputs("nine byte ", f);
    fputs("\"}\n{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"yes\"}\n", f);
    fputs(after, f);
    fputs("{\"kind\":\"message\",\"role\":\"user\",\"text\":\"small\"}\n"
          "{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"last\"}\n",
          f);
    fclose(f);
}

/* Of a command line: each session has it. */
static void budget(Fixture *x, uint64_t bytes) {
    char text[40], err[200];
    (void)snprintf(text, sizeof text, "%lluM", (unsigned long long)(bytes >> 20));
    assert_int_equal(
        qsf_setting_set(&x->app.given.settings, qsf_setting_find("ram-budget"), text, err, sizeof err), 0);
    x->engine.stats.budget = bytes;
    x->engine.stats.n_mem = 1;
    x->engine.stats.mem[0] = (QSFMemRow){ .name = "weights", .used = 10 * MB, .planned = 12 * MB };
}

/* What does not fit is refused with what would make room, and the chat stays what it is. */
static void test_does_not_fit(void **state) {
    Fixture *x = *state;
    begin(x, "small");
    say(x, "/stop END");
    make_large("large", 9 * MB, "");
    budget(x, 20 * MB);
    const int loads = x->engine.n_loads;
    say(x, "/load large");
    const char *why = last_said(x, UI_ERROR);
    assert_non_null(strstr(why, "session large: its messages need "));
    assert_non_null(strstr(why, "are free in the RAM budget of 20 MB: "));
    const char *enough = strstr(why, "budget "); /* the last word but two */
    while (enough && strstr(enough + 1, "budget ")) enough = strstr(enough + 1, "budget ");
    const unsigned long mb = strtoul(enough + 7, NULL, 10);
    assert_true(mb > 20 && mb < 40);
    assert_string_equal(x->app.session.name, "small");
    assert_string_equal(last_text(x), "yes");
    assert_int_equal(x->app.stops.n, 1);
    assert_int_equal(x->engine.n_loads, loads);
    assert_false(qsf_chatlog_in_use("large"));
    budget(x, (uint64_t)mb * MB);
    say(x, "/load large");
    assert_string_equal(x->app.session.name, "large");
    assert_int_equal(x->app.chat.items[0]->raw.len, 9 * MB / 10 * 10);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    assert_string_equal(last_text(x), "last");
}

/* An automatic budget makes room for the text, a chosen one does not change. */
static void test_automatic(void **state) {
    Fixture *x = *state;
    begin(x, "small");
    make_large("large", MB, "");
    x->engine.stats.budget = 20 * MB;
    x->engine.stats.mem[0] = (QSFMemRow){ .name = "weights", .used = 20 * MB, .planned = 20 * MB };
    x->engine.stats.n_mem = 1;
    say(x, "/load large");
    assert_int_equal(x->engine.n_replans, 1);
    assert_int_equal(x->engine.wanted.text_bytes, ui_transcript_bytes(&x->app.chat));
    fake_plan(&x->engine, 0, "more");
    ui_app_pump(&x->app);
    say(x, "/load small");
    assert_int_equal(x->engine.n_replans, 1);
    budget(x, 30 * MB);
    say(x, "/load large");
    settle(x);
    const int replans = x->engine.n_replans;
    say(x, "/load small");
    say(x, "/load large");
    assert_int_equal(x->engine.n_replans, replans);
}

/* Messages that were undone or cleared take nothing. Forgotten ones are read if there is much space. */
static void test_stays_on_disk(void **state) {
    Fixture *x = *state;
    begin(x, "small");
    make_large("undone", 9 * MB, "{\"kind\":\"undo\",\"n\":2}\n");
    make_large("cleared", 9 * MB, "{\"kind\":\"clear\"}\n");
    make_large("forgotten", 9 * MB, "{\"kind\":\"forget\",\"n\":2}\n");
    budget(x, 20 * MB);
    static const char *const names[] = { "undone", "cleared", "forgotten" };
    for (int i = 0; i < 3; i++) {
        said(x, "/load %s", names[i]);
        assert_string_equal(x->app.session.name, names[i]);
        assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
        assert_string_equal(last_text(x), "last");
    }
    const UiItem *first = x->app.chat.items[0];
    assert_string_equal(ui_buf_str(&first->raw), "(9.0 MB, left on disk to save memory)");
    assert_false(first->in_context);
    assert_string_equal(ui_buf_str(&x->app.chat.items[1]->raw), "yes");
    say(x, "/load small");
    budget(x, 1000 * (uint64_t)MB);
    say(x, "/load forgotten");
    assert_int_equal(x->app.chat.items[0]->raw.len, 9 * MB / 10 * 10);
}

/* 100,000 messages, and as many parts of an answer. */
static void test_many(void **state) {
    Fixture *x = *state;
    UiBuf b = { 0 };
    begin(x, "small");
    for (int i = 0; i < 50000; i++)
        ui_buf_puts(&b, "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"a\"}\n"
                        "{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"b\"}\n");
    make_large("many", 0, ui_buf_str(&b));
    budget(x, 25 * MB);
    say(x, "/load many");
    assert_non_null(strstr(last_said(x, UI_ERROR), "session many: it has more messages than fit in the 13."));
    budget(x, 120 * MB);
    say(x, "/load many");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 100004);
    ui_buf_clear(&b);
    for (int i = 0; i < 100000; i++)
        ui_buf_puts(&b, "{\"kind\":\"part\",\"text\":\"ab\",\"reasoning\":\"c\"}\n");
    make_large("parts", 0, ui_buf_str(&b));
    say(x, "/load small");
    budget(x, 25 * MB);
    say(x, "/load parts");
    const UiItem *answer = x->app.chat.items[1]; /* an answer after an answer continues it */
    assert_int_equal(answer->raw.len, 3 + 200000);
    assert_int_equal(answer->thought->raw.len, 100000);
    ui_buf_free(&b);
}

/* What a cut answer consists of is read for the last message only: it can be continued. */
static void test_exact(void **state) {
    Fixture *x = *state;
    char err[300];
    const char *exact[] = { "one", "two" };
    begin(x, "small");
    for (int i = 0; i < 2; i++) {
        QSFLogRecord cut = { .kind = QSF_LOG_MESSAGE,
                             .role = "assistant",
                             .stop = "length",
                             .text = "half",
                             .len = 4,
                             .exact = exact[i],
                             .exact_len = 3 };
        assert_true(qsf_chatlog_append(x->app.session.log, &cut, err, sizeof err));
        say(x, "/new");
        say(x, "/load small");
        assert_string_equal(ui_transcript_last(&x->app.chat)->exact, exact[i]);
    }
    say(x, "more"), answer(x, "yes");
    say(x, "/new");
    say(x, "/load small");
    for (size_t i = 0; i < x->app.chat.n; i++) assert_null(x->app.chat.items[i]->exact);
}

/* The time for a record does not grow with what was forgotten before. */
static void test_forgotten_often(void **state) {
    Fixture *x = *state;
    UiBuf b = { 0 };
    begin(x, "small");
    for (int i = 0; i < 40000; i++)
        ui_buf_puts(&b,
                    "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"a\"}\n{\"kind\":\"forget\",\"n\":1}\n"
                    "{\"kind\":\"forget\",\"n\":1,\"name\":\"q\",\"text\":\"s\"}\n");
    make_large("often", 0, ui_buf_str(&b));
    budget(x, 500 * (uint64_t)MB);
    say(x, "/load often");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2 + 40000 + 2);
    assert_string_equal(last_text(x), "last");
    ui_buf_free(&b);
}

/* A long summary, and a long system prompt. */
static void test_long_texts(void **state) {
    Fixture *x = *state;
    static char big[20001];
    QSFLogRecord forget = {
        .kind = QSF_LOG_FORGET, .name = "what was that?", .text = big, .len = 20000, .n = 2
    };
    char err[300];
    memset(big, 'x', 20000);
    begin(x, "small");
    say(x, "more"), answer(x, "yes");
    QSFChatLog *l = x->app.session.log;
    assert_true(qsf_chatlog_append(l, &forget, err, sizeof err));
    QSFLogRecord system = { .kind = QSF_LOG_SYSTEM, .text = big, .len = 20000 };
    assert_true(qsf_chatlog_append(l, &system, err, sizeof err));
    say(x, "/new");
    say(x, "/load small");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    const UiItem *summary = NULL;
    for (size_t i = 0; i < x->app.chat.n && !summary; i++)
        if (x->app.chat.items[i]->in_context) summary = x->app.chat.items[i + 1];
    assert_string_equal(ui_buf_str(&summary->raw), big);
    assert_string_equal(ui_buf_str(&x->app.system), big);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_does_not_fit), T(test_stays_on_disk), T(test_many),
                                        T(test_long_texts),   T(test_exact),         T(test_forgotten_often),
                                        T(test_automatic) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
