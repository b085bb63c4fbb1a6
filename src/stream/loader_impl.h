/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the loader share: loader.c is the thread and the consumer's side, jobs.c decides what is
 * read next and where it goes. */
#ifndef QSF_STREAM_LOADER_IMPL_H
#define QSF_STREAM_LOADER_IMPL_H

#include <pthread.h>

#include "src/file/qsf/codec.h"
#include "src/stream/loader.h"

#define QSF_WANTED   256u
#define QSF_MAX_JOBS 5 /* x QSF_UNIT_TENSORS reads stay below QSF_IO_DEPTH */

/* Items of one unit on their way to a slot, or to where they stay (slot NULL); or a compressed layer, of
 * which unit is the first, on its way to a stage, to be decompressed from there. */
typedef struct QsfJob {
    uint32_t unit, item0, item1;
    QsfSlot *slot;
    uint64_t pass; /* the running one when this was begun */
    unsigned n_reads;
    QsfIoRead read[QSF_UNIT_TENSORS];
    const QsfCompressed *compressed;
    uint8_t *stage, *whole; /* of compressed: its windows, and where it will be */
} QsfJob;

typedef struct QsfPosition {
    uint32_t unit, item;
} QsfPosition;

struct QsfLoader {
    QsfLoaderOptions o;
    QsfIo *io; /* NULL once nothing is left to read, ever */
    char io_name[32], io_notice[160];
    QsfSlots slots;
    void *memory;
    uint64_t memory_bytes, stack_bytes, unpack_bytes;
    uint8_t *stages;      /* (n_stages, stage_bytes), behind the slots */
    QsfUnpacker unpacker; /* the thread's */
    QsfSlot *held; /* the consumer's: a compressed layer that is in use, until its last unit is released */
    uint32_t held_unit; /* the newest of its units */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* everything below */
    pthread_cond_t work;  /* for the loader: there may be something to read */
    pthread_cond_t ready; /* for the consumer: something arrived, or the loader failed */

    QsfJob job[QSF_MAX_JOBS]; /* ring of what is in flight, oldest first; the entries belong to the loader */
    uint32_t first_job, n_jobs;
    uint32_t n_staged, next_stage; /* jobs that have a stage; the one that is given next: they end in order */
    uint64_t busy_since;           /* since when something has been in flight, or was last counted */

    QsfPosition load;              /* next chunk to stream */
    uint64_t load_pass, pass;      /* pass that `load` belongs to, pass being computed */
    uint32_t limit;                /* units of the pass being computed */
    uint32_t pin_unit, pin_expert; /* no unit before lacks the start of a pin; no expert */
    uint32_t want[QSF_WANTED];     /* units that are pinned first: a ring of n_wants, the oldest one first */
    uint32_t first_want, n_wants;
    bool in_pass, streams;
    bool paused; /* nothing new is read */
    bool drop;   /* what was read is not wanted: empty the slots when nothing is in flight */
    bool failed;
    QsfErr err; /* why, when failed */
    bool stop;
};

/* All with the lock held. */
QsfPosition qsf_loader_first(const QsfLoader *l, uint32_t unit);
/* Moves the position over the border between passes where it may; false when nothing can be streamed. */
bool qsf_loader_settle(QsfLoader *l);
/* Takes the next job into the ring, without starting its reads; NULL when there is none, or no room. */
QsfJob *qsf_job_next(QsfLoader *l);
/* The oldest job's reads are over, with this result. */
void qsf_job_done(QsfLoader *l, int rc, const QsfErr *err);
/* Returns the number of units that a job reads: its first unit and those after it. */
uint32_t qsf_job_units(const QsfLoader *l, const QsfJob *j);
/* What arrived in a job's stage goes to where it will be used. Without the lock. QSF_E_MODEL:
 * it is damaged. */
int qsf_job_unpack(QsfLoader *l, const QsfJob *j, QsfErr *err);
/* Whether nothing is left to read, now and later. */
bool qsf_loader_finished(const QsfLoader *l);

#endif
