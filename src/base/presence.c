/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members that depend on each other: implements presence.h. */
#include "src/base/presence.h"

#include <string.h>

/* ---- reading ---- */

static bool is_known(const char *key) {
    static const char *const known[] = { "required", "title", "description", "$comment" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(key, known[i]) == 0) return true;
    return false;
}

static bool only_requires(const QsfJson *schema) {
    const char *key;
    const QsfJson *v;
    if (qsf_json_get(schema, "required") == NULL) return false;
    for (const void *it = NULL; (it = qsf_json_next(schema, it, &key, &v)) != NULL;) {
        const char *type = strcmp(key, "type") == 0 ? qsf_json_string(v, NULL) : NULL;
        if (!is_known(key) && (type == NULL || strcmp(type, "object") != 0)) return false;
    }
    return true;
}

const QsfJson *qsf_presence_one_of(const QsfJson *schema) {
    const QsfJson *list = qsf_json_get(schema, "oneOf");
    const size_t n = qsf_json_size(list);
    if (qsf_json_type(list) != QSF_JSON_ARRAY) return NULL;
    for (size_t i = 0; i < n; i++)
        if (!only_requires(qsf_json_at(list, i))) return NULL;
    return n > 0 ? list : NULL;
}

/* Adds a name to the group that is read. */
static const char *add_name(QsfPresence *p, const char *text, bool listed) {
    uint32_t i = 0;
    if (text == NULL) return "this is not a list of names";
    while (i < p->n_names && strcmp(p->name[i].text, text) != 0) i++;
    if (i == QSF_PRESENCE_NAMES || p->n_places == QSF_PRESENCE_PLACES)
        return "too many names depend on each other";
    if (i == p->n_names) p->name[p->n_names++] = (QsfPresenceName){ .text = text };
    p->name[i].listed = p->name[i].listed || listed;
    p->place[p->n_places++] = (uint16_t)i;
    return NULL;
}

/* A group of one name, or of the names of a list. */
static const char *add_group(QsfPresence *p, const char *one, const QsfJson *list) {
    const uint32_t from = p->n_places;
    const char *why = one != NULL ? add_name(p, one, false) : NULL;
    if (one == NULL && qsf_json_type(list) != QSF_JSON_ARRAY) return "this is not a list of names";
    for (size_t i = 0; why == NULL && i < qsf_json_size(list); i++)
        why = add_name(p, qsf_json_string(qsf_json_at(list, i), NULL), true);
    if (why == NULL && p->n_groups == QSF_PRESENCE_GROUPS) why = "too many lists of names";
    if (why == NULL) p->group[p->n_groups++] = (QsfPresenceGroup){ from, p->n_places };
    return why;
}

static const char *add_rule(QsfPresence *p, bool one_of, uint32_t from) {
    if (p->n_rules == QSF_PRESENCE_RULES) return "too many dependencies of names";
    p->rule[p->n_rules++] = (QsfPresenceRule){ one_of, from, p->n_groups };
    return NULL;
}

const char *qsf_presence_add(QsfPresence *p, const QsfJson *schema) {
    /* Draft 2020-12 does not read dependencies; who writes them means them. */
    const QsfJson *all = qsf_json_get(schema, "dependencies"), *one_of = qsf_presence_one_of(schema), *list;
    const char *why = NULL, *name;
    for (const void *it = NULL; why == NULL && (it = qsf_json_next(all, it, &name, &list)) != NULL;) {
        const uint32_t from = p->n_groups;
        why = add_group(p, name, NULL);
        if (why == NULL) why = add_group(p, NULL, list);
        if (why == NULL) why = add_rule(p, false, from);
    }
    const uint32_t from = p->n_groups;
    for (size_t i = 0; why == NULL && i < qsf_json_size(one_of); i++)
        why = add_group(p, NULL, qsf_json_get(qsf_json_at(one_of, i), "required"));
    return why == NULL && one_of != NULL ? add_rule(p, true, from) : why;
}

/* ---- checking ---- */

/* Are all names of a group there? */
static QsfPresenceState all_there(const QsfPresence *p, const QsfPresenceGroup *g, uint32_t *open) {
    QsfPresenceState all = QSF_MEMBER_THERE;
    for (uint32_t i = g->from; i < g->to; i++) {
        const QsfPresenceState one = p->name[p->place[i]].state;
        if (one == QSF_MEMBER_ABSENT) return one;
        if (one == QSF_MEMBER_THERE || all == QSF_MEMBER_OPEN) continue;
        *open = p->place[i];
        all = QSF_MEMBER_OPEN;
    }
    return all;
}

static QsfPresenceState check_rule(const QsfPresence *p, const QsfPresenceRule *r, uint32_t *open) {
    uint32_t n[] = { [QSF_MEMBER_OPEN] = 0, [QSF_MEMBER_THERE] = 0, [QSF_MEMBER_ABSENT] = 0 };
    if (!r->one_of) {
        const QsfPresenceState then = all_there(p, &p->group[r->from + 1], open);
        if (then == QSF_MEMBER_THERE) return then;
        const QsfPresenceState when = all_there(p, &p->group[r->from], open);
        if (when == QSF_MEMBER_OPEN) return when;
        return when == QSF_MEMBER_THERE ? then : QSF_MEMBER_THERE;
    }
    for (uint32_t i = r->from; i < r->to; i++) n[all_there(p, &p->group[i], open)]++;
    if (n[QSF_MEMBER_THERE] > 1) return QSF_MEMBER_ABSENT;
    if (n[QSF_MEMBER_OPEN] > 0) return QSF_MEMBER_OPEN;
    return n[QSF_MEMBER_THERE] == 1 ? QSF_MEMBER_THERE : QSF_MEMBER_ABSENT;
}

QsfPresenceState qsf_presence_check(const QsfPresence *p, uint32_t *open) {
    QsfPresenceState all = QSF_MEMBER_THERE;
    for (uint32_t i = 0; i < p->n_rules && all == QSF_MEMBER_THERE; i++)
        all = check_rule(p, &p->rule[i], open);
    return all;
}
