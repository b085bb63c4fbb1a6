/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The message in an editor: scripts take its place. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/qsf_test.h"
#include "ui/compose/editor.h"
#include "ui/ui_signals.h"

static char dir[400];

static int setup(void **state) {
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("editor"));
    if (!mkdtemp(dir) || !ui_signals_open(false)) return 1;
    setenv("XDG_RUNTIME_DIR", dir, 1);
    unsetenv("VISUAL");
    return 0;
}

static int keys_seen;

static int wait_once(void *arg) {
    struct pollfd p = { .fd = ui_signals_fd(), .events = POLLIN };
    int pass = 0;
    (void)poll(&p, 1, -1);
    for (int sig; (sig = ui_signals_next()) != 0;) {
        pass = sig == SIGTERM ? sig : pass;
        keys_seen += sig == SIGINT || sig == SIGTSTP;
    }
    (void)arg;
    return pass;
}

static UiBuf text;

static bool run(UiEditor *e, const char *editor, const char *draft) {
    setenv("EDITOR", editor, 1);
    e->wait = wait_once;
    if (e->room == 0) e->room = 1000;
    return ui_editor_run(e, draft, strlen(draft), &text);
}

/* The number of entries in the directory for temporary files. */
static int left_over(void) {
    char command[500], n[16] = "";
    (void)snprintf(command, sizeof command, "ls -A '%s' | wc -l", dir);
    FILE *f = popen(command, "r");
    if (!f) return -1;
    if (!fgets(n, sizeof n, f)) n[0] = '\0';
    (void)pclose(f);
    return atoi(n);
}

static void test_edits(void **state) {
    (void)state;
    UiEditor e = { 0 };
    assert_true(run(&e, "printf 'two\\nlines\\n' >>", "one\n"));
    assert_string_equal(text.data, "one\ntwo\nlines");
    assert_int_equal(left_over(), 0);
    assert_true(run(&e, "true", ""));
    assert_string_equal(ui_buf_str(&text), "");
    /* UTF-16, and an editor that leaves a backup. */
    assert_true(run(&e, "f() { printf '\\377\\376h\\0i\\0\\n\\0' >\"$1\"; cp \"$1\" \"$1~\"; }; f", ""));
    assert_string_equal(text.data, "hi");
    assert_int_equal(left_over(), 0);
    setenv("VISUAL", "printf visual >", 1);
    assert_true(run(&e, "false", "x"));
    assert_string_equal(text.data, "visual");
    unsetenv("VISUAL");
}

/* Only the user can read the file and its directory; the editor has no signal that is ignored. */
static void test_private(void **state) {
    (void)state;
    UiEditor e = { 0 };
    assert_true(
        run(&e,
            "f() { stat -c %a \"$1\" \"$(dirname \"$1\")\" >\"$1.new\"; basename \"$1\" >>\"$1.new\"; "
            "sed -n 's/^SigIgn:.//p' /proc/self/status >>\"$1.new\"; mv \"$1.new\" \"$1\"; }; f",
            "secret"));
    assert_non_null(strstr(text.data, "600\n700\nmessage.md\n"));
    const unsigned long long ignored = strtoull(strstr(text.data, ".md\n") + 4, NULL, 16);
    assert_int_equal(ignored & (1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1)), 0);
}

static void test_failures(void **state) {
    (void)state;
    UiEditor e = { 0 };
    assert_false(run(&e, "no-such-editor -x", "text"));
    assert_string_equal(e.problem, "the editor no-such-editor cannot be run: set VISUAL or EDITOR");
    assert_false(run(&e, "sh -c 'exit 3'", "text"));
    assert_string_equal(e.problem, "sh ended with status 3: the message is unchanged");
    assert_false(run(&e, "sh -c 'kill -KILL $$'", "text"));
    assert_non_null(strstr(e.problem, "status 137"));
    assert_false(run(&e, "rm", "text"));
    assert_non_null(strstr(e.problem, "No such file"));
    assert_false(run(&e, "", "text"));
    assert_string_equal(e.problem, "no editor: set VISUAL or EDITOR");
    assert_int_equal(left_over(), 0);
}

/* A text that does not fit is not lost. */
static void test_too_long(void **state) {
    (void)state;
    UiEditor e = { .room = 10 };
    struct stat st;
    assert_false(run(&e, "echo more than ten bytes >", ""));
    const char *path = strstr(e.problem, "the text is in ");
    assert_non_null(path);
    path += strlen("the text is in ");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 20);
    assert_int_equal(unlink(path), 0);
}

/* A signal to this program reaches the editor. */
static void test_terminated(void **state) {
    (void)state;
    UiEditor e = { 0 };
    char editor[100];
    (void)snprintf(editor, sizeof editor, "kill -TERM %d; exec sleep 100; :", (int)getpid());
    assert_false(run(&e, editor, "text"));
    assert_non_null(strstr(e.problem, "status 143"));
}

/* The pending signals of the keys. */
static int caught(void) {
    int n = 0;
    for (int sig; (sig = ui_signals_next()) != 0;) n += sig == SIGINT || sig == SIGTSTP;
    return n;
}

/* The signals of ^C and ^Z reach only the editor, and none is pending when the editor has ended. */
static void test_keys(void **state) {
    (void)state;
    UiEditor e = { 0 };
    const pid_t self = getpid();
    char editor[200];
    assert_true(ui_signals_open(true));
    (void)snprintf(editor, sizeof editor,
                   "f() { kill -INT %d; kill -TSTP %d; kill -QUIT %d; echo text >\"$1\"; }; f", (int)self,
                   (int)self, (int)self);
    assert_true(run(&e, editor, ""));
    assert_string_equal(text.data, "text");
    assert_int_equal(keys_seen, 0);
    assert_int_equal(caught(), 0);
    /* The editor has them as they were, and so has this program. */
    assert_true(run(&e, "f() { sed -n 's/^SigIgn:.//p' /proc/self/status >\"$1\"; }; f", ""));
    const unsigned long long ignored = strtoull(text.data, NULL, 16);
    assert_int_equal(ignored & (1ull << (SIGINT - 1) | 1ull << (SIGQUIT - 1) | 1ull << (SIGTSTP - 1)), 0);
    assert_int_equal(raise(SIGINT), 0);
    assert_int_equal(caught(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_edits, setup),      cmocka_unit_test_setup(test_private, setup),
        cmocka_unit_test_setup(test_failures, setup),   cmocka_unit_test_setup(test_too_long, setup),
        cmocka_unit_test_setup(test_terminated, setup), cmocka_unit_test_setup(test_keys, setup),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ui_buf_free(&text);
    return failed;
}
