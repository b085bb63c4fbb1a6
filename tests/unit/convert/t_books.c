/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks with codebooks: the same bytes for every instruction set of this CPU, and an error close to that of
 * an exhaustive search over d, scales, signs and codebooks. */
#include <math.h>

#include "kernels/books.h"
#include "src/base/half.h"
#include "src/convert/quant/books.h"
#include "src/convert/quant/formats.h"
#include "tests/harness/draw.h"
#include "tests/harness/qsf_test.h"

enum { N = QSF_BOOK_BLOCK, BYTES = QSF_BOOK_HEAD + N / 2, BLOCKS = 60, KINDS = 6, TRIED = 3 };

/* Ordinary rows, rows with outliers, a few steps of the smallest halves, the largest ones, interspersed
 * zeros, all zeros. */
static float draw(int kind) {
    const double v = qsf_draw_gauss();
    if (kind == 1) return (float)(v * (qsf_draw_uniform() < 0.01 ? 40 : 1));
    if (kind == 2) return (float)(v * 2e-7);
    if (kind == 3) return v > 0 ? 65504 : -65504;
    if (kind == 4) return qsf_draw_uniform() < 0.7 ? 0 : (float)v;
    return kind == 5 ? 0 : (float)(v * 0.02);
}

static void fill(int kind, bool weighted, float *x, float *w) {
    for (int i = 0; i < N; i++) {
        x[i] = draw(kind);
        w[i] = weighted ? (float)exp(2 * qsf_draw_gauss()) * (qsf_draw_uniform() < 0.1 ? 0 : 1) : 1;
    }
}

static const QsfBooks *const layouts[] = { &qsf_books_2bit, &qsf_books_3bit, &qsf_books_4bit };
static const char *const names[] = { "2bit-book", "3bit-book", "4bit-book" };

/* A level that adds instructions has the vectors of the one below it. */
static void test_every_level(void **state) {
    (void)state;
    assert_ptr_equal(qsf_book_core(QK_LEVEL_AVXVNNI), qsf_book_core(QK_LEVEL_AVX2));
    assert_ptr_equal(qsf_book_core(QK_LEVEL_AVX512VNNI), qsf_book_core(QK_LEVEL_AVX512));
    assert_ptr_equal(qsf_book_core(QK_LEVEL_AVX512VBMI), qsf_book_core(QK_LEVEL_AVX512));
}

static void test_same_bytes(void **state) {
    (void)state;
    static const qk_level levels[] = { QK_LEVEL_AVX2, QK_LEVEL_AVX512 };
    float x[N], w[N];
    uint8_t plain[BYTES], other[BYTES];
    int compared = 0;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++)
        for (int i = 0; i < BLOCKS * KINDS; i++)
            for (size_t k = 0; k < 3; k++) {
                const size_t bytes = QSF_BOOK_HEAD + N * layouts[k]->bits / 8;
                fill(i % KINDS, i / KINDS % 2, x, w); /* the same numbers for later tests on every CPU */
                if (!qk_cpu_has(levels[l])) continue;
                qsf_book_encode(layouts[k], qsf_book_core(QK_LEVEL_REF), x, w, plain);
                qsf_book_encode(layouts[k], qsf_book_core(levels[l]), x, w, other);
                assert_memory_equal(plain, other, bytes);
                compared++;
            }
    if (compared == 0) skip();
}

/* The expected bytes were recorded on one machine; every other machine must produce the same. */
static void test_known_bytes(void **state) {
    (void)state;
    static const uint32_t sums[] = { 0x1d963684, 0xd3395927, 0xc626b05d };
    float x[N], w[N];
    uint8_t out[BYTES];
    for (size_t k = 0; k < 3; k++) {
        uint32_t sum = 2166136261u; /* G. Fowler, L. C. Noll, K.-P. Vo: FNV-1a */
        for (int i = 0; i < BLOCKS; i++) {
            /* Integers only: independent of the logarithm of any C library. */
            for (int j = 0; j < N; j++) {
                x[j] = (float)((int)(qsf_draw_uniform() * 2000) + (int)(qsf_draw_uniform() * 2000) - 2000) *
                       0x1p-16f;
                w[j] = i % 2 ? (float)(1 + (int)(qsf_draw_uniform() * 15)) : 1;
            }
            qsf_book_encode(layouts[k], qsf_book_core(qk_cpu_best()), x, w, out);
            for (size_t j = 0; j < QSF_BOOK_HEAD + N * layouts[k]->bits / 8; j++)
                sum = (sum ^ out[j]) * 16777619u;
        }
        print_message("%s: %08x\n", names[k], sum);
        assert_int_equal(sum, sums[k]);
    }
}

static double squares(const QsfBooks *t, const float *x, const float *w, double unit, const int8_t *book) {
    double sum = 0;
    for (int i = 0; i < QSF_BOOK_GROUP; i++) {
        double least = INFINITY;
        for (int q = 0; q < 1 << t->bits; q++) {
            const double e = (double)x[i] - unit * book[q];
            least = e * e < least ? e * e : least;
        }
        sum += (double)w[i] * least;
    }
    return sum;
}

static double group_least(const QsfBooks *t, const float *x, const float *w, double d) {
    double least = INFINITY;
    for (int scale = 0; scale < 1 << t->scale_bits; scale++)
        for (int b = 0; b < 1 << t->book_bits; b++)
            for (int sign = -1; sign < 2; sign += 2) {
                const double e = squares(t, x, w, sign * d / QSF_BOOK_UNITS * scale,
                                         t->levels + (b << t->bits));
                least = e < least ? e : least;
            }
    return least;
}

/* The smallest error for d from 0.5 to 1.2 times the d that maps the largest value to the largest level. */
static double block_least(const QsfBooks *t, const float *x, const float *w) {
    double size = 0, least = INFINITY;
    for (int i = 0; i < N; i++) size = fmax(size, fabs((double)x[i]));
    for (double part = 0.5; part < 1.2; part *= 1.05) {
        const double d = (double)qsf_half_round(part * size * QSF_BOOK_UNITS /
                                                (127 * ((1 << t->scale_bits) - 1)));
        double sum = 0;
        for (int g = 0; g < QSF_BOOK_GROUPS; g++)
            sum += group_least(t, x + g * QSF_BOOK_GROUP, w + g * QSF_BOOK_GROUP, d);
        least = sum < least ? sum : least;
    }
    return least;
}

static void test_near_the_minimum(void **state) {
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (int weighted = 0; weighted < 2; weighted++) {
            const QsfQuant q = { qsf_quant_format_named(names[k]), 0, QSF_RULE_SEARCH };
            double found = 0, least = 0;
            for (int i = 0; i < TRIED; i++) {
                float x[N], w[N], y[N];
                uint8_t out[BYTES];
                QsfErr err = { 0 };
                fill(0, weighted, x, w);
                qsf_book_encode(layouts[k], qsf_book_core(qk_cpu_best()), x, w, out);
                qsf_test_expect_ok(qsf_quant_decode(&q, out, 1, N, y, &err), &err);
                for (int j = 0; j < N; j++)
                    found += (double)w[j] * ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
                least += block_least(layouts[k], x, w);
            }
            print_message("%s, %s: %.4f of the minimum\n", names[k], weighted ? "weighted" : "unweighted",
                          found / least);
            assert_true(found < least * (weighted ? 1.06 : 1.02));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_level),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_near_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
