/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a regular expression to an automaton: first steps (Thompson 1968), some of which take no character,
 * then a state for the beginning and for each place after a character. ^ can only be passed in the first of
 * them; behind $ only the end can follow. */
#include <stdlib.h>
#include <string.h>

#include "src/grammar/regex.h"

#define STEPS 60000u

typedef enum StepKind { STEP_SET, STEP_SPLIT, STEP_BEGIN, STEP_END, STEP_ACCEPT, STEP_FAIL } StepKind;

typedef struct Step {
    StepKind kind;
    uint32_t x, y;   /* what follows */
    uint32_t set, n; /* ranges of the build */
} Step;

typedef struct Steps {
    QsfGrammarBuild *b;
    Step *step; /* (n) */
    uint32_t n, cap, work;
    QsfNodeStack stack;
} Steps;

static uint32_t put(Steps *s, Step step) {
    if (s->b->failed) return 0;
    if (s->n >= STEPS) return qsf_gbuild_too_large(s->b, "the regular expression", STEPS);
    if (s->n == s->cap) {
        const uint32_t cap = s->cap > 0 ? s->cap * 2 : 64;
        Step *p = realloc(s->step, cap * sizeof *p);
        if (p == NULL) return qsf_gbuild_no_memory(s->b);
        s->step = p;
        s->cap = cap;
    }
    s->step[s->n] = step;
    return s->n++;
}

static uint32_t split(Steps *s, uint32_t x, uint32_t y) {
    return y == UINT32_MAX ? x : put(s, (Step){ .kind = STEP_SPLIT, .x = x, .y = y });
}

static uint32_t make(Steps *s, uint32_t node, uint32_t next);

static uint32_t make_list(Steps *s, uint32_t node, uint32_t next) {
    const bool seq = s->b->nodes[node].kind == QSF_NODE_SEQ;
    const uint32_t base = s->stack.n;
    uint32_t at = seq ? next : UINT32_MAX;
    for (uint32_t c = s->b->nodes[node].a; c > 0 && qsf_gbuild_push(s->b, &s->stack, c);
         c = s->b->nodes[c].next) {
    }
    while (s->stack.n > base && !s->b->failed) {
        const uint32_t child = s->stack.v[--s->stack.n];
        at = seq ? make(s, child, at) : split(s, make(s, child, next), at);
    }
    s->stack.n = base;
    return at == UINT32_MAX ? put(s, (Step){ .kind = STEP_FAIL }) : at;
}

static uint32_t make_repeat(Steps *s, const QsfNode *n, uint32_t next) {
    uint32_t at = next, left = n->b;
    if (n->c == QSF_NO_LIMIT) {
        const uint32_t loop = put(s, (Step){ .kind = STEP_SPLIT, .y = next });
        const uint32_t body = make(s, n->a, loop);
        if (s->b->failed) return 0;
        s->step[loop].x = body;
        at = left > 0 ? body : loop;
        if (left > 0) left--;
    } else {
        for (uint32_t i = n->b; i < n->c && !s->b->failed; i++) at = split(s, make(s, n->a, at), next);
    }
    for (uint32_t i = 0; i < left && !s->b->failed; i++) at = make(s, n->a, at);
    return at;
}

static uint32_t make(Steps *s, uint32_t node, uint32_t next) {
    const QsfNode n = s->b->nodes[node];
    if (s->b->failed) return 0;
    if (s->work++ > 4 * STEPS) return qsf_gbuild_too_large(s->b, "the regular expression", STEPS);
    switch (n.kind) {
    case QSF_NODE_SET: return put(s, (Step){ .kind = STEP_SET, .x = next, .set = n.a, .n = n.b });
    case QSF_NODE_SEQ:
    case QSF_NODE_ALT: return make_list(s, node, next);
    case QSF_NODE_REPEAT: return make_repeat(s, &n, next);
    case QSF_NODE_BEGIN: return put(s, (Step){ .kind = STEP_BEGIN, .x = next });
    case QSF_NODE_END: return put(s, (Step){ .kind = STEP_END, .x = next });
    case QSF_NODE_NEVER: return put(s, (Step){ .kind = STEP_FAIL });
    default: return next;
    }
}

/* The states of the automaton, each a step after which a character was taken. */
typedef struct States {
    const Steps *s;
    QsfGraph *g;
    uint32_t *number; /* (n) of the state of each step + 1 */
    uint32_t *step;   /* (n_states) */
    uint32_t *mark;   /* (2 * n) the round in which a step was reached, before and behind $ */
    uint32_t *list;   /* (2 * n) to be looked at */
    uint32_t n_states, n_list, round;
    bool final;
} States;

static void reach(States *t, uint32_t step, bool ended) {
    const uint32_t i = step * 2 + ended;
    if (t->mark[i] == t->round) return;
    t->mark[i] = t->round;
    t->list[t->n_list++] = i;
}

static uint32_t state_of(States *t, uint32_t step) {
    if (t->number[step] == 0) {
        t->step[t->n_states] = step;
        t->number[step] = ++t->n_states; /* state 0 is the beginning */
    }
    return t->number[step];
}

/* Adds the edges of the state that begins with this step. */
static void add_state(States *t, uint32_t first, bool begin) {
    const QsfRange *ranges = t->s->b->ranges.r;
    t->round++;
    t->n_list = 0;
    t->final = false;
    reach(t, first, false);
    for (uint32_t i = 0; i < t->n_list; i++) {
        const Step *p = &t->s->step[t->list[i] / 2];
        const bool ended = t->list[i] % 2 != 0;
        if (p->kind == STEP_SPLIT || p->kind == STEP_END || (p->kind == STEP_BEGIN && begin))
            reach(t, p->x, ended || p->kind == STEP_END);
        if (p->kind == STEP_SPLIT) reach(t, p->y, ended);
        if (p->kind == STEP_ACCEPT) t->final = true;
    }
    qsf_graph_state(t->g, t->final);
    for (uint32_t i = 0; i < t->n_list; i++) {
        const Step *p = &t->s->step[t->list[i] / 2];
        if (p->kind == STEP_SET && t->list[i] % 2 == 0)
            qsf_graph_edge(t->g, state_of(t, p->x), ranges + p->set, p->n);
    }
}

static void add_states(States *t, uint32_t first) {
    add_state(t, first, true);
    for (uint32_t i = 0; i < t->n_states && !t->g->failed; i++) {
        add_state(t, t->step[i], false);
        if (!qsf_gbuild_step(t->s->b, t->n_list / 4 + 1)) t->g->failed = true;
    }
}

static QsfGraph *number_states(Steps *s, uint32_t first) {
    States t = { .s = s, .g = qsf_graph_new() };
    const size_t n = (size_t)s->n + 1;
    t.number = calloc(n, sizeof *t.number);
    t.step = calloc(n, sizeof *t.step);
    t.mark = calloc(n * 2, sizeof *t.mark);
    t.list = calloc(n * 2, sizeof *t.list);
    const bool ok = t.g && t.number && t.step && t.mark && t.list;
    if (ok) add_states(&t, first);
    free(t.number);
    free(t.step);
    free(t.mark);
    free(t.list);
    if (!ok) qsf_gbuild_no_memory(s->b);
    if (ok && t.g->failed) qsf_gbuild_too_large(s->b, "the regular expression", STEPS);
    if (!s->b->failed) return t.g;
    qsf_graph_free(t.g);
    return NULL;
}

/* Any characters, then next; or next at once. */
static uint32_t make_any(Steps *s, uint32_t any, uint32_t next) {
    const uint32_t loop = put(s, (Step){ .kind = STEP_SPLIT, .y = next });
    const uint32_t body = make(s, any, loop);
    if (!s->b->failed) s->step[loop].x = body;
    return loop;
}

QsfGraph *qsf_regex_graph(QsfGrammarBuild *b, uint32_t node, bool search) {
    Steps s = { .b = b };
    const uint32_t any = search ? qsf_node_range(b, 0, QSF_CODE_MAX) : 0;
    uint32_t at = put(&s, (Step){ .kind = STEP_ACCEPT });
    if (search) at = make_any(&s, any, at);
    at = make(&s, node, at);
    if (search) at = make_any(&s, any, at);
    QsfGraph *g = qsf_gbuild_step(b, 20ull * s.n) ? number_states(&s, at) : NULL;
    free(s.step);
    free(s.stack.v);
    return g;
}
