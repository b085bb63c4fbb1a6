/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the KV cache stores K and V: what is known of each type (one row of a table), and which type a cache gets. K and V
 * may have different types. Pure. */
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
/* Of each of K and V, the type with fewer bits. */
QsfKvTypes qsf_kv_types_less(QsfKvTypes a, QsfKvTypes b);
/* Writes "f16", or "q8/q4" where K and V differ. */
void qsf_kv_types_print(QsfKvTypes t, char *dst, size_t cap);
#define QSF_KV_TYPES_TEXT 16

/* Returns how a cache stores K (which 0) or V (1): as t says, where V is K as t.k says. What a cache cannot have becomes the
 * next type with more bits that it can have. */
qk_kv qsf_kv_stored(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);
/* Returns the types that n caches have in the end, those with the fewest bits if they differ; for V, of the caches that have
 * one, if there is one. */
QsfKvTypes qsf_kv_types_used(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t);
/* Returns the bytes of a tile of them. */
size_t qsf_kv_tile(const QsfKvSpec *spec, QsfKvTypes t, unsigned which);

/* The types that a plan chooses from, the best first: 0 is f16 for both. Those that do not exist are left out. */
unsigned qsf_kv_choices(void);
QsfKvTypes qsf_kv_choice(unsigned i);

#endif
