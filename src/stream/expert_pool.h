/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts in memory. One pool of slots of the same size serves all blocks; a slot holds both units of one
 * expert, in the windows of the file. An expert that a router has chosen and that is not there is read, and
 * takes the slot of the one that will probably not be used for the longest time (expert_policy.c). Choices of
 * the running layer are never given up before they were computed, unless the pool is smaller than they are.
 * Which experts are there never changes results.
 *
 * All functions of one pool are called from the evaluating thread. */
#ifndef QSF_STREAM_EXPERT_POOL_H
#define QSF_STREAM_EXPERT_POOL_H

#include "src/stream/loader.h"

typedef struct QsfExpertPool QsfExpertPool;

/* For the experts of these units (on_demand, two units each, one after the other), without slots:
 * nothing is read. units, counters and ledger outlive the pool. Charged to META. QSF_E_BUDGET,
 * QSF_E_RUNTIME. */
int qsf_expert_pool_create(QsfExpertPool **out, QsfWeightUnit *units, uint32_t n_units, QsfLedger *ledger,
                           QsfErr *err);
void qsf_expert_pool_destroy(QsfExpertPool *p); /* NULL allowed */

/* Between passes: gives the pool n slots, charged to PINNED; experts stay where there is a slot. Less
 * cannot fail. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_expert_pool_resize(QsfExpertPool *p, uint32_t n, QsfErr *err);
/* Returns the number of slots, and the bytes of one. */
uint32_t qsf_expert_pool_slots(const QsfExpertPool *p);
uint64_t qsf_expert_pool_slot_bytes(const QsfExpertPool *p);

/* Begins to read with an I/O back end of its own; of o only the source, the configuration, the ledger, the
 * counters and the checksums are used. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_expert_pool_start(QsfExpertPool *p, const QsfLoaderOptions *o, QsfErr *err);
/* Ends the reads in flight; what is complete stays. */
void qsf_expert_pool_stop(QsfExpertPool *p);

/* A pass over n positions begins. */
void qsf_expert_pool_begin_pass(QsfExpertPool *p, uint32_t n);
/* A position chose the expert with the first unit `unit`; `later` positions of the pass come after it. */
void qsf_expert_pool_use(QsfExpertPool *p, uint32_t unit, uint32_t later);
/* The expert is about to be acquired, once, both units. In the order of their use. */
void qsf_expert_pool_request(QsfExpertPool *p, uint32_t unit);
/* Starts to read those that are not there. first_units: of all of them the first unit is acquired before
 * any second one. */
void qsf_expert_pool_read_ahead(QsfExpertPool *p, bool first_units);
/* Does it pay to predict what the next block chooses? */
bool qsf_expert_pool_guesses(const QsfExpertPool *p);
/* After read_ahead, in a pass over one position: the experts of the next block with these first units will
 * probably be chosen, the first ones most likely. When all that was requested has been read, those that are
 * not there are read, into free slots or those of experts that are used later than that; what is then
 * requested comes before. What cannot be read is an error only when it is acquired. */
void qsf_expert_pool_guess(QsfExpertPool *p, const uint32_t *unit, uint32_t n);
/* The same for a block whose choice is not predicted: what the last position chose of its n experts. */
void qsf_expert_pool_guess_last(QsfExpertPool *p, uint32_t unit, uint32_t n);
/* Any time in a pass: continues to read what is not chosen yet, if nothing else is to be read. */
void qsf_expert_pool_poll(QsfExpertPool *p);
/* Is the expert with this first unit in memory? */
bool qsf_expert_pool_has(const QsfExpertPool *p, uint32_t unit);
/* Waits for a unit of a requested expert: *data is where the chunk *c, the whole unit, lies, valid until
 * the release of the expert's second unit. QSF_E_RUNTIME, QSF_E_MODEL (a damaged file). */
int qsf_expert_pool_acquire(QsfExpertPool *p, uint32_t unit, QsfChunk *c, const uint8_t **data, QsfErr *err);
/* The unit was used. After both units of an expert its slot may get another one. */
void qsf_expert_pool_release(QsfExpertPool *p, uint32_t unit);

/* Rows of an expert in memory are put into groups (interleave.h), which are multiplied faster, when that
 * pays: for n_cols columns, or because it is used again and again. Returns the number of groups of both units
 * of a requested expert to convert now; 0: none. Convert does groups [from, to), on any thread, each with its
 * own scratch for a group. After all of them, packed. */
size_t qsf_expert_pool_to_pack(QsfExpertPool *p, uint32_t unit, uint32_t n_cols);
void qsf_expert_pool_pack(const QsfExpertPool *p, uint32_t unit, size_t from, size_t to, uint8_t *scratch);
void qsf_expert_pool_packed(QsfExpertPool *p, uint32_t unit);
bool qsf_expert_pool_is_packed(const QsfExpertPool *p, uint32_t unit);
/* Between passes: reads experts into free slots, at least max_bytes if there are as many: those that would be
 * there if there had been slots enough all the time, in the beginning of each block the same number. *more:
 * slots are still free. Errors as of acquire. */
int qsf_expert_pool_fill(QsfExpertPool *p, uint64_t max_bytes, bool *more, QsfErr *err);

/* ---- what was chosen (expert_record.c) ---- */

/* Before the request of the expert with this first unit, after all uses of the layer: notes which numbers of
 * slots would have it in memory now. alone: for one position, which is then counted in n. */
void qsf_expert_pool_note(QsfExpertPool *p, uint32_t unit, bool alone, QsfStreamCounters *n);
/* A pass over one position begins: what was counted in n long ago counts less. */
void qsf_expert_pool_note_position(QsfExpertPool *p, QsfStreamCounters *n);
/* Returns R: about one in R experts and its uses are counted in the depths of n. */
uint32_t qsf_expert_pool_every(const QsfExpertPool *p);
/* A pass with drafts begins, of which the first position is certain to stay; that position chose an expert.
 * Counted by qsf_expert_pool_take_uses, not in the depths. */
void qsf_expert_pool_learn_position(QsfExpertPool *p);
void qsf_expert_pool_learn_use(QsfExpertPool *p, uint32_t unit);
/* Copies how often each of n experts was chosen for one position alone since the last call, and returns the
 * number of these positions. n: as many as there are; 0: only returns that. */
uint32_t qsf_expert_pool_take_uses(QsfExpertPool *p, uint32_t *uses, uint32_t n);
/* Before the first pass: how often each of n experts was chosen in `positions` positions of earlier
 * conversations. Gives them their first rates, and the order in which free slots are filled. */
void qsf_expert_pool_learned(QsfExpertPool *p, const uint16_t *uses, uint32_t n, double positions);

/* The pass broke off: waits for the reads in flight and forgets the requests. */
void qsf_expert_pool_reset(QsfExpertPool *p);

#endif
