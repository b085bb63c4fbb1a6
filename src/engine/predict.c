/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures how fast the disk reads pieces of the file and how fast the matrix kernels process some of its
 * rows. The slower of the two limits decoding. */
#include "src/engine/predict.h"

#include <string.h>

#include "src/base/clock.h"
#include "src/file/rows.h"
#include "src/plan/layout.h"
#include "src/plan/units.h"
#include "src/stream/interleave.h"

#define BUFFER_MAX      (8u << 20) /* buffer for the measurement; at most an eighth of the budget */
#define DISK_NS         200000000u
#define KERNEL_NS       40000000u /* for each of the most common weight types */
#define WAY_NS          1500000u  /* for each way of reading one of them, in each round */
#define WAY_ROUNDS      3u
#define WAY_GAIN        20u /* another way must be faster than the table's by a twentieth */
#define TYPES_MAX       3
#define KERNEL_MIN_ROWS 64u
#define WARMUP_ROWS     32u
#define CACHE_LINE      64u

/* ---- kernels ---- */

/* Bytes of one weight type in all units, and a unit and tensor that has many of them. */
typedef struct TypeShare {
    qk_type type;
    uint64_t bytes, largest;
    uint32_t unit;
    unsigned tensor;
} TypeShare;

static void add_share(TypeShare *all, const QsfUnit *u, unsigned t) {
    TypeShare *s = &all[u->type[t]];
    uint64_t bytes = u->rows[t] * u->row_bytes[t];
    s->type = u->type[t];
    s->bytes += bytes;
    if (bytes <= s->largest) return;
    s->largest = bytes;
    s->unit = u->index;
    s->tensor = t;
}

/* Finds the types with the most bytes, in descending order; returns how many. */
static unsigned main_types(const QsfModel *m, TypeShare *out) {
    TypeShare all[QK_TYPE_N] = { { 0 } };
    unsigned n = 0;
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        for (unsigned t = 0; t < u.n; t++) add_share(all, &u, t);
    }
    while (n < TYPES_MAX) {
        unsigned best = 0;
        for (unsigned t = 1; t < QK_TYPE_N; t++) {
            if (all[t].bytes > all[best].bytes) best = t;
        }
        if (all[best].bytes == 0) break;
        out[n++] = all[best];
        all[best].bytes = 0;
    }
    return n;
}

typedef struct Bench {
    const qk_weight_ops *ops;
    void (*matmul)(const qk_mm *m, size_t row0, size_t row1);
    qk_mm mm;
} Bench;

static void run_rows(void *arg, int worker, size_t begin, size_t end) {
    const Bench *b = arg;
    (void)worker;
    b->matmul(&b->mm, begin, end);
}

/* Evicts the rows from the CPU caches: a pass over a model finds its weights in memory, not in a cache. */
static void evict(const uint8_t *p, size_t n) {
#if defined(__x86_64__)
    for (size_t i = 0; i < n; i += CACHE_LINE) __builtin_ia32_clflush(p + i);
    __builtin_ia32_mfence();
#elif defined(__aarch64__)
    for (size_t i = 0; i < n; i += CACHE_LINE) __asm__ volatile("dc civac, %0" ::"r"(p + i) : "memory");
    __asm__ volatile("dsb ish" ::: "memory");
#else
    (void)p;
    (void)n;
#endif
}

static void run(Bench *b, QsfPool *pool, size_t n_rows) {
    if (pool != NULL)
        qsf_pool_run(pool, run_rows, b, n_rows, QSF_ROW_QUANTUM);
    else
        run_rows(b, 0, 0, n_rows);
}

typedef struct Times {
    uint64_t ns, shortest, rounds;
} Times;

/* Multiplies n_rows by one column, again and again for this long. */
static Times time_rows(Bench *b, QsfPool *pool, size_t n_rows, uint64_t long_ns) {
    Times t = { .shortest = UINT64_MAX };
    const uint64_t begun = qsf_now_ns();
    do {
        evict(b->mm.w, n_rows * b->mm.row_bytes);
        run(b, pool, WARMUP_ROWS); /* loads code and wakes threads before the measurement */
        const uint64_t t0 = qsf_now_ns();
        run(b, pool, n_rows);
        const uint64_t ns = qsf_now_ns() - t0;
        t.ns += ns;
        t.shortest = ns < t.shortest ? ns : t.shortest;
        t.rounds++;
    } while (qsf_now_ns() - begun < long_ns);
    return t;
}

/* Converts n rows, a multiple of 16, from the file's form to the pinned form; if that is interleaved, the
 * last tile is used as scratch. Returns the number of rows left. */
static uint64_t form_rows(Bench *b, const qk_table *t, qk_type type, bool x16, uint8_t *rows, uint64_t n) {
    uint8_t *scratch = rows + (n - QSF_ROW_QUANTUM) * b->mm.row_bytes;
    const bool interleaved = (qsf_interleaved_types(t) >> type & 1) != 0;
    b->matmul = interleaved ? b->ops->matmul16 : b->ops->matmul;
    if (x16 == interleaved) return n;
    for (uint8_t *at = rows; at < scratch; at += QSF_ROW_QUANTUM * b->mm.row_bytes)
        qsf_interleave_convert(b->ops, interleaved, at, b->mm.row_bytes, b->mm.k, scratch);
    return n - QSF_ROW_QUANTUM;
}

typedef struct Buffer {
    uint8_t *mem;
    uint64_t bytes;
} Buffer;

static uint64_t line(uint64_t bytes) { return (bytes + 63) & ~63ull; }

/* Prepares a product with rows of the model; returns how many, or 0 if the buffer is too small for
 * a measurement. The buffer holds, in order: the column in the kernel's format, the column as
 * floats, the results, the rows. */
static uint64_t prepare_type(Bench *bench, const TypeShare *s, const QsfModel *m, const qk_table *t,
                             const Buffer *buffer) {
    QsfUnit u;
    QsfErr err = { 0 };
    qsf_unit_at(m, s->unit, &u);
    const QsfTensor *w = u.tensor[s->tensor];
    Bench b = { .ops = &t->weight[s->type] };
    uint64_t act = line(qk_act_bytes(b.ops->act, u.k)), x = line(4ull * u.k), row = u.row_bytes[s->tensor];
    if (buffer->bytes < act + x + 64 + KERNEL_MIN_ROWS * (row + 4)) return 0;
    uint64_t n = (buffer->bytes - act - x - 64) / (row + 4);
    if (n > u.rows[s->tensor]) n = u.rows[s->tensor];
    n = n / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    if (n < WARMUP_ROWS + QSF_ROW_QUANTUM) return 0;
    uint8_t *rows = buffer->mem + act + x + line(4 * n);
    if (w->compressed != NULL)
        memset(rows, 0, (size_t)(n * row)); /* the time does not depend on the values */
    else if (m->src == NULL || qsf_source_read_bytes(m->src, w, u.offset[s->tensor] - w->offset, rows,
                                                     (size_t)(n * row), &err) != QSF_OK)
        return 0;
    float *col = (float *)(void *)(buffer->mem + act);
    for (uint32_t i = 0; i < u.k; i++) col[i] = (float)(i % 17) - 8;
    if (b.ops->act != QK_ACT_F32) t->quantize[b.ops->act](buffer->mem, col, u.k);
    b.mm = (qk_mm){ .w = rows,
                    .row_bytes = (size_t)row,
                    .x = b.ops->act == QK_ACT_F32 ? (const void *)col : buffer->mem,
                    .x_stride = (size_t)(b.ops->act == QK_ACT_F32 ? x : act),
                    .y = (float *)(void *)(buffer->mem + act + x),
                    .y_stride = (size_t)n,
                    .k = u.k,
                    .n_cols = 1,
                    .way = b.ops->way };
    n = form_rows(&b, t, s->type, u.x16[s->tensor], rows, n);
    *bench = b;
    return n;
}

static double measure_type(const TypeShare *s, const QsfModel *m, const qk_table *t, QsfPool *pool,
                           const Buffer *buffer) {
    Bench b;
    uint64_t n = prepare_type(&b, s, m, t, buffer);
    if (n == 0) return 0;
    const Times times = time_rows(&b, pool, (size_t)n, KERNEL_NS);
    return times.ns > 0 ? (double)(times.rounds * n * b.mm.row_bytes) * 1e9 / (double)times.ns : 0;
}

/* Estimates bytes per second over all weights from the most common types. */
static double measure_kernels(const QsfModel *m, const qk_table *t, QsfPool *pool, const Buffer *buffer) {
    TypeShare type[TYPES_MAX];
    unsigned n = main_types(m, type);
    double bytes = 0, seconds = 0;
    for (unsigned i = 0; i < n; i++) {
        double bps = measure_type(&type[i], m, t, pool, buffer);
        if (bps <= 0) continue;
        bytes += (double)type[i].bytes;
        seconds += (double)type[i].bytes / bps;
    }
    return seconds > 0 ? bytes / seconds : 0;
}

/* ---- ways of reading ---- */

static void measure_way(const TypeShare *s, const QsfModel *m, qk_table *t, QsfPool *pool,
                        const Buffer *buffer) {
    Bench b;
    uint64_t n = prepare_type(&b, s, m, t, buffer);
    const qk_way table = t->weight[s->type].way;
    uint64_t shortest[QK_WAY_N];
    unsigned wins[QK_WAY_N] = { 0 };
    if (n == 0 || (b.ops->matmul16 != NULL && b.matmul != b.ops->matmul16)) return;
    memset(shortest, 0xff, sizeof shortest);
    /* Other programs disturb some of the measurements, so a way must be the faster one in every round. */
    time_rows(&b, pool, (size_t)n, WAY_NS);
    for (unsigned round = 0; round < WAY_ROUNDS; round++) {
        uint64_t ns[QK_WAY_N];
        for (int i = 0; i < QK_WAY_N; i++) {
            b.mm.way = (qk_way)i;
            ns[i] = time_rows(&b, pool, (size_t)n, WAY_NS).shortest;
            if (ns[i] < shortest[i]) shortest[i] = ns[i];
        }
        for (int i = 0; i < QK_WAY_N; i++) wins[i] += ns[i] < ns[table] - ns[table] / WAY_GAIN;
    }
    qk_way best = table;
    for (int i = 0; i < QK_WAY_N; i++)
        if (wins[i] == WAY_ROUNDS && shortest[i] < shortest[best]) best = (qk_way)i;
    t->weight[s->type].way = best;
}

/* Maps the buffer for a measurement, before the weights are loaded; false if there is no memory. */
static bool open_buffer(Buffer *b, uint64_t budget, QsfLedger *ledger) {
    QsfErr err = { 0 };
    void *mem;
    b->bytes = budget / 8 < BUFFER_MAX ? budget / 8 / QSF_WINDOW * QSF_WINDOW : BUFFER_MAX;
    qsf_ledger_init(ledger, 0);
    if (qsf_mem_map(ledger, QSF_MEM_SLOTS, b->bytes, "measurement", &mem, &err) != QSF_OK) mem = NULL;
    b->mem = mem;
    return mem != NULL;
}

static void close_buffer(Buffer *b, QsfLedger *ledger) {
    if (b->mem != NULL) qsf_mem_unmap(ledger, QSF_MEM_SLOTS, b->mem, b->bytes);
    qsf_ledger_destroy(ledger);
}

void qsf_measure_ways(qk_table *t, const QsfPlan *p, const QsfModel *m, QsfPool *pool) {
    QsfLedger ledger;
    Buffer buffer;
    TypeShare type[TYPES_MAX];
    unsigned n = p->exact ? 0 : main_types(m, type);
    if (open_buffer(&buffer, p->budget, &ledger))
        for (unsigned i = 0; i < n; i++) measure_way(&type[i], m, t, pool, &buffer);
    close_buffer(&buffer, &ledger);
}

/* ---- prediction ---- */

static double measure_disk(const QsfPlan *p, const QsfModel *m, QsfLedger *ledger, const Buffer *buffer) {
    const QsfIoOptions o = { .src = m->src,
                             .config = p->stream,
                             .buffers = buffer->mem,
                             .buffer_bytes = buffer->bytes,
                             .ledger = ledger };
    return m->src != NULL ? qsf_io_measure(&o, DISK_NS) : 0;
}

void qsf_predict_from(QsfPrediction *out, uint64_t streamed_bytes, uint64_t weight_bytes, double disk_bps,
                      double compute_bps) {
    *out = (QsfPrediction){ .disk_bps = streamed_bytes > 0 ? disk_bps : 0, .compute_bps = compute_bps };
    if (streamed_bytes > 0) out->disk_tps = disk_bps / (double)streamed_bytes;
    if (weight_bytes > 0) out->compute_tps = compute_bps / (double)weight_bytes;
    bool disk_is_slower = streamed_bytes > 0 && out->disk_tps < out->compute_tps;
    out->tps = disk_is_slower ? out->disk_tps : out->compute_tps;
}

void qsf_predict(QsfPrediction *out, const QsfPlan *p, const QsfModel *m, const qk_table *t, QsfPool *pool) {
    QsfLedger ledger;
    Buffer buffer;
    double disk = 0, compute = 0;
    if (open_buffer(&buffer, p->budget, &ledger)) {
        if (p->streamed_bytes > 0) disk = measure_disk(p, m, &ledger, &buffer);
        if (!p->exact) compute = measure_kernels(m, t, pool, &buffer);
    }
    close_buffer(&buffer, &ledger);
    qsf_predict_from(out, p->disk_bytes, p->active_bytes, disk, compute);
}
