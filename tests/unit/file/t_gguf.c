/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GGUF reader with files written by the test: valid, truncated, inconsistent and split ones. */
#include "tests/harness/qsf_test.h"

#include "src/file/dtype.h"
#include "src/file/source_impl.h"
#include "tests/harness/gguf_build.h"

static QsfLedger ledger;

/* Opens path; the error is in *e. NULL on failure. */
static QsfSource *open_path(const char *path, QsfErr *e) {
    QsfSource *s;
    qsf_err_clear(e);
    int rc = qsf_source_open(&s, path, &ledger, e);
    assert_int_equal(rc, e->code);
    assert_true((s != NULL) == (rc == QSF_OK));
    if (s == NULL) assert_int_equal(ledger.total, 0);
    return s;
}

static QsfSource *open_bytes(const void *bytes, size_t len, QsfErr *e) {
    const char *path = qsf_test_tmp("model.gguf");
    assert_int_equal(qsf_test_write_file(path, bytes, len), 0);
    QsfSource *s = open_path(path, e);
    unlink(path);
    return s;
}

/* Opens what b holds and frees b. */
static QsfSource *open_build(QsfGgufBuild *b, QsfErr *e) {
    size_t len;
    unsigned char *bytes = qsf_gb_bytes(b, &len);
    assert_non_null(bytes);
    QsfSource *s = open_bytes(bytes, len, e);
    free(bytes);
    qsf_gb_free(b);
    return s;
}

static void expect_refused(QsfGgufBuild *b, const char *part) {
    QsfErr e = { 0 };
    assert_null(open_build(b, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    assert_non_null(strstr(e.msg, "model.gguf"));
}

static void add_small_tensors(QsfGgufBuild *b) {
    static const float x[64];
    const uint64_t ne[4] = { 8, 4, 2, 1 };
    qsf_gb_tensor(b, "a", 0, 3, ne, x, 256);
    qsf_gb_tensor(b, "b", 1, 1, ne, x, 16);
}

static QsfGgufBuild small(uint32_t version) {
    static const char *const words[] = { "x", "", "long word" };
    static const int32_t ints[] = { 1, -2, 3 };
    QsfGgufBuild b = { .version = version };
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_u32(&b, "u", 7);
    qsf_gb_strings(&b, "words", words, 3);
    qsf_gb_array(&b, "ints", QSF_META_I32, 3, ints, sizeof ints);
    add_small_tensors(&b);
    return b;
}

static void test_whole_file(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        QsfGgufBuild b = small(version);
        QsfErr e = { 0 };
        QsfSource *s = open_build(&b, &e);
        qsf_test_expect_ok(e.code, &e);
        assert_string_equal(qsf_source_format(s), version == 2 ? "GGUF v2" : "GGUF v3");
        assert_int_equal(qsf_meta_count(s), 4);
        assert_int_equal(qsf_source_n_tensors(s), 2);
        assert_int_equal(qsf_source_n_files(s), 1);
        const QsfTensor *t = qsf_source_find_tensor(s, "a");
        assert_ptr_equal(t, qsf_source_tensor(s, 0));
        assert_int_equal(t->n_dims, 3);
        assert_int_equal(t->ne[0] * 1000 + t->ne[1] * 100 + t->ne[2] * 10 + t->ne[3], 8421);
        assert_int_equal(t->bytes, 256);
        assert_int_equal(t->offset % 32, 0);
        assert_int_equal(qsf_source_tensor(s, 1)->offset, t->offset + 256);
        assert_int_equal(qsf_source_bytes(s), t->offset + 256 + 16);
        assert_null(qsf_source_find_tensor(s, "c"));
        assert_null(qsf_source_tensor(s, 2));
        assert_non_null(qsf_source_file(s, 0));
        assert_null(qsf_source_file(s, 1));
        qsf_source_close(s);
        assert_int_equal(ledger.total, 0);
    }
}

static void test_every_truncation(void **state) {
    QsfGgufBuild b = small(3);
    size_t len;
    unsigned char *bytes = qsf_gb_bytes(&b, &len);
    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        QsfErr e = { 0 };
        if (open_bytes(bytes, cut, &e) != NULL) fail_msg("opened when cut at %zu of %zu", cut, len);
        assert_int_equal(e.code, QSF_E_MODEL);
    }
    free(bytes);
    qsf_gb_free(&b);
}

/* Each 8-byte field of the file, aligned or not, set to huge and odd values: never a crash, and what opens is
 * consistent. */
static void test_huge_fields(void **state) {
    static const uint64_t values[] = {
        UINT64_MAX, INT64_MAX, (uint64_t)1 << 60, (uint64_t)1 << 32, 0xFFFFFFFF, 100000, 0
    };
    QsfGgufBuild b = small(3);
    size_t len;
    unsigned char *bytes = qsf_gb_bytes(&b, &len);
    (void)state;
    for (size_t at = 4; at + 8 <= len; at++) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            unsigned char keep[8];
            QsfErr e = { 0 };
            memcpy(keep, bytes + at, 8);
            memcpy(bytes + at, &values[v], 8);
            QsfSource *s = open_bytes(bytes, len, &e);
            for (uint64_t i = 0; s != NULL && i < qsf_source_n_tensors(s); i++) {
                const QsfTensor *t = qsf_source_tensor(s, i);
                assert_true(t->offset <= len && t->bytes <= len - t->offset);
            }
            qsf_source_close(s);
            memcpy(bytes + at, keep, 8);
        }
        if (at > 300) at += 6; /* after the tables there is only data */
    }
    free(bytes);
    qsf_gb_free(&b);
}

static void test_counts(void **state) {
    QsfGgufBuild b = small(3);
    (void)state;
    b.n_pairs = (uint64_t)1 << 60;
    expect_refused(&b, "metadata entries");
    b = small(3);
    b.n_tensors = UINT64_MAX;
    expect_refused(&b, "tensors");
    b = small(3);
    qsf_gb_array(&b, "x", QSF_META_F64, UINT64_MAX / 8, "", 0);
    expect_refused(&b, "'x'");
    b = small(3);
    qsf_gb_array(&b, "x", QSF_META_STRING, 1, "\xff\xff\xff\x7f\0\0\0\0", 8);
    expect_refused(&b, "more than 1 MiB");
    b = small(3);
    qsf_gb_raw(&b, "x", QSF_META_STRING, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    expect_refused(&b, "claims a length");
}

static void test_bad_metadata(void **state) {
    QsfGgufBuild b = { 0 };
    (void)state;
    qsf_gb_raw(&b, "odd", (QsfMetaType)13, "12345678", 8);
    expect_refused(&b, "unknown type 13");
    qsf_gb_raw(&b, "flag", QSF_META_BOOL, "\2", 1);
    qsf_gb_str(&b, "filler", "x");
    expect_refused(&b, "bool");
    qsf_gb_u32(&b, "twice", 1);
    qsf_gb_u32(&b, "twice", 2);
    expect_refused(&b, "'twice' appears twice");
    qsf_gb_u32(&b, "", 1);
    expect_refused(&b, "empty");
    qsf_gb_u32(&b, "general.alignment", 12);
    expect_refused(&b, "multiple of 8");
    qsf_gb_u32(&b, "general.alignment", 0);
    expect_refused(&b, "multiple of 8");
    qsf_gb_str(&b, "general.alignment", "32");
    expect_refused(&b, "expected an integer");
    char *key = malloc(65537);
    memset(key, 'k', 65536);
    key[65536] = '\0';
    qsf_gb_u32(&b, key, 1);
    expect_refused(&b, "claims a length of 65536");
    free(key);
}

/* Appends the header of an array, as in the file. */
static void put_array(QsfStrbuf *b, QsfMetaType elem, uint64_t n) {
    const unsigned char head[4] = { (unsigned char)elem };
    qsf_strbuf_add(b, head, sizeof head);
    for (unsigned i = 0; i < 8; i++) qsf_strbuf_addc(b, (char)(unsigned char)(n >> (8 * i)));
}

/* An array whose elements are arrays, down to `depth` levels; the innermost one has n bytes. */
static QsfGgufBuild nested(unsigned depth, uint64_t n) {
    QsfStrbuf in = QSF_STRBUF_INIT;
    QsfGgufBuild b = { 0 };
    for (unsigned i = 2; i < depth; i++) put_array(&in, QSF_META_ARRAY, 1);
    put_array(&in, QSF_META_U8, n);
    qsf_strbuf_adds(&in, "abc");
    qsf_gb_array(&b, "nested", QSF_META_ARRAY, 1, in.data, in.len);
    qsf_gb_u32(&b, "after", 5);
    add_small_tensors(&b);
    qsf_strbuf_free(&in);
    return b;
}

static int collect(void *arg, const void *data, size_t len, QsfErr *err) {
    (void)err;
    qsf_strbuf_add(arg, data, len);
    return QSF_OK;
}

/* Arrays of arrays are skipped, but not without limit, and every length in them is checked. */
static void test_nested_arrays(void **state) {
    static const unsigned depths[] = { 2, 3, 16 };
    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        QsfGgufBuild b = nested(depths[i], 3);
        QsfStrbuf pairs = QSF_STRBUF_INIT, copy = QSF_STRBUF_INIT;
        QsfErr e = { 0 };
        qsf_strbuf_add(&pairs, b.meta.data, b.meta.len);
        uint32_t v;
        QsfMetaArray a;
        bool present;
        QsfSource *s = open_build(&b, &e);
        qsf_test_expect_ok(e.code, &e);
        qsf_test_expect_ok(qsf_meta_u32(s, "after", 0, &v, &e), &e);
        assert_int_equal(v, 5);
        assert_int_equal(qsf_meta_array_open(s, "nested", QSF_META_I64, &a, &present, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "array of array");
        /* qsf-convert carries them over as they are */
        const QsfMetaEntry *entry = qsf_meta_find(&s->meta, "nested");
        assert_non_null(entry);
        qsf_err_clear(&e);
        qsf_test_expect_ok(qsf_meta_copy_entry(s, entry, collect, &copy, &e), &e);
        assert_int_equal(copy.len, 8 + 6 + 4 + 12 * depths[i] + 3);
        assert_memory_equal(copy.data, pairs.data, copy.len);
        qsf_strbuf_free(&pairs);
        qsf_strbuf_free(&copy);
        qsf_source_close(s);
    }
    QsfGgufBuild b = nested(17, 3);
    expect_refused(&b, "nested deeper than 16 levels");
    b = nested(100000, 3);
    expect_refused(&b, "nested deeper than 16 levels");
    b = nested(3, UINT64_MAX);
    expect_refused(&b, "bytes are left");
    qsf_gb_array(&b, "nested", QSF_META_ARRAY, UINT64_MAX / 12, "", 0);
    qsf_gb_str(&b, "filler", "so that the count of entries is plausible");
    expect_refused(&b, "bytes are left");
}

static void expect_bad_tensor(uint32_t dtype, uint32_t n_dims, const uint64_t *ne, uint64_t offset,
                              const char *part) {
    static const char zeros[1024];
    QsfGgufBuild b = { 0 };
    qsf_gb_tensor_row(&b, "t", dtype, n_dims, ne, offset);
    qsf_strbuf_add(&b.data, zeros, sizeof zeros);
    expect_refused(&b, part);
}

static void test_bad_tensors(void **state) {
    static const uint64_t ok[5] = { 32, 1, 1, 1, 1 }, zero[4] = { 32, 0, 1, 1 }, row[4] = { 33, 1, 1, 1 },
                          wrap[4] = { (uint64_t)1 << 32, (uint64_t)1 << 32, 2, 1 }, big[4] = { 300, 1, 1, 1 };
    (void)state;
    expect_bad_tensor(0, 0, ok, 0, "0 dimensions");
    expect_bad_tensor(0, 5, ok, 0, "5 dimensions");
    expect_bad_tensor(0, 2, zero, 0, "size 0");
    expect_bad_tensor(2, 1, row, 0, "impossible shape");
    expect_bad_tensor(0, 3, wrap, 0, "impossible shape");
    expect_bad_tensor(4, 1, ok, 0, "type 4 (Q4_2 of old files)");
    expect_bad_tensor(0, 1, ok, 16, "multiple of the alignment");
    expect_bad_tensor(0, 1, ok, 1024, "truncated");
    expect_bad_tensor(0, 1, ok, UINT64_MAX - 31, "truncated");
    expect_bad_tensor(0, 1, big, 0, "truncated");
    QsfGgufBuild b = small(3);
    qsf_gb_tensor_row(&b, "c", 0, 1, ok, 128);
    expect_refused(&b, "overlap");
    b = small(3);
    add_small_tensors(&b);
    expect_refused(&b, "'a' appears twice");
}

static void test_alignment(void **state) {
    static const uint32_t multiples[] = { 8, 24, 48, 256, 1000 };
    (void)state;
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        QsfGgufBuild b = { .alignment = multiples[i] };
        QsfErr e = { 0 };
        qsf_gb_u32(&b, "general.alignment", multiples[i]);
        add_small_tensors(&b);
        QsfSource *s = open_build(&b, &e);
        qsf_test_expect_ok(e.code, &e);
        assert_int_equal(qsf_source_tensor(s, 0)->offset % multiples[i], 0);
        assert_int_equal(qsf_source_tensor(s, 1)->offset % multiples[i], 0);
        qsf_source_close(s);
    }
}

typedef struct Sniff {
    const char *bytes;
    size_t len;
    const char *says;
} Sniff;

static void test_other_files(void **state) {
    static const Sniff files[] = {
        { "", 0, "is empty" },
        { "GG", 2, "text" },
        { "Hello, world.\n", 14, "text file" },
        { "QSF1\1\0\0\0", 8, "truncated: the header needs 128 bytes" },
        { "\x40\0\0\0\0\0\0\0{\"a\": 1}", 17, "safetensors" },
        { "GGUF\1\0\0\0\0\0\0\0\0\0\0\0", 16, "version 1" },
        { "GGUF\0\0\0\3\0\0\0\0\0\0\0\0", 16, "big-endian" },
        { "GGUF\4\0\0\0\0\0\0\0\0\0\0\0", 16, "version 4" },
        { "GGUF", 4, "truncated" },
        { "tjgg\1\0\0\0", 8, "older than GGUF" },
        { "PK\3\4zzzz", 8, "ZIP" },
        { "version https://git-lfs.github.com/spec/v1\n", 43, "LFS" },
        { "\x7f"
          "ELF\2\1",
          6, "7f 45 4c 46" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        QsfErr e = { 0 };
        assert_null(open_bytes(files[i].bytes, files[i].len, &e));
        qsf_test_expect_err(&e, QSF_E_MODEL, files[i].says);
    }
    QsfErr e = { 0 };
    assert_null(open_path("/", &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "directory");
    assert_null(open_path("/no/such.gguf", &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "/no/such.gguf");
}

static void write_part(const char *path, uint16_t no, uint16_t count, uint32_t total, const char *tensor) {
    static const float x[8];
    const uint64_t ne[1] = { 8 };
    QsfGgufBuild b = { 0 };
    if (no == 0) qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_raw(&b, "split.no", QSF_META_U16, &no, 2);
    qsf_gb_raw(&b, "split.count", QSF_META_U16, &count, 2);
    qsf_gb_raw(&b, "split.tensors.count", QSF_META_I32, &total, 4);
    qsf_gb_tensor(&b, tensor, 0, 1, ne, x, sizeof x);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
}

static void test_split(void **state) {
    const char *p1 = qsf_test_tmp("s-00001-of-00002.gguf"), *p2 = qsf_test_tmp("s-00002-of-00002.gguf");
    QsfErr e = { 0 };
    (void)state;
    write_part(p1, 0, 2, 2, "a");
    assert_null(open_path(p1, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "s-00002-of-00002.gguf: cannot open");
    write_part(p2, 1, 2, 2, "b");
    QsfSource *s = open_path(p1, &e);
    qsf_test_expect_ok(e.code, &e);
    assert_int_equal(qsf_source_n_files(s), 2);
    assert_int_equal(qsf_source_n_tensors(s), 2);
    const QsfTensor *t = qsf_source_find_tensor(s, "b");
    assert_int_equal(t->file, 1);
    assert_string_equal(qsf_source_file(s, 1)->path, p2);
    assert_int_equal(qsf_source_bytes(s), qsf_source_file(s, 0)->size + qsf_source_file(s, 1)->size);
    assert_true(qsf_meta_has(s, "general.architecture"));
    qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
    assert_null(open_path(p2, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "part 2 of 2");
    write_part(p2, 0, 2, 2, "b");
    assert_null(open_path(p1, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "should be part 2 of 2, but its split.no is 0, expected 1");
    write_part(p2, 1, 2, 2, "a");
    assert_null(open_path(p1, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "appears twice");
    write_part(p2, 1, 2, 2, "b");
    write_part(p1, 0, 2, 3, "a");
    assert_null(open_path(p1, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "split.tensors.count is 3");
    write_part(p1, 0, 3, 2, "a");
    assert_null(open_path(p1, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "must end with -00001-of-00003.gguf");
    unlink(p1);
    unlink(p2);
}

static void test_many_keys(void **state) {
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    char key[32];
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "key.%u", i);
        qsf_gb_u32(&b, key, i);
    }
    const uint64_t start = qsf_test_cpu_ns();
    QsfSource *s = open_build(&b, &e);
    qsf_test_expect_ok(e.code, &e);
    for (uint32_t i = 0; i < 100000; i += 7) {
        uint32_t v;
        snprintf(key, sizeof key, "key.%u", i);
        assert_int_equal(qsf_meta_u32(s, key, 1, &v, &e), QSF_OK);
        assert_int_equal(v, i);
    }
    qsf_source_close(s);
    assert_true(qsf_test_cpu_ns() - start < 20000000000u); /* 0.1 s, and minutes if it were quadratic */
}

static void test_memory_cap(void **state) {
    QsfGgufBuild b = { 0 };
    char key[16], *big = malloc(1 << 20);
    (void)state;
    memset(big, 'x', (1 << 20) - 1);
    big[(1 << 20) - 1] = '\0';
    for (int i = 0; i < 66; i++) {
        snprintf(key, sizeof key, "k%d", i);
        qsf_gb_str(&b, key, big);
    }
    free(big);
    expect_refused(&b, "64 MiB");
}

static void test_budget(void **state) {
    QsfGgufBuild b = small(3);
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_set_limit(&ledger, 1000);
    assert_null(open_build(&b, &e));
    assert_int_equal(e.code, QSF_E_BUDGET);
    qsf_ledger_set_limit(&ledger, 0);
}

static void test_dtype(void **state) {
    const uint64_t ne[4] = { 256, 3, 1, 1 };
    uint64_t bytes;
    (void)state;
    assert_string_equal(qsf_dtype(12)->name, "Q4_K");
    assert_true(qsf_dtype(12)->supported);
    assert_true(qsf_dtype(10)->supported);
    assert_false(qsf_dtype(9)->supported);
    assert_null(qsf_dtype(5));
    assert_true(qsf_dtype_row_bytes(qsf_dtype(12), 512, &bytes));
    assert_int_equal(bytes, 288);
    assert_false(qsf_dtype_row_bytes(qsf_dtype(12), 300, &bytes));
    assert_false(qsf_dtype_row_bytes(qsf_dtype(0), UINT64_MAX / 2, &bytes));
    assert_true(qsf_dtype_tensor_bytes(qsf_dtype(36), ne, &bytes));
    assert_int_equal(bytes, 3 * 64 + 32);
}

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_file),    cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_huge_fields),   cmocka_unit_test(test_counts),
        cmocka_unit_test(test_bad_metadata),  cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_nested_arrays), cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_other_files),   cmocka_unit_test(test_split),
        cmocka_unit_test(test_many_keys),     cmocka_unit_test(test_memory_cap),
        cmocka_unit_test(test_budget),        cmocka_unit_test(test_dtype)
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
