/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a model's own metadata keys, "<architecture>.<name>", with range checks. Errors are QSF_E_MODEL and
 * name file, key and value. */
#ifndef QSF_MODEL_KEYS_H
#define QSF_MODEL_KEYS_H

#include "src/file/source.h"
#include "src/model/reads.h"

#define QSF_KEY_MAX 256

typedef struct QsfKeys {
    const QsfSource *src; /* NULL: every key is absent */
    const char *arch;
    QsfErr *err;
    QsfReads *reads; /* what is looked for is recorded here; NULL = nowhere. Names of keys must be static. */
    char key[QSF_KEY_MAX]; /* the last key that was read, for messages */
    const char *bound;     /* name of the key that limits the next integer to be read, for
                              messages; NULL = none */
    uint32_t n_extra;      /* arrays of one number per block may leave out this many at the end */
} QsfKeys;

/* Sets k->key to "<arch>.<name>" and returns it. */
const char *qsf_keys_name(QsfKeys *k, const char *name);
/* Is there a key "<arch>.<name>"? */
bool qsf_keys_has(QsfKeys *k, const char *name);
/* Is it an array (of integers)? */
bool qsf_keys_is_array(QsfKeys *k, const char *name);
/* Sets an error about the last key: "FILE: metadata key 'KEY' WHAT". Returns QSF_E_MODEL. */
int qsf_keys_bad(const QsfKeys *k, const char *what);

/* Read a number from low to high; fallback, which is not checked, if the key is absent. */
int qsf_keys_u32(QsfKeys *k, const char *name, uint32_t fallback, uint32_t low, uint32_t high, uint32_t *out);
int qsf_keys_f32(QsfKeys *k, const char *name, float fallback, float low, float high, float *out);
int qsf_keys_bool(QsfKeys *k, const char *name, bool fallback, bool *out);
/* The same for a key that must be there. */
int qsf_keys_need_u32(QsfKeys *k, const char *name, uint32_t low, uint32_t high, uint32_t *out);
int qsf_keys_need_f32(QsfKeys *k, const char *name, float low, float high, float *out);
/* Reads a string; fallback if the key is absent. */
int qsf_keys_str(QsfKeys *k, const char *name, const char *fallback, const char **out);
/* Reads n numbers from low to high: the elements of an array of n, or n copies of a single number
 * or of the fallback if the key is absent. An array of n - k->n_extra is followed by copies of the
 * fallback. Arrays of bool count as 0 and 1. */
int qsf_keys_u32_each(QsfKeys *k, const char *name, uint32_t fallback, uint32_t low, uint32_t high,
                      uint32_t n, uint32_t *out);
/* Reads an array of min to max numbers from low to high, the rest of out (max) is 0; or max copies of a
 * single number, 0 if the key is absent. */
int qsf_keys_u32_list(QsfKeys *k, const char *name, uint32_t low, uint32_t high, uint32_t min, uint32_t max,
                      uint32_t *out);
int qsf_keys_f32_each(QsfKeys *k, const char *name, float fallback, float low, float high, uint32_t n,
                      float *out);

#endif
