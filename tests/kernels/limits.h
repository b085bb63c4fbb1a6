/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The maximum speed of a level with its own vectors: the lanes_<isa>.h included before this file. Defines
 * LIMITS(name), with name_read and name_dot (ck_bench.h). */
#ifndef QSF_TESTS_KERNELS_LIMITS_H
#define QSF_TESTS_KERNELS_LIMITS_H

#include "tests/kernels/ck_bench.h"

/* Accumulators of the dot products: enough to hide the latency, and few enough for the registers of any
 * level. */
#if defined __x86_64__ && !defined __AVX512F__
enum { DOT_ACCS = 8 };
#else
enum { DOT_ACCS = 16 };
#endif

/* The instruction with the most multiply-adds, and how many. */
#ifdef L_MATRIX
#define MULTIPLY      l_matrix
#define MULTIPLY_SIZE (L * 8)
#else
#define MULTIPLY      l_dot
#define MULTIPLY_SIZE (L * 4)
#endif

/* Hides the value of v from the compiler, so that no product is moved out of the loop. */
#if defined __x86_64__
#define OPAQUE(v) __asm__ volatile("" : "+v"(v))
#elif defined __wasm__
#define OPAQUE(v) __asm__ volatile("" : "+r"(v))
#else
#define OPAQUE(v) __asm__ volatile("" : "+w"(v))
#endif

/* Reads the bytes as `streams` parallel streams, each prefetched `ahead` bytes before it is loaded. */
QK_INLINE uint64_t read_runs(const uint8_t *p, size_t n, size_t streams, size_t ahead) {
    const size_t run = n / streams / 256 * 256;
    li s[4] = { l_set(0), l_set(0), l_set(0), l_set(0) };
    uint32_t lane[L];
    uint64_t sum = 0;
    for (size_t i = 0; i < run; i += 256)
        for (size_t r = 0; r < streams; r++) {
            const uint8_t *q = p + r * run + i;
            for (size_t at = 0; ahead && at < 256; at += 64) l_prefetch(q + ahead + at);
            for (size_t at = 0; at < 256; at += 4 * sizeof(li))
                for (size_t v = 0; v < 4; v++) s[v] = l_add(s[v], l_load(q + at + v * sizeof(li)));
        }
    l_store(lane, l_add(l_add(s[0], s[1]), l_add(s[2], s[3])));
    for (size_t i = 0; i < L; i++) sum += lane[i];
    for (size_t i = run * streams; i < n; i++) sum += p[i];
    return sum;
}

QK_INLINE uint64_t read_way(const uint8_t *p, size_t n, int way) {
    static const size_t ahead[CK_READ_AHEADS] = { 0, 768, 2048, 4096 };
    const size_t a = ahead[way % CK_READ_AHEADS];
    switch (way / CK_READ_AHEADS) {
    case 0: return read_runs(p, n, 1, a);
    case 1: return read_runs(p, n, 2, a);
    case 2: return read_runs(p, n, 4, a);
    default: return read_runs(p, n, 8, a);
    }
}

QK_INLINE double dot_rounds(size_t rounds, uint32_t *out) {
    li acc[DOT_ACCS], w = l_bytes(63), x = l_bytes(-127);
    for (int i = 0; i < DOT_ACCS; i++) acc[i] = l_set(0);
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < DOT_ACCS; i++) {
            OPAQUE(w);
            acc[i] = MULTIPLY(acc[i], w, x);
        }
    for (int i = 1; i < DOT_ACCS; i++) acc[0] = l_add(acc[0], acc[i]);
    uint32_t lane[L];
    l_store(lane, acc[0]);
    *out = lane[0];
    return (double)rounds * DOT_ACCS * MULTIPLY_SIZE;
}

#define LIMITS(name)                                                                          \
    uint64_t name##_read(const uint8_t *p, size_t n, int way) { return read_way(p, n, way); } \
    double name##_dot(size_t rounds, uint32_t *out) { return dot_rounds(rounds, out); }

#endif
