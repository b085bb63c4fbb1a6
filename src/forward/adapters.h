/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adapters in memory, and what they add to products and to the residual stream: internals of src/forward.
 * The base product is not touched: the threads that compute its rows compute the ranks A x first, and add B
 * times them to the rows, adapter after adapter. An element depends on its row, its column and the level
 * only, as in any product. */
#ifndef QSF_FORWARD_ADAPTERS_H
#define QSF_FORWARD_ADAPTERS_H

#include "src/base/pool.h"
#include "src/forward/forward.h"
#include "src/model/adapter.h"
#include "src/model/optional.h"

struct QsfProduct;

typedef struct QsfAdapters {
    const QsfAdapterSet *set; /* that is in memory; NULL = none */
    uint8_t *mem;             /* weights, control vectors, factors; PINNED */
    uint64_t bytes;
    float *control; /* (n_blocks, hidden) added to what a block leaves; NULL = none */
    float *factor;  /* (n_pairs) of B (A x) */
    float *scales;  /* (n_pairs, 2) that a and b are multiplied by in memory */
    bool streams;   /* one block at a time is in memory: */
    uint32_t held;  /* this one; QSF_NONE = none */
    float *ranks;   /* (n_cols, set->rank_floats) A x; ACTIVATIONS */
    float *parts;   /* after them: (tasks, QSF_ADAPTER_FEW_COLS, QSF_ADAPTER_GROUP) */
    uint64_t rank_bytes;
    QsfBlockSet controlled;          /* blocks with a control vector */
    uint32_t from[QSF_ADAPTERS_MAX]; /* positions from which on each adapter acts */
    const QsfAdapterSet *kept;       /* whose `from` is kept while nothing is in memory; NULL = none */
} QsfAdapters;

/* Frees what the plan does not have (NULL: everything) / reads what it has. QSF_E_MODEL for values that are
 * not finite, QSF_E_BUDGET, QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
void qsf_adapters_free(QsfForward *f, const QsfPlan *p);
int qsf_adapters_load(QsfForward *f, const QsfPlan *p, QsfErr *err);

/* Writes which adapter or control vector may be the reason for invalid numbers, the one with the largest
 * scale, for the end of a message; "" without a set. */
void qsf_adapters_suspect(const QsfAdapterSet *set, char *dst, size_t cap);
/* After positions were taken back: what acted on none of those that are left has not acted. */
void qsf_adapters_truncated(QsfForward *f);
/* Returns a number for the adapters, their scales and where they act; 0: none acts. */
uint64_t qsf_adapters_key(const QsfForward *f);
/* Does a unit have adapters? */
static inline bool qsf_adapters_have(const QsfAdapters *a, uint32_t unit) {
    return a->set != NULL && a->set->first[unit] < a->set->first[unit + 1];
}
/* Reads the weights of a block, if they are not in memory. QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_adapters_hold(QsfForward *f, uint32_t block, QsfErr *err);
/* The product of a unit with adapters, while it is computed. The threads of its job compute ranks first,
 * those that are left, then rows of the base, which need no ranks, then B times the ranks. */
typedef struct QsfAdapted {
    QsfGate gate; /* its tasks are ranks */
    const QsfForward *f;
    const struct QsfProduct *p;
    const QsfAdapterUse *use, *end; /* of the unit */
    bool in_parts;
} QsfAdapted;

/* Before the job: holds the weights of the unit, which has adapters. Errors of qsf_adapters_hold. */
int qsf_adapters_begin(QsfAdapted *a, QsfForward *f, uint32_t unit, const struct QsfProduct *p, QsfErr *err);
/* A thread of the job, before rows: computes the ranks that are left. */
void qsf_adapters_ranks(QsfAdapted *a);
/* Adds what adapters add to rows [row0 + lo, row0 + hi) of matrix `tensor` of the unit, for all columns of
 * the product, when all ranks have been computed; y: row0 of its first column. A thread of the job. */
void qsf_adapters_rows(QsfAdapted *a, unsigned tensor, float *y, size_t row0, size_t lo, size_t hi);
/* Adds to x, the row of a token in the embedding table, at position pos. */
void qsf_adapters_embed(const QsfForward *f, uint32_t id, uint32_t pos, float *x);
/* Is something added when step i begins, where a block ends? Adds it to the columns of the running steps. */
bool qsf_adapters_control_at(const QsfForward *f, uint32_t step);
void qsf_adapters_add_control(QsfForward *f, uint32_t step);

#endif
