/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the benchmark: warm threads, and the limits that kernels are compared with: reading
 * memory, and the dot product of a level. */
#ifndef QSF_TESTS_KERNELS_CK_BENCH_H
#define QSF_TESTS_KERNELS_CK_BENCH_H

#include "tests/kernels/checkkern.h"

enum { CK_MAX_THREADS = 64 };

/* --- ck_bench_pool.c --- */
double ck_now(void); /* seconds */
/* Aligned to 2 MiB and in huge pages where the system provides them; exits if out of memory. */
void *ck_memory(size_t n);
int ck_cpus(void);
/* Starts threads that spin until ck_pool_stop; n in all. */
void ck_pool_start(int n);
void ck_pool_stop(void);
/* fn(arg, i) for every i < n, on the first `threads` threads; a thread takes the next i when it is done with
 * one. Returns seconds. */
typedef void (*ck_piece)(void *arg, size_t i);
double ck_pool_run(int threads, ck_piece fn, void *arg, size_t n);

/* --- ck_bench_limits.c --- */
enum { CK_READ_AHEADS = 4, CK_READ_WAYS = 4 * CK_READ_AHEADS };
typedef struct ck_limits {
    uint64_t (*read)(const uint8_t *p, size_t n, int way); /* way < CK_READ_WAYS; a sum of the bytes */
    double (*dot)(size_t rounds, uint32_t *out);           /* returns multiply-adds done; NULL: no vectors */
} ck_limits;
ck_limits ck_limits_of(qk_level level);
/* One per level (x86/limits_*.c, arm/limits_*.c, wasm/limits_*.c). */
#define CK_LIMITS(name)                                        \
    uint64_t name##_read(const uint8_t *p, size_t n, int way); \
    double name##_dot(size_t rounds, uint32_t *out);
CK_LIMITS(ck_sse42)
CK_LIMITS(ck_avx2)
CK_LIMITS(ck_avxvnni)
CK_LIMITS(ck_avx512)
CK_LIMITS(ck_avx512vnni)
CK_LIMITS(ck_avx512vbmi)
CK_LIMITS(ck_neon)
CK_LIMITS(ck_dotprod)
CK_LIMITS(ck_i8mm)
CK_LIMITS(ck_wasm)
/* Picks the fastest way of reading [p, p + n) with this many threads. */
typedef struct ck_reader {
    ck_limits limits;
    const uint8_t *p;
    size_t n;
    int way[2]; /* with one thread, with all */
    int threads;
} ck_reader;
void ck_reader_init(ck_reader *r, qk_level level, const uint8_t *p, size_t n, int threads);
/* Bytes per second, with one thread or all. */
double ck_read_speed(const ck_reader *r, int all);
/* Multiply-adds per second; 0 where the level has no vectors. */
double ck_dot_speed(const ck_reader *r, int all);

/* --- ck_bench_mm.c: one format in one layout --- */
typedef struct ck_speeds {
    /* [0] one thread, [1] all. Shares of the limit measured at the same time, medians. */
    double gbs[2], read_part[2], gmacs[2], dot_part[2];
} ck_speeds;
typedef struct ck_case {
    const qk_table *table;
    qk_type type;
    int groups; /* sixteen rows interleaved, for matmul16 */
    uint8_t *w; /* weight_bytes of space, which the memory test reads too */
    size_t weight_bytes;
    const ck_reader *reader;
} ck_case;
ck_speeds ck_bench_case(const ck_case *c);

#endif
