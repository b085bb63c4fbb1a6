/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed layers of QSF files: the blocks themselves, files that are read back unchanged, and damage of
 * every kind. */
#include "tests/harness/source_rig.h"

#include "src/base/lz.h"
#include "src/file/qsf/codec.h"
#include "src/file/qsf/layout.h"
#include "src/file/qsf/verify.h"
#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_made.h"

static char gguf[256], qsf[256], other[256];

static uint64_t random64(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static bool wanted(unsigned how) { return qsf_codec_built((uint8_t)how); }

/* --- blocks --- */

/* Written by hand: a letter, a match of eight at distance 1, five letters; five letters alone. */
static void test_blocks(void **state) {
    (void)state;
    static const unsigned char letters[] = { 0x50, 'h', 'e', 'l', 'l', 'o' };
    static const unsigned char match[] = { 0x14, 'a', 1, 0, 0x50, 'b', 'c', 'd', 'e', 'f' };
    unsigned char out[32];
    memset(out, 0x77, sizeof out);
    assert_true(qsf_lz_decompress(letters, sizeof letters, out, 5));
    assert_memory_equal(out, "hello\x77", 6);
    assert_true(qsf_lz_decompress(match, sizeof match, out, 14));
    assert_memory_equal(out, "aaaaaaaaabcdef\x77", 15);
    for (size_t whole = 0; whole < 20; whole++)
        if (whole != 14) assert_false(qsf_lz_decompress(match, sizeof match, out, whole));
    for (size_t n = 0; n < sizeof match; n++) assert_false(qsf_lz_decompress(match, n, out, 14));
}

/* Compressed data is restored exactly, the output is never longer than allowed, and garbage is refused. */
static void test_round_trip_types(void **state) {
    (void)state;
    enum { N = 20000 };
    static unsigned char src[N], packed[2 * N], back[N];
    uint64_t seed = 5;
    QsfErr e = { 0 };
    for (size_t i = 0; i < N; i++) src[i] = (unsigned char)(i % 700 < 350 ? random64(&seed) & 3 : i % 350);
    for (uint8_t how = QSFF_LZ4; how < QSFF_COMPRESSIONS; how++) {
        size_t n = 0, again = 0;
        QsfUnpacker u = { NULL };
        if (!wanted(how)) {
            assert_int_equal(qsf_codec_compress(how, src, N, packed, N, &n, &e), QSF_E_RUNTIME);
            qsf_test_expect_err(&e, QSF_E_RUNTIME, "configured without");
            qsf_err_clear(&e);
            continue;
        }
        qsf_test_expect_ok(qsf_unpacker_need(&u, how, &e), &e);
        qsf_test_expect_ok(qsf_codec_compress(how, src, N, packed, N, &n, &e), &e);
        assert_true(n > 100 && n < N / 2);
        qsf_test_expect_ok(qsf_codec_compress(how, src, N, packed + N, n - 1, &again, &e), &e);
        assert_true(again < n); /* another encoding may fit; longer it is not */
        assert_true(qsf_unpack(&u, how, packed, n, back, N));
        assert_memory_equal(src, back, N);
        assert_false(qsf_unpack(&u, how, packed, n, back, N - 1));
        assert_false(qsf_unpack(&u, how, packed, n - 1, back, N));
        for (int k = 0; k < 300; k++) { /* the bytes may be anything, but must be repeatable */
            unsigned char garbage[300];
            for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (unsigned char)random64(&seed);
            if (k % 3 == 0 && how == QSFF_ZSTD) memcpy(garbage, packed, 12);
            back[100] = 0x55;
            (void)qsf_unpack(&u, how, garbage, sizeof garbage, back, 100);
            assert_int_equal(back[100], 0x55);
        }
        memset(src, 0, N);
        qsf_test_expect_ok(qsf_codec_compress(how, src, N, packed, N, &n, &e), &e);
        assert_true(n == 0 || N <= n * QSF_COMPRESS_RATIO); /* smaller is not in the format */
        for (size_t i = 0; i < N; i++)
            src[i] = (unsigned char)(i % 700 < 350 ? random64(&seed) & 3 : i % 350);
        qsf_unpacker_close(&u);
    }
}

/* --- files --- */

static void carry(const char *from, const char *to, uint32_t flags, uint8_t press, QsfPackReport *r) {
    const QsfPackOptions o = { .flags = flags, .codec = press };
    QsfErr e = { 0 };
    QsfSource *s = open_ok(from);
    qsf_test_expect_ok(qsf_pack(s, to, &o, r, &e), &e);
    qsf_source_close(s);
}

static void make(uint32_t wtype, uint32_t flags, uint8_t press) {
    const QsfTinySpec spec = { .wtype = wtype,
                               .twins = true,
                               .biases = true,
                               .layers = 3,
                               .hidden = 32,
                               .heads = 2,
                               .kv_heads = 1,
                               .ffn = 64,
                               .vocab = 260,
                               .ctx = 64 };
    QsfPackReport r;
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    carry(gguf, qsf, flags, press, &r);
    assert_int_equal(r.n_compressed, press == QSFF_STORED ? 0 : 3);
    assert_true(press == QSFF_STORED || r.compressed_bytes < r.whole_bytes * 3 / 4);
    qsf_pack_report_free(&r);
}

static void expect_same_tensors(const QsfSource *a, const QsfSource *b) {
    assert_int_equal(qsf_source_n_tensors(a), qsf_source_n_tensors(b));
    for (uint64_t i = 0; i < qsf_source_n_tensors(a); i++) {
        const QsfTensor *x = qsf_source_tensor(a, i), *y = qsf_source_find_tensor(b, x->name);
        QsfErr e = { 0 };
        assert_non_null(y);
        assert_int_equal(x->bytes, y->bytes);
        assert_true((y->compressed != NULL) == (strncmp(y->name, "blk.", 4) == 0));
        unsigned char *p = malloc((size_t)x->bytes), *q = malloc((size_t)x->bytes);
        qsf_test_expect_ok(qsf_source_read_bytes(a, x, 0, p, (size_t)x->bytes, &e), &e);
        qsf_test_expect_ok(qsf_source_read_bytes(b, y, 0, q, (size_t)x->bytes, &e), &e);
        assert_memory_equal(p, q, (size_t)x->bytes);
        free(p);
        free(q);
    }
}

static void expect_verified(const char *path, uint32_t n_compressed) {
    QsfErr e = { 0 };
    QsfVerifyReport r;
    qsf_test_expect_ok(qsf_verify_file(path, &ledger, &r, &e), &e);
    assert_int_equal(r.n_layers, 3);
    assert_int_equal(r.n_compressed, n_compressed);
    assert_int_equal(ledger.total, 0);
}

/* Each layer of the compressed file m, decompressed, equals that of the file `plain`. */
static void expect_same_layers(const QsfImage *m, const QsfImage *plain, uint8_t how) {
    QsfImageMap at = qsf_image_map(m), there = qsf_image_map(plain);
    QsfUnpacker u = { NULL };
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_unpacker_need(&u, how, &e), &e);
    for (uint64_t i = 0; i < at.n_layers; i++) {
        const unsigned char *x = m->b + at.index + 32 * i, *y = plain->b + there.index + 32 * i;
        uint64_t off = qsf_image_get(x, 8), bytes = qsf_image_get(x + 8, 4), whole = qsf_image_get(x + 12, 4);
        assert_int_equal(x[17], how);
        assert_int_equal(whole, qsf_image_get(y + 8, 4));
        assert_int_equal(qsf_image_get(x + 20, 4), qsf_image_crc(m, off, bytes));
        unsigned char *b = malloc((size_t)whole);
        assert_true(qsf_unpack(&u, how, m->b + off, (size_t)bytes, b, (size_t)whole));
        assert_memory_equal(b, plain->b + qsf_image_get(y, 8), (size_t)whole);
        free(b);
    }
    qsf_unpacker_close(&u);
}

static void test_files(void **state) {
    (void)state;
    static const uint32_t flags[] = { 0, QSFF_LINES, QSFF_PAGES | QSFF_LINES };
    for (uint8_t how = QSFF_LZ4; how < QSFF_COMPRESSIONS; how++) {
        if (!wanted(how)) continue;
        const uint32_t f = flags[how % 3];
        make(how == QSFF_LZ4 ? 2 : 0, f, how);
        expect_verified(qsf, 3);
        QsfSource *a = open_ok(gguf), *b = open_ok(qsf);
        expect_same_tensors(a, b);
        assert_true(qsf_meta_has(b, "qsf.layer_tensors"));
        qsf_source_close(a);
        qsf_source_close(b);
        carry(gguf, other, f, QSFF_STORED, NULL);
        QsfImage m = load(qsf), plain = load(other);
        expect_same_layers(&m, &plain, how);
        free(plain.b);
        /* Converted back, no trace is left. */
        carry(qsf, gguf, f, QSFF_STORED, NULL);
        carry(other, qsf, f, QSFF_STORED, NULL);
        QsfImage x = load(gguf), y = load(qsf);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.b, y.b, x.len);
        free(x.b);
        free(y.b);
        free(m.b);
    }
    assert_int_equal(ledger.total, 0);
}

/* auto keeps a codec that saves space; where none does, it leaves no trace except reserved space. */
static void test_auto(void **state) {
    (void)state;
    const QsfTinySpec noise = { .wtype = 2, .layers = 3 };
    QsfPackReport r;
    make(2, QSFF_LINES, QSF_COMPRESS_AUTO);
    expect_verified(qsf, 3);
    QsfImage m = load(qsf);
    assert_int_equal(m.b[qsf_image_map(&m).index + 17], QSFF_LZ4_HC);
    free(m.b);
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &noise), 0);
    carry(gguf, qsf, QSFF_LINES, QSF_COMPRESS_AUTO, &r);
    assert_int_equal(r.n_compressed, 0);
    qsf_pack_report_free(&r);
    expect_verified(qsf, 0);
    QsfSource *s = open_ok(qsf);
    assert_false(qsf_meta_has(s, "qsf.layer_tensors"));
    qsf_source_close(s);
    /* A dry run reports an upper bound of the size. */
    const QsfPackOptions dry = { .flags = QSFF_LINES, .codec = QSF_COMPRESS_AUTO, .dry = true };
    s = open_ok(gguf);
    assert_int_equal(qsf_pack(s, "nowhere", &dry, &r, NULL), QSF_OK);
    m = load(qsf);
    assert_int_equal(r.bytes, m.len);
    free(m.b);
    qsf_pack_report_free(&r);
    qsf_source_close(s);
}

/* --- damage --- */

/* Opens m, reads a tensor of each layer and verifies it: returns the reader's error, else the verifier's. */
static int try_image(const QsfImage *m, QsfErr *e) {
    QsfSource *s;
    QsfVerifyReport r;
    unsigned char byte;
    assert_int_equal(qsf_test_write_file(other, m->b, m->len), 0);
    qsf_err_clear(e);
    int rc = qsf_source_open(&s, other, &ledger, e);
    for (uint64_t i = 0; rc == QSF_OK && i < qsf_source_n_tensors(s); i++)
        rc = qsf_source_read_bytes(s, qsf_source_tensor(s, i), 0, &byte, 1, e);
    qsf_source_close(s);
    QsfErr v = { 0 };
    int rv = qsf_verify_file(other, &ledger, &r, &v);
    assert_int_equal(ledger.total, 0);
    if (rc != QSF_OK) assert_int_equal(rv, QSF_E_MODEL);
    if (rc != QSF_OK &&
        (rc != QSF_E_MODEL || strstr(e->msg, "press.other") == NULL || strstr(e->msg, "byte offset") == NULL))
        fail_msg("%d: %s", rc, e->msg);
    if (rv != QSF_OK && (rv != QSF_E_MODEL || strstr(v.msg, "press.other") == NULL))
        fail_msg("%d: %s", rv, v.msg);
    if (rc == QSF_OK && rv != QSF_OK) *e = v;
    return rc == QSF_OK ? rv : rc;
}

/* Offset of a metadata array's values, after its key, type, element type and count. */
static uint64_t find_heads(const QsfImage *m) {
    static const char key[] = "qsf.layer_tensors";
    QsfImageMap at = qsf_image_map(m);
    for (uint64_t i = at.meta; i < at.meta + at.meta_len; i++)
        if (memcmp(m->b + i, key, sizeof key - 1) == 0) return i + sizeof key - 1 + 16;
    fail_msg("no %s", key);
    return 0;
}

static void test_damage(void **state) {
    (void)state;
    static const struct {
        unsigned at, bytes;
    } fields[] = { { 0, 8 }, { 8, 4 }, { 12, 4 }, { 17, 1 }, { 18, 2 } };
    uint64_t seed = 3;
    QsfErr e = { 0 };
    for (uint8_t how = QSFF_LZ4; how < QSFF_COMPRESSIONS; how += 2) {
        if (!wanted(how)) continue;
        make(0, QSFF_LINES, how);
        QsfImage m = load(qsf), copy = { malloc(m.len), m.len };
        QsfImageMap at = qsf_image_map(&m);
        unsigned char *entry = copy.b + at.index + 32;
        uint64_t layer = qsf_image_get(m.b + at.index + 32, 8), bytes = qsf_image_get(m.b + at.index + 40, 4),
                 heads = find_heads(&m);
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
            for (int k = 0; k < 8; k++) { /* 0, all ones, random, off by one, with correct checksums */
                memcpy(copy.b, m.b, m.len);
                uint64_t old = qsf_image_get(entry + fields[f].at, fields[f].bytes);
                qsf_image_put(entry + fields[f].at, fields[f].bytes,
                              k == 0   ? 0
                              : k == 1 ? UINT64_MAX
                              : k == 2 ? old + 1
                              : k == 3 ? old - 1
                                       : random64(&seed) >> (k > 5 ? 48 : 0));
                bool same = qsf_image_get(entry + fields[f].at, fields[f].bytes) == old;
                /* the same blocks */
                bool kin = fields[f].at == 17 && entry[17] <= QSFF_LZ4_HC && how <= QSFF_LZ4_HC;
                qsf_image_fix(&copy, &at);
                if (try_image(&copy, &e) == QSF_OK && !same && !kin)
                    fail_msg("field %u, %d, compression %u: not detected", fields[f].at, k, how);
            }
        for (int k = 0; k < 24; k++) { /* garbage in the block, with old and with correct checksums */
            memcpy(copy.b, m.b, m.len);
            uint64_t from = layer + random64(&seed) % bytes, n = 1 + random64(&seed) % 40;
            for (uint64_t i = from; i < from + n && i < layer + bytes; i++)
                copy.b[i] = (unsigned char)random64(&seed);
            if (memcmp(copy.b, m.b, m.len) == 0) continue;
            assert_int_equal(try_image(&copy, &e), QSF_E_MODEL);
            qsf_image_fix(&copy, &at);
            (void)try_image(&copy, &e); /* other weights are valid weights too */
        }
        for (int k = 0; k < 16; k++) { /* a header in the metadata that differs from the layer's */
            memcpy(copy.b, m.b, m.len);
            uint64_t i = heads + random64(&seed) % (3 * 13 * 16);
            copy.b[i] ^= (unsigned char)(1u << random64(&seed) % 8);
            qsf_image_fix(&copy, &at);
            assert_int_equal(try_image(&copy, &e), QSF_E_MODEL);
        }
        for (uint64_t cut = layer; cut < layer + bytes; cut += 3001) {
            QsfImage less = { m.b, (size_t)cut };
            assert_int_equal(try_image(&less, &e), QSF_E_MODEL);
        }
        free(copy.b);
        free(m.b);
    }
}

/* Without headers in the metadata, layers are decompressed to read them. */
static void test_without_heads(void **state) {
    (void)state;
    QsfErr e = { 0 };
    make(8, QSFF_LINES, QSFF_LZ4_HC);
    QsfImage m = load(qsf);
    QsfImageMap at = qsf_image_map(&m);
    uint64_t heads = find_heads(&m);
    m.b[heads - 17] = 'z'; /* the key is another one then */
    qsf_image_fix(&m, &at);
    qsf_test_expect_ok(try_image(&m, &e), &e);
    QsfSource *a = open_ok(gguf), *b = open_ok(other);
    expect_same_tensors(a, b);
    qsf_source_close(a);
    qsf_source_close(b);
    /* A false one is detected while opening. */
    QsfLedger small;
    qsf_ledger_init(&small, 300000);
    assert_int_equal(qsf_source_open(&b, other, &small, &e), QSF_OK);
    qsf_source_close(b);
    m.b[heads - 17] = 's';
    m.b[heads - 8] ^= 1; /* its length */
    qsf_image_fix(&m, &at);
    assert_int_equal(try_image(&m, &e), QSF_E_MODEL);
    free(m.b);
    qsf_ledger_destroy(&small);
}

static int names(void **state) {
    (void)state;
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("press.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("press.qsf"));
    (void)snprintf(other, sizeof other, "%s", qsf_test_tmp("press.other"));
    return 0;
}

static int remove_all(void **state) {
    (void)state;
    unlink(gguf);
    unlink(qsf);
    unlink(other);
    return 0;
}

int main(void) {
    qsf_ledger_init(&ledger, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_round_trip_types),
        cmocka_unit_test(test_files),  cmocka_unit_test(test_auto),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_without_heads),
    };
    return cmocka_run_group_tests(tests, names, remove_all);
}
