/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether two schemas of a oneOf exclude each other: by type, by values, by bounds, by a property that is
 * required in one of them and different or forbidden in the other. Careful: where it is not certain, no. */
#include "src/grammar/schema.h"

#define APART_DEPTH 20u

/* only: types that the value may have. */
static bool apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only,
                  unsigned depth);

/* a lists its values, and b allows none of them. */
static bool values_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path) {
    const QsfJson *one = qsf_json_get(a, "const"), *list = qsf_json_get(a, "enum");
    if (one != NULL) return !qsf_schema_valid(s, one, b, path);
    if (list == NULL || qsf_json_type(list) != QSF_JSON_ARRAY) return false;
    for (size_t i = 0; i < qsf_json_size(list); i++)
        if (qsf_schema_valid(s, qsf_json_at(list, i), b, path)) return false;
    return true;
}

/* A name that a requires: b forbids it, or demands something else of it. */
static bool required_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, unsigned depth) {
    const QsfJson *required = qsf_json_get(a, "required");
    const QsfJson *in_a = qsf_json_get(a, "properties"), *in_b = qsf_json_get(b, "properties");
    for (size_t i = 0; required != NULL && i < qsf_json_size(required) && qsf_gbuild_step(s->b, 20); i++) {
        const char *name = qsf_json_string(qsf_json_at(required, i), NULL);
        const QsfJson *x = name != NULL ? qsf_json_get(in_a, name) : NULL;
        const QsfJson *y = name != NULL ? qsf_json_get(in_b, name) : NULL;
        if (y == NULL) y = qsf_json_get(b, "additionalProperties");
        if (qsf_json_is(y, false)) return true;
        if (x != NULL && y != NULL && apart(s, x, y, path, QSF_TYPE_ALL, depth)) return true;
    }
    return false;
}

static bool above(QsfSchema *s, const QsfJson *low, const char *min, const QsfJson *high, const char *max) {
    const QsfJson *a = qsf_json_get(low, min), *b = qsf_json_get(high, max);
    if (!qsf_value_is_number(a) || !qsf_value_is_number(b)) return false;
    const int order = qsf_value_compare(s, a, b);
    return min[0] == 'e' || max[0] == 'e' ? order >= 0 : order > 0;
}

/* The least of a is above the most of b, for the only type that both may have. */
static bool bounds_apart(QsfSchema *s, uint32_t types, const QsfJson *a, const QsfJson *b) {
    if ((types & ~(uint32_t)(QSF_TYPE_INTEGER | QSF_TYPE_REAL)) == 0)
        return above(s, a, "minimum", b, "maximum") || above(s, a, "exclusiveMinimum", b, "maximum") ||
               above(s, a, "minimum", b, "exclusiveMaximum") ||
               above(s, a, "exclusiveMinimum", b, "exclusiveMaximum");
    if (types == QSF_TYPE_STRING) return above(s, a, "minLength", b, "maxLength");
    return types == QSF_TYPE_ARRAY && above(s, a, "minItems", b, "maxItems");
}

/* One of the schemas that hold in a, or each of those that it chooses from, is apart from b. */
static bool inner_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only,
                        unsigned depth) {
    static const char *const keys[] = { "allOf", "anyOf", "oneOf" };
    for (unsigned k = 0; k < 3; k++) {
        const QsfJson *list = qsf_json_get(a, keys[k]);
        size_t n = 0;
        if (list == NULL || qsf_json_size(list) == 0) continue;
        for (size_t i = 0; i < qsf_json_size(list); i++)
            n += apart(s, qsf_json_at(list, i), b, path, only, depth);
        if (k == 0 ? n > 0 : n == qsf_json_size(list)) return true;
    }
    return false;
}

static bool ref_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only,
                      unsigned depth) {
    uint32_t where;
    const QsfJson *ref = qsf_json_get(a, "$ref");
    const QsfJson *to = ref != NULL ? qsf_schema_ref(s, ref, path, &where) : NULL;
    return to != NULL && apart(s, to, b, path, only, depth);
}

static bool half_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only,
                       unsigned depth) {
    const uint32_t types = only & qsf_schema_types(s, a, path) & qsf_schema_types(s, b, path);
    return values_apart(s, a, b, path) || bounds_apart(s, types, a, b) ||
           (types == QSF_TYPE_OBJECT && required_apart(s, a, b, path, depth)) ||
           inner_apart(s, a, b, path, only, depth) || ref_apart(s, a, b, path, only, depth);
}

static bool apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only,
                  unsigned depth) {
    if (!qsf_gbuild_step(s->b, 100) || depth > APART_DEPTH) return false;
    a = qsf_schema_follow(s, a, path);
    b = qsf_schema_follow(s, b, path);
    if (qsf_json_is(a, false) || qsf_json_is(b, false)) return true;
    if (qsf_json_type(a) != QSF_JSON_OBJECT || qsf_json_type(b) != QSF_JSON_OBJECT) return false;
    if ((only & qsf_schema_types(s, a, path) & qsf_schema_types(s, b, path)) == 0) return !s->b->failed;
    return half_apart(s, a, b, path, only, depth + 1) || half_apart(s, b, a, path, only, depth + 1);
}

bool qsf_schema_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t only) {
    return apart(s, a, b, path, only, 0);
}
