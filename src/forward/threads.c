/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/threads.h"

#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/forward/forward_impl.h"

#define DECODE_COLS   4         /* passes of up to this many columns read weights as single tokens do */
#define MEASURED_COLS 16        /* shorter chunks say little about prompts */
#define DECODE_TURN   50000000u /* ns; many times as long as the kernel lets another program run at a time */
#define PREFILL_TURN  5000000u
#define QUOTA_TURN    250000000u   /* a quota is enforced over periods of 100 ms */
#define PREFILL_AGAIN 30000000000u /* between two races of prompts */

static void start(QsfThreads *t, int most) {
    QsfWidth w[QSF_WIDTHS];
    int decode, prefill;
    qsf_cpus_read(&t->cpus, "", NULL);
    if (t->cpus.limit > most) t->cpus.limit = most;
    const int n = qsf_cpus_widths(&t->cpus, w, &decode, &prefill);
    const bool quota = t->cpus.quota > 0 && t->cpus.quota < t->cpus.cpus;
    qsf_race_init(&t->decode, w, n, decode, true, quota ? QUOTA_TURN : DECODE_TURN);
    /* Prompts are limited by computing: fewer than the fastest cores cannot be faster, whatever else runs on
     * them, because threads take rows as they are ready for them. */
    qsf_race_init(&t->prefill, w + decode, n - decode, prefill - decode, false,
                  quota ? QUOTA_TURN : PREFILL_TURN);
}

/* Says what a race found, or that none has ended. */
static void explain(const QsfRace *r, char *dst, size_t cap) {
    size_t n = (size_t)snprintf(dst, cap, "%s",
                                r->n == 1      ? "nothing to choose from"
                                : r->races > 0 ? "measured: "
                                               : "not measured yet: ");
    if (r->races > 0) qsf_race_text(r, dst + n, cap - n);
    for (int i = 0; r->races == 0 && r->n > 1 && i < r->n && n < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%d (%s)", i > 0 ? ", " : "", r->runner[i].width.threads,
                              r->runner[i].width.what);
}

/* Publishes the numbers in use and what is known about them. */
static void note(QsfThreads *t) {
    const QsfRace *race[] = { &t->decode, &t->prefill };
    for (unsigned i = 0; i < 2; i++) {
        const int n = t->measured ? race[i]->runner[race[i]->best].width.threads : t->most;
        atomic_store_explicit(&t->now[i], (unsigned)n, memory_order_relaxed);
    }
    if (!t->measured) return;
    pthread_mutex_lock(&t->lock);
    qsf_cpus_text(&t->cpus, t->machine, sizeof t->machine);
    for (unsigned i = 0; i < 2; i++) explain(race[i], t->text[i], sizeof t->text[i]);
    pthread_mutex_unlock(&t->lock);
}

void qsf_threads_plan(QsfForward *f, const QsfPlan *p) {
    QsfThreads *t = &f->threads;
    const int n = qsf_pool_threads(f->pool);
    if (p->threads_auto && (!t->measured || t->most != n)) start(t, n);
    t->measured = p->threads_auto;
    t->most = n;
    atomic_store_explicit(&t->automatic, t->measured, memory_order_relaxed);
    qsf_pool_use(f->pool, n);
    note(t);
}

void qsf_threads_open(QsfForward *f, const QsfPlan *p) {
    pthread_mutex_init(&f->threads.lock, NULL);
    qsf_threads_plan(f, p);
}

void qsf_threads_close(QsfForward *f) { pthread_mutex_destroy(&f->threads.lock); }

/* Is nothing else done at the same time that would be taken for the work of a number of threads? */
static bool is_fair(const QsfForward *f) {
    return f->tap == NULL && f->profile == NULL && !f->reduction.exiting &&
           qsf_counted(&f->n.io.pin_done) >= qsf_counted(&f->n.io.pin_total);
}

void qsf_threads_begin_pass(QsfForward *f, uint32_t n) {
    QsfThreads *t = &f->threads;
    t->cols = n;
    t->pass_ns = 0;
    if (!t->measured) return;
    if (n <= DECODE_COLS) {
        qsf_pool_use(f->pool, qsf_race_threads(&t->decode));
        return;
    }
    /* Prompts come now and then: what was measured for the last one may be out of date. */
    const uint64_t now = qsf_now_ns();
    if (n >= MEASURED_COLS && t->prefill.warm && !qsf_race_runs(&t->prefill) && is_fair(f) &&
        now - t->raced_ns > PREFILL_AGAIN) {
        qsf_race_start(&t->prefill);
        t->raced_ns = now;
    }
    qsf_pool_use(f->pool, qsf_race_threads(&t->prefill));
}

void qsf_threads_end_block(QsfForward *f, uint32_t block, uint64_t ns) {
    QsfThreads *t = &f->threads;
    t->pass_ns += ns;
    if (!t->measured || t->cols == 0) return;
    if (t->cols <= DECODE_COLS) {
        if (t->cols > 1 || !qsf_race_is_lost(&t->decode, 1, t->pass_ns)) return;
        qsf_race_give_up(&t->decode, 1, t->pass_ns);
        t->cols = 0; /* the rest of the token is not measured */
        qsf_pool_use(f->pool, t->decode.runner[t->decode.best].width.threads);
    } else if (t->cols >= MEASURED_COLS && block < f->model->hp.n_layers && is_fair(f)) {
        const uint32_t ended = t->prefill.races;
        qsf_race_did(&t->prefill, (double)qsf_counted(&f->n.bytes[block].weight) * t->cols, ns);
        if (t->prefill.races != ended) note(t);
        qsf_pool_use(f->pool, qsf_race_threads(&t->prefill));
    }
}

void qsf_threads_end_pass(QsfForward *f, bool ok) {
    QsfThreads *t = &f->threads;
    if (ok && t->measured && t->cols == 1 && is_fair(f)) {
        const uint32_t ended = t->decode.races;
        qsf_race_did(&t->decode, 1, t->pass_ns);
        if (t->decode.races != ended) note(t);
    }
    t->cols = 0;
}

void qsf_forward_threads_text(const QsfForward *f, QsfStrbuf *b) {
    static const char *const names[] = { "tokens", "prompts" };
    QsfThreads *t = (QsfThreads *)&f->threads; /* for the lock */
    char text[QSF_THREADS_TEXT];
    if (!atomic_load_explicit(&t->automatic, memory_order_relaxed)) {
        qsf_strbuf_addf(b, "threads: %u, as set\n", atomic_load_explicit(&t->now[0], memory_order_relaxed));
        return;
    }
    for (unsigned kind = 0; kind < 2; kind++) {
        pthread_mutex_lock(&t->lock);
        if (kind == 0) qsf_strbuf_addf(b, "threads: %s\n", t->machine);
        snprintf(text, sizeof text, "%s", t->text[kind]);
        pthread_mutex_unlock(&t->lock);
        qsf_strbuf_addf(b, "threads: %u for %s; %s\n",
                        atomic_load_explicit(&t->now[kind], memory_order_relaxed), names[kind], text);
    }
}
