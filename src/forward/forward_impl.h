/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the forward pass share. Everything here belongs to the thread that evaluates,
 * except the counters. */
#ifndef QSF_FORWARD_FORWARD_IMPL_H
#define QSF_FORWARD_FORWARD_IMPL_H

#include "src/base/clock.h"
#include "src/forward/forward.h"
#include "src/forward/ops/rowcache.h"
#include "src/forward/recurrent.h"
#include "src/forward/reduction.h"
#include "src/forward/sketch.h"
#include "src/kv/cache.h"
#include "src/plan/layout.h"
#include "src/stream/weights.h"

/* Of one layer, or the head. Written by replans, read by any thread. */
typedef struct QsfLayerBytes {
    atomic_uint_fast64_t weight, pinned;
} QsfLayerBytes;

typedef struct QsfCounters {
    QsfStreamCounters io; /* io.layer: META */
    QsfLayerBytes *bytes; /* (n_layers + 1); io.layer points to them */
    uint64_t layer_bytes; /* of the mapping that holds both */
    atomic_uint_fast64_t embed_hits, embed_misses;
    atomic_uint_fast64_t matmul_ns[QSF_MATMUL_N], attention_ns, prep_ns, sync_ns; /* as in QsfForwardStats */
    atomic_uint_fast64_t compute_ns, passes, prefill_tokens, decode_tokens, exited_tokens, prefill_ns,
        decode_ns;
    atomic_uint_fast32_t layer, chunk_done, chunk_total;
    atomic_uint_fast64_t work;                            /* as in QsfForwardStats */
    atomic_uint_fast64_t evictions, evicted, reliefs;     /* positions; as in QsfForwardStats */
    atomic_uint_fast32_t missing, n_protected, converted; /* as in QsfForwardStats */
    atomic_uint_fast64_t head_sketched, head_rows;        /* as in QsfForwardStats */
    atomic_uint_fast64_t streamed, lent;                  /* as in QsfForwardStats */
    atomic_uint_fast64_t types_used;                      /* bit t = weight type t was multiplied */
} QsfCounters;

/* Small tensors as floats, in the order of the program's parameters. */
typedef struct QsfParams {
    float *mem;
    uint64_t bytes;
} QsfParams;

struct QsfForward {
    const QsfModel *model;
    const qk_table *table;
    QsfPool *pool;
    QsfLedger *ledger;
    const atomic_int *cancel;
    bool exact;

    QsfWeights *weights;
    QsfParams params;
    QsfKvCache kv;
    QsfRecurrent recurrent;
    QsfReduction reduction;
    QsfSketch sketch;
    QsfEvict evict;
    bool no_lending;      /* memory is short: nothing is lent */
    uint32_t most_tiles;  /* memory is short: no cache may have more; 0 = no such limit */
    uint32_t shrink_to;   /* the same, when the policy has observed enough; 0 = nothing to do */
    uint32_t shrink_from; /* position at which it has */
    uint32_t wanted_ctx;  /* of the plan */
    uint32_t kv_step; /* of the plan: positions that the KV cache is charged for at a time; 0: all at once */
    bool broken;      /* a replan failed: nothing may be computed until one succeeds */
    QsfErr broken_why;
    atomic_bool stale; /* the file of the embedding has changed since it was opened */

    uint8_t *embed; /* resident table, EMBED; NULL = rows: pinned head, cache or file */
    uint64_t embed_bytes;
    uint32_t embed_filled; /* its rows [0, n) are in memory */
    QsfRowCache rows;

    QsfShape shape;
    QsfLayout l;
    uint8_t *mem;           /* l.total */
    float *cols;            /* the program's buffers */
    float *spare;           /* room for logits while the head is computed (l.spare_floats) */
    uint8_t *act[QK_ACT_N]; /* (n_cols) activation columns */
    QsfSlice act_of;        /* slice whose columns act holds; buf QSF_NONE = none */
    unsigned acts;          /* bit a: act[a] holds them */
    float *cs;              /* per rope table (n_cols, n_rot / 2) pairs cos, sin */
    float *parts;           /* (n_heads, spans of ctx) parts of the attention of one column */
    float *exact_row;       /* (threads, max_k) */
    uint32_t *chosen;       /* (n_cols) columns that chose an expert */
    uint8_t *row;           /* one quantized row of the embedding or of another table */
    const float *ones;      /* the widest buffer of ones: norms without weights */
    float *logits;          /* (n_vocab), LOGITS */
    uint64_t logits_bytes;

    /* The pass that is running. */
    uint32_t rope_ctx;     /* context for which the keys in the cache were rotated */
    const int32_t *ids;    /* (n_cols) tokens */
    uint32_t past;         /* position of column 0 */
    uint32_t observe_from; /* the policy uses the weights of queries at and after this position */
    uint32_t col0, n_cols; /* columns that steps compute */
    uint32_t pass_cols;    /* columns of the pass; the head may compute fewer. 0: none is running */
    uint64_t work_before;  /* n.work when it began */
    float *y;              /* QSF_BUF_LOGITS: column col0 */
    uint32_t block;        /* its time is being counted; QSF_NONE = none */
    uint64_t block_ns, block_wait_ns;

    QsfTapFn tap; /* NULL = none */
    void *tap_arg;
    QsfProfile *profile; /* NULL = steps are not timed */

    QsfCounters n;
};

/* params.c: reads and dequantizes all small tensors. Errors as qsf_forward_create. */
int qsf_params_load(QsfForward *f, QsfErr *err);
/* A QsfLayerSeen (weights.h), arg being the forward pass: those of a compressed layer. */
void qsf_params_of_layer(void *arg, uint32_t layer, const uint8_t *whole);
void qsf_params_free(QsfForward *f);
/* Returns the elements of a parameter; NULL for QSF_NONE. */
static inline const float *qsf_param(const QsfForward *f, uint32_t param) {
    return param == QSF_NONE ? NULL : f->params.mem + f->model->prog.param[param].at;
}

/* QSF_E_RUNTIME after a replan that failed. */
static inline int qsf_forward_usable(const QsfForward *f, QsfErr *err) {
    if (!f->broken) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "the memory plan could not be changed: %s", f->broken_why.msg);
}

/* buffers.c: gives the scratch memory the sizes of l; its contents are lost. On failure (QSF_E_BUDGET,
 * QSF_E_RUNTIME) everything is as before. */
void qsf_buffers_layout(const QsfForward *f, const QsfPlan *p, QsfLayout *l);
int qsf_buffers_set(QsfForward *f, const QsfLayout *l, QsfErr *err);

/* embed.c: unmaps the parts that are not in the plan (NULL = everything) / maps the missing
 * parts that are. */
void qsf_embed_close(QsfForward *f, const QsfPlan *p);
int qsf_embed_open(QsfForward *f, const QsfPlan *p, QsfErr *err);
/* Reads on at the resident table, at most about max_bytes. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_embed_fill(QsfForward *f, uint64_t max_bytes, QsfErr *err);
/* Checks that the file is what was opened, before the first read of a pass; the weights check it themselves only
 * while they read. QSF_E_RUNTIME. */
int qsf_embed_check_file(QsfForward *f, QsfErr *err);
/* Rows of ids[0..n) into the residual stream. */
int qsf_embed_rows(QsfForward *f, const int32_t *ids, uint32_t n, QsfErr *err);

/* reserve.c: memory that the KV cache does not need yet holds weights. Bytes for the weights while the cache is charged for
 * n of ctx positions of these types. */
uint64_t qsf_reserve_lent(const QsfForward *f, uint32_t ctx, QsfKvTypes types, uint32_t n);
/* Between passes: makes sure that positions [0, n), n <= ctx, are charged, in whole steps; weights give up what that takes.
 * Also while the ledger is frozen. QSF_E_BUDGET (a bug). */
int qsf_reserve_positions(QsfForward *f, uint32_t n, QsfErr *err);
/* If most of the charged memory is not needed for n more positions, it is lent to weights. */
void qsf_reserve_trim(QsfForward *f, uint32_t n);
/* Between passes: forbids lending memory to weights, or allows it again. Returns the bytes
 * that were given back. */
uint64_t qsf_reserve_forbid(QsfForward *f, bool forbid);

/* stats.c: the counters of layers; qsf_counters_pins: after a change of what is pinned. */
int qsf_counters_open(QsfForward *f, QsfErr *err);
void qsf_counters_close(QsfForward *f);
void qsf_counters_pins(QsfForward *f);

/* Returns the slice of column c. */
static inline float *qsf_col(const QsfForward *f, QsfSlice s, size_t c) {
    if (s.buf == QSF_BUF_LOGITS) return f->y + (c - f->col0) * qsf_pad16(f->model->hp.n_vocab) + s.off;
    const QsfBuffer *b = &f->model->prog.buf[s.buf];
    return f->cols + b->off * f->l.n_cols + c * b->stride + s.off;
}
static inline uint32_t qsf_col_stride(const QsfForward *f, QsfSlice s) {
    return s.buf == QSF_BUF_LOGITS ? qsf_pad16(f->model->hp.n_vocab) : f->model->prog.buf[s.buf].stride;
}

/* token_rows.c: reads the rows of the pass's tokens from QsfProgram.token_table. */
int qsf_token_rows(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Adds the rows of the pass's positions of QsfProgram.position_table. */
int qsf_position_rows(QsfForward *f, const QsfStep *s, QsfErr *err);

/* steps.c: runs steps [first, last) on columns [f->col0, f->col0 + f->n_cols). */
int qsf_steps_run(QsfForward *f, uint32_t first, uint32_t last, QsfErr *err);
/* Ends the time of the block that is being counted. */
void qsf_steps_end_block(QsfForward *f);
/* A pass over n columns succeeded: counts them as work. */
void qsf_steps_end_pass(QsfForward *f, uint32_t n);

/* columns.c: a column step on columns [c0, c1), by one thread. */
void qsf_column_step(const QsfForward *f, const QsfStep *s, size_t c0, size_t c1);

/* acts.c: y = act(y) * up, element by element; up NULL: only act. */
void qsf_act(const qk_table *t, const QsfActStep *a, float *y, const float *up, size_t n);
/* Returns the function of a kind without constants; NULL for NONE and kinds with constants. */
typedef void (*QsfActFn)(float *y, const float *up, size_t n);
QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind);
/* Returns the name of the kernel that computes a kind, and its place in qk_table; NULL: there is none. */
const char *qsf_act_kernel(QsfActKind kind, size_t *at);

/* route.c: chooses the experts of column c. */
void qsf_route(const QsfForward *f, const QsfStep *s, size_t c);

/* A multiplication by the matrices of a unit. Strides are floats. */
typedef struct QsfProduct {
    const float *x; /* (n_cols), n_cols > 0 */
    size_t x_stride;
    size_t act0;                /* the same columns, quantized, begin at this column of f->act */
    float *y[QSF_UNIT_TENSORS]; /* (n_cols), of matrix i; columns begin at multiples of 16 floats */
    size_t y_stride[QSF_UNIT_TENSORS];
    const float *bias[QSF_UNIT_TENSORS]; /* NULL = none */
    uint32_t n_cols;
    QsfActStep act; /* then y[0] = act(y[0]) * y[1], or act(y[0]) */
} QsfProduct;
/* linear.c: computes it with all threads, waiting for weights. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_multiply(QsfForward *f, uint32_t unit, const QsfProduct *p, QsfErr *err);
/* Returns the kinds of activations, one bit each, that the matrices of a unit need: none for floats. */
unsigned qsf_unit_acts(const QsfForward *f, const QsfUnit *u);

/* linear.c: shows the input of a step's matrices to the tap, if there is one; k: elements of a matrix's input. */
void qsf_linear_show(const QsfForward *f, const QsfStep *s, uint32_t k);

/* experts.c */
int qsf_experts(QsfForward *f, const QsfStep *s, QsfErr *err);

/* linear.c: quantizes column c of the input of a linear step for the kinds of activations in `acts`. */
void qsf_linear_quantize(const QsfForward *f, const QsfStep *s, unsigned acts, size_t c);
/* Returns the kinds of activations, one bit each, that the matrices of the step need and that f->act does not
 * hold yet. */
unsigned qsf_linear_acts(const QsfForward *f, const QsfStep *s);
/* Does f->act hold the step's input, for the kinds in f->acts? */
bool qsf_linear_is_quantized(const QsfForward *f, const QsfStep *s);
int qsf_linear(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Rows that threads take at a time to multiply with n_cols columns. */
size_t qsf_row_grain(size_t n_cols);
/* Multiplies interleaved tiles first, then plain rows; the first `interleaved` rows of mm are interleaved. lo is a multiple of 16. A
 * padded last tile is multiplied whole: the columns of y are multiples of 16 floats apart, and the padding after a
 * column's end is not read. */
void qsf_multiply_rows(const qk_weight_ops *ops, const qk_mm *mm, size_t interleaved, size_t lo, size_t hi);
/* The same, also for exact floats, in calls that end in some tens of milliseconds; returns between two of them, with the rest
 * not computed, when the pass is cancelled. */
void qsf_multiply_stoppable(const QsfForward *f, const qk_weight_ops *ops, const qk_mm *mm,
                            size_t interleaved, size_t lo, size_t hi, int worker);
void qsf_linear_note_types(QsfForward *f, const QsfUnit *u);

/* head_linear.c */
int qsf_head_linear(QsfForward *f, const QsfStep *s, QsfErr *err);

/* attention.c */
void qsf_rope_angles(QsfForward *f, uint32_t n_cols);
int qsf_attention(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Most queries of a call of the kernels, when `heads` heads for each KV head of n_cols columns are divided into calls: all that
 * a call can have, or where V is K as many as are fastest. spans: how many can be calls of their own, or 1. */
uint32_t qsf_attention_queries(const QsfForward *f, const QsfKvSpec *kv, uint32_t heads, uint32_t n_cols,
                               double spans);

/* kv_room.c: how many positions can be stored without an eviction. */
uint32_t qsf_evicting_room(const QsfForward *f);
/* The same; if there is no room, the policy evicts first. n: positions still to be evaluated; prompt: there were several. */
uint32_t qsf_evicting_make_room(QsfForward *f, size_t n, bool prompt);
/* A prompt was evaluated. */
void qsf_evicting_prompt_done(QsfForward *f);
/* Counts what is missing, after an eviction or a truncation, and notes whether the cache was converted. */
void qsf_evicting_note(QsfForward *f);
/* kv_gaps.c: after an eviction, before n more positions are evaluated: in caches whose oldest position would be farther from the
 * last of them than the model was trained for, rotates the keys so that what is kept is seen without gaps. */
void qsf_gaps_close(QsfForward *f, uint32_t n);
#define QSF_EVICT_POSITIONS (1u << 30) /* most positions of a conversation */

/* index.c: an indexer; sparse.c: attention over what it chose. */
int qsf_index(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_sparse_attention(QsfForward *f, const QsfStep *s, QsfErr *err);

/* shift.c, delta.c, wkv.c */
int qsf_shift(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_delta(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_wkv(QsfForward *f, const QsfStep *s, QsfErr *err);
void qsf_wkv_bonus(const QsfForward *f, const QsfStep *s, size_t c);

/* conv.c, scan.c */
int qsf_conv(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_scan(QsfForward *f, const QsfStep *s, QsfErr *err);

/* streams.c: column steps of models with several residual streams. */
void qsf_column_matvec(const QsfForward *f, const QsfStep *s, size_t c);
void qsf_column_sparse(const QsfForward *f, const QsfStep *s, size_t c);
void qsf_column_match(const QsfForward *f, const QsfStep *s, size_t c);
void qsf_column_predict(const QsfForward *f, const QsfStep *s, size_t c);
void qsf_column_blend(const QsfForward *f, const QsfStep *s, size_t c);
void qsf_column_correct(const QsfForward *f, const QsfStep *s, size_t c);

/* head.c: logits of column n_cols - 1 into f->logits, or of all columns to `all` and the last also there. */
int qsf_head(QsfForward *f, uint32_t n_cols, QsfLogitsFn all, void *arg, QsfErr *err);
/* Maximum number of columns whose logits can be computed in one pass over the head. */
uint32_t qsf_head_cols(const QsfForward *f);

static inline void qsf_count(atomic_uint_fast64_t *a, uint64_t v) {
    atomic_fetch_add_explicit(a, v, memory_order_relaxed);
}
static inline uint64_t qsf_counted(const atomic_uint_fast64_t *a) {
    return atomic_load_explicit(a, memory_order_relaxed);
}

/* A stretch of computing, split into what the evaluating thread did and its waiting for the others. */
typedef struct QsfSpan {
    uint64_t begun_ns, waited_ns;
} QsfSpan;
static inline QsfSpan qsf_span_begin(const QsfForward *f) {
    return (QsfSpan){ qsf_now_ns(), qsf_pool_waited_ns(f->pool) };
}
static inline void qsf_span_end(QsfForward *f, const QsfSpan *s, atomic_uint_fast64_t *counter) {
    uint64_t waited = qsf_pool_waited_ns(f->pool) - s->waited_ns;
    qsf_count(counter, qsf_now_ns() - s->begun_ns - waited);
    qsf_count(&f->n.sync_ns, waited);
}

/* Time of one step, if there is a profile: begun, and waited for weights until then. */
typedef struct QsfStepClock {
    uint64_t begun_ns, waited_ns;
} QsfStepClock;
static inline QsfStepClock qsf_step_begin(const QsfForward *f) {
    if (f->profile == NULL) return (QsfStepClock){ 0, 0 };
    return (QsfStepClock){ qsf_now_ns(), qsf_counted(&f->n.io.wait_ns) };
}
/* t: NULL without a profile. */
static inline void qsf_step_end(const QsfForward *f, const QsfStepClock *c, QsfStepTime *t) {
    if (t == NULL) return;
    const uint64_t ns = qsf_now_ns() - c->begun_ns, waited = qsf_counted(&f->n.io.wait_ns) - c->waited_ns;
    t->calls++;
    t->positions += f->n_cols;
    t->ns += ns > waited ? ns - waited : 0;
}

/* Jobs look at it between two pieces of work and leave out the rest: what they computed may not be used then, as an index
 * either. */
static inline bool qsf_cancelled(const QsfForward *f) {
    return f->cancel != NULL && atomic_load_explicit(f->cancel, memory_order_relaxed) != 0;
}

#endif
