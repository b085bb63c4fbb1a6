/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An LRU cache of embedding rows in the file's format. One mapping; allocates nothing afterwards. One thread
 * at a time. */
#ifndef QSF_FORWARD_OPS_ROWCACHE_H
#define QSF_FORWARD_OPS_ROWCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/ledger.h"

typedef struct QsfRowEntry {
    uint32_t id;           /* token */
    uint32_t newer, older; /* neighbours in the order of use, as entry + 1; 0 = none */
} QsfRowEntry;

typedef struct QsfRowCache {
    void *mem;
    uint64_t bytes;
    uint32_t rows, used; /* capacity and number of rows */
    uint64_t row_bytes, stride;
    uint8_t *data;      /* (rows, stride) */
    QsfRowEntry *entry; /* (rows) */
    uint32_t *index;    /* (mask + 1) entry + 1 by hash of the id, 0 = free; linear probing */
    uint32_t mask;
    uint32_t newest, oldest; /* entry + 1, 0 = none */
    QsfLedger *ledger;
} QsfRowCache;

/* Maps a cache of qsf_rowcache_bytes(), charged to EMBED. rows 0: an always empty cache. QSF_E_BUDGET,
 * QSF_E_RUNTIME. */
int qsf_rowcache_init(QsfRowCache *c, uint32_t rows, uint64_t row_bytes, QsfLedger *ledger, QsfErr *err);
void qsf_rowcache_free(QsfRowCache *c); /* zero-initialised is allowed */

/* Returns the row of a token, which becomes the newest, or NULL. Valid until the next put. */
const uint8_t *qsf_rowcache_find(QsfRowCache *c, uint32_t id);
/* Is the row in the cache? Does not change the order. */
bool qsf_rowcache_has(const QsfRowCache *c, uint32_t id);
/* Adds a copy of row (row_bytes) as the newest; the token must not be in the cache. */
void qsf_rowcache_put(QsfRowCache *c, uint32_t id, const void *row);

#endif
