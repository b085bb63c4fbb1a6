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
    say(x, "/save"); /* says why it is not saved, not that it will be */
    assert_non_null(strstr(last_said(x, UI_NOTICE), "not saved: "));
    assert_non_null(strstr(last_said(x, UI_NOTICE), "later.jsonl: cannot save: "));
    answer(x, "there");
    assert_true(there(path_of("later")));
    say(x, "/save");
    assert_string_equal(last_said(x, UI_NOTICE), "saved continuously as later");
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

/* ---- what others do to the file ---- */

static int told(const Fixture *x, const char *part) {
    int n = 0;
    for (size_t i = 0; i < x->app.chat.n; i++)
        n += strstr(ui_buf_str(&x->app.chat.items[i]->raw), part) != NULL;
    return n;
}

static void spill(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void sessions_folder(char path[600]) {
    (void)snprintf(path, 600, "%s/qsf/sessions", getenv("XDG_DATA_HOME"));
}

static void remove_file(void) { assert_int_equal(unlink(path_of("talk")), 0); }
static void rename_file(void) {
    char to[700];
    (void)snprintf(to, sizeof to, "%s", path_of("moved"));
    assert_int_equal(rename(path_of("talk"), to), 0);
}
static void empty_file(void) { assert_int_equal(truncate(path_of("talk"), 0), 0); }
static void cut_file(void) { assert_int_equal(truncate(path_of("talk"), 150), 0); }
static void replace_file(void) {
    remove_file();
    spill("talk", "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"theirs\"}\n");
}
static void remove_folder(void) {
    char folder[600];
    remove_file();
    sessions_folder(folder);
    assert_int_equal(rmdir(folder), 0);
}

static const struct {
    void (*attack)(void);
    const char *name, *said;
} attacks[] = {
    { remove_file, "talk", "was removed" },     { rename_file, "talk", "was removed" },
    { empty_file, "talk", "was truncated" },    { cut_file, "talk", "was truncated" },
    { replace_file, "talk-2", "was replaced" }, { remove_folder, "talk", "was removed" },
};

/* What can be written after it happened: a message, its answer, a setting, /undo and so on, and nothing. */
static void nothing_more(Fixture *x) { (void)x; }
static void one_more(Fixture *x) { say(x, "third"), answer(x, "3"); }
static void undo(Fixture *x) { say(x, "/undo"); }
static void settings(Fixture *x) {
    say(x, "/temp 0.5"), say(x, "/stop END"), say(x, "/stop off"), say(x, "/system off");
}
static void forgotten(Fixture *x) { say(x, "/forget"); }
static void longer(Fixture *x) { say(x, "/continue"), answer(x, " and a half"); }
static void cleared(Fixture *x) { say(x, "/clear"), one_more(x); }
static void leave(Fixture *x) { say(x, "/new next"), one_more(x); }

static const struct {
    void (*act)(Fixture *x);
    size_t messages;
    const char *last;
} acts[] = {
    { nothing_more, 4, "2" }, { one_more, 6, "3" },          { undo, 2, "1" },    { settings, 4, "2" },
    { forgotten, 2, "2" },    { longer, 4, "2 and a half" }, { cleared, 2, "3" }, { leave, 4, "2" },
};

static void lost_and_written(Fixture *x, size_t attack, size_t act) {
    x->app.session.on = true;
    ui_session_use(&x->app.session, "talk");
    say(x, "/temp 1.5");
    say(x, "/system be brief");
    say(x, "first"), answer(x, "1");
    say(x, "second"), answer(x, "2");
    attacks[attack].attack();
    acts[act].act(x);
    ui_app_pump(&x->app);
    ui_app_finish(&x->app);
    assert_int_equal(x->app.exit_code, 0);
    assert_int_equal(told(x, attacks[attack].said), 1);
    Fixture *y = another();
    assert_true(ui_app_resume(&y->app, attacks[attack].name));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), acts[act].messages);
    assert_string_equal(last_text(y), acts[act].last);
    const bool set = acts[act].act == settings;
    assert_float_equal(y->app.settings.params.temperature, (set ? 0.5f : 1.5f), 1e-6);
    assert_string_equal(ui_buf_str(&y->app.system), set ? "" : "be brief");
    assert_int_equal(y->app.stops.n, 0);
    if (strcmp(attacks[attack].name, "talk") != 0) {
        assert_true(ui_app_resume(&y->app, "talk"));
        assert_string_equal(ui_buf_str(&y->app.chat.items[0]->raw), "theirs");
    }
    another_free(y);
}

static void test_file_is_lost(void **state) {
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
            void *fresh = NULL;
            assert_int_equal(setup(&fresh), 0);
            lost_and_written(fresh, i, k);
            (void)teardown(&fresh);
        }
    }
    (void)state;
}

/* In the middle of an answer, and of one that /continue continues: killed right after, nothing is lost. */
static void test_lost_while_answering(void **state) {
    for (size_t i = 0; i < 2 * sizeof attacks / sizeof *attacks; i++) {
        Fixture *x = NULL;
        char err[300];
        assert_int_equal(setup((void **)&x), 0);
        x->app.session.on = true;
        ui_session_use(&x->app.session, "talk");
        say(x, "first");
        if (i % 2) answer(x, "so "), say(x, "/continue");
        fake_text(&x->engine, "long ");
        ui_app_pump(&x->app), ui_app_tick(&x->app, ui_now() + 2);
        attacks[i / 2].attack();
        fake_text(&x->engine, "answer");
        ui_app_pump(&x->app), ui_app_tick(&x->app, ui_now() + 9);
        assert_int_equal(told(x, attacks[i / 2].said), 1);
        assert_true(qsf_chatlog_copy(attacks[i / 2].name, "seen", err, sizeof err));
        Fixture *y = another();
        assert_true(ui_app_resume(&y->app, "seen"));
        assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 2);
        assert_string_equal(last_text(y), i % 2 ? "so long answer" : "long answer");
        fake_done(&x->engine, QSF_STOP_EOS, 3);
        ui_app_pump(&x->app), ui_app_finish(&x->app);
        assert_true(ui_app_resume(&y->app, attacks[i / 2].name));
        assert_string_equal(last_text(y), i % 2 ? "so long answer" : "long answer");
        another_free(y);
        (void)teardown((void **)&x);
    }
    (void)state;
}

/* The folder cannot be made again for a while: said once, and everything follows. */
static void test_no_folder(void **state) {
    Fixture *x = *state;
    char folder[600];
    sessions_folder(folder);
    x->app.session.on = true;
    ui_session_use(&x->app.session, "talk");
    say(x, "first"), answer(x, "1");
    remove_folder();
    FILE *f = fopen(folder, "w");
    assert_non_null(f);
    fclose(f);
    say(x, "second"), answer(x, "2");
    say(x, "/temp 1.5");
    say(x, "third"), answer(x, "3");
    assert_int_equal(told(x, "not saved: "), 1);
    assert_int_equal(unlink(folder), 0);
    say(x, "fourth"), answer(x, "4");
    assert_int_equal(told(x, "saved again as talk"), 1);
    ui_app_finish(&x->app);
    assert_int_equal(x->app.exit_code, 0);
    Fixture *y = another();
    assert_true(ui_app_resume(&y->app, "talk"));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 8);
    assert_float_equal(y->app.settings.params.temperature, 1.5f, 1e-6);
    another_free(y);
}

/* Exit status 0 if there is space again when the chat ends at the latest; 1 without, or for a
 * session that was left. */
static void test_exit_code(void **state) {
    (void)state;
    static char big[9000];
    memset(big, 'x', sizeof big - 1);
    for (int i = 0; i < 4; i++) {
        Fixture *x = NULL;
        assert_int_equal(setup((void **)&x), 0);
        x->app.session.on = true;
        ui_session_use(&x->app.session, "full");
        say(x, "first"), answer(x, "1");
        void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
        limit(8000);
        say(x, big), answer(x, "2");
        if (i == 0) limit(RLIM_INFINITY), say(x, "third"), answer(x, "3");
        if (i == 1) limit(RLIM_INFINITY);
        if (i == 3) say(x, "/new next"), say(x, "third"), answer(x, "3");
        ui_app_finish(&x->app);
        limit(RLIM_INFINITY);
        signal(SIGXFSZ, was);
        assert_int_equal(x->app.exit_code, i < 2 ? 0 : 1);
        (void)teardown((void **)&x);
    }
}

/* ---- a message without an answer ---- */

/* How the chat ends while the second message is read. */
static void interrupted(Fixture *x) {
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    ui_app_finish(&x->app);
}
static void quit(Fixture *x) { ui_app_finish(&x->app); }
static void killed(Fixture *x) { ui_session_close(&x->app.session); }

static void ask_twice(Fixture *x) {
    x->app.session.on = true;
    ui_session_use(&x->app.session, "talk");
    say(x, "first"), answer(x, "1");
    say(x, "second");
}

/* Resumes the session, lets act do something and leaves again. */
static void resumed(void (*act)(Fixture *x), size_t messages, const char *last) {
    Fixture *y = another();
    assert_true(ui_app_resume(&y->app, "talk"));
    assert_int_equal(told(y, "the last message had no answer yet: /retry sends it again"), 1);
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 2);
    act(y);
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), messages);
    assert_string_equal(last_text(y), last);
    ui_app_finish(&y->app);
    another_free(y);
}

static void ask_again(Fixture *x) { say(x, "/retry"), answer(x, "2"); }
static void ask_other(Fixture *x) { say(x, "/temp 1.5"), say(x, "third"), answer(x, "3"); }
static void continue_before(Fixture *x) {
    say(x, "/continue");
    fake_text(&x->engine, " and"), ui_app_pump(&x->app), ui_app_tick(&x->app, ui_now() + 2);
    answer(x, " more");
}
static void written_again(Fixture *x) {
    assert_int_equal(unlink(path_of("talk")), 0);
    say(x, "/temp 1.5");
}

static void test_unanswered(void **state) {
    void (*const ends[])(Fixture *) = { interrupted, quit, killed };
    static const struct {
        void (*act)(Fixture *x);
        size_t messages;
        const char *last, *question;
    } then[] = {
        { ask_again, 4, "2", "second" },
        { ask_other, 4, "3", "third" },
        { continue_before, 2, "1 and more", "second" },
        { undo, 0, "", "" },
        { forgotten, 0, "", "second" },
        { written_again, 2, "1", "second" },
    };
    (void)state;
    for (size_t i = 0; i < 3 * sizeof then / sizeof *then; i++) {
        Fixture *x = NULL;
        assert_int_equal(setup((void **)&x), 0);
        ask_twice(x);
        ends[i % 3](x);
        resumed(nothing_more, 2, "1"); /* is not lost by looking at it */
        resumed(then[i / 3].act, then[i / 3].messages, then[i / 3].last);
        Fixture *y = another();
        assert_true(ui_app_resume(&y->app, "talk"));
        assert_int_equal(ui_transcript_count(&y->app.chat, NULL), then[i / 3].messages);
        assert_string_equal(last_text(y), then[i / 3].last);
        assert_string_equal(last_said(y, UI_USER), then[i / 3].question);
        another_free(y);
        (void)teardown((void **)&x);
    }
}

static void ask_in_vain(Fixture *x, const char *text) {
    say(x, text);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
}

/* The messages of the session: those in brackets are not in the context. */
static const char *shown(const char *name, const char *command) {
    static char text[400];
    Fixture *y = another();
    text[0] = '\0';
    assert_true(ui_app_resume(&y->app, name));
    if (*command) say(y, command);
    for (size_t i = 0; i < y->app.chat.n; i++) {
        const UiItem *it = y->app.chat.items[i];
        const size_t at = strlen(text);
        if (it->kind == UI_USER || it->kind == UI_ANSWER)
            (void)snprintf(text + at, sizeof text - at, it->in_context ? "%s " : "(%s) ",
                           ui_buf_str(&it->raw));
    }
    ui_app_finish(&y->app);
    another_free(y);
    return text;
}

/* Messages without an answer are not lost when others follow. */
static void test_unanswered_stay(void **state) {
    Fixture *x = *state;
    x->app.full_screen = x->app.session.on = true;
    ui_session_use(&x->app.session, "talk");
    ask_in_vain(x, "A");
    ask_in_vain(x, "B");
    say(x, "one"), answer(x, "1");
    ask_in_vain(x, "C");
    say(x, "two"), answer(x, "2");
    ask_in_vain(x, "D");
    ask_in_vain(x, "E");
    say(x, "/save copy");
    ui_app_finish(&x->app);
    static const char all[] = "(A) (B) one 1 (C) two 2 (D) (E) ";
    assert_string_equal(shown("talk", ""), all);
    assert_string_equal(shown("copy", ""), all);
    assert_string_equal(shown("copy", "/forget"), "(A) (B) (one) (1) (C) two 2 (D) (E) ");
    assert_string_equal(shown("copy", ""), "(A) (B) (one) (1) (C) two 2 (D) (E) ");
    assert_string_equal(shown("copy", "/continue"), "(A) (B) (one) (1) (C) two 2 (D) (E) ");
    (void)shown("talk", "/undo");
    assert_string_equal(shown("talk", ""), "(A) (B) one 1 (C) ");
    (void)shown("talk", "/clear");
    assert_string_equal(shown("talk", ""), "");
}

/* "again" only if it was saved before. */
static void test_saved_again(void **state) {
    Fixture *x = *state;
    static char big[9000];
    memset(big, 'x', sizeof big - 1);
    x->app.session.on = true;
    ui_session_use(&x->app.session, "late");
    full_disk(x, big);
    ui_app_pump(&x->app);
    answer(x, "1");
    assert_int_equal(told(x, "saved again"), 0);
    assert_int_equal(told(x, "saved as late"), 1);
    full_disk(x, big);
    ui_app_pump(&x->app);
    answer(x, "2");
    assert_int_equal(told(x, "saved again as late"), 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_export_is_whole),      T(test_save_is_whole), T(test_first_message_fails),
        T(test_temporarily_full),     T(test_same_second),   T(test_save_taken),
        T(test_context_in_use),       T(test_snapshot),      T(test_file_is_lost),
        T(test_lost_while_answering), T(test_no_folder),     T(test_exit_code),
        T(test_unanswered),           T(test_saved_again),   T(test_unanswered_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
