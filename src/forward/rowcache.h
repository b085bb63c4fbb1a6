/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The embedding rows used last, as they are packed in the file: the newest take the place of those unused for
 * longest (spec Phase 8, strategy B). One mapping, nothing is allocated afterwards. One thread at a time. */
#ifndef QSF_FORWARD_ROWCACHE_H
#define QSF_FORWARD_ROWCACHE_H

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
    uint32_t rows, used; /* room for, and rows in it */
    uint64_t row_bytes, stride;
    uint8_t *data;      /* (rows, stride) */
    QsfRowEntry *entry; /* (rows) */
    uint32_t *index; /* (mask + 1) entry + 1 by hash of the id, 0 = free; collisions go to the next place */
    uint32_t mask;
    uint32_t newest, oldest; /* entry + 1, 0 = none */
    QsfLedger *ledger;
} QsfRowCache;

/* rows 0: a cache that holds nothing. Charged to EMBED, qsf_rowcache_bytes(). QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_rowcache_init(QsfRowCache *c, uint32_t rows, uint64_t row_bytes, QsfLedger *ledger, QsfErr *err);
void qsf_rowcache_free(QsfRowCache *c); /* zero-initialised is allowed */

/* The row of a token, which becomes the newest, or NULL. Valid until the next put. */
const uint8_t *qsf_rowcache_find(QsfRowCache *c, uint32_t id);
/* Whether find would have it; changes no order. */
bool qsf_rowcache_has(const QsfRowCache *c, uint32_t id);
/* Copies row (row_bytes) as the newest; the token must not be in it. */
void qsf_rowcache_put(QsfRowCache *c, uint32_t id, const void *row);

#endif
