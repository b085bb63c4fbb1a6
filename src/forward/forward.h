/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward pass over one timeline of tokens: ids in, logits out, K/V kept. Owns the pinned
 * weights, the slots with their loader thread, the KV cache and all buffers; after creation it
 * allocates nothing. One thread at a time, except where stated. */
#ifndef QSF_FORWARD_FORWARD_H
#define QSF_FORWARD_FORWARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/pool.h"
#include "src/base/strbuf.h"
#include "src/plan/evict.h"
#include "src/plan/plan.h"
#include "src/plan/units.h"

typedef struct QsfForward QsfForward;

typedef struct QsfForwardOptions {
    const QsfModel *model; /* must outlive the forward pass */
    const QsfPlan *plan;   /* copied where needed */
    const qk_table *table; /* must outlive it */
    QsfPool *pool;
    QsfLedger *ledger;
    QsfForward *lender; /* of units that are borrowed (QsfUnitSpec), and of rows of the same embedding table;
                           outlives it and has the same table and `exact`; NULL = none */
    const atomic_int *cancel; /* non-zero asks to stop; polled between layers and reads; may be NULL */
} QsfForwardOptions;

/* Reads small tensors and starts the loader, which pins weights in the background. QSF_E_BUDGET,
 * QSF_E_RUNTIME (I/O, memory), QSF_E_MODEL (damaged), QSF_E_INTERRUPTED (cancelled). */
int qsf_forward_create(QsfForward **out, const QsfForwardOptions *o, QsfErr *err);
void qsf_forward_destroy(QsfForward *f); /* NULL allowed */

/* Waits until all planned weights are pinned, and makes the sketch of the head if the plan has one, for
 * benchmarks. progress (bytes) may be NULL. Errors of qsf_weights_settle. */
int qsf_forward_settle(QsfForward *f, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err);

/* Between two evals: switches to a different plan for the same model, KV type and `exact`, and to the
 * given thread pool, which must have the plan's number of threads. Context (plan->ctx >= n_past), batch,
 * pinned items, slots, row cache and back end may differ; positions in the cache and the logits stay.
 * Memory that the new plan does not use is returned to the kernel before anything new is mapped.
 * QSF_E_CONTEXT when plan->ctx is too short: nothing changes. QSF_E_RUNTIME or QSF_E_BUDGET when memory
 * cannot be mapped: every eval then fails until a replan succeeds (the old plan may be tried); the given
 * pool is used in any case. */
int qsf_forward_replan(QsfForward *f, const QsfPlan *p, QsfPool *pool, QsfErr *err);

/* Have the model's files changed since they were opened? Then the model must be reloaded. */
bool qsf_forward_stale(const QsfForward *f);
/* Copies the name and the notice of the running I/O back end; "" when there is none. Any thread. */
void qsf_forward_io(QsfForward *f, char *name, size_t name_cap, char *notice, size_t notice_cap);

/* Called for a position whose logits were requested; logits (n_vocab) are valid during the call. */
typedef void (*QsfLogitsFn)(void *arg, uint32_t pos, const float *logits);

/* Appends ids[0..n) at positions n_past.. and evaluates them, in chunks of plan->batch. If all is not
 * NULL, it is called for every position in order; otherwise only the logits of the last position are
 * computed (qsf_forward_logits). QSF_E_CONTEXT when n_past + n > ctx (nothing is done), QSF_E_MODEL for
 * an id outside the vocabulary (nothing is done), QSF_E_INTERRUPTED when cancelled (completed chunks
 * stay: see n_past), QSF_E_RUNTIME when a read fails (names file and offset; the pass can be repeated)
 * or the logits are not finite ("FILE: the model produced invalid numbers"). */
int qsf_forward_eval(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err);

/* ---- states, for next-token blocks (src/model/nextn.h) ---- */

/* Shows the residual stream after the last block, before the norm of the head, of the positions pos, pos + 1,
 * ... with the tokens ids[0..n): x (n, hidden), `stride` floats apart, valid during the call. */
typedef void (*QsfStatesFn)(void *arg, uint32_t pos, const int32_t *ids, uint32_t n, const float *x,
                            uint32_t stride);
/* Between two evals: sets a callback for each pass, called on the evaluating thread before the head, also
 * where the pass then fails; and with n 0 when positions pos and later are removed or restored. It must not
 * use f. NULL removes it. */
void qsf_forward_show_states(QsfForward *f, QsfStatesFn fn, void *arg);

/* States of another program, hidden floats each, for QsfProgram.given. */
typedef struct QsfGiven {
    const float *first; /* of the first position; NULL: zeros */
    const float *x;     /* of the others, `stride` floats apart */
    uint32_t stride;
    uint32_t n_shown; /* the first n_shown were shown (QsfStatesFn): QsfProgram.given_norm is applied; the
                         others are what qsf_forward_own_state copied */
} QsfGiven;
/* As qsf_forward_eval, of a program that is given states. */
int qsf_forward_eval_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfLogitsFn all,
                           void *arg, QsfErr *err);
/* The same, of the last position only, as qsf_forward_decode: the quality may find its logits with the sketch
 * of the head. */
int qsf_forward_decode_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfErr *err);
/* The same, but only what later positions need is computed: no logits. */
int qsf_forward_fill_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfErr *err);
/* After an eval that computed logits of the last position: copies its state (hidden floats), which a further
 * position can be given. */
void qsf_forward_own_state(const QsfForward *f, float *dst);

/* ---- drafts (src/speculate) ---- */

/* Like QsfLogitsFn; false: nothing after this position is wanted. */
typedef bool (*QsfVerifyFn)(void *arg, uint32_t pos, const float *logits);
/* Returns how many positions qsf_forward_verify can evaluate now and take back again: 0 or 1 if it cannot,
 * with the reason in *why (static), otherwise NULL; why may be NULL. Between two evals. */
uint32_t qsf_forward_verifiable(const QsfForward *f, const char **why);
/* Appends ids[0..n), n <= qsf_forward_verifiable, in one pass, and calls fn for each position in order until
 * it returns false. The positions after that one are taken back: everything is as if they had never been
 * evaluated, and qsf_forward_logits are those of the last position that stays. With everything, as
 * qsf_forward_eval, whose errors it has; after an error the positions whose logits fn has received stay. */
int qsf_forward_verify(QsfForward *f, const int32_t *ids, uint32_t n, QsfVerifyFn fn, void *arg, QsfErr *err);

/* Can qsf_forward_draft guess now? Otherwise *why (static, may be NULL) says why not. Between two evals. */
bool qsf_forward_drafts(const QsfForward *f, const char **why);
/* Guesses what follows `id`, which is not evaluated, with the blocks of the plan that are held in RAM
 * (QsfPlan.hold): the others are skipped, and nothing streams. Their KV cache has what the model computed for
 * earlier positions. Up to n tokens into out; *margin becomes by how much the logit of the first one exceeds
 * all others, and after a token with a margin below `least` the draft ends. Returns how many; errors end it.
 * All is as before then, but for qsf_forward_logits. */
uint32_t qsf_forward_draft(QsfForward *f, int32_t id, uint32_t n, float least, int32_t *out, float *margin);
/* Between two evals: a conversation may go back to here. After an eval of several tokens it may anyway. */
void qsf_forward_border(QsfForward *f);
/* Between two evals: of the copies of recurrent states, the one after n positions is dropped last, because
 * other conversations begin with these positions, too; 0 = none. */
void qsf_forward_lead(QsfForward *f, uint32_t n);
/* Between two evals, of a forward pass that drafts: qsf_forward_truncate can go back to this position, also
 * with recurrent states, whose copy it keeps. The mark replaces the one at position `last`, and from now on
 * there are no other copies at the borders of evals. */
void qsf_forward_mark(QsfForward *f, uint32_t last);

/* ---- adapters (src/model/adapter.h) ---- */

/* Between two evals, after a replan with other adapters than `old` (NULL = none): positions in the cache that
 * the new ones may have changed no longer count (qsf_forward_keeps). */
void qsf_forward_adapted(QsfForward *f, const QsfAdapterSet *old);
/* Between two evals: gives the adapters of s, which are in use, other scales (s->n). Nothing is read.
 * Positions in the cache count as with qsf_forward_adapted. QSF_E_MODEL, with nothing changed: a scale is too
 * large for an adapter. */
int qsf_forward_rescale(QsfForward *f, QsfAdapterSet *s, const float *scale, QsfErr *err);
/* Between two evals, before the prompt ids[0..n): an aLoRA acts at and after its last invocation in it, or
 * not at all. Positions whose adapters change thereby no longer count. */
void qsf_forward_invoke(QsfForward *f, const int32_t *ids, size_t n);

/* ---- quality (src/plan/quality.h) ---- */

/* Between two evals: sets what qsf_forward_decode leaves out; the first is nothing. */
void qsf_forward_set_quality(QsfForward *f, const QsfQuality *q);
/* Like qsf_forward_eval, but with what the quality leaves out: these positions have no keys, values and
 * states in the blocks that are skipped, so that later evals skip these blocks, too, until the positions
 * are removed. With early exit, positions wait for the blocks after it, and get keys and values there in
 * a batch: before the next token that does not end there, before an eval that is not such a decode, or
 * when QSF_PENDING_POSITIONS wait. With an eviction policy nothing else is left out. */
int qsf_forward_decode(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err);
/* Returns n: positions [0, n) were evaluated with all blocks. To use blocks that were skipped, the caller
 * truncates to n positions and evaluates the others again. */
uint32_t qsf_forward_exact(const QsfForward *f);
/* Returns the blocks that may be skipped. */
const QsfBlockSet *qsf_forward_optional(const QsfForward *f);
/* Returns the blocks before which a token may end (QsfQuality.exit): nothing but the residual stream
 * reaches them and later ones. None in models with recurrent states. */
const QsfBlockSet *qsf_forward_exits(const QsfForward *f);
/* Can tokens end early now? Not with an eviction policy: everything is then computed. */
bool qsf_forward_can_exit(const QsfForward *f);
/* Between two evals, and before the types of the KV cache change: evaluates the positions that wait for the
 * blocks after an early exit. Errors of qsf_forward_eval; they then still wait. */
int qsf_forward_catch_up(QsfForward *f, QsfErr *err);
/* Returns by how much the largest of n logits exceeds the others; compared with QsfQuality.margin. */
float qsf_forward_margin(const float *logits, uint32_t n);
/* Returns the id of the largest of n logits; *margin becomes that. */
int32_t qsf_forward_likeliest(const float *logits, uint32_t n, float *margin);
/* Sets score (n_blocks) to the importance of the optional blocks: 1 - cos(input, output), averaged over the
 * first positions of the conversation but the very first, at most QSF_MEASURE_POSITIONS. Returns over how
 * many; 0: score is unchanged. */
uint32_t qsf_forward_importance(const QsfForward *f, double *score);

/* What a tap sees: that a block begins, or the input of a step's matrices. Columns are positions pos,
 * pos + 1, ... All pointers are valid during the call only. */
typedef struct QsfTapData {
    uint32_t step;   /* of the program */
    uint32_t expert; /* the columns are what the output matrix of this expert reads: those that chose it, in
                        ascending order, and pos is 0; QSF_NONE: all columns */
    uint32_t pos, n_cols;
    const float *x; /* (n_cols, k) at x_stride: the input as floats, even if kernels get it quantized; of a
                       step with heads, head h lies in_stride * h further. NULL: this is the first step of a
                       block, or of what follows or precedes all blocks, and it has not run yet */
    uint32_t k, x_stride;
} QsfTapData;
typedef void (*QsfTapFn)(void *arg, const QsfTapData *t);

/* Between two evals: sets a callback for each step with matrices of each chunk, called on the evaluating
 * thread: once for its input, and for experts once more for each expert that was chosen. Of the last steps,
 * the columns are those whose logits are computed. NULL removes it. */
void qsf_forward_tap(QsfForward *f, QsfTapFn fn, void *arg);
/* In a tap that sees all columns: returns the values of a slice in the first column of the tap, columns
 * *stride floats apart. They may be changed where a block begins. */
float *qsf_forward_tapped(const QsfForward *f, QsfSlice s, uint32_t *stride);

/* Returns the logits of the last evaluated position (n_vocab), owned by f, valid until the next eval. */
float *qsf_forward_logits(QsfForward *f);
/* Returns the positions that were evaluated, also those that were evicted since. Not while an eval runs. */
uint32_t qsf_forward_n_past(const QsfForward *f);
/* Returns the context in positions, by the plan in force. */
uint32_t qsf_forward_ctx(const QsfForward *f);
/* Removes positions n and later; n <= n_past. A model with recurrent states goes back to its newest
 * checkpoint at or before n. Returns how many positions stay, which is n_past: the caller must
 * evaluate those up to n again. */
uint32_t qsf_forward_truncate(QsfForward *f, uint32_t n);
/* Can the cache be cut back to any length without a loss? Not with recurrent states or a KV cache of two
 * bits, which only have checkpoints, and not after an eviction or a conversion. */
bool qsf_forward_cuts(const QsfForward *f);
/* Returns how many positions can be stored before the context is full or a layer with a window forgets its
 * oldest one. */
uint32_t qsf_forward_spare(const QsfForward *f);
/* After a truncation: n positions are about to be evaluated. Where most of the memory that the KV cache has
 * taken is not needed for them, weights get it, so the ledger must not be frozen. */
void qsf_forward_expect(QsfForward *f, uint32_t n);
/* Returns how many positions qsf_forward_truncate(f, n) would keep. */
uint32_t qsf_forward_keeps(const QsfForward *f, uint32_t n);

/* Between two evals: sets the eviction policy of the KV cache; the first is none. With a policy, evals
 * evict positions instead of failing with QSF_E_CONTEXT, and positions grow beyond the context.
 * QSF_E_USAGE: the model has sparse attention; QSF_E_CONTEXT: the context has no room for what is
 * protected; QSF_E_BUDGET and QSF_E_RUNTIME: no memory. Everything is as before then. */
int qsf_forward_evict(QsfForward *f, const QsfEvict *e, QsfErr *err);

/* Checks whether a model and a context of ctx positions work with an eviction policy. QSF_OK, also
 * without a policy. QSF_E_USAGE: the model has sparse attention, which chooses among all positions;
 * QSF_E_CONTEXT: ctx positions have no room for what is protected. The message names the model or the
 * policy. Any thread. */
int qsf_evict_check(const QsfModel *m, const QsfEvict *e, uint64_t ctx, QsfErr *err);

bool qsf_forward_evicts(const QsfForward *f); /* Is a policy set? */
/* Between two evals, when memory is short: `short_of` true gives back the memory of weights in the unused
 * part of the context, and with a policy evicts until 3/4 of the positions are kept, except protected ones
 * and the minimum that a policy keeps; the cache does not grow beyond that until a call with false. SnapKV
 * observes the next queries first. The memory of evicted positions returns to the kernel. Returns false if
 * there is nothing to give back. Never fails; also while the ledger is frozen. */
bool qsf_forward_relieve(QsfForward *f, bool short_of);
/* Returns how many positions fit without an eviction. */
uint32_t qsf_forward_room(const QsfForward *f);
/* Returns how many positions the KV cache holds: n_past without those that were evicted, in whole tiles. */
uint32_t qsf_forward_kept(const QsfForward *f);

/* Between passes: records the experts that later passes choose; NULL ends it. r outlives that. */
struct QsfRoutes;
void qsf_forward_trace_experts(QsfForward *f, struct QsfRoutes *r);
/* Between passes: reads experts into slots that are free, about max_bytes; *more: some still are.
 * QSF_E_RUNTIME. */
int qsf_forward_fill_experts(QsfForward *f, uint64_t max_bytes, bool *more, QsfErr *err);
/* Between passes, of the n experts of all blocks in the order of their units: copies how often each was
 * chosen by single tokens, or the first token of a pass with drafts, since the last call, and returns the
 * number of these tokens; 0 if n is wrong. n 0: only returns that. */
uint32_t qsf_forward_take_uses(QsfForward *f, uint32_t *uses, uint32_t n);
/* Before the first pass: how often each of them was chosen in `positions` tokens of earlier conversations,
 * and what expert_depth of QsfForwardStats was then. The most used ones are read first into free slots; no
 * result depends on it. */
void qsf_forward_learned(QsfForward *f, const uint16_t *uses, uint32_t n, double positions,
                         const uint32_t *depth);

/* Counters since creation or the last reset; any thread may read them. */
typedef struct QsfForwardStats {
    uint64_t bytes_read; /* streamed weights and embedding rows read from disk; without pinned weights */
    uint64_t read_ns;    /* time in which at least one read was in flight */
    uint64_t wait_ns;    /* time compute waited for the loader */
    uint64_t compute_ns; /* time in the layers and head, waits not counted */
    /* Disjoint parts of compute_ns; the remainder is small. */
    uint64_t matmul_ns[QSF_MATMUL_N]; /* matrix products by class of unit, including biases and
                                         activation functions */
    uint64_t attention_ns;            /* rotation, storing keys and values, scores, softmax, mixing */
    uint64_t prep_ns;                 /* residuals, norms, quantizing the inputs of matrices */
    uint64_t sync_ns;        /* the thread that evaluates waited for the others at the end of a job */
    uint64_t passes;         /* passes over the layers */
    uint64_t prefill_tokens; /* tokens evaluated in calls with n > 1 */
    uint64_t decode_tokens;  /* tokens evaluated one at a time */
    /* during decode_tokens: experts that routers chose, and those of them that were read */
    uint64_t expert_uses, expert_misses;
    uint64_t expert_reads; /* reads of experts into slots: one of each matrix, or one of each expert */
    /* Of about the last 256 of them: the uses that (i + 1) / QSF_EXPERT_DEPTHS of all experts in memory, but
     * not fewer, would have found there; not reset */
    uint32_t expert_depth[QSF_EXPERT_DEPTHS];
    uint32_t expert_slots; /* for experts, there are now; not reset */
    uint32_t experts_in;   /* experts in memory now, or pinned by the plan; not reset */
    /* Bytes of experts that were read before they were chosen (also in bytes_read): in all, of those that
     * were then chosen, and of those that were given up before. */
    uint64_t ahead_read, ahead_used, ahead_wasted;
    uint64_t exited_tokens; /* of these, the tokens that ended at an early exit */
    uint64_t head_sketched; /* logits found with the sketch of the head */
    uint64_t head_rows;     /* rows of the head that were multiplied in full for them */
    uint64_t prefill_ns, decode_ns;
    uint32_t layer;                   /* layer being computed now, n_layers during the head */
    uint32_t chunk_done, chunk_total; /* tokens of the running eval: done, and in total */
    double work; /* tokens evaluated; those of the running pass count by the share of its steps
                    that are done */
    uint64_t pin_done, pin_total; /* bytes of weights pinned, and planned; not reset */
    uint64_t pin_read;            /* bytes read to be pinned, or for the resident embedding table */
    uint64_t streamed_bytes;      /* weights that a token streams now; of experts the average; not reset */
    uint64_t lent_bytes;          /* reserved for positions that do not exist yet, and for weights until
                                     then; not reset */
    uint64_t embed_hits, embed_misses; /* of the embedding row cache */
    uint64_t evictions, evicted;       /* of the KV cache, and positions in all; not reset */
    uint64_t reliefs;                  /* how often qsf_forward_relieve gave something back; not reset */
    uint32_t missing;                  /* evicted positions before n_past */
    uint32_t n_protected;              /* positions that the eviction policy keeps; 0 without one */
    bool converted;                    /* the cache holds positions that were stored with other types first */
    uint32_t threads, prefill_threads; /* in use for single tokens and for prompts; not reset */
} QsfForwardStats;
/* Returns which part of the head of n_vocab rows was multiplied in full with the sketch, on
 * average; 0 without one. */
static inline double qsf_forward_head_part(const QsfForwardStats *s, uint32_t n_vocab) {
    return s->head_sketched > 0 ? (double)s->head_rows / ((double)s->head_sketched * n_vocab) : 0;
}

/* One layer; index n_layers is the head. Counters since creation or the last reset. */
typedef struct QsfLayerStats {
    uint64_t weight_bytes, pinned_bytes;
    uint64_t read_bytes, wait_ns, compute_ns;
    uint32_t experts, experts_in;        /* in all, and in memory now; not reset */
    uint64_t expert_uses, expert_misses; /* as in QsfForwardStats */
} QsfLayerStats;
/* Fills out[0..min(n_layers + 1, max)) and returns n_layers + 1. Any thread. */
uint32_t qsf_forward_layers(const QsfForward *f, QsfLayerStats *out, uint32_t max);
/* Fills *out; the parts are read one after the other, while they may change. Any thread. */
void qsf_forward_stats(const QsfForward *f, QsfForwardStats *out);
/* Sets the counters to 0, except those that say otherwise. Between two evals. */
void qsf_forward_stats_reset(QsfForward *f);

/* Explains the numbers of threads in lines that begin with "threads: ": the CPUs, and for single tokens and
 * for prompts the number in use and the speeds of those that were measured; "as set" if the plan gives the
 * number. Any thread. */
void qsf_forward_threads_text(const QsfForward *f, QsfStrbuf *b);

/* Measures the bytes per second at which the pool's threads read the weights (up to 1 GB) without
 * computing, as a reference for decoding: finds the fastest method on this machine (streams per thread,
 * prefetch distance), then takes the median of five runs. Between two evals. 0 when weights are
 * streamed, or the budget has no page for the list. */
double qsf_forward_read_speed(QsfForward *f);

/* How often something ran, for how many positions in total, and how long it took without
 * waiting for weights. */
typedef struct QsfStepTime {
    uint64_t calls, positions, ns;
} QsfStepTime;

/* Times by step of the program. */
typedef struct QsfProfile {
    QsfStepTime *step;              /* (n_steps) */
    QsfStepTime quantize[QK_ACT_N]; /* of the inputs of linear steps; other steps include it */
    QsfStepTime embed;              /* rows of the embedding table */
} QsfProfile;
/* Between two evals: adds to *p in later evals. Column steps then run one by one instead of together, which
 * is slower and gives the same bits. NULL ends it. */
void qsf_forward_profile(QsfForward *f, QsfProfile *p);

/* A kernel: an entry of the kernel table, or a loop of the forward pass itself. */
typedef struct QsfKernel {
    char name[40];     /* "rms_norm", "q4_0_avx2", "delta" */
    const char *level; /* whose code it is: "avx2"; "portable" for loops that are the same at every level */
} QsfKernel;
#define QSF_STEP_KERNELS (QSF_UNIT_TENSORS + 2u)
/* Fills out[0..QSF_STEP_KERNELS) with the kernels that a step uses, and returns how many. */
unsigned qsf_forward_step_kernels(const QsfForward *f, const QsfStep *s, QsfKernel *out);
/* Return the kernel that quantizes inputs of this kind, and the one that reads rows of the
 * embedding table. */
QsfKernel qsf_forward_quantize_kernel(const QsfForward *f, qk_act act);
QsfKernel qsf_forward_embed_kernel(const QsfForward *f);

/* Lists the kernels that ran so far, separated by commas, for receipts; at most cap bytes. */
void qsf_forward_kernels(const QsfForward *f, char *dst, size_t cap);

#endif
