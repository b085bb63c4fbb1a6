/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members of an object while a JSON Schema is read, and rules for which of them are there together. */
#ifndef QSF_GRAMMAR_SCHEMA_OBJECT_H
#define QSF_GRAMMAR_SCHEMA_OBJECT_H

#include "src/grammar/schema.h"

#define QSF_PRESENCE_NAMES  256u
#define QSF_PRESENCE_GROUPS 128u
#define QSF_PRESENCE_RULES  64u

typedef struct QsfProperty {
    const char *name;         /* borrowed */
    uint32_t rule;            /* of the member + 1; 0: not made yet */
    bool required, forbidden; /* neither: it may be there */
    bool described, listed;   /* by a part's properties; among the names that others need */
} QsfProperty;

/* Names that count together: from..to in QsfPresence.name. */
typedef struct QsfPresenceGroup {
    uint32_t from, to;
} QsfPresenceGroup;

/* Of the groups from..to just one is there as a whole; or, without one_of, the second if the first is. */
typedef struct QsfPresenceRule {
    bool one_of;
    uint32_t from, to;
} QsfPresenceRule;

typedef struct QsfPresence {
    uint16_t name[QSF_PRESENCE_NAMES]; /* (n_names) indices of properties */
    QsfPresenceGroup group[QSF_PRESENCE_GROUPS];
    QsfPresenceRule rule[QSF_PRESENCE_RULES];
    uint32_t n_names, n_groups, n_rules;
    uint32_t path; /* for messages */
} QsfPresence;

typedef struct QsfProperties {
    QsfProperty *all; /* (n) in their order; owned */
    uint32_t n, cap;
    bool described; /* a part has properties */
    bool others;    /* a part has additionalProperties, none of them false */
    bool closed;
    QsfPresence presence;
} QsfProperties;

/* A way to decide the members: required and forbidden say which. */
typedef void QsfPresenceFn(QsfSchema *s, QsfProperties *o, void *arg);

/* --- schema_object.c --- */
/* The property of that name, added if it is not there; NULL: s->b has failed. Valid until the next one. */
QsfProperty *qsf_properties_add(QsfSchema *s, QsfProperties *o, const char *name, uint32_t path);

/* --- schema_presence.c --- */
/* Adds what dependencies and a oneOf of names of a part say. */
void qsf_presence_add(QsfSchema *s, const QsfSchemaPart *p, QsfProperties *o);
/* Calls made for each way to decide which members are there; with made NULL it ends at the first. Returns
 * how many there are. */
uint32_t qsf_presence_decide(QsfSchema *s, QsfProperties *o, QsfPresenceFn *made, void *arg);

#endif
