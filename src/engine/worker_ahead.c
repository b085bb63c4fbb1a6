/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluating a message while it is typed: all but its last word, as long as nothing else is to be done. The
 * tokens are those that the prompt of the typed text begins with, so the answer cannot tell; what was
 * evaluated and is not sent is cut off again like any other end of a conversation. */
#include <stdlib.h>
#include <string.h>

#include "src/engine/worker_impl.h"

#define PIECE 32u /* tokens of an evaluation: what is lost when it is stopped */
#define LEAST 16u /* tokens for which it is worth the effort */
#define WORD_MAX \
    64u /* bytes of a last word; of a longer one, such as text without spaces, half of it stays */

/* ---- owner ---- */

void qsf_worker_stop_ahead(QSFWorker *w, bool all) {
    if (w->aheading) atomic_fetch_or(&w->cancel, QSF_CANCEL_AHEAD);
    if (!all) return;
    free(w->ahead);
    w->ahead = NULL;
}

/* ---- engine thread ---- */

QsfRequestCopy *qsf_worker_begin_ahead(QSFWorker *w) {
    QsfRequestCopy *r = w->ahead;
    w->ahead = NULL;
    w->aheading = true;
    if (!w->quit) atomic_fetch_and(&w->cancel, ~QSF_CANCEL_REQUEST); /* it was for an earlier request */
    return r;
}

/* The bytes of a message without its last word. */
static size_t without_last_word(const char *text, size_t len) {
    size_t end = len;
    while (end > 0 && (unsigned char)text[end - 1] <= ' ') end--;
    size_t at = end;
    while (at > 0 && end - at < WORD_MAX && (unsigned char)text[at - 1] > ' ') at--;
    if (end - at == WORD_MAX) {
        at += WORD_MAX / 2;
        while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
        return at;
    }
    while (at > 0 && (unsigned char)text[at - 1] <= ' ') at--;
    return at;
}

/* Returns how many tokens of the prompt `all` do not depend on the last word of the message. */
static size_t settled(QSFWorker *w, QsfRequestCopy *r, const QsfIds *all, QsfErr *err) {
    QsfMsg *last = &r->messages[r->n_messages - 1];
    QsfIds part = { 0 };
    QsfThinkPrompt where;
    size_t n = 0;
    last->len = without_last_word(last->content, last->len);
    if (qsf_worker_encode(w, r, &part, &where, err) == QSF_OK)
        while (n < part.n && n + 1 < all->n && part.data[n] == all->data[n]) n++;
    qsf_ids_free(&part);
    return n;
}

typedef struct Progress {
    QSFWorker *w;
    uint32_t total;
} Progress;

static void on_progress(void *arg, uint32_t n) {
    const Progress *p = arg;
    QSFEvent e = { .type = QSF_EVENT_AHEAD, .code = 1 };
    qsf_live_stats_ahead(&p->w->stats, n, p->total);
    qsf_events_push(&p->w->events, &e, NULL);
}

/* A model that streams reads its weights once for each evaluation: only whole batches save one. */
static void evaluate(QSFWorker *w, const QsfIds *all, size_t n, QsfErr *err) {
    const QsfPlan *plan = &w->rt.plan;
    const bool streams = plan->streamed_bytes > 0;
    Progress p = { w, (uint32_t)all->n };
    const QsfAhead o = { .piece = streams || plan->batch < PIECE ? plan->batch : PIECE,
                         .least = streams ? plan->batch : LEAST,
                         .progress = on_progress,
                         .arg = &p };
    uint32_t kept;
    (void)qsf_timeline_ahead(&w->timeline, all->data, n, &o, &kept, err);
    if (kept < w->ahead_from) w->ahead_from = kept;
}

static void end_ahead(QSFWorker *w) {
    QSFEvent e = { .type = QSF_EVENT_AHEAD };
    pthread_mutex_lock(&w->lock);
    w->aheading = false;
    atomic_fetch_and(&w->cancel, ~QSF_CANCEL_AHEAD);
    pthread_mutex_unlock(&w->lock);
    qsf_events_push(&w->events, &e, NULL);
}

/* A snapshot that is still to be saved has only what was sent. */
void qsf_worker_do_ahead(QSFWorker *w, QsfRequestCopy *r) {
    QsfErr err = { 0 };
    QsfIds all = { 0 };
    QsfThinkPrompt where;
    const bool ready = w->loaded && w->stale == NULL && !w->snap.due && qsf_worker_publish_ahead(w);
    if (ready && qsf_worker_encode(w, r, &all, &where, &err) == QSF_OK &&
        all.n <= qsf_forward_ctx(w->rt.fwd)) {
        const size_t n = settled(w, r, &all, &err);
        qsf_worker_set_lead(w, r, &all);
        qsf_worker_snapshot_load(w, r, &all);
        evaluate(w, &all, n, &err);
    }
    qsf_ids_free(&all);
    end_ahead(w);
}
