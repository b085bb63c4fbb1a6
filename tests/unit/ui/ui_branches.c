/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Versions of answers, branches, /undo, /redo, /tree and /goto on a scripted engine; and that a session which
 * is resumed, at any byte of its file, is what it was. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/app_rig.h"
#include "ui/branches.h"

static void save_as(Fixture *x, const char *name) {
    x->app.session.on = true;
    ui_session_use(&x->app.session, name);
}

/* The messages in the context, "one A two B". */
static const char *talk(const UiApp *a) {
    static UiBuf b;
    ui_buf_clear(&b);
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (it->in_context) ui_buf_printf(&b, "%s%s", b.len ? " " : "", ui_buf_str(&it->raw));
    }
    return ui_buf_str(&b);
}

static const char *version(const UiApp *a) {
    static char text[40];
    const UiItem *it = ui_transcript_last_of(&a->chat, UI_ANSWER);
    (void)snprintf(text, sizeof text, "%u/%u", it ? it->nth : 0, it ? it->of : 0);
    return text;
}

static void ask(Fixture *x, const char *text, const char *reply) {
    say(x, text);
    answer(x, reply);
}

static void begin(Fixture *x) {
    QSFSettings s;
    memset(&x->engine, 0, sizeof x->engine);
    ui_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.session.on = x->app.full_screen = x->app.interactive = true;
}

/* The program is killed, and another one opens the session. */
static void restart(Fixture *x, const char *name) {
    ui_app_free(&x->app);
    begin(x);
    assert_true(ui_app_resume(&x->app, name));
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

static void go_version(Fixture *x, int by, const char *want) {
    char said[100];
    (void)ui_app_step_version(&x->app, by, said, sizeof said);
    assert_string_equal(said, want);
}

/* To a message of the user, which has no answer there: /undo leads back, and does not remove it. */
static void test_goto_question(void **state) {
    Fixture *x = *state;
    ask(x, "one", "A"), ask(x, "two", "B");
    say(x, "/goto 3");
    assert_string_equal(talk(&x->app), "one A"); /* a question without an answer is not in the context */
    say(x, "/undo");
    assert_string_equal(talk(&x->app), "one A two B");
    say(x, "/goto 1"), say(x, "/undo"), say(x, "/redo");
    assert_string_equal(talk(&x->app), "");
    say(x, "/undo");
    assert_string_equal(talk(&x->app), "one A two B");
}

/* Versions have their own continuations. Unsaved conversations have them, too. */
static void versions(Fixture *x) {
    ask(x, "one", "A");
    assert_string_equal(version(&x->app), "1/1");
    say(x, "/retry");
    assert_string_equal(version(&x->app), "2/2"); /* while it is written */
    answer(x, "B");
    assert_string_equal(version(&x->app), "2/2");
    go_version(x, 1, "version 2/2 is the last");
    go_version(x, -1, "version 1/2");
    assert_string_equal(talk(&x->app), "one A");
    ask(x, "two", "C");
    assert_string_equal(x->engine.roles, "uau");
    go_version(x, 1, "version 2/2"); /* of the first answer: the last one has no others */
    assert_string_equal(talk(&x->app), "one B");
    go_version(x, -1, "version 1/2");
    assert_string_equal(talk(&x->app), "one A two C");
    say(x, "/retry"), answer(x, "D");
    say(x, "/goto 1/2");
    assert_string_equal(talk(&x->app), "one A two C");
    say(x, "/goto 3/2");
    assert_string_equal(last_said(x, UI_ERROR), "/goto 3/2: there is no such version");
}

static void test_versions(void **state) { versions(*state); }

static void test_versions_saved(void **state) {
    Fixture *x = *state;
    save_as(x, "v");
    versions(x);
    restart(x, "v");
    assert_string_equal(talk(&x->app), "one A two C");
    assert_string_equal(version(&x->app), "1/2");
    go_version(x, 1, "version 2/2");
    assert_string_equal(talk(&x->app), "one A two D"); /* /goto 1/2 and back was nothing */
    say(x, "/undo");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "undid /retry"));
    assert_string_equal(talk(&x->app), "one A two C");
    go_version(x, 1, "version 2/2");
    say(x, "/undo");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "previous version restored"));
    assert_string_equal(talk(&x->app), "one A two C");
}

/* Stopped before its first word, or refused, a new version is none. */
static void test_stopped_retry(void **state) {
    Fixture *x = *state;
    ask(x, "one", "A");
    say(x, "/retry");
    ui_app_stop(&x->app);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_string_equal(talk(&x->app), "one A");
    assert_string_equal(version(&x->app), "1/1");
    say(x, "/retry");
    fake_error(&x->engine, 1, "read error");
    ui_app_pump(&x->app);
    assert_string_equal(talk(&x->app), "one A");
    assert_string_equal(version(&x->app), "1/1");
    assert_string_equal(last_said(x, UI_ERROR), "read error");
    assert_string_equal(last_said(x, UI_NOTICE), "previous answer restored");
    say(x, "/retry"); /* the context is full before its first word */
    fake_done(&x->engine, QSF_STOP_CONTEXT, 0);
    ui_app_pump(&x->app);
    assert_string_equal(talk(&x->app), "one A");
    say(x, "/undo");
    assert_string_equal(talk(&x->app), "");
    say(x, "/redo");
    assert_string_equal(talk(&x->app), "one A");
}

/* Each line is a command, and the conversation after it. */
static const char *const story[][2] = {
    { "/undo", "one A two B" },
    { "/undo", "one A" },
    { "/redo 2", "one A two B three C" },
    { "/clear", "" },
    { "/undo", "one A two B three C" },
    { "/forget", "two B three C" },
    { "/undo", "one A two B three C" },
    { "/redo", "two B three C" },
    { "/undo 1", "two B" },
    { "/redo", "two B three C" },
    { "/goto 2", "one A" },
    { "/undo", "two B three C" },
    { "/edit 4 X", "two X" },
    { "/undo", "two B three C" },

    { "/branch side", "two B three C" },
    { "/undo 2", "" },
    { "/goto main", "two B three C" },
    { "/goto side", "" },
    { "/goto 6", "two B three C" },
    { "/redo 9", "two B three C" },
};

static void test_undo_and_redo(void **state) {
    Fixture *x = *state;
    save_as(x, "story");
    ask(x, "one", "A"), ask(x, "two", "B"), ask(x, "three", "C");
    for (size_t i = 0; i < sizeof story / sizeof *story; i++) {
        say(x, story[i][0]);
        if (strcmp(talk(&x->app), story[i][1]) != 0)
            fail_msg("after %s (%zu): '%s', not '%s'", story[i][0], i, talk(&x->app), story[i][1]);
        restart(x, "story"); /* everything is in the file, the changes too */
        if (strcmp(talk(&x->app), story[i][1]) != 0)
            fail_msg("resumed after %s (%zu): '%s', not '%s'", story[i][0], i, talk(&x->app), story[i][1]);
    }
}

static void test_settings(void **state) {
    Fixture *x = *state;
    save_as(x, "set");
    ask(x, "one", "A");
    say(x, "/temp 0.3");
    say(x, "/temp 0.4");
    say(x, "/system Be brief.");
    say(x, "/think show"); /* only the screen shows it */
    say(x, "/undo");
    assert_int_equal(x->app.system.len, 0);
    restart(x, "set");
    say(x, "/undo");
    assert_float_equal(x->app.settings.params.temperature, 0.7f, 1e-6);
    assert_string_equal(talk(&x->app), "one A");
    say(x, "/redo 2");
    assert_float_equal(x->app.settings.params.temperature, 0.4f, 1e-6);
    assert_string_equal(ui_buf_str(&x->app.system), "Be brief.");
    /* A setting that was refused later has its value already: that is passed over. */
    say(x, "/budget 500");
    fake_plan(&x->engine, 4, "no memory");
    ui_app_pump(&x->app);
    say(x, "/undo"), say(x, "/undo");
    assert_int_equal(x->app.system.len, 0);
    say(x, "/redo");
    say(x, "/undo 1"); /* a number means exchanges */
    assert_string_equal(talk(&x->app), "");
    assert_float_equal(x->app.settings.params.temperature, 0.4f, 1e-6);
    say(x, "/redo");
    assert_string_equal(talk(&x->app), "one A");
}

/* A summary comes back with the messages that it replaced, and goes again. */
static void test_compact(void **state) {
    Fixture *x = *state;
    save_as(x, "compact");
    x->engine.stats.ctx_size = 1000;
    ask(x, "one", "A"), ask(x, "two", "B");
    say(x, "/compact Sum.");
    char compacted[200];
    (void)snprintf(compacted, sizeof compacted, "%s", talk(&x->app));
    assert_non_null(strstr(compacted, "Sum. two B"));
    ask(x, "three", "C");
    restart(x, "compact");
    say(x, "/undo");
    assert_string_equal(talk(&x->app), compacted);
    say(x, "/undo");
    assert_string_equal(talk(&x->app), "one A two B");
    say(x, "/redo");
    assert_string_equal(talk(&x->app), compacted);
    restart(x, "compact");
    assert_string_equal(talk(&x->app), compacted);
    say(x, "/retry"), answer(x, "D");
    assert_string_equal(version(&x->app), "2/2");
}

static void test_tree(void **state) {
    Fixture *x = *state;
    x->app.columns = 40;
    say(x, "/tree");
    assert_string_equal(last_said(x, UI_OUTPUT), "there are no messages yet");
    for (int i = 0; i < 5; i++) ask(x, "a question of many words that do not fit a line of text", "A");
    say(x, "/retry"), answer(x, "B\nof\tlines");
    say(x, "/branch side");
    const char *const want = "*  1 you a question of many words that …\n"
                             "*  2 ai  A\n"
                             "*  ⋮ (5 more)\n"
                             "*  8 ai  A\n"
                             "*  9 you a question of many words that …\n"
                             "  ├ 10 ai  A\n"
                             "> └ 11 ai  [side] B of lines";
    say(x, "/tree");
    assert_string_equal(last_said(x, UI_OUTPUT), want);
    say(x, "/branch side");
    assert_string_equal(last_said(x, UI_ERROR), "/branch: there is a branch side; /goto side goes to it");
    say(x, "/branch 12");
    assert_non_null(strstr(last_said(x, UI_ERROR), "not a number"));
    say(x, "/goto nowhere");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/tree shows them"));
    say(x, "/goto 9");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "at message 9: /retry answers it again"));
    say(x, "/retry"), answer(x, "C");
    assert_string_equal(version(&x->app), "3/3");
    say(x, "/goto 9");
    ask(x, "another", "D"); /* instead of message 9 */
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 10);
}

/* Cut anywhere, the file gives a conversation that can be used, and the tree the same one. */
static void test_cut_anywhere(void **state) {
    Fixture *x = *state;
    save_as(x, "cut");
    ask(x, "one", "A"), ask(x, "two", "B");
    say(x, "/retry"), answer(x, "C");
    say(x, "/undo"), say(x, "/forget"), say(x, "/undo"), say(x, "/clear"), say(x, "/undo");
    say(x, "/branch side"), ask(x, "three", "D"), say(x, "/goto main");
    char path[500];
    static char bytes[20000];
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/cut.jsonl", getenv("XDG_DATA_HOME"));
    int fd = open(path, O_RDONLY);
    const ssize_t len = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_in_range(len, 1000, sizeof bytes - 1);
    for (ssize_t n = len, i = 0; n > 0; n -= n > len - 200 ? 1 : 13, i++) {
        ui_app_free(&x->app);
        fd = open(path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, bytes, (size_t)n), n);
        close(fd);
        begin(x);
        assert_true(ui_app_resume(&x->app, "cut"));
        const UiNode *tip = ui_tree_tip(&x->app.session.tree);
        const UiItem *last = ui_transcript_last(&x->app.chat);
        if (last && x->app.unanswered == 0) assert_int_equal(tip ? tip->id : 0, last->node);
        if (i % 20 != 0) continue; /* the commands below wait for the disk */
        fake_loaded(&x->engine);
        ui_app_pump(&x->app);
        say(x, "/undo"), say(x, "/redo"), say(x, "/goto 1"), say(x, "/goto 2");
        if (ui_tree_node(&x->app.session.tree, 2) && strcmp(talk(&x->app), "one A") != 0)
            fail_msg("cut at %zd: %s, %s", n, talk(&x->app), last_said(x, UI_ERROR));
    }
}

/* The numbers of the messages on the screen, those that left the context too. */
static const char *numbers(const UiApp *a) {
    static UiBuf b;
    ui_buf_clear(&b);
    for (size_t i = 0; i < a->chat.n; i++)
        if (a->chat.items[i]->kind <= UI_ANSWER) ui_buf_printf(&b, "%u ", a->chat.items[i]->number);
    return ui_buf_str(&b);
}

static void has_line(const Fixture *x, const char *line) {
    if (!strstr(last_said(x, UI_OUTPUT), line)) fail_msg("no '%s' in: %s", line, last_said(x, UI_OUTPUT));
}

/* A message has one number, for the screen, /tree, /goto, /edit, /copy and /search. */
static void test_numbers(void **state) {
    Fixture *x = *state;
    save_as(x, "numbers");
    ask(x, "one", "A"), say(x, "/retry");
    assert_string_equal(numbers(&x->app), "1 3 "); /* while it is written */
    answer(x, "B"), ask(x, "two", "C");
    assert_string_equal(numbers(&x->app), "1 3 4 5 ");
    say(x, "/tree");
    has_line(x, "2 ai  A"), has_line(x, "3 ai  B"), has_line(x, "> "), has_line(x, "5 ai  C");
    say(x, "/goto 2"), ask(x, "other", "D");
    assert_string_equal(numbers(&x->app), "1 2 6 7 ");
    say(x, "/goto 5");
    assert_string_equal(numbers(&x->app), "1 3 4 5 ");
    say(x, "/undo 1"), say(x, "/redo"), say(x, "/clear"), say(x, "/undo");
    assert_string_equal(numbers(&x->app), "1 3 4 5 ");
    ask(x, "three", "E"), say(x, "/edit 4 4th"), answer(x, "F");
    assert_string_equal(numbers(&x->app), "1 3 10 11 ");
    say(x, "/compact B as well");
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 ");
    say(x, "/tree");
    has_line(x, "-  1 you one"), has_line(x, "-"), has_line(x, "a summary is there instead");
    say(x, "/edit 1");
    assert_string_equal(last_said(x, UI_ERROR), "/edit: message 1 is no longer in the context");
    restart(x, "numbers");
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 ");
    ask(x, "four", "G");
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 12 13 ");
    /* One without an answer keeps its own, and that is not given again. */
    say(x, "five"), ui_app_stop(&x->app);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 12 13 14 ");
    say(x, "/retry"), answer(x, "H");
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 12 13 14 15 ");
    say(x, "six"), ui_app_stop(&x->app);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    ask(x, "seven", "I");
    assert_string_equal(numbers(&x->app), "1 3 0 0 10 11 12 13 14 15 16 17 18 ");
    assert_int_equal(ui_tree_tip(&x->app.session.tree)->id, 18);
    /* In a file of its own, too. */
    say(x, "/save copy"), restart(x, "copy");
    assert_int_equal(ui_transcript_last(&x->app.chat)->number, 18);
    say(x, "/new");
    ask(x, "begin", "J");
    assert_string_equal(numbers(&x->app), "1 2 ");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_versions),     T(test_versions_saved), T(test_stopped_retry), T(test_undo_and_redo),
        T(test_numbers),      T(test_settings),       T(test_compact),       T(test_tree),
        T(test_cut_anywhere), T(test_goto_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
