/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history file: appended entries are read back, and anything else in its place does no harm. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/qsf_test.h"
#include "ui/buf.h"
#include "ui/history.h"

static char path[400];

static int setup(void **state) {
    (void)state;
    (void)snprintf(path, sizeof path, "%s.XXXXXX", qsf_test_tmp("history"));
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd < 0;
}

static void collect(void *arg, const char *entry) { ui_buf_printf(arg, "%s|", entry); }

static void expect(const char *entries) {
    UiBuf b = { 0 };
    ui_history_read(path, collect, &b);
    assert_string_equal(ui_buf_str(&b), entries);
    ui_buf_free(&b);
}

static void test_round_trip(void **state) {
    (void)state;
    assert_true(ui_history_append(path, "one"));
    assert_true(ui_history_append(path, "two\nlines \\ n"));
    expect("one|two\nlines \\ n|");
}

/* The pipe has neither a writer nor a reader: opening it must not block. */
static void test_not_a_file(void **state) {
    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(200);
    expect("");
    assert_false(ui_history_append(path, "x"));
    alarm(0);
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    expect("");
    assert_false(ui_history_append(path, "x"));
}

/* An entry that does not fit leaves no part that the next one would be appended to. */
static void test_full_disk(void **state) {
    (void)state;
    struct rlimit old, tight;
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_true(ui_history_append(path, "one"));
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 100;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    bool ok = ui_history_append(path, big);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, was);
    assert_false(ok);
    assert_true(ui_history_append(path, "two"));
    expect("one|two|");
}

/* A file that grew is truncated to the last entries; one that cannot be truncated is kept whole. */
static void test_cut(void **state) {
    (void)state;
    struct stat before, after;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 2 * UI_HISTORY_MAX + 5; i++) fprintf(f, "entry %d\n", i);
    fclose(f);
    assert_int_equal(stat(path, &before), 0);
    UiBuf b = { 0 };
    ui_history_read(path, collect, &b);
    assert_int_equal(strncmp(ui_buf_str(&b), "entry 1005|", 11), 0);
    ui_buf_free(&b);
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_size < before.st_size * 2 / 3);
    assert_true(ui_history_append(path, "last"));
    ui_history_read(path, collect, &b);
    assert_non_null(strstr(ui_buf_str(&b), "entry 2004|last|"));
    ui_buf_free(&b);
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_round_trip), T(test_not_a_file), T(test_full_disk),
                                        T(test_cut) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
