/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building the tree: nodes, names, constants; and advancing through tokens. */
#include <stdlib.h>
#include <string.h>

#include "src/jinja/eval.h"
#include "src/jinja/parse.h"

#define MAX_NODES (1u << 18)
#define MAX_ATOMS 4096u

QsfJRef qsf_j_parse_error(QsfJParser *p, const char *fmt, ...) {
    if (p->err->code != QSF_OK) return 0;
    va_list ap;
    va_start(ap, fmt);
    qsf_err_setv(p->err, QSF_E_MODEL, fmt, ap);
    va_end(ap);
    qsf_err_prefix(p->err, "line %u", (unsigned)p->cur.line);
    return 0;
}

/* Grows a heap array by one element; false with an error. */
static bool room(QsfJParser *p, void **array, uint32_t n, uint32_t *cap, size_t size, uint32_t max) {
    if (n < *cap) return true;
    uint32_t more = *cap < 32 ? 32 : *cap * 2;
    if (n >= max) {
        qsf_j_parse_error(p, "the template is too large");
        return false;
    }
    void *bigger = realloc(*array, more * size);
    if (bigger == NULL) {
        qsf_err_memory(p->err, "template");
        return false;
    }
    *array = bigger;
    *cap = more;
    return true;
}

QsfJRef qsf_j_node(QsfJParser *p, QsfJKind kind, uint32_t line) {
    QsfJinja *t = p->t;
    void *nodes = t->nodes;
    if (!room(p, &nodes, t->n_nodes, &t->cap_nodes, sizeof *t->nodes, MAX_NODES)) return 0;
    t->nodes = nodes;
    t->nodes[t->n_nodes] = (QsfJNode){ .kind = (uint8_t)kind, .line = line };
    return t->n_nodes++;
}

bool qsf_j_chain(QsfJParser *p, QsfJChain *l, QsfJRef item) {
    if (item == 0) return false;
    if (l->first == 0)
        l->first = item;
    else
        qsf_j_at(p, l->last)->next = item;
    l->last = item;
    l->n++;
    return true;
}

char *qsf_j_keep(QsfJParser *p, size_t len) {
    char *s = qsf_j_alloc(&p->t->mem, len + 1);
    if (s == NULL && p->t->mem.starved)
        qsf_err_memory(p->err, "template, line %u", (unsigned)p->cur.line);
    else if (s == NULL)
        qsf_j_parse_error(p, "the template needs more memory than its limit of %zu bytes",
                          p->t->limits.memory);
    return s;
}

static uint32_t hash_name(const char *s, size_t len) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h;
}

uint32_t qsf_j_atom(QsfJParser *p, const char *s, size_t len) {
    QsfJinja *t = p->t;
    uint32_t h = hash_name(s, len);
    for (uint32_t i = 0; i < t->n_atoms; i++)
        if (t->atoms[i].hash == h && qsf_j_same_text(t->atoms[i].name, s, len)) return i;
    void *atoms = t->atoms;
    if (!room(p, &atoms, t->n_atoms, &t->cap_atoms, sizeof *t->atoms, MAX_ATOMS)) return UINT32_MAX;
    t->atoms = atoms;
    QsfJVal name = qsf_j_str(&t->mem, s, len, QSF_J_TEXT);
    if (!qsf_j_is_str(name)) {
        qsf_j_keep(p, 0);
        return UINT32_MAX;
    }
    t->atoms[t->n_atoms] = (QsfJAtom){ .name = name.u.s,
                                       .hash = h,
                                       .filter = qsf_j_find_filter(name.u.s),
                                       .test = qsf_j_find_test(name.u.s),
                                       .global = qsf_j_find_global(name.u.s) };
    return t->n_atoms++;
}

/* Index of a constant, or UINT32_MAX with p->err set. */
static uint32_t add_constant(QsfJParser *p, QsfJVal v) {
    QsfJinja *t = p->t;
    void *consts = t->consts;
    if (!room(p, &consts, t->n_consts, &t->cap_consts, sizeof *t->consts, MAX_NODES)) return UINT32_MAX;
    t->consts = consts;
    t->consts[t->n_consts] = v;
    return t->n_consts++;
}

QsfJRef qsf_j_const_node(QsfJParser *p, QsfJVal v, uint32_t line) {
    if (p->t->mem.failed && qsf_j_keep(p, 0) == NULL) return 0;
    uint32_t c = add_constant(p, v);
    QsfJRef r = c == UINT32_MAX ? 0 : qsf_j_node(p, QSF_JN_CONST, line);
    if (r != 0) qsf_j_at(p, r)->sym = c;
    return r;
}

bool qsf_j_advance(QsfJParser *p) {
    p->cur = p->ahead;
    if (p->cur.type == QSF_JT_EOF) return true;
    /* An error in the token ahead takes precedence over the error of this construct. */
    return qsf_j_lex_next(&p->lx, &p->ahead, p->err) == QSF_OK;
}

static bool is_token(const QsfJToken *k, QsfJTok type, const char *text) {
    return k->type == type && (text == NULL || (strlen(text) == k->len && memcmp(text, k->p, k->len) == 0));
}

bool qsf_j_peek(const QsfJParser *p, QsfJTok type, const char *text) { return is_token(&p->cur, type, text); }

bool qsf_j_peek_ahead(const QsfJParser *p, QsfJTok type, const char *text) {
    return is_token(&p->ahead, type, text);
}

static const char *const tok_names[] = {
    [QSF_JT_EOF] = "the end of the template",
    [QSF_JT_DATA] = "text",
    [QSF_JT_VAR_BEGIN] = "{{",
    [QSF_JT_VAR_END] = "}}",
    [QSF_JT_BLOCK_BEGIN] = "{%",
    [QSF_JT_BLOCK_END] = "%}",
    [QSF_JT_NAME] = "a name",
    [QSF_JT_STRING] = "a string",
    [QSF_JT_INT] = "a number",
    [QSF_JT_FLOAT] = "a number",
    [QSF_JT_OP] = "an operator",
};

bool qsf_j_expect(QsfJParser *p, QsfJTok type, const char *text) {
    if (qsf_j_peek(p, type, text)) return qsf_j_advance(p);
    bool named = p->cur.type == QSF_JT_NAME || p->cur.type == QSF_JT_OP;
    qsf_j_parse_error(p, "expected '%s', got '%.*s'", text != NULL ? text : tok_names[type],
                      named ? (int)(p->cur.len > 40 ? 40 : p->cur.len) : 60,
                      named ? p->cur.p : tok_names[p->cur.type]);
    return false;
}

bool qsf_j_enter(QsfJParser *p) {
    if (p->depth < QSF_J_NESTING) {
        p->depth++;
        return true;
    }
    qsf_j_parse_error(p, "nested deeper than %d levels", QSF_J_NESTING);
    return false;
}
