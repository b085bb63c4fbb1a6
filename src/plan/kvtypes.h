/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the KV cache stores K and V: the properties of each type (one row of a table), and which type a cache
 * gets. K and V may have different types. Pure. */
#ifndef QSF_PLAN_KVTYPES_H
#define QSF_PLAN_KVTYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"
#include "src/model/program.h"

typedef struct QsfKvTypes {
    qk_kv k, v;
} QsfKvTypes;

/* Returns the type with this name; QK_KV_N for any other word. */
qk_kv qsf_kv_type_parse(const char *name);
/* Returns the bits of an element, without scales. */
unsigned qsf_kv_type_bits(qk_kv type);
static inline bool qsf_kv_types_equal(QsfKvTypes a, QsfKvTypes b) { return a.k == b.k && a.v == b.v; }
/* Returns for K, and for V, the type of a or b with fewer bits. */
QsfKvTypes qsf_kv_types_less(QsfKvTypes a, QsfKvTypes b);
/* Writes "f16", or "q8/q4" where K and V differ. */
void qsf_kv_types_print(QsfKvTypes t, char *dst, size_t cap);
#define QSF_KV_TYPES_TEXT 16

/* Returns the type in which a cache stores K (which 0) or V (1): that of t, or t.k where V is K. A type that
 * the cache cannot have is replaced by the next one with more bits that it can have. */
qk_kv qsf_kv_stored(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);
/* Returns the types that n caches have in the end, those with the fewest bits if they differ; for V, of the
 * caches that have one, if there is one. */
QsfKvTypes qsf_kv_types_used(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t);
/* The same, those with the most bits. */
QsfKvTypes qsf_kv_types_most(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t);
/* Returns the bytes of a tile of them. */
size_t qsf_kv_tile(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);

/* A type of 2 bits is not precise enough for the first positions, to which much attention goes, and the
 * latest ones. These are also held in another type, and read there: the first tile, the tile of the query,
 * and the two before it, so that a query sees itself and at least QSF_KV_RECENT positions before it. Which
 * positions it reads in which type depends on its own position only. */
#define QSF_KV_RECENT       32u
#define QSF_KV_RECENT_TILES 4u
/* Returns whether a cache holds recent positions by themselves: those of both K and V, if one
 * of them has such a type. */
bool qsf_kv_has_recent(const QsfKvSpec *spec, QsfKvTypes t);
/* Returns the type of K (which 0) or V there: q8, or where that is precise enough the one of all positions;
 * and the bytes of a tile. */
qk_kv qsf_kv_recent_type(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);
size_t qsf_kv_recent_tile(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);

/* The types that a plan chooses from, the best first: 0 is f16 for both. Those that do not
 * exist are left out. */
unsigned qsf_kv_choices(void);
QsfKvTypes qsf_kv_choice(unsigned i);

#endif
