/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which schemas count together: $ref, allOf; the names of keywords; types. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/grammar/schema.h"

#define REF_DEPTH 64

/* What the value of a keyword has to be. */
typedef enum Shape { ANY, NUMBER, TEXT, OBJECT, LIST, NAMES, DEPENDENTS, SCHEMA, SCHEMAS, ITEMS } Shape;

static const struct {
    const char *name;
    uint32_t types; /* bits of QsfJsonType */
} shapes[] = {
    [NUMBER] = { "a number", 1u << QSF_JSON_INT | 1u << QSF_JSON_REAL },
    [TEXT] = { "a text", 1u << QSF_JSON_STRING },
    [OBJECT] = { "an object", 1u << QSF_JSON_OBJECT },
    [LIST] = { "a list", 1u << QSF_JSON_ARRAY },
    [NAMES] = { "a list of names", 1u << QSF_JSON_ARRAY },
    [DEPENDENTS] = { "an object", 1u << QSF_JSON_OBJECT },
    [SCHEMA] = { "a schema", 1u << QSF_JSON_OBJECT | 1u << QSF_JSON_BOOL },
    [SCHEMAS] = { "a list of schemas", 1u << QSF_JSON_ARRAY },
    [ITEMS] = { "a schema or a list of schemas",
                1u << QSF_JSON_OBJECT | 1u << QSF_JSON_BOOL | 1u << QSF_JSON_ARRAY },
};

/* What a keyword is about: a type, or 0. */
typedef struct Keyword {
    const char *name;
    uint32_t type;
    Shape shape;
} Keyword;

static const Keyword keywords[] = {
    { "type", 0, ANY },
    { "enum", 0, LIST },
    { "const", 0, ANY },
    { "anyOf", 0, SCHEMAS },
    { "oneOf", 0, SCHEMAS },
    { "allOf", 0, SCHEMAS },
    { "$ref", 0, TEXT },
    { "$defs", 0, OBJECT },
    { "definitions", 0, OBJECT },
    { "properties", QSF_TYPE_OBJECT, OBJECT },
    { "required", QSF_TYPE_OBJECT, NAMES },
    { "dependencies", QSF_TYPE_OBJECT, DEPENDENTS },
    { "additionalProperties", QSF_TYPE_OBJECT, SCHEMA },
    { "items", QSF_TYPE_ARRAY, ITEMS },
    { "prefixItems", QSF_TYPE_ARRAY, SCHEMAS },
    { "additionalItems", QSF_TYPE_ARRAY, SCHEMA },
    { "minItems", QSF_TYPE_ARRAY, NUMBER },
    { "maxItems", QSF_TYPE_ARRAY, NUMBER },
    { "minLength", QSF_TYPE_STRING, NUMBER },
    { "maxLength", QSF_TYPE_STRING, NUMBER },
    { "pattern", QSF_TYPE_STRING, TEXT },
    { "format", QSF_TYPE_STRING, TEXT },
    { "minimum", QSF_TYPE_REAL | QSF_TYPE_INTEGER, NUMBER },
    { "maximum", QSF_TYPE_REAL | QSF_TYPE_INTEGER, NUMBER },
    { "exclusiveMinimum", QSF_TYPE_REAL | QSF_TYPE_INTEGER, NUMBER },
    { "exclusiveMaximum", QSF_TYPE_REAL | QSF_TYPE_INTEGER, NUMBER },
    /* they say nothing about values */
    { "title", 0, ANY },
    { "description", 0, ANY },
    { "default", 0, ANY },
    { "examples", 0, ANY },
    { "deprecated", 0, ANY },
    { "readOnly", 0, ANY },
    { "writeOnly", 0, ANY },
    { "contentMediaType", 0, ANY },
    { "contentEncoding", 0, ANY },
    { "$comment", 0, ANY },
    { "$schema", 0, ANY },
    { "$id", 0, ANY },
    { "$anchor", 0, ANY },
    { "$dynamicAnchor", 0, ANY }, /* $dynamicRef, which leads there, is refused */
};

static const Keyword *find_keyword(const char *name) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0) return &keywords[i];
    return NULL;
}

/* The names that each name needs. */
static void check_dependents(QsfSchema *s, const QsfJson *all, uint32_t path) {
    const char *name;
    const QsfJson *list;
    for (const void *it = NULL; !s->b->failed && (it = qsf_json_next(all, it, &name, &list)) != NULL;) {
        bool names = qsf_json_type(list) == QSF_JSON_ARRAY && list != NULL;
        if (!qsf_gbuild_step(s->b, qsf_json_size(list) + 1)) return;
        for (size_t i = 0; names && i < qsf_json_size(list); i++)
            names = qsf_json_string(qsf_json_at(list, i), NULL) != NULL;
        if (!names)
            qsf_schema_fail(s, qsf_schema_at(s, path, name),
                            "only a list of names is supported as what \"%.100s\" needs", name);
    }
}

static void check_shape(QsfSchema *s, const Keyword *k, const QsfJson *v, uint32_t path) {
    if (k->shape == DEPENDENTS && qsf_json_type(v) == QSF_JSON_OBJECT)
        check_dependents(s, v, qsf_schema_at(s, path, k->name));
    if (k->shape == ANY || (shapes[k->shape].types & 1u << qsf_json_type(v)) != 0) return;
    qsf_schema_fail(s, qsf_schema_at(s, path, k->name), "%s is not %s", k->name, shapes[k->shape].name);
}

bool qsf_schema_known(QsfSchema *s, const QsfJson *schema, uint32_t path) {
    const char *key;
    const QsfJson *v;
    for (const void *it = NULL;
         qsf_gbuild_step(s->b, 10) && (it = qsf_json_next(schema, it, &key, &v)) != NULL;) {
        const bool off = strcmp(key, "uniqueItems") == 0 && qsf_json_type(v) == QSF_JSON_BOOL &&
                         !qsf_json_bool(v, true);
        const Keyword *known = find_keyword(key);
        if (known != NULL)
            check_shape(s, known, v, path);
        else if (strncmp(key, "x-", 2) != 0 && !off)
            qsf_schema_fail(s, qsf_schema_at(s, path, key), "the keyword %s is not supported", key);
    }
    return !s->b->failed;
}

/* --- $ref --- */

const QsfJson *qsf_schema_ref(QsfSchema *s, const QsfJson *ref, uint32_t path, uint32_t *where) {
    const char *text = qsf_json_string(ref, NULL);
    *where = path;
    if (text == NULL) return qsf_schema_fail(s, path, "$ref is not a text"), NULL;
    if (text[0] != '#')
        return qsf_schema_fail(s, path,
                               "the $ref \"%.200s\" leads to another file or host: only references "
                               "within the schema (#/...) are followed",
                               text),
               NULL;
    if (text[1] != '\0' && text[1] != '/')
        return qsf_schema_fail(s, path, "the $ref \"%.200s\" names an anchor, which is not supported", text),
               NULL;
    const QsfJson *v = qsf_json_pointer(s->root, text);
    if (v == NULL) return qsf_schema_fail(s, path, "the $ref \"%.200s\" leads nowhere", text), NULL;
    if (qsf_json_type(v) == QSF_JSON_OBJECT || qsf_json_type(v) == QSF_JSON_BOOL) return v;
    return qsf_schema_fail(s, path, "the $ref \"%.200s\" does not lead to a schema", text), NULL;
}

const QsfJson *qsf_schema_follow(QsfSchema *s, const QsfJson *schema, uint32_t path) {
    const QsfJson *ref;
    uint32_t where;
    for (unsigned i = 0; s->draft7 && (ref = qsf_json_get(schema, "$ref")) != NULL; i++) {
        if (i > REF_DEPTH)
            return qsf_schema_fail(s, path, "the $ref leads only to itself: it is a loop"), NULL;
        schema = qsf_schema_ref(s, ref, path, &where);
    }
    return schema;
}

/* --- parts --- */

/* The schemas on the way, which must not come again. */
typedef struct Way {
    const QsfJson *schema;
    const struct Way *before;
    unsigned depth;
} Way;

static void add(QsfSchema *s, QsfSchemaParts *p, const QsfJson *schema, uint32_t path, const Way *before);

static void add_ref(QsfSchema *s, QsfSchemaParts *p, const QsfJson *ref, uint32_t path, const Way *way) {
    uint32_t where;
    path = qsf_schema_at(s, path, "$ref");
    const QsfJson *to = qsf_schema_ref(s, ref, path, &where);
    for (const Way *w = way; w != NULL && to != NULL; w = w->before) {
        if (w->schema != to) continue;
        qsf_schema_fail(s, path, "the $ref leads only to itself: it is a loop");
        return;
    }
    if (to != NULL) add(s, p, to, path, way);
}

static void add_all_of(QsfSchema *s, QsfSchemaParts *p, const QsfJson *list, uint32_t path, const Way *way) {
    path = qsf_schema_at(s, path, "allOf");
    for (size_t i = 0; i < qsf_json_size(list) && !s->b->failed; i++)
        add(s, p, qsf_json_at(list, i), qsf_schema_at_index(s, path, i), way);
}

/* Is it there? A schema whose anyOf or oneOf was taken apart must not come again behind it. */
static bool is_there(QsfSchema *s, const QsfSchemaParts *p, const QsfJson *schema, uint32_t path) {
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->part[i].schema != schema) continue;
        if (p->part[i].done & (QSF_PART_ANY_DONE | QSF_PART_ONE_DONE))
            qsf_schema_fail(s, path, "the schema leads only to itself: it is a loop");
        return true;
    }
    return false;
}

static void add(QsfSchema *s, QsfSchemaParts *p, const QsfJson *schema, uint32_t path, const Way *before) {
    const Way way = { schema, before, before != NULL ? before->depth + 1 : 0 };
    if (!qsf_gbuild_step(s->b, 20 + p->n)) return;
    if (s->b->failed) return;
    if (way.depth > REF_DEPTH) {
        qsf_schema_fail(s, path, "$ref and allOf are nested more than %d deep", REF_DEPTH);
    } else if (qsf_json_type(schema) == QSF_JSON_BOOL) {
        if (!qsf_json_bool(schema, true)) qsf_schema_fail(s, path, "nothing is valid for false");
    } else if (qsf_json_type(schema) != QSF_JSON_OBJECT) {
        qsf_schema_fail(s, path, "a schema is an object, true or false");
    } else if (!is_there(s, p, schema, path) && qsf_schema_known(s, schema, path)) {
        const QsfJson *ref = qsf_json_get(schema, "$ref"), *all = qsf_json_get(schema, "allOf");
        const bool only_ref = ref != NULL && s->draft7; /* draft 7 ignores its other keywords */
        if (p->n == QSF_SCHEMA_PARTS) {
            qsf_schema_fail(s, path, "more than %u schemas have to hold together", QSF_SCHEMA_PARTS);
            return;
        }
        if (!only_ref) p->part[p->n++] = (QsfSchemaPart){ schema, path, QSF_PART_FLAT };
        if (ref != NULL) add_ref(s, p, ref, path, &way);
        if (all != NULL && !only_ref) add_all_of(s, p, all, path, &way);
    }
}

void qsf_parts_add(QsfSchema *s, QsfSchemaParts *p, const QsfJson *schema, uint32_t path) {
    add(s, p, schema, path, NULL);
}

/* --- values of keywords --- */

bool qsf_schema_count(QsfSchema *s, const QsfSchemaPart *p, const char *key, uint32_t *out) {
    const QsfJson *v = qsf_json_get(p->schema, key);
    if (v == NULL) return false;
    const double n = qsf_json_type(v) == QSF_JSON_INT ? (double)qsf_json_int(v, 0) : qsf_json_real(v, -1);
    if (n < 0 || n != floor(n) || (qsf_json_type(v) != QSF_JSON_INT && qsf_json_type(v) != QSF_JSON_REAL))
        return qsf_schema_fail(s, qsf_schema_at(s, p->path, key), "%s is not a number of 0 or more", key) !=
               0;
    if (n > QSF_SCHEMA_LENGTH)
        return qsf_schema_fail(s, qsf_schema_at(s, p->path, key), "%s is above the limit of %u", key,
                               QSF_SCHEMA_LENGTH) != 0;
    *out = (uint32_t)n;
    return true;
}

static uint32_t type_of(const char *name) {
    static const struct {
        const char *name;
        uint32_t type;
    } types[] = { { "null", QSF_TYPE_NULL },
                  { "boolean", QSF_TYPE_BOOL },
                  { "object", QSF_TYPE_OBJECT },
                  { "array", QSF_TYPE_ARRAY },
                  { "string", QSF_TYPE_STRING },
                  { "integer", QSF_TYPE_INTEGER },
                  { "number", QSF_TYPE_INTEGER | QSF_TYPE_REAL } };
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return types[i].type;
    return 0;
}

static uint32_t named_type(QsfSchema *s, const QsfJson *v, uint32_t path) {
    const char *name = qsf_json_string(v, NULL);
    const uint32_t type = type_of(name);
    if (type > 0) return type;
    return qsf_schema_fail(s, path, "unknown type \"%.100s\"", name != NULL ? name : "?");
}

uint32_t qsf_schema_types(QsfSchema *s, const QsfJson *schema, uint32_t path) {
    const QsfJson *v = qsf_json_get(schema, "type");
    uint32_t types = 0;
    if (v == NULL) return QSF_TYPE_ALL;
    path = qsf_schema_at(s, path, "type");
    if (qsf_json_type(v) != QSF_JSON_ARRAY) return named_type(s, v, path);
    if (qsf_json_size(v) == 0) return qsf_schema_fail(s, path, "the list of types is empty");
    for (size_t i = 0; i < qsf_json_size(v); i++) types |= named_type(s, qsf_json_at(v, i), path);
    return types;
}

uint32_t qsf_parts_types(QsfSchema *s, const QsfSchemaParts *p) {
    uint32_t types = QSF_TYPE_ALL, about = 0;
    bool given = false;
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) {
        const QsfJson *schema = p->part[i].schema, *v;
        const char *key;
        given = given || qsf_json_get(schema, "type") != NULL;
        types &= qsf_schema_types(s, schema, p->part[i].path);
        const QsfJson *names = qsf_presence_one_of(schema);
        if (names != NULL) types &= qsf_presence_types(names);
        about |= names != NULL ? QSF_TYPE_OBJECT : 0;
        for (const void *it = NULL;
             qsf_gbuild_step(s->b, 10) && (it = qsf_json_next(schema, it, &key, &v)) != NULL;) {
            const Keyword *k = find_keyword(key);
            about |= k != NULL ? k->type : 0;
        }
    }
    return given || about == 0 ? types : about;
}
