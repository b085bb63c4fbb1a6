/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is typed as in another chat is done, or answered with what to type here; nothing of it goes to the
 * model. */
#include "tests/harness/app_rig.h"
#include "ui/commands.h"
#include "ui/dialect.h"

static void value_is(const Fixture *x, const char *name, const char *value) {
    char text[QSF_SETTING_TEXT];
    qsf_setting_get(&x->app.settings, qsf_setting_find(name), text, sizeof text);
    assert_string_equal(text, value);
}

/* Those of ollama run that have a meaning here. */
static void test_set(void **state) {
    Fixture *x = *state;
    static const char *const lines[][3] = {
        { "/set parameter temperature 0.25", "temperature", "0.25" },
        { "/set parameter num_predict 20", "max-tokens", "20" },
        { "/set parameter num_predict -1", "max-tokens", "0" },
        { "/set parameter repeat_last_n 32", "repeat-last-n", "32" },
        { "/set nothink", "reasoning", "off" },
        { "/set think", "reasoning", "on" },
        { "/set think low", "reasoning", "low" },
        { "/set format json", "json-schema", "any" },
        { "/set noformat", "json-schema", "off" },
        { "/set parameter num_ctx 1024", "ctx", "1024" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        say(x, lines[i][0]);
        value_is(x, lines[i][1], lines[i][2]);
    }
    say(x, "/set system Be brief.");
    assert_string_equal(ui_buf_str(&x->app.system), "Be brief.");
    say(x, "/set system \"\"\"You are\nMario.\"\"\"");
    assert_string_equal(ui_buf_str(&x->app.system), "You are\nMario.");
    say(x, "/system \"\"\"Be brief.\"\"\"");
    assert_string_equal(ui_buf_str(&x->app.system), "Be brief.");
    say(x, "/set parameter stop AI:");
    assert_int_equal(x->app.stops.n, 1);
    assert_string_equal(x->app.stops.text[0], "AI:");
    say(x, "/set num_ctx");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "ctx "));
    say(x, "/set verbose");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/set verbose: /stats shows the speed"));
    say(x, "/set parameter num_gpu 1");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/set num_gpu: models run on the CPU"));
    say(x, "/set nosuch");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no setting 'nosuch'; /set lists them"));
}

/* A hint names commands and settings that exist. */
static void check_names(const char *text) {
    for (const char *p = strchr(text, '/'); p; p = strchr(p + 1, '/')) {
        char name[40];
        const size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz-");
        if (n == 0 || n >= sizeof name || (p > text && p[-1] != ' ')) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)n, p + 1);
        if (!ui_command_find(name) && !qsf_setting_find(name)) fail_msg("no /%s: %s", name, text);
    }
}

static void test_commands(void **state) {
    Fixture *x = *state;
    static const char *const words[] = { "ps",    "push",    "pop",      "stack",  "dump",   "manual",
                                         "glob",  "pull",    "rewind",   "preset", "audio",  "nothink",
                                         "reset", "history", "settings", "abort",  "version" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char line[40];
        assert_null(ui_command_find(words[i]));
        assert_non_null(ui_dialect_command(words[i]));
        check_names(ui_dialect_command(words[i]));
        (void)snprintf(line, sizeof line, "/%s", words[i]);
        say(x, line);
        if (!strstr(last_said(x, UI_ERROR), ui_dialect_command(words[i])))
            fail_msg("%s: %s", line, last_said(x, UI_ERROR));
    }
    assert_null(ui_dialect_command("nosuch"));
}

static void say_from_file(Fixture *x, const char *text) {
    char line[400];
    (void)snprintf(line, sizeof line, "/source %s", qsf_test_tmp("source.txt"));
    FILE *f = fopen(line + strlen("/source "), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    say(x, line);
}

static void test_messages(void **state) {
    Fixture *x = *state;
    static const char *const lines[] = {
        "exit",        ":q",    ".exit",       "!multi",     ".set temperature 0.5",
        ".role coder", ".info", ".file a.txt", "!fragment x"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        say(x, lines[i]);
        assert_false(ui_app_busy(&x->app));
        assert_non_null(strstr(last_said(x, UI_NOTICE), "nothing was sent"));
        check_names(last_said(x, UI_NOTICE));
    }
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    static const char *const sent[] = { ".set noreorder means what in assembler",
                                        "exit now",
                                        ".settings",
                                        ".NET is great",
                                        "!important",
                                        "...",
                                        "./configure fails",
                                        "\"\"\"exit\"\"\"",
                                        "\"\"\".file is missing\"\"\"" };
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        say(x, sent[i]);
        assert_true(ui_app_busy(&x->app));
        answer(x, "A");
    }
    say_from_file(x, "exit\n"); /* a line of a file is a message */
    assert_true(ui_app_busy(&x->app));
    answer(x, "A");
    x->app.interactive = false; /* in a pipe it is one, too */
    say(x, "exit");
    assert_true(ui_app_busy(&x->app));
    answer(x, "A");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = { T(test_set), T(test_commands), T(test_messages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
