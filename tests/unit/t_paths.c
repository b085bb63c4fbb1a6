/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places of files. */
#include "tests/harness/qsf_test.h"

#include <limits.h>
#include <sys/stat.h>

#include "src/base/paths.h"

static void expect_path(char *got, const char *want) {
    if (want == NULL) {
        assert_null(got);
    } else {
        assert_non_null(got);
        assert_string_equal(got, want);
    }
    free(got);
}

static void test_xdg(void **state) {
    (void)state;
    setenv("HOME", "/home/x", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("XDG_STATE_HOME", "relative", 1);
    unsetenv("XDG_CONFIG_HOME");
    expect_path(qsf_path_data_home(), "/data/qsf");
    expect_path(qsf_path_state_home(), "/home/x/.local/state/qsf");
    expect_path(qsf_path_config_home(), "/home/x/.config/qsf");
    unsetenv("HOME");
    expect_path(qsf_path_config_home(), NULL);
    expect_path(qsf_path_data_home(), "/data/qsf");
}

static void test_make_dirs(void **state) {
    char base[PATH_MAX], deep[PATH_MAX + 32], sub[PATH_MAX + 32];
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
    setenv("QSF_DATADIR", base, 1);
    char *found = qsf_path_data("a");
    assert_non_null(found);
    assert_memory_equal(found, base, strlen(base));
    free(found);
    assert_null(qsf_path_data("no such folder"));
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
