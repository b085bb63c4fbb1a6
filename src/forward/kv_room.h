/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Room in the KV caches: when their memory is taken, and which positions leave when there is
 * none. The thread that evaluates. */
#ifndef QSF_FORWARD_KV_ROOM_H
#define QSF_FORWARD_KV_ROOM_H

#include "src/forward/forward.h"
#include "src/plan/kvtypes.h"

/* Memory that the KV cache does not need yet holds weights. Bytes for the weights while the cache is charged
 * for n of ctx positions of these types. */
uint64_t qsf_reserve_lent(const QsfForward *f, uint32_t ctx, QsfKvTypes types, uint32_t n);
/* Between passes: makes sure that positions [0, n), n <= ctx, are charged, in whole steps; weights give up
 * what that takes. Also while the ledger is frozen. QSF_E_BUDGET (a bug). */
int qsf_reserve_positions(QsfForward *f, uint32_t n, QsfErr *err);
/* If most of the charged memory is not needed for n more positions, it is lent to weights. */
void qsf_reserve_trim(QsfForward *f, uint32_t n);

/* Returns how many positions can be stored without an eviction. */
uint32_t qsf_evicting_room(const QsfForward *f);
/* Returns how many positions can be stored before the policy chooses what to evict; not of one that observes.
 */
uint32_t qsf_evicting_spare(const QsfForward *f);
/* As qsf_evicting_room; if there is no room, the policy evicts first. n: positions still to be evaluated;
 * prompt: there were several. */
uint32_t qsf_evicting_make_room(QsfForward *f, size_t n, bool prompt);
/* A prompt was evaluated. */
void qsf_evicting_prompt_done(QsfForward *f);
/* Counts what is missing, after an eviction or a truncation, and notes whether the cache was converted. */
void qsf_evicting_note(QsfForward *f);
/* After an eviction, before n more positions are evaluated: in caches whose oldest position would
 * be farther from the last of them than the model was trained for, rotates the keys so that what
 * is kept is seen without gaps. */
void qsf_gaps_close(QsfForward *f, uint32_t n);
#define QSF_EVICT_POSITIONS (1u << 30) /* most positions of a conversation */

#endif
