/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hash table from byte strings to int32 ids, with open addressing. Keys are not copied: the table stores only
 * ids and calls back for the bytes of an id, so a vocabulary of 128k entries needs less than 1.1 MB. */
#ifndef QSF_BASE_HASHMAP_H
#define QSF_BASE_HASHMAP_H

#include "src/base/arena.h"

/* Returns the bytes of the key with this id and sets *len. Must be pure. */
typedef const char *(*QsfKeyFn)(const void *owner, int32_t id, size_t *len);

typedef struct QsfHashmap {
    const void *owner;
    QsfKeyFn key;
    int32_t *slots;   /* (n_slots), -1 = empty */
    uint32_t n_slots; /* power of two, at least 4/3 of the entries */
    uint32_t n;
} QsfHashmap;

/* Allocates space for n entries from the arena. Errors of qsf_arena_alloc. */
int qsf_hashmap_init(QsfHashmap *m, QsfArena *a, uint32_t n, QsfKeyFn key, const void *owner, QsfErr *err);
/* Adds id unless its key is already present; the first id is kept. Returns the id stored for the key. Never
 * allocates; the capacity given to init must not be exceeded. */
int32_t qsf_hashmap_put(QsfHashmap *m, int32_t id);
/* Returns the id of the key, or -1. */
int32_t qsf_hashmap_get(const QsfHashmap *m, const char *key, size_t len);
/* Returns a keyed hash (SipHash), different in each process: untrusted keys cannot be made to collide. */
uint64_t qsf_hash_bytes(const void *p, size_t len);

#endif
