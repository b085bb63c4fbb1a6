/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members of an object while a JSON Schema is read, and which of them are there together. */
#ifndef QSF_GRAMMAR_SCHEMA_OBJECT_H
#define QSF_GRAMMAR_SCHEMA_OBJECT_H

#include "src/grammar/schema.h"

typedef struct QsfProperty {
    const char *name;         /* borrowed */
    uint32_t rule;            /* of the member + 1; 0: not made yet */
    bool required, forbidden; /* neither: it may be there */
    bool described, listed;   /* by a part's properties; among the names that others need */
} QsfProperty;

typedef struct QsfProperties {
    QsfProperty *all; /* (n) in their order; owned */
    uint32_t n, cap;
    bool described; /* a part has properties */
    bool others;    /* a part has additionalProperties, and in none they are false */
    bool closed;
    QsfPresence presence;
    uint16_t property_of[QSF_PRESENCE_NAMES]; /* the index of each of its names */
} QsfProperties;

/* A way to decide the members: required and forbidden say which. */
typedef void QsfPresenceFn(QsfSchema *s, QsfProperties *o, void *arg);

/* --- schema_object.c --- */
/* The property of that name, added if it is not there; NULL: s->b has failed. Valid until the next one. */
QsfProperty *qsf_properties_add(QsfSchema *s, QsfProperties *o, const char *name, uint32_t path);

/* --- schema_presence.c --- */
/* Reads what the parts say about members that depend on each other, and adds their names. */
void qsf_presence_read(QsfSchema *s, const QsfSchemaParts *p, QsfProperties *o);
/* Calls made for each way to decide which members are there; with made NULL it ends at the first. Returns
 * how many there are; path: for messages. */
uint32_t qsf_presence_decide(QsfSchema *s, QsfProperties *o, uint32_t path, QsfPresenceFn *made, void *arg);

#endif
