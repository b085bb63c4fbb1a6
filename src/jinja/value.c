/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creating values, and the limited memory that holds them. */
#include "src/jinja/value.h"

#include <string.h>

void qsf_j_mem_init(QsfJMem *m, size_t limit) {
    *m = (QsfJMem){ .limit = limit };
    qsf_ledger_init(&m->ledger, limit);
    qsf_arena_init(&m->arena, &m->ledger, QSF_MEM_TOKENIZER, "template", 16 * 1024);
}

void qsf_j_mem_destroy(QsfJMem *m) {
    qsf_arena_destroy(&m->arena);
    qsf_ledger_destroy(&m->ledger);
}

void *qsf_j_alloc(QsfJMem *m, size_t bytes) {
    QsfErr e;
    if (m->failed) return NULL;
    e.code = QSF_OK; /* the message is not used: this runs for every value */
    e.memory = false;
    void *p = qsf_arena_alloc(&m->arena, bytes, 8, &e);
    m->failed = p == NULL;
    m->starved = e.memory;
    return p;
}

QsfJVal qsf_j_str(QsfJMem *m, const char *p, size_t len, QsfJTag tag) {
    QsfJStr *s = qsf_j_alloc(m, sizeof *s);
    if (s == NULL) return qsf_j_none();
    *s = (QsfJStr){ .p = p, .len = len > INT32_MAX ? INT32_MAX : (uint32_t)len, .tag = (uint8_t)tag };
    return (QsfJVal){ .type = QSF_J_STR, .u.s = s };
}

QsfJVal qsf_j_list(QsfJMem *m, QsfJType type, size_t cap) {
    QsfJList *l = qsf_j_alloc(m, sizeof *l);
    if (l == NULL || cap > m->limit / sizeof *l->v) {
        m->failed = true;
        return qsf_j_none();
    }
    if (cap > 0 && (l->v = qsf_j_alloc(m, cap * sizeof *l->v)) == NULL) return qsf_j_none();
    l->cap = (uint32_t)cap;
    return (QsfJVal){ .type = (uint8_t)type, .u.l = l };
}

QsfJVal qsf_j_dict(QsfJMem *m, QsfJType type, size_t cap) {
    QsfJDict *d = qsf_j_alloc(m, sizeof *d);
    if (d == NULL || cap > m->limit / (2 * sizeof *d->kv)) {
        m->failed = true;
        return qsf_j_none();
    }
    if (cap > 0 && (d->kv = qsf_j_alloc(m, cap * 2 * sizeof *d->kv)) == NULL) return qsf_j_none();
    d->cap = (uint32_t)cap;
    return (QsfJVal){ .type = (uint8_t)type, .u.d = d };
}

/* A copy of n values in twice the space. */
static QsfJVal *regrow(QsfJMem *m, const QsfJVal *v, size_t n, size_t cap) {
    QsfJVal *bigger = cap > m->limit / sizeof *v ? NULL : qsf_j_alloc(m, cap * sizeof *v);
    if (bigger == NULL)
        m->failed = true;
    else if (n > 0)
        memcpy(bigger, v, n * sizeof *v);
    return bigger;
}

bool qsf_j_append(QsfJMem *m, QsfJList *l, QsfJVal v) {
    if (l->n == l->cap) {
        size_t cap = l->cap < 4 ? 4 : (size_t)l->cap * 2;
        QsfJVal *bigger = regrow(m, l->v, l->n, cap);
        if (bigger == NULL) return false;
        l->v = bigger;
        l->cap = (uint32_t)cap;
    }
    l->v[l->n++] = v;
    return true;
}

bool qsf_j_dict_add(QsfJMem *m, QsfJDict *d, QsfJVal key, QsfJVal v) {
    if (d->n == d->cap) {
        size_t cap = d->cap < 4 ? 4 : (size_t)d->cap * 2;
        QsfJVal *bigger = regrow(m, d->kv, (size_t)d->n * 2, cap * 2);
        if (bigger == NULL) return false;
        d->kv = bigger;
        d->cap = (uint32_t)cap;
    }
    d->kv[2 * d->n] = key;
    d->kv[2 * d->n++ + 1] = v;
    return true;
}

QsfJVal qsf_j_substr(QsfJMem *m, QsfJVal v, size_t off, size_t len) {
    const QsfJStr *s = v.u.s;
    if (off == 0 && len == s->len) return v;
    QsfJVal r = qsf_j_str(m, s->p + off, len, (QsfJTag)s->tag);
    if (!qsf_j_is_str(r) || s->tag != QSF_J_MIXED) {
        r.markup = v.markup;
        return r;
    }
    QsfJStr *sub = (QsfJStr *)(uintptr_t)r.u.s; /* just created: may be modified */
    sub->off = s->off + (uint32_t)off;
    sub->runs = s->runs;
    sub->n_runs = s->n_runs;
    r.markup = v.markup;
    return r;
}

size_t qsf_j_run_end(const QsfJStr *s, size_t i, QsfJTag *tag) {
    if (s->tag != QSF_J_MIXED) {
        *tag = (QsfJTag)s->tag;
        return s->len;
    }
    size_t at = s->off + i, lo = 0, hi = s->n_runs - 1u;
    while (lo < hi) { /* the first run that ends after at */
        size_t mid = (lo + hi) / 2;
        if (s->runs[mid].end > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    *tag = (QsfJTag)s->runs[lo].tag;
    size_t end = s->runs[lo].end - s->off;
    return end > s->len ? s->len : end;
}

bool qsf_j_same_text(const QsfJStr *a, const char *b, size_t len) {
    return a->len == len && (len == 0 || memcmp(a->p, b, len) == 0);
}

bool qsf_j_is(const QsfJStr *a, const char *b) { return qsf_j_same_text(a, b, strlen(b)); }
