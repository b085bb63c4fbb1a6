/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /role save, save! and delete: what the configuration file has afterwards, and what it keeps. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/app_rig.h"
#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/complete.h"
#include "ui/opts.h"

static char home[300], path[400];

static void put(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *file(void) {
    static char text[8192];
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) (void)fclose(f);
    return text;
}

/* The program starts again with what is in the file. */
static void restart(Fixture *x, UiOptions *o) {
    char *argv[] = { "qsf-chat", "tiny.gguf", NULL };
    QSFSettings s;
    ui_app_free(&x->app);
    memset(&x->engine, 0, sizeof x->engine);
    assert_int_equal(ui_options_parse(o, 2, argv), -1);
    ui_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.full_screen = x->app.interactive = true;
    x->app.config = o->start.config;
    ui_config_apply(&x->app, NULL, 0);
    ui_app_load(&x->app, "tiny.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static void begin(Fixture *x, UiOptions *o, const char *text) {
    (void)unlink(path);
    if (text) {
        (void)mkdir(home, 0700);
        *strrchr(path, '/') = '\0';
        (void)mkdir(path, 0700);
        path[strlen(path)] = '/';
        put(text);
    }
    restart(x, o);
}

static void end(Fixture *x, UiOptions *o) {
    x->app.config = NULL; /* the fixture outlives the options */
    ui_options_free(o);
}

/* The first role makes the folder and the file, and is there without a restart, and after one. */
static void test_save(void **state) {
    Fixture *x = *state;
    UiOptions o;
    begin(x, &o, NULL);
    say(x, "/role");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "/role save NAME makes one"));
    say(x, "/role save empty");
    assert_non_null(strstr(last_said(x, UI_ERROR), "there is no system prompt, and no setting was changed"));
    assert_string_equal(file(), "");
    say(x, "/system You write C."), say(x, "/temp 0.25"), say(x, "/stop END"), say(x, "/budget 300");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    say(x, "/role save C coder");
    assert_string_equal(file(), "[role C coder]\nsystem = You write C.\ntemperature = 0.25\nstop = END\n");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "system prompt, temperature 0.25, stop strings"));
    assert_non_null(
        strstr(last_said(x, UI_NOTICE), "without those of the model and the machine: ram-budget"));
    say(x, "/role");
    assert_string_equal(last_said(x, UI_OUTPUT), "  C coder: You write C.");
    end(x, &o);
    restart(x, &o);
    say(x, "/role C coder");
    assert_string_equal(last_said(x, UI_NOTICE),
                        "role C coder: system prompt, stop strings, temperature 0.25");
    assert_string_equal(ui_buf_str(&x->app.system), "You write C.");
    say(x, "/role");
    assert_string_equal(last_said(x, UI_OUTPUT), "* C coder: You write C.");
    end(x, &o);
}

#define TOP     "; mine\nthreads = 1 ; few\n"
#define FIRST   "[role a]\n; of a\nsystem = One.\n  Two.\n\n  Three.\n"
#define COMMENT "\n; about b\n# and more\n"
#define SECOND  "[role b]\ntop-k = 3\n"

/* What is not of the role stays byte for byte; a comment above a section belongs to that section. */
static void test_rest_stays(void **state) {
    Fixture *x = *state;
    UiOptions o;
    begin(x, &o, TOP FIRST COMMENT SECOND);
    say(x, "/temp 0.5"), say(x, "/role save c");
    assert_string_equal(file(), TOP FIRST COMMENT SECOND "\n[role c]\ntemperature = 0.5\n");
    say(x, "/role save! a");
    assert_string_equal(file(),
                        TOP "[role a]\ntemperature = 0.5\n" COMMENT SECOND "\n[role c]\ntemperature = 0.5\n");
    say(x, "/role delete b");
    assert_string_equal(file(), TOP "[role a]\ntemperature = 0.5\n" COMMENT "[role c]\ntemperature = 0.5\n");
    say(x, "/role delete a"), say(x, "/role delete c");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "role c deleted"));
    assert_string_equal(file(), TOP "; about b\n# and more\n");
    say(x, "/role save a");
    assert_false(x->app.settings.threads != 1 && x->app.settings.threads != 0);
    assert_null(strstr(file() + strlen(TOP), "threads")); /* the file has it already */
    end(x, &o);
}

/* Each is refused with a reason, and the file is as before. */
static void test_refused(void **state) {
    Fixture *x = *state;
    UiOptions o;
    static const char *const lines[][2] = {
        { "/role save a", "there is a role a already (save! replaces it)" },
        { "/role save", "needs the name of a role" },
        { "/role save! ", "needs the name of a role" },
        { "/role delete", "needs the name of a role" },
        { "/role delete z", "there is no role z" },
        { "/role delete a", "there is no section [role a]" }, /* line 1 names it */
        { "/role save x]y", "the name of a role has 1 to 44 bytes" },
        { "/role save x;y", "the name of a role has 1 to 44 bytes" },
        { "/role save save it", "the name of a role has 1 to 44 bytes" },
        { "/role save delete", "the name of a role has 1 to 44 bytes" },
        { "/role save 123456789012345678901234567890123456789012345", "1 to 44 bytes" },
        { "/role z", "there is no role z; /role lists them, /role save z makes one" },
    };
    static const char text[] = "role = a\n" FIRST;
    begin(x, &o, text);
    say(x, "/temp 0.5");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        say(x, lines[i][0]);
        if (!strstr(last_said(x, UI_ERROR), lines[i][1]))
            fail_msg("%s: %s", lines[i][0], last_said(x, UI_ERROR));
        assert_string_equal(file(), text);
    }
    put("role = a\nnonsense = 1\n" FIRST); /* the file was changed by another program */
    say(x, "/role save c");
    assert_non_null(strstr(last_said(x, UI_ERROR), ":2: unknown option 'nonsense'"));
    assert_null(strstr(file(), "[role c]"));
    x->app.no_config = true;
    say(x, "/role save c");
    assert_non_null(strstr(last_said(x, UI_ERROR), "--no-config"));
    x->app.config = NULL;
    say(x, "/role c");
    assert_string_equal(last_said(x, UI_ERROR), "/role: there is no configuration file (--no-config)");
    say(x, "/role");
    assert_string_equal(last_said(x, UI_NOTICE),
                        "there are no roles without a configuration file (--no-config)");
    end(x, &o);
}

/* Whatever a system prompt has comes back. */
static void test_texts(void **state) {
    Fixture *x = *state;
    UiOptions o;
    static const char *const texts[] = {
        "\"quoted\" \\n ; not a comment",
        " blanks at the ends ",
        "; first",
        "# first",
        "[role x]",
        "a = b",
        "two\n\n  lines\n; three\n",
        "tab\there",
        "long \xc3\xa9\xc3\xa9\xc3\xa9 0123456789 0123456789 0123456789 0123456789 0123456789 "
        "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
        "\xe2\x82\xac\xe2\x82\xac 0123456789 0123456789 0123456789 0123456789",
    };
    begin(x, &o, "");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ui_buf_clear(&x->app.system);
        ui_buf_puts(&x->app.system, texts[i]);
        say(x, "/role save! t");
        ui_buf_clear(&x->app.system);
        say(x, "/role t");
        assert_string_equal(ui_buf_str(&x->app.system), texts[i]);
    }
    end(x, &o);
}

static void offers(const UiApp *a, const char *line, const char *first, size_t n) {
    UiCompletion c = { 0 };
    (void)ui_complete(&c, a, line, strlen(line));
    assert_int_equal(c.n, n);
    if (n > 0) assert_string_equal(c.choices[0].text, first);
    ui_complete_free(&c);
}

static void test_tab(void **state) {
    Fixture *x = *state;
    UiOptions o;
    begin(x, &o, FIRST SECOND "[role sea captain]\ntop-k = 1\n");
    offers(&x->app, "/role s", "save ", 3); /* save, save! and the captain */
    offers(&x->app, "/role d", "delete ", 1);
    offers(&x->app, "/role delete ", "a", 3);
    offers(&x->app, "/role delete sea c", "sea captain", 1);
    offers(&x->app, "/role save! b", "b", 1);
    say(x, "/temp 0.5"), say(x, "/role save new one");
    offers(&x->app, "/role new", "new one", 1);
    end(x, &o);
}

static int make_home(void **state) {
    (void)state;
    (void)snprintf(home, sizeof home, "%s", qsf_test_tmp("role"));
    (void)snprintf(path, sizeof path, "%s/qsf/config", home);
    return setenv("XDG_CONFIG_HOME", home, 1);
}

static int remove_home(void **state) {
    (void)state;
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
    return rmdir(home);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_save), T(test_rest_stays), T(test_refused), T(test_texts), T(test_tab),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
