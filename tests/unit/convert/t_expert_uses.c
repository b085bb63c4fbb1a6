/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces of choices, and counts that were kept: which experts are seldom used, and files that are damaged or
 * of another model. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/convert/pack/choose.h"
#include "src/convert/pack/expert_uses.h"
#include "src/file/habits.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

static const bool both[2] = { true, true };

static const char *path(void) { return qsf_test_tmp("uses.txt"); }

static int read_text(QsfExpertUses *u, const char *text, QsfErr *err) {
    assert_int_equal(qsf_test_write_file(path(), text, strlen(text)), 0);
    const int rc = qsf_expert_uses_read(u, path(), 2, 4, both, err);
    unlink(path());
    return rc;
}

/* Of layer 0 expert 0 has 10 uses, 1 has 9, 2 has 1 and 3 none: 2 and 3 have 5 %. Layer 1 has no uses. */
static void seldom(void **state) {
    char text[1024] = "# experts 1\n# layers 2 experts 4 used 2 bytes 100\n# pass 0 10\n";
    QsfExpertUses u;
    QsfErr err = { 0 };
    bool which[4];
    (void)state;
    for (int i = 0; i < 9; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "%d 0 1 0\n", i);
    strcat(text, "9 0 0 2");
    qsf_test_expect_ok(read_text(&u, text, &err), &err);
    assert_int_equal(u.n[0], 10);
    assert_int_equal(u.n[2], 1);
    assert_int_equal(qsf_expert_uses_seldom(&u, 0, which), 2);
    assert_true(!which[0] && !which[1] && which[2] && which[3]);
    assert_int_equal(qsf_expert_uses_seldom(&u, 1, which), 0);
    assert_false(which[0] || which[1] || which[2] || which[3]);
    qsf_expert_uses_free(&u);
}

static void damaged(void **state) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "", "line 0: the file is empty" },
        { "# experts 2\n", "line 1: expected \"# experts 1\"" },
        { "0 0 1\n", "line 1: expected" },
        { "# experts 1\n# layers 2 experts 8 used 2\n", "line 2: another model" },
        { "# experts 1\n# layers 2 experts x\n", "line 2: expected the number of experts" },
        { "# experts 1\n0 2 1\n", "line 2: another model: it has fewer layers" },
        { "# experts 1\n0 0 4\n", "line 2: another model: it has fewer experts" },
        { "# experts 1\n0 0 1 -1\n", "line 2: expected the number of an expert" },
        { "# experts 1\n0 0 99999999999999999999\n", "expected the number of an expert" },
        { "# experts 1\n\n", "line 2: expected a position" },
        { "# experts 1\n0,0,1\n", "line 2: expected a position" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfExpertUses u;
        QsfErr err = { 0 };
        assert_int_equal(read_text(&u, cases[i].text, &err), QSF_E_MODEL);
        qsf_test_expect_err(&err, QSF_E_MODEL, cases[i].words);
        assert_null(u.n);
        qsf_err_clear(&err);
    }
    static char longest[40000];
    QsfExpertUses u;
    QsfErr err = { 0 };
    memset(longest, '1', sizeof longest - 1);
    memcpy(longest, "# experts 1\n", 12);
    assert_int_equal(read_text(&u, longest, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "line 2: it is too long");
    qsf_err_clear(&err);
    assert_int_equal(qsf_expert_uses_read(&u, "/no/such/file", 2, 4, both, &err), QSF_E_USAGE);
    qsf_err_clear(&err);
}

/* Makes a file of habits for the four experts of one layer; returns its size. */
static size_t make_habits(unsigned char *p) {
    static const unsigned char uses[4] = { 10, 9, 1, 0 };
    const size_t bytes = qsf_habits_file_bytes(4);
    memset(p, 0, bytes);
    memcpy(p, QSF_HABITS_MAGIC, QSF_HABITS_AT_VERSION);
    p[QSF_HABITS_AT_VERSION] = QSF_HABITS_VERSION;
    p[QSF_HABITS_AT_N] = 4;
    p[QSF_HABITS_AT_TOKENS] = 10;
    for (unsigned e = 0; e < 4; e++) p[QSF_HABITS_AT_USES + 2 * e] = uses[e];
    const uint32_t crc = qsf_crc32(0, p, bytes - 4);
    for (unsigned i = 0; i < 4; i++) p[bytes - 4 + i] = (unsigned char)(crc >> 8 * i);
    return bytes;
}

static int read_habits(QsfExpertUses *u, const unsigned char *p, size_t bytes, const bool *has, QsfErr *err) {
    assert_int_equal(qsf_test_write_file(path(), p, bytes), 0);
    const int rc = qsf_expert_uses_read(u, path(), 2, 4, has, err);
    unlink(path());
    return rc;
}

/* The first layer has no experts. */
static void kept_counts(void **state) {
    static const bool second[2] = { false, true };
    unsigned char p[1024];
    const size_t bytes = make_habits(p);
    bool which[4];
    QsfExpertUses u;
    QsfErr err = { 0 };
    (void)state;
    qsf_test_expect_ok(read_habits(&u, p, bytes, second, &err), &err);
    assert_int_equal(u.n[0] + u.n[1] + u.n[2] + u.n[3], 0);
    assert_int_equal(u.n[4], 10);
    assert_int_equal(qsf_expert_uses_seldom(&u, 1, which), 2);
    assert_true(!which[0] && !which[1] && which[2] && which[3]);
    qsf_expert_uses_free(&u);
    assert_int_equal(read_habits(&u, p, bytes, both, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "is of another model");
    qsf_err_clear(&err);
    for (size_t n = QSF_HABITS_AT_VERSION; n < bytes; n++) {
        assert_int_equal(read_habits(&u, p, n, second, &err), QSF_E_MODEL);
        assert_null(u.n);
        qsf_err_clear(&err);
    }
    p[QSF_HABITS_AT_USES]++;
    assert_int_equal(read_habits(&u, p, bytes, second, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "is damaged");
    qsf_err_clear(&err);
}

/* The next format with fewer bytes for the same rows; none below the smallest. */
static void lower(void **state) {
    static const QsfTensor t = { .name = "x", .dtype = 12, .n_dims = 2, .ne = { 256, 64, 1, 1 } };
    QsfItem i = { .t = &t, .type = QSFT_NAMED, .use = QSF_USE_EXPERTS, .rows = 64, .cols = 256 };
    const uint8_t from[] = { QSFF_GGML + 14, QSFF_GGML + 12, QSFF_3BIT_BOOK },
                  to[] = { QSFF_4BIT_BOOK, QSFF_3BIT_BOOK, QSFF_2BIT_BOOK };
    QsfErr err = { 0 };
    uint8_t code;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        qsf_test_expect_ok(qsf_item_become(&i, from[k], 0, QSF_WHY_NONE, &err), &err);
        assert_true(qsf_choose_lower(&i, &code));
        assert_int_equal(code, to[k]);
    }
    qsf_test_expect_ok(qsf_item_become(&i, QSFF_2BIT, 0, QSF_WHY_NONE, &err), &err);
    while (qsf_choose_lower(&i, &code))
        qsf_test_expect_ok(qsf_item_become(&i, code, 0, QSF_WHY_NONE, &err), &err);
    assert_true(i.bytes <= 64u * 80);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(seldom), cmocka_unit_test(damaged),
                                        cmocka_unit_test(kept_counts), cmocka_unit_test(lower) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
