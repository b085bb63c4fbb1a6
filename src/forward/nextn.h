/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The next-token blocks of a model beside its forward pass (src/model/nextn.h). Each has its own forward
 * pass, with its KV cache, which follows the model's: after every pass of the model it is filled with the
 * tokens and states that were shown, and what the model takes back is taken back. Drafts are the likeliest
 * tokens of the blocks: the first block drafts the token after the next one, the second the one after that,
 * and so on; the last block continues from its own state. Nothing here changes a result of the model.
 * Everything is in the plan: qsf_nextn_plan says what they take. The model's thread. */
#ifndef QSF_FORWARD_NEXTN_H
#define QSF_FORWARD_NEXTN_H

#include "src/forward/forward.h"

#define QSF_NEXTN_BLOCKS 4u  /* blocks that are used; a model may have more */
#define QSF_NEXTN_DRAFTS 16u /* tokens of a draft */
#define QSF_NEXTN_BATCH  64u /* columns of a pass that fills the caches */

typedef struct QsfNextn QsfNextn;

/* Opens blocks [first, first + n) of m, n >= 1, at most QSF_NEXTN_BLOCKS of them; m outlives them. borrow:
 * as in qsf_nextn_open. Errors as there. */
int qsf_nextn_create(QsfNextn **out, const QsfModel *m, uint32_t first, uint32_t n, bool borrow, QsfErr *err);
void qsf_nextn_destroy(QsfNextn *x); /* NULL allowed; before the model's forward pass, if it was loaded */

/* Do they read the head of the model? */
bool qsf_nextn_borrows(const QsfNextn *x);
/* Plans them beside a plan of the model with these options, for ctx positions and its types kv of the KV
 * cache: everything in RAM if that takes at most `most` bytes, otherwise their weights stream; with a sketch
 * of a large head, if there is one block. Adds what they take to rows (QSF_MEM_N). QSF_E_BUDGET: `most` is
 * too little. QSF_E_RUNTIME. Call it before they are loaded, or before qsf_nextn_replan. */
int qsf_nextn_plan(QsfNextn *x, const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, bool sketch,
                   uint64_t most, uint64_t *rows, QsfErr *err);
/* After a replan of the model's forward pass: puts the new plan in force, with its pool. Errors of
 * qsf_forward_replan; they must be destroyed then. */
int qsf_nextn_replan(QsfNextn *x, QsfPool *pool, QsfErr *err);
/* Maps memory, begins to read the weights, and follows f beginning with its next pass: with the options that
 * f was created with. The pool is f's: qsf_nextn_replan after it changes. QSF_E_BUDGET, QSF_E_RUNTIME,
 * QSF_E_INTERRUPTED. */
int qsf_nextn_load(QsfNextn *x, QsfForward *f, const QsfForwardOptions *o, QsfErr *err);

/* Before the first draft: makes the sketch of the head, if there is one, which takes a while. */
void qsf_nextn_prepare(QsfNextn *x);
/* Can it draft now? Only if the blocks have seen the last positions of the model, and the head is in memory;
 * otherwise *why (static, may be NULL) says why not. */
bool qsf_nextn_ready(const QsfNextn *x, const char **why);
/* If it is ready: drafts what follows `id`, the token that was chosen after the model's last position, which
 * it has not evaluated: up to n tokens into out. *margin becomes by how much the logit of the first one
 * exceeds all others; after a token with a margin below `least` the draft ends. Returns how many; errors end
 * it. */
uint32_t qsf_nextn_draft(QsfNextn *x, int32_t id, uint32_t n, float least, int32_t *out, float *margin);

/* ---- snapshots ---- */

/* Returns the number of blocks, and the forward pass of block i: its rows (src/forward/snapshot.h). */
uint32_t qsf_nextn_n(const QsfNextn *x);
QsfForward *qsf_nextn_pass(const QsfNextn *x, uint32_t i);
/* Have the blocks followed positions [0, n) of the model, and are their rows all there is to save? */
bool qsf_nextn_can_save(const QsfNextn *x, uint32_t n);
/* Returns the first position p of which the states of p to n - 1 are all kept; n: not even the last. */
uint32_t qsf_nextn_states_from(const QsfNextn *x, uint32_t n);
/* Returns the place of the state of a position, qsf_nextn_hidden floats: one of the last QSF_NEXTN_DRAFTS. */
float *qsf_nextn_state(const QsfNextn *x, uint32_t pos);
uint32_t qsf_nextn_hidden(const QsfNextn *x); /* floats of a state */
/* After the model's pass was restored with n positions: empties the blocks and makes room for n positions;
 * then rows and states are written. QSF_E_CONTEXT, QSF_E_BUDGET, QSF_E_RUNTIME: they stay empty. */
int qsf_nextn_restore(QsfNextn *x, uint32_t n, QsfErr *err);
/* All rows of block i were written; have as of qsf_forward_restored. false: it cannot continue after n. */
bool qsf_nextn_restored(QsfNextn *x, uint32_t i, uint32_t n, const uint32_t *have);
/* After all blocks: the states of [from, n) were written. */
void qsf_nextn_states_restored(QsfNextn *x, uint32_t from, uint32_t n);
/* Empties the blocks: they begin with the next position. */
void qsf_nextn_empty(QsfNextn *x);

/* For comparisons: passes of block `i` (of those that were opened) compute the logits of every position, and
 * show them; NULL ends it. */
void qsf_nextn_watch(QsfNextn *x, uint32_t i, QsfLogitsFn fn, void *arg);
/* Returns the error that ended the last fill, QSF_OK if none did. */
int qsf_nextn_error(const QsfNextn *x, QsfErr *err);

#endif
