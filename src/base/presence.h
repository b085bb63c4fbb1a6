/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which members of an object may be there together by a JSON Schema: `dependencies` that are lists of names,
 * and `oneOf` where each schema only requires names. Pure functions; any thread. */
#ifndef QSF_BASE_PRESENCE_H
#define QSF_BASE_PRESENCE_H

#include "src/base/json.h"

#define QSF_PRESENCE_NAMES  256u
#define QSF_PRESENCE_PLACES 512u /* of names in lists */
#define QSF_PRESENCE_GROUPS 128u
#define QSF_PRESENCE_RULES  64u

typedef enum QsfPresenceState { QSF_MEMBER_OPEN, QSF_MEMBER_THERE, QSF_MEMBER_ABSENT } QsfPresenceState;

typedef struct QsfPresenceName {
    const char *text; /* borrowed from the schema */
    bool listed;      /* in a list: it may be there because of other members */
    QsfPresenceState state;
} QsfPresenceName;

/* Names that count together: from..to in QsfPresence.place. */
typedef struct QsfPresenceGroup {
    uint32_t from, to;
} QsfPresenceGroup;

/* Of the groups from..to just one is there as a whole; or, without one_of, the second if the first is. */
typedef struct QsfPresenceRule {
    bool one_of;
    uint32_t from, to;
} QsfPresenceRule;

/* Zero it before the first call. */
typedef struct QsfPresence {
    QsfPresenceName name[QSF_PRESENCE_NAMES]; /* (n_names) each once */
    uint16_t place[QSF_PRESENCE_PLACES];      /* (n_places) indices of names */
    QsfPresenceGroup group[QSF_PRESENCE_GROUPS];
    QsfPresenceRule rule[QSF_PRESENCE_RULES];
    uint32_t n_names, n_places, n_groups, n_rules;
} QsfPresence;

/* Returns the `oneOf` of a schema if all its schemas only require names, of an object if they have a type.
 * NULL: it has none, or another one. Borrowed. */
const QsfJson *qsf_presence_one_of(const QsfJson *schema);
/* Adds the rules of a schema, whose texts have to stay; all names are open. Returns NULL, or what is wrong:
 * not a list of names, or more than the limits above. */
const char *qsf_presence_add(QsfPresence *p, const QsfJson *schema);
/* Do all rules hold? QSF_MEMBER_THERE: yes. QSF_MEMBER_ABSENT: no, whatever is decided. QSF_MEMBER_OPEN: that
 * depends on name *open, among others. */
QsfPresenceState qsf_presence_check(const QsfPresence *p, uint32_t *open);

#endif
