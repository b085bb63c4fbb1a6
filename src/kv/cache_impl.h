/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the KV cache share: where the tiles of a head lie, in kv/cache.c, and how
 * they move, in kv/move.c. */
#ifndef QSF_KV_CACHE_IMPL_H
#define QSF_KV_CACHE_IMPL_H

#include "src/kv/cache.h"

/* The tiles of one head's K (which 0) or V, one after the other. */
typedef struct QsfKvRun {
    unsigned which;
    size_t at, bytes; /* from the start of the memory */
} QsfKvRun;

/* Returns run `run` < qsf_kv_runs of cache i. */
QsfKvRun qsf_kvcache_run(const QsfKvCache *c, uint32_t i, uint32_t run);
/* Makes ctx and types those of the cache, and finds where its runs lie then. */
void qsf_kvcache_place(QsfKvCache *c, uint32_t ctx, QsfKvTypes types);
/* Gives the mapping the size for ctx positions of these types, of which `reserved` are charged. Errors of
 * qsf_partial_set. */
int qsf_kvcache_set_memory(QsfKvCache *c, uint32_t ctx, QsfKvTypes types, uint32_t reserved, QsfErr *err);

#endif
