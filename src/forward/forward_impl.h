/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the forward pass share: its state, and how a pass walks the steps. Everything here
 * belongs to the thread that evaluates, except the counters. What steps compute is in ops/ops.h, the room in
 * the KV caches in kv_room.h. */
#ifndef QSF_FORWARD_FORWARD_IMPL_H
#define QSF_FORWARD_FORWARD_IMPL_H

#include "src/base/clock.h"
#include "src/forward/adapters.h"
#include "src/forward/counters.h"
#include "src/forward/forward.h"
#include "src/forward/ops/rowcache.h"
#include "src/forward/quality_impl.h"
#include "src/forward/recurrent.h"
#include "src/forward/routes.h"
#include "src/forward/sketch.h"
#include "src/forward/threads.h"
#include "src/kv/cache.h"
#include "src/plan/layout.h"
#include "src/stream/weights.h"

/* Small tensors as floats, in the order of the program's parameters. */
typedef struct QsfParams {
    float *mem;
    uint64_t bytes;
} QsfParams;

/* Drafts with the blocks that are held in RAM (pinned.c). */
typedef struct QsfPinnedDrafts {
    bool on;          /* the plan holds some */
    QsfBlockSet skip; /* the others */
    uint8_t *state;   /* (state_bytes) the states before a draft, KV; NULL: there are none */
    uint64_t state_bytes;
} QsfPinnedDrafts;

struct QsfForward {
    const QsfModel *model;
    const qk_table *table;
    QsfPool *pool;
    QsfLedger *ledger;
    QsfForward *lender; /* NULL = none */
    const atomic_int *cancel;
    bool exact;

    QsfWeights *weights;
    QsfParams params;
    QsfKvCache kv;
    QsfRecurrent recurrent;
    QsfReduction reduction;
    QsfSketch sketch;
    QsfAdapters adapters;
    uint32_t stale_from;   /* positions from which on others were in use; UINT32_MAX = none */
    uint32_t invoked_from; /* the first position that an aLoRA in use acts on; UINT32_MAX = none */
    QsfEvict evict;
    bool no_lending;      /* memory is short: nothing is lent */
    uint32_t most_tiles;  /* memory is short: no cache may have more; 0 = no such limit */
    uint32_t shrink_to;   /* the same, when the policy has observed enough; 0 = nothing to do */
    uint32_t shrink_from; /* position at which it has */
    uint32_t wanted_ctx;  /* of the plan */
    double expert_hits;   /* of the plan */
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
    bool marks;            /* copies of states are only where qsf_forward_mark wants them */
    bool keeps;            /* what states are made of is kept (replay.c) */
    uint64_t kept;         /* floats of a column that are */
    uint32_t block;        /* its time is being counted; QSF_NONE = none */
    uint64_t block_ns, block_wait_ns;

    QsfPinnedDrafts pinned;
    QsfStatesFn states; /* NULL = none */
    void *states_arg;
    const QsfGiven *given; /* of the eval that is running; NULL = none */
    uint32_t given_pos;    /* position of its first state */
    bool fills;            /* passes end where everything is stored */

    QsfRoutes *routes; /* records choices of experts; NULL = none */
    QsfTapFn tap;      /* NULL = none */
    void *tap_arg;
    QsfProfile *profile; /* NULL = steps are not timed */

    QsfThreads threads;
    QsfCounters n;
};

/* Returns the elements of a parameter; NULL for QSF_NONE. */
static inline const float *qsf_param(const QsfForward *f, uint32_t param) {
    return param == QSF_NONE ? NULL : f->params.mem + f->model->prog.param[param].at;
}

/* QSF_E_RUNTIME after a replan that failed. */
static inline int qsf_forward_usable(const QsfForward *f, QsfErr *err) {
    if (!f->broken) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "the memory plan could not be changed: %s", f->broken_why.msg);
}

/* Does the step write elements of `to`, whose buffer is not QSF_NONE? */
static inline bool qsf_step_writes(const QsfStep *s, QsfSlice to) {
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++) {
        const QsfSlice out = s->out[i];
        if (out.buf == to.buf && out.off < to.off + to.width && to.off < out.off + out.width) return true;
    }
    return false;
}

/* Returns the slice of column c. */
static inline float *qsf_col(const QsfForward *f, QsfSlice s, size_t c) {
    if (s.buf == QSF_BUF_LOGITS) return f->y + (c - f->col0) * qsf_pad16(f->model->hp.n_vocab) + s.off;
    const QsfBuffer *b = &f->model->prog.buf[s.buf];
    return f->cols + b->off * f->l.n_cols + c * b->stride + s.off;
}
static inline uint32_t qsf_col_stride(const QsfForward *f, QsfSlice s) {
    return s.buf == QSF_BUF_LOGITS ? qsf_pad16(f->model->hp.n_vocab) : f->model->prog.buf[s.buf].stride;
}

/* steps.c: runs steps [first, last) on columns [f->col0, f->col0 + f->n_cols). */
int qsf_steps_run(QsfForward *f, uint32_t first, uint32_t last, QsfErr *err);
/* Ends the time of the block that is being counted. */
void qsf_steps_end_block(QsfForward *f);
/* A pass over n columns succeeded: counts them as work. */
void qsf_steps_end_pass(QsfForward *f, uint32_t n);

/* Who receives logits. */
typedef struct QsfLogitsTo {
    QsfLogitsFn all;    /* of all columns; NULL = none */
    QsfVerifyFn verify; /* of columns until it returns false; NULL = none */
    void *arg;
    uint32_t n; /* columns that it has received */
} QsfLogitsTo;

/* Logits of column n_cols - 1 into f->logits, or of all columns to `to` and the last one also there. */
int qsf_head(QsfForward *f, uint32_t n_cols, QsfLogitsTo *to, QsfErr *err);

/* ---- replay.c: states after some of the columns of a pass ---- */

/* A pass whose last columns may be taken back begins, or one that has no such columns. */
void qsf_replay_begin(QsfForward *f, bool keeps);
/* Before step s of that pass: keeps what its state is made of. */
void qsf_replay_keep(QsfForward *f, const QsfStep *s);
/* Before the commit: the new states become those after the first n >= 1 columns. */
int qsf_replay(QsfForward *f, uint32_t n, QsfErr *err);

/* pinned.c: gives up / takes over what the plan holds for drafts (NULL: nothing). QSF_E_BUDGET,
 * QSF_E_RUNTIME. */
void qsf_pinned_close(QsfForward *f);
int qsf_pinned_open(QsfForward *f, const QsfPlan *p, QsfErr *err);

/* hidden_states.c: returns the first step that computes only columns whose logits are needed. */
static inline uint32_t qsf_split_step(const QsfForward *f) {
    return f->states != NULL ? f->model->prog.done_step : f->model->prog.head_step;
}
/* The steps up to there have run for n columns: shows their states. */
void qsf_states_show(QsfForward *f, uint32_t n);
/* Positions n and later are not what they were. */
void qsf_states_gone(const QsfForward *f, uint32_t n);
/* The columns of a pass begin: puts the states that are given into their buffer. */
void qsf_states_take(const QsfForward *f, uint32_t n);
/* Returns where a pass ends that only stores: before all steps that read streamed weights in order, if not
 * all weights of the block are pinned, there is no such place but the head. */
uint32_t qsf_fill_end(const QsfForward *f);

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

/* Jobs look at it between two pieces of work and leave out the rest: what they computed may not be
 * used then, as an index either. */
static inline bool qsf_cancelled(const QsfForward *f) {
    return f->cancel != NULL && atomic_load_explicit(f->cancel, memory_order_relaxed) != 0;
}

#endif
