/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the KV cache reserves for positions that do not exist yet holds weights until they do. A plan pins
 * what fits beside a full context; here is the order in which further rows are pinned while the context is
 * shorter, and in which they are given up, the last one first, as it grows. Whatever the number of positions,
 * the same rows are pinned. Pure. */
#ifndef QSF_PLAN_KV_LEND_H
#define QSF_PLAN_KV_LEND_H

#include "src/model/optional.h"
#include "src/plan/kvtypes.h"
#include "src/plan/units.h"

/* Returns an upper bound of the pages that n caches for ctx positions touch when they hold `used` of them:
 * all for used >= ctx. */
uint64_t qsf_lend_kv_bytes(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types, uint32_t ctx, uint32_t used);
/* Returns how many positions the cache takes memory for at a time: about a megabyte. 0: there is no cache. */
uint32_t qsf_lend_step(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types);
/* Returns the positions to take memory for when `used` are needed: whole steps, at most ctx. */
uint32_t qsf_lend_positions(uint32_t used, uint32_t step, uint32_t ctx);

/* Sets order (n_units of the model) to the units to pin in lent memory, beginning with row pinned[unit], and
 * returns their number: units between which computation hides the reads of the others best come first,
 * experts last. Compressed layers are not among them, nor are the blocks of `skip` (NULL: none). */
uint32_t qsf_lend_order(const QsfModel *m, const QsfBlockSet *skip, const uint32_t *pinned, uint32_t *order);
/* Returns n: items [0, n) of u are to be pinned, of which `pinned` are pinned anyway. The others take at most
 * *room bytes, which are subtracted from *room. */
uint32_t qsf_lend_items(const QsfUnit *u, uint32_t pinned, uint64_t *room);

#endif
