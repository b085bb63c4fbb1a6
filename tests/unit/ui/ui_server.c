/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat with an engine that is a server: what it cannot do is said in one sentence, and no number is shown
 * that is not known. On the scripted engine. */
#include "tests/harness/app_rig.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/canvas.h"
#include "ui/complete.h"
#include "ui/format.h"
#include "ui/model_scan.h"
#include "ui/server_models.h"
#include "ui/statuspane.h"
#include "ui/walk.h"

static const UiEngineModel models[] = { { .name = "small", .loaded = true },
                                        { .name = "large:70b", .ctx = 8192, .bytes = 1 << 20 },
                                        { .name = "larger" } };

static int begin(void **state) {
    if (setup(state) != 0) return 1;
    Fixture *x = *state;
    x->engine.lacks = ~(1u << UI_NEEDS_NOTHING);
    x->engine.models = models;
    x->engine.n_models = 3;
    free(x->app.model_path);
    x->app.model_path = strdup("connect:http://h:1/v1#small");
    return 0;
}

static const char *last(const Fixture *x) {
    const UiTranscript *t = &x->app.chat;
    return t->n > 0 ? ui_buf_str(&t->items[t->n - 1]->raw) : "";
}

static void expect_refused(Fixture *x, const char *command, UiNeed need) {
    say(x, command);
    if (!strstr(last(x), ui_lacks(need))) fail_msg("%s: %s", command, last(x));
}

static void test_commands_say_why_not(void **state) {
    Fixture *x = *state;
    static const char *const memory[] = { "/mem",      "/budget 100",  "/io",
                                          "/kv",       "/quality 0.5", "/experts",
                                          "/lora off", "/show plan",   "/show memory" };
    static const char *const tokens[] = { "/probs", "/why", "/bias", "/ban x", "/least on" };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) expect_refused(x, memory[i], UI_NEEDS_MEMORY);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) expect_refused(x, tokens[i], UI_NEEDS_TOKENS);
    expect_refused(x, "/template chatml", UI_NEEDS_PROMPT);
    expect_refused(x, "/show prompt", UI_NEEDS_PROMPT);
    expect_refused(x, "/think now", UI_NEEDS_CLOSE);
    x->engine.lacks = 0;
    say(x, "/mem");
    assert_null(strstr(last(x), ui_lacks(UI_NEEDS_MEMORY)));
}

static void test_keys_say_why_not(void **state) {
    Fixture *x = *state;
    char text[200];
    ui_app_budget_key(&x->app, true, text, sizeof text);
    assert_string_equal(text, ui_lacks(UI_NEEDS_MEMORY));
    say(x, "hi");
    assert_false(ui_app_answer_now(&x->app));
    assert_int_equal(x->engine.n_answer_now, 0);
    answer(x, "yes");
    assert_string_equal(ui_walk_evaluate(&x->app, false), ui_lacks(UI_NEEDS_TOKENS));
}

static void test_settings_without_effect(void **state) {
    Fixture *x = *state;
    x->engine.effect_of = "top-k";
    x->engine.effect = UI_EFFECT_NONE;
    say(x, "/top-k 7");
    assert_string_equal(last(x), "top-k: no effect on this server");
    assert_int_equal(x->engine.params.top_k, 7);
    say(x, "/set");
    assert_non_null(strstr(last(x), "top-k               n/a       no effect on this server"));
    x->engine.effect = UI_EFFECT_OWN;
    say(x, "/set");
    assert_non_null(strstr(last(x), "top-k               -         the server's own until it is set"));
    x->engine.effect = UI_EFFECT_SENT;
    say(x, "/top-k 8");
    assert_string_equal(last(x), "top-k 7 -> 8");
    say(x, "/set top-k");
    assert_non_null(strstr(last(x), "\nnext answer"));
    x->engine.check_code = 2;
    (void)snprintf(x->engine.check_text, sizeof x->engine.check_text, "the server decides");
    say(x, "/ctx 100");
    assert_non_null(strstr(last(x), "the server decides"));
    assert_int_equal(x->engine.n_replans, 0);
}

static int times_said(const Fixture *x, const char *text) {
    int n = 0;
    for (size_t i = 0; i < x->app.chat.n; i++) n += strcmp(ui_buf_str(&x->app.chat.items[i]->raw), text) == 0;
    return n;
}

/* The value of the server is not known here: it is called default, in both directions. */
static void test_default_of_the_server(void **state) {
    Fixture *x = *state;
    const QSFSetting *row = qsf_setting_find("temperature");
    x->engine.effect_of = "temperature";
    x->engine.effect = UI_EFFECT_OWN;
    say(x, "/temperature 0.3");
    assert_string_equal(last(x), "temperature default -> 0.3");
    x->engine.effect = UI_EFFECT_SENT;
    say(x, "/top-k 5"); /* no longer one line */
    say(x, "/set temperature default");
    assert_string_equal(last(x), "temperature 0.3 -> default");
    assert_false(qsf_setting_user_set(&x->app.settings, row));
    x->engine.effect = UI_EFFECT_OWN;
    say(x, "/temperature default");
    assert_string_equal(last(x), "temperature is default");
    say(x, "/undo");
    assert_true(qsf_setting_user_set(&x->app.settings, row));
    say(x, "/undo"); /* of top-k */
    say(x, "/undo");
    assert_false(qsf_setting_user_set(&x->app.settings, row));
}

/* Here it is the value of the configuration file, of the model, or of the program. */
static void test_default_here(void **state) {
    Fixture *x = *state;
    char before[QSF_SETTING_TEXT], after[QSF_SETTING_TEXT];
    const QSFSetting *row = qsf_setting_find("temperature");
    qsf_setting_get(&x->app.settings, row, before, sizeof before);
    say(x, "/temperature 0.3");
    say(x, "/temperature default");
    qsf_setting_get(&x->app.settings, row, after, sizeof after);
    assert_string_equal(after, before);
    assert_false(qsf_setting_user_set(&x->app.settings, row));
    say(x, "/set samplers default"); /* which is a value of this one */
    assert_true(qsf_setting_user_set(&x->app.settings, qsf_setting_find("samplers")));
}

/* Of the configuration file it is said to a person only. */
static void test_config_without_effect(void **state) {
    Fixture *x = *state;
    char err[200];
    const QSFSetting *row = qsf_setting_find("top-k");
    x->engine.effect_of = "top-k";
    x->engine.effect = UI_EFFECT_NONE;
    assert_int_equal(qsf_setting_set(&x->app.settings, row, "7", err, sizeof err), 0);
    for (size_t i = 0; i < qsf_setting_count(); i++)
        if (qsf_setting_at(i) == row) x->app.by_config = (QSFSettingSet)1 << i;
    for (int i = 0; i < 3; i++) {
        x->app.full_screen = x->app.interactive = i > 0;
        if (i == 2) ui_config_chosen(&x->app, row);
        ui_app_load(&x->app, "connect:http://h:1/v1#large");
        fake_loaded(&x->engine);
        ui_app_pump(&x->app);
        assert_int_equal(times_said(x, "top-k of the configuration file: no effect on this server"), i > 0);
        assert_int_equal(times_said(x, "top-k: no effect on this server"), i == 2);
    }
}

static bool drawn(const UiStatus *s, int kind, const char *text) {
    UiCanvas c = { .unicode = true };
    bool found = false;
    assert_true(ui_canvas_resize(&c, 30, 80));
    if (kind == 0) ui_status_pane(&c, s, 0, 30, 0, 34);
    if (kind == 1) ui_status_strip(&c, s, 0, 80);
    if (kind == 2) ui_status_line(&c, s, 0, 40);
    for (int row = 0; row < 30; row++) {
        UiBuf line = { 0 };
        ui_canvas_text(&c, row, &line);
        found = found || strstr(ui_buf_str(&line), text);
        ui_buf_free(&line);
    }
    ui_canvas_free(&c);
    return found;
}

static void test_no_number_that_is_not_known(void **state) {
    Fixture *x = *state;
    QSFStats *s = &x->engine.stats;
    s->out_tokens = 12;
    s->decode_tps = 30;
    ui_app_refresh(&x->app);
    UiStatus status = { .stats = &x->app.stats, .settings = &x->app.settings, .engine = &x->app.engine };
    for (int kind = 0; kind < 3; kind++) {
        assert_false(drawn(&status, kind, "RAM"));
        assert_false(drawn(&status, kind, "RSS"));
        assert_false(drawn(&status, kind, "entropy"));
        assert_false(drawn(&status, kind, "H 0.0"));
        assert_false(drawn(&status, kind, "0/0"));
        assert_false(drawn(&status, kind, "prefill"));
        assert_false(drawn(&status, kind, "~"));
    }
    x->engine.guesses = true;
    for (int kind = 0; kind < 3; kind++) assert_true(drawn(&status, kind, "~"));
    x->engine.effect_of = "temperature";
    x->engine.effect = UI_EFFECT_OWN;
    assert_true(drawn(&status, 0, "temperature -"));
    assert_true(drawn(&status, 1, "T -"));
    x->engine.effect = UI_EFFECT_REFUSED;
    assert_true(drawn(&status, 0, "temperature n/a"));
    x->app.settings.params.quality = 0.5f;
    assert_true(drawn(&status, 0, "quality  0.50"));
    x->engine.effect_of = "quality";
    assert_false(drawn(&status, 0, "quality  0.50"));
    s->ctx_size = 4096;
    ui_app_refresh(&x->app);
    assert_true(drawn(&status, 0, "CTX -/4096"));
    assert_true(drawn(&status, 1, "ctx -"));
    s->state = QSF_STATE_PREFILL;
    ui_app_refresh(&x->app);
    assert_string_equal(ui_status_word(&status), "waiting");
}

static void test_approximate_answers(void **state) {
    Fixture *x = *state;
    char text[200];
    x->engine.stats.decode_tps = 30;
    x->engine.guesses = true;
    say(x, "hi");
    answer(x, "yes");
    ui_format_answer(ui_transcript_last(&x->app.chat), 80, text, sizeof text);
    assert_non_null(strstr(text, "~3 tok"));
    assert_non_null(strstr(text, "~30"));
    say(x, "/stats");
    assert_non_null(strstr(last(x), "server"));
    assert_null(strstr(last(x), "KV"));
    x->engine.guesses = false;
    say(x, "again");
    answer(x, "yes");
    ui_format_answer(ui_transcript_last(&x->app.chat), 80, text, sizeof text);
    assert_null(strchr(text, '~'));
}

static void test_models_of_the_server(void **state) {
    Fixture *x = *state;
    UiModelScan scan = { 0 };
    assert_true(ui_server_models_list(&x->app, &scan));
    assert_int_equal(scan.n, 3);
    assert_string_equal(scan.rows[1].field[UI_MODEL_NAME], "large:70b");
    assert_string_equal(scan.rows[1].field[UI_MODEL_PATH], "connect:http://h:1/v1#large:70b");
    assert_string_equal(scan.rows[0].field[UI_MODEL_VERDICT], "in use");
    ui_model_scan_stop(&scan);
    say(x, "/model 70B");
    assert_string_equal(x->engine.path, "connect:http://h:1/v1#large:70b");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    say(x, "/model large");
    assert_non_null(strstr(last(x), "2 models of the server"));
    assert_string_equal(x->engine.path, "connect:http://h:1/v1#large:70b");
    say(x, "/model connect:other:2#m");
    assert_string_equal(x->engine.path, "connect:http://other:2/v1#m");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    say(x, "/model connect:ftp://x");
    assert_non_null(strstr(last(x), "ftp://x"));
}

/* The name means the built-in guide, whatever a server calls its models. */
static void test_guide_of_the_server(void **state) {
    static const UiEngineModel named[] = { { .name = "small", .loaded = true },
                                           { .name = "misguided" },
                                           { .name = "guide" } };
    Fixture *x = *state;
    UiCompletion c = { 0 };
    x->engine.models = named;
    x->app.model_ready = true;
    assert_true(ui_complete(&c, &x->app, "/model #gu", 10));
    assert_string_equal(c.choices[0].text, "#guide");
    assert_true(ui_complete(&c, &x->app, "/model mis", 10));
    assert_string_equal(c.choices[0].text, "misguided");
    ui_complete_free(&c);
    assert_false(ui_server_models_load(&x->app, "guide"));
    assert_non_null(strstr(last(x), "/model #guide is the model of the server"));
    assert_true(ui_server_models_load(&x->app, "#nothing"));
    assert_non_null(strstr(last(x), "no such model"));
    assert_true(ui_server_models_load(&x->app, "#guide"));
    assert_string_equal(x->engine.path, "connect:http://h:1/v1#guide");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    free(x->app.model_path);
    x->app.model_path = strdup("a.gguf");
    assert_true(ui_server_models_load(&x->app, "#guide"));
    assert_non_null(strstr(last(x), "no server answers"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands_say_why_not, begin, teardown),
        cmocka_unit_test_setup_teardown(test_keys_say_why_not, begin, teardown),
        cmocka_unit_test_setup_teardown(test_settings_without_effect, begin, teardown),
        cmocka_unit_test_setup_teardown(test_config_without_effect, begin, teardown),
        cmocka_unit_test_setup_teardown(test_default_of_the_server, begin, teardown),
        cmocka_unit_test_setup_teardown(test_default_here, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_number_that_is_not_known, begin, teardown),
        cmocka_unit_test_setup_teardown(test_approximate_answers, begin, teardown),
        cmocka_unit_test_setup_teardown(test_models_of_the_server, begin, teardown),
        cmocka_unit_test_setup_teardown(test_guide_of_the_server, begin, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
