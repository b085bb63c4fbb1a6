/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file with what each quality does to a model: it is read as it was written, and nothing
 * else is accepted. */
#include "tests/harness/qsf_test.h"

#include <sys/stat.h>

#include "src/engine/quality/file.h"

enum { BLOCKS = 20 };
static const uint64_t MODEL = 0x0123456789ABCDEFu;

static QsfQualityTable example(void) {
    QsfQualityTable t = { .model = MODEL, .n_blocks = BLOCKS, .n_tokens = 512 };
    for (uint32_t i = 0; i < QSF_QUALITY_CHOICES; i++) {
        QsfQualityChoice *c = &t.row[i];
        c->kl = 0.25f * (float)(QSF_QUALITY_CHOICES - i);
        c->perplexity = 1.5f;
        if (i % 2 == 0) {
            c->exit = 10 + i;
            c->margin = 2.125f;
            c->full = 0.5f;
        } else {
            if (i > 1) qsf_blocks_add(&c->skip, i);
            if (i > 1) qsf_blocks_add(&c->skip, 18);
        }
    }
    return t;
}

static void test_round_trip(void **state) {
    (void)state;
    char path[600];
    QsfErr err = { 0 };
    QsfQualityTable want = example(), got;
    bool found = true;
    struct stat st;
    snprintf(path, sizeof path, "%s/quality/x.txt", qsf_test_tmp("state"));
    assert_int_equal(qsf_quality_file_read(path, MODEL, BLOCKS, &got, &found, &err), QSF_OK);
    assert_false(found);
    for (int i = 0; i < 2; i++) { /* also in place of another */
        qsf_test_expect_ok(qsf_quality_file_write(path, &want, &err), &err);
        qsf_test_expect_ok(qsf_quality_file_read(path, MODEL, BLOCKS, &got, &found, &err), &err);
        assert_true(found);
        assert_memory_equal(&got, &want, sizeof got);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        want.row[0].kl = 0.75f;
    }
    assert_int_equal(qsf_quality_file_read(path, MODEL + 1, BLOCKS, &got, &found, &err), QSF_E_MODEL);
    assert_true(found);
    assert_int_equal(qsf_quality_file_read(path, MODEL, BLOCKS + 1, &got, &found, &err), QSF_E_MODEL);
    unlink(path);
}

static void test_choice_for_a_quality(void **state) {
    (void)state;
    const QsfQualityTable t = example();
    for (uint32_t i = 1; i <= QSF_QUALITY_CHOICES; i++)
        assert_ptr_equal(qsf_quality_choice(&t, (float)i / 10), &t.row[i - 1]);
    assert_ptr_equal(qsf_quality_choice(&t, 0.99f), &t.row[8]);
    assert_ptr_equal(qsf_quality_choice(&t, 0.85f), &t.row[7]);
    assert_ptr_equal(qsf_quality_choice(&t, 0.01f), &t.row[0]);
}

static int read_text(const char *path, const char *text, size_t n) {
    QsfErr err = { 0 };
    QsfQualityTable t;
    bool found;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    const int rc = qsf_quality_file_read(path, MODEL, BLOCKS, &t, &found, &err);
    assert_true(found);
    assert_true((rc == QSF_OK) == (err.code == QSF_OK));
    if (rc != QSF_OK) assert_non_null(strstr(err.msg, path));
    return rc;
}

/* Every text that differs from a valid one in a byte, or ends early, is refused, or has only
 * other numbers. */
static void test_damaged_files(void **state) {
    (void)state;
    char path[600], text[4096];
    QsfErr err = { 0 };
    const QsfQualityTable t = example();
    snprintf(path, sizeof path, "%s", qsf_test_tmp("damaged.txt"));
    qsf_test_expect_ok(qsf_quality_file_write(path, &t, &err), &err);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_true(n > 100 && n < sizeof text);
    for (size_t i = 0; i < n; i++) assert_int_equal(read_text(path, text, i), QSF_E_MODEL);
    for (size_t i = 0; i < n; i++) {
        const char kept = text[i];
        const bool digit = kept >= '0' && kept <= '9';
        text[i] = '!';
        assert_int_equal(read_text(path, text, n), QSF_E_MODEL);
        text[i] = '\0';
        assert_int_equal(read_text(path, text, n), QSF_E_MODEL);
        text[i] = digit ? (char)('0' + (kept - '0' + 5) % 10) : '9';
        (void)read_text(path, text, n); /* must not crash */
        text[i] = kept;
    }
    assert_int_equal(read_text(path, text, n), QSF_OK);
    text[n] = '\n';
    assert_int_equal(read_text(path, text, n + 1), QSF_E_MODEL);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip),
                                        cmocka_unit_test(test_choice_for_a_quality),
                                        cmocka_unit_test(test_damaged_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
