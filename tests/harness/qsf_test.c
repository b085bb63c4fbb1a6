/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helpers of the unit tests. */
#include "tests/harness/qsf_test.h"

#include <limits.h>
#include <time.h>

const char *qsf_test_tmp(const char *name) {
    static char paths[4][PATH_MAX];
    static unsigned turn;
    const char *dir = getenv("TMPDIR");
    char *out = paths[turn++ % 4];
    snprintf(out, PATH_MAX, "%s/qsf-%ld-%s", dir != NULL && *dir != '\0' ? dir : "/tmp", (long)getpid(),
             name);
    return out;
}

const char *qsf_test_data(const char *relative) {
    static char path[PATH_MAX];
    const char *data = getenv("QSF_TEST_DATA"), *src = getenv("QSF_SRCDIR");
    if (data != NULL && *data != '\0')
        snprintf(path, sizeof path, "%s/%s", data, relative);
    else
        snprintf(path, sizeof path, "%s/../shared/%s", src != NULL && *src != '\0' ? src : ".", relative);
    if (access(path, R_OK) == 0) return path;
    printf("skip: test data %s is absent\n", path);
    return NULL;
}

uint64_t qsf_test_cpu_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool qsf_test_emulated(const char *left_out) {
    const char *by = getenv("QSF_EMULATOR");
    const bool is = by != NULL && *by != '\0';
    if (is) print_message("skip: in an emulator: %s\n", left_out);
    return is;
}

bool qsf_test_quick(void) {
    const char *quick = getenv("QSF_TEST_QUICK");
    return quick != NULL && *quick != '\0';
}

void qsf_test_expect_err(const QsfErr *err, int code, const char *part) {
    if (err->code == code && strstr(err->msg, part) != NULL) return;
    fail_msg("expected error %d with \"%s\", got %d \"%s\"", code, part, err->code, err->msg);
}

void qsf_test_expect_ok(int rc, const QsfErr *err) {
    if (rc != QSF_OK || err->code != QSF_OK) fail_msg("error %d: %s", rc, err->msg);
}
