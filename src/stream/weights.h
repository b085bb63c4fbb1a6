/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All weights of the units, wherever they are: pinned in RAM, still on their way there, or streamed through
 * slots. The forward pass walks each unit view by view, in the same way wherever it is. One consumer; the
 * loader thread reads behind it. */
#ifndef QSF_STREAM_WEIGHTS_H
#define QSF_STREAM_WEIGHTS_H

#include <stdatomic.h>

#include "src/plan/plan.h"
#include "src/plan/units.h"
#include "src/stream/io.h"

/* Counters of one layer (index n_layers: the head). Written by the loader and its consumer, read by any
 * thread. */
typedef struct QsfLayerCounters {
    atomic_uint_fast64_t read_bytes;                 /* streamed */
    atomic_uint_fast64_t wait_ns;                    /* the consumer waited for these */
    atomic_uint_fast64_t compute_ns;                 /* the forward pass's */
    atomic_uint_fast64_t expert_uses, expert_misses; /* as below */
    atomic_uint_fast64_t experts_in;                 /* in slots: complete; not reset */
} QsfLayerCounters;

/* The same for all layers together. */
typedef struct QsfStreamCounters {
    atomic_uint_fast64_t bytes_read; /* streamed weights, and embedding rows from the file */
    atomic_uint_fast64_t read_ns;    /* time in which at least one read was in flight */
    atomic_uint_fast64_t wait_ns;    /* un-hidden: the consumer had to wait */
    /* Experts that a router chose for one position alone, and those of them that had to be read. */
    atomic_uint_fast64_t expert_uses, expert_misses;
    /* Of the uses, about the last 256 positions: those that about (i + 1) / QSF_EXPERT_DEPTHS of all experts
     * in memory, but not fewer, would have found there (expert_record.c). */
    atomic_uint_fast64_t expert_depth[QSF_EXPERT_DEPTHS];
    atomic_uint_fast64_t expert_reads; /* into slots: of matrices, or whole experts (expert_span.h) */
    atomic_uint_fast64_t expert_slots; /* there are now; not reset */
    /* Bytes of experts that were read before they were chosen, also in bytes_read: in all, of those that were
     * then chosen, and of those that were given up before that. */
    atomic_uint_fast64_t ahead_read, ahead_used, ahead_wasted;
    atomic_uint_fast64_t pin_read;            /* bytes read to be pinned */
    atomic_uint_fast64_t pin_done, pin_total; /* bytes of weights in place, and planned */
    QsfLayerCounters *layer;                  /* (n_layers + 1) */
} QsfStreamCounters;

typedef struct QsfWeights QsfWeights;

/* A compressed layer is in memory for the first time, checked, at `whole`, where its tensors have their
 * offsets. Called once for each, on the loader's thread, before the layer can be used. */
typedef void (*QsfLayerSeen)(void *arg, uint32_t layer, const uint8_t *whole);

typedef struct QsfWeightsOptions {
    const QsfModel *model;
    const QsfPlan *plan; /* read during the call only */
    /* has the functions that interleave rows; must outlive the weights; NULL: neither here nor in the file
     * are they interleaved */
    const qk_table *table;
    uint64_t interleaved_types; /* bit t: rows of weight type t are multiplied in groups (interleave.h) */
    uint64_t lent;              /* as in qsf_weights_lend */
    QsfLedger *ledger;
    const atomic_int *cancel; /* may be NULL */
    QsfStreamCounters *counters;
    QsfLayerSeen on_layer; /* NULL allowed; outlives the weights, as its argument does */
    void *on_layer_arg;
} QsfWeightsOptions;

/* Maps memory and starts the loader, which begins to read what is to be pinned; returns at once.
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_weights_create(QsfWeights **out, const QsfWeightsOptions *o, QsfErr *err);
void qsf_weights_destroy(QsfWeights *w); /* NULL allowed */

/* Between passes: other pinned items, slots or back end. What is pinned under both plans stays where it
 * is; what is no longer pinned is returned to the kernel at once; what is newly pinned is read behind
 * the computation. Two steps, so that a caller can free before it allocates: park stops the loader and
 * frees slots and surplus pinned rows; resume maps the rest and starts the loader again. After a failed
 * resume the weights cannot be used until a resume succeeds. lent: as in qsf_weights_lend, the same for
 * both. */
void qsf_weights_park(QsfWeights *w, const QsfPlan *p, uint64_t lent);
int qsf_weights_resume(QsfWeights *w, const QsfPlan *p, uint64_t lent, QsfErr *err);

/* Between passes: pins rows in the order of the plan's list beyond what it pins, in at most `lent`
 * bytes (kv_lend.h). With less than before, it cannot fail, memory is returned to the kernel at once,
 * and the ledger may be frozen. With more, rows are read during the computation; QSF_E_BUDGET,
 * QSF_E_RUNTIME: some of them are not pinned. Returns at once if nothing changes; otherwise the slots
 * that were read ahead are dropped. */
int qsf_weights_lend(QsfWeights *w, uint64_t lent, QsfErr *err);
/* Returns n: items [0, n) of unit i are, or will be, in RAM. */
uint32_t qsf_weights_items(const QsfWeights *w, uint32_t i);

/* Between passes: sets the blocks that the next passes skip; NULL: none. Their streamed weights are not
 * read. If that changes the list of streamed weights, the slots that were read ahead are dropped. */
void qsf_weights_skip(QsfWeights *w, const QsfBlockSet *blocks);

/* Waits until all that is planned to be pinned is there (benchmarks, tests). progress may be NULL.
 * QSF_E_RUNTIME when a read failed, QSF_E_INTERRUPTED when cancelled. */
int qsf_weights_settle(QsfWeights *w, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err);

/* Returns the number of units, and unit i, owned by w. */
uint32_t qsf_weights_n_units(const QsfWeights *w);
const QsfUnit *qsf_weights_unit(const QsfWeights *w, uint32_t i);
/* Whether all of unit i is, or will be, in RAM. */
bool qsf_weights_pinned(const QsfWeights *w, uint32_t i);
/* Whether row `row` of tensor t of unit i is in RAM now. */
bool qsf_weights_has_row(const QsfWeights *w, uint32_t i, unsigned t, uint32_t row);
/* That row as it lies in the file, in place or in buf, which has room for it; NULL when it is not in
 * RAM. */
const uint8_t *qsf_weights_pinned_row(const QsfWeights *w, uint32_t i, unsigned t, uint32_t row,
                                      uint8_t *buf);

/* Some items of a unit, ready to be multiplied. */
typedef struct QsfWeightView {
    uint32_t unit, item0, item1;
    unsigned n_parts;
    QsfPart part[QSF_UNIT_TENSORS];        /* tensor, row0, row1 are valid */
    const uint8_t *rows[QSF_UNIT_TENSORS]; /* of part i: its row0 */
    /* of part i: the first rows, this many, are in groups of 16 (interleave.h); more than the part has
     * if its last group is padded */
    uint32_t interleaved[QSF_UNIT_TENSORS];
    bool streamed, on_demand;
} QsfWeightView;

/* A pass over n positions begins, for the age of what experts were used for. */
void qsf_weights_positions(QsfWeights *w, uint32_t n);
/* In a pass, of a layer whose router has chosen: a position chose the expert whose first unit is `unit`,
 * and `later` positions of the pass come after it. */
void qsf_weights_use_expert(QsfWeights *w, uint32_t unit, uint32_t later);
/* The same, of the first position of a pass whose others may be taken back: for qsf_weights_take_uses it
 * counts as a single one. */
void qsf_weights_learn_position(QsfWeights *w);
void qsf_weights_learn_use(QsfWeights *w, uint32_t unit);
/* Each of these experts is about to be acquired, both units once, in the order of their use. The next
 * qsf_weights_read_ahead starts to read what is not in memory. first_units: of all experts that are not in
 * memory the first unit is acquired before any second one (only with any_order). */
void qsf_weights_request(QsfWeights *w, uint32_t unit);
void qsf_weights_read_ahead(QsfWeights *w, bool first_units);
/* As qsf_expert_pool_guesses, qsf_expert_pool_guess and qsf_expert_pool_guess_last. */
bool qsf_weights_guesses(const QsfWeights *w);
void qsf_weights_guess(QsfWeights *w, const uint32_t *unit, uint32_t n);
void qsf_weights_guess_last(QsfWeights *w, uint32_t unit, uint32_t n);
/* Any time in a pass, between two steps: as qsf_expert_pool_poll. */
void qsf_weights_poll(QsfWeights *w);
/* May the units of n experts that were requested be acquired in another order than that of the requests? */
bool qsf_weights_any_order(const QsfWeights *w, uint32_t n);
/* Is the expert with this first unit in memory now? */
bool qsf_weights_has_expert(const QsfWeights *w, uint32_t unit);
/* Between passes: as qsf_expert_pool_fill. *more false: there are no slots. */
int qsf_weights_fill_experts(QsfWeights *w, uint64_t max_bytes, bool *more, QsfErr *err);
/* Between passes, of the experts of all blocks in the order of their units: as qsf_expert_pool_take_uses, and
 * qsf_expert_pool_learned. depth (QSF_EXPERT_DEPTHS) counts as if it had been counted now; NULL: nothing. */
uint32_t qsf_weights_take_uses(QsfWeights *w, uint32_t *uses, uint32_t n);
void qsf_weights_learned(QsfWeights *w, const uint16_t *uses, uint32_t n, double positions,
                         const uint32_t *depth);
/* Waits until it is, if any_order; errors as of acquire. */
int qsf_weights_wait_expert(QsfWeights *w, uint32_t unit, QsfErr *err);
/* As qsf_expert_pool_to_pack and so on; pack: worker is a thread of the pool that evaluates. */
size_t qsf_weights_to_pack(QsfWeights *w, uint32_t unit, uint32_t n_cols);
void qsf_weights_pack(const QsfWeights *w, uint32_t unit, size_t from, size_t to, int worker);
void qsf_weights_packed(QsfWeights *w, uint32_t unit);

/* Units must then be walked in order, up to the head or to the unit before it. QSF_E_RUNTIME when
 * a model file has changed (QSF_E_RUNTIME with qsf_weights_stale then true). */
int qsf_weights_begin_pass(QsfWeights *w, bool head, QsfErr *err);
/* In a pass, before anything of the layer: waits until it was seen (on_layer), if it is
 * compressed. Errors as of acquire. */
int qsf_weights_wait_layer(QsfWeights *w, uint32_t layer, QsfErr *err);
/* Waits for items of `unit`, and shows them: the first view of a unit begins with item 0, each other one
 * with the item after the view before (`item`). Whether it ends with the unit is in v->item1.
 * QSF_E_RUNTIME: the read failed (names file and offset); QSF_E_INTERRUPTED: cancelled. */
int qsf_weights_acquire(QsfWeights *w, uint32_t unit, uint32_t item, QsfWeightView *v, QsfErr *err);
/* The view was used: rows that streamed may be overwritten. */
void qsf_weights_release(QsfWeights *w, const QsfWeightView *v);
/* ok false: the pass broke off; the next one starts from the first unit. */
void qsf_weights_end_pass(QsfWeights *w, bool ok);

/* Returns whether the files have changed since they were opened: the model must be reloaded. */
bool qsf_weights_stale(const QsfWeights *w);
/* qsf_io_name and qsf_io_notice of the running back end; copies, "" when there is none. */
void qsf_weights_io(QsfWeights *w, char *name, size_t name_cap, char *notice, size_t notice_cap);

#endif
