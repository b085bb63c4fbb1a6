/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions available to templates: those of Jinja, and raise_exception and strftime_now, which Hugging Face
 * transformers adds. Also the methods of loop. */
#include <string.h>

#include "src/jinja/eval.h"

#define MAX_RANGE 100000 /* pallets/jinja src/jinja2/sandbox.py */

static bool g_raise_exception(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "raise_exception() needs a message");
    if (!qsf_j_to_str(c, a->v[0], out)) return false;
    const QsfJStr *s = out->u.s;
    c->out->text.len = c->out->n_runs = 0;
    if (!qsf_j_put_val(c, *out)) return false;
    c->out->raised = true;
    qsf_err_set(c->err, QSF_E_RUNTIME, "%.*s", (int)s->len, s->p);
    return false;
}

static bool g_strftime_now(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    char fmt[256], text[1024];
    QsfJVal f;
    if (!qsf_j_arg_str(c, a, 0, &f)) return false;
    if (f.u.s->len + 2 > sizeof fmt || (f.u.s->len > 0 && memchr(f.u.s->p, '\0', f.u.s->len) != NULL))
        return qsf_j_fail(c, "strftime_now() with a format of %u bytes", (unsigned)f.u.s->len);
    fmt[0] = '.'; /* so that an empty result differs from one that does not fit */
    memcpy(fmt + 1, f.u.s->p, f.u.s->len);
    fmt[f.u.s->len + 1] = '\0';
    if (strftime(text, sizeof text, fmt, &c->now) == 0)
        return qsf_j_fail(c, "strftime_now() makes too long a text");
    return qsf_j_text(c, text + 1, out);
}

/* Number of elements of range(start, stop, step), checked before anything is allocated. */
static bool range_count(QsfJCtx *c, int64_t start, int64_t stop, int64_t step, uint64_t *n) {
    uint64_t span = 0, by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step == 0) return qsf_j_fail(c, "the step of range() cannot be zero");
    if (step > 0 && stop > start) span = (uint64_t)stop - (uint64_t)start;
    if (step < 0 && start > stop) span = (uint64_t)start - (uint64_t)stop;
    *n = span / by + (span % by != 0);
    return *n <= MAX_RANGE || qsf_j_fail(c, "range() of more than %d numbers", MAX_RANGE);
}

static bool g_range(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    int64_t v[3];
    uint64_t n = 0;
    for (uint32_t i = 0; i < 3; i++)
        if (!qsf_j_arg_int(c, a, i, i == 2, &v[i])) return false;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "range() needs a number");
    bool only_stop = !qsf_j_given(a, 1);
    int64_t start = only_stop ? 0 : v[0], stop = only_stop ? v[0] : v[1];
    if (!range_count(c, start, stop, v[2], &n) || !qsf_j_work(c, n / 8)) return false;
    *out = qsf_j_list(c->mem, QSF_J_RANGE, n);
    for (uint64_t i = 0; i < n && !c->mem->failed; i++)
        qsf_j_append(c->mem, out->u.l, qsf_j_int((int64_t)((uint64_t)start + i * (uint64_t)v[2])));
    return qsf_j_ok(c);
}

/* A dictionary or namespace from one optional mapping and keyword arguments. */
static bool from_arguments(QsfJCtx *c, QsfJArgs *a, QsfJType type, QsfJVal *out) {
    *out = qsf_j_dict(c->mem, type, 4);
    if (!qsf_j_ok(c)) return false;
    if (a->n > 1 || (a->n == 1 && a->v[0].type != QSF_J_DICT && !qsf_j_is_listy(a->v[0])))
        return qsf_j_fail(c, "'%s' takes a mapping and keyword arguments", a->who);
    const QsfJDict *from = a->n == 1 && a->v[0].type == QSF_J_DICT ? a->v[0].u.d : NULL;
    for (uint32_t i = 0; from != NULL && i < from->n; i++)
        if (!qsf_j_dict_put(c, out->u.d, from->kv[2 * i], from->kv[2 * i + 1])) return false;
    const QsfJList *pairs = a->n == 1 && from == NULL ? a->v[0].u.l : NULL;
    for (uint32_t i = 0; pairs != NULL && i < pairs->n; i++) {
        const QsfJVal *p = &pairs->v[i];
        if (!qsf_j_is_listy(*p) || p->u.l->n != 2)
            return qsf_j_fail(c, "'%s' needs pairs of key and value", a->who);
        if (!qsf_j_dict_put(c, out->u.d, p->u.l->v[0], p->u.l->v[1])) return false;
    }
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (!qsf_j_dict_put(c, out->u.d, (QsfJVal){ .type = QSF_J_STR, .u.s = a->kw[i].name }, a->kw[i].v))
            return false;
    return true;
}

static bool g_namespace(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) { return from_arguments(c, a, QSF_J_NS, out); }
static bool g_dict(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) { return from_arguments(c, a, QSF_J_DICT, out); }

/* A joiner returns an empty string the first time and its text afterwards; its state is (text, called
 * before). */
static bool call_joiner(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    QsfJVal *state = a->self.u.l->v;
    bool before = state[1].u.b;
    state[1].u.b = true;
    *out = state[0];
    return before || qsf_j_text(c, "", out);
}

static bool g_joiner(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    static const QsfJRow row = { "joiner", call_joiner, "" };
    QsfJVal text, state = qsf_j_list(c->mem, QSF_J_LIST, 2);
    QsfJFunc *fn = qsf_j_alloc(c->mem, sizeof *fn);
    if (!qsf_j_ok(c) || !qsf_j_text(c, ", ", &text)) return false;
    qsf_j_append(c->mem, state.u.l, qsf_j_given(a, 0) ? a->v[0] : text);
    qsf_j_append(c->mem, state.u.l, qsf_j_bool(false));
    *fn = (QsfJFunc){ &row, state };
    *out = (QsfJVal){ .type = QSF_J_FUNC, .u.fn = fn };
    return qsf_j_ok(c);
}

static bool g_unsupported(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    (void)out;
    return qsf_j_fail(c, "not supported: %s()", a->who);
}

const QsfJRow *qsf_j_find_global(const QsfJStr *name) {
    static const QsfJRow rows[] = {
        { "raise_exception", g_raise_exception, "message" },
        { "strftime_now", g_strftime_now, "format" },
        { "range", g_range, "start stop step" },
        { "namespace", g_namespace, "*" },
        { "dict", g_dict, "*" },
        { "joiner", g_joiner, "sep" },
        { "cycler", g_unsupported, "*" },
        { "lipsum", g_unsupported, "*" },
        { 0 },
    };
    return qsf_j_find_row(rows, name);
}

/* --- loop.cycle(), loop.changed() --- */

static bool l_cycle(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    if (a->n == 0) return qsf_j_fail(c, "loop.cycle() needs values");
    *out = a->v[a->self.u.loop->i % a->n];
    return true;
}

static bool l_changed(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    QsfJLoop *loop = a->self.u.loop;
    QsfJVal now = qsf_j_list(c->mem, QSF_J_TUPLE, a->n);
    bool same = false;
    for (uint32_t i = 0; i < a->n && !c->mem->failed; i++) qsf_j_append(c->mem, now.u.l, a->v[i]);
    if (!qsf_j_ok(c)) return false;
    if (loop->seen.type != QSF_J_MISSING && !qsf_j_equal(c, loop->seen, now, &same)) return false;
    loop->seen = now;
    *out = qsf_j_bool(!same);
    return true;
}

const QsfJRow qsf_j_loop_methods[] = { { "cycle", l_cycle, "*" }, { "changed", l_changed, "*" }, { 0 } };
