/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sessions and exports as files: complete or absent, one name per chat, and nothing lost on a full disk. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/harness/app_rig.h"

static char *path_of(const char *name) {
    static char path[700];
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/%s.jsonl", getenv("XDG_DATA_HOME"), name);
    return path;
}

static bool there(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

/* Entries of a directory, including hidden ones; 0 if it does not exist. */
static int entries(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return n;
}

static int sessions(void) {
    char folder[600];
    (void)snprintf(folder, sizeof folder, "%s/qsf/sessions", getenv("XDG_DATA_HOME"));
    return entries(folder);
}

static Fixture *another(void) {
    Fixture *y = calloc(1, sizeof *y);
    QSFSettings s;
    assert_non_null(y);
    qsf_settings_default(&s);
    ui_app_init(&y->app, fake_engine(&y->engine), &s);
    y->app.full_screen = y->app.interactive = y->app.session.on = true;
    ui_app_load(&y->app, "tiny.gguf");
    fake_loaded(&y->engine);
    ui_app_pump(&y->app);
    return y;
}

static void another_free(Fixture *y) {
    ui_app_free(&y->app);
    free(y);
}

/* More than the limit of the tests below. */
static void talk(Fixture *x) {
    static char text[4000];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 4; i++) say(x, text), answer(x, text);
}

static void limit(rlim_t bytes) {
    struct rlimit r;
    getrlimit(RLIMIT_FSIZE, &r);
    r.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &r);
}

/* Runs a command in a child that is killed when a file grows beyond 8000 bytes: in the middle of writing. */
static void killed_writing(Fixture *x, const char *command) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGXFSZ, SIG_DFL);
        limit(8000);
        say(x, command);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

static void full_disk(Fixture *x, const char *command) {
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    limit(8000);
    say(x, command);
    limit(RLIM_INFINITY);
    signal(SIGXFSZ, was);
}

static void test_export_is_whole(void **state) {
    Fixture *x = *state;
    static const char *const endings[] = { "md", "txt", "json" };
    char dir[400], command[500];
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("export"));
    assert_non_null(mkdtemp(dir));
    talk(x);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(command, sizeof command, "/export %s/a.%s", dir, endings[i]);
        killed_writing(x, command);
        assert_int_equal(entries(dir), 0);
        full_disk(x, command);
        assert_non_null(strstr(last_said(x, UI_ERROR), "cannot write"));
        assert_int_equal(entries(dir), 0);
    }
    say(x, command);
    assert_int_equal(entries(dir), 1);
}

static void test_save_is_whole(void **state) {
    Fixture *x = *state;
    talk(x);
    killed_writing(x, "/save whole");
    assert_int_equal(sessions(), 0);
    full_disk(x, "/save whole");
    assert_non_null(strstr(last_said(x, UI_ERROR), "cannot save"));
    assert_int_equal(sessions(), 0);
    assert_false(x->app.session.on);
    say(x, "/save whole");
    assert_true(there(path_of("whole")));
    /* A copy of a session. */
    killed_writing(x, "/save copy");
    full_disk(x, "/save copy");
    assert_int_equal(sessions(), 1);
    assert_string_equal(x->app.session.name, "whole");
    say(x, "/save copy");
    assert_string_equal(x->app.session.name, "copy");
    assert_int_equal(sessions(), 2);
}

/* The first message creates the file; if that fails nothing is left, and the next one creates it with
 * both. */
static void test_first_message_fails(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "later");
    static char big[9000];
    memset(big, 'x', sizeof big - 1);
    full_disk(x, big);
    ui_app_pump(&x->app);
    assert_non_null(strstr(last_said(x, UI_ERROR), "not saved"));
    assert_int_equal(sessions(), 0);
    answer(x, "there");
    assert_true(there(path_of("later")));
    ui_app_finish(&x->app);
    Fixture *y = another();
    assert_true(ui_app_resume(&y->app, "later"));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 2);
    another_free(y);
}

/* A temporarily full disk: data saved before is kept, and the rest follows in order. */
static void test_temporarily_full(void **state) {
    Fixture *x = *state;
    static char big[7000];
    memset(big, 'x', sizeof big - 1);
    x->app.session.on = true;
    ui_session_use(&x->app.session, "while");
    say(x, "first"), answer(x, "1");
    say(x, big), answer(x, "2");
    full_disk(x, big);
    ui_app_pump(&x->app);
    assert_non_null(strstr(last_said(x, UI_ERROR), "not saved"));
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    limit(8000);
    answer(x, "3");
    say(x, "fourth"), answer(x, "4");
    Fixture *y = another();
    char err[300];
    assert_true(qsf_chatlog_copy("while", "seen", err, sizeof err)); /* as if killed */
    assert_true(ui_app_resume(&y->app, "seen"));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 4);
    limit(RLIM_INFINITY);
    signal(SIGXFSZ, was);
    say(x, "fifth"), answer(x, "5");
    ui_app_finish(&x->app);
    assert_true(ui_app_resume(&y->app, "while"));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 10);
    assert_string_equal(last_text(y), "5");
    another_free(y);
}

/* Chats that start in the same second have the same name until the first message. */
static void test_same_second(void **state) {
    Fixture *x = *state, *all[3] = { x, another(), another() };
    static const char *const names[] = { "clock", "clock-2", "clock-3" };
    for (int i = 0; i < 3; i++) {
        all[i]->app.session.on = true;
        ui_session_use(&all[i]->app.session, "clock");
    }
    for (int i = 0; i < 3; i++) {
        say(all[i], names[i]), answer(all[i], "yes");
        assert_string_equal(all[i]->app.session.name, names[i]);
        assert_string_equal(last_said(all[i], UI_ERROR), "");
    }
    assert_int_equal(sessions(), 3);
    for (int i = 1; i < 3; i++) another_free(all[i]);
    ui_session_close(&x->app.session);
    Fixture *y = another();
    assert_true(ui_app_resume(&y->app, "clock-2"));
    assert_string_equal(ui_buf_str(&y->app.chat.items[0]->raw), "clock-2");
    another_free(y);
}

/* A requested name is not changed. */
static void test_save_taken(void **state) {
    Fixture *x = *state, *y = another();
    say(x, "a"), answer(x, "1");
    say(x, "/save mine");
    say(y, "b"), answer(y, "2");
    say(y, "/save mine");
    assert_non_null(strstr(last_said(y, UI_ERROR), "mine exists"));
    assert_string_not_equal(y->app.session.name, "mine");
    assert_int_equal(sessions(), 1);
    another_free(y);
}

/* Another chat uses it: this is distinguished from an error. */
static void test_context_in_use(void **state) {
    Fixture *x = *state, *y = another();
    say(x, "a"), answer(x, "1");
    say(x, "/save busy");
    assert_int_equal(ui_app_try_resume(&y->app, "busy"), UI_RESUME_IN_USE);
    assert_string_equal(last_said(y, UI_ERROR), "");
    ui_session_close(&x->app.session);
    assert_int_equal(ui_app_try_resume(&y->app, "busy"), UI_RESUMED);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    assert_int_equal(ui_app_try_resume(&y->app, "pipe"), UI_RESUME_FAILED);
    assert_non_null(strstr(last_said(y, UI_ERROR), "not a regular file"));
    assert_string_equal(y->app.session.name, "busy");
    another_free(y);
}

/* The engine is told the snapshot of a session that is saved, and of no other chat. */
static void test_snapshot(void **state) {
    Fixture *x = *state;
    say(x, "a"), answer(x, "1");
    assert_string_equal(x->engine.snapshot, "");
    x->app.snapshots = true;
    say(x, "b"), answer(x, "2");
    assert_string_equal(x->engine.snapshot, ""); /* not saved */
    say(x, "/save mine");
    say(x, "c"), answer(x, "3");
    assert_non_null(strstr(x->engine.snapshot, "/qsf/sessions/mine.qsfsnap"));
    say(x, "/save copy");
    say(x, "/retry"), answer(x, "4");
    assert_non_null(strstr(x->engine.snapshot, "/qsf/sessions/copy.qsfsnap"));
    x->app.snapshots = false;
    say(x, "d"), answer(x, "5");
    assert_string_equal(x->engine.snapshot, "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_export_is_whole), T(test_save_is_whole), T(test_first_message_fails), T(test_temporarily_full),
        T(test_same_second),     T(test_save_taken),    T(test_context_in_use),      T(test_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
