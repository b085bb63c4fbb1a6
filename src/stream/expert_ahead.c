/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads experts that were predicted, before a router has chosen them, while the disk has nothing else to
 * do. */
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
#define WAIT_LEAST  2.0f /* positions: what is used more often than in every other one stays */

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
        a->right = (float)a->used / (float)a->read;
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
    if (used) p->ahead.used++;
    if (n != NULL)
        atomic_fetch_add_explicit(used ? &n->ahead_used : &n->ahead_wasted, bytes_of(p, e),
                                  memory_order_relaxed);
}

static void start(QsfExpertPool *p, QsfExpertGuess *g, uint32_t e, uint32_t slot) {
    QsfExpert *x = &p->expert[e];
    qsf_expert_enter(p, e, slot);
    if (p->n_jobs == 0 && p->ahead.n_reads == 0) p->busy_since = qsf_now_ns();
    x->queued = x->guessed = x->unused = true;
    *g = (QsfExpertGuess){ .expert = e };
    g->n_reads = qsf_expert_start_reads(p, e, 0, g->read);
    if (!x->together) g->n_reads += qsf_expert_start_reads(p, e, 1, g->read + g->n_reads);
    p->ahead.n_reads += g->n_reads;
    p->ahead.read++;
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

static void take_complete(QsfExpertPool *p) {
    for (unsigned i = 0; i < QSF_GUESSES; i++) {
        QsfExpertGuess *g = &p->ahead.flight[i];
        bool done = g->n_reads > 0;
        for (unsigned k = 0; done && k < g->n_reads; k++) done = qsf_io_done(p->io, &g->read[k]);
        if (done) finish(p, g);
    }
}

static QsfExpertGuess *find_free(QsfExpertPool *p) {
    for (unsigned i = 0; i < QSF_GUESSES; i++)
        if (p->ahead.flight[i].n_reads == 0) return &p->ahead.flight[i];
    return NULL;
}

/* Returns a slot for a prediction; QSF_NO_SLOT: all are of experts that are wanted sooner. */
static uint32_t slot_for(const QsfExpertPool *p, uint32_t e) {
    const uint32_t slot = qsf_expert_find_slot(p, p->n_slots, e, false),
                   owner = slot == QSF_NO_SLOT ? QSF_NO_SLOT : p->owner[slot];
    if (owner == QSF_NO_SLOT) return slot;
    return !p->expert[owner].likely && qsf_expert_wait(p, owner) > wait_of_guess(p) ? slot : QSF_NO_SLOT;
}

void qsf_expert_ahead_on(QsfExpertPool *p) {
    QsfExpertAhead *a = &p->ahead;
    QsfExpertGuess *g;
    if (a->n_reads > 0) take_complete(p);
    while (a->n_wishes > 0 && p->n_jobs == 0 && p->queue_at == p->n_queue && (g = find_free(p)) != NULL &&
           a->n_reads + 2 * QSF_UNIT_TENSORS <= QSF_IO_DEPTH) {
        const uint32_t e = a->wish[0], slot = slot_for(p, e);
        a->n_wishes--;
        for (uint32_t i = 0; i < a->n_wishes; i++) a->wish[i] = a->wish[i + 1];
        if (slot != QSF_NO_SLOT) start(p, g, e, slot);
    }
}

/* ---- predictions ---- */

void qsf_expert_ahead_chosen(QsfExpertPool *p) {
    QsfExpertAhead *a = &p->ahead;
    for (uint32_t i = 0; i < a->n_likely; i++) p->expert[a->likely[i]].likely = false;
    a->n_likely = a->n_wishes = 0;
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
