/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the forward pass share. Everything here belongs to the thread that evaluates,
 * except the counters. */
#ifndef QSF_FORWARD_STATE_H
#define QSF_FORWARD_STATE_H

#include "src/base/clock.h"
#include "src/forward/forward.h"
#include "src/forward/kvcache.h"
#include "src/forward/rowcache.h"
#include "src/plan/layout.h"
#include "src/stream/weights.h"

/* Of one layer, or the head. Written by replans, read by any thread. */
typedef struct QsfLayerBytes {
    atomic_uint_fast64_t weight, pinned;
} QsfLayerBytes;

typedef struct QsfCounters {
    QsfStreamCounters io; /* io.layer: META */
    QsfLayerBytes *bytes; /* (n_layers + 1), behind io.layer */
    uint64_t layer_bytes; /* of the mapping that holds both */
    atomic_uint_fast64_t embed_hits, embed_misses;
    atomic_uint_fast64_t matmul_ns[QSF_GROUP_N], attention_ns, prep_ns, sync_ns; /* as in QsfForwardStats */
    atomic_uint_fast64_t compute_ns, passes, prefill_tokens, decode_tokens, prefill_ns, decode_ns;
    atomic_uint_fast32_t layer, chunk_done, chunk_total;
    atomic_uint_fast64_t types_used; /* bit t = weight type t was multiplied */
} QsfCounters;

/* Norms, biases and frequencies as floats. */
typedef struct QsfParams {
    float *mem;
    uint64_t bytes;
    const float **layer; /* (n_layers, QSF_ROLE_LAYER_N), NULL = the model has none; META */
    uint64_t layer_bytes;
    const float *global[QSF_ROLE_N - QSF_ROLE_LAYER_N];
    double *freq; /* (n_rot / 2) radians per position, in mem */
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
    bool broken; /* a replan failed: nothing may be computed until one succeeds */
    QsfErr broken_why;
    atomic_bool stale; /* the file of the embedding is not what was opened any more */

    uint8_t *embed; /* resident table, EMBED; NULL = rows: pinned head, cache or file */
    uint64_t embed_bytes;
    uint32_t embed_filled; /* its rows [0, n) are there */
    QsfRowCache rows;

    QsfShape shape;
    QsfLayout l;
    uint8_t *mem;           /* l.total */
    float *x, *xn;          /* (n_cols, hidden) at stride l.x_stride */
    float *q, *k, *v;       /* in work: (n_cols, n_heads, head_dim), (n_cols, n_kv_heads, head_dim) twice */
    float *gate, *up;       /* in work, after attention: (n_cols, ffn) */
    float *spare;           /* work as room for logits (l.work_floats) */
    uint8_t *act[QK_ACT_N]; /* (n_cols) activation columns */
    float *cs;              /* (n_cols, n_rot / 2) pairs cos, sin */
    float *parts;           /* (n_heads, spans of ctx) what attention leaves of one column */
    float *exact_row;       /* (threads, max_k) */
    uint8_t *row;           /* one packed embedding row */
    float *logits;          /* (n_vocab), LOGITS */
    uint64_t logits_bytes;

    QsfTapFn tap; /* NULL: nobody watches */
    void *tap_arg;
    uint32_t left_out; /* layer, or QSF_LAYER_NONE */

    QsfCounters n;
};

/* params.c: reads and dequantizes all small tensors. Errors as qsf_forward_create. */
int qsf_params_load(QsfForward *f, QsfErr *err);
/* A QsfLayerSeen (weights.h), arg being the forward pass: those of a compressed layer. */
void qsf_params_of_layer(void *arg, uint32_t layer, const uint8_t *whole);
void qsf_params_free(QsfForward *f);
static inline const float *qsf_param(const QsfForward *f, QsfRole role, uint32_t layer) {
    if (role >= QSF_ROLE_LAYER_N) return f->params.global[role - QSF_ROLE_LAYER_N];
    return f->params.layer[(size_t)layer * QSF_ROLE_LAYER_N + role];
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

/* embed.c: drops what the plan does not hold (NULL = everything) / maps what it holds and is not there. */
void qsf_embed_close(QsfForward *f, const QsfPlan *p);
int qsf_embed_open(QsfForward *f, const QsfPlan *p, QsfErr *err);
/* Reads on at the resident table, at most about max_bytes. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_embed_fill(QsfForward *f, uint64_t max_bytes, QsfErr *err);
/* Rows of ids[0..n) into f->x. */
int qsf_embed_rows(QsfForward *f, const int32_t *ids, uint32_t n, QsfErr *err);

/* stats.c: the counters of layers. */
int qsf_counters_open(QsfForward *f, QsfErr *err);
void qsf_counters_close(QsfForward *f);
void qsf_counters_plan(QsfForward *f, const QsfPlan *p);

/* project.c: what goes into the matrices of one unit. Columns [col0, col0 + n_cols) of src. */
typedef struct QsfPrep {
    uint32_t unit;
    uint32_t col0, n_cols;
    bool residual; /* first x += xn (the output of the unit before) */
    QsfRole norm;  /* then xn = norm(x): its weight's role, the bias is next; QSF_ROLE_N = none */
    uint32_t layer;
    const float *src; /* float columns at src_stride, to be quantized: xn when normed */
    uint32_t src_stride;
} QsfPrep;
void qsf_prep(QsfForward *f, const QsfPrep *p);

/* Multiplies the columns that qsf_prep made with all matrices of the unit. */
typedef struct QsfProject {
    const QsfPrep *in;
    float *y[QSF_UNIT_TENSORS]; /* outputs, column 0 = col0; in the order of the unit's tensors */
    uint32_t y_stride[QSF_UNIT_TENSORS];
    /* On the outputs: y[0] = act(y[0]) * y[1]; NULL = none. */
    void (*act)(float *gate, const float *up, size_t n);
} QsfProject;
int qsf_project(QsfForward *f, const QsfProject *p, QsfErr *err);

/* attention.c: columns are positions past .. past + n_cols. */
void qsf_rope_angles(QsfForward *f, uint32_t past, uint32_t n_cols);
void qsf_attention(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols);

/* layer.c: one transformer block on f->x; leaves its last output in f->xn, to be added by the next. */
int qsf_layer(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols, QsfErr *err);

/* head.c: logits of column n_cols - 1 into f->logits, or of all columns to `all` and the last also there. */
int qsf_head(QsfForward *f, uint32_t past, uint32_t n_cols, QsfLogitsFn all, void *arg, QsfErr *err);
/* Most columns whose logits can be made in one pass over the head. */
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

static inline bool qsf_cancelled(const QsfForward *f) {
    return f->cancel != NULL && atomic_load_explicit(f->cancel, memory_order_relaxed) != 0;
}

#endif
