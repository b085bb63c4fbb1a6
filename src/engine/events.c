/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records, logs and the wake-up: implements events.h. */
#include "src/engine/events.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/platform.h"

#define POLL_NS 20000000 /* setting cancel does not signal q->space, so a waiting engine polls it */

/* A record: the event, its text and a NUL, padded to the event's alignment. */
static size_t record_bytes(size_t text_len) {
    size_t n = sizeof(QSFEvent) + text_len + 1, a = alignof(QSFEvent);
    return (n + a - 1) / a * a;
}

int qsf_events_init(QsfEvents *q, const atomic_int *cancel, QsfErr *err) {
    memset(q, 0, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    qsf_os_cond_init(&q->space);
    q->cancel = cancel;
    q->wake = (QsfWake){ { -1, -1 } };
    q->fill.bytes = malloc(QSF_EVENTS_HARD);
    q->drain.bytes = malloc(QSF_EVENTS_HARD);
    if (q->fill.bytes == NULL || q->drain.bytes == NULL) {
        qsf_events_free(q);
        return qsf_err_memory(err, "the event queue");
    }
    int rc = qsf_wake_open(&q->wake, err);
    if (rc != QSF_OK) qsf_events_free(q);
    return rc;
}

void qsf_events_free(QsfEvents *q) {
    if (q->cancel == NULL) return;
    qsf_wake_close(&q->wake);
    free(q->fill.bytes);
    free(q->drain.bytes);
    pthread_cond_destroy(&q->space);
    pthread_mutex_destroy(&q->lock);
    memset(q, 0, sizeof *q);
}

static void wait_for_space(QsfEvents *q, size_t need) {
    while (q->fill.len + need > QSF_EVENTS_SOFT && q->fill.len > 0 && atomic_load(q->cancel) == 0)
        qsf_os_wait_for(&q->space, &q->lock, POLL_NS);
}

/* Grows the newest record when it is text of the same kind and request. */
static bool merge(QsfEventLog *l, const QSFEvent *e, size_t len) {
    if ((e->type != QSF_EVENT_TEXT && e->type != QSF_EVENT_REASONING) || l->len == 0) return false;
    QSFEvent *last = (QSFEvent *)(void *)(l->bytes + l->last);
    if (last->type != e->type || last->request != e->request) return false;
    size_t total = last->text_len + len;
    if (l->last + record_bytes(total) > QSF_EVENTS_HARD) return false;
    char *text = (char *)(last + 1);
    memcpy(text + last->text_len, e->text, len);
    text[total] = '\0';
    last->text_len = total;
    last->tokens += e->tokens;
    l->len = l->last + record_bytes(total);
    return true;
}

/* After a cancellation a full log may lack space for a second record of 72 KB; then the text is truncated,
 * because the event that ends the request must not be lost. */
static void append(QsfEventLog *l, const QSFEvent *e, size_t len) {
    size_t space = QSF_EVENTS_HARD - l->len;
    if (record_bytes(len) > space) {
        if (record_bytes(0) > space) return;
        len = space - record_bytes(0);
    }
    QSFEvent *r = (QSFEvent *)(void *)(l->bytes + l->len);
    *r = *e;
    r->text_len = len;
    char *text = (char *)(r + 1);
    if (len > 0) memcpy(text, e->text, len);
    text[len] = '\0';
    l->last = l->len;
    l->len += record_bytes(len);
}

void qsf_events_push(QsfEvents *q, const QSFEvent *e, atomic_bool *busy) {
    size_t len = e->text == NULL ? 0 : e->text_len;
    if (len > QSF_EVENT_TEXT_MAX) len = QSF_EVENT_TEXT_MAX;
    pthread_mutex_lock(&q->lock);
    wait_for_space(q, record_bytes(len));
    if (!merge(&q->fill, e, len)) append(&q->fill, e, len);
    if (busy != NULL) atomic_store(busy, false);
    bool wake = !q->signalled;
    q->signalled = true;
    if (wake) qsf_wake_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

/* Fetches what the engine has written. The pipe is emptied only when no events are left, so that an owner
 * that reads one event and then polls is woken again. */
static bool refill(QsfEvents *q) {
    pthread_mutex_lock(&q->lock);
    bool any = q->fill.len > 0;
    if (any) {
        QsfEventLog empty = q->drain;
        q->drain = q->fill;
        q->fill = empty;
        q->fill.len = q->fill.last = 0;
        q->at = 0;
        pthread_cond_signal(&q->space);
    } else if (q->signalled) {
        qsf_wake_clear(&q->wake);
        q->signalled = false;
    }
    pthread_mutex_unlock(&q->lock);
    return any;
}

bool qsf_events_next(QsfEvents *q, QSFEvent *e) {
    if (q->at >= q->drain.len && !refill(q)) return false;
    const QSFEvent *r = (const QSFEvent *)(const void *)(q->drain.bytes + q->at);
    *e = *r;
    e->text = (const char *)(r + 1);
    q->at += record_bytes(r->text_len);
    return true;
}

bool qsf_events_full(QsfEvents *q) {
    pthread_mutex_lock(&q->lock);
    bool full = q->fill.len >= QSF_EVENTS_SOFT;
    pthread_mutex_unlock(&q->lock);
    return full;
}
