/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast this machine reads the weights when it does nothing else with them: the limit of decoding. */
#include <string.h>

#include "src/forward/state.h"

#define PIECE (256u << 10)

/* Weights side by side. */
typedef struct Run {
    const uint8_t *p;
    uint64_t bytes;
} Run;

typedef struct ReadJob {
    const Run *runs;
    size_t n;
    unsigned streams, ahead;      /* places read in turn, bytes between a prefetch and its load */
    atomic_uint_fast64_t sum;     /* so that the reads are not left out */
} ReadJob;

typedef uint64_t Vec __attribute__((vector_size(16)));

static uint64_t read_bytes(const uint8_t *p, size_t n, unsigned streams, unsigned ahead) {
    size_t each = n / streams / 64 * 64;
    Vec sum[4] = {{0}};
    for (size_t at = 0; at < each; at += 64) {
        for (unsigned s = 0; s < streams; s++) {
            const uint8_t *q = p + s * each + at;
            Vec v[4];
            if (ahead > 0) __builtin_prefetch(q + ahead);
            memcpy(v, q, sizeof v);
            for (unsigned i = 0; i < 4; i++) sum[i] += v[i];
        }
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    return sum[0][0] + sum[0][1];
}

static void read_piece(ReadJob *j, uint64_t at) {
    size_t i = 0;
    while (at >= (j->runs[i].bytes + PIECE - 1) / PIECE * PIECE) at -= (j->runs[i++].bytes + PIECE - 1) / PIECE * PIECE;
    uint64_t left = j->runs[i].bytes - at;
    qsf_count(&j->sum, read_bytes(j->runs[i].p + at, (size_t)(left < PIECE ? left : PIECE), j->streams, j->ahead));
}

static void read_pieces(void *arg, int worker, size_t begin, size_t end) {
    (void)worker;
    for (size_t i = begin; i < end; i++) read_piece(arg, (uint64_t)i * PIECE);
}

/* Where the weights are, or 0 when not all are in RAM. runs has room for every tensor of every unit. */
static size_t find_runs(QsfForward *f, Run *runs) {
    uint32_t n_units = qsf_weights_n_units(f->weights);
    QsfErr err = {0};
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
            runs[n++] = (Run){v.rows[i], (v.part[i].row1 - v.part[i].row0) * unit->row_bytes[v.part[i].tensor]};
        ok = v.item1 == unit->items; /* what is settled comes in one view */
        qsf_weights_release(f->weights, &v);
    }
    qsf_weights_end_pass(f->weights, ok);
    return ok ? n : 0;
}

static double fastest(QsfForward *f, const Run *runs, size_t n) {
    static const unsigned ways[][2] = {{1, 0}, {1, 2048}, {4, 1024}, {4, 2048}};
    uint64_t bytes = 0, pieces = 0, best = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        bytes += runs[i].bytes;
        pieces += (runs[i].bytes + PIECE - 1) / PIECE;
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        ReadJob j = {.runs = runs, .n = n, .streams = ways[w][0], .ahead = ways[w][1]};
        uint64_t t0 = qsf_now_ns();
        qsf_pool_run(f->pool, read_pieces, &j, (size_t)pieces, 1);
        uint64_t took = qsf_now_ns() - t0;
        if (took < best) best = took;
    }
    return best > 0 ? (double)bytes * 1e9 / (double)best : 0;
}

double qsf_forward_read_speed(QsfForward *f) {
    uint64_t room = qsf_pages((uint64_t)qsf_weights_n_units(f->weights) * QSF_UNIT_TENSORS * sizeof(Run));
    QsfErr err = {0};
    void *mem;
    if (qsf_mem_map(f->ledger, QSF_MEM_META, room, "list of weights", &mem, &err)) return 0;
    size_t n = find_runs(f, mem);
    double speed = n > 0 ? fastest(f, mem, n) : 0;
    qsf_mem_unmap(f->ledger, QSF_MEM_META, mem, room);
    return speed;
}
