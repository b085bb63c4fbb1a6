/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks and copies requests: implements request.h. */
#include "src/engine/request.h"

#include <stdlib.h>
#include <string.h>

static bool message_ok(const QSFMessage *m) {
    return m->role != NULL && (m->content != NULL || m->len == 0) &&
           (m->reasoning != NULL || m->reasoning_len == 0) && (m->exact != NULL || m->exact_len == 0);
}

bool qsf_request_ok(const QSFRequest *r) {
    if (r == NULL || (r->messages == NULL && r->n_messages > 0) || (r->stop == NULL && r->n_stop > 0))
        return false;
    for (size_t i = 0; i < r->n_messages; i++)
        if (!message_ok(&r->messages[i])) return false;
    for (size_t i = 0; i < r->n_stop; i++)
        if (r->stop[i] == NULL) return false;
    return true;
}

static size_t block_bytes(const QSFRequest *r) {
    size_t n = sizeof(QsfRequestCopy) + r->n_messages * sizeof(QsfMsg) + r->n_stop * sizeof(char *);
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        n += strlen(m->role) + 1 + m->len + 1 + m->reasoning_len + 1 + m->exact_len + 1;
    }
    for (size_t i = 0; i < r->n_stop; i++) n += strlen(r->stop[i]) + 1;
    return n + (r->snapshot != NULL ? strlen(r->snapshot) + 1 : 0);
}

/* Copies len bytes and a NUL to *at and advances it. */
static const char *put(char **at, const char *s, size_t len) {
    char *dst = *at;
    if (len > 0) memcpy(dst, s, len);
    dst[len] = '\0';
    *at = dst + len + 1;
    return dst;
}

size_t qsf_request_text_bytes(const QSFRequest *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_messages; i++)
        n += r->messages[i].len + r->messages[i].reasoning_len + r->messages[i].exact_len;
    return n;
}

static QsfRequestCopy *copy(const QSFRequest *r) {
    QsfRequestCopy *c = malloc(block_bytes(r));
    if (c == NULL) return NULL;
    *c = (QsfRequestCopy){ .n_messages = r->n_messages,
                           .n_stop = r->n_stop,
                           .continue_last = r->continue_last,
                           .max_tokens = r->max_tokens,
                           .snapshot_limit = r->snapshot_limit };
    c->text_bytes = qsf_request_text_bytes(r);
    c->messages = (QsfMsg *)(c + 1);
    c->stop = (const char **)(c->messages + r->n_messages);
    char *at = (char *)(c->stop + r->n_stop);
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        const char *role = put(&at, m->role, strlen(m->role));
        c->messages[i] = (QsfMsg){
            .role = role, .len = m->len, .reasoning_len = m->reasoning_len, .exact_len = m->exact_len
        };
        c->messages[i].content = put(&at, m->content, m->len);
        c->messages[i].reasoning = put(&at, m->reasoning, m->reasoning_len);
        c->messages[i].exact = put(&at, m->exact, m->exact_len);
    }
    for (size_t i = 0; i < r->n_stop; i++) c->stop[i] = put(&at, r->stop[i], strlen(r->stop[i]));
    if (r->snapshot != NULL) c->snapshot = put(&at, r->snapshot, strlen(r->snapshot));
    return c;
}

QsfRequestCopy *qsf_request_copy(const QSFRequest *r, uint64_t refused) {
    QSFRequest small = *r;
    if (refused > 0) small.n_messages = 0;
    QsfRequestCopy *c = copy(&small);
    if (c != NULL) c->refused = refused;
    if (c != NULL && refused > 0) c->text_bytes = qsf_request_text_bytes(r);
    return c;
}

unsigned qsf_request_chat_flags(const QsfRequestCopy *r, const QSFParams *p) {
    return (r->continue_last ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE) |
           (p->allow_special ? QSF_CHAT_ALLOW_SPECIAL : 0) | QSF_CHAT_REASON * p->reasoning;
}
