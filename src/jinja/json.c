/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values from JSON, and the filter tojson as in Hugging Face transformers: Python's json.dumps with
 * ensure_ascii off, without escaping for HTML. */
#include <math.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/jinja/eval.h"

/* --- from JSON; the parser limits the depth --- */

static QsfJVal copy_text(QsfJMem *m, const char *s, size_t len) {
    char *copy = qsf_j_alloc(m, len + 1);
    if (copy == NULL) return qsf_j_none();
    if (len > 0) memcpy(copy, s, len);
    return qsf_j_str(m, copy, len, QSF_J_DATA);
}

static QsfJVal copy_object(QsfJMem *m, const QsfJson *j) {
    QsfJVal d = qsf_j_dict(m, QSF_J_DICT, qsf_json_size(j));
    const char *key;
    const QsfJson *value;
    for (const void *it = NULL; d.type == QSF_J_DICT && (it = qsf_json_next(j, it, &key, &value)) != NULL;) {
        QsfJVal k = copy_text(m, key, strlen(key));
        if (!qsf_j_dict_add(m, d.u.d, k, qsf_jinja_from_json(m, value))) break;
    }
    return d;
}

QsfJVal qsf_jinja_from_json(QsfJMem *m, const QsfJson *j) {
    size_t len;
    if (m->failed) return qsf_j_none();
    switch (qsf_json_type(j)) {
    case QSF_JSON_BOOL: return qsf_j_bool(qsf_json_bool(j, false));
    case QSF_JSON_INT: return qsf_j_int(qsf_json_int(j, 0));
    case QSF_JSON_REAL: return qsf_j_float(qsf_json_real(j, 0));
    case QSF_JSON_STRING: {
        const char *s = qsf_json_string(j, &len);
        return copy_text(m, s, len);
    }
    case QSF_JSON_OBJECT: return copy_object(m, j);
    case QSF_JSON_ARRAY: {
        QsfJVal l = qsf_j_list(m, QSF_J_LIST, qsf_json_size(j));
        for (size_t i = 0; l.type == QSF_J_LIST && i < qsf_json_size(j); i++)
            if (!qsf_j_append(m, l.u.l, qsf_jinja_from_json(m, qsf_json_at(j, i)))) break;
        return l;
    }
    default: return qsf_j_none();
    }
}

/* --- to JSON --- */

typedef struct Style {
    bool ascii, sort_keys, pretty;
    QsfJVal indent;    /* string for one level, when pretty */
    QsfJVal item, key; /* separators */
    unsigned level;
} Style;

static bool put_json(QsfJCtx *c, Style *st, QsfJVal v);

static bool put_unit(QsfJCtx *c, unsigned unit, QsfJTag tag) {
    static const char hex[] = "0123456789abcdef";
    const char text[6] = { '\\',          'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15],
                           hex[unit & 15] };
    return qsf_j_put(c, text, sizeof text, tag);
}

static bool put_char(QsfJCtx *c, const Style *st, uint32_t cp, const char *raw, size_t n, QsfJTag tag) {
    static const char named[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    const char *at = cp > 0 && cp < 128 ? strchr(named, (int)cp) : NULL;
    if (at != NULL) {
        const char text[2] = { '\\', letters[at - named] };
        return qsf_j_put(c, text, 2, tag);
    }
    if (cp < 32) return put_unit(c, cp, tag);
    if (!st->ascii || cp < 127 || cp == 127) return qsf_j_put(c, raw, n, tag);
    if (cp == UINT32_MAX) cp = 0xFFFD;
    if (cp < 0x10000) return put_unit(c, cp, tag);
    return put_unit(c, 0xD800 + ((cp - 0x10000) >> 10), tag) &&
           put_unit(c, 0xDC00 + ((cp - 0x10000) & 0x3FF), tag);
}

static bool put_json_str(QsfJCtx *c, const Style *st, const QsfJStr *s) {
    if (!qsf_j_bytes(c, s->len) || !qsf_j_puts(c, "\"")) return false;
    for (size_t i = 0, n; i < s->len; i += n) {
        uint32_t cp;
        QsfJTag tag;
        size_t stop = qsf_j_run_end(s, i, &tag);
        n = qsf_utf8_next(s->p + i, stop - i, &cp);
        if (!put_char(c, st, cp, s->p + i, n, tag)) return false;
    }
    return qsf_j_puts(c, "\"");
}

static bool put_json_float(QsfJCtx *c, double f) {
    if (isnan(f)) return qsf_j_puts(c, "NaN");
    if (isinf(f)) return qsf_j_puts(c, f > 0 ? "Infinity" : "-Infinity");
    return qsf_j_put_float(c, f);
}

/* A newline and the indentation of the level, if any. */
static bool put_break(QsfJCtx *c, const Style *st) {
    if (!st->pretty) return true;
    if (!qsf_j_puts(c, "\n")) return false;
    for (unsigned i = 0; i < st->level; i++)
        if (!qsf_j_put_val(c, st->indent)) return false;
    return true;
}

static bool put_key(QsfJCtx *c, const Style *st, QsfJVal key) {
    if (key.type == QSF_J_STR) return put_json_str(c, st, key.u.s);
    if (key.type != QSF_J_NONE && !qsf_j_is_num(key))
        return qsf_j_fail(c, "'tojson' of a mapping with a key of type %s", qsf_j_type_name(key));
    Style plain = *st;
    return qsf_j_puts(c, "\"") && put_json(c, &plain, key) && qsf_j_puts(c, "\"");
}

/* Order of the pairs of d by key, if requested. */
static bool key_order(QsfJCtx *c, const Style *st, const QsfJDict *d, uint32_t **out) {
    uint32_t *order = qsf_j_alloc(c->mem, (d->n + 1u) * sizeof *order);
    if (order == NULL) return qsf_j_ok(c);
    *out = order;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t k = i;
        for (bool less = true; st->sort_keys && k > 0; k--) { /* insertion: qsf_j_less counts the steps */
            if (!qsf_j_less(c, d->kv[2 * i], d->kv[2 * order[k - 1]], &less)) return false;
            if (!less) break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    return true;
}

static bool put_json_dict(QsfJCtx *c, Style *st, const QsfJDict *d) {
    uint32_t *order = NULL;
    if (d->n == 0) return qsf_j_puts(c, "{}");
    if (!key_order(c, st, d, &order) || !qsf_j_puts(c, "{")) return false;
    st->level++;
    for (uint32_t i = 0; i < d->n; i++) {
        const QsfJVal *pair = &d->kv[2 * order[i]];
        if ((i > 0 && !qsf_j_put_val(c, st->item)) || !put_break(c, st) || !put_key(c, st, pair[0]) ||
            !qsf_j_put_val(c, st->key) || !put_json(c, st, pair[1]))
            return false;
    }
    st->level--;
    return put_break(c, st) && qsf_j_puts(c, "}");
}

static bool put_json_list(QsfJCtx *c, Style *st, const QsfJList *l) {
    if (l->n == 0) return qsf_j_puts(c, "[]");
    if (!qsf_j_puts(c, "[")) return false;
    st->level++;
    for (uint32_t i = 0; i < l->n; i++)
        if ((i > 0 && !qsf_j_put_val(c, st->item)) || !put_break(c, st) || !put_json(c, st, l->v[i]))
            return false;
    st->level--;
    return put_break(c, st) && qsf_j_puts(c, "]");
}

static bool put_json(QsfJCtx *c, Style *st, QsfJVal v) {
    bool ok;
    if (!qsf_j_work(c, 1)) return false;
    switch (v.type) {
    case QSF_J_NONE: return qsf_j_puts(c, "null");
    case QSF_J_BOOL: return qsf_j_puts(c, v.u.b ? "true" : "false");
    case QSF_J_INT: return qsf_j_put_val(c, v);
    case QSF_J_FLOAT: return put_json_float(c, v.u.f);
    case QSF_J_STR: return put_json_str(c, st, v.u.s);
    case QSF_J_LIST:
    case QSF_J_TUPLE:
    case QSF_J_DICT:
        if (!qsf_j_enter_level(c)) return false;
        ok = v.type == QSF_J_DICT ? put_json_dict(c, st, v.u.d) : put_json_list(c, st, v.u.l);
        c->depth--;
        return ok;
    default: return qsf_j_fail(c, "'tojson' cannot write %s", qsf_j_type_name(v));
    }
}

/* indent= : a number of spaces or a string; None means one line. */
static bool read_indent(QsfJCtx *c, QsfJVal v, Style *st) {
    if (v.type == QSF_J_MISSING || v.type == QSF_J_NONE) return true;
    st->pretty = true;
    st->indent = v;
    if (v.type == QSF_J_STR) return true;
    if (!qsf_j_is_whole(v)) return qsf_j_fail(c, "the indent of 'tojson' must be a number or a string");
    QsfJVal space;
    return qsf_j_text(c, " ", &space) && qsf_j_arith(c, QSF_J_OP_MUL, space, v, &st->indent);
}

static bool read_separators(QsfJCtx *c, QsfJVal v, Style *st) {
    if (v.type == QSF_J_MISSING || v.type == QSF_J_NONE)
        return qsf_j_text(c, st->pretty ? "," : ", ", &st->item) && qsf_j_text(c, ": ", &st->key);
    if (!qsf_j_is_listy(v) || v.u.l->n != 2 || !qsf_j_is_str(v.u.l->v[0]) || !qsf_j_is_str(v.u.l->v[1]))
        return qsf_j_fail(c, "the separators of 'tojson' must be two strings");
    st->item = v.u.l->v[0];
    st->key = v.u.l->v[1];
    return true;
}

static bool f_tojson(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    Style st = { .ascii = qsf_j_truth(a->v[0]), .sort_keys = qsf_j_truth(a->v[3]) };
    if (!read_indent(c, a->v[1], &st) || !read_separators(c, a->v[2], &st)) return false;
    size_t mark = qsf_j_mark(c);
    return put_json(c, &st, a->self) && qsf_j_cut(c, mark, out);
}

const QsfJRow qsf_j_json_filters[] = { { "tojson", f_tojson, "ensure_ascii indent separators sort_keys" },
                                       { 0 } };
