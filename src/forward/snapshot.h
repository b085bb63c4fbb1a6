/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a forward pass in pieces that can be written to a file and read back: rows of tiles,
 * which hold K and V of QK_KV_TILE positions in all caches, and recurrent states. Between two evals,
 * by the thread that evaluates. */
#ifndef QSF_FORWARD_SNAPSHOT_H
#define QSF_FORWARD_SNAPSHOT_H

#include "src/forward/forward.h"

/* Bytes of the text of qsf_forward_values. */
#define QSF_FORWARD_VALUES 160u

/* Describes all settings that the bits of K, V and states depend on, besides the model and the tokens: "k
 * f16, v f16, ...". Two passes of one model with the same text compute the same bits for the same tokens. */
void qsf_forward_values(const QsfForward *f, char out[QSF_FORWARD_VALUES]);
/* Memory of a pass that is not needed between two evals; *bytes of it. Its contents are lost
 * with the next eval. */
uint8_t *qsf_forward_scratch(QsfForward *f, size_t *bytes);

/* ---- rows ---- */

/* Returns the number of KV caches. */
uint32_t qsf_forward_n_caches(const QsfForward *f);
/* Sets first (n_caches) to the first row at or after `row` that each cache holds completely: a
 * later one in a ring. */
void qsf_forward_first_rows(const QsfForward *f, uint32_t row, uint32_t *first);
/* Can the pass be saved? QSF_E_RUNTIME: the cache was converted, and an evaluation would give other bits. */
int qsf_forward_savable(const QsfForward *f, QsfErr *err);
/* Returns the bytes of a row; of caches with first[i] > row nothing. first NULL: of all caches. */
uint64_t qsf_forward_row_bytes(const QsfForward *f, uint32_t row, const uint32_t *first);
/* Calls fn for the tiles of a row, in the same order each time, until it returns false;
 * returns whether it never did. */
typedef bool (*QsfTileFn)(void *arg, uint8_t *tile, size_t bytes);
bool qsf_forward_row(QsfForward *f, uint32_t row, const uint32_t *first, QsfTileFn fn, void *arg);
/* Can a conversation continue after its first n positions, when all rows that are held before n are saved? */
bool qsf_forward_can_save(const QsfForward *f, uint32_t n);

/* ---- recurrent states ---- */

/* Returns the bytes of one; 0 for a model without. */
uint64_t qsf_forward_state_bytes(const QsfForward *f);
/* Finds the newest position p with after < p <= before whose state is held; 0 if there is none. */
uint32_t qsf_forward_state_before(const QsfForward *f, uint32_t after, uint32_t before);
/* Returns the state that is held after pos positions, (qsf_state_bytes) bytes owned by f, valid until the
 * next eval; NULL if none is. */
const uint8_t *qsf_forward_state(const QsfForward *f, uint32_t pos);

/* ---- caches with lists ---- */

/* After an eviction, and with a policy that decides by weights of past attention, rows are not enough: each
 * cache is saved with the places and weights of its tiles, and restored with n_past positions. */
#define QSF_LISTS_WORDS 16u /* of their description */

/* Must the caches be saved with their lists? */
bool qsf_forward_is_listed(const QsfForward *f);
/* Does a cache hold all positions of the context? Otherwise a conversation may be longer than the context. */
bool qsf_forward_is_bounded(const QsfForward *f);
/* Is that so because of a policy's weights, whatever was evicted? */
bool qsf_forward_weighs(const QsfForward *f);
/* Can it be saved now? Not when an evaluation failed and left part of its weights. */
bool qsf_forward_lists_ready(const QsfForward *f);
/* Fills their description, which a file stores as it is. */
void qsf_forward_lists(const QsfForward *f, uint32_t words[QSF_LISTS_WORDS]);
/* Were they made with this pass's policy and context? */
bool qsf_forward_lists_same(const QsfForward *f, const uint32_t words[QSF_LISTS_WORDS]);
/* Returns to how many of its first n positions such a conversation can be cut, as far as the lists
 * go: states may reach less far. */
uint32_t qsf_forward_lists_reach(const uint32_t words[QSF_LISTS_WORDS], uint32_t n);
/* Fills first (n_caches): the entries of a list, or the first row of a ring. */
void qsf_forward_lists_first(const QsfForward *f, uint32_t *first);
/* Returns the bytes of cache i. */
uint64_t qsf_forward_lists_bytes(const QsfForward *f, uint32_t i, const uint32_t words[QSF_LISTS_WORDS],
                                 const uint32_t *first, uint32_t n_past);
/* Calls fn for all parts of cache i, as qsf_forward_row; also false when what was read into
 * them is impossible. */
bool qsf_forward_lists_cache(QsfForward *f, uint32_t i, const uint32_t *first, uint32_t n_past, QsfTileFn fn,
                             void *arg);
/* After qsf_forward_restore: makes place for lists of these sizes; false if they are impossible. Then all
 * caches are read, and qsf_forward_lists_done is called instead of qsf_forward_restored. */
bool qsf_forward_lists_begin(QsfForward *f, const uint32_t words[QSF_LISTS_WORDS], const uint32_t *first,
                             uint32_t n_past);
/* All caches were read: they hold n_past positions. */
void qsf_forward_lists_done(QsfForward *f, const uint32_t *first, uint32_t n_past);

/* ---- restoring ---- */

/* Empties the pass, and makes room for n <= ctx positions. QSF_E_BUDGET, QSF_E_RUNTIME. Rows and states can
 * be written then; until qsf_forward_restored the pass stays empty. */
int qsf_forward_restore(QsfForward *f, uint32_t n, QsfErr *err);
/* Place for the next state, by ascending positions; qsf_forward_state_restored makes it the
 * one after pos positions. */
uint8_t *qsf_forward_state_place(QsfForward *f);
void qsf_forward_state_restored(QsfForward *f, uint32_t pos);
/* Cache i has positions have[i] to n - 1 (have is (n_caches)): can the conversation continue after n? */
bool qsf_forward_is_enough(const QsfForward *f, uint32_t n, const uint32_t *have);
/* All of that was written: the pass has n positions. */
void qsf_forward_restored(QsfForward *f, uint32_t n, const uint32_t *have);

#endif
