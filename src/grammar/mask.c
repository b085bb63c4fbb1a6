/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of allowed tokens: implements mask.h. */
#include "src/grammar/mask.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/grammar/automaton_impl.h"

#define NAME     "sets of allowed tokens"
#define SETS     32u  /* that are kept */
#define RUNS     256u /* states of which it is known what they take alike */
#define BRANCH   16u  /* nodes: smaller branches are walked */
#define RUN_MOST 64u  /* bytes of a branch */
#define REST     0x3FFFFFFFu

typedef struct Set {
    uint32_t state, generation, used;
    bool drops_space, known;
} Set;

/* The characters that all lead from a state to the same next one. */
typedef struct Run {
    uint32_t state, generation, next, kinds;
    bool known, wide_known; /* kinds has QSF_BYTES_WIDE only if wide_known */
} Run;

struct QsfMasks {
    QsfMaskTokens t;
    QsfAutomaton *a;
    QsfLedger *ledger;
    uint64_t *bits; /* (SETS * words) */
    size_t words;
    Set set[SETS];
    Run run[RUNS];
    uint32_t clock, visited;
    uint8_t same_to[256]; /* the last byte of those that begin here and are one class of the grammar */
};

static size_t words_of(uint32_t n_vocab) { return ((size_t)n_vocab + 63) / 64; }

uint64_t qsf_masks_bytes(uint32_t n_vocab) { return SETS * words_of(n_vocab) * sizeof(uint64_t); }

int qsf_masks_new(QsfMasks **out, const QsfMaskTokens *t, QsfAutomaton *a, QsfLedger *ledger, QsfErr *err) {
    void *mem = NULL;
    *out = NULL;
    QsfMasks *m = calloc(1, sizeof *m);
    if (m == NULL) return qsf_err_memory(err, NAME);
    int rc = qsf_mem_map(ledger, QSF_MEM_LOGITS, qsf_masks_bytes(t->n_vocab), NAME, &mem, err);
    if (rc != QSF_OK) {
        free(m);
        return rc;
    }
    m->t = *t;
    m->a = a;
    m->ledger = ledger;
    m->words = words_of(t->n_vocab);
    m->bits = mem;
    for (unsigned c = 256; c-- > 0;)
        m->same_to[c] = c < 255 && a->g->class_of[c] == a->g->class_of[c + 1] ? m->same_to[c + 1]
                                                                              : (uint8_t)c;
    *out = m;
    return QSF_OK;
}

void qsf_masks_free(QsfMasks *m) {
    if (m == NULL) return;
    qsf_mem_unmap_named(m->ledger, QSF_MEM_LOGITS, m->bits, qsf_masks_bytes(m->t.n_vocab), NAME);
    free(m);
}

uint32_t qsf_masks_visited(const QsfMasks *m) { return m->visited; }

/* --- what a state takes alike --- */

/* Do all continuations of a character, `left` bytes, lead from state to `to`? lo: of the first one. */
static int wide_alike(QsfMasks *m, uint32_t state, unsigned left, unsigned lo, unsigned hi, uint32_t to,
                      bool *alike, QsfErr *err) {
    uint32_t next, checked = UINT32_MAX;
    int rc = QSF_OK;
    for (unsigned c = lo; rc == QSF_OK && *alike && c <= hi; c = m->same_to[c] + 1u) {
        rc = qsf_automaton_step(m->a, state, (unsigned char)c, &next, err);
        if (next == 0) *alike = false;
        if (rc != QSF_OK || !*alike || next == checked) continue;
        if (left == 1)
            *alike = next == to;
        else
            rc = wide_alike(m, next, left - 1, 0x80, 0xBF, to, alike, err);
        checked = next; /* the same again is the same */
    }
    return rc;
}

/* All characters beyond ASCII. */
static int all_wide_alike(QsfMasks *m, uint32_t state, uint32_t to, bool *alike, QsfErr *err) {
    static const struct {
        uint8_t from, last, lo, hi;
    } leads[] = { { 0xC2, 0xDF, 0x80, 0xBF }, { 0xE0, 0xE0, 0xA0, 0xBF }, { 0xE1, 0xEC, 0x80, 0xBF },
                  { 0xED, 0xED, 0x80, 0x9F }, { 0xEE, 0xEF, 0x80, 0xBF }, { 0xF0, 0xF0, 0x90, 0xBF },
                  { 0xF1, 0xF3, 0x80, 0xBF }, { 0xF4, 0xF4, 0x80, 0x8F } };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && *alike && i < sizeof leads / sizeof *leads; i++) {
        uint32_t before = UINT32_MAX, next;
        for (unsigned c = leads[i].from; rc == QSF_OK && *alike && c <= leads[i].last;
             c = m->same_to[c] + 1u) {
            rc = qsf_automaton_step(m->a, state, (unsigned char)c, &next, err);
            if (next == 0) *alike = false;
            if (rc != QSF_OK || !*alike || next == before) continue;
            before = next;
            rc = wide_alike(m, next,
                            c < 0xE0   ? 1
                            : c < 0xF0 ? 2
                                       : 3,
                            leads[i].lo, leads[i].hi, to, alike, err);
        }
    }
    return rc;
}

static int find_run(QsfMasks *m, uint32_t state, Run *run, QsfErr *err) {
    uint32_t next, to, other = 0;
    int rc = qsf_automaton_step(m->a, state, 'e', &to, err);
    if (rc == QSF_OK && to == 0) rc = qsf_automaton_step(m->a, state, '0', &to, err);
    *run = (Run){ .state = state, .generation = m->a->generation, .next = to, .known = true };
    if (rc != QSF_OK || to == 0) return rc;
    for (unsigned c = 0; rc == QSF_OK && c < 128; c = m->same_to[c] + 1u) {
        rc = qsf_automaton_step(m->a, state, (unsigned char)c, &next, err);
        for (unsigned k = c; next != to && k < 128 && k <= m->same_to[c]; k++)
            other |= 1u << qsf_byte_kinds[k];
    }
    run->kinds = REST & ~other;
    return rc;
}

/* wide: characters of several bytes matter. They need more states than all others, so they are looked at only
 * then. */
static int run_of(QsfMasks *m, uint32_t state, bool wide, const Run **out, QsfErr *err) {
    Run *run = &m->run[state % RUNS], found;
    int rc = QSF_OK;
    *out = run;
    if (!run->known || run->state != state || run->generation != m->a->generation) {
        rc = find_run(m, state, &found, err);
        if (rc == QSF_OK) *run = found;
    }
    if (rc != QSF_OK || !wide || run->wide_known || run->next == 0) return rc;
    bool alike = true;
    rc = all_wide_alike(m, state, run->next, &alike, err);
    if (rc == QSF_OK && alike) run->kinds |= QSF_BYTES_WIDE;
    run->wide_known = rc == QSF_OK;
    return rc;
}

/* Does the automaton take all that is below a node? */
static int takes_branch(QsfMasks *m, const QsfTokenNode *n, uint32_t state, bool *takes, QsfErr *err) {
    *takes = false;
    if ((n->kinds & QSF_BYTES_BROKEN) != 0 || n->height > RUN_MOST) return QSF_OK;
    for (unsigned i = 0; i < n->height; i++) {
        const Run *run;
        int rc = run_of(m, state, (n->kinds & QSF_BYTES_WIDE) != 0, &run, err);
        if (rc != QSF_OK) return rc;
        if (run->next == 0 || (n->kinds & ~run->kinds) != 0) return QSF_OK;
        if (run->next == state) break;
        state = run->next;
    }
    *takes = true;
    return QSF_OK;
}

/* --- the walk --- */

static void add_tokens(const QsfMasks *m, uint64_t *bits, uint32_t from, uint32_t end) {
    const int32_t *id = m->t.trie->id;
    for (uint32_t i = from; i < end; i++) bits[id[i] / 64] |= 1ull << (id[i] % 64);
}

/* The state after a byte, from the table if it is known. */
static inline int next_state(QsfMasks *m, uint32_t state, uint8_t byte, uint32_t *next, QsfErr *err) {
    const QsfAutomaton *a = m->a;
    const uint32_t row = a->states[state].next;
    const uint32_t known = row > 0 ? a->next[row - 1 + a->g->class_of[byte]] : 0;
    if (known == 0) return qsf_automaton_step(m->a, state, byte, next, err);
    *next = known - 1;
    return QSF_OK;
}

/* Adds the tokens of nodes from..end, which are below a node of depth `top` that is in `state`. */
static int walk(QsfMasks *m, uint32_t from, uint32_t end, unsigned top, uint32_t state, uint64_t *bits,
                QsfErr *err) {
    const QsfTokenNode *node = m->t.trie->node;
    uint32_t at[QSF_TRIE_DEPTH + 1];
    at[top] = state;
    for (uint32_t i = from; i < end;) {
        const QsfTokenNode *n = &node[i];
        uint32_t next;
        bool takes = false;
        int rc = ++m->visited % 4096 == 0 ? qsf_interrupt_check(err) : QSF_OK;
        if (rc == QSF_OK) rc = next_state(m, at[n->depth - 1], n->byte, &next, err);
        if (rc == QSF_OK && next > 0 && n->skip - i > BRANCH) rc = takes_branch(m, n, next, &takes, err);
        if (rc != QSF_OK) return rc;
        if (next == 0 || takes) {
            if (takes) add_tokens(m, bits, n->token, node[n->skip].token);
            i = n->skip;
            continue;
        }
        at[n->depth] = next;
        add_tokens(m, bits, n->token, node[i + 1].token);
        i++;
    }
    return QSF_OK;
}

/* The first node for a byte at the beginning of a token; 0 = none. */
static uint32_t node_of(const QsfTokenTrie *t, uint8_t byte) {
    for (uint32_t i = 1; i < t->n; i = t->node[i].skip)
        if (t->node[i].byte == byte) return i;
    return 0;
}

static int walk_all(QsfMasks *m, uint32_t state, bool drops_space, uint64_t *bits, QsfErr *err) {
    const QsfTokenTrie *t = m->t.trie;
    const uint32_t space = drops_space ? node_of(t, ' ') : 0;
    if (space == 0) return walk(m, 1, t->n, 0, state, bits, err);
    uint32_t next;
    int rc = next_state(m, state, ' ', &next, err);
    /* Only after a space that is dropped can there be one that counts. */
    if (rc == QSF_OK && next > 0) add_tokens(m, bits, t->node[space].token, t->node[space + 1].token);
    if (rc == QSF_OK) rc = walk(m, 1, space, 0, state, bits, err);
    if (rc == QSF_OK) rc = walk(m, space + 1, t->node[space].skip, 1, state, bits, err);
    return rc == QSF_OK ? walk(m, t->node[space].skip, t->n, 0, state, bits, err) : rc;
}

/* --- the sets --- */

typedef struct Named {
    const QsfMasks *m;
    uint64_t *bits;
} Named;

static void add_named(void *arg, int32_t id, bool other) {
    const Named *n = arg;
    if (other) {
        add_tokens(n->m, n->bits, 0, n->m->t.trie->n_tokens);
        if (id >= 0 && (uint32_t)id < n->m->t.n_vocab) n->bits[id / 64] &= ~(1ull << (id % 64));
    } else if (id >= 0 && (uint32_t)id < n->m->t.n_vocab) {
        n->bits[id / 64] |= 1ull << (id % 64);
    }
}

/* What the grammar names comes first, because "any other token" removes one. */
static int fill(QsfMasks *m, uint32_t state, bool drops_space, uint64_t *bits, QsfErr *err) {
    Named named = { m, bits };
    memset(bits, 0, m->words * sizeof *bits);
    m->visited = 0;
    qsf_automaton_named(m->a, state, add_named, &named);
    int rc = walk_all(m, state, drops_space, bits, err);
    for (size_t i = 0; qsf_automaton_ends(m->a, state) && i < m->t.n_ends; i++)
        if ((uint32_t)m->t.ends[i] < m->t.n_vocab) bits[m->t.ends[i] / 64] |= 1ull << (m->t.ends[i] % 64);
    return rc;
}

/* Lower is older; an empty place is the oldest. */
static uint32_t age_of(const Set *s) { return s->known ? s->used : 0; }

int qsf_masks_get(QsfMasks *m, uint32_t state, bool drops_space, const uint64_t **set, QsfErr *err) {
    uint32_t oldest = 0;
    m->clock++;
    m->visited = 0;
    for (uint32_t i = 0; i < SETS; i++) {
        Set *s = &m->set[i];
        if (s->known && s->state == state && s->drops_space == drops_space &&
            s->generation == m->a->generation) {
            s->used = m->clock;
            *set = m->bits + i * m->words;
            return QSF_OK;
        }
        if (age_of(s) < age_of(&m->set[oldest])) oldest = i;
        oldest = s->known || m->set[oldest].known ? i : oldest;
    }
    uint64_t *bits = m->bits + oldest * m->words;
    m->set[oldest].known = false;
    int rc = fill(m, state, drops_space, bits, err);
    if (rc != QSF_OK) return rc;
    m->set[oldest] = (Set){ state, m->a->generation, m->clock, drops_space, true };
    *set = bits;
    return QSF_OK;
}
