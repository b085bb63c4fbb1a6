/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members that depend on each other: their names are decided one by one, there or not, until all rules hold;
 * each way to decide them becomes an alternative of the object. */
#include "src/grammar/schema_object.h"

#define MOST_WAYS 256u

uint32_t qsf_presence_types(const QsfJson *one_of) {
    uint32_t untyped = 0; /* for these everything but an object is valid */
    for (size_t i = 0; i < qsf_json_size(one_of); i++)
        untyped += qsf_json_get(qsf_json_at(one_of, i), "type") == NULL;
    return untyped == 1 ? QSF_TYPE_ALL : QSF_TYPE_OBJECT;
}

/* Adds the names to the properties, and remembers which they are. */
static void find_properties(QsfSchema *s, QsfProperties *o, uint32_t path) {
    for (uint32_t i = 0; i < o->presence.n_names && !s->b->failed; i++) {
        QsfProperty *p = qsf_properties_add(s, o, o->presence.name[i].text, path);
        if (p == NULL) return;
        p->listed = p->listed || o->presence.name[i].listed;
        o->property_of[i] = (uint16_t)(p - o->all);
    }
}

void qsf_presence_read(QsfSchema *s, const QsfSchemaParts *p, QsfProperties *o) {
    for (uint32_t i = 0; i < p->n && qsf_gbuild_step(s->b, 20 + o->presence.n_names); i++) {
        const char *why = qsf_presence_add(&o->presence, p->part[i].schema);
        if (why != NULL) qsf_schema_fail(s, p->part[i].path, "%s", why);
    }
    find_properties(s, o, p->part[0].path);
}

static void decide(QsfSchema *s, QsfProperties *o, uint32_t *ways, QsfPresenceFn *made, void *arg);

/* Name i is there, then it is not. */
static void decide_name(QsfSchema *s, QsfProperties *o, uint32_t i, uint32_t *ways, QsfPresenceFn *made,
                        void *arg) {
    QsfPresenceState *state = &o->presence.name[i].state;
    QsfProperty *p = &o->all[o->property_of[i]];
    *state = QSF_MEMBER_THERE;
    p->required = true;
    decide(s, o, ways, made, arg);
    p->required = false;
    *state = QSF_MEMBER_ABSENT;
    p->forbidden = true;
    decide(s, o, ways, made, arg);
    p->forbidden = false;
    *state = QSF_MEMBER_OPEN;
}

/* Calls made for each way to decide; without it, one is enough. */
static void decide(QsfSchema *s, QsfProperties *o, uint32_t *ways, QsfPresenceFn *made, void *arg) {
    uint32_t i = 0;
    if (!qsf_gbuild_step(s->b, o->presence.n_places + 1) || (made == NULL && *ways > 0)) return;
    const QsfPresenceState all = qsf_presence_check(&o->presence, &i);
    if (all == QSF_MEMBER_OPEN) decide_name(s, o, i, ways, made, arg);
    if (all != QSF_MEMBER_THERE) return;
    ++*ways;
    if (made != NULL) made(s, o, arg);
}

/* Stops at more ways than are supported. */
typedef struct Counted {
    QsfPresenceFn *made;
    void *arg;
    uint32_t path, n;
} Counted;

static void count(QsfSchema *s, QsfProperties *o, void *arg) {
    Counted *c = arg;
    if (++c->n > MOST_WAYS)
        qsf_schema_fail(s, c->path, "more than %u ways to combine the members that depend on each other",
                        MOST_WAYS);
    else
        c->made(s, o, c->arg);
}

uint32_t qsf_presence_decide(QsfSchema *s, QsfProperties *o, uint32_t path, QsfPresenceFn *made, void *arg) {
    Counted c = { made, arg, path, 0 };
    uint32_t ways = 0;
    for (uint32_t i = 0; i < o->presence.n_names; i++) {
        const QsfProperty *p = &o->all[o->property_of[i]];
        o->presence.name[i].state = p->forbidden  ? QSF_MEMBER_ABSENT
                                    : p->required ? QSF_MEMBER_THERE
                                                  : QSF_MEMBER_OPEN;
    }
    decide(s, o, &ways, made != NULL ? count : NULL, &c);
    return ways;
}

bool qsf_presence_valid(QsfSchema *s, const QsfJson *v, const QsfJson *schema) {
    const QsfJson *all = qsf_json_get(schema, "dependencies"), *list;
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
