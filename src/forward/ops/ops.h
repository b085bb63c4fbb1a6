/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The operations of steps: each computes the columns [f->col0, f->col0 + f->n_cols) of a pass. Where they can
 * fail: QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
#ifndef QSF_FORWARD_OPS_OPS_H
#define QSF_FORWARD_OPS_OPS_H

#include "src/forward/forward_impl.h"

/* embed.c: unmaps the parts that are not in the plan (NULL = everything) / maps the missing
 * parts that are. */
void qsf_embed_close(QsfForward *f, const QsfPlan *p);
int qsf_embed_open(QsfForward *f, const QsfPlan *p, QsfErr *err);
/* Reads on at the resident table, at most about max_bytes. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_embed_fill(QsfForward *f, uint64_t max_bytes, QsfErr *err);
/* Checks that the file is what was opened, before the first read of a pass; the weights check it themselves
 * only while they read. QSF_E_RUNTIME. */
int qsf_embed_check_file(QsfForward *f, QsfErr *err);
/* Rows of ids[0..n) into the residual stream. */
int qsf_embed_rows(QsfForward *f, const int32_t *ids, uint32_t n, QsfErr *err);
/* Reads the rows of the pass's tokens from QsfProgram.token_table. */
int qsf_token_rows(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Adds the rows of the pass's positions of QsfProgram.position_table. */
int qsf_position_rows(QsfForward *f, const QsfStep *s, QsfErr *err);

/* columns.c: a column step on columns [c0, c1), by one thread. */
void qsf_column_step(const QsfForward *f, const QsfStep *s, size_t c0, size_t c1);

/* y = norm(x), n elements of each. */
void qsf_norm(const QsfForward *f, const QsfNormStep *p, const float *x, float *y, size_t n);
/* y *= a parameter, as GAIN. */
void qsf_gain(const QsfForward *f, uint32_t param, float *y, size_t n);

/* y = act(y) * up, element by element; up NULL: only act. */
void qsf_act(const qk_table *t, const QsfActStep *a, float *y, const float *up, size_t n);
/* Returns the function of a kind without constants; NULL for NONE and kinds with constants. */
typedef void (*QsfActFn)(float *y, const float *up, size_t n);
QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind);
/* Returns the name of the kernel that computes a kind, and its place in qk_table; NULL: there is none. */
const char *qsf_act_kernel(QsfActKind kind, size_t *at);

/* experts.c: chooses the experts of column c. */
void qsf_route(const QsfForward *f, const QsfStep *s, size_t c);
/* The same from logits (n_expert); choice (2, n_used): ids in ascending order, and their weights. */
void qsf_route_logits(const QsfForward *f, const QsfRouteStep *r, const float *logits, float *choice);

/* A multiplication by the matrices of a unit. Strides are floats. */
typedef struct QsfProduct {
    const float *x; /* (n_cols), n_cols > 0 */
    size_t x_stride;
    size_t act0;                /* the same columns, quantized, begin at this column of f->act */
    float *y[QSF_UNIT_TENSORS]; /* (n_cols), of matrix i; columns begin at multiples of 16 floats */
    size_t y_stride[QSF_UNIT_TENSORS];
    const float *bias[QSF_UNIT_TENSORS]; /* NULL = none */
    const uint32_t *chosen;              /* (n_cols) columns of the pass that they are; NULL: from act0 on */
    uint32_t n_cols;
    QsfActStep act; /* then y[0] = act(y[0]) * y[1], or act(y[0]) */
} QsfProduct;
/* linear.c: computes it with all threads, waiting for weights. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_multiply(QsfForward *f, uint32_t unit, const QsfProduct *p, QsfErr *err);
/* Returns the kinds of activations, one bit each, that the matrices of a unit need: none for floats. */
unsigned qsf_unit_acts(const QsfForward *f, const QsfUnit *u);

/* linear.c: shows the input of a step's matrices to the tap, if there is one; k: elements of a
 * matrix's input. */
void qsf_linear_show(const QsfForward *f, const QsfStep *s, uint32_t k);

/* experts.c */
int qsf_experts(QsfForward *f, const QsfStep *s, QsfErr *err);
/* foresee.c: begins to read what the next block with experts will probably choose, when a block has requested
 * its own and not computed them; s is its step, whose scratch memory is used. */
int qsf_foresee(QsfForward *f, const QsfStep *s, QsfErr *err);

/* linear.c: quantizes column c of the input of a linear step for the kinds of activations in `acts`. */
void qsf_linear_quantize(const QsfForward *f, const QsfStep *s, unsigned acts, size_t c);
/* Returns the kinds of activations, one bit each, that the matrices of the step need and that f->act does not
 * hold yet. */
unsigned qsf_linear_acts(const QsfForward *f, const QsfStep *s);
/* Does f->act hold the step's input, for the kinds in f->acts? */
bool qsf_linear_is_quantized(const QsfForward *f, const QsfStep *s);
/* A linear step for all columns of the pass. QSF_E_RUNTIME, QSF_E_MODEL: reading failed;
 * QSF_E_INTERRUPTED. */
int qsf_linear(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Multiplies interleaved tiles first, then plain rows; the first `interleaved` rows of mm are interleaved. lo
 * is a multiple of 16. A padded last tile is multiplied whole: the columns of y are multiples of 16 floats
 * apart, and the padding after a column's end is not read. */
void qsf_multiply_rows(const qk_weight_ops *ops, const qk_mm *mm, size_t interleaved, size_t lo, size_t hi);
/* The same, also for exact floats, in calls that end in some tens of milliseconds; returns between two of
 * them, with the rest not computed, when the pass is cancelled. */
void qsf_multiply_stoppable(const QsfForward *f, const qk_weight_ops *ops, const qk_mm *mm,
                            size_t interleaved, size_t lo, size_t hi, int worker);
/* Adds the weight types of u to those that were multiplied (types_used of counters.h). */
void qsf_linear_note_types(QsfForward *f, const QsfUnit *u);

/* The same with a matrix for each head. */
int qsf_head_linear(QsfForward *f, const QsfStep *s, QsfErr *err);

/* attention.c: before the steps of a pass, the angles of its n_cols positions for all tables of rotations. */
void qsf_rope_angles(QsfForward *f, uint32_t n_cols);
/* Attends over what the caches hold. Errors as qsf_linear. */
int qsf_attention(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Most queries of a call of the kernels, when `heads` heads for each KV head of n_cols columns are
 * divided into calls: all that a call can have, or where V is K as many as are fastest. spans: how many
 * can be calls of their own, or 1. */
uint32_t qsf_attention_queries(const QsfForward *f, const QsfKvSpec *kv, uint32_t heads, uint32_t n_cols,
                               double spans);

/* sparse.c: an indexer, and attention over what it chose. Errors as qsf_linear. */
int qsf_index(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_sparse_attention(QsfForward *f, const QsfStep *s, QsfErr *err);

/* linear_attention.c: continue states by a delta rule, and as RWKV. Errors as qsf_linear. */
int qsf_delta(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_wkv(QsfForward *f, const QsfStep *s, QsfErr *err);
/* Adds to the result of column c what its own key and value contribute. */
void qsf_wkv_bonus(const QsfForward *f, const QsfStep *s, size_t c);

/* scan.c: the column before, a convolution over the last columns, the scan of Mamba. Errors as qsf_linear. */
int qsf_shift(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_conv(QsfForward *f, const QsfStep *s, QsfErr *err);
int qsf_scan(QsfForward *f, const QsfStep *s, QsfErr *err);

#endif
