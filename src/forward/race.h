/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the number of threads that is fastest for one kind of work, by measuring a few in turn. Arithmetic
 * only: the caller runs the work and says how long it took.
 *
 * A race has rounds. In a round every number that is still in takes a turn; the order is reversed each time,
 * so that a machine that becomes slower or faster favours none. A turn lasts at least turn_ns. After each
 * round, numbers that are clearly slower leave; the race ends when one is left, or when what is left is
 * known well enough: the more the turns of a number differ, the longer that takes. Each number's slowest
 * turn does not count: one interruption must not decide. Of those within 2 % of the fastest the smallest
 * number wins: it leaves more of the machine to others.
 *
 * After a race the number that won is used. The next race is run when work has been slower by a quarter for a
 * second (another program, a quota), and now and then with the neighbours of the number in use only, because
 * nothing else shows that a larger number would be faster again. */
#ifndef QSF_FORWARD_RACE_H
#define QSF_FORWARD_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/cpus.h"

#define QSF_RACE_LEAST 5 /* rounds */
#define QSF_RACE_MOST  64
#define QSF_RACE_NS    100000000u  /* in which the fastest number must have been measured, */
#define QSF_RACE_LONG  1000000000u /* and if turns differ: no longer than this */

/* Work in some unit, and how long it took. */
typedef struct QsfTimed {
    double work, ns;
} QsfTimed;

/* One number of threads. */
typedef struct QsfRunner {
    QsfWidth width;
    double speed;     /* work per nanosecond in its last race; 0 = it was in none */
    bool in;          /* of the running race */
    bool given_up;    /* its last turn was broken off: `speed` is more than it has */
    QsfTimed turn;    /* that is running */
    QsfTimed sum;     /* of its turns in this race */
    QsfTimed slowest; /* of these */
    double mean, m2;  /* of its turns' nanoseconds per unit of work: the mean, and the sum of the squares of
                         the deviations */
} QsfRunner;

typedef struct QsfRace {
    QsfRunner runner[QSF_WIDTHS];
    int n;            /* 1: nothing is ever measured */
    int start;        /* index of the number to begin with */
    int best;         /* of the one that won the last race */
    int at;           /* of the one whose turn it is; -1: no race is running */
    int round;        /* rounds that are over */
    bool settled;     /* the turn has had its first piece of work: the kernel favours a thread that has slept,
                         so a short one is not measured */
    bool warm;        /* something was done: the first work is not measured */
    bool watch;       /* is work comparable over time? Only then it can be seen to have become slower */
    uint64_t turn_ns; /* shortest turn */
    uint32_t races;   /* that have ended */
    /* since the last race */
    double usual, recent; /* nanoseconds per unit of work: the least, and now; 0 = not known */
    double slow_ns;       /* in which work was slower than usual, until now */
    QsfTimed done;
} QsfRace;

/* w: (n) numbers of threads, 1 <= n <= QSF_WIDTHS, ascending; start: index of the first one in use. */
void qsf_race_init(QsfRace *r, const QsfWidth *w, int n, int start, bool watch, uint64_t turn_ns);
static inline bool qsf_race_runs(const QsfRace *r) { return r->at >= 0; }
/* Returns the number of threads to use for the next piece of work. */
int qsf_race_threads(const QsfRace *r);
/* A piece of work was done with that number; starts and ends races. work: in any unit that is the same for
 * all, > 0. */
void qsf_race_did(QsfRace *r, double work, uint64_t ns);
/* Is the turn that is running lost? Its work, of one qsf_race_did, is not done yet and took ns so far. The
 * caller then calls qsf_race_give_up, and continues with qsf_race_threads. */
bool qsf_race_is_lost(const QsfRace *r, double work, uint64_t ns);
void qsf_race_give_up(QsfRace *r, double work, uint64_t ns);
/* Starts a race of all numbers. */
void qsf_race_start(QsfRace *r);
/* Describes numbers and speeds: "6 (fastest cores) 1.00, 14 (all cores) 0.81, 20 (all CPUs) below 0.40"; ""
 * if nothing was measured. */
void qsf_race_text(const QsfRace *r, char *dst, size_t cap);

#endif
