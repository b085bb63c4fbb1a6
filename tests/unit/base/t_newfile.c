/* SPDX-License-Identifier: GPL-3.0-or-later */
/* New files: complete or absent, however the process ends, with and without names while they are written. */
#include "tests/harness/qsf_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "src/base/newfile.h"

static char dir[300], path[400];

static int setup(void **state) {
    qsf_savefile_always_named(*state != NULL);
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("newfile"));
    if (mkdtemp(dir) == NULL) return -1;
    (void)snprintf(path, sizeof path, "%s/model.qsf", dir);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    qsf_savefile_always_named(false);
    return rmdir(dir); /* each test has removed the files it knows */
}

static int files(void) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n - 2;
}

static const char *in_dir(const char *name) {
    static char full[600];
    (void)snprintf(full, sizeof full, "%s/%s", dir, name);
    return full;
}

static void put(const char *name, const char *text) {
    FILE *f = fopen(in_dir(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void expect_text(const char *want) {
    char have[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void)!fread(have, 1, sizeof have - 1, f);
    fclose(f);
    assert_string_equal(have, want);
}

static void begin(QsfNewFile *f, const char *text) {
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_newfile_create(f, path, &e), &e);
    assert_int_equal(write(f->file.fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void test_commit(void **state) {
    QsfNewFile f;
    QsfErr e = { 0 };
    struct stat st;
    mode_t mask = umask(027);
    begin(&f, "new");
    umask(mask);
    /* the file system of the tests supports unnamed files */
    assert_true((f.file.temp[0] != '\0') == (*state != NULL));
    assert_int_equal(files(), *state != NULL ? 1 : 0);
    qsf_test_expect_ok(qsf_newfile_commit(&f, &e), &e);
    assert_null(f.path);
    expect_text("new");
    assert_int_equal(files(), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    qsf_newfile_discard(&f); /* no cleanup is needed */
    expect_text("new");

    begin(&f, "newer"); /* in place of the old one, which exists until then */
    expect_text("new");
    qsf_test_expect_ok(qsf_newfile_commit(&f, &e), &e);
    expect_text("newer");
    assert_int_equal(files(), 1);

    begin(&f, "never");
    qsf_newfile_discard(&f);
    qsf_newfile_discard(&f);
    expect_text("newer");
    assert_int_equal(files(), 1);
    unlink(path);
}

static void test_errors(void **state) {
    QsfNewFile f;
    QsfErr e = { 0 };
    (void)state;
    assert_int_equal(qsf_newfile_create(&f, "/nowhere/at/all", &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "/nowhere/at/all: cannot create a file there: No such file");
    assert_null(f.path);
    qsf_err_clear(&e);
    begin(&f, "x");
    assert_int_equal(mkdir(path, 0700), 0); /* occupies the name */
    assert_int_equal(qsf_newfile_commit(&f, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "model.qsf: cannot rename it");
    assert_int_equal(files(), 1);
    rmdir(path);
}

/* A killed process leaves nothing that the next one does not remove. */
static void test_killed(void **state) {
    QsfNewFile f;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (qsf_newfile_create(&f, path, NULL) != QSF_OK || write(f.file.fd, "x", 1) != 1) _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files(), *state != NULL ? 1 : 0);
    begin(&f, "y");
    assert_int_equal(files(), *state != NULL ? 1 : 0);
    qsf_newfile_discard(&f);
    assert_int_equal(files(), 0);
}

/* Only the remains of a dead process for exactly this file are removed. */
static void test_leftovers(void **state) {
    static const char *const stay[] = { "model.qsf.backup",
                                        "model.qsf.0123abcd.qsf-part.txt",
                                        "other.qsf.0123abcd.qsf-part",
                                        "model.qsf.0123abcx.qsf-part",
                                        "model.qsf0123abcd.qsf-part",
                                        "0123abcd.qsf-part" };
    static const char *const go[] = { "model.qsf.0123abcd.qsf-part",
                                      "model.qsf.calibration.77.0123abcd.qsf-part" };
    enum { STAY = sizeof stay / sizeof *stay, GO = sizeof go / sizeof *go };
    QsfNewFile f, g;
    (void)state;
    for (size_t i = 0; i < STAY; i++) put(stay[i], "");
    for (size_t i = 0; i < GO; i++) put(go[i], "");
    assert_int_equal(mkdir(in_dir("model.qsf.11111111.qsf-part"), 0700), 0);
    assert_int_equal(symlink("model.qsf.backup", in_dir("model.qsf.22222222.qsf-part")), 0);
    char *part = qsf_newfile_part(path);
    assert_non_null(part);
    put(strrchr(part, '/') + 1, "held");
    int held = qsf_newfile_hold(part);
    assert_true(held >= 0);
    begin(&f, "one");
    const int mine = f.file.temp[0] != '\0';
    assert_int_equal(files(), STAY + 3 + mine);
    begin(&g, "two"); /* at the same time */
    assert_int_equal(files(), STAY + 3 + 2 * mine);
    qsf_newfile_discard(&g);
    assert_int_equal(access(part, F_OK), 0);
    close(held);
    begin(&g, "three");
    assert_int_equal(access(part, F_OK), -1);
    qsf_newfile_discard(&f);
    qsf_newfile_discard(&g);
    for (size_t i = 0; i < STAY; i++) assert_int_equal(unlink(in_dir(stay[i])), 0);
    assert_int_equal(rmdir(in_dir("model.qsf.11111111.qsf-part")), 0);
    assert_int_equal(unlink(in_dir("model.qsf.22222222.qsf-part")), 0);
    free(part);
}

/* A path without a directory. */
static void test_bare_name(void **state) {
    QsfNewFile f;
    QsfErr e = { 0 };
    int here = open(".", O_RDONLY | O_DIRECTORY);
    (void)state;
    assert_true(here >= 0);
    assert_int_equal(chdir(dir), 0);
    qsf_test_expect_ok(qsf_newfile_create(&f, "bare", &e), &e);
    qsf_test_expect_ok(qsf_newfile_commit(&f, &e), &e);
    assert_int_equal(unlink("bare"), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
}

int main(void) {
    static char named[] = "named";
#define BOTH(f) \
    { #f, f, setup, teardown, NULL }, { #f " (named)", f, setup, teardown, named }
    const struct CMUnitTest tests[] = { BOTH(test_commit), BOTH(test_errors), BOTH(test_killed),
                                        BOTH(test_leftovers), BOTH(test_bare_name) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
