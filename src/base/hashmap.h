/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte string -> int32, open addressing, keys not copied: the table stores only 32-bit ids and asks
 * the owner for the bytes of an id, which keeps a 128k-entry vocabulary under 1.1 MB. */
#ifndef QSF_BASE_HASHMAP_H
#define QSF_BASE_HASHMAP_H

#include "src/base/arena.h"

/* Bytes of the key with this id; *len its length. Must be pure. */
typedef const char *(*QsfKeyFn)(const void *owner, int32_t id, size_t *len);

typedef struct QsfHashmap {
    const void *owner;
    QsfKeyFn key;
    int32_t *slots;    /* (n_slots), -1 = empty */
    uint32_t n_slots;  /* power of two, at least 4/3 of the entries */
    uint32_t n;
} QsfHashmap;

/* Room for n entries from the arena. */
int qsf_hashmap_init(QsfHashmap *m, QsfArena *a, uint32_t n, QsfKeyFn key, const void *owner, QsfErr *err);
/* Adds id unless its key is there already (then the first one stays). Returns the id now stored
 * for the key. Never allocates; the capacity given to init must not be exceeded. */
int32_t qsf_hashmap_put(QsfHashmap *m, int32_t id);
/* Id of the key, or -1. */
int32_t qsf_hashmap_get(const QsfHashmap *m, const char *key, size_t len);
uint64_t qsf_hash_bytes(const void *p, size_t len);

#endif
