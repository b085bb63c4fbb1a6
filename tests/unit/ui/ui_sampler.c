/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The commands for lists of tokens, /why and /game. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "qsf_games.h"
#include "tests/harness/app_rig.h"
#include "tests/harness/qsf_test.h"
#include "ui/walk.h"

static void value_is(const UiApp *a, const char *setting, const char *want) {
    char value[QSF_SETTING_TEXT];
    qsf_setting_get(&a->settings, qsf_setting_find(setting), value, sizeof value);
    assert_string_equal(value, want);
}

static void test_bias(void **state) {
    Fixture *x = *state;
    say(x, "/bias");
    assert_string_equal(last_said(x, UI_OUTPUT), "no token has a bias");
    say(x, "/bias fine=2");
    say(x, "/bias \" fine \"=-inf");
    say(x, "/bias #7=1.5");
    value_is(&x->app, "logit-bias", "fine=2, fine =-inf,#7=1.5");
    assert_string_equal(x->engine.params.logit_bias, "fine=2, fine =-inf,#7=1.5");
    say(x, "/bias fine=3"); /* replaces */
    say(x, "/bias off #7");
    value_is(&x->app, "logit-bias", " fine =-inf,fine=3");
    say(x, "/bias");
    assert_string_equal(last_said(x, UI_OUTPUT), " fine =-inf\nfine=3");
    say(x, "/bias off nothing");
    assert_non_null(strstr(last_said(x, UI_ERROR), "not in the list"));
    say(x, "/bias fine");
    assert_non_null(strstr(last_said(x, UI_ERROR), "TOKEN=X"));
    say(x, "/undo");
    value_is(&x->app, "logit-bias", " fine =-inf,#7=1.5,fine=3");
    say(x, "/bias off");
    value_is(&x->app, "logit-bias", "off");
}

static void test_ban_and_least(void **state) {
    Fixture *x = *state;
    say(x, "/ban a, b");
    value_is(&x->app, "ban", "a\\, b");
    say(x, "/ban \"\\n\\n\"");
    say(x, "/ban");
    assert_string_equal(last_said(x, UI_OUTPUT), "a\\, b\n\\n\\n");
    say(x, "/ban off a, b");
    value_is(&x->app, "ban", "\\n\\n");
    say(x, "/ban off");
    say(x, "/least");
    value_is(&x->app, "least", "0.01");
    say(x, "/least");
    value_is(&x->app, "least", "0");
    say(x, "/least 0.2");
    say(x, "/least off");
    value_is(&x->app, "least", "0");
}

static void test_why(void **state) {
    Fixture *x = *state;
    say(x, "/why");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no tokens are known"));
    say(x, "one");
    say(x, "/regex [AB ]+"); /* not while an answer is written */
    assert_non_null(strstr(last_said(x, UI_NOTICE), "takes effect with the next answer"));
    say(x, "/help regex");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "takes effect with the next answer"));
    fake_text(&x->engine, "A B");
    fake_tokens(&x->engine, "A| B", 0.7f);
    fake_done(&x->engine, QSF_STOP_EOS, 2);
    ui_app_pump(&x->app);
    say(x, "/why");
    assert_non_null(strstr(last_said(x, UI_ERROR), "is not known"));
    const int32_t id = x->engine.rows[x->engine.tokens.n - 1].id;
    x->engine.why = (QSFWhy){ .id = id,
                              .n = 2,
                              .candidate = { 77, id },
                              .p = { 0.75f, 0.125f },
                              .n_vocab = 1000,
                              .n_stages = 2,
                              .stage = { { "top-k", 40, { 0.8f, 0.2f } }, { "min-p", 1, { 0, 1 } } },
                              .decided = 1,
                              .random = 0.5 };
    say(x, "/why");
    const char *said = last_said(x, UI_OUTPUT);
    assert_non_null(strstr(said, "% after"));
    assert_non_null(strstr(said, "model            1000    12.5    75.0\n"));
    assert_non_null(strstr(said, "top-k              40    20.0    80.0\n"));
    assert_non_null(strstr(said, "min-p               1   100.0       -\n"));
    assert_non_null(strstr(said, "(chosen)\nB "));
    assert_non_null(strstr(said, "decided by min-p: one token was left"));
    x->engine.why.decided = -1;
    say(x, "/why 99");
    assert_non_null(strstr(last_said(x, UI_ERROR), "expects the number of a token"));
    say(x, "/why");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "decided by the draw: random number 0.500000"));
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "token 2 of 2"));
    assert_null(ui_walk_step(&x->app, -1));
    assert_null(ui_walk_step(&x->app, -1));
    ui_walk_close(&x->app); /* as a key does that begins the command */
    x->engine.why.id = x->engine.rows[0].id;
    say(x, "/why");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "token 1 of 2"));
}

static void write_game(const char *dir, const char *name, const char *text) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void test_games(void **state) {
    Fixture *x = *state;
    char home[400], dir[500];
    (void)snprintf(home, sizeof home, "%s", qsf_test_tmp("games"));
    (void)mkdir(home, 0700);
    (void)snprintf(dir, sizeof dir, "%s/qsf", home);
    (void)mkdir(dir, 0700);
    (void)snprintf(dir, sizeof dir, "%s/qsf/games", home);
    (void)mkdir(dir, 0700);
    assert_int_equal(setenv("XDG_CONFIG_HOME", home, 1), 0);
    write_game(
        dir, "mine.ini",
        "[game]\nabout = a test\n[settings]\ntop_k = 3\nban = x,y\n[system]\ntext = Line one\n  line two\n"
        "[first]\nassistant = Welcome.\n");
    write_game(dir, "bad.ini", "[settings]\nctx = 5\n");
    write_game(dir, "worse.ini", "[nothing]\na = 5\n");
    write_game(dir, "no-e.ini", "[game]\nabout = my own\n"); /* instead of the installed one */
    say(x, "/game");
    const char *said = last_said(x, UI_OUTPUT);
    assert_non_null(strstr(said, "mine           a test"));
    assert_non_null(strstr(said, "no-e           my own"));
    assert_non_null(strstr(said, "a game cannot change the setting 'ctx'"));
    assert_non_null(strstr(said, "least-likely"));
    say(x, "/game bad");
    assert_non_null(strstr(last_said(x, UI_ERROR), "bad.ini:2: "));
    say(x, "/game ../mine");
    assert_non_null(strstr(last_said(x, UI_ERROR), "there is no game"));
    say(x, "/system Before.");
    say(x, "/top-k 77");
    say(x, "/game mine");
    value_is(&x->app, "top-k", "3");
    value_is(&x->app, "ban", "x,y");
    assert_string_equal(ui_buf_str(&x->app.system), "Line one\nline two");
    assert_string_equal(ui_buf_str(&ui_transcript_last(&x->app.chat)->raw), "Welcome.");
    say(x, "/game no-e"); /* replaces it: what the first one had set is as before */
    value_is(&x->app, "top-k", "77");
    assert_string_equal(ui_buf_str(&x->app.system), "Before.");
    say(x, "/game mine");
    say(x, "/game off");
    value_is(&x->app, "top-k", "77");
    value_is(&x->app, "ban", "off");
    assert_string_equal(ui_buf_str(&x->app.system), "Before.");
    say(x, "/game off");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no game is running"));
    write_game(dir, "digits.ini", "[settings]\nregex = [0-9]+\ntop_k = 5\ntop_p = 0.5\n");
    say(x, "/schema any");
    say(x, "/game digits");
    value_is(&x->app, "json-schema", "off");
    say(x, "/top-p 0.75"); /* what is changed during the game stays after it */
    say(x, "/only [ab]+");
    say(x, "/game off");
    value_is(&x->app, "only", "[ab]+");
    value_is(&x->app, "json-schema", "off");
    value_is(&x->app, "top-p", "0.75");
    value_is(&x->app, "top-k", "77");
    say(x, "/game digits");
    say(x, "/game off");
    value_is(&x->app, "only", "[ab]+");
    value_is(&x->app, "top-p", "0.75");
    say(x, "/only off");
    unsetenv("XDG_CONFIG_HOME");
}

/* Those that are installed can all be read. */
static void test_installed(void **state) {
    (void)state;
    char *names = qsf_game_names(), err[400];
    size_t n = 0;
    for (const char *p = names; *p != '\0'; p += strlen(p) + 1, n++) {
        QSFGame *g = qsf_game_read(p, err, sizeof err);
        if (g == NULL) fail_msg("%s: %s", p, err);
        assert_true(g->about[0] != '\0');
        qsf_game_free(g);
    }
    assert_true(n >= 3);
    free(names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bias, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ban_and_least, setup, teardown),
        cmocka_unit_test_setup_teardown(test_why, setup, teardown),
        cmocka_unit_test_setup_teardown(test_games, setup, teardown),
        cmocka_unit_test(test_installed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
