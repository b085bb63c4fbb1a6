/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of a JSON Schema: the properties in the order of the schema, then those that are required without
 * being described, then others. With `properties` and without `additionalProperties` there are no others. */
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/grammar/schema_object.h"

#define MOST_PROPERTIES 5000u

static QsfProperty *find(QsfSchema *s, QsfProperties *o, const char *name) {
    if (!qsf_gbuild_step(s->b, o->n / 2 + 1)) return NULL;
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->all[i].name, name) == 0) return &o->all[i];
    return NULL;
}

QsfProperty *qsf_properties_add(QsfSchema *s, QsfProperties *o, const char *name, uint32_t path) {
    QsfProperty *p = find(s, o, name);
    if (p != NULL || s->b->failed) return p;
    if (o->n == o->cap) {
        const uint32_t cap = o->cap > 0 ? o->cap * 2 : 32;
        p = o->n < MOST_PROPERTIES ? realloc(o->all, cap * sizeof *p) : NULL;
        if (p == NULL) return qsf_schema_fail(s, path, "more than %u properties", MOST_PROPERTIES), NULL;
        o->all = p;
        o->cap = cap;
    }
    o->all[o->n] = (QsfProperty){ .name = name };
    return &o->all[o->n++];
}

static void add_properties(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o) {
    const QsfJson *all = qsf_json_get(p->schema, "properties"), *v;
    const QsfJson *other = qsf_json_get(p->schema, "additionalProperties");
    const char *name;
    QsfProperty *one;
    if (all != NULL) {
        const uint32_t path = qsf_schema_at(s, p->path, "properties");
        o->described = true;
        for (const void *it = NULL; !s->b->failed && (it = qsf_json_next(all, it, &name, &v)) != NULL;)
            if ((one = qsf_properties_add(s, o, name, path)) != NULL) one->described = true;
    }
    o->closed = o->closed || qsf_json_is(other, false);
    o->others = o->others || other != NULL;
}

static void add_required(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o) {
    const QsfJson *list = qsf_json_get(p->schema, "required");
    if (list == NULL || s->b->failed) return;
    const uint32_t path = qsf_schema_at(s, p->path, "required");
    for (size_t i = 0; i < qsf_json_size(list) && !s->b->failed; i++) {
        const char *name = qsf_json_string(qsf_json_at(list, i), NULL);
        QsfProperty *r = name != NULL ? qsf_properties_add(s, o, name, path) : NULL;
        if (name == NULL) qsf_schema_fail(s, path, "required is not a list of names");
        if (r != NULL) r->required = r->listed = true;
    }
}

/* A part without the property that has additionalProperties: they hold for it. */
static const QsfJson *schema_of(const QsfJson *part, const char *name, const char **key) {
    const QsfJson *v = qsf_json_get(qsf_json_get(part, "properties"), name);
    *key = v != NULL ? "properties" : "additionalProperties";
    return v != NULL ? v : qsf_json_get(part, "additionalProperties");
}

/* May there be members that no part names? */
static bool has_others(const QsfProperties *o) { return !o->closed && (o->others || !o->described); }

/* Returns the part that forbids a property, *key: by which keyword; NULL = none does. */
static const QsfSchemaPart *forbidding(QsfSchema *s, const QsfSchemaParts *p, const char *name,
                                       const char **key) {
    for (uint32_t i = 0; i < p->n && qsf_gbuild_step(s->b, 10); i++)
        if (qsf_json_is(schema_of(p->part[i].schema, name, key), false)) return &p->part[i];
    return NULL;
}

/* Marks what is forbidden. Is everything that is required allowed? fail: the schema fails if not. */
static bool check_forbidden(QsfSchema *s, const QsfSchemaParts *p, QsfProperties *o, bool fail) {
    const bool others = has_others(o);
    for (uint32_t i = 0; i < o->n && !s->b->failed; i++) {
        QsfProperty *one = &o->all[i];
        const char *key;
        const QsfSchemaPart *by = forbidding(s, p, one->name, &key);
        one->forbidden = by != NULL || (!others && !one->described && !one->listed);
        if (by == NULL || !one->required) continue;
        if (fail)
            qsf_schema_fail(s, by->path, "required \"%.100s\" is forbidden by %s: nothing is valid",
                            one->name, key);
        return false;
    }
    return !s->b->failed;
}

/* Reads the parts; the caller frees o->all. Can the object be valid? fail: it fails if not. */
static bool read_parts(QsfSchema *s, const QsfSchemaParts *p, QsfProperties *o, bool fail) {
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) add_properties(s, &p->part[i], o);
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) add_required(s, &p->part[i], o);
    qsf_presence_read(s, p, o);
    return check_forbidden(s, p, o, fail);
}

static uint32_t list_of(QsfSchema *s, const uint32_t *nodes, size_t n) {
    const uint32_t list = qsf_node_list(s->b, QSF_NODE_SEQ);
    for (size_t i = 0; i < n; i++) qsf_node_add(s->b, list, nodes[i]);
    return list;
}

/* name ":" value */
static uint32_t member(QsfSchema *s, const QsfSchemaParts *p, const char *name) {
    QsfSchemaParts parts = { .n = 0 };
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) {
        const char *key;
        const QsfJson *v = schema_of(p->part[i].schema, name, &key);
        uint32_t path = qsf_schema_at(s, p->part[i].path, key);
        if (key[0] == 'p') path = qsf_schema_at(s, path, name);
        if (v != NULL) qsf_parts_add(s, &parts, v, path);
    }
    if (s->b->failed) return 0;
    const uint32_t nodes[] = { qsf_schema_literal(s, name, strlen(name)), qsf_schema_colon(s),
                               qsf_schema_rule(s, &parts) };
    return list_of(s, nodes, 3);
}

/* --- the names of other properties: all but those that are described --- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const QsfProperty *)a)->name, ((const QsfProperty *)b)->name);
}

/* A state for the beginning of names[from..to), which agree in their first `at` bytes: those characters that
 * continue a name lead to their own state, the others to state 1, any text. States are added in the order of
 * their numbers: depth first needs to know them before, so a queue is used. */
typedef struct Span {
    uint32_t from, to, at;
} Span;

static void span_state(QsfGraph *g, const QsfProperty *names, Span *queue, uint32_t *n_queue, uint32_t base,
                       const Span *span) {
    QsfCharset others = { 0 };
    uint32_t i = span->from;
    const bool is_name = names[i].name[span->at] == '\0';
    qsf_graph_state(g, !is_name);
    while (i < span->to && names[i].name[span->at] == '\0') i++;
    while (i < span->to && !g->failed) {
        uint32_t code, k = i + 1;
        const char *at = names[i].name + span->at;
        const size_t len = qsf_utf8_next(at, strlen(at), &code);
        while (k < span->to && strncmp(names[k].name + span->at, at, len) == 0) k++;
        const QsfRange r = { code, code };
        qsf_charset_add(&others, code, code);
        qsf_graph_edge(g, base + *n_queue, &r, 1);
        queue[(*n_queue)++] = (Span){ i, k, span->at + (uint32_t)len };
        i = k;
    }
    qsf_charset_negate(&others);
    qsf_graph_edge(g, base - 1, others.r, others.n);
    g->failed = g->failed || others.failed;
    qsf_charset_free(&others);
}

/* Names of up to 20000 bytes together. */
static QsfGraph *other_names(QsfProperty *names, uint32_t n) {
    static const QsfRange all[] = { { 0, 0xD7FF }, { 0xE000, QSF_CODE_MAX } };
    size_t total = 1;
    uint32_t n_queue = 0;
    for (uint32_t i = 0; i < n; i++) total += strlen(names[i].name);
    QsfGraph *g = qsf_graph_new();
    Span *queue = malloc(total * sizeof *queue);
    qsort(names, n, sizeof *names, by_name);
    if (g != NULL && queue != NULL && total <= 20000) {
        /* State 0 is the beginning, 1 any text, then follow the spans after the first one. */
        const Span first = { 0, n, 0 };
        span_state(g, names, queue, &n_queue, 2, &first);
        qsf_graph_state(g, true);
        qsf_graph_edge(g, 1, all, 2);
        for (uint32_t i = 0; i < n_queue && !g->failed; i++) {
            const Span span = queue[i];
            span_state(g, names, queue, &n_queue, 2, &span);
        }
    }
    const bool ok = g != NULL && queue != NULL && total <= 20000 && !g->failed;
    free(queue);
    if (ok) return g;
    qsf_graph_free(g);
    return NULL;
}

static uint32_t other_name(QsfSchema *s, const QsfProperties *o, uint32_t path) {
    if (o->n == 0) return qsf_schema_text(s);
    QsfProperty *names = malloc(o->n * sizeof *names);
    if (names == NULL) return qsf_gbuild_fail(s->b, QSF_E_RUNTIME, "out of memory: the schema");
    memcpy(names, o->all, o->n * sizeof *names);
    QsfGraph *g = other_names(names, o->n);
    free(names);
    if (g == NULL) return qsf_schema_fail(s, path, "the names of the properties are too long together");
    const uint32_t nodes[] = { qsf_node_text(s->b, "\""), qsf_node_graph(s->b, g, true),
                               qsf_node_text(s->b, "\"") };
    return list_of(s, nodes, 3);
}

/* The rule of a member that is not described. */
static uint32_t other_rule(QsfSchema *s, const QsfSchemaParts *p, const QsfProperties *o) {
    QsfSchemaParts parts = { .n = 0 };
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) {
        const QsfJson *v = qsf_json_get(p->part[i].schema, "additionalProperties");
        if (v != NULL) qsf_parts_add(s, &parts, v, qsf_schema_at(s, p->part[i].path, "additionalProperties"));
    }
    const uint32_t rule = qsf_rule_new(s->b, "", 0);
    const uint32_t nodes[] = { other_name(s, o, p->part[0].path), qsf_schema_colon(s),
                               s->b->failed ? 0 : qsf_schema_rule(s, &parts) };
    const uint32_t body = list_of(s, nodes, 3);
    if (!s->b->failed) s->b->rules[rule].node = body;
    return rule;
}

/* --- the members --- */

static uint32_t new_rule(QsfSchema *s, uint32_t body) {
    const uint32_t rule = qsf_rule_new(s->b, "", 0);
    if (!s->b->failed) s->b->rules[rule].node = body;
    return rule;
}

static uint32_t after_comma(QsfSchema *s, uint32_t rule) {
    const uint32_t nodes[] = { qsf_schema_comma(s), qsf_node_rule(s->b, rule) };
    return list_of(s, nodes, 2);
}

/* What the ways to decide the members have in common, and where they go. */
typedef struct Members {
    const QsfSchemaParts *parts;
    bool others;
    uint32_t other; /* the rule of members that are not described, made if there may be some */
    uint32_t ways;  /* a list of alternatives */
} Members;

/* The rule of a member, made when it is needed first. */
static uint32_t member_rule(QsfSchema *s, const QsfSchemaParts *p, QsfProperty *one) {
    if (one->rule == 0) one->rule = new_rule(s, member(s, p, one->name)) + 1;
    return one->rule - 1;
}

static bool may_be_there(const QsfProperty *one, bool others) {
    return !one->forbidden && (one->required || one->described || others);
}

/* From the last member to the first: rest is what follows when a member was there already, first what the
 * members from here on are when none was. */
static void add_way(QsfSchema *s, QsfProperties *o, void *arg) {
    Members *m = arg;
    const uint32_t first = qsf_node_list(s->b, QSF_NODE_ALT);
    uint32_t rest = new_rule(s, m->others ? qsf_node_repeat(s->b, after_comma(s, m->other), 0, QSF_NO_LIMIT)
                                          : qsf_node_empty(s->b));
    uint32_t lead = UINT32_MAX; /* the first that has to be there */
    for (uint32_t i = 0; i < o->n && lead == UINT32_MAX; i++)
        if (o->all[i].required) lead = i;
    if (lead == UINT32_MAX && m->others) {
        const uint32_t nodes[] = { qsf_node_rule(s->b, m->other), qsf_node_rule(s->b, rest) };
        qsf_node_add(s->b, first, list_of(s, nodes, 2));
    }
    if (lead == UINT32_MAX) qsf_node_add(s->b, first, qsf_node_empty(s->b));
    for (uint32_t i = o->n; i-- > 0 && !s->b->failed;) {
        if (!may_be_there(&o->all[i], m->others)) continue;
        const uint32_t one = member_rule(s, m->parts, &o->all[i]);
        const uint32_t head[] = { qsf_node_rule(s->b, one), qsf_node_rule(s->b, rest) };
        if (i <= lead) qsf_node_add(s->b, first, list_of(s, head, 2));
        const uint32_t again = after_comma(s, one);
        const uint32_t nodes[] = { o->all[i].required ? again : qsf_node_repeat(s->b, again, 0, 1),
                                   qsf_node_rule(s->b, rest) };
        if (i > 0) rest = new_rule(s, list_of(s, nodes, 2));
    }
    qsf_node_add(s->b, m->ways, first);
}

bool qsf_object_possible(QsfSchema *s, const QsfSchemaParts *p) {
    QsfProperties o = { 0 };
    const bool ok = read_parts(s, p, &o, false) && qsf_presence_decide(s, &o, 0, NULL, NULL) > 0;
    free(o.all);
    return ok && !s->b->failed;
}

uint32_t qsf_schema_object(QsfSchema *s, const QsfSchemaParts *p) {
    QsfProperties o = { 0 };
    Members m = { .parts = p };
    const uint32_t path = p->part[0].path;
    uint32_t node = 0;
    if (read_parts(s, p, &o, true)) {
        m.others = has_others(&o);
        m.other = m.others ? other_rule(s, p, &o) : 0;
        m.ways = qsf_node_list(s->b, QSF_NODE_ALT);
        if (qsf_presence_decide(s, &o, path, add_way, &m) == 0)
            qsf_schema_fail(s, path,
                            "required names, dependencies and oneOf contradict each other: nothing is valid");
        const uint32_t nodes[] = { qsf_node_text(s->b, "{"), m.ways, qsf_node_text(s->b, "}") };
        node = list_of(s, nodes, 3);
    }
    free(o.all);
    return node;
}
