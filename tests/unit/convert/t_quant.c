/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantized blocks: the bytes of each layout compared with hand-computed ones, decoding compared with the
 * kernels', and what is refused. */
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/ref/ref.h"
#include "src/base/half.h"
#include "src/convert/quant/formats.h"
#include "tests/harness/qsf_test.h"

enum { MAX = 256, BYTES = 512 };

static QsfQuant quant(const char *name, uint32_t block, QsfQuantRule rule) {
    const QsfQuant q = { qsf_quant_format_named(name), block, rule };
    assert_non_null(q.format);
    return q;
}

/* One row of n values by the plain rule; out is prefilled with BYTES of 0xEE. Returns the bytes written. */
static size_t plain_row(const char *name, uint32_t block, const float *x, size_t n, uint8_t *out) {
    const QsfQuant q = quant(name, block, QSF_RULE_MINMAX);
    const QsfQuantRows rows = { .x = x, .n_rows = 1, .cols = n };
    QsfErr err = { 0 };
    uint64_t bytes;
    memset(out, 0xEE, BYTES);
    qsf_test_expect_ok(qsf_quant_row_bytes(&q, n, &bytes, &err), &err);
    qsf_test_expect_ok(qsf_quant_encode(&q, &rows, out, &err), &err);
    assert_int_equal(out[bytes], 0xEE);
    return (size_t)bytes;
}

/* The row x = first + step * (i % period) becomes `head`, then `body` (n_body bytes) repeatedly. */
typedef struct Case {
    const char *name;
    uint32_t block;
    size_t n;
    float first, step;
    unsigned period;
    const char *head;
    size_t n_head, n_body;
    const char *body;
    size_t bytes;
} Case;

static const Case cases[] = {
    /* clang-format off */
    /* -1 0 1 2: d = 1, m = -1, codes 0 1 2 3 starting at the lowest bits */
    { "2bit-asym", 64, 64, -1, 1, 4, "\x00\x3c\x00\xbc", 4, 1, "\xe4", 20 },
    { "2bit-asym", 128, 128, -1, 1, 4, "\x00\x3c\x00\xbc", 4, 1, "\xe4", 36 },
    { "2bit-asym", 256, 256, -1, 1, 4, "\x00\x3c\x00\xbc", 4, 1, "\xe4", 68 },
    /* -3 -1 1 3: d = 2, m = -1.5 d */
    { "2bit", 64, 64, -3, 2, 4, "\x00\x40\x00\xc2", 4, 1, "\xe4", 20 },
    /* 1 1.5 ... 4.5: d = 0.5, m = 1; codes 0 ... 7 are 0 1 2 3 4 5 6 7 in octal, lowest first: 0xfac688 */
    { "3bit", 64, 64, 1, 0.5f, 8, "\x00\x38\x00\x3c", 4, 3, "\x88\xc6\xfa", 28 },
    { "3bit", 256, 256, 1, 0.5f, 8, "\x00\x38\x00\x3c", 4, 3, "\x88\xc6\xfa", 100 },
    /* -16 -14 ... 14: d = 2, m = -16 */
    { "4bit", 64, 64, -16, 2, 16, "\x00\x40\x00\xcc", 4, 8, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 36 },
    { "4bit", 128, 128, -16, 2, 16, "\x00\x40\x00\xcc", 4, 8, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 68 },
    /* -8 -7 ... 7: d = 1; byte j holds elements j and j + 16, which are equal */
    { "q4_0", 0, 32, -8, 1, 16, "\x00\x3c", 2, 16, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 18 },
    /* all 2.5: scale 0, m = 2.5, codes 0 */
    { "4bit", 64, 64, 2.5f, 0, 1, "\x00\x00\x00\x41", 4, 1, "\x00", 36 },
    /* all 0 */
    { "2bit", 64, 64, 0, 0, 1, "\x00\x00\x00\x00", 4, 1, "\x00", 20 },
    { "2bit-asym", 64, 64, 0, 0, 1, "\x00\x00\x00\x00", 4, 1, "\x00", 20 },
    { "ternary", 64, 64, 0, 0, 1, "\x00\x00\0\0\0\0\0\0\0\0", 10, 1, "\xff", 18 },
    { "8bit", 0, 32, 0, 0, 1, "\x00\x00", 2, 1, "\x00", 34 },
    /* clang-format on */
};

static void test_bytes(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const Case *c = &cases[k];
        uint8_t out[BYTES];
        float x[MAX];
        for (size_t i = 0; i < c->n; i++) x[i] = c->first + c->step * (float)(i % c->period);
        print_message("%s, block %u\n", c->name, c->block);
        assert_int_equal(plain_row(c->name, c->block, x, c->n, out), c->bytes);
        assert_memory_equal(out, c->head, c->n_head);
        for (size_t i = c->n_head; i < c->bytes; i++)
            assert_int_equal(out[i], (uint8_t)c->body[(i - c->n_head) % c->n_body]);
    }
}

/* 1 -1 0 -1: the mean magnitude 0.75 is the plain scale, 1 the best one. */
static void test_bytes_ternary(void **state) {
    (void)state;
    static const float pattern[4] = { 1, -1, 0, -1 };
    const QsfQuant q = quant("ternary", 128, QSF_RULE_SEARCH);
    uint8_t out[BYTES];
    float x[128];
    QsfErr err = { 0 };
    const QsfQuantRows rows = { .x = x, .n_rows = 1, .cols = 128 };
    for (size_t i = 0; i < 128; i++) x[i] = pattern[i % 4];
    assert_int_equal(plain_row("ternary", 128, x, 128, out), 34);
    assert_memory_equal(out, "\x00\x3a", 2);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(out[2 + i], 0xaa);
        assert_int_equal(out[18 + i], 0x44);
    }
    qsf_test_expect_ok(qsf_quant_encode(&q, &rows, out, &err), &err);
    assert_memory_equal(out, "\x00\x3c\xaa", 3);
    /* Values below 0.3 of the mean magnitude 0.325 become zero, others do not. */
    for (size_t i = 0; i < 64; i++) x[i] = i % 4 == 0 ? 1.0f : i % 4 == 1 ? -0.1f : 0.1f;
    assert_int_equal(plain_row("ternary", 64, x, 64, out), 18);
    assert_memory_equal(out + 2, "\x22\x22\x22\x22\x22\x22\x22\x22\0", 9);
    x[1] = -0.05f;
    plain_row("ternary", 64, x, 64, out);
    assert_memory_equal(out + 2, "\x20\x22\x22\x22\x22\x22\x22\x22\x02\0", 10);
}

static void test_bytes_small(void **state) {
    (void)state;
    static const float halves[5] = { 1, -2, 65504, 0x1p-24f, -0.0f };
    uint8_t out[BYTES];
    float x[66] = { 0 };
    assert_int_equal(plain_row("f16", 0, halves, 5, out), 10);
    assert_memory_equal(out, "\x00\x3c\x00\xc0\xff\x7b\x01\x00\x00\x80", 10);
    for (int i = 0; i < 32; i++) x[i] = i == 31 ? 63.5f : (float)(i - 16) / 2;
    assert_int_equal(plain_row("8bit", 0, x, 32, out), 34);
    assert_memory_equal(out, "\x00\x38", 2);
    for (int i = 0; i < 32; i++) assert_int_equal((int8_t)out[2 + i], i == 31 ? 127 : i - 16);
    /* 66 values: the second block is 15, 7 and zeros. */
    for (int i = 0; i < 64; i++) x[i] = 3;
    x[64] = 15;
    x[65] = 7;
    assert_int_equal(plain_row("4bit", 64, x, 66, out), 72);
    assert_memory_equal(out + 36, "\x00\x3c\x00\x00\x7f\x00", 6);
    assert_int_equal(out[71], 0);
    /* Half steps round up. */
    memset(x, 0, sizeof x);
    x[0] = 15;
    x[2] = 0.45f;
    x[3] = 0.5f;
    x[5] = 13.51f;
    plain_row("4bit", 64, x, 64, out);
    assert_memory_equal(out, "\x00\x3c\x00\x00\x0f\x10\xe0\x00", 8);
}

/* Super-blocks whose groups all span the range of the largest scale and minimum: 1 is the common factor. */
static void test_bytes_k(void **state) {
    (void)state;
    uint8_t out[BYTES];
    float x[256];
    for (int i = 0; i < 256; i++) x[i] = 15.0f * (float)(i % 4) - 15;
    assert_int_equal(plain_row("q2_k", 0, x, 256, out), 84);
    for (int i = 0; i < 16; i++) assert_int_equal(out[i], 0xff);
    for (int i = 0; i < 64; i++) assert_int_equal(out[16 + i], i % 4 * 0x55);
    assert_memory_equal(out + 80, "\x00\x3c\x00\x3c", 4);
    for (int i = 0; i < 256; i++) x[i] = 63.0f * (float)(i % 16) - 63;
    assert_int_equal(plain_row("q4_k", 0, x, 256, out), 144);
    assert_memory_equal(out, "\x00\x3c\x00\x3c\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
    for (int i = 0; i < 128; i++) assert_int_equal(out[16 + i], i % 16 * 0x11);
    for (int i = 0; i < 256; i++) x[i] = 32.0f * (float)(i % 8 - 4);
    assert_int_equal(plain_row("q3_k", 0, x, 256, out), 110);
    for (int i = 0; i < 32; i++) assert_int_equal(out[i], i % 8 < 4 ? 0 : 0xff);
    for (int i = 0; i < 64; i++) assert_int_equal(out[32 + i], i % 4 * 0x55);
    assert_memory_equal(out + 96, "\0\0\0\0\0\0\0\0\0\0\0\0\x00\xbc", 14);
    for (int i = 0; i < 256; i++) x[i] = 128.0f * (float)(i % 16 ? i % 16 : -32);
    assert_int_equal(plain_row("q6_k", 0, x, 256, out), 210);
    for (int i = 0; i < 128; i++) assert_int_equal(out[i], i % 16 * 0x11);
    for (int i = 0; i < 64; i++) assert_int_equal(out[128 + i], i % 16 ? 0xaa : 0);
    for (int i = 0; i < 16; i++) assert_int_equal(out[192 + i], 0x80);
    assert_memory_equal(out + 208, "\x00\xbc", 2);
}

/* Blocks of 16 groups, each with the levels of one codebook times the largest scale; at 2 bits every second
 * one negated. The words of 7 bits, from the top: 101 0 111 and 101 1 111; 10 0 1111; 1 0 11111. */
static const struct {
    const char *name;
    int levels, scale, turned;
    int book[16];
    const char *words; /* seven bytes, twice */
    size_t n_codes;
    const char *codes; /* repeated */
    size_t bytes;
} books[] = {
    /* clang-format off */
    { "2bit-book", 4, 7, 1, { -127, -34, 3, 41 }, "\xd7\xef\xf5\x7b\xfd\x5e\xbf", 1, "\xe4", 80 },
    { "3bit-book", 8, 15, 0, { -127, -83, -45, -17, 6, 33, 66, 109 }, "\xcf\xe7\xf3\xf9\x7c\x3e\x9f", 3,
      "\x88\xc6\xfa", 112 },
    { "4bit-book", 16, 31, 0, { -124, -94, -76, -57, -41, -26, -14, -3, 8, 20, 33, 47, 63, 82, 103, 127 },
      "\xdf\xef\xf7\xfb\xfd\x7e\xbf", 8, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 144 },
    /* clang-format on */
};

static void test_bytes_book(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof books / sizeof *books; k++) {
        uint8_t out[BYTES], again[BYTES];
        float x[256], y[256];
        QsfErr err = { 0 };
        const QsfQuant q = quant(books[k].name, 0, QSF_RULE_SEARCH);
        for (int i = 0; i < 256; i++) {
            x[i] = (float)(books[k].scale * books[k].book[i % books[k].levels]);
            if (books[k].turned && i / 16 % 2) x[i] = -x[i];
        }
        assert_int_equal(plain_row(books[k].name, 0, x, 256, out), books[k].bytes);
        assert_memory_equal(out, "\x00\x58", 2); /* 128 */
        assert_memory_equal(out + 2, books[k].words, 7);
        assert_memory_equal(out + 9, books[k].words, 7);
        for (size_t i = 16; i < books[k].bytes; i++)
            assert_int_equal(out[i], (uint8_t)books[k].codes[(i - 16) % books[k].n_codes]);
        qsf_test_expect_ok(qsf_quant_decode(&q, out, 1, 256, y, &err), &err);
        assert_memory_equal(x, y, sizeof x);
        qsf_test_expect_ok(qsf_quant_encode(&q, &(QsfQuantRows){ x, NULL, 0, 1, 256 }, again, &err), &err);
        assert_memory_equal(again, out, books[k].bytes);
    }
}

/* Scales below the largest, and 0. */
static void test_book_scales(void **state) {
    (void)state;
    const QsfQuant q = quant("2bit-book", 0, QSF_RULE_SEARCH);
    uint8_t in[80] = { 0 };
    float x[256];
    QsfErr err = { 0 };
    memset(in + 16, 0xe4, 64);
    in[1] = 0x54;               /* d = 64: halves of levels */
    in[2] = 0x53, in[3] = 0x1c; /* words 1010011 and 0111000 (from the top), then zeros */
    qsf_test_expect_ok(qsf_quant_decode(&q, in, 1, 256, x, &err), &err);
    assert_true(x[0] == -127 * 1.5f && x[1] == -34 * 1.5f && x[2] == 4.5f && x[3] == 41 * 1.5f);
    assert_true(x[16] == 0 && x[19] == 0 && x[32] == 0); /* scale 0 */
    in[2] = 0x53 | 0x80, in[3] = 0x1c;                   /* 0111001: scale 1, negated, codebook 3 */
    qsf_test_expect_ok(qsf_quant_decode(&q, in, 1, 256, x, &err), &err);
    assert_true(x[16] == 127 * 0.5f && x[17] == 10 && x[18] == -20 && x[19] == -113 * 0.5f);
}

static uint32_t seed = 7;
static uint8_t random_byte(void) { return (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24); }

static const struct {
    const char *name;
    void (*dequant)(const void *w, float *x, size_t k);
    size_t elems, bytes;
    size_t halves[2]; /* positions of halves, equal if there is only one */
} kernels[] = {
    { "2bit", qk_dequant_qsf2_ref, 64, 20, { 0, 2 } },
    { "2bit-asym", qk_dequant_qsf2_ref, 64, 20, { 0, 2 } },
    { "3bit", qk_dequant_qsf3_ref, 64, 28, { 0, 2 } },
    { "4bit", qk_dequant_qsf4_ref, 64, 36, { 0, 2 } },
    { "ternary", qk_dequant_qsft_ref, 64, 18, { 0, 0 } },
    { "8bit", qk_dequant_q8_0_ref, 32, 34, { 0, 0 } },
    { "f16", qk_dequant_f16_ref, 1, 2, { 0, 0 } },
    { "q8_0", qk_dequant_q8_0_ref, 32, 34, { 0, 0 } },
    { "q4_0", qk_dequant_q4_0_ref, 32, 18, { 0, 0 } },
    { "q2_k", qk_dequant_q2_k_ref, 256, 84, { 80, 82 } },
    { "q3_k", qk_dequant_q3_k_ref, 256, 110, { 108, 108 } },
    { "q4_k", qk_dequant_q4_k_ref, 256, 144, { 0, 2 } },
    { "q6_k", qk_dequant_q6_k_ref, 256, 210, { 208, 208 } },
    { "2bit-book", qk_dequant_qsb2_ref, 256, 80, { 0, 0 } },
    { "3bit-book", qk_dequant_qsb3_ref, 256, 112, { 0, 0 } },
    { "4bit-book", qk_dequant_qsb4_ref, 256, 144, { 0, 0 } },
};

static void test_decode_is_kernels(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        const QsfQuant q = quant(kernels[k].name, 64, QSF_RULE_SEARCH);
        QsfErr err = { 0 };
        for (int round = 0; round < 200; round++) {
            uint8_t in[BYTES];
            float mine[MAX], theirs[MAX];
            for (size_t i = 0; i < kernels[k].bytes; i++) in[i] = random_byte();
            for (int h = 0; h < 2; h++) in[kernels[k].halves[h] + 1] &= 0xbf; /* finite */
            qsf_test_expect_ok(qsf_quant_decode(&q, in, 1, kernels[k].elems, mine, &err), &err);
            kernels[k].dequant(in, theirs, kernels[k].elems);
            for (size_t i = 0; i < kernels[k].elems; i++) assert_true(mine[i] == theirs[i]);
        }
    }
}

static void test_halves(void **state) {
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const float v = qk_f16_to_f32((uint16_t)h);
        if (!isfinite(v)) continue;
        assert_true(qsf_half_value((uint16_t)h) == v);
        assert_int_equal(qsf_half_bits((double)v), h);
    }
    for (int i = 0; i < 100000; i++) {
        const uint32_t bits = (uint32_t)random_byte() << 24 | (uint32_t)random_byte() << 16 |
                              (uint32_t)random_byte() << 8 | random_byte();
        float v;
        memcpy(&v, &bits, sizeof v);
        if (fabsf(v) < 65504) assert_int_equal(qsf_half_bits((double)v), qk_f32_to_f16(v));
    }
    assert_int_equal(qsf_half_bits(1 + 0x1p-11), 0x3c00); /* ties go to even */
    assert_int_equal(qsf_half_bits(1 + 3 * 0x1p-11), 0x3c02);
    assert_int_equal(qsf_half_bits(1e300), 0x7bff);
    assert_int_equal(qsf_half_bits(-65519.0), 0xfbff);
    assert_int_equal(qsf_half_step(0, -1), 0x8001);
    assert_int_equal(qsf_half_step(0x8001, 1), 0);
    assert_int_equal(qsf_half_step(0x7bff, 1), 0x7bff);
    assert_int_equal(qsf_half_step(0xfbff, -1), 0xfbff);
}

static void test_refused(void **state) {
    (void)state;
    float x[3 * 64] = { 0 }, w[64] = { 0 };
    uint8_t out[BYTES];
    QsfQuant q = quant("4bit", 64, QSF_RULE_SEARCH);
    const QsfQuantRows rows = { x, w, 1000, 3, 64 };
    static const struct {
        float v;
        const char *says;
    } bad[] = {
        { NAN, "row 1002, column 5 is not a number" },
        { -INFINITY, "row 1002, column 5 is infinite" },
        { -65536, "row 1002, column 5 is -65536, beyond the half precision maximum of 65504" },
    };
    for (size_t i = 0; i < 3; i++) {
        QsfErr err = { 0 };
        x[2 * 64 + 5] = bad[i].v;
        assert_int_equal(qsf_quant_encode(&q, &rows, out, &err), QSF_E_MODEL);
        qsf_test_expect_err(&err, QSF_E_MODEL, bad[i].says);
    }
    x[2 * 64 + 5] = 65504;
    assert_int_equal(qsf_quant_encode(&q, &rows, out, NULL), QSF_OK);
    for (int i = 0; i < 3; i++) {
        QsfErr err = { 0 };
        w[7] = i == 0 ? -1.0f : i == 1 ? NAN : INFINITY;
        qsf_quant_encode(&q, &rows, out, &err);
        qsf_test_expect_err(&err, QSF_E_MODEL, "importance of column 7");
    }
}

static void test_refused_shapes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t block;
        uint64_t cols;
        const char *says;
    } bad[] = {
        { "4bit", 32, 64, "64, 128 or 256 elements, not 32" },
        { "ternary", 512, 64, "not 512" },
        { "4bit", 64, 0, "has no elements" },
        { "q4_k", 0, 384, "384 elements are not a multiple of its block size 256" },
        { "q8_0", 0, 48, "multiple of its block size 32" },
        { "f16", 0, UINT64_MAX, "too long" },
        { "4bit", 64, UINT64_MAX - 5, "too long" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const QsfQuant q = quant(bad[i].name, bad[i].block, QSF_RULE_SEARCH);
        QsfErr err = { 0 };
        uint64_t bytes;
        qsf_quant_row_bytes(&q, bad[i].cols, &bytes, &err);
        qsf_test_expect_err(&err, QSF_E_USAGE, bad[i].says);
    }
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; qsf_quant_format(i); i++) {
        const QsfQuantFormat *f = qsf_quant_format(i);
        assert_ptr_equal(qsf_quant_format_named(f->name), f);
        assert_ptr_equal(qsf_quant_format_of(f->code), f);
    }
    assert_null(qsf_quant_format_named("5bit"));
    assert_null(qsf_quant_format_of(5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_ternary),
        cmocka_unit_test(test_bytes_small),
        cmocka_unit_test(test_bytes_k),
        cmocka_unit_test(test_bytes_book),
        cmocka_unit_test(test_book_scales),
        cmocka_unit_test(test_decode_is_kernels),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_shapes),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
