/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays of a JSON Schema: first the elements that have their own schema, then those of `items`. Behind
 * elements with schemas of their own there are others only if `items` says so. */
#include "src/grammar/schema.h"

typedef struct Arrays {
    uint32_t min, max, tuple; /* elements; those with schemas of their own */
    bool closed;              /* none behind the tuple */
    const char *why;          /* what closes it */
} Arrays;

/* The schemas of the first elements: prefixItems, or items as a list; NULL if there are none. */
static const QsfJson *tuple_of(const QsfJson *schema, const char **key) {
    const QsfJson *items = qsf_json_get(schema, "items");
    *key = qsf_json_type(items) == QSF_JSON_ARRAY && items != NULL ? "items" : "prefixItems";
    return qsf_json_get(schema, *key);
}

/* The schema of the elements behind them, NULL = not given. */
static const QsfJson *rest_of(const QsfJson *schema, const char **key) {
    const QsfJson *items = qsf_json_get(schema, "items");
    *key = items != NULL && qsf_json_type(items) == QSF_JSON_ARRAY ? "additionalItems" : "items";
    return qsf_json_get(schema, *key);
}

static void add_part(QsfSchema *s, const QsfSchemaPart *p, Arrays *a) {
    const char *key, *rest_key;
    const QsfJson *tuple = tuple_of(p->schema, &key), *rest = rest_of(p->schema, &rest_key);
    uint32_t n;
    if (qsf_schema_count(s, p, "minItems", &n) && n > a->min) a->min = n;
    if (qsf_schema_count(s, p, "maxItems", &n) && n < a->max) a->max = n;
    if (qsf_json_get(p->schema, "additionalItems") != NULL && rest_key[0] == 'i')
        qsf_schema_fail(s, qsf_schema_at(s, p->path, "additionalItems"),
                        "additionalItems is only supported beside items as a list");
    const uint32_t count = tuple != NULL ? (uint32_t)qsf_json_size(tuple) : 0;
    if (tuple != NULL && qsf_json_size(tuple) > QSF_SCHEMA_TUPLE)
        qsf_schema_fail(s, qsf_schema_at(s, p->path, key), "%s has more than %u schemas", key,
                        QSF_SCHEMA_TUPLE);
    if (count > a->tuple) a->tuple = count;
    if (qsf_json_is(rest, false) || (tuple != NULL && rest == NULL)) {
        a->closed = true;
        a->why = rest != NULL ? rest_key : key;
        if (count < a->max) a->max = count;
    }
}

/* The rule of element i, or of those behind the tuple. */
static uint32_t element(QsfSchema *s, const QsfSchemaParts *p, uint32_t i) {
    QsfSchemaParts parts = { .n = 0 };
    for (uint32_t k = 0; k < p->n && !s->b->failed; k++) {
        const char *key;
        const QsfJson *tuple = tuple_of(p->part[k].schema, &key), *v;
        const bool own = tuple != NULL && i < qsf_json_size(tuple);
        v = own ? qsf_json_at(tuple, i) : rest_of(p->part[k].schema, &key);
        if (v == NULL) continue;
        const uint32_t path = qsf_schema_at(s, p->part[k].path, key);
        qsf_parts_add(s, &parts, v, own ? qsf_schema_at_index(s, path, i) : path);
    }
    return s->b->failed ? 0 : qsf_schema_rule(s, &parts);
}

/* The elements behind the tuple, of which lo to hi follow. */
static uint32_t behind(QsfSchema *s, const QsfSchemaParts *p, const Arrays *a) {
    const uint32_t n = a->tuple, lo = a->min > n ? a->min - n : 0;
    const uint32_t hi = a->max == QSF_NO_LIMIT ? QSF_NO_LIMIT : a->max > n ? a->max - n : 0;
    if (hi == 0) return qsf_node_empty(s->b);
    const uint32_t again = qsf_schema_pair(s, qsf_schema_comma(s), element(s, p, n));
    if (n > 0) return qsf_node_repeat(s->b, again, lo, hi);
    const uint32_t more = qsf_node_repeat(s->b, again, lo > 0 ? lo - 1 : 0, hi == QSF_NO_LIMIT ? hi : hi - 1);
    const uint32_t all = qsf_schema_pair(s, element(s, p, n), more);
    return lo > 0 ? all : qsf_node_repeat(s->b, all, 0, 1);
}

uint32_t qsf_schema_array(QsfSchema *s, const QsfSchemaParts *p) {
    Arrays a = { .max = QSF_NO_LIMIT };
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) add_part(s, &p->part[i], &a);
    if (s->b->failed) return 0;
    if (a.min > a.max)
        return qsf_schema_fail(s, p->part[p->n - 1].path,
                               "minItems %u is above what %s allows, %u: nothing is valid", a.min,
                               a.closed ? a.why : "maxItems", a.max);
    if (a.tuple > a.max) a.tuple = a.max;
    uint32_t at = behind(s, p, &a);
    for (uint32_t i = a.tuple; i-- > 0 && !s->b->failed;) {
        uint32_t one = element(s, p, i);
        if (i > 0) one = qsf_schema_pair(s, qsf_schema_comma(s), one);
        at = qsf_schema_pair(s, one, at);
        if (i >= a.min) at = qsf_node_repeat(s->b, at, 0, 1);
    }
    const uint32_t list = qsf_schema_pair(s, qsf_node_text(s->b, "["), at);
    qsf_node_add(s->b, list, qsf_node_text(s->b, "]"));
    return list;
}
