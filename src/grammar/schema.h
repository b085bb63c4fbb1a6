/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that read a JSON Schema (drafts 2020-12 and 7). A rule of the grammar stands for what
 * several schemas demand together: its parts. A keyword that is not honoured is refused with its path. */
#ifndef QSF_GRAMMAR_SCHEMA_H
#define QSF_GRAMMAR_SCHEMA_H

#include "src/base/json.h"
#include "src/base/presence.h"
#include "src/grammar/build.h"

#define QSF_SCHEMA_PARTS  64u
#define QSF_SCHEMA_LENGTH 100000u /* of strings and arrays, where it is limited */
#define QSF_SCHEMA_TUPLE  100u    /* most prefixItems */
#define QSF_SCHEMA_SETS   16u     /* lists of values whose tables are kept */
#define QSF_SCHEMA_DIGITS 800u    /* of a number, before and after the point */

/* Which keywords of a part are done. */
enum { QSF_PART_FLAT = 1, QSF_PART_ANY_DONE = 2, QSF_PART_ONE_DONE = 4 };

typedef struct QsfSchemaPart {
    const QsfJson *schema; /* borrowed */
    uint32_t path;
    uint32_t done;
} QsfSchemaPart;

typedef struct QsfSchemaParts {
    QsfSchemaPart part[QSF_SCHEMA_PARTS];
    uint32_t n;
} QsfSchemaParts;

/* A step of a path from the root of the schema. */
typedef struct QsfSchemaPath {
    const char *key; /* borrowed; NULL: index */
    uint32_t parent, index;
} QsfSchemaPath;

/* The values of an enum, by hash. */
typedef struct QsfValueSet {
    const QsfJson *list; /* borrowed; NULL = unused */
    uint32_t *slot;      /* (n_slots) index + 1; owned */
    uint32_t n_slots;
} QsfValueSet;

/* A number of JSON, exactly: digits before and after the point, without zeros at the outer ends; "0" is 0,
 * which is not negative. */
typedef struct QsfDecimal {
    char whole[QSF_SCHEMA_DIGITS], part[QSF_SCHEMA_DIGITS];
    size_t n_whole, n_part;
    bool negative;
} QsfDecimal;

/* A number of the schema's text that a double cannot hold. */
typedef struct QsfExactNumber {
    double value;   /* the nearest double */
    size_t at, len; /* in QsfSchema.digits */
} QsfExactNumber;

typedef struct QsfSchema {
    QsfGrammarBuild *b;
    const QsfJson *root;
    uint32_t number; /* of this schema in the grammar */
    bool draft7;
    QsfSchemaPath *paths;
    uint32_t n_paths, cap_paths;
    struct QsfSchemaJob *jobs; /* rules without a body yet */
    uint32_t n_jobs, cap_jobs;
    uint32_t common[16]; /* rule + 1 of each common rule */
    uint32_t depth;      /* of the checks of values */
    QsfValueSet sets[QSF_SCHEMA_SETS];
    uint32_t n_sets;       /* that were made */
    QsfExactNumber *exact; /* (n_exact) by value; owned */
    uint32_t n_exact, cap_exact;
    QsfStrbuf digits; /* their texts */
} QsfSchema;

typedef struct QsfSchemaJob {
    uint32_t rule;
    QsfSchemaParts *parts; /* owned */
} QsfSchemaJob;

/* Types as bits. A number may also be an integer. */
enum {
    QSF_TYPE_NULL = 1,
    QSF_TYPE_BOOL = 2,
    QSF_TYPE_OBJECT = 4,
    QSF_TYPE_ARRAY = 8,
    QSF_TYPE_STRING = 16,
    QSF_TYPE_INTEGER = 32,
    QSF_TYPE_REAL = 64,
    QSF_TYPE_ALL = 127
};

/* --- schema.c --- */
/* Records a failure at a path; returns 0. */
uint32_t qsf_schema_fail(QsfSchema *s, uint32_t path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The path of a member of the schema at path; of an element. */
uint32_t qsf_schema_at(QsfSchema *s, uint32_t path, const char *key);
uint32_t qsf_schema_at_index(QsfSchema *s, uint32_t path, size_t index);
/* Returns a node for the rule of these parts, which is compiled later. */
uint32_t qsf_schema_rule(QsfSchema *s, const QsfSchemaParts *parts);
/* Parses a schema, which the caller frees, and keeps its exact numbers. NULL: s->b has failed. */
QsfJson *qsf_schema_parse(QsfSchema *s, const char *text, size_t len);
/* Returns a node for what is valid for start, whose references lead into s->root. */
uint32_t qsf_schema_start(QsfSchema *s, const QsfJson *start);
/* Frees all but the schemas. */
void qsf_schema_close(QsfSchema *s);

/* --- schema_parts.c --- */
/* Adds a schema, and what its $ref and allOf add. */
void qsf_parts_add(QsfSchema *s, QsfSchemaParts *p, const QsfJson *schema, uint32_t path);
/* The schema that a $ref leads to; NULL: s->b has failed. */
const QsfJson *qsf_schema_ref(QsfSchema *s, const QsfJson *ref, uint32_t path, uint32_t *where);
/* The schema itself; in draft 7, where keywords beside $ref do not count, the one that $ref leads to. NULL:
 * s->b has failed. */
const QsfJson *qsf_schema_follow(QsfSchema *s, const QsfJson *schema, uint32_t path);
/* A number that has to be an integer of 0 or more; false if there is none, or on failure. */
bool qsf_schema_count(QsfSchema *s, const QsfSchemaPart *p, const char *key, uint32_t *out);
/* The types that are allowed by the keyword type; all without it. 0 on failure. */
uint32_t qsf_schema_types(QsfSchema *s, const QsfJson *schema, uint32_t path);
/* The types of all parts; those that the keywords are about, if no part has a type. */
uint32_t qsf_parts_types(QsfSchema *s, const QsfSchemaParts *p);
/* Checks the names of all keywords of a schema. */
bool qsf_schema_known(QsfSchema *s, const QsfJson *schema, uint32_t path);

/* --- what a type becomes: nodes --- */
uint32_t qsf_schema_string(QsfSchema *s, const QsfSchemaParts *p);                /* schema_string.c */
uint32_t qsf_schema_number(QsfSchema *s, const QsfSchemaParts *p, bool integers); /* schema_number.c */
uint32_t qsf_schema_array(QsfSchema *s, const QsfSchemaParts *p);                 /* schema_array.c */
uint32_t qsf_schema_object(QsfSchema *s, const QsfSchemaParts *p);                /* schema_object.c */
/* May an object be valid, as far as its names go? false if s->b fails. In schema_object.c. */
bool qsf_object_possible(QsfSchema *s, const QsfSchemaParts *p);

/* --- schema_presence.c --- */
/* The types that a oneOf of required names allows. */
uint32_t qsf_presence_types(const QsfJson *one_of);
/* Does an object have all names that its others depend on? */
bool qsf_presence_valid(QsfSchema *s, const QsfJson *v, const QsfJson *schema);

/* --- schema_common.c: rules that many schemas share, as nodes --- */
uint32_t qsf_schema_pair(QsfSchema *s, uint32_t a, uint32_t b); /* a, then b */
uint32_t qsf_schema_any(QsfSchema *s);                          /* any JSON */
uint32_t qsf_schema_text(QsfSchema *s);                         /* any string */
uint32_t qsf_schema_char(QsfSchema *s);                         /* one character of a string */
uint32_t qsf_schema_comma(QsfSchema *s);                        /* with or without a blank */
uint32_t qsf_schema_colon(QsfSchema *s);
uint32_t qsf_schema_any_number(QsfSchema *s, bool integers);
/* The string as JSON, with quotes; a value. */
uint32_t qsf_schema_literal(QsfSchema *s, const char *text, size_t len);
uint32_t qsf_schema_value(QsfSchema *s, const QsfJson *v);

/* --- schema_check.c --- */
/* Whether v is valid, as far as the supported keywords go. */
bool qsf_schema_valid(QsfSchema *s, const QsfJson *v, const QsfJson *schema, uint32_t path);
/* The automaton of a pattern or format at a path; the caller frees it. NULL: s->b has failed. */
QsfGraph *qsf_schema_pattern(QsfSchema *s, const QsfJson *pattern, uint32_t path);
QsfGraph *qsf_schema_format(QsfSchema *s, const QsfJson *format, uint32_t path);

/* --- schema_decimal.c --- */
/* Keeps the numbers of a schema's text that a double cannot hold. false: s->b has failed, at NaN and Infinity
 * too, which are not JSON. */
bool qsf_schema_keep_numbers(QsfSchema *s, const char *text, size_t len);
void qsf_schema_free_numbers(QsfSchema *s);
/* The text of such a number; NULL if v is another one. Valid until the next schema is parsed. */
const char *qsf_schema_exact(const QsfSchema *s, const QsfJson *v, size_t *len);
/* The number v exactly; false: s->b has failed, because it has more digits than QSF_SCHEMA_DIGITS. */
bool qsf_schema_decimal(QsfSchema *s, const QsfJson *v, uint32_t path, QsfDecimal *out);
/* Compares exactly: below 0, 0 or above 0. */
int qsf_decimal_compare(const QsfDecimal *a, const QsfDecimal *b);

/* --- schema_values.c --- */
double qsf_value_number(const QsfJson *v);
/* Compares two numbers exactly: below 0, 0 or above 0; 0 if s->b fails. */
int qsf_value_compare(QsfSchema *s, const QsfJson *a, const QsfJson *b);
bool qsf_value_is_number(const QsfJson *v);
/* Are two values equal? false if s->b fails. */
bool qsf_value_equal(QsfSchema *s, const QsfJson *a, const QsfJson *b);
/* Is v one of the values of an array? false if s->b fails. */
bool qsf_value_in(QsfSchema *s, const QsfJson *v, const QsfJson *list);
/* Frees the tables of lists. */
void qsf_values_free(QsfSchema *s);

/* --- schema_disjoint.c --- */
/* Is it certain that no value of these types is valid for both? */
bool qsf_schema_apart(QsfSchema *s, const QsfJson *a, const QsfJson *b, uint32_t path, uint32_t types);

#endif
