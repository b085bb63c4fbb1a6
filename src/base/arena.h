/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bump allocator charged to one ledger category (spec Phase 2.1), where it is a region under its name. Grows
 * block by block until it is frozen; everything is freed at once. One thread at a time. */
#ifndef QSF_BASE_ARENA_H
#define QSF_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/ledger.h"

typedef struct QsfArenaBlock QsfArenaBlock;

typedef struct QsfArena {
    QsfLedger *ledger;
    QsfMemCat cat;
    const char *name;     /* static storage, for reports */
    QsfArenaBlock *head;  /* newest block first */
    size_t block_bytes;   /* size of the next ordinary block */
    size_t used, reserved;
    bool frozen;          /* an allocation while frozen fails: the token loop allocates nothing */
} QsfArena;

/* Allocates nothing yet. block_bytes is rounded up to a page; 0 = 64 KiB. */
void qsf_arena_init(QsfArena *a, QsfLedger *ledger, QsfMemCat cat, const char *name, size_t block_bytes);
/* size zeroed bytes aligned to align (a power of two up to 4096; 0 = 64, a cache line and the widest vector),
 * or NULL with *err set (QSF_E_BUDGET, or QSF_E_RUNTIME when frozen or out of memory). size 0 gives a valid
 * pointer. */
void *qsf_arena_alloc(QsfArena *a, size_t size, size_t align, QsfErr *err);
/* Copy of len bytes plus a NUL. */
char *qsf_arena_strdup(QsfArena *a, const char *s, size_t len, QsfErr *err);
void qsf_arena_freeze(QsfArena *a, bool frozen);
/* Forgets all allocations but keeps the newest block. */
void qsf_arena_reset(QsfArena *a);
void qsf_arena_destroy(QsfArena *a);

#endif
