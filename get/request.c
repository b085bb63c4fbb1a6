/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/request.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "get/http.h"
#include "qsf_request.h"
#include "src/base/frames.h"
#include "src/cli/signals.h"

#define REQUEST_MAX   ((size_t)256 << 20) /* bytes of a request */
#define PIECE         ((size_t)64 << 10)
#define STALL_DEFAULT 600
#define WAIT_STEP     50 /* ms */

typedef struct Request {
    GetRequest http;
    char *url, *socket, *key;
    long delay_ms;
} Request;

typedef struct Reply {
    int out;
    bool head; /* was written */
    bool lost; /* nothing reads */
} Reply;

/* ---- the request */

static char *text_of(const QsfPipeFrame *f) {
    return memchr(f->body, '\0', f->len) ? NULL : strndup(f->body, f->len);
}

/* A number above 0; 0 = it is none. */
static long number_of(const QsfPipeFrame *f) {
    char digits[16] = "";
    memcpy(digits, f->body, f->len < sizeof digits ? f->len : sizeof digits - 1);
    const long n = strtol(digits, NULL, 10);
    return n > 0 ? n : 0;
}

static bool take_frame(Request *r, const QsfPipeFrame *f) {
    switch (f->kind) {
    case QSF_REQUEST_URL: return !r->url && (r->url = text_of(f)) != NULL;
    case QSF_REQUEST_SOCKET: return !r->socket && (r->socket = text_of(f)) != NULL;
    case QSF_REQUEST_KEY: return !r->key && (r->key = text_of(f)) != NULL;
    case QSF_REQUEST_BODY:
        r->http.body = f->body;
        r->http.len = f->len;
        return true;
    case QSF_REQUEST_STALL: return (r->http.stall_seconds = number_of(f)) > 0;
    case QSF_REQUEST_DELAY: return (r->delay_ms = number_of(f)) > 0;
    default: return false;
    }
}

/* Everything up to the end of the input. */
static bool read_all(int in, QsfPipeFrames *f) {
    char piece[PIECE];
    for (;;) {
        const ssize_t n = read(in, piece, sizeof piece);
        if (n < 0 && errno == EINTR && !atomic_load(&qsf_signal_cancel)) continue;
        if (n < 0) return false;
        if (n == 0) return true;
        qsf_frames_add(f, piece, (size_t)n);
        if (!qsf_strbuf_ok(&f->bytes) || f->bytes.len > REQUEST_MAX) return false;
    }
}

static bool read_request(int in, QsfPipeFrames *frames, Request *r) {
    QsfPipeFrame f;
    QsfFrameResult got = QSF_FRAME_NONE;
    r->http.stall_seconds = STALL_DEFAULT;
    if (!read_all(in, frames)) return false;
    while ((got = qsf_frames_next(frames, &f)) == QSF_FRAME_ONE)
        if (!take_frame(r, &f)) return false;
    r->http.url = r->url;
    r->http.socket = r->socket;
    return got == QSF_FRAME_NONE && frames->at == frames->bytes.len && r->url;
}

/* ---- the reply */

static bool write_all(int out, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t n = write(out, bytes, len);
        if (n < 0 && errno == EINTR && !atomic_load(&qsf_signal_cancel)) continue;
        if (n <= 0) return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool put(Reply *r, char kind, const char *body, size_t len) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_frame_put(&b, kind, body, len);
    if (!qsf_strbuf_ok(&b) || !write_all(r->out, b.data, b.len)) r->lost = true;
    qsf_strbuf_free(&b);
    return !r->lost;
}

static bool put_head(Reply *r, const GetReply *reply) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (r->head) return true;
    r->head = true;
    qsf_strbuf_addf(&b, "%ld\n%s\n%.0f\n%s\n%s\n", reply->status, reply->type, reply->retry_after,
                    reply->location, reply->server);
    const bool ok = qsf_strbuf_ok(&b) && put(r, QSF_REPLY_HEAD, b.data, b.len);
    qsf_strbuf_free(&b);
    return ok;
}

static bool on_bytes(void *arg, const GetReply *reply, const void *bytes, size_t len) {
    Reply *r = arg;
    return put_head(r, reply) && put(r, QSF_REPLY_DATA, bytes, len);
}

/* The program that asked is gone: the request is stopped. */
static void on_idle(void *arg) {
    const Reply *r = arg;
    struct pollfd p = { .fd = r->out };
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLNVAL))) atomic_store(&qsf_signal_cancel, SIGTERM);
}

/* false: the program that asked is gone, or the wait was stopped. */
static bool wait_first(Reply *r, long ms) {
    for (; ms > 0 && !atomic_load(&qsf_signal_cancel); ms -= WAIT_STEP) {
        (void)poll(NULL, 0, (int)(ms < WAIT_STEP ? ms : WAIT_STEP));
        on_idle(r);
    }
    return !atomic_load(&qsf_signal_cancel);
}

/* The program that asked knows the URL. */
static const char *without_url(const char *message, const char *url) {
    const size_t n = strlen(url);
    const bool begins = strncmp(message, url, n) == 0 && strncmp(message + n, ": ", 2) == 0;
    return begins ? message + n + 2 : message;
}

static int send_request(const Request *q, Reply *r) {
    QsfErr err = { 0 };
    GetReply reply = { 0 };
    if (!wait_first(r, q->delay_ms)) return QSF_E_INTERRUPTED;
    GetHttp *h = get_http_new(q->key, &err);
    if (h) {
        get_http_on_idle(h, on_idle, r);
        if (get_http_request(h, &q->http, on_bytes, r, &reply, &err) == QSF_OK) (void)put_head(r, &reply);
        get_http_free(h);
    }
    if (err.code == QSF_E_INTERRUPTED) return QSF_E_INTERRUPTED;
    const char *why = without_url(err.msg, q->url);
    return put(r, QSF_REPLY_END, why, strlen(why)) ? QSF_OK : QSF_E_RUNTIME;
}

int get_request_run(int in, int out) {
    QsfPipeFrames frames = { .max = REQUEST_MAX };
    Request q = { 0 };
    Reply r = { .out = out };
    static const char broken[] = "qsf-get: the request is damaged";
    int rc = QSF_E_USAGE;
    if (read_request(in, &frames, &q))
        rc = send_request(&q, &r);
    else
        (void)put(&r, QSF_REPLY_END, broken, sizeof broken - 1);
    free(q.url);
    free(q.socket);
    free(q.key);
    qsf_frames_free(&frames);
    return rc;
}
