/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are complete or absent: with an unnamed temporary file, and where these are not supported. */
#undef _FORTIFY_SOURCE /* openat is defined here */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_savefile.h"
#include "tests/harness/qsf_test.h"

/* The library is linked statically, so it calls these. */
static bool no_tmpfile, no_links, no_sync;

int openat(int dir, const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = makes ? (mode_t)va_arg(ap, int) : 0;
    va_end(ap);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    if (no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int fsync(int fd) {
    if (no_sync) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static char folder[400], path[500];

static void in_folder(const char *name) { (void)snprintf(path, sizeof path, "%s/%s", folder, name); }

static void put(const char *name, const char *text) {
    in_folder(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void expect(const char *name, const char *text) {
    char got[100] = "";
    in_folder(name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void)!fread(got, 1, sizeof got - 1, f);
    fclose(f);
    assert_string_equal(got, text);
}

/* Includes hidden ones. */
static int files(void) {
    DIR *d = opendir(folder);
    int n = -2;
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static int save(const char *name, const char *text, bool overwrite) {
    in_folder(name);
    return qsf_savefile_save(path, text, strlen(text), overwrite);
}

static int setup(void **state) {
    (void)state;
    no_tmpfile = no_links = no_sync = false;
    (void)snprintf(folder, sizeof folder, "%s.XXXXXX", qsf_test_tmp("newfile"));
    return mkdtemp(folder) ? 0 : 1;
}

static int setup_named(void **state) {
    int rc = setup(state);
    no_tmpfile = true;
    return rc;
}

static int setup_fat(void **state) {
    int rc = setup_named(state);
    no_links = true;
    return rc;
}

static void new_and_over(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(save("a", "one", false), 0);
    expect("a", "one");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(save("a", "two", false), EEXIST);
    expect("a", "one");
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(save("a", "three", true), 0);
    expect("a", "three");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(save("b", "new", true), 0);
    expect("b", "new");
    assert_int_equal(files(), 2);
}

static void what_is_replaced(void **state) {
    (void)state;
    char target[500];
    put("target", "old");
    memcpy(target, path, sizeof target);
    in_folder("link");
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(save("link", "x", false), EEXIST);
    assert_int_equal(save("link", "new", true), 0);
    expect("target", "new");
    in_folder("link");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    in_folder("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(save("pipe", "x", true), EINVAL);
    assert_int_equal(save("pipe", "x", false), EEXIST);
    in_folder("sub");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(save("sub", "x", true), EINVAL);
    assert_int_equal(save("sub/", "x", false), EISDIR);
    assert_int_equal(save("gone/x", "x", false), ENOENT);
    assert_int_equal(files(), 4);
}

/* A limit on file sizes simulates a full disk; the final flush is what fails. */
static void failures_leave_nothing(void **state) {
    (void)state;
    struct rlimit old, tight;
    static char big[8192];
    memset(big, 'x', sizeof big - 1);
    put("there", "old");
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 4096;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    int fresh = save("fresh", big, false), over = save("there", big, true);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, was);
    assert_int_equal(fresh, EFBIG);
    assert_int_equal(over, EFBIG);
    no_sync = true;
    assert_int_equal(save("fresh", "x", false), ENOSPC);
    assert_int_equal(save("there", "x", true), ENOSPC);
    expect("there", "old");
    assert_int_equal(files(), 1);
}

/* Killed before the file is named: there is nothing under the final name, and the next save removes any
 * remains. */
static void killed(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        QSFSaveFile f;
        in_folder("x");
        if (qsf_savefile_open(&f, path) == 0 && qsf_savefile_write(&f, "half", 4) == 0) raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files(), no_tmpfile ? 1 : 0);
    assert_int_equal(save("x", "whole", false), 0);
    expect("x", "whole");
    assert_int_equal(files(), 1);
}

/* Two programs at a time, and a name that another one took in the meantime. */
static void beside_one_another(void **state) {
    (void)state;
    QSFSaveFile f, g;
    in_folder("x");
    assert_int_equal(qsf_savefile_open(&f, path), 0);
    assert_int_equal(qsf_savefile_open(&g, path), 0);
    assert_int_equal(qsf_savefile_write(&f, "f", 1), 0);
    assert_int_equal(qsf_savefile_write(&g, "g", 1), 0);
    assert_int_equal(qsf_savefile_publish(&f, path, false), 0);
    assert_int_equal(qsf_savefile_publish(&g, path, false), EEXIST);
    in_folder("x-2");
    assert_int_equal(qsf_savefile_publish(&g, path, false), 0);
    int fd = f.fd;
    qsf_savefile_close(&f, true);
    qsf_savefile_close(&g, false);
    expect("x", "f");
    expect("x-2", "g");
    assert_int_equal(files(), 2);
    in_folder("x");
    int again = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(again, LOCK_EX | LOCK_NB), -1); /* the lock was created too */
    close(again);
    close(fd);
}

/* Remains of killed programs in the directory are removed, whatever name they were for; parts of models are
 * not. */
static void leftovers(void **state) {
    (void)state;
    put(".qsf-new.0123abcd.qsf-part", "dead");
    put("model.qsf.0123abcd.qsf-part", "for the next conversion");
    assert_int_equal(save("x", "whole", false), 0);
    expect("x", "whole");
    assert_int_equal(files(), 2);
    in_folder(".qsf-new.0123abcd.qsf-part");
    assert_int_equal(access(path, F_OK), -1);
}

#define T(f) cmocka_unit_test_setup(f, setup)
#define NAMED(f) \
    { #f " without O_TMPFILE", f, setup_named, NULL, NULL }
#define FAT(f) \
    { #f " without links", f, setup_fat, NULL, NULL }

int main(void) {
    const struct CMUnitTest tests[] = {
        T(new_and_over),     T(what_is_replaced),       T(failures_leave_nothing),
        T(killed),           T(beside_one_another),     T(leftovers),
        NAMED(new_and_over), NAMED(what_is_replaced),   NAMED(failures_leave_nothing),
        NAMED(killed),       NAMED(beside_one_another), NAMED(leftovers),
        FAT(new_and_over),   FAT(beside_one_another),   FAT(killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
