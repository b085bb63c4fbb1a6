/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which members of an object may be there together: dependencies, and oneOf where its schemas only require
 * names. The names that such rules are about are decided one by one, there or not,
 * until all rules hold; each way to decide them becomes an alternative of the object. */
#include <string.h>

#include "src/grammar/schema_object.h"

#define MOST_WAYS 256u

/* Draft 7 has it, 2020-12 reads it no longer; who writes it means it. */
#define DEPENDENCIES "dependencies"

/* --- oneOf of names --- */

/* Does a schema only say which names are required, of an object if it has a type? */
static bool only_requires(const QsfJson *schema) {
    static const char *const others[] = { "required", "title", "description", "$comment" };
    const char *key;
    const QsfJson *v;
    if (qsf_json_get(schema, "required") == NULL) return false;
    for (const void *it = NULL; (it = qsf_json_next(schema, it, &key, &v)) != NULL;) {
        const char *type = strcmp(key, "type") == 0 ? qsf_json_string(v, NULL) : NULL;
        bool known = type != NULL && strcmp(type, "object") == 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known = known || strcmp(key, others[i]) == 0;
        if (!known) return false;
    }
    return true;
}

const QsfJson *qsf_presence_one_of(const QsfJson *schema) {
    const QsfJson *list = qsf_json_get(schema, "oneOf");
    const size_t n = qsf_json_size(list);
    for (size_t i = 0; i < n; i++)
        if (!only_requires(qsf_json_at(list, i))) return NULL;
    return n > 0 ? list : NULL;
}

uint32_t qsf_presence_types(const QsfJson *one_of) {
    uint32_t untyped = 0; /* for these everything but an object is valid */
    for (size_t i = 0; i < qsf_json_size(one_of); i++)
        untyped += qsf_json_get(qsf_json_at(one_of, i), "type") == NULL;
    return untyped == 1 ? QSF_TYPE_ALL : QSF_TYPE_OBJECT;
}

/* --- reading the rules --- */

static bool add_name(QsfSchema *s, QsfProperties *o, const char *name, bool listed, uint32_t path) {
    QsfPresence *r = &o->presence;
    QsfProperty *p = name != NULL ? qsf_properties_add(s, o, name, path) : NULL;
    if (name == NULL) return qsf_schema_fail(s, path, "this is not a list of names") != 0;
    if (p == NULL) return false;
    if (r->n_names == QSF_PRESENCE_NAMES)
        return qsf_schema_fail(s, path, "more than %u names depend on each other", QSF_PRESENCE_NAMES) != 0;
    p->listed = p->listed || listed;
    r->name[r->n_names++] = (uint16_t)(p - o->all);
    return true;
}

/* Begins a list of names, which end_group ends. */
static bool begin_group(QsfSchema *s, QsfPresence *r, uint32_t path) {
    if (r->n_groups == QSF_PRESENCE_GROUPS)
        return qsf_schema_fail(s, path, "more than %u lists of names", QSF_PRESENCE_GROUPS) != 0;
    r->group[r->n_groups].from = r->n_names;
    return !s->b->failed;
}

static void end_group(QsfPresence *r) { r->group[r->n_groups++].to = r->n_names; }

static void add_group(QsfSchema *s, QsfProperties *o, const QsfJson *list, uint32_t path) {
    if (!begin_group(s, &o->presence, path)) return;
    for (size_t i = 0; i < qsf_json_size(list) && !s->b->failed; i++)
        (void)add_name(s, o, qsf_json_string(qsf_json_at(list, i), NULL), true, path);
    end_group(&o->presence);
}

static void add_rule(QsfSchema *s, QsfPresence *r, bool one_of, uint32_t first, uint32_t path) {
    if (s->b->failed) return;
    if (r->n_rules == QSF_PRESENCE_RULES)
        qsf_schema_fail(s, path, "more than %u dependencies of names", QSF_PRESENCE_RULES);
    else
        r->rule[r->n_rules++] = (QsfPresenceRule){ one_of, first, r->n_groups };
}

static void add_dependencies(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o) {
    const QsfJson *all = qsf_json_get(p->schema, DEPENDENCIES), *list;
    const char *name;
    const uint32_t path = all != NULL ? qsf_schema_at(s, p->path, DEPENDENCIES) : 0;
    for (const void *it = NULL; !s->b->failed && (it = qsf_json_next(all, it, &name, &list)) != NULL;) {
        const uint32_t first = o->presence.n_groups, at = qsf_schema_at(s, path, name);
        if (!begin_group(s, &o->presence, at) || !add_name(s, o, name, false, at)) return;
        end_group(&o->presence);
        add_group(s, o, list, at);
        add_rule(s, &o->presence, false, first, at);
    }
}

static void add_one_of(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o) {
    const QsfJson *list = qsf_presence_one_of(p->schema);
    const uint32_t first = o->presence.n_groups;
    if (list == NULL) return;
    const uint32_t path = qsf_schema_at(s, p->path, "oneOf");
    for (size_t i = 0; i < qsf_json_size(list) && !s->b->failed; i++)
        add_group(s, o, qsf_json_get(qsf_json_at(list, i), "required"), qsf_schema_at_index(s, path, i));
    add_rule(s, &o->presence, true, first, path);
}

void qsf_presence_add(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o) {
    add_dependencies(s, p, o);
    add_one_of(s, p, o);
}

/* --- deciding --- */

typedef enum Verdict { NO, YES, OPEN } Verdict;

/* Are all names of a group there? OPEN: *name is one that is not decided. */
static Verdict all_there(const QsfProperties *o, const QsfPresenceGroup *g, uint32_t *name) {
    Verdict all = YES;
    for (uint32_t i = g->from; i < g->to; i++) {
        const QsfProperty *p = &o->all[o->presence.name[i]];
        if (p->forbidden) return NO;
        if (p->required || all == OPEN) continue;
        *name = o->presence.name[i];
        all = OPEN;
    }
    return all;
}

static Verdict check_rule(const QsfProperties *o, const QsfPresenceRule *r, uint32_t *name) {
    const QsfPresenceGroup *group = o->presence.group;
    uint32_t n[3] = { 0 };
    if (!r->one_of) {
        const Verdict then = all_there(o, &group[r->from + 1], name);
        const Verdict when = then == YES ? NO : all_there(o, &group[r->from], name);
        return when == NO ? YES : when == OPEN ? OPEN : then;
    }
    for (uint32_t i = r->from; i < r->to; i++) n[all_there(o, &group[i], name)]++;
    if (n[YES] > 1 || n[YES] + n[OPEN] == 0) return NO;
    return n[OPEN] > 0 ? OPEN : YES;
}

/* Calls made for each way to decide; without it, one is enough. */
static void decide(QsfSchema *s, QsfProperties *o, uint32_t *ways, QsfPresenceFn *made, void *arg) {
    uint32_t name = 0;
    Verdict v = YES;
    if (!qsf_gbuild_step(s->b, o->presence.n_names + 1)) return;
    for (uint32_t i = 0; i < o->presence.n_rules && v == YES; i++)
        v = check_rule(o, &o->presence.rule[i], &name);
    if (v == NO || (made == NULL && *ways > 0)) return;
    if (v == OPEN) {
        o->all[name].required = true;
        decide(s, o, ways, made, arg);
        o->all[name].required = false;
        o->all[name].forbidden = true;
        decide(s, o, ways, made, arg);
        o->all[name].forbidden = false;
        return;
    }
    if (++*ways > MOST_WAYS)
        qsf_schema_fail(s, o->presence.path,
                        "more than %u ways to combine the members that depend on each other", MOST_WAYS);
    else if (made != NULL)
        made(s, o, arg);
}

uint32_t qsf_presence_decide(QsfSchema *s, QsfProperties *o, QsfPresenceFn *made, void *arg) {
    uint32_t ways = 0;
    decide(s, o, &ways, made, arg);
    return ways;
}

/* --- values --- */

bool qsf_presence_valid(QsfSchema *s, const QsfJson *v, const QsfJson *schema) {
    const QsfJson *all = qsf_json_get(schema, DEPENDENCIES), *list;
    const char *name;
    for (const void *it = NULL; (it = qsf_json_next(all, it, &name, &list)) != NULL;) {
        if (!qsf_gbuild_step(s->b, 8 + qsf_json_size(list))) return false;
        if (qsf_json_get(v, name) == NULL) continue;
        for (size_t i = 0; i < qsf_json_size(list); i++) {
            const char *needed = qsf_json_string(qsf_json_at(list, i), NULL);
            if (needed != NULL && qsf_json_get(v, needed) == NULL) return false;
        }
    }
    return true;
}
