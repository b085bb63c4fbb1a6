/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files whose size at open is authoritative, and the cursor over them. */
#include "tests/harness/qsf_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/cursor.h"
#include "tests/harness/gguf_build.h"

static void test_open_refusals(void **state) {
    QsfFile f;
    QsfErr e = { 0 };
    const char *fifo = qsf_test_tmp("fifo");
    (void)state;
    assert_int_equal(qsf_file_open(&f, "/nonexistent/x", &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "/nonexistent/x");
    qsf_err_clear(&e);
    qsf_file_open(&f, "/", &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "directory");
    qsf_err_clear(&e);
    qsf_file_open(&f, "/dev/null", &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "device");
    qsf_err_clear(&e);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    qsf_file_open(&f, fifo, &e); /* it has no writer: must not hang */
    qsf_test_expect_err(&e, QSF_E_MODEL, "pipe");
    unlink(fifo);
    qsf_err_clear(&e);
    assert_int_equal(symlink("removed/blob", fifo), 0);
    qsf_file_open(&f, fifo, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "fifo: cannot open: it is a link to a file that does not exist");
    unlink(fifo);
    qsf_file_close(&f);
}

static void test_pread(void **state) {
    QsfFile f;
    QsfErr e = { 0 };
    char b[16];
    const char *path = qsf_test_tmp("file");
    (void)state;
    assert_int_equal(qsf_test_write_file(path, "0123456789", 10), 0);
    qsf_test_expect_ok(qsf_file_open(&f, path, &e), &e);
    assert_int_equal(f.size, 10);
    qsf_test_expect_ok(qsf_file_pread(&f, b, 4, 6, &e), &e);
    assert_memory_equal(b, "6789", 4);
    qsf_test_expect_ok(qsf_file_pread(&f, b, 0, 10, &e), &e);
    qsf_file_pread(&f, b, 2, 9, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "byte offset 9");
    qsf_err_clear(&e);
    qsf_file_pread(&f, b, 2, UINT64_MAX, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, path);
    qsf_err_clear(&e);

    qsf_file_inject_fault(5, EIO);
    qsf_test_expect_ok(qsf_file_pread(&f, b, 5, 0, &e), &e);
    qsf_file_pread(&f, b, 6, 0, &e);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "byte offset 0: ");
    qsf_err_clear(&e);
    qsf_file_inject_fault(5, 0);
    qsf_file_pread(&f, b, 6, 0, &e);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "ends at byte offset 5");
    qsf_err_clear(&e);
    qsf_file_inject_fault(UINT64_MAX, 0);
    qsf_test_expect_ok(qsf_file_pread(&f, b, 6, 0, &e), &e);

    qsf_test_expect_ok(qsf_file_unchanged(&f, &e), &e);
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(qsf_file_unchanged(&f, &e), QSF_E_RUNTIME);
    qsf_err_clear(&e);
    assert_int_equal(qsf_file_pread(&f, b, 6, 0, &e), QSF_E_RUNTIME);
    qsf_file_close(&f);
    unlink(path);
}

static void test_cursor(void **state) {
    enum { N = 3 * QSF_CURSOR_BUF + 17 };
    unsigned char *data = malloc(N), *back = malloc(N);
    QsfFile f;
    QsfCursor c;
    QsfErr e = { 0 };
    uint32_t v32;
    uint64_t v64;
    const char *path = qsf_test_tmp("cursor");
    (void)state;
    assert_true(data != NULL && back != NULL);
    for (size_t i = 0; i < N; i++) data[i] = (unsigned char)(i * 7 + i / 251);
    assert_int_equal(qsf_test_write_file(path, data, N), 0);
    qsf_test_expect_ok(qsf_file_open(&f, path, &e), &e);
    assert_int_equal(qsf_cursor_open(&c, &f, N - 4, 5, &e), QSF_E_MODEL);
    qsf_cursor_close(&c);
    qsf_err_clear(&e);

    qsf_test_expect_ok(qsf_cursor_open(&c, &f, 0, N, &e), &e);
    for (size_t at = 0, step = 1; at < N; at += step, step = step * 3 % 10007 + 1) {
        if (step > N - at) step = N - at;
        qsf_test_expect_ok(qsf_cursor_bytes(&c, back + at, step, "bytes", &e), &e);
    }
    assert_memory_equal(data, back, N);
    assert_int_equal(qsf_cursor_left(&c), 0);
    assert_int_equal(qsf_cursor_u32(&c, &v32, "the end", &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "(the end)");
    qsf_err_clear(&e);

    qsf_cursor_close(&c);

    qsf_test_expect_ok(qsf_cursor_open(&c, &f, 4, 17, &e), &e);
    qsf_test_expect_ok(qsf_cursor_u32(&c, &v32, "", &e), &e);
    qsf_test_expect_ok(qsf_cursor_u64(&c, &v64, "", &e), &e);
    assert_int_equal(v32, 28u | 35u << 8 | 42u << 16 | 49u << 24);
    assert_true(v64 == (56u | 63u << 8 | 70u << 16 | 77u << 24 | (uint64_t)84 << 32 | (uint64_t)91 << 40 |
                        (uint64_t)98 << 48 | (uint64_t)105 << 56));
    qsf_test_expect_ok(qsf_cursor_skip(&c, 5, "", &e), &e);
    assert_int_equal(qsf_cursor_skip(&c, 1, "past the window", &e), QSF_E_MODEL);
    qsf_cursor_close(&c);
    qsf_file_close(&f);
    unlink(path);
    free(data);
    free(back);
}

static void expect_changed(const QsfFile *f, const char *how) {
    QsfErr e = { 0 };
    assert_int_equal(qsf_file_unchanged(f, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, f->path);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, how);
}

/* Truncated, extended, written to, replaced; a deleted file is still the one that was opened. */
static void test_unchanged(void **state) {
    QsfFile f;
    QsfErr e = { 0 };
    char path[512], other[512];
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("changing"));
    snprintf(other, sizeof other, "%s", qsf_test_tmp("other"));
    assert_int_equal(qsf_test_write_file(path, "0123456789", 10), 0);
    qsf_test_expect_ok(qsf_file_open(&f, path, &e), &e);
    qsf_test_expect_ok(qsf_file_unchanged(&f, &e), &e);
    assert_int_equal(truncate(path, 5), 0);
    expect_changed(&f, "had 10 bytes, now it has 5");
    assert_int_equal(truncate(path, 10), 0);
    const struct timespec later[2] = { { 0, UTIME_OMIT }, { f.mtime.tv_sec + 7, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0);
    expect_changed(&f, "modified");
    const struct timespec back[2] = { { 0, UTIME_OMIT }, f.mtime };
    assert_int_equal(utimensat(AT_FDCWD, path, back, 0), 0);
    qsf_test_expect_ok(qsf_file_unchanged(&f, &e), &e);
    assert_int_equal(unlink(path), 0);
    qsf_test_expect_ok(qsf_file_unchanged(&f, &e), &e);
    assert_int_equal(qsf_test_write_file(other, "0123456789", 10), 0);
    assert_int_equal(utimensat(AT_FDCWD, other, back, 0), 0);
    assert_int_equal(rename(other, path), 0);
    expect_changed(&f, "replaced");
    qsf_file_close(&f);
    unlink(path);
}

/* A second descriptor refers to the same file, even if its path now leads elsewhere. */
static void test_direct(void **state) {
    QsfFile f;
    QsfErr e = { 0 };
    struct stat st;
    const char *path = qsf_test_tmp("direct");
    (void)state;
    assert_int_equal(qsf_test_write_file(path, "0123456789", 10), 0);
    qsf_test_expect_ok(qsf_file_open(&f, path, &e), &e);
    unlink(path);
    int fd = qsf_file_open_direct(&f);
    if (fd < 0) print_message("skip: no O_DIRECT here\n");
    if (fd >= 0) {
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(st.st_ino == f.ino && st.st_dev == f.dev);
        close(fd);
    }
    qsf_file_close(&f);
}

static void test_filter(void **state) {
    QsfFile f = { .fd = -1 };
    (void)state;
    assert_int_equal(qsf_file_filter(&f, 100, 50, 50), 50);
    qsf_file_inject_fault(120, EIO);
    assert_int_equal(qsf_file_filter(&f, 100, 50, 50), -EIO);
    assert_int_equal(qsf_file_filter(&f, 121, 50, 50), 50);
    assert_int_equal(qsf_file_filter(&f, 70, 50, 50), 50);
    qsf_file_inject_fault(120, 0);
    assert_int_equal(qsf_file_filter(&f, 100, 50, 50), 20);
    assert_int_equal(qsf_file_filter(&f, 120, 50, 50), 0);
    assert_int_equal(qsf_file_filter(&f, 100, 50, 10), 10);
    assert_int_equal(qsf_file_filter(&f, 100, 50, -ENOMEM), -ENOMEM);
    qsf_file_inject_fault(UINT64_MAX, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_refusals), cmocka_unit_test(test_pread),  cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_unchanged),     cmocka_unit_test(test_direct), cmocka_unit_test(test_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
