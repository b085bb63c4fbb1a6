/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures how fast this machine reads the weights without computing: the limit of decoding. */
#include <stdlib.h>
#include <string.h>

#include "src/forward/forward_impl.h"

#define PIECE  (2u << 20)   /* bytes per work item of a thread: long enough for several streams */
#define BLOCK  256u         /* bytes read from one stream before the next */
#define SAMPLE (1ull << 30) /* weights that are read; far more than any cache */
#define TRIAL  (128u << 20) /* bytes for choosing the method */
#define SHORT  (32u << 20)  /* less than this is read several times, so that a run takes milliseconds */
#define RUNS   5u           /* number of runs; the median counts */

/* A contiguous range of weights. */
typedef struct Run {
    const uint8_t *p;
    uint64_t bytes;
} Run;

/* How a thread reads its piece: the number of parallel streams and the prefetch distance in bytes. Kernels
 * also have several rows in flight; the fastest method depends on the machine. */
typedef struct Way {
    unsigned streams, ahead;
} Way;

static const Way ways[] = {
    { 1, 0 }, { 1, 1024 }, { 1, 4096 }, { 2, 0 }, { 2, 1024 }, { 2, 4096 },
    { 4, 0 }, { 4, 1024 }, { 4, 4096 }, { 8, 0 }, { 8, 1024 }, { 8, 4096 },
};
#define WAYS (sizeof ways / sizeof *ways)

typedef struct ReadJob {
    const Run *runs;
    Way way;
    uint64_t pieces;          /* of one pass over the runs */
    atomic_uint_fast64_t sum; /* so that the compiler does not remove the reads */
} ReadJob;

typedef uint64_t Vec __attribute__((vector_size(16)));

/* One vector at a time: an array of them is copied to the stack and read back, which halves the speed. */
static inline __attribute__((always_inline)) Vec load(const uint8_t *p) {
    Vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* streams is a constant where this is inlined: a loop that counts them is slower than the memory. */
static inline __attribute__((always_inline)) uint64_t read_streams(const uint8_t *p, size_t n, size_t streams,
                                                                   size_t ahead) {
    const size_t each = n / streams / BLOCK * BLOCK;
    Vec a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    for (size_t at = 0; at < each; at += BLOCK) {
        for (size_t s = 0; s < streams; s++) {
            const uint8_t *q = p + s * each + at;
            for (size_t i = 0; ahead > 0 && i < BLOCK; i += 64) __builtin_prefetch(q + ahead + i);
            for (size_t i = 0; i < BLOCK; i += 4 * sizeof(Vec)) {
                a += load(q + i);
                b += load(q + i + sizeof(Vec));
                c += load(q + i + 2 * sizeof(Vec));
                d += load(q + i + 3 * sizeof(Vec));
            }
        }
    }
    uint64_t rest = 0;
    for (size_t i = each * streams; i < n; i++) rest += p[i];
    a += b + c + d;
    return a[0] + a[1] + rest;
}

static uint64_t read_bytes(const uint8_t *p, size_t n, Way way) {
    switch (way.streams) {
    case 1: return read_streams(p, n, 1, way.ahead);
    case 2: return read_streams(p, n, 2, way.ahead);
    case 4: return read_streams(p, n, 4, way.ahead);
    default: return read_streams(p, n, 8, way.ahead);
    }
}

static uint64_t pieces_of(const Run *r) { return (r->bytes + PIECE - 1) / PIECE; }

static void read_piece(ReadJob *j, uint64_t piece) {
    size_t i = 0;
    while (piece >= pieces_of(&j->runs[i])) piece -= pieces_of(&j->runs[i++]);
    uint64_t at = piece * PIECE, left = j->runs[i].bytes - at;
    qsf_count(&j->sum, read_bytes(j->runs[i].p + at, (size_t)(left < PIECE ? left : PIECE), j->way));
}

static void read_pieces(void *arg, int worker, size_t begin, size_t end) {
    (void)worker;
    ReadJob *j = arg;
    for (size_t i = begin; i < end; i++) read_piece(j, i % j->pieces);
}

/* Finds the ranges of all weights; 0 when not all are in RAM. runs has an entry for every tensor of every
 * unit. */
static size_t find_runs(QsfForward *f, Run *runs) {
    uint32_t n_units = qsf_weights_n_units(f->weights);
    QsfErr err = { 0 };
    size_t n = 0;
    for (uint32_t u = 0; u < n_units; u++)
        if (!qsf_weights_pinned(f->weights, u)) return 0;
    if (qsf_weights_begin_pass(f->weights, true, &err)) return 0;
    bool ok = true;
    for (uint32_t u = 0; ok && u < n_units; u++) {
        const QsfUnit *unit = qsf_weights_unit(f->weights, u);
        QsfWeightView v;
        ok = qsf_weights_acquire(f->weights, u, 0, &v, &err) == QSF_OK;
        if (!ok) break;
        for (unsigned i = 0; i < v.n_parts; i++)
            runs[n++] = (Run){ v.rows[i],
                               (v.part[i].row1 - v.part[i].row0) * unit->row_bytes[v.part[i].tensor] };
        ok = v.item1 == unit->items; /* fully pinned units come in one view */
        qsf_weights_release(f->weights, &v);
    }
    qsf_weights_end_pass(f->weights, ok);
    return ok ? n : 0;
}

/* Reads the first runs, at least `bytes` bytes if there are that many; returns bytes per second. */
static double read_once(QsfForward *f, const Run *runs, size_t n, uint64_t bytes, Way way) {
    ReadJob j = { .runs = runs, .way = way };
    uint64_t done = 0;
    size_t used = 0;
    while (used < n && (used == 0 || done < bytes)) {
        j.pieces += pieces_of(&runs[used]);
        done += runs[used++].bytes;
    }
    uint64_t passes = done < SHORT ? SHORT / done : 1;
    uint64_t t0 = qsf_now_ns();
    qsf_pool_run(f->pool, read_pieces, &j, (size_t)(j.pieces * passes), 1);
    uint64_t took = qsf_now_ns() - t0;
    return took > 0 ? (double)(done * passes) * 1e9 / (double)took : 0;
}

static Way fastest_way(QsfForward *f, const Run *runs, size_t n) {
    double best = 0;
    size_t way = 0;
    for (size_t i = 0; i < 2 * WAYS && !qsf_cancelled(f); i++) {
        double speed = read_once(f, runs, n, TRIAL, ways[i % WAYS]);
        if (speed <= best) continue;
        best = speed;
        way = i % WAYS;
    }
    return ways[way];
}

static int compare_speeds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_speed(QsfForward *f, const Run *runs, size_t n) {
    double speed[RUNS] = { 0 };
    Way way = fastest_way(f, runs, n);
    for (size_t i = 0; i < RUNS && !qsf_cancelled(f); i++) speed[i] = read_once(f, runs, n, SAMPLE, way);
    qsort(speed, RUNS, sizeof *speed, compare_speeds);
    return speed[RUNS / 2];
}

double qsf_forward_read_speed(QsfForward *f) {
    uint64_t room = qsf_pages((uint64_t)qsf_weights_n_units(f->weights) * QSF_UNIT_TENSORS * sizeof(Run));
    QsfErr err = { 0 };
    void *mem;
    if (qsf_mem_map(f->ledger, QSF_MEM_META, room, "list of weights", &mem, &err)) return 0;
    size_t n = find_runs(f, mem);
    double speed = n > 0 ? median_speed(f, mem, n) : 0;
    qsf_mem_unmap(f->ledger, QSF_MEM_META, mem, room);
    return speed;
}
