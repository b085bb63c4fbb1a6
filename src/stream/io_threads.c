/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The read queue and its threads. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/platform.h"
#include "src/base/sanitizer.h"
#include "src/stream/io_impl.h"

/* Sanitizers put red zones around everything on a stack. */
#define STACK_FACTOR (QSF_ADDRESS_SANITIZER || QSF_THREAD_SANITIZER ? 4u : 1u)

typedef struct Threads {
    QsfIo *io;
    QsfIoStepFn fn;
    atomic_uint work; /* reads in the queue that no thread has taken on, plus one for each thread when they
                         have to stop. A semaphore: macOS has none without a name */
    pthread_mutex_t lock;
    pthread_cond_t done;            /* one waiter: the loader */
    QsfIoRead *queue[QSF_IO_DEPTH]; /* ring */
    uint32_t first, n;
    pthread_t thread[QSF_IO_THREADS];
    uint32_t n_threads;
} Threads;

static void post(Threads *t) {
    atomic_fetch_add(&t->work, 1);
    qsf_os_wake(&t->work, false);
}

static void take_on(Threads *t) {
    for (unsigned n = atomic_load(&t->work);;) {
        if (n == 0)
            qsf_os_sleep(&t->work, 0), n = atomic_load(&t->work);
        else if (atomic_compare_exchange_weak(&t->work, &n, n - 1))
            return;
    }
}

static void read_whole(Threads *t, QsfIoRead *r) {
    if (t->io->file[r->file].computed) {
        qsf_io_compute(t->io, r);
        return;
    }
    for (bool done = false; !done;) {
        QsfIoStep s = qsf_io_step(t->io, r);
        done = qsf_io_take(t->io, r, &s, t->fn(t->io, r, &s));
    }
}

static void *thread_main(void *arg) {
    Threads *t = arg;
    for (;;) {
        take_on(t);
        pthread_mutex_lock(&t->lock);
        if (t->n == 0) break; /* stop; reads that were started are always finished */
        QsfIoRead *r = t->queue[t->first];
        t->first = (t->first + 1) % QSF_IO_DEPTH;
        t->n--;
        pthread_mutex_unlock(&t->lock);
        read_whole(t, r);
        pthread_mutex_lock(&t->lock);
        r->busy = false;
        pthread_cond_broadcast(&t->done);
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Blocks signals, which the thread that owns the terminal handles, except those of a fault. */
static int start_threads(Threads *t) {
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
    pthread_attr_t attr;
    sigset_t set, old;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&set, faults[i]);
    size_t least = (size_t)PTHREAD_STACK_MIN, stack = QSF_IO_THREAD_STACK * STACK_FACTOR;
    pthread_attr_setstacksize(&attr, stack > least ? stack : least);
    pthread_sigmask(SIG_SETMASK, &set, &old);
    while (rc == 0 && t->n_threads < QSF_IO_THREADS) {
        rc = pthread_create(&t->thread[t->n_threads], &attr, thread_main, t);
        if (rc == 0) t->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return t->n_threads > 0 ? 0 : rc; /* fewer threads are enough */
}

int qsf_io_threads_open(QsfIo *io, QsfIoStepFn fn, const char **why) {
    QsfErr err = { 0 };
    Threads *t = calloc(1, sizeof *t);
    *why = qsf_io_no_memory;
    if (t == NULL) return QSF_E_RUNTIME;
    if (qsf_ledger_reserve(io->o.ledger, QSF_MEM_STACKS, QSF_IO_THREADS * QSF_IO_THREAD_STACK, "I/O threads",
                           &err)) {
        *why = "no budget for its threads";
        free(t);
        return QSF_E_BUDGET;
    }
    t->io = io;
    t->fn = fn;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->done, NULL);
    io->threads = t;
    int rc = start_threads(t);
    if (rc == 0) return QSF_OK;
    *why = strerror(rc);
    qsf_io_threads_close(io);
    return QSF_E_RUNTIME;
}

void qsf_io_threads_close(QsfIo *io) {
    Threads *t = io->threads;
    if (t == NULL) return;
    for (uint32_t i = 0; i < t->n_threads; i++) post(t);
    for (uint32_t i = 0; i < t->n_threads; i++) pthread_join(t->thread[i], NULL);
    qsf_ledger_release(io->o.ledger, QSF_MEM_STACKS, QSF_IO_THREADS * QSF_IO_THREAD_STACK);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t);
    io->threads = NULL;
}

void qsf_io_threads_start(QsfIo *io, QsfIoRead *r) {
    Threads *t = io->threads;
    pthread_mutex_lock(&t->lock);
    t->queue[(t->first + t->n++) % QSF_IO_DEPTH] = r;
    pthread_mutex_unlock(&t->lock);
    post(t);
}

void qsf_io_threads_wait(QsfIo *io, QsfIoRead *r) {
    Threads *t = io->threads;
    pthread_mutex_lock(&t->lock);
    while (r->busy) pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

bool qsf_io_threads_done(QsfIo *io, QsfIoRead *r) {
    Threads *t = io->threads;
    pthread_mutex_lock(&t->lock);
    const bool busy = r->busy;
    pthread_mutex_unlock(&t->lock);
    return !busy;
}

static int open_computed(QsfIo *io, const char **why) {
    return io->threads != NULL ? QSF_OK
                               : qsf_io_threads_open(io, NULL, why); /* a back end may have opened them */
}

const QsfIoBackend qsf_io_computed = {
    .kind = QSF_IO_N,
    .name = "computed",
    .open = open_computed,
    .close = qsf_io_threads_close,
    .start = qsf_io_threads_start,
    .wait = qsf_io_threads_wait,
    .done = qsf_io_threads_done,
};

/* --- the pread back end, which works everywhere --- */

static int64_t read_step(QsfIo *io, const QsfIoRead *r, const QsfIoStep *s) {
    const QsfFile *f = io->file[r->file].f;
    if (s->fd == f->fd) return qsf_file_read_some(f, s->dst, (size_t)s->len, s->off);
    const ssize_t n = pread(s->fd, s->dst, (size_t)s->len, (off_t)s->off); /* past the page cache */
    return n < 0 ? -errno : n;
}

static int open_pread(QsfIo *io, const char **why) { return qsf_io_threads_open(io, read_step, why); }

const QsfIoBackend qsf_io_pread = {
    .kind = QSF_IO_PREAD,
    .name = "pread",
    .open = open_pread,
    .close = qsf_io_threads_close,
    .start = qsf_io_threads_start,
    .wait = qsf_io_threads_wait,
    .done = qsf_io_threads_done,
};
