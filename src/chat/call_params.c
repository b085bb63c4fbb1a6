/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes the schema of parameters apart: implements call_params.h. */
#include "src/chat/call_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/presence.h"

#define NODES        256u /* schemas at the root of a schema */
#define PARTS        16u  /* that hold together */
#define ALTERNATIVES 32u
#define DECIDED      16u
#define PATH         160u
#define SHOWN        80 /* bytes of a path in a message */

/* A schema, and the way to it from the root: a JSON Pointer as the fragment of a URI. */
typedef struct Node {
    const QsfJson *schema;
    char path[PATH];
} Node;

/* Schemas that hold together. */
typedef struct Alternative {
    uint16_t part[PARTS]; /* (n) nodes */
    uint32_t n;
    uint32_t at, step; /* the part that is taken apart, and the next step for it */
    bool never;        /* nothing is valid */
    /* what was decided of parameters that depend on each other */
    const char *there[DECIDED], *absent[DECIDED]; /* (n_there, n_absent) borrowed */
    uint32_t n_there, n_absent;
} Alternative;

struct QsfCallParams {
    const QsfJson *root;
    bool draft7; /* where keywords beside a $ref do not count */
    Node node[NODES];
    uint32_t n_nodes, n;
    Alternative alternative[ALTERNATIVES]; /* (n) */
};

static bool is_text(const QsfJson *v, const char *text) {
    const char *s = qsf_json_string(v, NULL);
    return s != NULL && strcmp(s, text) == 0;
}

static bool is_only_ref(const QsfCallParams *p, const QsfJson *schema) {
    return p->draft7 && qsf_json_get(schema, "$ref") != NULL;
}

/* ---- taking apart ---- */

static int fail(const char *path, QsfErr *err, const char *why) {
    return qsf_err_set(err, QSF_E_USAGE, "#%.*s: %s", SHOWN, path, why);
}

static int add_part(QsfCallParams *p, Alternative *a, const QsfJson *schema, const char *path, QsfErr *err) {
    uint32_t k = 0;
    if (qsf_json_is(schema, true)) return QSF_OK;
    a->never = a->never || qsf_json_is(schema, false);
    if (a->never) return QSF_OK;
    if (qsf_json_type(schema) != QSF_JSON_OBJECT)
        return fail(path, err, "a schema is an object, true or false");
    for (uint32_t i = 0; i < a->n; i++)
        if (p->node[a->part[i]].schema == schema) return QSF_OK;
    while (k < p->n_nodes && p->node[k].schema != schema) k++;
    if (k == NODES || a->n == PARTS) return fail(path, err, "too many schemas hold together");
    if (k == p->n_nodes) {
        p->node[k].schema = schema;
        if (snprintf(p->node[k].path, PATH, "%s", path) >= (int)PATH)
            return fail(path, err, "the path is too long");
        p->n_nodes++;
    }
    a->part[a->n++] = (uint16_t)k;
    return QSF_OK;
}

static int add_element(QsfCallParams *p, Alternative *a, const Node *of, const char *key, size_t i,
                       QsfErr *err) {
    char path[PATH + 40];
    (void)snprintf(path, sizeof path, "%s/%s/%zu", of->path, key, i);
    return add_part(p, a, qsf_json_at(qsf_json_get(of->schema, key), i), path, err);
}

/* What has to hold besides: $ref and allOf. */
static int add_others(QsfCallParams *p, Alternative *a, const Node *of, QsfErr *err) {
    const QsfJson *ref = qsf_json_get(of->schema, "$ref"), *all = qsf_json_get(of->schema, "allOf");
    const char *text = qsf_json_string(ref, NULL);
    const QsfJson *to = qsf_json_pointer(p->root, text);
    int rc = QSF_OK;
    if (ref != NULL && to == NULL) return fail(of->path, err, "the $ref leads nowhere");
    if (to != NULL) rc = add_part(p, a, to, text + 1, err);
    if (is_only_ref(p, of->schema)) return rc;
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(all); i++)
        rc = add_element(p, a, of, "allOf", i, err);
    return rc;
}

/* Each schema of the list makes an alternative; the first one is a itself. */
static int add_choice(QsfCallParams *p, Alternative *a, const Node *of, const char *key, QsfErr *err) {
    const size_t n = qsf_json_size(qsf_json_get(of->schema, key));
    const Alternative before = *a;
    if (n == 0 || is_only_ref(p, of->schema)) return QSF_OK;
    if (n - 1 > ALTERNATIVES - p->n) return fail(of->path, err, "too many alternatives");
    int rc = add_element(p, a, of, key, 0, err);
    for (size_t i = 1; rc == QSF_OK && i < n; i++) {
        Alternative *other = &p->alternative[p->n++];
        *other = before;
        rc = add_element(p, other, of, key, i, err);
    }
    return rc;
}

/* Does a schema allow objects, and not only some of them by their values? */
static int check_type(const QsfCallParams *p, Alternative *a, const Node *of, QsfErr *err) {
    const QsfJson *type = qsf_json_get(of->schema, "type");
    bool object = type == NULL || is_text(type, "object");
    if (is_only_ref(p, of->schema)) return QSF_OK;
    if (qsf_json_type(type) == QSF_JSON_ARRAY)
        for (size_t i = 0; i < qsf_json_size(type); i++)
            object = object || is_text(qsf_json_at(type, i), "object");
    a->never = a->never || !object;
    if (qsf_json_get(of->schema, "enum") != NULL || qsf_json_get(of->schema, "const") != NULL)
        return fail(of->path, err, "a list of whole values cannot be written as parameters");
    return QSF_OK;
}

static int take_apart(QsfCallParams *p, Alternative *a, QsfErr *err) {
    int rc = QSF_OK;
    while (rc == QSF_OK && !a->never && a->at < a->n) {
        const Node *of = &p->node[a->part[a->at]];
        const uint32_t step = a->step++;
        if (step == 0) rc = check_type(p, a, of, err);
        if (rc == QSF_OK && step == 0) rc = add_others(p, a, of, err);
        if (step == 1) rc = add_choice(p, a, of, "anyOf", err);
        if (step == 2 && qsf_presence_one_of(of->schema) == NULL) rc = add_choice(p, a, of, "oneOf", err);
        if (step == 3) a->at++, a->step = 0;
    }
    return rc;
}

/* ---- what a part says about a parameter ---- */

static const Node *part_of(const QsfCallParams *p, const Alternative *a, uint32_t i) {
    static const Node nothing = { 0 };
    const Node *node = &p->node[a->part[i]];
    return is_only_ref(p, node->schema) ? &nothing : node;
}

static const QsfJson *property(const Node *part, const char *key) {
    return qsf_json_get(qsf_json_get(part->schema, "properties"), key);
}

/* The schema of a parameter; *from: the keyword that has it. */
static const QsfJson *schema_of(const Node *part, const char *key, const char **from) {
    const QsfJson *v = property(part, key);
    *from = v != NULL ? "properties" : "additionalProperties";
    return v != NULL ? v : qsf_json_get(part->schema, "additionalProperties");
}

static bool is_in(const char *const *list, uint32_t n, const char *key) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i], key) == 0) return true;
    return false;
}

static bool is_forbidden(const QsfCallParams *p, const Alternative *a, const char *key) {
    const char *from;
    if (is_in(a->absent, a->n_absent, key)) return true;
    for (uint32_t i = 0; i < a->n; i++)
        if (qsf_json_is(schema_of(part_of(p, a, i), key, &from), false)) return true;
    return false;
}

/* Is it described before part n? */
static bool is_described(const QsfCallParams *p, const Alternative *a, const char *key, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (property(part_of(p, a, i), key) != NULL) return true;
    return false;
}

/* Is it in a list before element `end` of that of part n? */
static bool is_listed(const QsfCallParams *p, const Alternative *a, const char *key, uint32_t n, size_t end) {
    for (uint32_t i = 0; i < a->n && i <= n; i++) {
        const QsfJson *list = qsf_json_get(part_of(p, a, i)->schema, "required");
        const size_t size = i == n ? end : qsf_json_size(list);
        for (size_t k = 0; k < size; k++)
            if (is_text(qsf_json_at(list, k), key)) return true;
    }
    return false;
}

static bool is_required(const QsfCallParams *p, const Alternative *a, const char *key) {
    return is_in(a->there, a->n_there, key) || is_listed(p, a, key, a->n, 0);
}

/* The schemas of a parameter; *one: the last of them. */
static uint32_t count_schemas(const QsfCallParams *p, const Alternative *a, const char *key,
                              const QsfJson **one) {
    const char *from;
    uint32_t n = 0;
    *one = NULL;
    for (uint32_t i = 0; i < a->n; i++) {
        const QsfJson *v = schema_of(part_of(p, a, i), key, &from);
        if (v == NULL || qsf_json_is(v, true)) continue;
        *one = v;
        n++;
    }
    return n;
}

/* Nothing is valid where a parameter is both required and forbidden. */
static bool contradicts(const QsfCallParams *p, const Alternative *a) {
    for (uint32_t i = 0; i < a->n; i++) {
        const QsfJson *list = qsf_json_get(part_of(p, a, i)->schema, "required");
        for (size_t k = 0; k < qsf_json_size(list); k++) {
            const char *key = qsf_json_string(qsf_json_at(list, k), NULL);
            if (key != NULL && is_forbidden(p, a, key)) return true;
        }
    }
    return false;
}

/* ---- parameters that depend on each other ---- */

static int read_presence(const QsfCallParams *p, const Alternative *a, QsfPresence *r, QsfErr *err) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Node *part = part_of(p, a, i);
        const char *why = qsf_presence_add(r, part->schema);
        if (why != NULL) return fail(part->path, err, why);
    }
    for (uint32_t i = 0; i < r->n_names; i++) {
        const char *key = r->name[i].text;
        const bool known = r->name[i].listed || is_described(p, a, key, a->n) || is_required(p, a, key);
        r->name[i].state = !known || is_forbidden(p, a, key) ? QSF_MEMBER_ABSENT
                           : is_required(p, a, key)          ? QSF_MEMBER_THERE
                                                             : QSF_MEMBER_OPEN;
    }
    return QSF_OK;
}

/* As long as the rules leave a parameter open, splits the alternative in two: a has the parameter, and a new
 * alternative at the end of the list does not have it. */
static int decide(QsfCallParams *p, Alternative *a, QsfErr *err) {
    QsfPresence *r = malloc(sizeof *r);
    uint32_t open = 0;
    int rc = r == NULL ? qsf_err_memory(err, "the parameters of a tool") : QSF_OK;
    for (bool more = true; rc == QSF_OK && more && !a->never;) {
        memset(r, 0, sizeof *r);
        rc = read_presence(p, a, r, err);
        const QsfPresenceState all = qsf_presence_check(r, &open);
        more = rc == QSF_OK && all == QSF_MEMBER_OPEN;
        a->never = all == QSF_MEMBER_ABSENT;
        if (!more) continue;
        if (p->n == ALTERNATIVES || a->n_there == DECIDED || a->n_absent == DECIDED) {
            rc = fail("", err, "too many alternatives of parameters that depend on each other");
            continue;
        }
        Alternative *other = &p->alternative[p->n++];
        *other = *a;
        other->absent[other->n_absent++] = r->name[open].text;
        a->there[a->n_there++] = r->name[open].text;
    }
    free(r);
    return rc;
}

/* ---- all of it ---- */

int qsf_call_params_new(QsfCallParams **out, const QsfJson *root, QsfErr *err) {
    QsfCallParams *p = calloc(1, sizeof *p);
    *out = p;
    if (p == NULL) return qsf_err_memory(err, "the parameters of a tool");
    const char *draft = qsf_json_string(qsf_json_get(root, "$schema"), NULL);
    uint32_t n = 0;
    p->root = root;
    p->draft7 = draft != NULL && strstr(draft, "draft-0") != NULL;
    p->n = 1;
    int rc = root != NULL ? add_part(p, &p->alternative[0], root, "", err) : QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < p->n; i++) rc = take_apart(p, &p->alternative[i], err);
    for (uint32_t i = 0; rc == QSF_OK && i < p->n; i++) rc = decide(p, &p->alternative[i], err);
    for (uint32_t i = 0; rc == QSF_OK && i < p->n; i++) {
        const Alternative *a = &p->alternative[i];
        if (!a->never && !contradicts(p, a)) p->alternative[n++] = *a;
    }
    p->n = n;
    if (rc == QSF_OK && n == 0) rc = fail("", err, "nothing is valid");
    if (rc == QSF_OK) return QSF_OK;
    free(p);
    *out = NULL;
    return rc;
}

int qsf_call_params_check(const QsfCallParams *p, QsfErr *err) {
    static const char *const others[] = { "not",
                                          "if",
                                          "minProperties",
                                          "maxProperties",
                                          "propertyNames",
                                          "patternProperties",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "unevaluatedProperties" };
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const Node *node = &p->node[i];
        for (size_t k = 0; k < sizeof others / sizeof *others && !is_only_ref(p, node->schema); k++)
            if (qsf_json_get(node->schema, others[k]) != NULL)
                return qsf_err_set(err, QSF_E_USAGE, "#%.*s: the keyword %s is not supported", SHOWN,
                                   node->path, others[k]);
    }
    return QSF_OK;
}

void qsf_call_params_free(QsfCallParams *p) { free(p); }

const QsfJson *qsf_call_params_root(const QsfCallParams *p) { return p->root; }

uint32_t qsf_call_params_n(const QsfCallParams *p) { return p->n; }

QsfCallValue qsf_call_params_value(const QsfCallParams *p, const char *key) {
    QsfCallValue value = QSF_CALL_ANY;
    bool known = false;
    for (uint32_t i = 0; i < p->n; i++) {
        const Alternative *a = &p->alternative[i];
        const QsfJson *schema;
        if (!is_described(p, a, key, a->n) && !is_required(p, a, key)) continue;
        const uint32_t n = count_schemas(p, a, key, &schema);
        const QsfCallValue here = n > 1    ? QSF_CALL_VALUE
                                  : n == 1 ? qsf_call_value(p->root, schema)
                                           : QSF_CALL_ANY;
        value = !known || here == value ? here : QSF_CALL_VALUE;
        known = true;
    }
    return value;
}

static QsfCallParam param_of(const QsfCallParams *p, const Alternative *a, const char *key) {
    QsfCallParam param = { .key = key, .value = qsf_call_params_value(p, key) };
    param.required = is_required(p, a, key);
    if (count_schemas(p, a, key, &param.schema) > 1) param.schema = NULL;
    return param;
}

int qsf_call_params_each(const QsfCallParams *p, uint32_t i,
                         int (*fn)(void *arg, const QsfCallParam *param, QsfErr *err), void *arg,
                         QsfErr *err) {
    const Alternative *a = &p->alternative[i];
    int rc = QSF_OK;
    for (uint32_t k = 0; k < a->n; k++) {
        const QsfJson *all = qsf_json_get(part_of(p, a, k)->schema, "properties"), *v;
        const char *key;
        for (const void *it = NULL; rc == QSF_OK && (it = qsf_json_next(all, it, &key, &v)) != NULL;) {
            const QsfCallParam param = param_of(p, a, key);
            if (!is_described(p, a, key, k) && !is_forbidden(p, a, key)) rc = fn(arg, &param, err);
        }
    }
    for (uint32_t k = 0; k < a->n; k++) {
        const QsfJson *list = qsf_json_get(part_of(p, a, k)->schema, "required");
        for (size_t j = 0; rc == QSF_OK && j < qsf_json_size(list); j++) {
            const char *key = qsf_json_string(qsf_json_at(list, j), NULL);
            if (key == NULL || is_described(p, a, key, a->n) || is_listed(p, a, key, k, j)) continue;
            const QsfCallParam param = param_of(p, a, key);
            rc = fn(arg, &param, err);
        }
    }
    for (uint32_t k = 0; rc == QSF_OK && k < a->n_there; k++) {
        const QsfCallParam param = param_of(p, a, a->there[k]);
        if (!is_described(p, a, param.key, a->n) && !is_listed(p, a, param.key, a->n, 0))
            rc = fn(arg, &param, err);
    }
    return rc;
}

/* A name in a JSON Pointer that is the fragment of a URI. */
static void put_name(QsfStrbuf *b, const char *name) {
    for (; *name != '\0'; name++) {
        if (*name == '~' || *name == '/')
            qsf_strbuf_adds(b, *name == '~' ? "~0" : "~1");
        else if (*name == '%')
            qsf_strbuf_adds(b, "%25");
        else
            qsf_strbuf_addc(b, *name);
    }
}

void qsf_call_params_put_schema(const QsfCallParams *p, uint32_t i, const char *key, QsfStrbuf *b) {
    const Alternative *a = &p->alternative[i];
    const char *comma = "", *from;
    QsfStrbuf ref = QSF_STRBUF_INIT;
    qsf_strbuf_adds(b, "{\"allOf\": [");
    for (uint32_t k = 0; k < a->n; k++) {
        const Node *part = part_of(p, a, k);
        const QsfJson *v = schema_of(part, key, &from);
        if (v == NULL) continue;
        qsf_strbuf_clear(&ref);
        qsf_strbuf_addf(&ref, "#%s/%s", part->path, from);
        if (*from == 'p') qsf_strbuf_addc(&ref, '/');
        if (*from == 'p') put_name(&ref, key);
        qsf_strbuf_addf(b, "%s{\"$ref\": ", comma);
        qsf_json_put_string(b, qsf_strbuf_str(&ref), ref.len);
        qsf_strbuf_addc(b, '}');
        comma = ", ";
    }
    qsf_strbuf_adds(b, "]}");
    if (!qsf_strbuf_ok(&ref)) b->failed = true;
    qsf_strbuf_free(&ref);
}
