/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Strings of a JSON Schema: pattern, format, minLength, maxLength; all that are given hold together. */
#include <string.h>

#include "src/grammar/regex.h"
#include "src/grammar/schema.h"

#define DAY31 "(?:0[1-9]|[12]\\d|3[01])"
#define YEAR  "(?:\\d{3}[1-9]|\\d{2}[1-9]0|\\d[1-9]00|[1-9]000)"
#define LEAP  "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
#define DATE                                                          \
    "(?:" YEAR "-(?:(?:0[13578]|1[02])-" DAY31                        \
    "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))" \
    "|" LEAP "-02-29)"
#define TIME  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define HEX   "[0-9a-fA-F]"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
#define ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define OCTET "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

/* RFC 3339 without leap seconds; RFC 5321 without quoted names. */
static const struct {
    const char *name, *regex;
} formats[] = {
    { "date", DATE },
    { "time", TIME },
    { "date-time", DATE "T" TIME },
    { "uuid", HEX "{8}(?:-" HEX "{4}){3}-" HEX "{12}" },
    { "email", ATEXT "(?:\\." ATEXT ")*@" LABEL "(?:\\." LABEL ")*" },
    { "ipv4", "(?:" OCTET "\\.){3}" OCTET },
};

QsfGraph *qsf_schema_pattern(QsfSchema *s, const QsfJson *pattern, uint32_t path) {
    size_t len;
    const char *text = qsf_json_string(pattern, &len);
    QsfErr *const err = s->b->err, own_err = { 0 };
    QsfErr own = own_err;
    if (text == NULL) return qsf_schema_fail(s, path, "pattern is not a text"), NULL;
    s->b->err = &own;
    const uint32_t node = qsf_regex_parse(s->b, text, len);
    QsfGraph *g = s->b->failed ? NULL : qsf_regex_graph(s->b, node, true);
    s->b->err = err;
    if (g != NULL) return g;
    s->b->failed = false; /* with the path in the message */
    if (own.code == QSF_E_USAGE)
        qsf_schema_fail(s, path, "the regular expression, %.400s", own.msg);
    else
        qsf_gbuild_fail(s->b, own.code, "%s", own.msg);
    return NULL;
}

QsfGraph *qsf_schema_format(QsfSchema *s, const QsfJson *format, uint32_t path) {
    const char *name = qsf_json_string(format, NULL);
    for (size_t i = 0; name != NULL && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(formats[i].name, name) != 0) continue;
        const uint32_t node = qsf_regex_parse(s->b, formats[i].regex, strlen(formats[i].regex));
        return s->b->failed ? NULL : qsf_regex_graph(s->b, node, false);
    }
    qsf_schema_fail(s, path, "the format \"%.100s\" is not supported", name != NULL ? name : "?");
    return NULL;
}

typedef struct Strings {
    QsfGraph *graph; /* NULL: any text */
    uint32_t min, max;
} Strings;

/* Both hold; g is taken. */
static void combine(QsfSchema *s, Strings *t, QsfGraph *g, uint32_t path) {
    if (g == NULL || t->graph == NULL) {
        if (t->graph == NULL) t->graph = g;
        return;
    }
    QsfGraph *both = qsf_graph_both(t->graph, g);
    qsf_graph_free(g);
    qsf_graph_free(t->graph);
    t->graph = both;
    if (both == NULL) qsf_schema_fail(s, path, "pattern, format and lengths are too large to be combined");
}

static void add_part(QsfSchema *s, Strings *t, const QsfSchemaPart *p) {
    const QsfJson *pattern = qsf_json_get(p->schema, "pattern"), *format = qsf_json_get(p->schema, "format");
    uint32_t n;
    if (qsf_schema_count(s, p, "minLength", &n) && n > t->min) t->min = n;
    if (qsf_schema_count(s, p, "maxLength", &n) && n < t->max) t->max = n;
    if (pattern != NULL)
        combine(s, t, qsf_schema_pattern(s, pattern, qsf_schema_at(s, p->path, "pattern")), p->path);
    if (format != NULL && !s->b->failed)
        combine(s, t, qsf_schema_format(s, format, qsf_schema_at(s, p->path, "format")), p->path);
}

static uint32_t in_quotes(QsfSchema *s, uint32_t inside) {
    const uint32_t list = qsf_node_list(s->b, QSF_NODE_SEQ);
    qsf_node_add(s->b, list, qsf_node_text(s->b, "\""));
    qsf_node_add(s->b, list, inside);
    qsf_node_add(s->b, list, qsf_node_text(s->b, "\""));
    return list;
}

static uint32_t from_graph(QsfSchema *s, Strings *t, uint32_t path) {
    if (t->min > 0 || t->max != QSF_NO_LIMIT) {
        if (t->min > 10000 || (t->max != QSF_NO_LIMIT && t->max > 10000))
            return qsf_schema_fail(s, path,
                                   "minLength and maxLength above 10000 are not supported beside a "
                                   "pattern or format");
        combine(s, t, qsf_graph_length(t->min, t->max), path);
    }
    if (s->b->failed || t->graph == NULL) return 0;
    if (qsf_graph_is_empty(t->graph))
        return qsf_schema_fail(s, path,
                               "pattern, format, minLength and maxLength contradict each other: "
                               "nothing is valid");
    QsfGraph *g = t->graph;
    t->graph = NULL;
    return in_quotes(s, qsf_node_graph(s->b, g, true));
}

uint32_t qsf_schema_string(QsfSchema *s, const QsfSchemaParts *p) {
    Strings t = { .max = QSF_NO_LIMIT };
    uint32_t node = 0;
    const uint32_t path = p->part[p->n - 1].path;
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) add_part(s, &t, &p->part[i]);
    if (t.min > t.max)
        qsf_schema_fail(s, path, "minLength %u is above maxLength %u: nothing is valid", t.min, t.max);
    if (s->b->failed)
        node = 0;
    else if (t.graph != NULL)
        node = from_graph(s, &t, path);
    else if (t.min == 0 && t.max == QSF_NO_LIMIT)
        node = qsf_schema_text(s);
    else
        node = in_quotes(s, qsf_node_repeat(s->b, qsf_schema_char(s), t.min, t.max));
    qsf_graph_free(t.graph);
    return node;
}
