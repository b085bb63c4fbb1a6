/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkkern --bench: bytes per second of a matrix-vector product over weights larger than the
 * last-level cache, next to a plain read of the same bytes, and multiply-adds per second with 128
 * columns; one thread and all of them. Speeds of a shared machine: compare within one run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/kernels/checkkern.h"

enum { WEIGHT_MIB = 160, BENCH_K = 2048, MM_ROWS = 2048, MM_COLS = 128 };
enum { MAX_THREADS = 16, REPEATS = 3, GRAIN = 16 };

typedef struct job {
    const qk_weight_ops *ops;
    const qk_mm *m;         /* NULL: read the bytes only */
    const uint8_t *bytes;
    size_t row0, row1, row_bytes;
    uint64_t sum;
} job;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void *work(void *arg)
{
    job *j = arg;
    if (j->m) {
        j->ops->matmul(j->m, j->row0, j->row1);
        return NULL;
    }
    const uint8_t *p = j->bytes + j->row0 * j->row_bytes, *end = j->bytes + j->row1 * j->row_bytes;
    uint64_t s[4] = { 0 };
    for (; p + 256 <= end; p += 256)
        for (size_t i = 0; i < 4; i++) {
            uint64_t v;
            memcpy(&v, p + 64 * i, sizeof v);
            s[i] += v;
        }
    j->sum = s[0] + s[1] + s[2] + s[3];
    return NULL;
}

/* Seconds of the best of REPEATS runs over all rows with n threads. */
static double timed(const job *proto, size_t rows, int n)
{
    double best = 1e9;
    for (int rep = 0; rep < REPEATS; rep++) {
        pthread_t th[MAX_THREADS];
        job jobs[MAX_THREADS];
        const double start = now();
        for (int i = 0; i < n; i++) {
            jobs[i] = *proto;
            jobs[i].row0 = rows / GRAIN * (size_t)i / (size_t)n * GRAIN;
            jobs[i].row1 = i + 1 == n ? rows : rows / GRAIN * (size_t)(i + 1) / (size_t)n * GRAIN;
            if (i > 0 && pthread_create(&th[i], NULL, work, &jobs[i]) != 0)
                exit(1);
        }
        work(&jobs[0]);
        for (int i = 1; i < n; i++)
            pthread_join(th[i], NULL);
        const double took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void *aligned(size_t n)
{
    void *p = aligned_alloc(64, (n + 63) & ~(size_t)63);
    if (!p) {
        fprintf(stderr, "checkkern: no memory for the benchmark\n");
        exit(1);
    }
    return p;
}

static void bench_type(const qk_table *t, qk_type type, uint8_t *w, int threads)
{
    const qk_weight_ops *ops = &t->weight[type];
    const size_t row_bytes = BENCH_K / qk_type_elems(type) * qk_type_bytes(type);
    const size_t rows = ((size_t)WEIGHT_MIB << 20) / row_bytes / GRAIN * GRAIN;
    const size_t x_bytes = qk_act_bytes(ops->act, BENCH_K);
    const size_t y_floats = rows > MM_ROWS * MM_COLS ? rows : MM_ROWS * MM_COLS;
    char *x = aligned(MM_COLS * x_bytes);
    float *f = aligned(BENCH_K * sizeof *f), *y = aligned(y_floats * sizeof *y);
    const qk_mm mv = { w, row_bytes, x, x_bytes, y, rows, BENCH_K, 1, 1.0f };
    const qk_mm mm = { w, row_bytes, x, x_bytes, y, MM_ROWS, BENCH_K, MM_COLS, 1.0f };
    const job read = { ops, NULL, w, 0, 0, row_bytes, 0 };
    const job vec = { ops, &mv, w, 0, 0, row_bytes, 0 };
    const job mat = { ops, &mm, w, 0, 0, row_bytes, 0 };
    const double gb = (double)(rows * row_bytes) * 1e-9, gmac = (double)MM_ROWS * MM_COLS * BENCH_K * 1e-9;
    ck_fill_weights(type, w, 64 * BENCH_K, CK_RANDOM);
    for (size_t at = 64 * row_bytes; at < rows * row_bytes; at += 64 * row_bytes)
        memcpy(w + at, w, rows * row_bytes - at < 64 * row_bytes ? rows * row_bytes - at : 64 * row_bytes);
    for (size_t c = 0; c < MM_COLS; c++) {
        ck_fill_floats(f, BENCH_K, CK_RANDOM);
        t->quantize[ops->act](x + c * x_bytes, f, BENCH_K);
    }
    for (int n = 1; n <= threads; n += threads > 1 ? threads - 1 : 1)
        printf("%-20s %2d threads  read %6.2f GB/s  matvec %6.2f GB/s  matmul %7.2f GMAC/s\n", ops->name, n,
               gb / timed(&read, rows, n), gb / timed(&vec, rows, n), gmac / timed(&mat, MM_ROWS, n));
    fflush(stdout);
    free(x);
    free(f);
    free(y);
}

void ck_bench(const qk_table *t, const char *only_function)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (int)cpus;
    uint8_t *w = aligned((size_t)WEIGHT_MIB << 20);
    for (int type = 0; type < QK_TYPE_N; type++)
        if (!only_function || strstr(t->weight[type].name, only_function))
            bench_type(t, (qk_type)type, w, threads);
    free(w);
}
