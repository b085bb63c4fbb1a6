/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --override-kv KEY=TYPE:VALUE: overrides metadata of the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/plain_locale.h"
#include "src/file/i2s.h"
#include "src/file/source_impl.h"

static int parse_str(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err) {
    e->type = QSF_META_STRING;
    e->v.str.len = strlen(text);
    e->v.str.s = qsf_arena_strdup(&s->arena, text, strlen(text), err);
    return e->v.str.s == NULL ? err->code : QSF_OK;
}

static int parse_int(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err) {
    char *end;
    (void)s;
    errno = 0;
    e->type = QSF_META_I64;
    e->v.i = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return qsf_err_set(err, QSF_E_USAGE, "'%s' is not an integer", text);
    return QSF_OK;
}

/* Parses a number with a decimal point in any locale. */
static int parse_float(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err) {
    char *end = NULL;
    (void)s;
    QsfPlainLocale plain;
    qsf_plain_locale_begin(&plain);
    e->type = QSF_META_F64;
    e->v.f = strtod(text, &end);
    qsf_plain_locale_end(&plain);
    if (plain.plain == NULL) return qsf_err_memory(err, "the value '%s'", text);
    if (end == text || *end != '\0') return qsf_err_set(err, QSF_E_USAGE, "'%s' is not a number", text);
    return QSF_OK;
}

static int parse_bool(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err) {
    (void)s;
    e->type = QSF_META_BOOL;
    e->v.u = strcmp(text, "true") == 0;
    if (e->v.u == 0 && strcmp(text, "false") != 0)
        return qsf_err_set(err, QSF_E_USAGE, "'%s' is not true or false", text);
    return QSF_OK;
}

typedef struct ValueKind {
    const char *prefix;
    int (*parse)(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err);
} ValueKind;

static const ValueKind kinds[] = {
    { "str:", parse_str }, { "int:", parse_int }, { "float:", parse_float }, { "bool:", parse_bool }
};

static int parse_value(QsfSource *s, const char *text, QsfMetaEntry *e, QsfErr *err) {
    if (strcmp(text, "null") == 0) {
        e->hidden = true;
        return QSF_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, n) == 0) return kinds[i].parse(s, text + n, e, err);
    }
    return qsf_err_set(err, QSF_E_USAGE,
                       "expected KEY=null or KEY=str:VALUE, int:VALUE, float:VALUE or bool:VALUE");
}

/* Replaces the entry with the key of e, or adds e. */
static int store(QsfSource *s, const QsfMetaEntry *e, QsfErr *err) {
    QsfMetaTable *t = &s->meta;
    int32_t id = qsf_hashmap_get(&t->map, e->key, e->key_len);
    if (id < 0) {
        if (e->hidden) return QSF_OK; /* already absent */
        if (t->n == t->cap) return qsf_err_set(err, QSF_E_USAGE, "more than %u overrides", QSF_MAX_OVERRIDES);
        t->e[t->n] = *e;
        return qsf_meta_table_add(s, t, err);
    }
    QsfMetaEntry *old = &t->e[id];
    t->n_hidden -= old->hidden;
    t->n_hidden += e->hidden;
    const char *key = old->key; /* the hash table refers to it */
    *old = *e;
    old->key = key;
    return QSF_OK;
}

/* The layout of I2_S tensors is chosen like an entry, but is none. Formats other than GGUF
 * have a type for each. */
static int choose_i2s(QsfSource *s, const QsfMetaEntry *e, QsfErr *err) {
    if (e->type != QSF_META_STRING || e->hidden)
        return qsf_err_set(err, QSF_E_USAGE, "expected " QSF_I2S_NAMES);
    const int layout = qsf_i2s_layout(e->v.str.s, err);
    if (layout < 0) return QSF_E_USAGE;
    return s->choose_i2s != NULL ? s->choose_i2s(s, layout, err) : QSF_OK;
}

int qsf_source_override(QsfSource *s, const char *spec, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    const char *eq = strchr(spec, '=');
    QsfMetaEntry e = { 0 };
    int rc;
    if (eq == NULL || eq == spec) {
        rc = qsf_err_set(err, QSF_E_USAGE, "expected KEY=TYPE:VALUE or KEY=null");
    } else {
        e.key_len = (size_t)(eq - spec);
        e.key = qsf_arena_strdup(&s->arena, spec, e.key_len, err);
        rc = e.key == NULL ? err->code : parse_value(s, eq + 1, &e, err);
    }
    if (rc == QSF_OK && strcmp(e.key, QSF_I2S_KEY) == 0) return choose_i2s(s, &e, err);
    if (rc == QSF_OK) rc = store(s, &e, err);
    if (rc != QSF_OK) qsf_err_prefix(err, "--override-kv %s", spec);
    return rc;
}
