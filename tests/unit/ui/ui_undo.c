/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What /undo takes back: each command of the table, and what it says about the others. */
#include <unistd.h>

#include "tests/harness/app_rig.h"
#include "ui/commands.h"
#include "ui/opts.h"
#include "ui/tree.h"

/* A line that changes the conversation, and the answer that it asks for; NULL = none. */
static const struct {
    const char *command, *line, *reply;
} changes[] = {
    { "clear", "/clear", NULL },
    { "set", "/set temperature 0.33", NULL },
    { "system", "/system Be brief.", NULL },
    { "role", "/role poet", NULL },
    { "template", "/template chatml", NULL },
    { "retry", "/retry", "C" },
    { "edit", "/edit", NULL },
    { "edit", "/edit 4 Mine.", NULL },
    { "as", "/as system Be long.", NULL },
    { "branch", "/branch side", NULL },
    { "branch", "/branch", NULL },
    { "goto", "/goto 2", NULL },
    { "forget", "/forget", NULL },
    { "compact", "/compact They talked.", NULL },
    { "stop", "/stop END", NULL },
    { "bias", "/bias a=1", NULL },
    { "ban", "/ban word", NULL },
    { "least", "/least", NULL },
    { "game", "/game no-e", NULL },
    { "stop", "/stop off", NULL },
    { "context", "/context 1024", NULL },
    { "budget", "/budget 300", NULL },
    { "io", "/io pread", NULL },
    { "kv", "/kv policy sliding", NULL },
    { "quality", "/quality 0.5", NULL },
    { "lora", "/lora add /tmp/none.gguf 0.5", NULL },
    { "rename", "/rename A title", NULL },
    { "temperature", "/temperature 0.25", NULL }, /* a setting */
    { "regex", "/regex [a-z]+", NULL },
};
/* /redo, /swap and /continue are covered by other tests: they need a change before, or an answer. */
static const char *const elsewhere[] = { "redo", "swap", "continue" };

/* All that belongs to the conversation, as text. */
static char *state_of(const UiApp *a) {
    UiBuf b = { 0 };
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (it->in_context) ui_buf_printf(&b, "%d %s\n", (int)it->kind, ui_buf_str(&it->raw));
    }
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        char value[QSF_SETTING_TEXT];
        qsf_setting_get(&a->settings, qsf_setting_at(i), value, sizeof value);
        ui_buf_printf(&b, "%s %s\n", qsf_setting_at(i)->name, value);
    }
    ui_buf_printf(&b, "system %s\nrole %s\ntitle %s\nbranch %s\nbranches", ui_buf_str(&a->system), a->role,
                  a->session.title, ui_tree_branch(&a->session.tree));
    for (uint32_t i = 1; i <= a->session.tree.n_branches; i++) { /* one that was taken back has no name */
        const char *name = ui_tree_branch_name(&a->session.tree, i);
        ui_buf_printf(&b, "%s%s", *name ? " " : "", name);
    }
    ui_buf_puts(&b, "\nstops ");
    ui_stops_list(&a->stops, &b);
    return b.data;
}

static void same(const char *what, char *is, const char *want) {
    size_t at = 0;
    while (is[at] && is[at] == want[at]) at++;
    const bool equal = is[at] == want[at];
    while (at > 0 && is[at - 1] != '\n') at--;
    if (!equal) fail_msg("%s: it is\n%.200s\nand not\n%.200s", what, is + at, want + at);
    free(is);
}

static void plan_taken(Fixture *x) {
    if (x->app.replanning) fake_plan(&x->engine, 0, "plan");
    if (x->app.running == UI_REQUEST_LOAD) fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static void run(Fixture *x, const char *line, const char *reply) {
    say(x, line);
    if (reply) answer(x, reply);
    plan_taken(x);
}

static void begin(Fixture *x, const UiOptions *o) {
    QSFSettings s;
    memset(&x->engine, 0, sizeof x->engine);
    ui_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.session.on = x->app.full_screen = x->app.interactive = true;
    x->app.config = o->start.config;
}

/* The program is killed, and another one opens the session. */
static void restart(Fixture *x, const char *name, const UiOptions *o) {
    ui_app_free(&x->app);
    begin(x, o);
    assert_true(ui_app_resume(&x->app, name));
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static UiOptions options(void) {
    static char path[300];
    UiOptions o;
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("undo.conf"));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("[role poet]\nsystem = You rhyme.\ntemperature = 0.9\ntop-p = 0.6\nstop = FIN\nstop = AMEN\n", f);
    assert_int_equal(fclose(f), 0);
    char *argv[] = { "qsf-chat", "--config", path, "tiny.gguf", NULL };
    assert_int_equal(ui_options_parse(&o, 4, argv), -1);
    unlink(path);
    return o;
}

static void check_one(Fixture *x, size_t i, const UiOptions *o) {
    const char *line = changes[i].line;
    char name[20];
    (void)snprintf(name, sizeof name, "undo%zu", i);
    ui_app_free(&x->app);
    begin(x, o);
    ui_app_load(&x->app, "tiny.gguf");
    plan_taken(x);
    ui_app_begin_session(&x->app, name);
    run(x, "one", "A"), run(x, "two", "B"), run(x, "/stop HALT", NULL);
    char *before = state_of(&x->app);
    run(x, line, changes[i].reply);
    char *after = state_of(&x->app);
    if (strcmp(before, after) == 0) fail_msg("%s changed nothing: %s", line, last_said(x, UI_ERROR));
    run(x, "/undo", NULL);
    same(line, state_of(&x->app), before);
    run(x, "/redo", NULL);
    same(line, state_of(&x->app), after);
    restart(x, name, o);
    same(line, state_of(&x->app), after);
    run(x, "/undo", NULL);
    same(line, state_of(&x->app), before);
    run(x, "/undo", NULL); /* the stop string */
    assert_int_equal(x->app.stops.n, 0);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    restart(x, name, o);
    run(x, "/redo 2", NULL);
    same(line, state_of(&x->app), after);
    free(before);
    free(after);
}

static void test_each_change(void **state) {
    UiOptions o = options();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) check_one(*state, i, &o);
    ui_app_free(&((Fixture *)*state)->app);
    begin(*state, &o);
    ((Fixture *)*state)->app.config = NULL;
    ui_options_free(&o);
}

static bool listed(const char *name) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(changes[i].command, name) == 0) return true;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i], name) == 0) return true;
    return false;
}

static void test_every_command(void **state) {
    Fixture *x = *state;
    for (size_t i = 0; i < ui_command_count(); i++) {
        const char *name = ui_command_at(i)->name;
        const char *why;
        const UiUndo undo = ui_undo_of(name, &why);
        if (undo == UI_UNDO_UNKNOWN) fail_msg("/%s: is it known what /undo does about it?", name);
        if ((undo == UI_UNDO_BACK) != listed(name)) fail_msg("/%s is not tested here", name);
        assert_true((why != NULL) == (undo == UI_UNDO_NOT));
    }
    run(x, "/help role", NULL);
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "/undo takes it back"));
    run(x, "/help model", NULL);
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "/undo does not take it back: /model FILE loads"));
}

/* What cannot be taken back says so, once. */
static void test_why_not(void **state) {
    Fixture *x = *state;
    static const char *const lines[] = { "/model other.gguf", "/save elsewhere", "/delete gone" };
    QSFChatLog *log = NULL;
    char err[200];
    run(x, "one", "A");
    for (size_t i = 0; i < 3; i++) {
        log = qsf_chatlog_open("gone", err, sizeof err);
        assert_non_null(log);
        (void)qsf_chatlog_close(log);
        run(x, lines[i], NULL);
        run(x, "/undo", NULL);
        assert_non_null(strstr(last_said(x, UI_ERROR), "/undo does not take back /"));
        assert_non_null(strstr(last_said(x, UI_ERROR), "/undo again takes back the change before it"));
        assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    }
    run(x, "/undo", NULL);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    /* A change after it is what /undo takes back. */
    run(x, "one", "A"), run(x, "/model third.gguf", NULL), run(x, "two", "B");
    run(x, "/undo", NULL);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    run(x, "/new", NULL), run(x, "/undo", NULL);
    assert_non_null(strstr(last_said(x, UI_ERROR), "/load NAME goes back to the session before"));
    run(x, "/undo", NULL);
    assert_string_equal(last_said(x, UI_ERROR), "/undo: nothing to undo");
}

/* Unlike one that was sent and waits for its answer, it is in the context. */
static void test_as(void **state) {
    Fixture *x = *state;
    run(x, "one", "A"), run(x, "/as user Yours?", NULL), run(x, "/undo", NULL);
    assert_string_equal(last_text(x), "A");
    run(x, "/as user Yours?", NULL), run(x, "/as assistant Mine.", NULL), run(x, "/undo", NULL);
    assert_string_equal(last_text(x), "A");
}

/* Branches that were taken back are gone, also from the list that Tab shows, and their names are free. */
static void test_branches(void **state) {
    Fixture *x = *state;
    UiSpot tip;
    run(x, "one", "A"), run(x, "/branch side", NULL), run(x, "two", "B");
    run(x, "/undo", NULL), run(x, "/undo", NULL);
    assert_string_equal(ui_tree_branch(&x->app.session.tree), "");
    assert_false(ui_tree_find_branch(&x->app.session.tree, "side", &tip));
    run(x, "/redo 2", NULL);
    assert_string_equal(ui_tree_branch(&x->app.session.tree), "side");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    run(x, "/branch third", NULL), run(x, "/undo", NULL);
    assert_string_equal(last_said(x, UI_NOTICE), "on branch side again");
    run(x, "/goto main", NULL);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    run(x, "/branch third", NULL);
    assert_string_equal(ui_tree_branch(&x->app.session.tree), "third");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_each_change), T(test_every_command), T(test_why_not), T(test_as), T(test_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
