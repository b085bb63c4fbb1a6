/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Without a model on the command line the built-in guide starts: found, offered, saved by name, and harmless
 * if missing. */
#include "tests/harness/app_rig.h"
#include "ui/guide.h"

#include <sys/stat.h>
#include <unistd.h>

static char data[400]; /* $QSF_DATADIR, with a guide in it */

/* Unlike the rig's: no model is loaded yet. */
static int begin(void **state) {
    Fixture *x = calloc(1, sizeof *x);
    QSFSettings s;
    char path[500];
    if (!x) return 1;
    (void)snprintf(data, sizeof data, "%s.XXXXXX", qsf_test_tmp("guide"));
    if (!mkdtemp(data)) return 1;
    (void)snprintf(path, sizeof path, "%s/models", data);
    if (mkdir(path, 0700) != 0) return 1;
    (void)snprintf(path, sizeof path, "%s/models/guide.qsf", data);
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) != 0) return 1;
    setenv("QSF_DATADIR", data, 1);
    setenv("XDG_DATA_HOME", data, 1);
    qsf_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.full_screen = x->app.interactive = true;
    *state = x;
    return 0;
}

static void loaded(Fixture *x) {
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static const char *next(const Fixture *x, const char *line) {
    return ui_guide_next(&x->app, line, strlen(line));
}

static void test_name(void **state) {
    (void)state;
    char want[500];
    (void)snprintf(want, sizeof want, "%s/models/guide.qsf", data);
    char *file = qsf_model_file("guide"), *other = qsf_model_file("./guide");
    assert_string_equal(file, want);
    assert_string_equal(other, "./guide");
    free(file);
    free(other);
}

static void test_welcome(void **state) {
    Fixture *x = *state;
    ui_guide_open(&x->app);
    assert_false(ui_guide_offers(&x->app));
    assert_non_null(strstr(x->engine.path, "/models/guide.qsf"));
    assert_string_equal(x->app.model_path, "guide");
    loaded(x);
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "built-in guide"));
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "/model FILE"));
    assert_true(ui_guide_offers(&x->app));
}

/* Tab cycles through the questions; typed text is not changed. */
static void test_questions(void **state) {
    Fixture *x = *state;
    assert_null(next(x, ""));
    ui_guide_open(&x->app);
    loaded(x);
    const char *line = "";
    for (size_t i = 0; i < UI_GUIDE_QUESTIONS; i++) {
        line = next(x, line);
        assert_string_equal(line, ui_guide_question(i));
    }
    assert_string_equal(next(x, line), ui_guide_question(0));
    assert_null(next(x, "How do"));
    assert_null(next(x, "/mo"));
    say(x, ui_guide_question(0));
    assert_false(ui_guide_offers(&x->app));
    answer(x, "Type /model FILE.");
    assert_false(ui_guide_offers(&x->app));
    assert_null(next(x, ""));
}

/* Another model offers no questions, and the guide can be selected again; only its first screen has the
 * greeting. */
static void test_back(void **state) {
    Fixture *x = *state;
    say(x, "/model tiny.gguf");
    loaded(x);
    assert_string_equal(x->engine.path, "tiny.gguf");
    assert_false(ui_guide_offers(&x->app));
    say(x, "hello");
    answer(x, "hi");
    say(x, "/model guide");
    loaded(x);
    assert_non_null(strstr(x->engine.path, "/models/guide.qsf"));
    assert_string_equal(last_said(x, UI_OUTPUT), "");
}

static void resume(UiApp *a, Fixture *x, const char *name) {
    QSFSettings s;
    qsf_settings_default(&s);
    ui_app_init(a, x->app.engine, &s);
    a->session.on = a->full_screen = a->interactive = true;
    assert_true(ui_app_resume(a, name));
}

/* The user's own model does not get the conversation with the guide: not now, not from the session, not with
 * /retry. */
static void test_skip_layers(void **state) {
    Fixture *x = *state;
    UiApp again;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "leave");
    ui_guide_open(&x->app);
    loaded(x);
    say(x, "what can you do?");
    answer(x, "this and that");
    say(x, "/model tiny.gguf");
    loaded(x);
    assert_null(ui_transcript_last(&x->app.chat));
    assert_string_equal(ui_buf_str(&x->app.chat.items[2]->raw), "what can you do?");
    assert_false(x->app.chat.items[2]->in_context);
    say(x, "/retry");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no message to answer"));
    say(x, "/undo");
    assert_non_null(strstr(last_said(x, UI_ERROR), "nothing"));
    say(x, "hello");
    assert_string_equal(x->engine.roles, "u");
    answer(x, "hi");
    assert_int_equal(ui_transcript_last(&x->app.chat)->number, 4);
    ui_app_finish(&x->app);
    resume(&again, x, "leave");
    assert_int_equal(ui_transcript_count(&again.chat, NULL), 2);
    assert_string_equal(ui_buf_str(&again.chat.items[0]->raw), "hello");
    ui_app_free(&again);
}

/* The guide does not get the conversation with another model, which keeps its session. */
static void test_enter(void **state) {
    Fixture *x = *state;
    UiApp again;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "enter");
    say(x, "/model tiny.gguf");
    loaded(x);
    say(x, "hello");
    answer(x, "hi");
    say(x, "/model guide");
    loaded(x);
    assert_string_not_equal(x->app.session.name, "enter");
    say(x, "what can you do?");
    assert_string_equal(x->engine.roles, "u");
    answer(x, "this and that");
    ui_app_finish(&x->app);
    resume(&again, x, "enter");
    assert_int_equal(ui_transcript_count(&again.chat, NULL), 2);
    assert_string_equal(ui_buf_str(&again.chat.items[0]->raw), "hello");
    ui_app_free(&again);
}

/* qsf-chat --model FILE --session NAME, where NAME is a conversation with the guide. */
static void test_session_of_guide(void **state) {
    Fixture *x = *state;
    UiApp again;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "guided");
    ui_guide_open(&x->app);
    loaded(x);
    say(x, "hello");
    answer(x, "hi");
    ui_app_finish(&x->app);
    QSFSettings s;
    qsf_settings_default(&s);
    ui_app_init(&again, x->app.engine, &s);
    again.session.on = again.full_screen = true;
    again.want_model = ui_strdup_len("tiny.gguf", 9);
    assert_true(ui_app_resume(&again, "guided"));
    ui_app_load(&again, "tiny.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&again);
    assert_null(ui_transcript_last(&again.chat));
    ui_app_free(&again);
}

static void test_failed(void **state) {
    Fixture *x = *state;
    ui_guide_open(&x->app);
    fake_error(&x->engine, 3, "guide.qsf: byte 0: not a model file");
    ui_app_pump(&x->app);
    assert_non_null(strstr(last_said(x, UI_ERROR), "not a model file"));
    assert_non_null(strstr(last_said(x, UI_NOTICE), "/model FILE"));
    assert_int_equal(x->app.exit_code, 3);
    assert_false(ui_guide_offers(&x->app));
}

/* A session stores the guide by name, so that it is found wherever qsf is installed later. */
static void test_session(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "talk");
    ui_guide_open(&x->app);
    loaded(x);
    say(x, "hello");
    answer(x, "hi");
    ui_app_finish(&x->app);
    x->engine.path[0] = '\0';
    UiApp again;
    QSFSettings s;
    qsf_settings_default(&s);
    ui_app_init(&again, x->app.engine, &s);
    again.session.on = true;
    assert_true(ui_app_resume(&again, "talk"));
    assert_string_equal(again.model_path, "guide");
    assert_non_null(strstr(x->engine.path, "/models/guide.qsf"));
    ui_app_free(&again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_name, begin, teardown),
        cmocka_unit_test_setup_teardown(test_welcome, begin, teardown),
        cmocka_unit_test_setup_teardown(test_questions, begin, teardown),
        cmocka_unit_test_setup_teardown(test_back, begin, teardown),
        cmocka_unit_test_setup_teardown(test_skip_layers, begin, teardown),
        cmocka_unit_test_setup_teardown(test_enter, begin, teardown),
        cmocka_unit_test_setup_teardown(test_session_of_guide, begin, teardown),
        cmocka_unit_test_setup_teardown(test_failed, begin, teardown),
        cmocka_unit_test_setup_teardown(test_session, begin, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
