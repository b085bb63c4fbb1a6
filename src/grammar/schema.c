/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a JSON Schema: makes a rule for the schema, then for those that it needs, until none is left. */
#include "src/grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"

#define PATH_SHOWN 300

/* --- paths --- */

static uint32_t add_path(QsfSchema *s, QsfSchemaPath p) {
    if (s->b->failed) return 0;
    if (s->n_paths == s->cap_paths) {
        const uint32_t cap = s->cap_paths > 0 ? s->cap_paths * 2 : 64;
        QsfSchemaPath *q = cap <= QSF_GBUILD_NODES ? realloc(s->paths, cap * sizeof *q) : NULL;
        if (q == NULL) return qsf_gbuild_fail(s->b, QSF_E_USAGE, "the schema is too large");
        s->paths = q;
        s->cap_paths = cap;
    }
    s->paths[s->n_paths] = p;
    return s->n_paths++;
}

uint32_t qsf_schema_at(QsfSchema *s, uint32_t path, const char *key) {
    return add_path(s, (QsfSchemaPath){ .key = key, .parent = path });
}

uint32_t qsf_schema_at_index(QsfSchema *s, uint32_t path, size_t index) {
    return add_path(s, (QsfSchemaPath){ .parent = path, .index = (uint32_t)index });
}

/* A step by name, with ~ and / as JSON Pointers have them; returns its length, which may be above cap. */
static size_t put_key(const char *key, char *out, size_t cap) {
    size_t n = (size_t)snprintf(out, cap, "/");
    for (; *key != '\0' && n + 2 < cap; key++) {
        if (*key == '~' || *key == '/') out[n++] = '~';
        out[n++] = *key == '~' ? '0' : *key == '/' ? '1' : *key;
    }
    if (n < cap) out[n] = '\0';
    return *key != '\0' ? cap : n;
}

/* Writes the path as a JSON Pointer; its middle is left out if it is long. */
static void put_path(const QsfSchema *s, uint32_t path, char *out, size_t cap) {
    uint32_t step[64], n = 0;
    size_t at = 0;
    for (; path > 0 && n < 64; path = s->paths[path].parent) step[n++] = path;
    at += (size_t)snprintf(out, cap, path > 0 ? "#/..." : "#");
    while (n-- > 0 && at + 1 < cap) {
        const QsfSchemaPath *p = &s->paths[step[n]];
        at += p->key != NULL ? put_key(p->key, out + at, cap - at)
                             : (size_t)snprintf(out + at, cap - at, "/%u", p->index);
    }
}

uint32_t qsf_schema_fail(QsfSchema *s, uint32_t path, const char *fmt, ...) {
    char where[PATH_SHOWN], what[500];
    va_list ap;
    if (s->b->failed) {
        if (s->b->err->code == QSF_E_USAGE && s->b->err->msg[0] == '\0') return 0;
        return 0;
    }
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    put_path(s, path, where, sizeof where);
    return qsf_gbuild_fail(s->b, QSF_E_USAGE, "%s: %s", where, what);
}

/* --- rules --- */

static bool add_job(QsfSchema *s, uint32_t rule, const QsfSchemaParts *parts) {
    if (s->n_jobs == s->cap_jobs) {
        const uint32_t cap = s->cap_jobs > 0 ? s->cap_jobs * 2 : 64;
        QsfSchemaJob *p = realloc(s->jobs, cap * sizeof *p);
        if (p == NULL) return false;
        s->jobs = p;
        s->cap_jobs = cap;
    }
    QsfSchemaParts *copy = malloc(sizeof *copy);
    if (copy == NULL) return false;
    copy->n = parts->n;
    memcpy(copy->part, parts->part, parts->n * sizeof *parts->part);
    s->jobs[s->n_jobs++] = (QsfSchemaJob){ rule, copy };
    return true;
}

uint32_t qsf_schema_rule(QsfSchema *s, const QsfSchemaParts *parts) {
    char key[QSF_SCHEMA_PARTS * (sizeof(void *) + 1) + sizeof s->number + 1];
    size_t len = 0;
    if (parts->n == 0) return qsf_schema_any(s);
    for (uint32_t i = 0; i < parts->n; i++) {
        memcpy(key + len, &parts->part[i].schema, sizeof(void *));
        len += sizeof(void *);
        key[len++] = (char)parts->part[i].done;
    }
    memcpy(key + len, &s->number, sizeof s->number); /* the memory of a schema may be that of one before it */
    len += sizeof s->number;
    key[len++] = '*'; /* other rules have other names */
    const uint32_t before = s->b->n_rules, rule = qsf_rule_named(s->b, key, len);
    if (!s->b->failed && s->b->n_rules > before && !add_job(s, rule, parts))
        qsf_gbuild_fail(s->b, QSF_E_RUNTIME, "out of memory: the schema");
    return qsf_node_rule(s->b, rule);
}

/* --- the parts of a rule --- */

/* A list of values, of which those count that all parts allow. */
static const QsfSchemaPart *find_values(const QsfSchemaParts *p, const char **key) {
    for (uint32_t i = 0; i < p->n; i++) {
        const QsfJson *schema = p->part[i].schema;
        *key = qsf_json_get(schema, "const") != NULL ? "const" : "enum";
        if (qsf_json_get(schema, *key) != NULL) return &p->part[i];
    }
    return NULL;
}

static bool all_allow(QsfSchema *s, const QsfSchemaParts *p, const QsfJson *v) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n; i++) ok = qsf_schema_valid(s, v, p->part[i].schema, p->part[i].path);
    return ok;
}

static uint32_t make_values(QsfSchema *s, const QsfSchemaParts *p, const QsfSchemaPart *from,
                            const char *key) {
    const QsfJson *list = qsf_json_get(from->schema, key);
    const bool one = strcmp(key, "const") == 0;
    const uint32_t alt = qsf_node_list(s->b, QSF_NODE_ALT), path = qsf_schema_at(s, from->path, key);
    uint32_t n = 0;
    for (size_t i = 0; i < (one ? 1 : qsf_json_size(list)) && qsf_gbuild_step(s->b, 10); i++) {
        const QsfJson *v = one ? list : qsf_json_at(list, i);
        if (!all_allow(s, p, v)) continue;
        qsf_node_add(s->b, alt, qsf_schema_value(s, v));
        n++;
    }
    if (n > 0 || s->b->failed) return qsf_node_words(s->b, alt, n);
    return qsf_schema_fail(s, path,
                           one ? "the const contradicts its type or another keyword: nothing is valid"
                               : "no value of the enum agrees with type and the other keywords: "
                                 "nothing is valid");
}

/* No two schemas of the list may be valid for the same value. */
static void check_one_of(QsfSchema *s, const QsfSchemaParts *p, const QsfJson *list, uint32_t path) {
    const size_t n = qsf_json_size(list);
    uint32_t types = QSF_TYPE_ALL;
    for (uint32_t i = 0; i < p->n; i++) types &= qsf_schema_types(s, p->part[i].schema, p->part[i].path);
    for (size_t i = 0; i < n && !s->b->failed; i++)
        for (size_t k = i + 1; k < n && !s->b->failed; k++)
            if (!qsf_schema_apart(s, qsf_json_at(list, i), qsf_json_at(list, k), path, types))
                qsf_schema_fail(s, path,
                                "oneOf: a value may be valid for both %zu and %zu, which cannot be excluded; "
                                "anyOf is supported",
                                i, k);
}

/* The types that at least one schema of anyOf or oneOf allows. */
static uint32_t choice_types(QsfSchema *s, const QsfJson *list, uint32_t path) {
    uint32_t types = 0;
    for (size_t k = 0; k < qsf_json_size(list) && !s->b->failed; k++) {
        QsfSchemaParts one = { .n = 0 };
        uint32_t of_one = QSF_TYPE_ALL;
        if (qsf_json_type(qsf_json_at(list, k)) == QSF_JSON_BOOL) {
            types |= qsf_json_bool(qsf_json_at(list, k), true) ? of_one : 0;
            continue;
        }
        qsf_parts_add(s, &one, qsf_json_at(list, k), qsf_schema_at_index(s, path, k));
        for (uint32_t i = 0; i < one.n && !s->b->failed; i++)
            of_one &= qsf_schema_types(s, one.part[i].schema, one.part[i].path);
        types |= of_one;
    }
    return types;
}

/* The types that all parts allow, with a schema of each choice that is open; 0: none, or s->b failed. */
static uint32_t agreed_types(QsfSchema *s, const QsfSchemaParts *p) {
    uint32_t types = QSF_TYPE_ALL;
    for (uint32_t i = 0; i < p->n && types != 0 && !s->b->failed; i++) {
        const QsfSchemaPart *t = &p->part[i];
        const QsfJson *any = t->done & QSF_PART_ANY_DONE ? NULL : qsf_json_get(t->schema, "anyOf");
        const QsfJson *one = t->done & QSF_PART_ONE_DONE ? NULL : qsf_json_get(t->schema, "oneOf");
        const QsfJson *names = qsf_presence_one_of(t->schema);
        types &= qsf_schema_types(s, t->schema, t->path);
        if (names != NULL) types &= qsf_presence_types(names);
        if (any != NULL) types &= choice_types(s, any, qsf_schema_at(s, t->path, "anyOf"));
        if (one != NULL) types &= choice_types(s, one, qsf_schema_at(s, t->path, "oneOf"));
    }
    return s->b->failed ? 0 : types;
}

/* The first choice that is open; UINT32_MAX if there is none. */
static uint32_t find_choice(const QsfSchemaParts *p, const char **key, uint32_t *done) {
    for (uint32_t i = 0; i < p->n; i++) {
        const QsfSchemaPart *t = &p->part[i];
        *key = "anyOf", *done = QSF_PART_ANY_DONE;
        if (!(t->done & *done) && qsf_json_get(t->schema, *key) != NULL) return i;
        *key = "oneOf", *done = QSF_PART_ONE_DONE;
        if (!(t->done & *done) && qsf_json_get(t->schema, *key) != NULL &&
            qsf_presence_one_of(t->schema) == NULL) /* objects have rules for names */
            return i;
    }
    return UINT32_MAX;
}

/* Adds schema k of a choice of part i; false: it is `false`, or s->b failed. */
static bool choose(QsfSchema *s, QsfSchemaParts *p, uint32_t i, const char *key, uint32_t done, size_t k) {
    const QsfJson *one = qsf_json_at(qsf_json_get(p->part[i].schema, key), k);
    if (qsf_json_is(one, false)) return false;
    p->part[i].done |= done;
    qsf_parts_add(s, p, one, qsf_schema_at_index(s, qsf_schema_at(s, p->part[i].path, key), k));
    return !s->b->failed;
}

/* Can something be valid, as far as types and the names of members go? */
static bool parts_agree(QsfSchema *s, const QsfSchemaParts *p) {
    const char *key, *values;
    uint32_t done;
    const uint32_t types = agreed_types(s, p), i = find_choice(p, &key, &done);
    const bool object = (i < p->n ? types : qsf_parts_types(s, p)) == QSF_TYPE_OBJECT;
    if (types == 0 || (object && !qsf_object_possible(s, p))) return false;
    if (i >= p->n || find_values(p, &values) != NULL) return true;
    const size_t n = qsf_json_size(qsf_json_get(p->part[i].schema, key));
    for (size_t k = 0; k < n && !s->b->failed; k++) {
        QsfSchemaParts one = *p;
        if (choose(s, &one, i, key, done, k) && parts_agree(s, &one)) return true;
    }
    return false;
}

/* Replaces anyOf or oneOf of part i by each of its schemas that agrees with the other parts. */
static uint32_t make_choice(QsfSchema *s, const QsfSchemaParts *p, uint32_t i, const char *key,
                            uint32_t done) {
    const QsfJson *list = qsf_json_get(p->part[i].schema, key);
    const uint32_t alt = qsf_node_list(s->b, QSF_NODE_ALT), path = qsf_schema_at(s, p->part[i].path, key);
    if (qsf_json_size(list) == 0) return qsf_schema_fail(s, path, "%s is empty", key);
    if (done == QSF_PART_ONE_DONE) check_one_of(s, p, list, path);
    bool possible = false;
    for (size_t k = 0; k < qsf_json_size(list) && !s->b->failed; k++) {
        QsfSchemaParts one = *p;
        if (!choose(s, &one, i, key, done, k) || !parts_agree(s, &one)) continue;
        possible = true;
        qsf_node_add(s->b, alt, qsf_schema_rule(s, &one));
    }
    if (possible || s->b->failed) return alt;
    return qsf_schema_fail(s, path, "no schema of %s agrees with the other keywords: nothing is valid", key);
}

static uint32_t make_types(QsfSchema *s, const QsfSchemaParts *p) {
    const uint32_t types = qsf_parts_types(s, p), alt = qsf_node_list(s->b, QSF_NODE_ALT);
    if (s->b->failed) return 0;
    if (types == 0)
        return qsf_schema_fail(s, p->part[0].path, "the types contradict each other: nothing is valid");
    const bool only = types == QSF_TYPE_OBJECT; /* then it fails if nothing is valid */
    if (types & QSF_TYPE_OBJECT && (only || qsf_object_possible(s, p)))
        qsf_node_add(s->b, alt, qsf_schema_object(s, p));
    if (types & QSF_TYPE_ARRAY) qsf_node_add(s->b, alt, qsf_schema_array(s, p));
    if (types & QSF_TYPE_STRING) qsf_node_add(s->b, alt, qsf_schema_string(s, p));
    if (types & (QSF_TYPE_INTEGER | QSF_TYPE_REAL))
        qsf_node_add(s->b, alt, qsf_schema_number(s, p, !(types & QSF_TYPE_REAL)));
    if (types & QSF_TYPE_BOOL) qsf_node_add(s->b, alt, qsf_node_text(s->b, "true"));
    if (types & QSF_TYPE_BOOL) qsf_node_add(s->b, alt, qsf_node_text(s->b, "false"));
    if (types & QSF_TYPE_NULL) qsf_node_add(s->b, alt, qsf_node_text(s->b, "null"));
    return alt;
}

static uint32_t make_body(QsfSchema *s, const QsfSchemaParts *p) {
    const char *key;
    uint32_t done;
    const QsfSchemaPart *values = find_values(p, &key);
    if (values != NULL) return make_values(s, p, values, key);
    const uint32_t i = find_choice(p, &key, &done);
    return i < p->n ? make_choice(s, p, i, key, done) : make_types(s, p);
}

static void do_jobs(QsfSchema *s) {
    while (s->n_jobs > 0 && !s->b->failed) {
        const QsfSchemaJob job = s->jobs[--s->n_jobs];
        const uint32_t body = make_body(s, job.parts);
        if (!s->b->failed) s->b->rules[job.rule].node = body;
        free(job.parts);
        if (qsf_interrupted()) qsf_gbuild_fail(s->b, QSF_E_INTERRUPTED, "interrupted");
    }
    while (s->n_jobs > 0) free(s->jobs[--s->n_jobs].parts);
}

uint32_t qsf_schema_start(QsfSchema *s, const QsfJson *start) {
    QsfSchemaParts parts = { .n = 0 };
    const char *draft = qsf_json_string(qsf_json_get(s->root, "$schema"), NULL);
    const QsfJsonType type = qsf_json_type(start);
    s->draft7 = draft != NULL && strstr(draft, "draft-0") != NULL;
    if (s->n_paths == 0) (void)add_path(s, (QsfSchemaPath){ .key = "" });
    if (type != QSF_JSON_OBJECT && type != QSF_JSON_BOOL)
        return qsf_schema_fail(s, 0, "a schema is an object, true or false");
    if (type == QSF_JSON_BOOL && !qsf_json_bool(start, true))
        return qsf_schema_fail(s, 0, "nothing is valid for false");
    qsf_parts_add(s, &parts, start, 0);
    const uint32_t node = s->b->failed ? 0 : qsf_schema_rule(s, &parts);
    do_jobs(s);
    return node;
}

QsfJson *qsf_schema_parse(QsfSchema *s, const char *text, size_t len) {
    QsfGrammarBuild *b = s->b;
    QsfJson *root = b->failed ? NULL : qsf_json_parse(text, len, b->err);
    if (root == NULL && !b->failed) {
        b->failed = true;
        b->err->code = b->err->code == QSF_E_INTERRUPTED ? QSF_E_INTERRUPTED : QSF_E_USAGE;
    }
    if (root == NULL || qsf_schema_keep_numbers(s, text, len)) return root;
    qsf_json_free(root);
    return NULL;
}

void qsf_schema_close(QsfSchema *s) {
    free(s->paths);
    free(s->jobs);
    qsf_values_free(s);
    qsf_schema_free_numbers(s);
}

uint32_t qsf_node_schema(QsfGrammarBuild *b, const char *text, size_t len) {
    QsfSchema s = { .b = b, .number = ++b->n_schemas };
    QsfJson *root = qsf_schema_parse(&s, text, len);
    s.root = root;
    const uint32_t node = root != NULL ? qsf_schema_start(&s, root) : 0;
    qsf_schema_close(&s);
    qsf_json_free(root);
    return b->failed ? 0 : node;
}

int qsf_read_schema(QsfGrammarBuild *b, const char *text, size_t len) {
    const bool any = len == 3 && memcmp(text, "any", 3) == 0;
    const uint32_t node = qsf_node_schema(b, any ? "true" : text, any ? 4 : len);
    b->root = b->failed ? 0 : qsf_rule_new(b, "", 0);
    if (b->failed) return b->err->code;
    b->rules[b->root].node = node;
    return QSF_OK;
}
