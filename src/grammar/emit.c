/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the nodes of the rules to instructions. Made from the end to the beginning: each function gets the
 * instruction that follows and returns the one to begin with. Sets of characters that need several
 * instructions become rules of their own, which many places share. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/grammar/program.h"

#define SET_MEMORY 64u /* sets whose rules are found again */
#define BIG_SET    4u  /* sequences of a set that becomes a rule */

typedef struct SetRule {
    uint32_t from, n, rule; /* ranges of the build, or of a graph */
    const QsfRange *ranges;
    bool json;
} SetRule;

typedef struct Emitter {
    QsfGrammar *g;
    QsfGrammarBuild *b;
    QsfNodeStack stack;
    uint32_t steps;
    SetRule known[SET_MEMORY];
    uint32_t n_known;
} Emitter;

static uint32_t put(Emitter *e, QsfInstr in) {
    QsfGrammar *g = e->g;
    if (!qsf_gbuild_step(e->b, 1)) return 0;
    if (g->n >= QSF_CODE_SIZE) return qsf_gbuild_too_large(e->b, "the grammar", QSF_CODE_SIZE);
    if (g->n == g->cap) {
        const uint32_t cap = g->cap > 0 ? g->cap * 2 : 256;
        QsfInstr *code = realloc(g->code, cap * sizeof *code);
        if (code == NULL) return qsf_gbuild_no_memory(e->b);
        g->code = code;
        g->cap = cap;
    }
    g->code[g->n] = in;
    return g->n++;
}

static uint32_t put_byte(Emitter *e, uint8_t lo, uint8_t hi, uint32_t next) {
    return put(e, (QsfInstr){ .op = QSF_OP_BYTE, .lo = lo, .hi = hi, .x = next });
}

/* ---- ranges of code points as sequences of ranges of bytes ----
 *
 * A range is split until the bytes of its ends differ only where all later bytes take every value. */

/* Splits lo..hi where the number of bytes changes; returns the end of the first part. */
static uint32_t same_length(uint32_t lo, uint32_t hi) {
    static const uint32_t last[] = { 0x7F, 0x7FF, 0xFFFF };
    for (int i = 0; i < 3; i++)
        if (lo <= last[i] && hi > last[i]) return last[i];
    return hi;
}

/* The end of the first part of lo..hi, which have the same number of bytes, that is one sequence. */
static uint32_t one_sequence(uint32_t lo, uint32_t hi, unsigned bytes) {
    for (unsigned i = 1; i < bytes; i++) {
        const uint32_t low = (1u << (6 * i)) - 1;
        if ((lo & ~low) == (hi & ~low)) continue;
        if ((lo & low) != 0) return lo | low;
        if ((hi & low) != low) return (hi & ~low) - 1;
    }
    return hi;
}

typedef void (*PutBytes)(void *arg, const uint8_t *lo, const uint8_t *hi, unsigned n);

/* Calls add for each sequence of byte ranges, lo[0..n) to hi[0..n), whose texts are the UTF-8 of the code
 * points lo to hi. */
static void utf8_sequences(uint32_t lo, uint32_t hi, PutBytes add, void *arg) {
    for (uint32_t end; lo <= hi; lo = end + 1) {
        char a[4], b[4];
        const unsigned n = (unsigned)qsf_utf8_put(lo, a);
        end = same_length(lo, hi);
        for (uint32_t part = 0; part != end;) {
            part = end;
            end = one_sequence(lo, end, n);
        }
        (void)qsf_utf8_put(end, b);
        add(arg, (const uint8_t *)a, (const uint8_t *)b, n);
        if (end == UINT32_MAX) break;
    }
}

/* x or y; y UINT32_MAX: there is no other way yet. */
static uint32_t either(Emitter *e, uint32_t x, uint32_t y) {
    return y == UINT32_MAX ? x : put(e, (QsfInstr){ .op = QSF_OP_SPLIT, .x = x, .y = y });
}

static uint32_t put_fail(Emitter *e) { return put(e, (QsfInstr){ .op = QSF_OP_FAIL }); }

static uint32_t new_rule(Emitter *e, uint32_t start) {
    QsfGrammar *g = e->g;
    if (g->n_rules == g->cap_rules) {
        const uint32_t cap = g->cap_rules > 0 ? g->cap_rules * 2 : 64;
        uint32_t *p = realloc(g->start, cap * sizeof *p);
        if (p == NULL) return qsf_gbuild_no_memory(e->b);
        g->start = p;
        g->cap_rules = cap;
    }
    g->start[g->n_rules] = start;
    return g->n_rules++;
}

/* --- sets --- */

/* A set that is being made: the ways so far, and shared continuation bytes before what follows. */
typedef struct Ways {
    Emitter *e;
    uint32_t entry, more[4]; /* more[i]: i bytes of continuation, then what follows */
    unsigned n_more, count;
} Ways;

static uint32_t continuation(Ways *w, unsigned bytes) {
    while (w->n_more <= bytes) {
        w->more[w->n_more] = put_byte(w->e, 0x80, 0xBF, w->more[w->n_more - 1]);
        w->n_more++;
    }
    return w->more[bytes];
}

static void add_way(void *arg, const uint8_t *lo, const uint8_t *hi, unsigned n) {
    Ways *w = arg;
    unsigned full = 0;
    while (full + 1 < n && lo[n - 1 - full] == 0x80 && hi[n - 1 - full] == 0xBF) full++;
    uint32_t at = continuation(w, full);
    for (unsigned i = n - full; i-- > 0;) at = put_byte(w->e, lo[i], hi[i], at);
    w->entry = either(w->e, at, w->entry);
    w->count++;
}

static void count_way(void *arg, const uint8_t *lo, const uint8_t *hi, unsigned n) {
    (void)lo, (void)hi, (void)n;
    ++*(unsigned *)arg;
}

/* A character that a JSON string has to escape. */
static bool is_escaped(uint32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

static uint32_t hex_digit(Emitter *e, unsigned d, uint32_t next) {
    const uint8_t digit = (uint8_t) "0123456789abcdef"[d];
    uint32_t at = put_byte(e, digit, digit, next);
    return d < 10
               ? at
               : put(e, (QsfInstr){ .op = QSF_OP_SPLIT,
                                    .x = at,
                                    .y = put_byte(e, (uint8_t)(digit - 32), (uint8_t)(digit - 32), next) });
}

/* The escape of one character: a letter where JSON has one, and for other controls the number. */
static void add_escape(Ways *w, uint32_t c) {
    static const char letter[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'
    };
    Emitter *e = w->e;
    uint32_t at;
    if (letter[c] != 0) {
        at = put_byte(e, (uint8_t)letter[c], (uint8_t)letter[c], w->more[0]);
    } else {
        at = hex_digit(e, c & 15, w->more[0]);
        at = put_byte(e, '0', '0', put_byte(e, '0', '0', hex_digit(e, c >> 4, at)));
        at = put_byte(e, 'u', 'u', at);
    }
    w->entry = either(e, put_byte(e, '\\', '\\', at), w->entry);
}

/* The part of lo..hi that a JSON string has as it is, and the escapes of the rest. */
static void add_json(Ways *w, uint32_t lo, uint32_t hi) {
    for (uint32_t c = lo > 0 ? lo : 1; c <= hi && c <= '\\'; c++) /* no NUL, as in any string */
        if (is_escaped(c)) add_escape(w, c);
    for (uint32_t from = lo; from <= hi; from++) {
        uint32_t to = from;
        if (is_escaped(from)) continue;
        while (to < hi && (to >= '\\' || !is_escaped(to + 1))) to = to > '\\' ? hi : to + 1;
        utf8_sequences(from, to, add_way, w);
        from = to;
    }
}

static uint32_t emit_ranges(Emitter *e, const QsfRange *r, uint32_t n, bool json, uint32_t next) {
    Ways w = { .e = e, .entry = UINT32_MAX, .more = { next }, .n_more = 1 };
    for (uint32_t i = 0; i < n && !e->b->failed; i++) {
        e->steps++;
        if (json)
            add_json(&w, r[i].lo, r[i].hi);
        else
            utf8_sequences(r[i].lo, r[i].hi, add_way, &w);
    }
    return w.entry == UINT32_MAX ? put_fail(e) : w.entry;
}

static bool is_big(const QsfRange *r, uint32_t n, bool json) {
    unsigned ways = 0;
    for (uint32_t i = 0; i < n && ways < BIG_SET; i++) {
        if (json && r[i].lo <= '\\' && r[i].hi != r[i].lo) return true;
        utf8_sequences(r[i].lo, r[i].hi, count_way, &ways);
    }
    return ways >= BIG_SET;
}

static uint32_t find_rule(Emitter *e, const QsfRange *r, uint32_t n, bool json) {
    const uint32_t least = e->n_known > SET_MEMORY ? e->n_known - SET_MEMORY : 0;
    for (uint32_t i = e->n_known; i-- > least && qsf_gbuild_step(e->b, 1 + n / 256);) {
        const SetRule *k = &e->known[i % SET_MEMORY];
        if (k->n == n && k->json == json && memcmp(k->ranges, r, n * sizeof *r) == 0) return k->rule;
    }
    return UINT32_MAX;
}

/* r stays where it is until all is emitted. */
static uint32_t emit_set(Emitter *e, const QsfRange *r, uint32_t n, bool json, uint32_t next) {
    if (!is_big(r, n, json)) return emit_ranges(e, r, n, json, next);
    uint32_t rule = find_rule(e, r, n, json);
    if (rule == UINT32_MAX) {
        const uint32_t end = put(e, (QsfInstr){ .op = QSF_OP_RETURN });
        rule = new_rule(e, emit_ranges(e, r, n, json, end));
        e->known[e->n_known++ % SET_MEMORY] = (SetRule){ .n = n, .rule = rule, .ranges = r, .json = json };
    }
    return put(e, (QsfInstr){ .op = QSF_OP_CALL, .x = rule, .y = next });
}

/* --- nodes --- */

static uint32_t emit_node(Emitter *e, uint32_t node, uint32_t next);

static uint32_t emit_list(Emitter *e, uint32_t node, uint32_t next) {
    const bool seq = e->b->nodes[node].kind == QSF_NODE_SEQ;
    const uint32_t base = e->stack.n;
    uint32_t at = seq ? next : UINT32_MAX;
    for (uint32_t c = e->b->nodes[node].a; c > 0 && qsf_gbuild_push(e->b, &e->stack, c);
         c = e->b->nodes[c].next) {
    }
    while (e->stack.n > base && !e->b->failed) {
        const uint32_t child = e->stack.v[--e->stack.n];
        at = seq ? emit_node(e, child, at) : either(e, emit_node(e, child, next), at);
    }
    e->stack.n = base;
    return at == UINT32_MAX ? put_fail(e) : at;
}

static uint32_t emit_repeat(Emitter *e, const QsfNode *n, uint32_t next) {
    const uint32_t child = n->a, min = n->b, max = n->c;
    uint32_t at = next, left = min;
    if (max == QSF_NO_LIMIT) {
        const uint32_t loop = put(e, (QsfInstr){ .op = QSF_OP_SPLIT, .y = next });
        const uint32_t body = emit_node(e, child, loop);
        if (e->b->failed) return 0;
        e->g->code[loop].x = body;
        at = min > 0 ? body : loop;
        if (left > 0) left--;
    } else {
        for (uint32_t i = min; i < max && !e->b->failed; i++)
            at = put(e, (QsfInstr){ .op = QSF_OP_SPLIT, .x = emit_node(e, child, at), .y = next });
    }
    for (uint32_t i = 0; i < left && !e->b->failed; i++) at = emit_node(e, child, at);
    return at;
}

/* Each state begins with a jump, which is completed when what it leads to exists. */
static uint32_t emit_graph(Emitter *e, const QsfGraph *g, bool json, uint32_t next) {
    const uint32_t base = e->g->n;
    for (uint32_t s = 0; s < g->n; s++) (void)put(e, (QsfInstr){ .op = QSF_OP_JUMP });
    for (uint32_t s = 0; s < g->n && !e->b->failed; s++) {
        uint32_t at = g->final[s] ? next : UINT32_MAX;
        for (uint32_t k = g->first[s]; k < g->first[s + 1]; k++) {
            const QsfEdge *edge = &g->edges[k];
            at = either(e, emit_set(e, g->ranges + edge->set, edge->n, json, base + edge->to), at);
        }
        if (at == UINT32_MAX) at = put_fail(e);
        if (!e->b->failed) e->g->code[base + s].x = at;
    }
    return base;
}

static uint32_t emit_bytes(Emitter *e, const QsfNode *n, uint32_t next) {
    for (uint32_t i = n->b; i-- > 0;) {
        const uint8_t c = (uint8_t)e->b->text.data[n->a + i];
        next = put_byte(e, c, c, next);
    }
    return next;
}

static uint32_t emit_node(Emitter *e, uint32_t node, uint32_t next) {
    const QsfNode n = e->b->nodes[node];
    if (!qsf_gbuild_step(e->b, 1)) return 0;
    if (e->steps++ > QSF_EMIT_STEPS) return qsf_gbuild_too_large(e->b, "the grammar", QSF_CODE_SIZE);
    switch (n.kind) {
    case QSF_NODE_SET: return emit_set(e, e->b->ranges.r + n.a, n.b, false, next);
    case QSF_NODE_BYTES: return emit_bytes(e, &n, next);
    case QSF_NODE_SEQ:
    case QSF_NODE_ALT: return emit_list(e, node, next);
    case QSF_NODE_REPEAT: return emit_repeat(e, &n, next);
    case QSF_NODE_RULE: return put(e, (QsfInstr){ .op = QSF_OP_CALL, .x = n.a, .y = next });
    case QSF_NODE_GRAPH: return emit_graph(e, e->b->graphs[n.a], n.b != 0, next);
    case QSF_NODE_TOKEN:
        e->g->has_tokens = true;
        return put(e, (QsfInstr){ .op = QSF_OP_TOKEN, .other = n.b != 0, .x = n.a, .y = next });
    case QSF_NODE_NEVER: return put_fail(e);
    case QSF_NODE_EMPTY:
    case QSF_NODE_BEGIN:
    case QSF_NODE_END: break;
    }
    return next;
}

int qsf_grammar_emit(QsfGrammar *g, QsfGrammarBuild *b) {
    Emitter e = { .g = g, .b = b };
    for (uint32_t i = 0; i < b->n_rules && !b->failed; i++) (void)new_rule(&e, 0);
    for (uint32_t i = 0; i < b->n_rules && !b->failed; i++) {
        const uint32_t end = put(&e, (QsfInstr){ .op = QSF_OP_RETURN });
        const uint32_t start = emit_node(&e, b->rules[i].node, end);
        if (!b->failed) g->start[i] = start;
        if (i % 64 == 0 && qsf_interrupt_check(b->err) != QSF_OK) b->failed = true;
    }
    free(e.stack.v);
    g->root = b->root;
    return b->failed ? b->err->code : QSF_OK;
}
