/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of distributions: they are read back as written; every cut and every false number is an error with
 * file and offset; files of another kind are not overwritten. */
#include <math.h>
#include <sys/stat.h>

#include "src/measure/klfile.h"
#include "src/sample/score.h"
#include "tests/harness/qsf_test.h"

enum {
    ROWS = 3,
    VOCAB = 5,
    IDS = 4,
    TRAILER = QSF_KL_HEAD + ROWS * VOCAB * 4,
    SUMS = TRAILER + 32 + 4 + IDS * 4,
    SIZE = SUMS + ROWS * 4 + 4
};

static char path[512];
static const int32_t ids[IDS] = { 1, 4, 0, 2 };
static unsigned char good[SIZE];

static const QsfKlAbout about = { .n_rows = ROWS,
                                  .n_vocab = VOCAB,
                                  .complete = true,
                                  .n_ids = IDS,
                                  .window = 8,
                                  .stride = 4,
                                  .flags = QSF_KL_BOS,
                                  .name = "a\033.b" };

static float logit(int row, int i) { return (float)(row - i) * 0.75f; }

static void write_rows(QsfKlWriter *w, int n) {
    QsfErr err = { 0 };
    for (int r = 0; r < n; r++) {
        float x[VOCAB];
        for (int i = 0; i < VOCAB; i++) x[i] = logit(r, i);
        qsf_test_expect_ok(qsf_kl_write_row(w, x, qsf_score_log_sum(x, VOCAB), &err), &err);
    }
}

static void put_file(const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static int setup(void **state) {
    (void)state;
    QsfKlWriter w;
    QsfErr err = { 0 };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("kl"));
    if (qsf_kl_create(&w, path, &about, &err)) return -1;
    write_rows(&w, ROWS);
    if (qsf_kl_finish(&w, ids, &err)) return -1;
    qsf_kl_discard(&w);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(good, 1, sizeof good, f) : 0;
    if (f) n += (size_t)(fgetc(f) != EOF), fclose(f);
    return n == SIZE ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void test_round_trip(void **state) {
    (void)state;
    QsfKlReader r;
    QsfErr err = { 0 };
    put_file(good, SIZE);
    qsf_test_expect_ok(qsf_kl_open(&r, path, &err), &err);
    assert_true(r.about.complete && r.about.n_rows == ROWS && r.about.n_vocab == VOCAB &&
                r.about.n_ids == IDS);
    assert_true(r.about.window == 8 && r.about.stride == 4 && r.about.flags == QSF_KL_BOS);
    assert_string_equal(r.about.name, "a?.b"); /* no escape sequence reaches a terminal */
    for (int row = 0; row < ROWS; row++) {
        float got[VOCAB], x[VOCAB];
        for (int i = 0; i < VOCAB; i++) x[i] = logit(row, i);
        qsf_test_expect_ok(qsf_kl_read(&r, (uint32_t)row, 0, VOCAB, got, &err), &err);
        for (int i = 0; i < VOCAB; i++)
            assert_true(got[i] == (float)((double)x[i] - qsf_score_log_sum(x, VOCAB)));
        qsf_test_expect_ok(qsf_kl_read(&r, (uint32_t)row, 3, 2, x, &err), &err);
        assert_memory_equal(x, got + 3, 2 * sizeof *x);
    }
    qsf_test_expect_ok(qsf_kl_same_ids(&r, ids, IDS, &err), &err);
    qsf_kl_same_ids(&r, (const int32_t[]){ 1, 4, 3, 2 }, IDS, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, "token 2 is 0 in the file, 3 in this text");
    qsf_err_clear(&err);
    qsf_kl_same_ids(&r, ids, IDS - 1, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, "4 tokens, this one has 3");
    qsf_kl_close(&r);
}

/* Of all cuts, only the one at the end of the rows leaves a valid file: one without the description of its
 * text. */
static void test_cut(void **state) {
    (void)state;
    for (size_t n = 0; n < SIZE; n++) {
        QsfKlReader r;
        QsfErr err = { 0 };
        put_file(good, n);
        if (n == TRAILER) {
            qsf_test_expect_ok(qsf_kl_open(&r, path, &err), &err);
            assert_false(r.about.complete);
            qsf_test_expect_ok(qsf_kl_same_ids(&r, ids, IDS, &err), &err);
            qsf_kl_close(&r);
            continue;
        }
        qsf_kl_open(&r, path, &err);
        qsf_test_expect_err(&err, QSF_E_MODEL, path);
        assert_non_null(strstr(err.msg, "byte offset"));
    }
}

static void expect_bad(size_t at, uint32_t value, const char *part) {
    unsigned char b[SIZE];
    QsfKlReader r;
    QsfErr err = { 0 };
    memcpy(b, good, SIZE);
    memcpy(b + at, &value, 4);
    put_file(b, SIZE);
    qsf_kl_open(&r, path, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, part);
    assert_non_null(strstr(err.msg, "byte offset"));
}

static void test_false_values(void **state) {
    (void)state;
    expect_bad(0, 0, "no tokens");
    expect_bad(4, 0, "vocabulary is empty");
    expect_bad(0, UINT32_MAX, "too few");
    expect_bad(4, UINT32_MAX, "too few");
    expect_bad(0, ROWS - 1, "QSFDISTR");
    expect_bad(TRAILER, 0, "QSFDISTR");
    expect_bad(TRAILER + 8, 3, "version 3");
    expect_bad(TRAILER + 8, 1, "counts"); /* which has no checksums */
    expect_bad(TRAILER + 12, UINT32_MAX, "counts");
    expect_bad(TRAILER + 12, ROWS, "more scored tokens");
    expect_bad(TRAILER + 16, 1, "window");
    expect_bad(TRAILER + 16, UINT32_MAX, "window");
    expect_bad(TRAILER + 20, 0, "stride");
    expect_bad(TRAILER + 20, 9, "stride");
    expect_bad(TRAILER + 28, 256, "name");
    expect_bad(TRAILER + 28, 5, "counts");
}

/* Reads all that a comparison reads. */
static int read_all(size_t size, QsfErr *err) {
    QsfKlReader r;
    float row[VOCAB];
    int rc = qsf_kl_open(&r, path, err);
    if (rc != QSF_OK) return rc;
    assert_int_equal(r.checksums, size == SIZE);
    for (uint32_t i = 0; rc == QSF_OK && i < ROWS; i++) {
        rc = qsf_kl_read(&r, i, 0, 2, row, err);
        if (rc == QSF_OK) rc = qsf_kl_read(&r, i, 2, VOCAB - 2, row, err);
        if (rc == QSF_OK) rc = qsf_kl_check_row(&r, i, err);
    }
    if (rc == QSF_OK) rc = qsf_kl_same_ids(&r, ids, IDS, err);
    qsf_kl_close(&r);
    return rc;
}

/* A change of any byte is detected. */
static void test_damage(void **state) {
    (void)state;
    unsigned char b[SIZE];
    QsfErr err = { 0 };
    put_file(good, SIZE);
    qsf_test_expect_ok(read_all(SIZE, &err), &err);
    for (size_t i = 0; i < SIZE * 8; i++) {
        memcpy(b, good, SIZE);
        b[i / 8] ^= (unsigned char)(1 << i % 8);
        put_file(b, SIZE);
        if (read_all(SIZE, &err) == QSF_OK) fail_msg("bit %zu of byte %zu is not detected", i % 8, i / 8);
        qsf_test_expect_err(&err, QSF_E_MODEL, path);
        qsf_err_clear(&err);
    }
    memcpy(b, good, SIZE);
    b[QSF_KL_HEAD + VOCAB * 4] ^= 1; /* the lowest bit of a logarithm */
    put_file(b, SIZE);
    read_all(SIZE, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, "damaged from byte offset 28: checksum");
}

/* Files of the version without checksums are accepted; a row is verified only if it was read whole and in
 * order. */
static void test_first_version(void **state) {
    (void)state;
    unsigned char b[SIZE];
    float row[VOCAB];
    QsfKlReader r;
    QsfErr err = { 0 };
    memcpy(b, good, SIZE);
    b[TRAILER + 8] = 1;
    put_file(b, SUMS);
    qsf_test_expect_ok(read_all(SUMS, &err), &err);
    put_file(good, SIZE);
    qsf_test_expect_ok(qsf_kl_open(&r, path, &err), &err);
    qsf_test_expect_ok(qsf_kl_read(&r, 1, 1, VOCAB - 1, row, &err), &err);
    assert_int_equal(qsf_kl_check_row(&r, 1, &err), QSF_E_RUNTIME);
    qsf_kl_close(&r);
}

static void test_no_probability(void **state) {
    (void)state;
    const float bad[] = { NAN, INFINITY, -INFINITY, 0.5f };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char b[SIZE];
        float row[VOCAB];
        QsfKlReader r;
        QsfErr err = { 0 };
        memcpy(b, good, SIZE);
        memcpy(b + QSF_KL_HEAD + (VOCAB + 2) * 4, &bad[i], 4);
        put_file(b, SIZE);
        qsf_test_expect_ok(qsf_kl_open(&r, path, &err), &err);
        qsf_test_expect_ok(qsf_kl_read(&r, 0, 0, VOCAB, row, &err), &err);
        qsf_kl_read(&r, 1, 0, VOCAB, row, &err);
        qsf_test_expect_err(&err, QSF_E_MODEL, "byte offset 36");
        qsf_kl_close(&r);
    }
}

static void test_overwriting(void **state) {
    (void)state;
    QsfKlWriter w;
    QsfErr err = { 0 };
    put_file("a model, say", 12);
    qsf_kl_create(&w, path, &about, &err);
    qsf_test_expect_err(&err, QSF_E_USAGE, "not overwritten");
    qsf_kl_discard(&w);
    qsf_err_clear(&err);
    qsf_kl_create(&w, "/dev/null", &about, &err);
    qsf_test_expect_err(&err, QSF_E_USAGE, "/dev/null");
    qsf_kl_discard(&w);
    qsf_err_clear(&err);
    qsf_kl_create(&w, "/nonexistent/x", &about, &err);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "/nonexistent/x");
    qsf_kl_discard(&w);
    qsf_err_clear(&err);

    /* Aborted, or with rows missing: the old file is kept, and there is no other file beside it. */
    put_file(good, SIZE);
    qsf_savefile_always_named(true);
    qsf_test_expect_ok(qsf_kl_create(&w, path, &about, &err), &err);
    qsf_savefile_always_named(false);
    char temp[900];
    snprintf(temp, sizeof temp, "%.*s/%s", (int)(strrchr(path, '/') - path), path, w.out.file.temp);
    assert_int_equal(access(temp, F_OK), 0);
    write_rows(&w, 1);
    qsf_kl_finish(&w, ids, &err);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "2 rows");
    qsf_kl_discard(&w);
    assert_int_equal(access(temp, F_OK), -1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, SIZE);
}

static void test_no_space(void **state) {
    (void)state;
    QsfKlWriter w;
    QsfErr err = { 0 };
    QsfKlAbout huge = about;
    huge.n_rows = huge.n_vocab = UINT32_MAX / 2;
    put_file("", 0);
    qsf_kl_create(&w, path, &huge, &err);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "are free");
    qsf_kl_discard(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_false_values), cmocka_unit_test(test_no_probability),
        cmocka_unit_test(test_overwriting),  cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_first_version),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
