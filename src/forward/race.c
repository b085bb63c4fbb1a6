/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/race.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KNOWN      0.02         /* relative error of a comparison that is good enough */
#define BEHIND     0.08         /* clearly slower, if twice the error is less */
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

/* Starts a race between the runners from index `first` to `last` and the one that computes now. */
static void begin_race(QsfRace *r, int first, int last) {
    if (r->n < 2) return;
    for (int i = 0; i < r->n; i++) {
        QsfRunner *x = &r->runner[i];
        x->in = (i >= first && i <= last) || i == r->start;
        x->turn = x->sum = x->slowest = (QsfTimed){ 0 };
        x->mean = x->m2 = 0;
        if (x->in) x->given_up = false;
    }
    r->round = 0;
    r->settled = false;
    begin_round(r);
}

void qsf_race_start(QsfRace *r) { begin_race(r, 0, r->n - 1); }

/* Without the slowest turn as soon as there are several others. */
static double race_speed(const QsfRace *r, const QsfRunner *x) {
    const QsfTimed rest = { x->sum.work - x->slowest.work, x->sum.ns - x->slowest.ns };
    return r->round >= 3 ? speed_of(&rest) : speed_of(&x->sum);
}

/* Returns the fastest runner that is in. */
static const QsfRunner *top_of(const QsfRace *r) {
    const QsfRunner *top = NULL;
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].in && (top == NULL || r->runner[i].speed > top->speed)) top = &r->runner[i];
    return top;
}

/* Returns the variance of the mean of a runner's turns, relative to it, without the slowest turn, as its
 * speed. All runners have had a turn in each round. */
static double variance(const QsfRace *r, const QsfRunner *x) {
    const double n = r->round, out = x->slowest.ns / x->slowest.work;
    if (n < 3 || x->mean <= 0) return 0;
    const double mean = (n * x->mean - out) / (n - 1), m2 = x->m2 - (out - x->mean) * (out - mean);
    return m2 > 0 && mean > 0 ? m2 / (n - 2) / (n - 1) / (mean * mean) : 0;
}

/* Returns the relative error of the comparison of two runners. */
static double error(const QsfRace *r, const QsfRunner *x, const QsfRunner *y) {
    return sqrt(variance(r, x) + variance(r, y));
}

static void end_race(QsfRace *r, double top) {
    int won = r->best;
    for (int i = r->n - 1; i >= 0; i--)
        if (r->runner[i].in && r->runner[i].speed >= AS_FAST * top) won = i;
    r->best = won;
    r->at = -1;
    r->races++;
    if (top > 0) r->usual = 1 / r->runner[won].speed;
    r->recent = r->usual;
    r->slow_ns = 0;
    r->done = (QsfTimed){ 0 };
}

/* Is x too slow to win, compared with the fastest one? Early rounds say less, and one interruption then must
 * not remove the number in use. */
static bool is_behind(const QsfRace *r, const QsfRunner *x, const QsfRunner *top) {
    if (r->round < 3) return x->speed < (r->round < 2 ? 0.6 : 0.75) * top->speed && x != &r->runner[r->best];
    const double twice = 2 * error(r, x, top);
    return x->speed < (1 - (twice > BEHIND ? twice : BEHIND)) * top->speed;
}

/* Removes runners that cannot be the fastest. Returns how many are left; *worst gets the largest error of the
 * comparisons with the fastest one. */
static int sift(QsfRace *r, const QsfRunner *top, double *worst) {
    int left = 0;
    *worst = 0;
    for (int i = 0; i < r->n; i++) {
        QsfRunner *x = &r->runner[i];
        if (x->in && is_behind(r, x, top)) x->in = false;
        if (!x->in) continue;
        left++;
        if (x != top && error(r, x, top) > *worst) *worst = error(r, x, top);
    }
    return left;
}

static void end_round(QsfRace *r) {
    double worst;
    r->round++;
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].in) r->runner[i].speed = race_speed(r, &r->runner[i]);
    const QsfRunner *top = top_of(r);
    if (top == NULL) { /* the last one was given up: nothing changes */
        end_race(r, 0);
        return;
    }
    const int left = sift(r, top, &worst);
    const bool known = r->round >= QSF_RACE_LEAST && top->sum.ns >= QSF_RACE_NS &&
                       (worst <= KNOWN || top->sum.ns >= QSF_RACE_LONG);
    if (left < 2 || known || r->round >= QSF_RACE_MOST)
        end_race(r, top->speed);
    else
        begin_round(r);
}

static void next_turn(QsfRace *r) {
    r->settled = false;
    r->at = next_of(r, r->at);
    if (r->at < 0) end_round(r);
}

static void end_turn(QsfRace *r) {
    QsfRunner *x = &r->runner[r->at];
    x->sum.work += x->turn.work;
    x->sum.ns += x->turn.ns;
    const double each = x->turn.ns / x->turn.work, from = each - x->mean;
    x->mean += from / (r->round + 1);
    x->m2 += from * (each - x->mean);
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
    if (!r->settled && (double)ns < (double)r->turn_ns / 2) {
        r->settled = true;
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
