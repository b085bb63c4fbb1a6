/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /load: a session has its own settings and its own model, or those of the command line, and nothing of the
 * session that was open before. */
#include "tests/harness/app_rig.h"
#include "ui/app_internal.h"
#include "ui/guide.h"

static void *slurp(const char *name, size_t *len) {
    char path[700];
    static char text[20000];
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/%s.jsonl", getenv("XDG_DATA_HOME"), name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    *len = fread(text, 1, sizeof text - 1, f);
    text[*len] = '\0';
    fclose(f);
    return text;
}

static void loaded(Fixture *x) {
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static void said(Fixture *x, const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say(x, text);
}

/* Value i that this setting accepts and that differs from its default; NULL if there are fewer. */
static const char *other_value(const QSFSetting *row, int i) {
    static const char *const values[] = { "0.25", "0.5", "7",       "9",     "3",      "128",   "on",
                                          "q8",   "q4",  "sliding", "h2o",   "lru",    "pread", "mmap",
                                          "off",  "ref", "best",    "12345", "chatml", "raw" };
    QSFSettings base, s;
    char err[300], text[QSF_SETTING_TEXT];
    ui_settings_default(&base);
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        s = base;
        if (qsf_setting_set(&s, row, values[k], err, sizeof err) != 0) continue;
        qsf_setting_get(&s, row, text, sizeof text);
        if (!qsf_setting_differs(&s, &base, row) || i-- > 0) continue;
        return values[k];
    }
    return NULL;
}

static void expect(const QSFSettings *s, const QSFSetting *row, const char *value) {
    char err[300], is[QSF_SETTING_TEXT], want[QSF_SETTING_TEXT];
    QSFSettings w;
    ui_settings_default(&w);
    if (value) assert_int_equal(qsf_setting_set(&w, row, value, err, sizeof err), 0);
    qsf_setting_get(s, row, is, sizeof is);
    qsf_setting_get(&w, row, want, sizeof want);
    if (strcmp(is, want) != 0) fail_msg("%s is %s instead of %s", row->name, is, want);
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

static void test_settings_do_not_leak(void **state) {
    Fixture *x = *state;
    size_t plain_len, len;
    begin(x, "plain");
    char *copy = ui_strdup_len(slurp("plain", &plain_len), 8000);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        const char *one = other_value(row, 0), *two = other_value(row, 1);
        assert_non_null(one);
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/new one%zu", i);
        said(x, "/set %s %s", row->name, one);
        settle(x);
        expect(&x->app.settings, row, one);
        say(x, "a"), answer(x, "1");
        said(x, "/new two%zu", i);
        if (two) said(x, "/set %s %s", row->name, two);
        settle(x);
        say(x, "a"), answer(x, "1");
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/load plain");
        settle(x);
        expect(&x->app.settings, row, NULL);
        if (row->flags & QSF_SETTING_LIVE) {
            QSFSettings engine = { .params = x->engine.params,
                                   .show_thinking = x->app.settings.show_thinking };
            expect(&engine, row, NULL);
        } else {
            expect(row->flags & QSF_SETTING_REPLAN ? &x->engine.in_force : &x->engine.settings, row, NULL);
        }
        assert_string_equal(last_said(x, UI_ERROR), "");
        assert_null(strstr(slurp("plain", &len), "\"set\""));
        said(x, "/load one%zu", i);
        settle(x);
        expect(&x->app.settings, row, one);
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/load two%zu", i);
        settle(x);
        expect(&x->app.settings, row, two ? two : one);
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/load plain");
        settle(x);
        expect(&x->app.settings, row, NULL);
    }
    /* No record was added but the model that was loaded again. */
    assert_memory_equal(slurp("plain", &len), copy, plain_len);
    free(copy);
}

static void test_stops_do_not_leak(void **state) {
    Fixture *x = *state;
    size_t len;
    begin(x, "plain");
    say(x, "/new stops");
    say(x, "/stop END");
    say(x, "/stop more");
    say(x, "a"), answer(x, "1");
    say(x, "/load plain");
    assert_int_equal(x->app.stops.n, 0);
    assert_null(strstr(slurp("plain", &len), "END"));
    say(x, "/load stops");
    assert_int_equal(x->app.stops.n, 2);
    assert_string_equal(x->app.stops.text[0], "END");
    say(x, "a");
    assert_int_equal(x->engine.n_stop, 2);
    answer(x, "1");
}

/* The command line's, in each session that is opened, and in its file. */
static void test_command_line(void **state) {
    Fixture *x = *state;
    char err[200];
    size_t len;
    begin(x, "plain");
    say(x, "/new warm");
    say(x, "/temp 1.5");
    say(x, "/top-k 7");
    say(x, "/system be warm");
    say(x, "a"), answer(x, "1");
    QSFSettings *given = &x->app.given.settings;
    assert_int_equal(qsf_setting_set(given, qsf_setting_find("temperature"), "0.25", err, sizeof err), 0);
    (void)ui_stops_add(&x->app.given.stops, "STOP");
    ui_buf_puts(&x->app.given.system, "be brief");
    say(x, "/load plain");
    assert_float_equal(x->app.settings.params.temperature, 0.25f, 1e-6);
    assert_int_equal(x->app.settings.params.top_k, 40);
    assert_string_equal(x->app.stops.text[0], "STOP");
    assert_string_equal(ui_buf_str(&x->app.system), "be brief");
    assert_non_null(strstr(slurp("plain", &len), "\"name\":\"temperature\",\"text\":\"0.25\""));
    say(x, "/load warm");
    assert_float_equal(x->app.settings.params.temperature, 0.25f, 1e-6);
    assert_int_equal(x->app.settings.params.top_k, 7);
    assert_string_equal(ui_buf_str(&x->app.system), "be warm");
    const size_t before = len;
    (void)slurp("warm", &len);
    say(x, "/load plain"); /* what it has is not written again */
    (void)slurp("plain", &len);
    assert_int_equal(len, before);
}

/* What a model recommends belongs to the model: the session follows the one that answers. */
static void test_advice(void **state) {
    Fixture *x = *state;
    begin(x, "one");
    say(x, "/new two");
    say(x, "/temp 1.5");
    say(x, "a"), answer(x, "1");
    x->engine.advice.params.temperature = 0.2f;
    say(x, "/load one");
    assert_float_equal(x->app.settings.params.temperature, 0.2f, 1e-6);
    say(x, "/load two");
    assert_float_equal(x->app.settings.params.temperature, 1.5f, 1e-6);
}

static void test_model(void **state) {
    Fixture *x = *state;
    begin(x, "tiny");
    int loads = x->engine.n_loads;
    say(x, "/new other");
    say(x, "/model other.gguf");
    loaded(x);
    say(x, "a"), answer(x, "1");
    loads = x->engine.n_loads;
    say(x, "/load tiny");
    assert_int_equal(x->engine.n_loads, loads + 1);
    assert_string_equal(x->engine.path, "tiny.gguf");
    say(x, "b"); /* waits for the model */
    loaded(x);
    assert_string_equal(x->engine.roles, "uau");
    answer(x, "2");
    say(x, "/load other");
    loaded(x);
    assert_string_equal(x->app.model_path, "other.gguf");
    loads = x->engine.n_loads;
    say(x, "/new same"), say(x, "a"), answer(x, "1");
    say(x, "/load other"); /* its model is loaded */
    assert_int_equal(x->engine.n_loads, loads);
}

/* The guide is replaced by the session's model, and loaded for its own sessions. */
static void test_guide(void **state) {
    Fixture *x = *state;
    begin(x, "tiny");
    say(x, "/model guide");
    loaded(x);
    assert_string_not_equal(x->app.session.name, "tiny");
    say(x, "what can you do?"), answer(x, "this");
    char guided[128];
    (void)snprintf(guided, sizeof guided, "%s", x->app.session.name);
    say(x, "/load tiny");
    loaded(x);
    assert_string_equal(x->app.session.name, "tiny");
    assert_string_equal(x->app.model_path, "tiny.gguf");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    assert_null(strstr(last_said(x, UI_NOTICE), "new conversation"));
    said(x, "/load %s", guided);
    loaded(x);
    assert_true(ui_guide_is(x->app.model_path));
    assert_string_equal(x->app.session.name, guided);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
}

/* Its model cannot be loaded: another one answers, which is said, and recorded only with a message. */
static void test_model_is_gone(void **state) {
    Fixture *x = *state;
    size_t len;
    begin(x, "gone");
    say(x, "/temp 1.5");
    say(x, "/new other");
    say(x, "/model other.gguf");
    loaded(x);
    say(x, "/set ctx 512");
    fake_plan(&x->engine, 0, "ctx 512");
    ui_app_pump(&x->app);
    say(x, "a"), answer(x, "1");
    say(x, "/load gone");
    assert_string_equal(x->engine.path, "tiny.gguf");
    fake_error(&x->engine, 3, "tiny.gguf: no such file");
    x->engine.stats.state = QSF_STATE_IDLE; /* the old one is still loaded */
    ui_app_pump(&x->app);
    assert_non_null(strstr(last_said(x, UI_ERROR), "no such file"));
    assert_string_equal(x->app.model_path, "other.gguf");
    const char *text = slurp("gone", &len);
    assert_null(strstr(text, "other.gguf"));
    assert_null(strstr(text, "ctx"));
    bool told = false;
    for (size_t i = 0; i < x->app.chat.n; i++)
        told = told ||
               strcmp(ui_buf_str(&x->app.chat.items[i]->raw), "session gone continues with other.gguf") == 0;
    assert_true(told);
    say(x, "b"), answer(x, "2");
    assert_non_null(strstr(slurp("gone", &len), "other.gguf"));
    assert_float_equal(x->app.settings.params.temperature, 1.5f, 1e-6);
}

/* The session's plan is refused: what stays in force is not written to its file. */
static void test_plan_refused(void **state) {
    Fixture *x = *state;
    size_t len;
    begin(x, "small");
    say(x, "/new large");
    say(x, "/set ctx 4096");
    fake_plan(&x->engine, 0, "ctx 4096");
    ui_app_pump(&x->app);
    say(x, "a"), answer(x, "1");
    say(x, "/load small");
    assert_true(x->app.replanning);
    fake_plan(&x->engine, 4, "it does not fit");
    ui_app_pump(&x->app);
    assert_int_equal(x->app.settings.ctx, 4096);
    assert_null(strstr(slurp("small", &len), "ctx"));
    say(x, "/set ctx 128");
    fake_plan(&x->engine, 0, "ctx 128");
    ui_app_pump(&x->app);
    assert_non_null(strstr(slurp("small", &len), "\"ctx\",\"text\":\"128\""));
}

/* ---- memory ---- */

#define MB (1u << 20)

/* A session whose message number big of all is one of so many bytes, forgotten or undone or in the context. */
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
    const struct CMUnitTest tests[] = {
        T(test_settings_do_not_leak),
        T(test_stops_do_not_leak),
        T(test_command_line),
        T(test_advice),
        T(test_model),
        T(test_guide),
        T(test_model_is_gone),
        T(test_plan_refused),
        T(test_does_not_fit),
        T(test_stays_on_disk),
        T(test_many),
        T(test_long_texts),
        T(test_exact),
        T(test_forgotten_often),
        T(test_automatic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
