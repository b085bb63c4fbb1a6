/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locations of files. */
#include "tests/harness/qsf_test.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "src/base/paths.h"

static void expect_path(bool (*get)(char[QSF_PATH_MAX]), const char *want) {
    char got[QSF_PATH_MAX];
    memset(got, 'x', sizeof got);
    assert_int_equal(get(got), want != NULL);
    assert_string_equal(got, want != NULL ? want : "");
}

static void test_xdg(void **state) {
    char longest[QSF_PATH_MAX];
    (void)state;
    setenv("HOME", "/home/x", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("XDG_STATE_HOME", "relative", 1);
    unsetenv("XDG_CONFIG_HOME");
    expect_path(qsf_path_data_home, "/data/qsf");
    expect_path(qsf_path_state_home, "/home/x/.local/state/qsf");
    expect_path(qsf_path_config_home, "/home/x/.config/qsf");
    unsetenv("HOME");
    expect_path(qsf_path_config_home, NULL);
    expect_path(qsf_path_data_home, "/data/qsf");
    memset(longest, 'd', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    setenv("XDG_DATA_HOME", longest, 1); /* not enough space for /qsf */
    expect_path(qsf_path_data_home, NULL);
    longest[sizeof longest - 1 - strlen("/qsf")] = '\0';
    setenv("XDG_DATA_HOME", longest, 1);
    assert_true(qsf_path_data_home(longest));
    assert_int_equal(strlen(longest), sizeof longest - 1);
}

static void test_make_dirs(void **state) {
    char base[PATH_MAX], deep[QSF_PATH_MAX + 32], sub[PATH_MAX + 32];
    QsfErr e = { 0 };
    struct stat st;
    (void)state;
    snprintf(base, sizeof base, "%s", qsf_test_tmp("dirs"));
    snprintf(deep, sizeof deep, "%s/a/b/", base);
    snprintf(sub, sizeof sub, "%s/a/b/file", base);
    qsf_test_expect_ok(qsf_path_make_dirs(deep, &e), &e);
    qsf_test_expect_ok(qsf_path_make_dirs(deep, &e), &e);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    FILE *f = fopen(sub, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(qsf_path_make_dirs(sub, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, sub);
    qsf_err_clear(&e);
    strcat(sub, "/x");
    assert_int_equal(qsf_path_make_dirs(sub, &e), QSF_E_RUNTIME);
    /* The reason is why it cannot be made, not that it does not exist. */
    if (stat("/sys/kernel", &st) == 0) {
        qsf_err_clear(&e);
        assert_int_equal(qsf_path_make_dirs("/sys/kernel/qsf-test/x", &e), QSF_E_RUNTIME);
        assert_null(strstr(e.msg, strerror(ENOENT)));
    }
    setenv("QSF_DATADIR", base, 1);
    assert_true(qsf_path_data("a", deep));
    assert_memory_equal(deep, base, strlen(base));
    assert_false(qsf_path_data("no such folder", deep));
    assert_string_equal(deep, "");
    unsetenv("QSF_DATADIR");
    snprintf(sub, sizeof sub, "%s/a/b/file", base);
    unlink(sub);
    snprintf(deep, sizeof deep, "%s/a/b", base);
    rmdir(deep);
    snprintf(deep, sizeof deep, "%s/a", base);
    rmdir(deep);
    rmdir(base);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_xdg), cmocka_unit_test(test_make_dirs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
