/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/race.h"

#include <stdio.h>
#include <string.h>

#define AS_FAST    0.98         /* of the fastest number's speed: a smaller number is then better */
#define SLOWER     1.25         /* times the usual time: work has become slower */
#define SLOW_NS    1000000000.0 /* for this long */
#define REST_NS    5000000000.0 /* between two races at least */
#define AGAIN_NS   20e9         /* with the neighbours: after this much time and work */
#define AGAIN_WORK 256
#define LOST       2.5 /* times the time of the fastest number: not worth the rest of the turn */
#define LOST_NS    50e6
#define RECENT     16.0 /* pieces of work that the recent speed is an average of */
#define OUTLIER    4.0  /* times the recent time */

void qsf_race_init(QsfRace *r, const QsfWidth *w, int n, int start, bool watch, uint64_t turn_ns) {
    *r = (QsfRace){ .n = n, .start = start, .best = start, .at = -1, .watch = watch, .turn_ns = turn_ns };
    for (int i = 0; i < n; i++) r->runner[i].width = w[i];
}

int qsf_race_threads(const QsfRace *r) { return r->runner[r->at >= 0 ? r->at : r->best].width.threads; }

/* ---- a race ---- */

static double speed_of(const QsfTimed *t) { return t->ns > 0 ? t->work / t->ns : 0; }

/* Returns the next runner in this round's direction after index i; -1 if there is none. */
static int next_of(const QsfRace *r, int i) {
    const int step = r->round % 2 == 0 ? 1 : -1;
    for (i += step; i >= 0 && i < r->n; i += step)
        if (r->runner[i].in) return i;
    return -1;
}

static void begin_round(QsfRace *r) { r->at = next_of(r, r->round % 2 == 0 ? -1 : r->n); }

/* Of the runners from index `first` to `last`, and the one that began. */
static void begin_race(QsfRace *r, int first, int last) {
    if (r->n < 2) return;
    for (int i = 0; i < r->n; i++) {
        QsfRunner *x = &r->runner[i];
        x->in = (i >= first && i <= last) || i == r->start;
        x->turn = x->sum = x->slowest = (QsfTimed){ 0 };
        if (x->in) x->given_up = false;
    }
    r->round = 0;
    begin_round(r);
}

void qsf_race_start(QsfRace *r) { begin_race(r, 0, r->n - 1); }

/* Without the slowest turn as soon as there are several others. */
static double race_speed(const QsfRace *r, const QsfRunner *x) {
    const QsfTimed rest = { x->sum.work - x->slowest.work, x->sum.ns - x->slowest.ns };
    return r->round >= 3 ? speed_of(&rest) : speed_of(&x->sum);
}

static double top_speed(const QsfRace *r) {
    double top = 0;
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].in && r->runner[i].speed > top) top = r->runner[i].speed;
    return top;
}

static void end_race(QsfRace *r) {
    const double top = top_speed(r);
    int won = r->best;
    for (int i = r->n - 1; i >= 0; i--)
        if (r->runner[i].in && r->runner[i].speed >= AS_FAST * top) won = i;
    r->best = won;
    r->at = -1;
    r->races++;
    r->usual = top > 0 ? 1 / r->runner[won].speed : 0;
    r->recent = r->usual;
    r->slow_ns = 0;
    r->done = (QsfTimed){ 0 };
}

/* Removes runners that cannot be the fastest; early rounds say less, and one interruption then must not
 * remove the number in use. Returns how many are left. */
static int sift(QsfRace *r) {
    static const double least[] = { 0.6, 0.75, 0.85, 0.92 };
    const size_t n = sizeof least / sizeof *least, at = (size_t)r->round <= n ? (size_t)r->round - 1 : n - 1;
    const double top = top_speed(r);
    int left = 0;
    for (int i = 0; i < r->n; i++) {
        QsfRunner *x = &r->runner[i];
        if (x->in && x->speed < least[at] * top && (i != r->best || r->round >= 3)) x->in = false;
        left += x->in;
    }
    return left;
}

static void end_round(QsfRace *r) {
    double measured = 0;
    r->round++;
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].in) r->runner[i].speed = race_speed(r, &r->runner[i]);
    const int left = sift(r);
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].in && r->runner[i].sum.ns > measured) measured = r->runner[i].sum.ns;
    const bool enough = r->round >= QSF_RACE_LEAST && measured >= QSF_RACE_NS;
    if (left < 2 || enough || r->round >= QSF_RACE_MOST)
        end_race(r);
    else
        begin_round(r);
}

static void next_turn(QsfRace *r) {
    r->at = next_of(r, r->at);
    if (r->at < 0) end_round(r);
}

static void end_turn(QsfRace *r) {
    QsfRunner *x = &r->runner[r->at];
    x->sum.work += x->turn.work;
    x->sum.ns += x->turn.ns;
    if (x->slowest.ns <= 0 || speed_of(&x->turn) < speed_of(&x->slowest)) x->slowest = x->turn;
    x->turn = (QsfTimed){ 0 };
    next_turn(r);
}

bool qsf_race_is_lost(const QsfRace *r, double work, uint64_t ns) {
    if (r->at < 0 || r->at == r->best) return false;
    double least = r->usual;
    for (int i = 0; i < r->n; i++) {
        const double speed = speed_of(&r->runner[i].sum);
        if (speed > 0 && (least <= 0 || 1 / speed < least)) least = 1 / speed;
    }
    return least > 0 && (double)ns > LOST * least * work && (double)ns > least * work + LOST_NS;
}

void qsf_race_give_up(QsfRace *r, double work, uint64_t ns) {
    if (r->at < 0 || r->at == r->best) return;
    QsfRunner *x = &r->runner[r->at];
    x->in = false;
    x->given_up = true;
    x->speed = work / (double)ns;
    next_turn(r);
}

/* ---- between races ---- */

static void watch(QsfRace *r, double work, double ns) {
    double each = ns / work;
    if (r->recent > 0 && each > OUTLIER * r->recent) each = OUTLIER * r->recent;
    r->recent = r->recent > 0 ? r->recent + (each - r->recent) / RECENT : each;
    if (r->usual <= 0 || r->recent < r->usual) r->usual = r->recent;
    r->slow_ns = r->recent > SLOWER * r->usual ? r->slow_ns + ns : 0;
    r->done.work += work;
    r->done.ns += ns;
    if (r->slow_ns >= SLOW_NS && r->done.ns >= REST_NS)
        qsf_race_start(r);
    else if (r->done.ns >= AGAIN_NS && r->done.work >= AGAIN_WORK)
        begin_race(r, r->best - 1, r->best + 1);
}

void qsf_race_did(QsfRace *r, double work, uint64_t ns) {
    if (r->n < 2 || work <= 0 || ns == 0) return;
    if (!r->warm) {
        r->warm = true;
        r->usual = (double)ns / work;
        qsf_race_start(r);
        return;
    }
    if (r->at < 0) {
        if (r->watch) watch(r, work, (double)ns);
        return;
    }
    QsfRunner *x = &r->runner[r->at];
    x->turn.work += work;
    x->turn.ns += (double)ns;
    if (x->turn.ns >= (double)r->turn_ns) end_turn(r);
}

void qsf_race_text(const QsfRace *r, char *dst, size_t cap) {
    const double top = r->runner[r->best].speed;
    size_t n = 0;
    if (cap > 0) dst[0] = '\0';
    for (int i = 0; top > 0 && i < r->n && n < cap; i++) {
        const QsfRunner *x = &r->runner[i];
        if (x->speed <= 0) continue;
        n += (size_t)snprintf(dst + n, cap - n, "%s%d (%s) %s%.2f", n > 0 ? ", " : "", x->width.threads,
                              x->width.what, x->given_up ? "below " : "", x->speed / top);
    }
}
