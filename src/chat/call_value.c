/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a value is written, by its schema: implements call_value.h. */
#include "src/chat/call_value.h"

#include <string.h>

#define REFERENCES 8u /* that lead from one to the next */

static bool is(const char *text, const char *word) { return text != NULL && strcmp(text, word) == 0; }

/* Keywords that say nothing about values. */
static bool is_note(const char *key) {
    static const char *const notes[] = { "title",      "description", "default",   "examples",
                                         "deprecated", "readOnly",    "writeOnly", "$comment" };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (is(key, notes[i])) return true;
    return false;
}

/* What a schema says. */
typedef struct Says {
    bool ref, other; /* $ref; a keyword besides those that follow */
    const QsfJson *type, *list, *one;
} Says;

static Says read_schema(const QsfJson *schema) {
    Says s = { 0 };
    const char *key;
    const QsfJson *value;
    for (const void *i = NULL; (i = qsf_json_next(schema, i, &key, &value)) != NULL;) {
        if (is(key, "$ref"))
            s.ref = true;
        else if (is(key, "type"))
            s.type = value;
        else if (is(key, "enum"))
            s.list = value;
        else if (is(key, "const"))
            s.one = value;
        else if (!is_note(key))
            s.other = true;
    }
    return s;
}

const QsfJson *qsf_call_schema(const QsfJson *root, const QsfJson *schema) {
    for (unsigned i = 0; i < REFERENCES && schema != NULL; i++) {
        const Says s = read_schema(schema);
        if (!s.ref || s.other || s.type != NULL || s.list != NULL || s.one != NULL) return schema;
        schema = qsf_json_pointer(root, qsf_json_string(qsf_json_get(schema, "$ref"), NULL));
    }
    return schema;
}

/* A string that is read back as it is written: the line breaks around a value are not part of it. */
static bool is_word(const QsfJson *v) {
    size_t n;
    const char *s = qsf_json_string(v, &n);
    return s != NULL && n > 0 && s[0] != '\n' && s[n - 1] != '\n' && memchr(s, 0, n) == NULL &&
           memmem(s, n, "</parameter>", 12) == NULL;
}

static bool are_words(const Says *s) {
    if (s->list == NULL || s->one != NULL) return s->list == NULL && is_word(s->one);
    const size_t n = qsf_json_size(s->list);
    bool all = qsf_json_type(s->list) == QSF_JSON_ARRAY && n > 0;
    for (size_t i = 0; all && i < n; i++) all = is_word(qsf_json_at(s->list, i));
    return all;
}

QsfCallValue qsf_call_value(const QsfJson *root, const QsfJson *schema) {
    const QsfJson *to = qsf_call_schema(root, schema);
    if (schema == NULL || qsf_json_is(to, true)) return QSF_CALL_ANY;
    if (to == NULL || qsf_json_type(to) != QSF_JSON_OBJECT) return QSF_CALL_VALUE;
    const Says s = read_schema(to);
    const bool string = is(qsf_json_string(s.type, NULL), "string"), listed = s.list != NULL || s.one != NULL;
    if (s.type == NULL && !listed && !s.other && !s.ref) return QSF_CALL_ANY;
    if (s.other || s.ref || (s.type != NULL && !string)) return string ? QSF_CALL_QUOTED : QSF_CALL_VALUE;
    if (!listed || are_words(&s)) return QSF_CALL_TEXT;
    return string ? QSF_CALL_QUOTED : QSF_CALL_VALUE;
}
