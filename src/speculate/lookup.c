/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts from what was said: the tokens that followed the last ones where they occurred before, in this
 * conversation or in one before it. The text is a ring of tokens. Two tables say where a sequence of tokens
 * occurred last, a long and a short one; each token costs one entry of each and one look. */
#include <string.h>

#include "src/speculate/source.h"

#define NAME    "text for drafts"
#define LONG    8u /* tokens of a sequence */
#define SHORT   3u
#define OVERLAP 16u  /* tokens that are repeated where the conversation was cut, for the sequences there */
#define AGREE   32u  /* tokens that are compared at most to see how far a match goes back */
#define BREAK   (-1) /* between two conversations */

typedef struct Lookup {
    int32_t *text;     /* (n) token i is at i % n */
    uint32_t *next[2]; /* (n) by the hash of LONG or SHORT tokens: the place after them + 1; 0 = none */
    uint32_t n;        /* a power of two */
    uint64_t end;      /* tokens so far */
    uint32_t fed;      /* of the conversation; BREAK and OVERLAP are not counted */
    bool broken;       /* it was cut since */
    uint64_t bytes;
    void *mem;
} Lookup;
_Static_assert(sizeof(Lookup) <= QSF_LOOKUP_HEAD, "it is before the text");

static Lookup *of(void *state) { return state; }

static int32_t at(const Lookup *l, uint64_t i) { return l->text[i & (l->n - 1)]; }

/* The entry for the `len` tokens before `end`; NULL if there are fewer. */
static uint32_t *entry(const Lookup *l, unsigned which, uint64_t end) {
    const uint32_t len = which == 0 ? LONG : SHORT;
    uint64_t h = 0;
    if (end < len) return NULL;
    for (uint64_t i = end - len; i < end; i++) {
        if (at(l, i) == BREAK) return NULL;
        h = (h ^ (uint32_t)at(l, i)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return &l->next[which][h & (l->n - 1)];
}

/* The token follows those before it, and they are entered: their place is not found before. */
static void feed(Lookup *l, int32_t id) {
    for (unsigned which = 0; which < 2; which++) {
        uint32_t *e = entry(l, which, l->end);
        if (e != NULL) *e = (uint32_t)l->end + 1;
    }
    l->text[l->end++ & (l->n - 1)] = id;
}

static void follow(Lookup *l, const QsfDraftView *v) {
    if (l->fed > v->n) l->fed = v->n;
    if (l->broken) {
        const uint32_t back = l->fed < OVERLAP ? l->fed : OVERLAP;
        if (l->end > 0) feed(l, BREAK);
        for (uint32_t i = l->fed - back; i < l->fed; i++) feed(l, v->ids[i]);
    }
    l->broken = false;
    while (l->fed < v->n) feed(l, v->ids[l->fed++]);
}

/* How many tokens before `place` are those at the end, at most AGREE. */
static uint32_t agreement(const Lookup *l, uint64_t place) {
    const uint64_t oldest = l->end > l->n ? l->end - l->n : 0;
    uint32_t n = 0;
    while (n < AGREE && place - n > oldest && at(l, place - n - 1) == at(l, l->end - n - 1) &&
           at(l, place - n - 1) != BREAK)
        n++;
    return n;
}

/* Entries hold the low bits of a place. *agree: how many tokens before it are the same; less than SHORT: none
 * was found. */
static uint64_t find(const Lookup *l, uint32_t *agree) {
    *agree = 0;
    for (unsigned which = 0; which < 2; which++) {
        const uint32_t *e = entry(l, which, l->end);
        if (e == NULL || *e == 0) continue;
        const uint64_t age = (uint32_t)l->end - (*e - 1);
        if (age == 0 || age >= l->n || age > l->end) continue;
        *agree = agreement(l, l->end - age);
        if (*agree >= SHORT) return l->end - age;
    }
    *agree = 0;
    return 0;
}

static unsigned grade_of(uint32_t agree) { return agree < 5 ? 0 : agree < LONG ? 1 : agree < 20 ? 2 : 3; }

/* A text that repeats itself continues in the drafts. */
static uint32_t propose(void *state, const QsfDraftView *v, uint32_t max, int32_t *out, unsigned *grade) {
    Lookup *l = of(state);
    uint32_t agree, n = 0;
    follow(l, v);
    const uint64_t place = find(l, &agree);
    if (agree < SHORT) return 0;
    *grade = grade_of(agree);
    for (; n < max; n++) {
        const uint64_t i = place + n;
        const int32_t id = i < l->end ? at(l, i) : out[i - l->end];
        if (id == BREAK) break;
        out[n] = id;
    }
    return n;
}

static void cut(void *state, uint32_t n) {
    Lookup *l = of(state);
    if (l->fed <= n) return;
    l->fed = n;
    l->broken = true;
}

static void close_lookup(void *state, QsfLedger *ledger) {
    Lookup *l = state;
    if (l != NULL) qsf_mem_unmap(ledger, QSF_MEM_TRANSCRIPT, l->mem, l->bytes);
}

/* The mapping begins with what describes it. */
static int open_lookup(void **state, const QsfDraftOpen *o, QsfErr *err) {
    const uint32_t n = o->plan->lookup_tokens;
    void *mem;
    *state = NULL;
    if (n == 0) return QSF_OK;
    const uint64_t bytes = qsf_lookup_bytes(n);
    int rc = qsf_mem_map(o->ledger, QSF_MEM_TRANSCRIPT, bytes, NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    Lookup *l = mem;
    l->mem = mem;
    l->bytes = bytes;
    l->n = n;
    l->text = (int32_t *)(void *)((char *)mem + QSF_LOOKUP_HEAD);
    l->next[0] = (uint32_t *)(l->text + n);
    l->next[1] = l->next[0] + n;
    *state = l;
    return QSF_OK;
}

const QsfDraftSource qsf_draft_lookup = {
    .drafting = QSF_DRAFTING_LOOKUP,
    .open = open_lookup,
    .close = close_lookup,
    .propose = propose,
    .cut = cut,
};
