/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A flag that stops a thread's computations, and a limit for the memory that they take. */
#include "src/base/interrupt.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/sanitizer.h"
#include "tests/harness/qsf_test.h"

#define MIB ((uint64_t)1 << 20)

static void test_flag(void **state) {
    (void)state;
    atomic_int flag = 0;
    QsfErr err = { 0 };
    const atomic_int *before = qsf_interrupt_watch(&flag);
    assert_false(qsf_interrupted());
    assert_int_equal(qsf_interrupt_check(&err), QSF_OK);
    atomic_store(&flag, 2);
    assert_true(qsf_interrupted());
    assert_int_equal(qsf_interrupt_check(&err), QSF_E_INTERRUPTED);
    assert_ptr_equal(qsf_interrupt_watch(before), &flag);
    assert_false(qsf_interrupted());
}

/* Touches memory until the limit stops it; returns how many bytes that took, at most `most`. */
static uint64_t take(uint64_t most) {
    uint64_t taken = 0;
    char *p = malloc(most);
    assert_non_null(p);
    for (; taken < most && !qsf_interrupted(); taken += 4096) memset(p + taken, 1, 4096);
    free(p);
    return taken;
}

static bool has_limits(void) {
    return qsf_rss_bytes() > 0 && !QSF_ADDRESS_SANITIZER && !QSF_THREAD_SANITIZER && !QSF_MEMORY_SANITIZER;
}

static void test_limit(void **state) {
    (void)state;
    QsfErr err = { 0 };
    if (!has_limits()) skip();
    QsfMemoryLimit before = qsf_memory_limit_begin(qsf_rss_bytes() + 40 * MIB);
    assert_in_range(take(200 * MIB), 36 * MIB, 42 * MIB);
    assert_int_equal(qsf_interrupt_check(&err), QSF_E_BUDGET);
    assert_int_equal(qsf_memory_limit_end(&before, QSF_E_INTERRUPTED, "a.json", "--ram-budget", &err),
                     QSF_E_BUDGET);
    assert_non_null(strstr(err.msg, "a.json: it takes more memory than the RAM budget of "));
    assert_non_null(strstr(err.msg, " MB leaves: raise --ram-budget"));
    qsf_err_clear(&err);
    /* Without one, and where nothing was stopped. */
    assert_int_equal(take(60 * MIB), 60 * MIB);
    before = qsf_memory_limit_begin(qsf_rss_bytes() + 100 * MIB);
    assert_int_equal(take(20 * MIB), 20 * MIB);
    assert_int_equal(qsf_memory_limit_end(&before, QSF_OK, "a", "b", &err), QSF_OK);
    assert_int_equal(err.code, QSF_OK);
    /* A budget that is used already leaves a megabyte, so that something small always works. */
    before = qsf_memory_limit_begin(1);
    assert_in_range(take(100 * MIB), MIB / 2, 4 * MIB);
    assert_int_equal(qsf_memory_limit_end(&before, QSF_E_MODEL, "a", "b", &err), QSF_E_BUDGET);
}

/* A small text whose values take a hundred times its bytes. */
static char *bomb(size_t n, size_t *len) {
    char *text = malloc(3 * n + 3);
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < n; i++) memcpy(text + 1 + 3 * i, "{},", 3);
    memcpy(text + 3 * n, "]", 2);
    *len = 3 * n + 1;
    return text;
}

static void test_json(void **state) {
    (void)state;
    QsfErr err = { 0 };
    size_t len;
    char *text = bomb(1000000, &len);
    assert_null(qsf_json_parse(text, len, &err));
    assert_non_null(strstr(err.msg, "JSON: its values take more than 1"));
    qsf_err_clear(&err);
    if (has_limits()) {
        const uint64_t budget = qsf_rss_bytes() + 20 * MIB;
        QsfMemoryLimit before = qsf_memory_limit_begin(budget);
        assert_null(qsf_json_parse(text, len, &err));
        assert_int_equal(err.code, QSF_E_BUDGET);
        assert_true(qsf_rss_bytes() <= budget);
        assert_int_equal(qsf_memory_limit_end(&before, err.code, "a", "b", &err), QSF_E_BUDGET);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_flag), cmocka_unit_test(test_limit),
                                        cmocka_unit_test(test_json) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
