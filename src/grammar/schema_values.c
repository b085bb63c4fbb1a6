/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Equal values of JSON, and lists of them, which are put into tables because every value of an enum is looked
 * up in its own list and in those of other schemas. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hashmap.h"
#include "src/grammar/schema.h"

#define FEW 16u /* values that are compared one by one */

double qsf_value_number(const QsfJson *v) {
    return qsf_json_type(v) == QSF_JSON_INT ? (double)qsf_json_int(v, 0) : qsf_json_real(v, 0);
}

bool qsf_value_is_number(const QsfJson *v) {
    return v != NULL && (qsf_json_type(v) == QSF_JSON_INT || qsf_json_type(v) == QSF_JSON_REAL);
}

int qsf_value_compare(QsfSchema *s, const QsfJson *a, const QsfJson *b) {
    const double x = qsf_value_number(a), y = qsf_value_number(b);
    QsfDecimal p, q;
    if (!qsf_gbuild_step(s->b, 2)) return 0;
    if (x != y) return x < y ? -1 : 1;
    if (s->n_exact == 0 && fabs(x) < 9007199254740992.0) return 0; /* 2^53 */
    if (!qsf_gbuild_step(s->b, 100)) return 0;
    if (!qsf_schema_decimal(s, a, 0, &p) || !qsf_schema_decimal(s, b, 0, &q)) return 0;
    return qsf_decimal_compare(&p, &q);
}

static bool equal_objects(QsfSchema *s, const QsfJson *a, const QsfJson *b) {
    const char *key;
    const QsfJson *v;
    for (const void *it = NULL; (it = qsf_json_next(a, it, &key, &v)) != NULL;) {
        const QsfJson *w = qsf_json_get(b, key);
        if (w == NULL || !qsf_value_equal(s, v, w)) return false;
    }
    return true;
}

bool qsf_value_equal(QsfSchema *s, const QsfJson *a, const QsfJson *b) {
    const QsfJsonType t = qsf_json_type(a);
    size_t n = 0, m = 0;
    if (!qsf_gbuild_step(s->b, 2)) return false;
    if (qsf_value_is_number(a) && qsf_value_is_number(b))
        return qsf_value_compare(s, a, b) == 0 && !s->b->failed;
    if (t != qsf_json_type(b)) return false;
    if (t == QSF_JSON_BOOL) return qsf_json_bool(a, false) == qsf_json_bool(b, false);
    if (t == QSF_JSON_STRING) {
        const char *x = qsf_json_string(a, &n), *y = qsf_json_string(b, &m);
        return n == m && qsf_gbuild_step(s->b, n / 256) && memcmp(x, y, n) == 0;
    }
    if (t == QSF_JSON_NULL) return true;
    if (qsf_json_size(a) != qsf_json_size(b)) return false;
    if (t == QSF_JSON_OBJECT) return equal_objects(s, a, b);
    for (size_t i = 0; i < qsf_json_size(a); i++)
        if (!qsf_value_equal(s, qsf_json_at(a, i), qsf_json_at(b, i))) return false;
    return true;
}

/* --- tables --- */

static uint64_t hash(QsfSchema *s, const QsfJson *v);

/* In any order of the members. */
static uint64_t hash_object(QsfSchema *s, const QsfJson *v) {
    uint64_t h = QSF_JSON_OBJECT;
    const char *key;
    const QsfJson *w;
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &w)) != NULL;)
        h += qsf_hash_bytes(key, strlen(key)) * 31 ^ hash(s, w);
    return h;
}

/* Equal values have the same. */
static uint64_t hash(QsfSchema *s, const QsfJson *v) {
    const QsfJsonType t = qsf_json_type(v);
    uint64_t h = t;
    size_t n = 0;
    if (!qsf_gbuild_step(s->b, 2)) return 0;
    if (qsf_value_is_number(v)) {
        const double d = qsf_value_number(v) + 0.0; /* -0 becomes 0 */
        return qsf_hash_bytes(&d, sizeof d);
    }
    if (t == QSF_JSON_BOOL) return h * 2 + qsf_json_bool(v, false);
    if (t == QSF_JSON_STRING) {
        const char *text = qsf_json_string(v, &n);
        return qsf_gbuild_step(s->b, n / 16) ? qsf_hash_bytes(text, n) : 0;
    }
    if (t == QSF_JSON_OBJECT) return hash_object(s, v);
    for (size_t i = 0; t == QSF_JSON_ARRAY && i < qsf_json_size(v); i++)
        h = h * 0x100000001b3u + hash(s, qsf_json_at(v, i));
    return h;
}

static uint32_t slot_of(const QsfValueSet *set, uint64_t h) {
    return (uint32_t)((h * 0x9E3779B97F4A7C15u) >> 32) & (set->n_slots - 1);
}

static void fill(QsfSchema *s, QsfValueSet *set, const QsfJson *list) {
    const uint32_t n = (uint32_t)qsf_json_size(list);
    free(set->slot);
    *set = (QsfValueSet){ .list = list, .n_slots = 64 };
    while (set->n_slots < n * 2) set->n_slots *= 2;
    set->slot = calloc(set->n_slots, sizeof *set->slot);
    if (set->slot == NULL) qsf_gbuild_no_memory(s->b);
    for (uint32_t i = 0; i < n && !s->b->failed; i++) {
        uint32_t k = slot_of(set, hash(s, qsf_json_at(list, i)));
        while (set->slot[k] > 0 && qsf_gbuild_step(s->b, 1)) k = (k + 1) & (set->n_slots - 1);
        set->slot[k] = i + 1;
    }
}

/* The table of a list: one of the last few, or a new one. */
static const QsfValueSet *set_of(QsfSchema *s, const QsfJson *list) {
    for (uint32_t i = 0; i < QSF_SCHEMA_SETS; i++)
        if (s->sets[i].list == list) return &s->sets[i];
    QsfValueSet *set = &s->sets[s->n_sets++ % QSF_SCHEMA_SETS];
    fill(s, set, list);
    return set;
}

bool qsf_value_in(QsfSchema *s, const QsfJson *v, const QsfJson *list) {
    const size_t n = qsf_json_size(list);
    for (size_t i = 0; i < n && n <= FEW; i++)
        if (qsf_value_equal(s, v, qsf_json_at(list, i))) return true;
    if (n <= FEW) return false;
    const QsfValueSet *set = set_of(s, list);
    if (s->b->failed) return false;
    for (uint32_t k = slot_of(set, hash(s, v)); set->slot[k] > 0 && !s->b->failed;
         k = (k + 1) & (set->n_slots - 1))
        if (qsf_value_equal(s, v, qsf_json_at(list, set->slot[k] - 1))) return true;
    return false;
}

void qsf_values_free(QsfSchema *s) {
    for (uint32_t i = 0; i < QSF_SCHEMA_SETS; i++) free(s->sets[i].slot);
}
