/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkkern --bench, attention: bytes per second of one query group over 8192 cached positions, compared with
 * a plain read of the same bytes (more than the last-level cache holds), and multiply-adds per second of 256
 * columns after 2048 positions; one thread and all of them. The shape is that of a 1.1B model: 8 heads of 64
 * per KV head. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/kernels/checkkern.h"

enum { DIM = 64, GROUP = 8, CTX = 8192, MIB = 128, COLS = 256, PAST = 2048, MAX_THREADS = 16, REPEATS = 3 };

typedef enum ck_task { READ, DECODE, PREFILL } ck_task;

typedef struct job {
    const qk_kv_ops *ops;
    qk_kv type;
    char *mem;
    size_t head_bytes, heads, first, step; /* this thread: heads first, first + step, .. */
    ck_task what;
    float *q;
    uint64_t sum;
} job;

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void *memory(size_t n) {
    void *p = aligned_alloc(64, (n + 63) & ~(size_t)63);
    if (!p) {
        fprintf(stderr, "checkkern: no memory for the benchmark\n");
        exit(1);
    }
    return p;
}

static uint64_t read_bytes(const char *p, size_t n) {
    uint64_t s[4] = { 0 };
    for (const char *end = p + n; p + 256 <= end; p += 256)
        for (size_t i = 0; i < 4; i++) {
            uint64_t v;
            memcpy(&v, p + 64 * i, sizeof v);
            s[i] += v;
        }
    return s[0] + s[1] + s[2] + s[3];
}

static void attend(const job *j, char *head, float *y, void *scratch) {
    const size_t cols = j->what == DECODE ? 1 : qk_attn_queries(DIM) / GROUP;
    qk_attn a = { .k = head,
                  .v = head + j->head_bytes / 2,
                  .v_type = j->type,
                  .q = j->q,
                  .y = y,
                  .q_stride = GROUP * DIM,
                  .y_stride = GROUP * DIM,
                  .head_dim = DIM,
                  .n_cols = cols,
                  .n_heads = GROUP,
                  .scale = 0.125f,
                  .scratch = scratch };
    if (j->what == DECODE) {
        a.pos = CTX - 1;
        j->ops->attend(&a);
    }
    for (size_t c = 0; j->what == PREFILL && c < COLS; c += cols) {
        a.pos = PAST + c;
        j->ops->attend(&a);
    }
}

static void *work(void *arg) {
    job *j = arg;
    void *scratch = memory(qk_attn_scratch(DIM));
    float *y = memory(qk_attn_queries(DIM) * DIM * sizeof *y);
    for (size_t h = j->first; h < j->heads; h += j->step) {
        if (j->what == READ)
            j->sum += read_bytes(j->mem + h * j->head_bytes, j->head_bytes);
        else
            attend(j, j->mem + h * j->head_bytes, y, scratch);
    }
    free(scratch);
    free(y);
    return NULL;
}

/* Seconds of the best of REPEATS runs over heads with n threads. */
static double timed(job proto, ck_task what, size_t heads, int n) {
    double best = 1e9;
    proto.what = what;
    proto.heads = heads;
    for (int rep = 0; rep < REPEATS; rep++) {
        pthread_t th[MAX_THREADS];
        job jobs[MAX_THREADS];
        const double start = now();
        for (int i = 0; i < n; i++) {
            jobs[i] = proto;
            jobs[i].first = (size_t)i;
            jobs[i].step = (size_t)n;
            if (i > 0 && pthread_create(&th[i], NULL, work, &jobs[i]) != 0) exit(1);
        }
        work(&jobs[0]);
        for (int i = 1; i < n; i++) pthread_join(th[i], NULL);
        const double took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

/* One generated head, copied to the others. */
static void fill(job *j, size_t heads) {
    float x[DIM];
    for (size_t p = 0; p < CTX; p++)
        for (int which = 0; which < 2; which++) {
            ck_fill_floats(x, DIM, CK_RANDOM);
            j->ops->store(j->mem + (size_t)which * j->head_bytes / 2, which, p, x, DIM);
        }
    for (size_t h = 1; h < heads; h++) memcpy(j->mem + h * j->head_bytes, j->mem, j->head_bytes);
    ck_fill_floats(j->q, qk_attn_queries(DIM) * DIM, CK_RANDOM);
}

static void bench_format(const qk_table *t, const char *name, int kv, int threads) {
    job j = { .ops = &t->kv[kv],
              .type = (qk_kv)kv,
              .head_bytes = 2 * qk_kv_tiles(CTX) * t->kv[kv].tile_bytes(DIM) };
    const size_t heads = ((size_t)MIB << 20) / j.head_bytes / MAX_THREADS * MAX_THREADS;
    const double gb = (double)(heads * j.head_bytes) * 1e-9;
    const double gfma = 2.0 * GROUP * DIM * COLS * (PAST + COLS / 2.0) * MAX_THREADS * 1e-9;
    j.mem = memory(heads * j.head_bytes);
    j.q = memory(qk_attn_queries(DIM) * DIM * sizeof *j.q);
    fill(&j, heads);
    for (int n = 1; n <= threads; n += threads > 1 ? threads - 1 : 1)
        printf("%-20s %2d threads  read %6.2f GB/s  decode %6.2f GB/s  prefill %7.2f GFMA/s\n", name, n,
               gb / timed(j, READ, heads, n), gb / timed(j, DECODE, heads, n),
               gfma / timed(j, PREFILL, MAX_THREADS, n));
    fflush(stdout);
    free(j.mem);
    free(j.q);
}

void ck_bench_kv(const qk_table *t, const char *only_function) {
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (int)cpus;
    for (int kv = 0; kv < QK_KV_N && t->level > QK_LEVEL_REF; kv++) {
        char name[32];
        snprintf(name, sizeof name, "kv_%s_%s", t->kv[kv].name, qk_level_name(t->level));
        if (!only_function || strstr(name, only_function)) bench_format(t, name, kv, threads);
    }
}
