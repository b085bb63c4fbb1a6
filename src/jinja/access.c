/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Access to parts of values: attributes, items, slices, and iteration. Missing parts are undefined, as in
 * pallets/jinja src/jinja2/environment.py; only undefined itself has no parts. */
#include <string.h>

#include "src/base/utf8.h"
#include "src/jinja/eval.h"

/* --- dictionaries --- */

const QsfJVal *qsf_j_dict_text(const QsfJDict *d, const char *key, size_t len) {
    for (uint32_t i = 0; i < d->n; i++)
        if (d->kv[2 * i].type == QSF_J_STR && qsf_j_same_text(d->kv[2 * i].u.s, key, len))
            return &d->kv[2 * i + 1];
    return NULL;
}

bool qsf_j_dict_find(QsfJCtx *c, const QsfJDict *d, QsfJVal key, uint32_t *at, bool *found) {
    *found = false;
    *at = d->n;
    if (key.type == QSF_J_LIST || key.type == QSF_J_DICT || key.type == QSF_J_NS)
        return qsf_j_fail(c, "%s cannot be a key", qsf_j_type_name(key));
    if (!qsf_j_work(c, d->n / 16)) return false;
    for (uint32_t i = 0; i < d->n && !*found; i++) {
        QsfJVal k = d->kv[2 * i];
        if (key.type == QSF_J_STR)
            *found = k.type == QSF_J_STR && qsf_j_same_text(k.u.s, key.u.s->p, key.u.s->len);
        else if (!qsf_j_equal(c, k, key, found))
            return false;
        if (*found) *at = i;
    }
    return true;
}

bool qsf_j_dict_put(QsfJCtx *c, QsfJDict *d, QsfJVal key, QsfJVal v) {
    uint32_t at;
    bool found;
    if (!qsf_j_dict_find(c, d, key, &at, &found)) return false;
    if (found)
        d->kv[2 * at + 1] = v;
    else
        qsf_j_dict_add(c->mem, d, key, v);
    return qsf_j_ok(c);
}

/* --- missing parts --- */

static bool undefined_of(QsfJCtx *c, const QsfJStr *name, const char *of, QsfJVal *out) {
    QsfJUndef *u = qsf_j_alloc(c->mem, sizeof *u);
    if (u == NULL) return qsf_j_ok(c);
    *u = (QsfJUndef){ name, of };
    *out = qsf_j_undef(u);
    return true;
}

static bool part_of_undefined(QsfJCtx *c, QsfJVal obj) {
    const QsfJUndef *u = obj.u.u;
    if (u == NULL || u->name == NULL) return qsf_j_fail(c, "an undefined value has no parts");
    int n = u->name->len > 60 ? 60 : (int)u->name->len;
    if (u->of == NULL) return qsf_j_fail(c, "'%.*s' is undefined", n, u->name->p);
    return qsf_j_fail(c, "%s has no '%.*s'", u->of, n, u->name->p);
}

/* --- methods and attributes --- */

const QsfJRow *qsf_j_find_row(const QsfJRow *rows, const QsfJStr *name) {
    for (; rows->name != NULL; rows++)
        if (qsf_j_is(name, rows->name)) return rows;
    return NULL;
}

static const QsfJRow *find_method(QsfJVal obj, const QsfJStr *name) {
    static const QsfJRow *const of_str[] = { qsf_j_str_methods, qsf_j_str_split_methods, qsf_j_str_is_methods,
                                             qsf_j_str_format_methods, NULL };
    static const QsfJRow *const of_dict[] = { qsf_j_dict_methods, NULL }, *const of_list[] = {
        qsf_j_list_methods, NULL
    };
    static const QsfJRow *const of_num[] = { qsf_j_num_methods, NULL }, *const of_loop[] = {
        qsf_j_loop_methods, NULL
    };
    static const QsfJRow *const *const tables[QSF_J_N_TYPES] = {
        [QSF_J_STR] = of_str, [QSF_J_DICT] = of_dict, [QSF_J_LIST] = of_list, [QSF_J_TUPLE] = of_list,
        [QSF_J_INT] = of_num, [QSF_J_FLOAT] = of_num, [QSF_J_BOOL] = of_num,  [QSF_J_LOOP] = of_loop,
    };
    for (const QsfJRow *const *t = tables[obj.type]; t != NULL && *t != NULL; t++) {
        const QsfJRow *row = qsf_j_find_row(*t, name);
        if (row != NULL) return row;
    }
    return NULL;
}

static QsfJVal loop_item(const QsfJLoop *l, uint32_t i) { return i < l->n ? l->v[i] : qsf_j_undef(NULL); }

static bool loop_attr(const QsfJLoop *l, const QsfJStr *name, QsfJVal *out) {
    const struct {
        const char *name;
        QsfJVal v;
    } attrs[] = {
        { "index0", qsf_j_int(l->i) },
        { "index", qsf_j_int((int64_t)l->i + 1) },
        { "first", qsf_j_bool(l->i == 0) },
        { "last", qsf_j_bool(l->i + 1 == l->n) },
        { "length", qsf_j_int(l->n) },
        { "revindex", qsf_j_int((int64_t)l->n - l->i) },
        { "revindex0", qsf_j_int((int64_t)l->n - l->i - 1) },
        { "previtem", l->i == 0 ? qsf_j_undef(NULL) : loop_item(l, l->i - 1) },
        { "nextitem", loop_item(l, l->i + 1) },
        { "depth", qsf_j_int((int64_t)l->level + 1) },
        { "depth0", qsf_j_int(l->level) },
    };
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        if (!qsf_j_is(name, attrs[i].name)) continue;
        *out = attrs[i].v;
        return true;
    }
    return false;
}

/* Python's attribute of obj (not an item); *found is false if there is none. */
static bool own_attr(QsfJCtx *c, QsfJVal obj, const QsfJStr *name, QsfJVal *out, bool *found) {
    *found = true;
    if (obj.type == QSF_J_LOOP && loop_attr(obj.u.loop, name, out)) return true;
    if (obj.type == QSF_J_MACRO && qsf_j_is(name, "name")) {
        const QsfJStr *s = c->t->atoms[c->t->nodes[obj.u.m->node].sym].name;
        *out = (QsfJVal){ .type = QSF_J_STR, .u.s = s };
        return true;
    }
    if (obj.type == QSF_J_TUPLE && obj.u.l->view != NULL &&
        (qsf_j_is(name, "grouper") || qsf_j_is(name, "list"))) {
        *out = obj.u.l->v[name->p[0] == 'l'];
        return true;
    }
    const QsfJRow *row = find_method(obj, name);
    *found = row != NULL;
    if (row == NULL) return true;
    QsfJFunc *fn = qsf_j_alloc(c->mem, sizeof *fn);
    if (fn == NULL) return qsf_j_ok(c);
    *fn = (QsfJFunc){ row, obj };
    *out = (QsfJVal){ .type = QSF_J_FUNC, .u.fn = fn };
    return true;
}

/* Item of a sequence or dictionary; *found is false if there is none. */
static bool own_item(QsfJCtx *c, QsfJVal obj, QsfJVal key, QsfJVal *out, bool *found) {
    *found = false;
    if (obj.type == QSF_J_DICT || obj.type == QSF_J_NS) {
        uint32_t at;
        if (!qsf_j_dict_find(c, obj.u.d, key, &at, found)) return false;
        if (*found) *out = obj.u.d->kv[2 * at + 1];
        return true;
    }
    if (!qsf_j_is_whole(key)) return true;
    int64_t i = qsf_j_whole(key), n;
    if (obj.type == QSF_J_STR) {
        if (!qsf_j_bytes(c, obj.u.s->len)) return false;
        n = (int64_t)qsf_j_chars(obj.u.s);
    } else if (qsf_j_is_listy(obj) || obj.type == QSF_J_RANGE) {
        n = obj.u.l->n;
    } else {
        return true;
    }
    if (i < 0) i += n;
    if (i < 0 || i >= n) return true;
    *found = true;
    if (obj.type != QSF_J_STR) {
        *out = obj.u.l->v[i];
        return true;
    }
    size_t off = qsf_j_char_off(obj.u.s, (size_t)i);
    uint32_t cp;
    *out = qsf_j_substr(c->mem, obj, off, qsf_utf8_next(obj.u.s->p + off, obj.u.s->len - off, &cp));
    return qsf_j_ok(c);
}

static const char *object_name(QsfJVal obj) { return obj.type == QSF_J_NONE ? "None" : qsf_j_type_name(obj); }

bool qsf_j_attr(QsfJCtx *c, QsfJVal obj, const QsfJStr *name, QsfJVal *out) {
    bool found;
    if (obj.type == QSF_J_UNDEF) return part_of_undefined(c, obj);
    if (!own_attr(c, obj, name, out, &found)) return false;
    if (found) return true;
    QsfJVal key = { .type = QSF_J_STR, .u.s = name };
    if (!own_item(c, obj, key, out, &found)) return false;
    if (found) return true;
    return undefined_of(c, name, object_name(obj), out);
}

bool qsf_j_item(QsfJCtx *c, QsfJVal obj, QsfJVal key, QsfJVal *out) {
    bool found;
    if (obj.type == QSF_J_UNDEF) return part_of_undefined(c, obj);
    if (!own_item(c, obj, key, out, &found)) return false;
    if (found) return true;
    if (key.type == QSF_J_STR && !own_attr(c, obj, key.u.s, out, &found)) return false;
    if (found) return true;
    return undefined_of(c, key.type == QSF_J_STR ? key.u.s : NULL, object_name(obj), out);
}

static bool item_or(QsfJCtx *c, QsfJVal obj, QsfJVal key, const QsfJVal *otherwise, QsfJVal *out) {
    if (!qsf_j_item(c, obj, key, out)) return false;
    if (out->type == QSF_J_UNDEF && otherwise != NULL && otherwise->type != QSF_J_NONE) *out = *otherwise;
    return true;
}

bool qsf_j_path(QsfJCtx *c, QsfJVal obj, QsfJVal path, const QsfJVal *otherwise, QsfJVal *out) {
    *out = obj;
    if (path.type != QSF_J_STR) return item_or(c, obj, path, otherwise, out);
    const QsfJStr *s = path.u.s;
    for (size_t at = 0; at <= s->len;) {
        size_t end = at;
        int64_t number = 0;
        bool digits = true;
        for (; end < s->len && s->p[end] != '.'; end++) {
            digits = digits && s->p[end] >= '0' && s->p[end] <= '9';
            if (digits && number < INT32_MAX) number = number * 10 + (s->p[end] - '0');
        }
        QsfJVal key = digits && end > at ? qsf_j_int(number) : qsf_j_substr(c->mem, path, at, end - at);
        if (!qsf_j_ok(c) || !item_or(c, *out, key, otherwise, out)) return false;
        at = end + 1;
    }
    return true;
}

/* --- slices --- */

/* One bound of a slice, clipped like Python's slice.indices(). */
static bool slice_bound(QsfJCtx *c, QsfJVal v, int64_t n, bool down, int64_t fallback, int64_t *out) {
    *out = fallback;
    if (v.type == QSF_J_MISSING || v.type == QSF_J_NONE) return true;
    if (!qsf_j_is_whole(v))
        return qsf_j_fail(c, "the bounds of a slice must be integers, not %s", qsf_j_type_name(v));
    int64_t i = qsf_j_whole(v), low = down ? -1 : 0, high = down ? n - 1 : n;
    if (i < 0) i = i < -n ? -1 - (int64_t)!down : i + n; /* below the start, or counted from the end */
    *out = i < low ? low : i > high ? high : i;
    return true;
}

static bool slice_text(QsfJCtx *c, QsfJVal obj, int64_t start, int64_t step, int64_t count, QsfJVal *out) {
    const QsfJStr *s = obj.u.s;
    size_t off = qsf_j_char_off(s, (size_t)start);
    if (step == 1 || count == 0) {
        QsfJStr rest = { .p = s->p + off, .len = s->len - (uint32_t)off };
        *out = qsf_j_substr(c->mem, obj, count == 0 ? 0 : off,
                            count == 0 ? 0 : qsf_j_char_off(&rest, (size_t)count));
        return qsf_j_ok(c);
    }
    uint32_t *offs = qsf_j_alloc(c->mem, ((size_t)s->len + 1) * sizeof *offs), cp;
    size_t n = 0, mark = qsf_j_mark(c);
    if (offs == NULL) return qsf_j_ok(c);
    for (size_t i = 0; i < s->len; i += qsf_utf8_next(s->p + i, s->len - i, &cp)) offs[n++] = (uint32_t)i;
    offs[n] = s->len;
    for (int64_t i = start; count-- > 0; i += step)
        if (!qsf_j_put_sub(c, s, offs[i], offs[i + 1] - offs[i])) return false;
    if (!qsf_j_cut(c, mark, out)) return false;
    out->markup = obj.markup;
    return true;
}

static bool slice_list(QsfJCtx *c, QsfJVal obj, int64_t start, int64_t step, int64_t count, QsfJVal *out) {
    if (step == 1) { /* shares the elements: they never change */
        *out = qsf_j_list(c->mem, (QsfJType)obj.type, 0);
        if (!qsf_j_ok(c)) return false;
        out->u.l->v = count > 0 ? obj.u.l->v + start : NULL;
        out->u.l->n = out->u.l->cap = (uint32_t)count;
        return true;
    }
    *out = qsf_j_list(c->mem, (QsfJType)obj.type, (size_t)count);
    for (int64_t i = start; count-- > 0 && !c->mem->failed; i += step)
        qsf_j_append(c->mem, out->u.l, obj.u.l->v[i]);
    return qsf_j_ok(c);
}

bool qsf_j_slice(QsfJCtx *c, QsfJVal obj, QsfJVal start, QsfJVal stop, QsfJVal step, QsfJVal *out) {
    if (obj.type == QSF_J_UNDEF) return part_of_undefined(c, obj);
    bool text = obj.type == QSF_J_STR, list = qsf_j_is_listy(obj) || obj.type == QSF_J_RANGE;
    if (!text && !list) return undefined_of(c, NULL, object_name(obj), out);
    if (!(text ? qsf_j_bytes(c, obj.u.s->len) : qsf_j_work(c, 1 + obj.u.l->n / 8))) return false;
    int64_t n = text ? (int64_t)qsf_j_chars(obj.u.s) : obj.u.l->n, by = 1, from, to;
    if (step.type != QSF_J_MISSING && step.type != QSF_J_NONE) {
        if (!qsf_j_is_whole(step)) return qsf_j_fail(c, "the step of a slice must be an integer");
        by = qsf_j_whole(step);
    }
    if (by == 0) return qsf_j_fail(c, "the step of a slice cannot be zero");
    if (by > n + 1) by = n + 1; /* the same elements, and no overflow below */
    if (by < -n - 1) by = -n - 1;
    bool down = by < 0;
    if (!slice_bound(c, start, n, down, down ? n - 1 : 0, &from) ||
        !slice_bound(c, stop, n, down, down ? -1 : n, &to))
        return false;
    int64_t count = down ? (from > to ? (from - to - by - 1) / -by : 0)
                         : (to > from ? (to - from + by - 1) / by : 0);
    if (count == 0) from = 0;
    return text ? slice_text(c, obj, from, by, count, out) : slice_list(c, obj, from, by, count, out);
}

/* --- iteration --- */

bool qsf_j_iterable(QsfJVal v) {
    return v.type == QSF_J_STR || (v.type >= QSF_J_LIST && v.type <= QSF_J_RANGE) || v.type == QSF_J_UNDEF ||
           v.type == QSF_J_LOOP;
}

static bool keys_or_chars(QsfJCtx *c, QsfJVal v, QsfJVal *list) {
    if (v.type == QSF_J_DICT) {
        *list = qsf_j_list(c->mem, QSF_J_LIST, v.u.d->n);
        for (uint32_t i = 0; i < v.u.d->n && !c->mem->failed; i++)
            qsf_j_append(c->mem, list->u.l, v.u.d->kv[2 * i]);
        return qsf_j_ok(c);
    }
    const QsfJStr *s = v.u.s;
    if (!qsf_j_work(c, 1 + s->len / 8)) return false;
    *list = qsf_j_list(c->mem, QSF_J_LIST, qsf_j_chars(s));
    for (size_t i = 0, n; i < s->len && !c->mem->failed; i += n) {
        uint32_t cp;
        n = qsf_utf8_next(s->p + i, s->len - i, &cp);
        qsf_j_append(c->mem, list->u.l, qsf_j_substr(c->mem, v, i, n));
    }
    return qsf_j_ok(c);
}

bool qsf_j_iter(QsfJCtx *c, QsfJVal v, const QsfJList **out) {
    static const QsfJList nothing = { 0 };
    *out = &nothing;
    if (v.type == QSF_J_UNDEF) return true;
    if (v.type == QSF_J_STR || v.type == QSF_J_DICT) {
        QsfJVal list;
        if (!keys_or_chars(c, v, &list)) return false;
        *out = list.u.l;
        return true;
    }
    if (v.type < QSF_J_LIST || v.type > QSF_J_RANGE)
        return qsf_j_fail(c, "%s cannot be walked through", qsf_j_type_name(v));
    if (v.type == QSF_J_GEN && v.u.l->used) return true;
    if (v.type == QSF_J_GEN) v.u.l->used = true;
    *out = v.u.l;
    return qsf_j_work(c, v.u.l->n / 8);
}

bool qsf_j_length(QsfJCtx *c, QsfJVal v, int64_t *out) {
    switch (v.type) {
    case QSF_J_UNDEF: *out = 0; return true;
    case QSF_J_STR: *out = (int64_t)qsf_j_chars(v.u.s); return qsf_j_bytes(c, v.u.s->len);
    case QSF_J_LIST:
    case QSF_J_TUPLE:
    case QSF_J_VIEW:
    case QSF_J_RANGE: *out = v.u.l->n; return true;
    case QSF_J_DICT: *out = v.u.d->n; return true;
    case QSF_J_LOOP: *out = v.u.loop->n; return true;
    default: return qsf_j_fail(c, "%s has no length", qsf_j_type_name(v));
    }
}
