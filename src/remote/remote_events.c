/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events of a remote engine. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/remote/remote_impl.h"

#define EVENTS_KEPT 64u /* those that were taken are removed when they reach this number */

static void drop_taken(QsfRemoteEvents *q) {
    if (q->first < EVENTS_KEPT && q->first < q->n) return;
    memmove(q->items, q->items + q->first, (q->n - q->first) * sizeof *q->items);
    q->n -= q->first;
    q->first = 0;
}

static QsfRemoteEvent *add(QsfRemoteEvents *q) {
    if (q->items) drop_taken(q);
    if (q->n == q->cap) {
        const size_t cap = q->cap ? 2 * q->cap : 32;
        QsfRemoteEvent *more = realloc(q->items, cap * sizeof *more);
        if (!more) {
            q->lost = true;
            return NULL;
        }
        q->items = more;
        q->cap = cap;
    }
    QsfRemoteEvent *e = &q->items[q->n++];
    *e = (QsfRemoteEvent){ .e.type = QSF_EVENT_NONE };
    return e;
}

void qsf_remote_push_event(QSFRemote *r, const QSFEvent *e, const char *text, size_t len) {
    QsfRemoteEvent *to = add(&r->events);
    if (!to) return;
    to->e = *e;
    to->e.request = r->request;
    qsf_strbuf_add(&to->data, text, len);
}

void qsf_remote_push(QSFRemote *r, QSFEventType type, const char *text, size_t len) {
    QsfRemoteEvents *q = &r->events;
    QsfRemoteEvent *last = q->n > q->first ? &q->items[q->n - 1] : NULL;
    if (last && last->e.type == type && last->e.request == r->request &&
        (type == QSF_EVENT_TEXT || type == QSF_EVENT_REASONING)) {
        qsf_strbuf_add(&last->data, text, len);
        return;
    }
    qsf_remote_push_event(r, &(QSFEvent){ .type = type }, text, len);
}

void qsf_remote_note(QSFRemote *r, const char *fmt, ...) {
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    qsf_remote_push(r, QSF_EVENT_NOTICE, text, qsf_utf8_clean(text, len, false));
}

void qsf_remote_fail(QSFRemote *r, const QsfErr *err) {
    const QSFEvent e = { .type = QSF_EVENT_ERROR, .code = err->code };
    qsf_remote_stop(r);
    r->job = QSF_JOB_NONE;
    qsf_remote_push_event(r, &e, err->msg, strlen(err->msg));
}

bool qsf_remote_take(QSFRemote *r, QSFEvent *e) {
    QsfRemoteEvents *q = &r->events;
    if (q->first == q->n) return false;
    qsf_strbuf_free(&r->current.data);
    r->current = q->items[q->first++];
    r->current.e.text = qsf_strbuf_str(&r->current.data);
    r->current.e.text_len = r->current.data.len;
    *e = r->current.e;
    return true;
}

void qsf_remote_events_free(QsfRemoteEvents *q) {
    for (size_t i = q->first; i < q->n; i++) qsf_strbuf_free(&q->items[i].data);
    free(q->items);
    *q = (QsfRemoteEvents){ 0 };
}
