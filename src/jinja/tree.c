/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parsers of expressions and statements share: advancing through tokens; building the tree (nodes,
 * names, constants); literals: strings with their escapes (Python's), numbers, names and the named
 * constants. */
#include "src/jinja/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/ascii.h"
#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/jinja/eval.h"

/* ---- tokens and nodes ---- */

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
    if (n % 1024 == 1023 && qsf_interrupt_check(p->err) != QSF_OK) return false;
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

/* A new string owned by the template; NULL with p->err set. */
static char *keep(QsfJParser *p, size_t len) {
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
        keep(p, 0);
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
    if (p->t->mem.failed && keep(p, 0) == NULL) return 0;
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

/* ---- literals ---- */

/* The value of hexadecimal digits s[0..n), or UINT32_MAX. */
static uint32_t hex_value(const char *s, size_t n) {
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = qsf_hex_digit(s[i]);
        if (digit < 0) return UINT32_MAX;
        v = v << 4 | (uint32_t)digit;
    }
    return v;
}

/* Code point of \xHH, \uHHHH, \UHHHHHHHH (s at the letter); 0 bytes when malformed. A pair of surrogates is
 * one character, a lone one U+FFFD. */
static size_t numeric_escape(const char *s, size_t len, uint32_t *cp) {
    size_t n = *s == 'x' ? 2 : *s == 'u' ? 4 : 8;
    if (len < n + 1 || (*cp = hex_value(s + 1, n)) > 0x10FFFF) return 0;
    if (*cp >= 0xD800 && *cp < 0xDC00 && n == 4 && len >= 11 && s[5] == '\\' && s[6] == 'u') {
        uint32_t low = hex_value(s + 7, 4);
        if (low >= 0xDC00 && low < 0xE000) {
            *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
            return 11;
        }
    }
    if (*cp >= 0xD800 && *cp < 0xE000) *cp = 0xFFFD;
    return n + 1;
}

/* One escape sequence; s is after the backslash. Returns the bytes read, and the code point in *cp, or *cp =
 * UINT32_MAX if the backslash is kept. 0 if malformed. */
static size_t decode_escape(const char *s, size_t len, uint32_t *cp) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *at = *s == '\0' ? NULL : strchr(from, *s);
    if (at != NULL) {
        *cp = (unsigned char)to[at - from];
        return 1;
    }
    if (*s == 'x' || *s == 'u' || *s == 'U') return numeric_escape(s, len, cp);
    *cp = 0;
    size_t n = 0;
    while (n < 3 && n < len && s[n] >= '0' && s[n] <= '7') *cp = *cp * 8 + (uint32_t)(s[n++] - '0');
    if (n > 0) return n;
    *cp = UINT32_MAX;
    return 0;
}

/* Appends the string token k, escapes decoded, to out; false if malformed. */
static bool decode_string(const QsfJToken *k, char *out, size_t *n) {
    for (size_t i = 0; i < k->len; i++) {
        if (k->p[i] != '\\' || i + 1 >= k->len) {
            out[(*n)++] = k->p[i];
        } else if (k->p[i + 1] == '\n') {
            i++;
        } else {
            uint32_t cp = UINT32_MAX;
            size_t used = decode_escape(k->p + i + 1, k->len - i - 1, &cp);
            if (used == 0 && cp != UINT32_MAX) return false;
            if (cp == UINT32_MAX) {
                if (used == 0 && strchr("xuUN", k->p[i + 1]) != NULL) return false;
                out[(*n)++] = '\\';
            } else {
                *n += qsf_utf8_put(cp, out + *n);
            }
            i += used;
        }
    }
    return true;
}

QsfJRef qsf_j_parse_string(QsfJParser *p) {
    uint32_t line = p->cur.line;
    bool plain = memchr(p->cur.p, '\\', p->cur.len) == NULL && !qsf_j_peek_ahead(p, QSF_JT_STRING, NULL);
    const char *text = p->cur.p;
    size_t n = plain ? p->cur.len : 0;
    if (plain && !qsf_j_advance(p)) return 0;
    while (!plain && qsf_j_peek(p, QSF_JT_STRING, NULL)) {
        char *longer = keep(p, n + p->cur.len);
        if (longer == NULL) return 0;
        if (n > 0) memcpy(longer, text, n);
        if (!decode_string(&p->cur, longer, &n)) return qsf_j_parse_error(p, "malformed escape in a string");
        text = longer;
        if (!qsf_j_advance(p)) return 0;
    }
    return qsf_j_const_node(p, qsf_j_str(&p->t->mem, text, n, QSF_J_TEXT), line);
}

QsfJRef qsf_j_parse_number(QsfJParser *p) {
    char text[128];
    size_t n = 0;
    QsfJToken k = p->cur;
    for (size_t i = 0; i < k.len && n + 1 < sizeof text; i++)
        if (k.p[i] != '_') text[n++] = k.p[i];
    text[n] = '\0';
    if (n + 1 == sizeof text) return qsf_j_parse_error(p, "number too long");
    if (k.type == QSF_JT_FLOAT)
        return qsf_j_advance(p) ? qsf_j_const_node(p, qsf_j_float(strtod(text, NULL)), k.line) : 0;
    char base = n > 1 ? (char)(text[1] | 32) : 0;
    int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 10;
    errno = 0;
    long long v = strtoll(text + (radix == 10 ? 0 : 2), NULL, radix);
    if (errno != 0) return qsf_j_parse_error(p, "integer too large: %s", text);
    return qsf_j_advance(p) ? qsf_j_const_node(p, qsf_j_int(v), k.line) : 0;
}

QsfJRef qsf_j_parse_name(QsfJParser *p) {
    static const struct {
        const char *name;
        uint8_t type;
        bool value;
    } constants[] = {
        { "true", QSF_J_BOOL, true },   { "True", QSF_J_BOOL, true },  { "false", QSF_J_BOOL, false },
        { "False", QSF_J_BOOL, false }, { "none", QSF_J_NONE, false }, { "None", QSF_J_NONE, false },
    };
    QsfJToken k = p->cur;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (!qsf_j_peek(p, QSF_JT_NAME, constants[i].name)) continue;
        QsfJVal v = { .type = constants[i].type, .u.b = constants[i].value };
        return qsf_j_advance(p) ? qsf_j_const_node(p, v, k.line) : 0;
    }
    uint32_t atom = qsf_j_atom(p, k.p, k.len);
    QsfJRef r = atom == UINT32_MAX ? 0 : qsf_j_node(p, QSF_JN_NAME, k.line);
    if (r == 0) return 0;
    qsf_j_at(p, r)->sym = atom;
    p->t->varargs |= atom == QSF_J_ATOM_VARARGS;
    p->t->kwargs |= atom == QSF_J_ATOM_KWARGS;
    return qsf_j_advance(p) ? r : 0;
}
