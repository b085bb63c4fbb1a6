/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks the steps of a program. Column steps that follow each other are one job: each thread takes some
 * columns through all of them, and also quantizes the columns for the matrices that come next. */
#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

/* ---- time by block ---- */

void qsf_steps_end_block(QsfForward *f) {
    if (f->block == QSF_NONE) return;
    QsfLayerCounters *c = &f->n.io.layer[f->block];
    uint64_t ns = qsf_now_ns() - f->block_ns, waited = qsf_counted(&c->wait_ns) - f->block_wait_ns;
    const uint32_t block = f->block;
    f->block = QSF_NONE;
    if (ns <= waited) return; /* the counters may have been reset since */
    qsf_count(&c->compute_ns, ns - waited);
    qsf_count(&f->n.compute_ns, ns - waited);
    qsf_threads_end_block(f, block, ns - waited);
}

/* How far the pass is. Steps outside of one, after an early exit, do not count. */
static void note_work(QsfForward *f, uint32_t step) {
    atomic_store_explicit(&f->n.work, f->work_before + (uint64_t)f->pass_cols * step, memory_order_relaxed);
}

void qsf_steps_end_pass(QsfForward *f, uint32_t n) {
    f->work_before += (uint64_t)n * f->model->prog.n_steps;
    f->pass_cols = 0;
    note_work(f, 0);
}

static void begin_block(QsfForward *f, uint32_t block) {
    if (f->block == block) return;
    qsf_steps_end_block(f);
    f->block = block;
    f->block_ns = qsf_now_ns();
    f->block_wait_ns = qsf_counted(&f->n.io.layer[block].wait_ns);
    atomic_store_explicit(&f->n.layer, block, memory_order_relaxed);
}

/* ---- a run of column steps ---- */

typedef struct ColumnsJob {
    const QsfForward *f;
    uint32_t first, last;  /* steps */
    const QsfStep *linear; /* the columns are quantized for it; NULL = none */
    unsigned acts;
    uint32_t tile0; /* with stores into a KV cache, items are tiles of it: position of the first one */
    bool tiles;
} ColumnsJob;

static void through_steps(const ColumnsJob *j, size_t c0, size_t c1) {
    const QsfForward *f = j->f;
    if (qsf_cancelled(f)) return;
    for (uint32_t i = j->first; i < j->last; i++) qsf_column_step(f, &f->model->prog.step[i], c0, c1);
    for (size_t c = c0; j->acts != 0 && c < c1; c++) qsf_linear_quantize(f, j->linear, j->acts, c);
}

static void run_columns(void *arg, int worker, size_t begin, size_t end) {
    const ColumnsJob *j = arg;
    const size_t first = j->f->col0, past = j->f->past;
    (void)worker;
    if (!j->tiles) {
        for (size_t c = begin; c < end; c++) through_steps(j, first + c, first + c + 1);
        return;
    }
    /* Positions of one tile share cache lines. */
    size_t from = j->tile0 + begin * QK_KV_TILE, to = j->tile0 + end * QK_KV_TILE;
    size_t c0 = from > past + first ? from - past : first, c1 = to - past;
    if (c1 > first + j->f->n_cols) c1 = first + j->f->n_cols;
    through_steps(j, c0, c1);
}

/* Runs column steps [first, last) as one job, which also quantizes columns for step `next` (NULL = none). */
static void run_job(QsfForward *f, uint32_t first, uint32_t last, const QsfStep *next, unsigned acts) {
    ColumnsJob j = { .f = f, .first = first, .last = last, .linear = next, .acts = acts };
    for (uint32_t i = first; i < last; i++) j.tiles |= f->model->prog.step[i].op == QSF_OP_KV_STORE;
    size_t items = f->n_cols;
    if (j.tiles) {
        j.tile0 = (f->past + f->col0) / QK_KV_TILE * QK_KV_TILE;
        items = ((f->past + f->col0) % QK_KV_TILE + (size_t)f->n_cols + QK_KV_TILE - 1) / QK_KV_TILE;
    }
    qsf_pool_run(f->pool, run_columns, &j, items, 1);
}

/* The same, each step and each kind of activations by itself. */
static void run_timed(QsfForward *f, uint32_t first, uint32_t last, const QsfStep *next, unsigned acts) {
    for (uint32_t i = first; i < last; i++) {
        const QsfStepClock clock = qsf_step_begin(f);
        run_job(f, i, i + 1, NULL, 0);
        qsf_step_end(f, &clock, &f->profile->step[i]);
    }
    for (unsigned a = 0; a < QK_ACT_N; a++) {
        if (!(acts >> a & 1)) continue;
        const QsfStepClock clock = qsf_step_begin(f);
        run_job(f, last, last, next, 1u << a);
        qsf_step_end(f, &clock, &f->profile->quantize[a]);
    }
}

/* Runs column steps [first, last), and prepares the input of step `next`. */
static void columns(QsfForward *f, uint32_t first, uint32_t last, const QsfStep *next) {
    const bool linear = next != NULL && next->op == QSF_OP_LINEAR;
    for (uint32_t i = first; i < last; i++)
        if (f->model->prog.step[i].out[0].buf == f->act_of.buf) f->act_of.buf = QSF_NONE;
    const unsigned acts = linear ? qsf_linear_acts(f, next) : 0;
    if (first == last && acts == 0) return;
    QsfSpan span = qsf_span_begin(f);
    if (f->profile != NULL)
        run_timed(f, first, last, linear ? next : NULL, acts);
    else
        run_job(f, first, last, linear ? next : NULL, acts);
    qsf_span_end(f, &span, next != NULL && next->op == QSF_OP_ATTENTION ? &f->n.attention_ns : &f->n.prep_ns);
    if (linear) {
        f->acts = qsf_linear_is_quantized(f, next) ? f->acts | acts : acts;
        f->act_of = next->in;
    }
}

/* ---- steps over all columns ---- */

static void forget_acts(QsfForward *f, const QsfStep *s) {
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++)
        if (s->out[i].buf == f->act_of.buf) f->act_of.buf = QSF_NONE;
}

static int (*const whole[QSF_OP_N])(QsfForward *f, const QsfStep *s, QsfErr *err) = {
    [QSF_OP_LINEAR] = qsf_linear,
    [QSF_OP_ATTENTION] = qsf_attention,
    [QSF_OP_EXPERTS] = qsf_experts,
    [QSF_OP_CONV] = qsf_conv,
    [QSF_OP_SCAN1] = qsf_scan,
    [QSF_OP_SCAN2] = qsf_scan,
    [QSF_OP_INDEX] = qsf_index,
    [QSF_OP_SHIFT] = qsf_shift,
    [QSF_OP_DELTA] = qsf_delta,
    [QSF_OP_WKV] = qsf_wkv,
    [QSF_OP_HEAD_LINEAR] = qsf_head_linear,
    [QSF_OP_TOKEN_ROWS] = qsf_token_rows,
    [QSF_OP_POSITION] = qsf_position_rows,
};

static int whole_step(QsfForward *f, const QsfStep *s, QsfErr *err) {
    qsf_replay_keep(f, s);
    const QsfStepClock clock = qsf_step_begin(f);
    int rc = whole[s->op](f, s, err);
    qsf_step_end(f, &clock, f->profile != NULL ? &f->profile->step[s - f->model->prog.step] : NULL);
    forget_acts(f, s);
    return rc;
}

/* Waits for the parameters of the blocks of steps [first, last], if they come with compressed layers. */
static int wait_blocks(QsfForward *f, uint32_t first, uint32_t last, QsfErr *err) {
    const QsfProgram *p = &f->model->prog;
    int rc = QSF_OK;
    for (uint32_t i = first; rc == QSF_OK && i <= last && i < p->n_steps; i++)
        if (p->step[i].block < p->n_blocks && (i == first || p->step[i].block != p->step[i - 1].block))
            rc = qsf_weights_wait_layer(f->weights, p->step[i].block, err);
    return rc;
}

/* ---- all steps ---- */

/* Is something observed where a block begins, and does one begin with step i? */
static bool is_border(const QsfForward *f, uint32_t i) {
    const QsfStep *s = f->model->prog.step;
    const bool seen = f->tap != NULL || f->reduction.measures;
    return (seen && (i == 0 || s[i].block != s[i - 1].block)) || qsf_adapters_control_at(f, i);
}

/* The tap may change what steps read. */
static void show_border(QsfForward *f, uint32_t i) {
    if (qsf_adapters_control_at(f, i)) qsf_adapters_add_control(f, i);
    if (f->reduction.measures) qsf_reduction_border(f, i);
    if (f->tap == NULL) return;
    const QsfTapData t = { .step = i, .expert = QSF_NONE, .pos = f->past + f->col0, .n_cols = f->n_cols };
    f->tap(f->tap_arg, &t);
    f->act_of.buf = QSF_NONE;
}

/* Returns the end of the column steps that begin with step i and run as one job. */
static uint32_t job_end(const QsfForward *f, uint32_t i, uint32_t last) {
    uint32_t next = i;
    while (next < last && qsf_op_is_column(f->model->prog.step[next].op) &&
           (next == i || (!is_border(f, next) && !qsf_reduction_skips(f, next))))
        next++;
    return next;
}

static int stopped(const QsfForward *f, QsfErr *err) {
    return qsf_cancelled(f) ? qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted") : QSF_OK;
}

int qsf_steps_run(QsfForward *f, uint32_t first, uint32_t last, QsfErr *err) {
    const QsfProgram *p = &f->model->prog;
    f->act_of.buf = QSF_NONE;
    for (uint32_t i = first; i < last;) {
        if (qsf_reduction_skips(f, i)) {
            i++;
            continue;
        }
        const uint32_t next = job_end(f, i, last);
        const bool joins = next < last && !qsf_op_is_column(p->step[next].op) &&
                           (next == i || (!is_border(f, next) && !qsf_reduction_skips(f, next)));
        const QsfStep *s = joins ? &p->step[next] : NULL;
        if (is_border(f, i)) show_border(f, i);
        note_work(f, i);
        begin_block(f, s != NULL ? s->block : p->step[next - 1].block);
        int rc = stopped(f, err);
        if (rc == QSF_OK) rc = wait_blocks(f, i, s != NULL ? next : next - 1, err);
        if (rc != QSF_OK) return rc;
        qsf_weights_poll(f->weights);
        columns(f, i, next, s);
        rc = stopped(f, err); /* the columns may be incomplete */
        if (rc == QSF_OK && s != NULL) rc = whole_step(f, s, err);
        if (rc != QSF_OK) return rc;
        i = s != NULL ? next + 1 : next;
    }
    return stopped(f, err);
}
