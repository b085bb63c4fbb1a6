/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rendering: variables in, text out, subject to the limits. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/plain_locale.h"
#include "src/base/unicode.h"
#include "src/jinja/ast.h"
#include "src/jinja/eval.h"

#define TARGET_DEPTH 64    /* of tuples in a target; the parser nests no deeper */
#define CHECK_EVERY  1024u /* steps between two looks at the interrupt flag */

const QsfJinjaLimits qsf_jinja_limits = {
    .steps = 1000000, .memory = 16u << 20, .output = 4u << 20, .depth = 200
};

QsfJinjaLimits qsf_jinja_limits_for(size_t data_bytes) {
    QsfJinjaLimits l = qsf_jinja_limits;
    /* text lengths are 32 bits */
    size_t data = data_bytes < ((size_t)1 << 29) ? data_bytes : (size_t)1 << 29;
    l.steps += data / 4; /* 16 passes */
    l.memory += 4 * data;
    l.output += 2 * data;
    return l;
}

struct QsfJinjaVars {
    QsfJMem mem;
    QsfJinjaLimits limits;
    QsfJVal names; /* dictionary of the variables */
    bool has_now;
    struct tm now;
};

QsfJinjaVars *qsf_jinja_vars_new(const QsfJinjaLimits *limits) {
    QsfJinjaVars *v = calloc(1, sizeof *v);
    if (v == NULL) return NULL;
    v->limits = limits == NULL ? qsf_jinja_limits : *limits;
    qsf_j_mem_init(&v->mem, v->limits.memory);
    v->names = qsf_j_dict(&v->mem, QSF_J_DICT, 16);
    return v;
}

void qsf_jinja_vars_free(QsfJinjaVars *v) {
    if (v == NULL) return;
    qsf_j_mem_destroy(&v->mem);
    free(v);
}

QsfJMem *qsf_jinja_vars_mem(QsfJinjaVars *v) { return &v->mem; }

void qsf_jinja_set(QsfJinjaVars *v, const char *name, QsfJVal val) {
    size_t len = strlen(name);
    if (v->names.type != QSF_J_DICT) return;
    QsfJVal *known = (QsfJVal *)(uintptr_t)qsf_j_dict_text(v->names.u.d, name, len); /* our own dictionary */
    if (known != NULL) {
        *known = val;
        return;
    }
    char *copy = v->mem.failed ? NULL : qsf_j_alloc(&v->mem, len + 1);
    if (copy == NULL) return;
    memcpy(copy, name, len);
    QsfJVal key = qsf_j_str(&v->mem, copy, len, QSF_J_TEXT);
    qsf_j_dict_add(&v->mem, v->names.u.d, key, val);
}

void qsf_jinja_set_now(QsfJinjaVars *v, const struct tm *now) {
    v->now = *now;
    v->has_now = true;
}

void qsf_jinja_out_free(QsfJinjaOut *o) {
    qsf_strbuf_free(&o->text);
    free(o->runs);
    *o = (QsfJinjaOut){ 0 };
}

/* --- errors and limits --- */

bool qsf_j_fail(QsfJCtx *c, const char *fmt, ...) {
    if (c->err->code != QSF_OK) return false;
    va_list ap;
    va_start(ap, fmt);
    qsf_err_setv(c->err, QSF_E_RUNTIME, fmt, ap);
    va_end(ap);
    qsf_err_prefix(c->err, "line %u", (unsigned)c->line);
    return false;
}

bool qsf_j_no_memory(QsfJCtx *c) {
    qsf_err_memory(c->err, "template, line %u", (unsigned)c->line);
    return false;
}

bool qsf_j_ok(QsfJCtx *c) {
    if (!c->mem->failed) return true;
    if (c->mem->starved) return qsf_j_no_memory(c);
    return qsf_j_fail(c, "the template needs more memory than its limit of %zu bytes", c->limits.memory);
}

bool qsf_j_work(QsfJCtx *c, uint64_t amount) {
    if (amount <= c->limits.steps - c->steps) {
        const uint64_t before = c->steps / CHECK_EVERY;
        c->steps += amount;
        return c->steps / CHECK_EVERY == before || qsf_interrupt_check(c->err) == QSF_OK;
    }
    return qsf_j_fail(c, "the template needs more than its limit of %llu steps",
                      (unsigned long long)c->limits.steps);
}

bool qsf_j_bytes(QsfJCtx *c, uint64_t bytes) { return qsf_j_work(c, 1 + bytes / 64); }

bool qsf_j_enter_level(QsfJCtx *c) {
    if (c->depth < c->limits.depth) {
        c->depth++;
        return true;
    }
    return qsf_j_fail(c, "nested deeper than %u levels", c->limits.depth);
}

const char *qsf_j_type_name(QsfJVal v) {
    static const char *const names[QSF_J_N_TYPES] = {
        [QSF_J_MISSING] = "nothing", [QSF_J_UNDEF] = "Undefined", [QSF_J_NONE] = "None",
        [QSF_J_BOOL] = "bool",       [QSF_J_INT] = "int",         [QSF_J_FLOAT] = "float",
        [QSF_J_STR] = "str",         [QSF_J_LIST] = "list",       [QSF_J_TUPLE] = "tuple",
        [QSF_J_DICT] = "dict",       [QSF_J_VIEW] = "dict view",  [QSF_J_GEN] = "generator",
        [QSF_J_RANGE] = "range",     [QSF_J_NS] = "namespace",    [QSF_J_FUNC] = "function",
        [QSF_J_MACRO] = "macro",     [QSF_J_LOOP] = "loop",
    };
    return names[v.type];
}

/* --- scopes --- */

QsfJScope *qsf_j_scope(QsfJCtx *c, QsfJScope *up) {
    QsfJScope *s = qsf_j_alloc(c->mem, sizeof *s);
    if (s == NULL) {
        qsf_j_ok(c);
        return NULL;
    }
    s->up = up;
    return s;
}

bool qsf_j_bind(QsfJCtx *c, uint32_t atom, QsfJVal v) {
    QsfJScope *s = c->scope;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->b[i].atom != atom) continue;
        s->b[i].v = v;
        return true;
    }
    if (s->n == s->cap) {
        uint32_t cap = s->cap < 4 ? 4 : s->cap * 2;
        QsfJBinding *b = qsf_j_alloc(c->mem, cap * sizeof *b);
        if (b == NULL) return qsf_j_ok(c);
        if (s->n > 0) memcpy(b, s->b, s->n * sizeof *b);
        s->b = b;
        s->cap = cap;
    }
    s->b[s->n++] = (QsfJBinding){ atom, v };
    return true;
}

/* Binds the variables used by the template. */
static bool bind_variables(QsfJCtx *c, const QsfJinjaVars *v) {
    if (!qsf_j_ok(c)) return false;
    c->scope = qsf_j_scope(c, NULL);
    if (c->scope == NULL) return false;
    for (uint32_t i = 0; i < c->t->n_atoms; i++) {
        const QsfJStr *name = c->t->atoms[i].name;
        const QsfJVal *val = qsf_j_dict_text(v->names.u.d, name->p, name->len);
        if (val != NULL && !qsf_j_bind(c, i, *val)) return false;
    }
    return true;
}

int qsf_jinja_render(const QsfJinja *t, QsfJinjaVars *v, QsfJinjaOut *out, QsfErr *err) {
    QsfErr local = { 0 };
    QsfJCtx c = { .t = t, .mem = &v->mem, .out = out, .err = &local, .limits = v->limits, .line = 1 };
    time_t clock = time(NULL);
    if (v->has_now)
        c.now = v->now;
    else
        localtime_r(&clock, &c.now);
    /* Numbers and dates are written the same way in every locale. */
    QsfPlainLocale plain;
    qsf_plain_locale_begin(&plain);
    (void)qsf_unicode_guessed(); /* steps of earlier calls do not count here */
    if (bind_variables(&c, v)) qsf_j_exec(&c, t->body);
    out->steps = c.steps;
    qsf_plain_locale_end(&plain);
    if (qsf_unicode_guessed()) /* even an error may be the result of a wrong guess */
        return qsf_err_set(
            err, QSF_E_RUNTIME,
            "the template uses properties of non-ASCII letters, which needs utf8proc; this program was built "
            "without it");
    if (local.code == QSF_OK && !qsf_strbuf_ok(&out->text)) qsf_err_memory(&local, "template");
    if (local.code == QSF_OK) return QSF_OK;
    return qsf_err_pass(err, &local);
}

/* --- what a template reads: text, names of keyword arguments, attributes and targets of assignments are
 * not variables --- */

/* Occurrences of a name in the target of an assignment. */
static uint32_t in_target(const QsfJinja *t, QsfJRef r, uint32_t atom, unsigned depth) {
    const QsfJNode *n = &t->nodes[r];
    uint32_t count = 0;
    if (n->kind == QSF_JN_NAME) return n->sym == atom;
    if (n->kind != QSF_JN_ITEMS || depth == TARGET_DEPTH) return 0;
    for (QsfJRef i = n->a; i != 0; i = t->nodes[i].next) count += in_target(t, i, atom, depth + 1);
    return count;
}

bool qsf_jinja_reads(const QsfJinja *t, const char *name) {
    uint32_t atom = 0, names = 0, targets = 0;
    while (atom < t->n_atoms && !qsf_j_is(t->atoms[atom].name, name)) atom++;
    if (atom == t->n_atoms) return false;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const QsfJNode *n = &t->nodes[i];
        if (n->kind == QSF_JN_NAME) names += n->sym == atom;
        if (n->kind == QSF_JN_SET || n->kind == QSF_JN_SETBLOCK || n->kind == QSF_JN_FOR)
            targets += in_target(t, n->a, atom, 0);
    }
    return names > targets;
}

bool qsf_jinja_has_word(const QsfJinja *t, const char *word) {
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        if (t->nodes[i].kind != QSF_JN_CONST) continue;
        const QsfJVal v = t->consts[t->nodes[i].sym];
        if (v.type == QSF_J_STR && qsf_j_is(v.u.s, word)) return true;
    }
    return false;
}
