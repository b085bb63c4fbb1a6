/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /load: a session has its own settings and its own model, or those of the command line, and nothing of the
 * session that was open before. */
#include <unistd.h>

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
    static const char *const values[] = { "0.25", "0.5",   "7",       "9",     "3",      "128",   "on",
                                          "q8",   "q4",    "sliding", "h2o",   "lru",    "pread", "mmap",
                                          "off",  "ref",   "best",    "12345", "chatml", "raw",   "2",
                                          "1",    "top-k", "min-p",   "a=1",   "b=2",    "any" };
    static char files[2][600];
    const char *src = getenv("QSF_SRCDIR");
    QSFSettings base, s;
    char err[300], text[QSF_SETTING_TEXT];
    ui_settings_default(&base);
    if (strcmp(row->name, "grammar") == 0) { /* only a grammar is one */
        (void)snprintf(files[i], sizeof files[i], "%s/templates/games/%s.gbnf", src ? src : ".",
                       i == 0 ? "haiku" : "alphabet");
        return files[i];
    }
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        s = base;
        if (qsf_setting_set(&s, row, values[k], err, sizeof err) != 0) continue;
        if (s.params.grammar_kind != QSF_GRAMMAR_NONE &&
            qsf_grammar_check(&s.params, 0, err, sizeof err) != 0)
            continue;
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
    x->engine.stats.experts = 8; /* some settings are of sparse models only */
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
                                   .show_thinking = x->app.settings.show_thinking,
                                   .prefill_ahead = x->app.settings.prefill_ahead };
            expect(&engine, row, NULL);
        } else {
            expect(row->flags & QSF_SETTING_REPLAN ? &x->engine.in_force : &x->engine.settings, row, NULL);
        }
        assert_string_equal(last_said(x, UI_ERROR), "");
        assert_null(strstr(slurp("plain", &len), "\"set\""));
        said(x, "/load one%zu", i);
        settle(x);
        expect(&x->app.settings, row, row->flags & QSF_SETTING_HERE ? NULL : one);
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/load two%zu", i);
        settle(x);
        expect(&x->app.settings, row, row->flags & QSF_SETTING_HERE ? NULL : two ? two : one);
        x->engine.n_events = x->engine.taken = 0;
        said(x, "/load plain");
        settle(x);
        expect(&x->app.settings, row, NULL);
    }
    /* No record was added but the model that was loaded again. */
    assert_memory_equal(slurp("plain", &len), copy, plain_len);
    free(copy);
}

/* A session cannot name a file that is written. */
static void test_no_file_of_a_session(void **state) {
    const QSFLogRecord r = { .name = "trace-experts", .text = "/tmp/file" },
                       top = { .name = "top-k", .text = "7" };
    UiOwn own = { 0 };
    (void)state;
    ui_own_record(&own, &r);
    assert_string_equal(own.settings.trace_experts, "");
    assert_true(own.settings.user_set == 0);
    ui_own_record(&own, &top);
    assert_int_equal(own.settings.params.top_k, 7);
    ui_own_free(&own);
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

/* The command line's, in each session that is opened. */
static void test_command_line(void **state) {
    Fixture *x = *state;
    char err[200];
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
    x->app.settings.commands = true;
    say(x, "/load plain");
    assert_true(x->app.settings.commands); /* notices still name /budget, not --ram-budget */
    assert_float_equal(x->app.settings.params.temperature, 0.25f, 1e-6);
    assert_int_equal(x->app.settings.params.top_k, 40);
    assert_string_equal(x->app.stops.text[0], "STOP");
    assert_string_equal(ui_buf_str(&x->app.system), "be brief");
    say(x, "/load warm");
    assert_float_equal(x->app.settings.params.temperature, 0.25f, 1e-6);
    assert_int_equal(x->app.settings.params.top_k, 7);
    assert_string_equal(ui_buf_str(&x->app.system), "be warm");
}

/* The options of a run: they are not those of the sessions that existed before. */
static void give(Fixture *x) {
    static const char *const options[][2] = { { "temperature", "1.9" },
                                              { "threads", "1" },
                                              { "ctx", "256" } };
    char err[200];
    for (int i = 0; i < 3; i++)
        assert_int_equal(qsf_setting_set(&x->app.given.settings, qsf_setting_find(options[i][0]),
                                         options[i][1], err, sizeof err),
                         0);
    assert_null(ui_stops_add(&x->app.given.stops, "bear"));
    ui_buf_puts(&x->app.given.system, "be evil");
}

static void take_away(Fixture *x) {
    QSFSettings none;
    ui_settings_default(&none);
    ui_given_free(&x->app.given);
    x->app.given.settings = none;
}

static void expect_own(Fixture *x, const char *temperature, const char *stop, const char *system) {
    expect(&x->app.settings, qsf_setting_find("temperature"), temperature);
    expect(&x->app.settings, qsf_setting_find("threads"), NULL);
    expect(&x->app.settings, qsf_setting_find("ctx"), NULL);
    assert_int_equal(x->app.stops.n, 1);
    assert_string_equal(x->app.stops.text[0], stop);
    assert_string_equal(ui_buf_str(&x->app.system), system);
}

static void load(Fixture *x, const char *name) {
    said(x, "/load %s", name);
    settle(x);
}

/* Session "own" with settings of its own, closed. */
static void own_session(Fixture *x) {
    say(x, "/new own");
    say(x, "/temp 0.6");
    say(x, "/stop wolf");
    say(x, "a"), answer(x, "1");
    begin(x, "other");
    say(x, "/stop off");
}

static void test_options_are_not_saved(void **state) {
    Fixture *x = *state;
    size_t len, after;
    own_session(x);
    give(x);
    char *copy = ui_strdup_len(slurp("own", &len), 8000);
    load(x, "own");
    assert_float_equal(x->app.settings.params.temperature, 1.9f, 1e-6);
    assert_string_equal(x->app.stops.text[0], "bear");
    assert_string_equal(ui_buf_str(&x->app.system), "be evil");
    load(x, "other");
    const char *now = slurp("own", &after);
    assert_int_equal(after, len);
    assert_memory_equal(now, copy, len);
    free(copy);
    /* A message is saved, and what is set with a command, even to the value of an option. */
    load(x, "own");
    say(x, "b"), answer(x, "2");
    load(x, "other");
    take_away(x);
    load(x, "own");
    expect_own(x, "0.6", "wolf", "");
    load(x, "other");
    give(x);
    load(x, "own");
    say(x, "/temp 1.9");
    say(x, "/system be good");
    load(x, "other");
    take_away(x);
    load(x, "own");
    expect_own(x, "1.9", "wolf", "be good");
}

/* When the file has to be written again, it gets the session's own settings. */
static void test_options_are_not_rewritten(void **state) {
    Fixture *x = *state;
    char path[700];
    for (int cut = 0; cut < 2; cut++) {
        if (cut == 0) own_session(x);
        give(x);
        load(x, "own");
        (void)snprintf(path, sizeof path, "%s/qsf/sessions/own.jsonl", getenv("XDG_DATA_HOME"));
        assert_int_equal(cut ? truncate(path, 0) : unlink(path), 0);
        say(x, "b"), answer(x, "2");
        load(x, "other");
        take_away(x);
        load(x, "own");
        expect_own(x, "0.6", "wolf", "");
        load(x, "other");
    }
}

/* A session that this run starts keeps them. */
static void test_options_of_a_new_session(void **state) {
    Fixture *x = *state;
    begin(x, "other");
    give(x);
    assert_true(ui_app_resume(&x->app, "fresh"));
    settle(x);
    say(x, "a"), answer(x, "1");
    load(x, "other");
    begin(x, "fresher");
    load(x, "other");
    take_away(x);
    for (int i = 0; i < 2; i++) {
        load(x, i ? "fresher" : "fresh");
        expect(&x->app.settings, qsf_setting_find("temperature"), "1.9");
        assert_string_equal(x->app.stops.text[0], "bear");
        assert_string_equal(ui_buf_str(&x->app.system), "be evil");
    }
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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_settings_do_not_leak),
                                        cmocka_unit_test(test_no_file_of_a_session),
                                        T(test_stops_do_not_leak),
                                        T(test_command_line),
                                        T(test_options_are_not_saved),
                                        T(test_options_are_not_rewritten),
                                        T(test_options_of_a_new_session),
                                        T(test_advice),
                                        T(test_model),
                                        T(test_guide),
                                        T(test_model_is_gone),
                                        T(test_plan_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
