/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether a value is valid for a schema: which values of const and enum agree with its other keywords. */
#include <math.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/grammar/schema.h"

#define CHECK_DEPTH 100u

/* Has it no digits after the point? */
static bool is_whole(QsfSchema *s, const QsfJson *v, uint32_t path) {
    const double n = qsf_value_number(v);
    QsfDecimal d;
    size_t len;
    if (qsf_schema_exact(s, v, &len) == NULL) return n == floor(n);
    return qsf_schema_decimal(s, v, path, &d) && d.n_part == 0;
}

static uint32_t type_of(QsfSchema *s, const QsfJson *v, uint32_t path) {
    static const uint32_t types[] = { [QSF_JSON_NULL] = QSF_TYPE_NULL,     [QSF_JSON_BOOL] = QSF_TYPE_BOOL,
                                      [QSF_JSON_INT] = QSF_TYPE_INTEGER,   [QSF_JSON_REAL] = QSF_TYPE_REAL,
                                      [QSF_JSON_STRING] = QSF_TYPE_STRING, [QSF_JSON_ARRAY] = QSF_TYPE_ARRAY,
                                      [QSF_JSON_OBJECT] = QSF_TYPE_OBJECT };
    if (qsf_value_is_number(v) && is_whole(s, v, path)) return QSF_TYPE_INTEGER;
    return types[qsf_json_type(v)];
}

/* Compares with a bound, if there is one; sign 1: v has to be above it. */
static bool in_bound(QsfSchema *s, const QsfJson *schema, const char *key, const QsfJson *v, int sign) {
    const QsfJson *b = qsf_json_get(schema, key);
    if (!qsf_value_is_number(b)) return true;
    const int order = qsf_value_compare(s, v, b) * sign;
    return key[0] == 'e' ? order > 0 : order >= 0;
}

static bool valid_number(QsfSchema *s, const QsfJson *v, const QsfJson *schema) {
    return in_bound(s, schema, "minimum", v, 1) && in_bound(s, schema, "exclusiveMinimum", v, 1) &&
           in_bound(s, schema, "maximum", v, -1) && in_bound(s, schema, "exclusiveMaximum", v, -1);
}

static bool accepts(QsfSchema *s, QsfGraph *g, const char *text, size_t len) {
    const bool ok = g != NULL && qsf_gbuild_step(s->b, (uint64_t)g->n * (len + 1) / 8) &&
                    qsf_graph_accepts(g, text, len);
    qsf_graph_free(g);
    return ok;
}

static bool valid_string(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    const QsfSchemaPart part = { schema, path, 0 };
    const QsfJson *pattern = qsf_json_get(schema, "pattern"), *format = qsf_json_get(schema, "format");
    size_t len, codes = 0;
    uint32_t n, code;
    const char *text = qsf_json_string(v, &len);
    if (!qsf_gbuild_step(s->b, len / 8)) return false;
    for (size_t i = 0; i < len; codes++) i += qsf_utf8_next(text + i, len - i, &code);
    if (qsf_schema_count(s, &part, "minLength", &n) && codes < n) return false;
    if (qsf_schema_count(s, &part, "maxLength", &n) && codes > n) return false;
    if (pattern != NULL &&
        !accepts(s, qsf_schema_pattern(s, pattern, qsf_schema_at(s, path, "pattern")), text, len))
        return false;
    return format == NULL ||
           accepts(s, qsf_schema_format(s, format, qsf_schema_at(s, path, "format")), text, len);
}

static bool valid_array(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    const QsfSchemaPart part = { schema, path, 0 };
    const QsfJson *items = qsf_json_get(schema, "items");
    const bool list = items != NULL && qsf_json_type(items) == QSF_JSON_ARRAY;
    const QsfJson *tuple = list ? items : qsf_json_get(schema, "prefixItems");
    const QsfJson *rest = list ? qsf_json_get(schema, "additionalItems") : items;
    const size_t size = qsf_json_size(v), n_tuple = tuple != NULL ? qsf_json_size(tuple) : 0;
    uint32_t n;
    if (qsf_schema_count(s, &part, "minItems", &n) && size < n) return false;
    if (qsf_schema_count(s, &part, "maxItems", &n) && size > n) return false;
    for (size_t i = 0; i < size; i++) {
        const QsfJson *one = i < n_tuple ? qsf_json_at(tuple, i) : rest;
        if (one != NULL && !qsf_schema_valid(s, qsf_json_at(v, i), one, path)) return false;
    }
    return true;
}

static bool valid_object(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    const QsfJson *all = qsf_json_get(schema, "properties"), *required = qsf_json_get(schema, "required"), *w;
    const QsfJson *rest = qsf_json_get(schema, "additionalProperties");
    const char *key;
    for (size_t i = 0; required != NULL && i < qsf_json_size(required); i++) {
        const char *name = qsf_json_string(qsf_json_at(required, i), NULL);
        if (!qsf_gbuild_step(s->b, 8) || (name != NULL && qsf_json_get(v, name) == NULL)) return false;
    }
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &w)) != NULL;) {
        const QsfJson *one = qsf_json_get(all, key);
        if (one == NULL) one = rest;
        if (one != NULL && !qsf_schema_valid(s, w, one, path)) return false;
    }
    return qsf_presence_valid(s, v, schema);
}

static bool valid_values(QsfSchema *s, const QsfJson *v, const QsfJson *schema) {
    const QsfJson *one = qsf_json_get(schema, "const"), *list = qsf_json_get(schema, "enum");
    if (one != NULL && !qsf_value_equal(s, v, one)) return false;
    return list == NULL || qsf_value_in(s, v, list);
}

/* How many schemas of the list are valid for v. */
static size_t count_valid(QsfSchema *s, const QsfJson *v, const QsfJson *list, uint32_t path) {
    size_t n = 0;
    for (size_t i = 0; i < qsf_json_size(list) && !s->b->failed; i++)
        n += qsf_schema_valid(s, v, qsf_json_at(list, i), path);
    return n;
}

static bool valid_combined(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    const QsfJson *all = qsf_json_get(schema, "allOf"), *any = qsf_json_get(schema, "anyOf");
    const QsfJson *one = qsf_json_get(schema, "oneOf"), *ref = qsf_json_get(schema, "$ref");
    uint32_t where;
    if (all != NULL && count_valid(s, v, all, path) != qsf_json_size(all)) return false;
    if (any != NULL && count_valid(s, v, any, path) == 0) return false;
    if (one != NULL && count_valid(s, v, one, path) != 1) return false;
    const QsfJson *to = ref != NULL ? qsf_schema_ref(s, ref, path, &where) : NULL;
    return ref == NULL || (to != NULL && qsf_schema_valid(s, v, to, path));
}

static bool valid_typed(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    switch (qsf_json_type(v)) {
    case QSF_JSON_INT:
    case QSF_JSON_REAL: return valid_number(s, v, schema);
    case QSF_JSON_STRING: return valid_string(s, v, schema, path);
    case QSF_JSON_ARRAY: return valid_array(s, v, schema, path);
    case QSF_JSON_OBJECT: return valid_object(s, v, schema, path);
    default: return true;
    }
}

bool qsf_schema_valid(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path) {
    bool ok = false;
    if (!qsf_gbuild_step(s->b, 50)) return false;
    schema = qsf_schema_follow(s, schema, path);
    if (schema == NULL) return false;
    if (qsf_json_type(schema) == QSF_JSON_BOOL) return qsf_json_bool(schema, true);
    if (++s->depth > CHECK_DEPTH)
        qsf_schema_fail(s, path, "schemas or values are nested more than %u deep", CHECK_DEPTH);
    else
        ok = qsf_schema_known(s, schema, path) &&
             (qsf_schema_types(s, schema, path) & type_of(s, v, path)) != 0 && valid_values(s, v, schema) &&
             valid_typed(s, v, schema, path) && valid_combined(s, v, schema, path);
    s->depth--;
    return ok && !s->b->failed;
}
