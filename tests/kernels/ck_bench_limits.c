/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of the machine: reading memory, and dot products of bytes in registers. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/ck_bench.h"

enum { READ_PIECE = 256 << 10, DOT_PIECES = 32, DOT_ROUNDS = 8192, TRIALS = 3 };

static uint64_t plain_read(const uint8_t *p, size_t n, int way) {
    uint64_t s[8] = { 0 };
    (void)way;
    for (const uint8_t *end = p + n; p + 64 <= end; p += 64)
        for (size_t i = 0; i < 8; i++) {
            uint64_t v;
            memcpy(&v, p + 8 * i, sizeof v);
            s[i] += v;
        }
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

ck_limits ck_limits_of(qk_level level) {
    switch (level) {
#if defined QK_ARCH_X86
    case QK_LEVEL_SSE42: return (ck_limits){ ck_sse42_read, ck_sse42_dot };
    case QK_LEVEL_AVX2: return (ck_limits){ ck_avx2_read, ck_avx2_dot };
    case QK_LEVEL_AVXVNNI: return (ck_limits){ ck_avxvnni_read, ck_avxvnni_dot };
    case QK_LEVEL_AVX512: return (ck_limits){ ck_avx512_read, ck_avx512_dot };
    case QK_LEVEL_AVX512VNNI: return (ck_limits){ ck_avx512vnni_read, ck_avx512vnni_dot };
    case QK_LEVEL_AVX512VBMI: return (ck_limits){ ck_avx512vbmi_read, ck_avx512vbmi_dot };
#elif defined QK_ARCH_ARM
    case QK_LEVEL_NEON: return (ck_limits){ ck_neon_read, ck_neon_dot };
    case QK_LEVEL_DOTPROD: return (ck_limits){ ck_dotprod_read, ck_dotprod_dot };
    case QK_LEVEL_I8MM: return (ck_limits){ ck_i8mm_read, ck_i8mm_dot };
#elif defined QK_ARCH_WASM
    case QK_LEVEL_WASM: return (ck_limits){ ck_wasm_read, ck_wasm_dot };
#endif
    default: return (ck_limits){ plain_read, NULL };
    }
}

typedef struct read_job {
    const ck_reader *r;
    int way;
    _Atomic uint64_t sum; /* so that the reads are not optimized out */
} read_job;

static void read_piece(void *arg, size_t i) {
    read_job *j = arg;
    const size_t at = i * READ_PIECE, left = j->r->n - at;
    atomic_fetch_add(&j->sum, j->r->limits.read(j->r->p + at, left < READ_PIECE ? left : READ_PIECE, j->way));
}

static double read_seconds(const ck_reader *r, int threads, int way) {
    read_job j = { .r = r, .way = way };
    return ck_pool_run(threads, read_piece, &j, (r->n + READ_PIECE - 1) / READ_PIECE);
}

double ck_read_speed(const ck_reader *r, int all) {
    return (double)r->n / read_seconds(r, all ? r->threads : 1, r->way[all]);
}

void ck_reader_init(ck_reader *r, qk_level level, const uint8_t *p, size_t n, int threads) {
    *r = (ck_reader){ .limits = ck_limits_of(level), .p = p, .n = n, .threads = threads };
    for (int all = 0; all < 2; all++) {
        double best = 1e9;
        for (int t = 0; t < TRIALS; t++)
            for (int way = 0; way < CK_READ_WAYS; way++) {
                const double s = read_seconds(r, all ? threads : 1, way);
                if (s < best) {
                    best = s;
                    r->way[all] = way;
                }
            }
    }
}

typedef struct dot_job {
    const ck_limits *l;
    _Atomic uint64_t macs;
    _Atomic uint32_t sum;
} dot_job;

static void dot_piece(void *arg, size_t i) {
    dot_job *j = arg;
    uint32_t out;
    (void)i;
    atomic_fetch_add(&j->macs, (uint64_t)j->l->dot(DOT_ROUNDS, &out));
    atomic_fetch_add(&j->sum, out);
}

double ck_dot_speed(const ck_reader *r, int all) {
    dot_job j = { .l = &r->limits };
    if (!r->limits.dot) return 0;
    const double s = ck_pool_run(all ? r->threads : 1, dot_piece, &j, DOT_PIECES);
    return (double)j.macs / s;
}
