/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads experts before a router has chosen them, while the disk has nothing else to do: for one position
 * those that were predicted, in a prompt that needs nearly all experts those of the next block, and into free
 * slots those that are used often. */
#include <math.h>

#include "src/base/clock.h"
#include "src/plan/expert_span.h"
#include "src/stream/expert_pool_impl.h"

/* antirez/ds4 measured that 46 to 89 % of such predictions are right; a read that is not used delays one that
 * is needed. */
#define RIGHT_FIRST 0.7f /* until it is known */
#define RIGHT_LEAST 0.6f /* of the experts that are read, where it pays */
#define WINDOW      32u  /* positions until it is decided whether it does, */
#define READS_LEAST 8u   /* from at least as many experts */
#define PAUSE_FIRST 512u /* positions without, if it does not; each time twice as many, up to */
#define PAUSE_MOST  16384u
#define WAIT_LEAST  2.0f  /* positions: what is used more often than in every other one stays */
#define ALONE_MOST  2u    /* in flight, outside of prompts: one of them may delay what is chosen then */
#define NEARLY_ALL  0.9f  /* chosen experts of a block, from which those of the next one are read */
#define FILL_WAIT   64.0f /* positions: what is used less often does not fill a slot meanwhile */

/* ---- does it pay? ---- */

static void pause(QsfExpertAhead *a) {
    if (a->pause_next < PAUSE_FIRST) a->pause_next = PAUSE_FIRST;
    a->pause = a->pause_next;
    if (a->pause_next < PAUSE_MOST) a->pause_next *= 2;
}

void qsf_expert_ahead_position(QsfExpertPool *p) {
    QsfExpertAhead *a = &p->ahead;
    if (a->pause > 0) {
        a->pause--;
        return;
    }
    if (++a->positions < WINDOW) return;
    if (a->read >= READS_LEAST) {
        a->right = fminf((float)a->used / (float)a->read, 1);
        if (a->right < RIGHT_LEAST && p->o.stream.ahead == QSF_GUESSING_AUTO)
            pause(a);
        else
            a->pause_next = PAUSE_FIRST;
    }
    a->positions = a->read = a->used = 0;
}

bool qsf_expert_pool_guesses(const QsfExpertPool *p) {
    return p->io != NULL && p->n_slots > 0 && p->n_slots < p->n_experts &&
           p->o.stream.ahead != QSF_GUESSING_OFF && p->ahead.pause == 0;
}

/* Positions until what is predicted will be used, on average. */
static float wait_of_guess(const QsfExpertPool *p) {
    const float known = p->ahead.right > 0 ? p->ahead.right : RIGHT_FIRST,
                right = known < 0.1f ? 0.1f : known;
    const float wait = p->each_block + (1 - right) / right;
    return wait > WAIT_LEAST ? wait : WAIT_LEAST;
}

/* ---- reads ---- */

static uint64_t bytes_of(const QsfExpertPool *p, uint32_t e) {
    const QsfWeightUnit *w = &p->units[p->unit[e]];
    QsfExpertSpan s;
    qsf_expert_span(&w[0].u, &w[1].u, &s);
    return s.all.bytes;
}

void qsf_expert_ahead_done(QsfExpertPool *p, uint32_t e, bool used) {
    QsfStreamCounters *n = p->o.counters;
    p->expert[e].unused = false;
    if (used && p->positions == 1) p->ahead.used++;
    if (n != NULL)
        atomic_fetch_add_explicit(used ? &n->ahead_used : &n->ahead_wasted, bytes_of(p, e),
                                  memory_order_relaxed);
}

static void start(QsfExpertPool *p, QsfExpertGuess *g, uint32_t e, uint32_t slot, bool predicted) {
    QsfExpert *x = &p->expert[e];
    qsf_expert_enter(p, e, slot);
    if (p->n_jobs == 0 && p->ahead.n_reads == 0) p->busy_since = qsf_now_ns();
    x->queued = x->guessed = true;
    x->unused = predicted;
    *g = (QsfExpertGuess){ .expert = e };
    g->n_reads = qsf_expert_start_reads(p, e, 0, g->read);
    if (!x->together) g->n_reads += qsf_expert_start_reads(p, e, 1, g->read + g->n_reads);
    p->ahead.n_reads += g->n_reads;
    if (!predicted) return;
    p->ahead.read += p->positions == 1;
    atomic_fetch_add_explicit(&p->o.counters->ahead_read, bytes_of(p, e), memory_order_relaxed);
}

/* Waits for it. What fails is left out: it is read again if it is chosen, and then it is an error. */
static void finish(QsfExpertPool *p, QsfExpertGuess *g) {
    QsfExpert *x = &p->expert[g->expert];
    const uint64_t t0 = qsf_now_ns();
    uint64_t got = 0;
    QsfErr err = { 0 };
    int rc = QSF_OK;
    for (unsigned i = 0; i < g->n_reads; i++) {
        if (qsf_io_wait(p->io, &g->read[i], &err) != QSF_OK) rc = QSF_E_RUNTIME;
        got += g->read[i].got;
    }
    qsf_expert_count_read(p, x->block, got, t0);
    p->ahead.n_reads -= g->n_reads;
    g->n_reads = 0;
    x->queued = x->guessed = false;
    for (unsigned which = 0; rc == QSF_OK && which < 2; which++)
        rc = qsf_expert_verify(p, g->expert, which, &err);
    qsf_err_clear(&err);
    if (rc == QSF_OK) {
        x->there = 3;
        qsf_expert_count(p, g->expert, 1);
    } else {
        pause(&p->ahead);
        qsf_expert_leave(p, g->expert);
    }
}

void qsf_expert_ahead_wait(QsfExpertPool *p, uint32_t e) {
    for (unsigned i = 0; i < QSF_GUESSES; i++)
        if (p->ahead.flight[i].n_reads > 0 && p->ahead.flight[i].expert == e) finish(p, &p->ahead.flight[i]);
}

void qsf_expert_ahead_finish(QsfExpertPool *p) {
    for (unsigned i = 0; p->ahead.n_reads > 0 && i < QSF_GUESSES; i++)
        if (p->ahead.flight[i].n_reads > 0) finish(p, &p->ahead.flight[i]);
}

void qsf_expert_ahead_take(QsfExpertPool *p) {
    for (unsigned i = 0; p->ahead.n_reads > 0 && i < QSF_GUESSES; i++) {
        QsfExpertGuess *g = &p->ahead.flight[i];
        bool done = g->n_reads > 0;
        for (unsigned k = 0; done && k < g->n_reads; k++) done = qsf_io_done(p->io, &g->read[k]);
        if (done) finish(p, g);
    }
}

/* Returns where another read is kept; NULL: as many as are useful are in flight, or as are possible. */
static QsfExpertGuess *find_free(QsfExpertPool *p) {
    const unsigned most = p->positions > 1 ? QSF_GUESSES : ALONE_MOST;
    QsfExpertGuess *g = NULL;
    unsigned n = 0;
    for (unsigned i = 0; i < QSF_GUESSES; i++) {
        n += p->ahead.flight[i].n_reads > 0;
        if (p->ahead.flight[i].n_reads == 0) g = &p->ahead.flight[i];
    }
    const bool room = p->n_reads + p->ahead.n_reads + 2 * QSF_UNIT_TENSORS <= QSF_IO_DEPTH;
    return room && n < most ? g : NULL;
}

/* Returns a slot for a prediction; QSF_NO_SLOT: all are of experts that are wanted sooner. */
static uint32_t slot_for(const QsfExpertPool *p, uint32_t e) {
    const uint32_t slot = qsf_expert_find_slot(p, p->n_slots, e, false),
                   owner = slot == QSF_NO_SLOT ? QSF_NO_SLOT : p->owner[slot];
    if (owner == QSF_NO_SLOT) return slot;
    const QsfExpert *x = &p->expert[owner];
    if (p->positions > 1)
        return x->block <= p->block ? slot : QSF_NO_SLOT; /* others are needed in this pass */
    return !x->likely && qsf_expert_wait(p, owner) > wait_of_guess(p) ? slot : QSF_NO_SLOT;
}

static bool is_absent(const QsfExpertPool *p, uint32_t e) {
    return p->expert[e].slot == QSF_NO_SLOT && !p->expert[e].queued;
}

/* One of the predicted experts; false: there is none to read now. */
static bool read_predicted(QsfExpertPool *p, QsfExpertGuess *g) {
    QsfExpertAhead *a = &p->ahead;
    while (a->n_wishes > 0) {
        const uint32_t e = a->wish[0], slot = slot_for(p, e);
        a->n_wishes--;
        for (uint32_t i = 0; i < a->n_wishes; i++) a->wish[i] = a->wish[i + 1];
        if (slot == QSF_NO_SLOT) continue;
        start(p, g, e, slot, true);
        return true;
    }
    while (a->at < a->end && !is_absent(p, a->at)) a->at++;
    const uint32_t slot = a->at < a->end ? slot_for(p, a->at) : QSF_NO_SLOT;
    if (slot == QSF_NO_SLOT) return false;
    start(p, g, a->at++, slot, true);
    return true;
}

/* Is all in memory that is pinned? It is needed first. */
static bool has_pins(const QsfExpertPool *p) {
    const QsfStreamCounters *n = p->o.counters;
    return atomic_load_explicit(&n->pin_done, memory_order_relaxed) >=
           atomic_load_explicit(&n->pin_total, memory_order_relaxed);
}

/* One of the experts that are used often, into a free slot. In a prompt, how often is a prediction, too. */
static bool read_often_used(QsfExpertPool *p, QsfExpertGuess *g) {
    const bool may = p->positions == 1 || p->o.stream.ahead != QSF_GUESSING_OFF;
    if (!may || p->n_free == 0 || p->n_jobs > 0 || !has_pins(p)) return false;
    if (p->ahead.fill_pass != p->pass) {
        qsf_expert_sort(p);
        p->fill_at = 0;
        p->ahead.fill_pass = p->pass;
    }
    const uint32_t e = qsf_expert_next_to_fill(p),
                   slot = e != QSF_NO_SLOT ? qsf_expert_find_slot(p, p->n_slots, e, false) : QSF_NO_SLOT;
    if (slot == QSF_NO_SLOT || p->owner[slot] != QSF_NO_SLOT || qsf_expert_wait(p, e) > FILL_WAIT)
        return false;
    start(p, g, e, slot, false);
    return true;
}

/* Is nothing waiting to be read? With a single position, nothing that it chose may be on its way either. */
static bool is_idle(const QsfExpertPool *p) {
    return p->queue_at == p->n_queue && (p->n_jobs == 0 || p->positions > 1);
}

void qsf_expert_ahead_on(QsfExpertPool *p) {
    QsfExpertGuess *g;
    qsf_expert_ahead_take(p);
    while (is_idle(p) && (g = find_free(p)) != NULL && (read_predicted(p, g) || read_often_used(p, g)))
        continue;
}

void qsf_expert_pool_poll(QsfExpertPool *p) {
    if (p->io != NULL && p->n_slots > 0) qsf_expert_ahead_on(p);
}

/* ---- predictions ---- */

void qsf_expert_ahead_chosen(QsfExpertPool *p) {
    QsfExpertAhead *a = &p->ahead;
    for (uint32_t i = 0; i < a->n_likely; i++) p->expert[a->likely[i]].likely = false;
    a->n_likely = a->n_wishes = a->at = a->end = 0;
}

/* Returns the end of the experts of the block that begins with expert e. */
static uint32_t end_of_block(const QsfExpertPool *p, uint32_t e) {
    const uint32_t first = e;
    while (e < p->n_experts && p->expert[e].block == p->expert[first].block) e++;
    return e;
}

void qsf_expert_ahead_prompt(QsfExpertPool *p) {
    QsfExpertAhead *a = &p->ahead;
    if (p->o.stream.ahead == QSF_GUESSING_OFF || qsf_expert_chosen(p) < NEARLY_ALL) return;
    a->at = p->block_to;
    while (a->at < p->n_experts && p->units[p->unit[a->at]].skipped) a->at = end_of_block(p, a->at);
    a->end = end_of_block(p, a->at);
}

static void add(QsfExpertPool *p, uint32_t e) {
    QsfExpertAhead *a = &p->ahead;
    QsfExpert *x = &p->expert[e];
    if (a->n_likely == QSF_MAX_EXPERTS || x->likely) return;
    x->likely = true;
    a->likely[a->n_likely++] = e;
    if (x->slot == QSF_NO_SLOT && !x->queued && a->n_wishes < QSF_GUESS_LAYER) a->wish[a->n_wishes++] = e;
}

void qsf_expert_pool_guess(QsfExpertPool *p, const uint32_t *unit, uint32_t n) {
    qsf_expert_ahead_chosen(p);
    for (uint32_t i = 0; i < n; i++) add(p, qsf_expert_find(p, unit[i]));
    qsf_expert_ahead_on(p);
}

void qsf_expert_pool_guess_last(QsfExpertPool *p, uint32_t unit, uint32_t n) {
    const uint32_t first = qsf_expert_find(p, unit);
    qsf_expert_ahead_chosen(p);
    for (uint32_t e = first; e < first + n && e < p->n_experts; e++)
        if (p->expert[e].used_in == (uint16_t)(p->pass - 1)) add(p, e);
    qsf_expert_ahead_on(p);
}
