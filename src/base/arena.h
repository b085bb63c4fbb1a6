/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bump allocator, charged to one ledger category and listed there as a region under its name. Grows block by
 * block until it is frozen; all allocations are freed together. One thread at a time. */
#ifndef QSF_BASE_ARENA_H
#define QSF_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/ledger.h"

typedef struct QsfArenaBlock QsfArenaBlock;

typedef struct QsfArena {
    QsfLedger *ledger;
    QsfMemCat cat;
    const char *name;    /* static storage, for reports */
    QsfArenaBlock *head; /* newest block first */
    size_t block_bytes;  /* size of the next ordinary block */
    size_t used, reserved;
    bool frozen; /* allocations fail while frozen: the token loop must not allocate */
} QsfArena;

/* Initializes an empty arena; allocates nothing. block_bytes is rounded up to a page; 0 = 64 KiB. */
void qsf_arena_init(QsfArena *a, QsfLedger *ledger, QsfMemCat cat, const char *name, size_t block_bytes);
/* Allocates size zeroed bytes aligned to align (a power of two up to 4096; 0 = 64, a cache line and the
 * widest vector). Returns NULL with *err set on failure (QSF_E_BUDGET, or QSF_E_RUNTIME when frozen or out of
 * memory). With size 0 the result is a valid pointer. */
void *qsf_arena_alloc(QsfArena *a, size_t size, size_t align, QsfErr *err);
/* Copies len bytes and appends a NUL. Errors as above. */
char *qsf_arena_strdup(QsfArena *a, const char *s, size_t len, QsfErr *err);
/* While frozen, allocations fail with QSF_E_RUNTIME; false permits them again. */
void qsf_arena_freeze(QsfArena *a, bool frozen);
/* Frees all allocations and releases their charge. A zeroed arena is allowed. */
void qsf_arena_destroy(QsfArena *a);

#endif
