/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HTTP: the only file that knows libmicrohttpd. One thread of that library reads requests and sends answers;
 * a connection whose answer is not there yet is suspended, and costs nothing but its memory. */
#include <microhttpd.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "serve/control.h"
#include "serve/responses.h"
#include "serve/route.h"
#include "serve/server.h"
#include "src/base/clock.h"

/* What the client of a connection does. */
typedef enum Phase {
    PHASE_REQUEST, /* it sends a request, or nothing */
    PHASE_WAIT,    /* it waits for an answer */
    PHASE_ANSWER   /* it is sent an answer */
} Phase;

/* A connection, under the lock of the server. */
typedef struct Conn Conn;
struct Conn {
    Conn *prev, *next;
    int fd;
    Phase phase;
    uint64_t since_ns;   /* of the phase */
    const ServeJob *job; /* whose answer it is, or NULL */
};

/* A request, from its headers to the end of its answer. */
typedef struct Exchange {
    Conn *conn;
    ServeRoute route;
    ServeError error; /* why it is refused */
    char *body;       /* (len) of cap bytes, charged to ServeMemory */
    size_t len, cap;
    uint64_t skipped; /* bytes of a body that is refused */
    bool skips;    /* it is read to its end before the error is sent: clients read when they have sent all */
    ServeJob *job; /* a reference */
    char *origin;  /* a page that may ask, or NULL */
} Exchange;

struct ServeHttp {
    ServeServer *s;
    struct MHD_Daemon *daemon;
    Conn *conns;
    uint64_t rng;
};

#define SKIP_MOST      (64u << 20) /* bytes of a refused body that are read; then the connection is closed */
#define SENDING_LIMITS 20u         /* times the limit of a client: for all of an answer that has ended */

static void lock(ServeHttp *h) { pthread_mutex_lock(&h->s->lock); }
static void unlock(ServeHttp *h) { pthread_mutex_unlock(&h->s->lock); }

static void set_phase(ServeHttp *h, Conn *c, Phase phase) {
    lock(h);
    c->phase = phase;
    c->since_ns = qsf_now_ns();
    unlock(h);
}

/* ---- responses ---- */

static void add_header(struct MHD_Response *r, const char *name, const char *value) {
    (void)MHD_add_response_header(r, name, value);
}

/* What every response has. */
static void add_headers(const Exchange *x, struct MHD_Response *r, const char *type, unsigned status) {
    if (type != NULL) add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    add_header(r, "X-Content-Type-Options", "nosniff");
    if (x->origin != NULL) add_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, x->origin);
    if (x->origin != NULL) add_header(r, MHD_HTTP_HEADER_VARY, "Origin");
    if (status == 401) add_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == 405) add_header(r, MHD_HTTP_HEADER_ALLOW, x->route.allow);
    if (status == 429 || status == 503) add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

static enum MHD_Result queue(ServeHttp *h, Exchange *x, struct MHD_Connection *c, unsigned status,
                             struct MHD_Response *r) {
    if (r == NULL) return MHD_NO;
    lock(h);
    h->s->counters.status[status]++;
    unlock(h);
    set_phase(h, x->conn, PHASE_ANSWER);
    const enum MHD_Result rc = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return rc;
}

/* A text that is complete; takes over b. */
static enum MHD_Result send_text(ServeHttp *h, Exchange *x, struct MHD_Connection *c, unsigned status,
                                 const char *type, QsfStrbuf *b) {
    size_t len = 0;
    char *text = qsf_strbuf_take(b, &len);
    struct MHD_Response *r = text != NULL ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE)
                                          : NULL;
    if (r != NULL) add_headers(x, r, type, status);
    if (r == NULL) free(text);
    return queue(h, x, c, status, r);
}

static enum MHD_Result send_error(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    serve_reply_error(&b, &x->error);
    return send_text(h, x, c, (unsigned)x->error.status, "application/json", &b);
}

static ssize_t read_stream(void *arg, uint64_t at, char *dst, size_t max) {
    ServeJob *job = arg;
    (void)at;
    pthread_mutex_lock(job->lock);
    long n = serve_job_read(job, dst, max);
    if (n == 0 && job->connection == NULL) n = -1;
    if (n == 0) job->asleep = true;
    if (n == 0) MHD_suspend_connection(job->connection);
    pthread_mutex_unlock(job->lock);
    return n >= 0 ? n : MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result send_stream(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, SERVE_BLOCK, read_stream,
                                                               x->job, NULL);
    if (r != NULL) add_headers(x, r, "text/event-stream", 200);
    return queue(h, x, c, 200, r);
}

/* Which headers a page may send; those that it asks for, since it may ask at all. */
static enum MHD_Result send_preflight(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    const char *headers = MHD_lookup_connection_value(c, MHD_HEADER_KIND,
                                                      MHD_HTTP_HEADER_ACCESS_CONTROL_REQUEST_HEADERS);
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r == NULL) return MHD_NO;
    add_headers(x, r, NULL, 204);
    add_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS");
    add_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
               headers != NULL ? headers : "Authorization, Content-Type");
    add_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
    return queue(h, x, c, 204, r);
}

static enum MHD_Result send_models(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    ServeModel m = h->s->model;
    QSFStats st;
    if (x->route.target == SERVE_MODEL && strcmp(x->route.rest, m.id) != 0) {
        serve_error_set(&x->error, 404, "model_not_found", "model", "the model '%.100s' does not exist",
                        x->route.rest);
        return send_error(h, x, c);
    }
    qsf_worker_stats(h->s->worker, &st);
    m.ctx = st.ctx_size;
    x->route.target == SERVE_MODEL ? serve_reply_model(&b, &m) : serve_reply_models(&b, &m);
    return send_text(h, x, c, 200, "application/json", &b);
}

static enum MHD_Result send_facts(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const bool health = x->route.target == SERVE_HEALTH;
    health ? serve_put_health(h->s, &b) : serve_put_metrics(h->s, &b);
    return send_text(h, x, c, 200, health ? "application/json" : "text/plain; version=0.0.4", &b);
}

/* ---- requests for answers ---- */

/* Under the lock: one of a connection that is asleep. */
void serve_http_wake(ServeJob *job) {
    if (!job->asleep || job->connection == NULL) return;
    job->asleep = false;
    MHD_resume_connection(job->connection);
}

static void drop_body(ServeHttp *h, Exchange *x) {
    lock(h);
    serve_memory_give(&h->s->memory, x->cap);
    unlock(h);
    free(x->body);
    x->body = NULL;
    x->len = x->cap = 0;
}

/* Keeps a part of the body, as far as it fits. */
static void take_body(ServeHttp *h, Exchange *x, const char *data, size_t n) {
    const size_t limit = (size_t)h->s->options->body_limit;
    size_t cap = x->cap < 4096 ? 4096 : x->cap;
    if (x->error.status != 0) return;
    while (cap < x->len + n + 1) cap *= 2;
    if (cap > limit + 1) cap = limit + 1;
    if (x->len + n > limit) {
        serve_error_set(&x->error, 413, "request_too_large", NULL,
                        "the request has more than %zu bytes; see --body-limit", limit);
        drop_body(h, x);
        return;
    }
    lock(h);
    const bool ok = cap <= x->cap || serve_memory_take(&h->s->memory, cap - x->cap);
    unlock(h);
    char *more = ok && cap > x->cap ? realloc(x->body, cap) : x->body;
    if (!ok || more == NULL) {
        if (ok) lock(h), serve_memory_give(&h->s->memory, cap - x->cap), unlock(h);
        serve_error_set(&x->error, 503, "server_busy", NULL,
                        "the server has no more memory for requests that wait");
        return;
    }
    x->body = more;
    x->cap = cap;
    memcpy(x->body + x->len, data, n);
    x->len += n;
    x->body[x->len] = '\0';
}

static bool is_model(const ServeServer *s, const char *name) {
    return name == NULL || *name == '\0' || strcmp(name, s->model.id) == 0 || strcmp(name, "default") == 0;
}

/* A job of the body, which it takes over. */
static ServeJob *make_job(ServeHttp *h, Exchange *x) {
    ServeServer *s = h->s;
    ServeRequest r;
    ServeJob *job = NULL;
    const bool responses = x->route.target == SERVE_RESPONSE;
    if (responses && !serve_responses_replace(&x->body, &x->len, &x->cap, &s->memory, &s->lock, &x->error))
        return NULL;
    bool ok = serve_request_parse(&r, responses || x->route.target == SERVE_CHAT,
                                  x->body != NULL ? x->body : (char[1]){ 0 }, x->len, &s->settings,
                                  &x->error);
    if (ok && !is_model(s, r.model))
        ok = serve_error_set(&x->error, 404, "model_not_found", "model",
                             "the model '%.100s' does not exist; this server has '%.100s'", r.model,
                             s->model.id);
    if (!ok && responses) serve_responses_rename(&x->error);
    lock(h);
    const uint64_t held = serve_request_held(&r);
    if (ok && !serve_memory_take(&s->memory, held))
        ok = serve_error_set(&x->error, 503, "server_busy", NULL,
                             "the server has no more memory for requests that wait");
    if (ok) job = serve_job_new(&r, x->body, x->cap + held, &s->memory);
    if (ok && job == NULL) serve_memory_give(&s->memory, held);
    unlock(h);
    if (job == NULL) {
        serve_error_set(&x->error, 500, NULL, NULL, "out of memory");
        serve_request_free(&r);
        return NULL;
    }
    x->body = NULL;
    x->len = x->cap = 0;
    return job;
}

/* Puts the request into the queue, and lets the connection sleep until there is an answer. */
static enum MHD_Result enqueue(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    ServeServer *s = h->s;
    ServeJob *job = make_job(h, x);
    if (job == NULL) return send_error(h, x, c);
    h->rng = h->rng * 0x5851f42d4c957f2du + 0x14057b7ef767814fu; /* Knuth, MMIX: only different, not secret */
    job->lock = &h->s->lock;
    serve_job_name(job, h->rng, h->s->model.id, x->route.target != SERVE_COMPLETION,
                   x->route.target == SERVE_RESPONSE);
    lock(h);
    x->job = job;
    job->connection = c;
    job->fd = x->conn->fd;
    const bool ok = !s->stopping && serve_enqueue(s, job);
    if (ok) {
        x->conn->phase = PHASE_WAIT;
        x->conn->job = job;
        job->asleep = true;
        MHD_suspend_connection(c);
    } else if (s->stopping) {
        serve_error_set(&x->error, 503, "stopping", NULL, "the server is stopping");
    } else {
        serve_error_set(&x->error, 429, "queue_full", NULL, "%u requests are already waiting; see --queue",
                        s->waiting);
    }
    if (!ok) job->state = SERVE_ENDED;
    unlock(h);
    return ok ? MHD_YES : send_error(h, x, c);
}

/* Ends the reasoning of the answer that is written. */
static enum MHD_Result control(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    ServeServer *s = h->s;
    QsfStrbuf b = QSF_STRBUF_INIT;
    uint64_t id = 0;
    const bool ok = serve_control_parse(x->body != NULL ? x->body : "", x->len, &id, &x->error);
    if (!ok) return send_error(h, x, c);
    lock(h);
    const bool found = s->running != NULL && s->running->head.chat && s->running->head.id == id;
    if (found) qsf_worker_answer_now(s->worker);
    unlock(h);
    serve_control_reply(&b, found);
    return send_text(h, x, c, 200, "application/json", &b);
}

/* It has woken: there is something to send. */
static enum MHD_Result answer(ServeHttp *h, Exchange *x, struct MHD_Connection *c) {
    ServeJob *job = x->job;
    QsfStrbuf b = QSF_STRBUF_INIT;
    lock(h);
    const bool gone = job->connection == NULL, ended = job->state == SERVE_ENDED;
    const bool failed = serve_job_failed(job);
    const bool stream = job->request.stream && !failed;
    const bool ready = stream ? serve_job_ready(job) : ended;
    if (failed) x->error = job->error;
    if (!gone && ready && !stream && !failed) serve_job_whole(job, &b);
    const unsigned status = ended && job->error.status != 0 ? (unsigned)job->error.status : 200;
    if (!gone && !ready) {
        job->asleep = true;
        MHD_suspend_connection(c);
    }
    unlock(h);
    if (gone) return MHD_NO;
    if (!ready) return MHD_YES;
    if (failed) return send_error(h, x, c);
    return stream ? send_stream(h, x, c) : send_text(h, x, c, status, "application/json", &b);
}

/* ---- libmicrohttpd calls ---- */

static enum MHD_Result add_request_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                          const char *value) {
    (void)kind;
    serve_headers_add(arg, name, value);
    return MHD_YES;
}

static Exchange *begin(ServeHttp *h, struct MHD_Connection *c, const char *method, const char *path) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    Exchange *x = calloc(1, sizeof *x);
    if (x == NULL || info == NULL || info->socket_context == NULL) {
        free(x);
        return NULL;
    }
    ServeHeaders headers = { 0 };
    char host[300];
    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, &add_request_header, &headers);
    x->conn = info->socket_context;
    path = serve_route_path(path, &headers, host, sizeof host);
    (void)serve_route(&x->route, method, path, &headers, &h->s->guard, h->s->options->body_limit, &x->error);
    x->skips = x->error.status != 0 && serve_headers_skippable(&headers, SKIP_MOST);
    if (headers.origin != NULL && serve_guard_origin(&h->s->guard, headers.origin))
        x->origin = strdup(headers.origin);
    return x;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *path, const char *method,
                              const char *version, const char *data, size_t *n, void **state) {
    ServeHttp *h = arg;
    Exchange *x = *state;
    (void)version;
    if (x == NULL) {
        *state = x = begin(h, c, method, path);
        if (x == NULL) return MHD_NO;
        return x->error.status != 0 && !x->skips ? send_error(h, x, c) : MHD_YES;
    }
    if (*n > 0) {
        if (x->route.has_body) take_body(h, x, data, *n);
        if (x->error.status != 0 || !x->route.has_body) x->skipped += *n;
        *n = 0;
        return x->skipped <= SKIP_MOST ? MHD_YES : MHD_NO;
    }
    if (x->job != NULL) return answer(h, x, c);
    if (x->error.status != 0) return send_error(h, x, c);
    switch (x->route.target) {
    case SERVE_CHAT:
    case SERVE_COMPLETION:
    case SERVE_RESPONSE: return enqueue(h, x, c);
    case SERVE_CONTROL: return control(h, x, c);
    case SERVE_MODEL:
    case SERVE_MODELS: return send_models(h, x, c);
    case SERVE_PREFLIGHT: return send_preflight(h, x, c);
    default: return send_facts(h, x, c);
    }
}

static void completed(void *arg, struct MHD_Connection *c, void **state,
                      enum MHD_RequestTerminationCode why) {
    ServeHttp *h = arg;
    Exchange *x = *state;
    (void)c, (void)why;
    if (x == NULL) return;
    drop_body(h, x);
    lock(h);
    if (x->job != NULL) {
        if (x->job->connection != NULL) serve_forget(h->s, x->job);
        serve_job_release(x->job);
    }
    x->conn->job = NULL;
    x->conn->phase = PHASE_REQUEST;
    x->conn->since_ns = qsf_now_ns();
    unlock(h);
    free(x->origin);
    free(x);
    *state = NULL;
}

static void connected(void *arg, struct MHD_Connection *c, void **context,
                      enum MHD_ConnectionNotificationCode what) {
    ServeHttp *h = arg;
    Conn *conn = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = conn = calloc(1, sizeof *conn);
        if (conn == NULL) return; /* its requests are refused */
        conn->fd = info != NULL ? info->connect_fd : -1;
        conn->since_ns = qsf_now_ns();
        lock(h);
        conn->next = h->conns;
        if (h->conns != NULL) h->conns->prev = conn;
        h->conns = conn;
        h->s->connections++;
        unlock(h);
    } else if (conn != NULL) {
        lock(h);
        *(conn->prev != NULL ? &conn->prev->next : &h->conns) = conn->next;
        if (conn->next != NULL) conn->next->prev = conn->prev;
        h->s->connections--;
        unlock(h);
        free(conn);
        *context = NULL;
    }
}

/* ---- the daemon ---- */

ServeHttp *serve_http_start(ServeServer *s, QsfErr *err) {
    sigset_t all, old;
    ServeHttp *h = calloc(1, sizeof *h);
    if (h == NULL) {
        qsf_err_memory(err, "the server");
        return NULL;
    }
    h->s = s;
    h->rng = qsf_now_ns() ^ (uint64_t)time(NULL) << 32;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are for the main thread */
    h->daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, &handle, h,
        MHD_OPTION_LISTEN_SOCKET, s->listen.fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->options->connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->options->timeout,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_CONNECTION_POOL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)SERVE_HTTP_STACK, MHD_OPTION_NOTIFY_COMPLETED, &completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, &connected, h, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    const int e = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (h->daemon != NULL) return h;
    qsf_err_set(err, QSF_E_RUNTIME, "cannot start the server at %s: %s", s->listen.url, strerror(e));
    free(h);
    return NULL;
}

/* How long a client may be in this phase; 0 = as long as it takes: libmicrohttpd sees one that reads
 * nothing. */
static uint64_t limit_of(const ServeHttp *h, const Conn *c, uint64_t *from) {
    const uint64_t limit = h->s->options->timeout * (uint64_t)1000000000;
    *from = c->since_ns;
    if (c->phase == PHASE_REQUEST) return limit;
    if (c->phase == PHASE_WAIT) return 0;
    if (c->job != NULL && c->job->state != SERVE_ENDED) return 0;
    if (c->job != NULL && c->job->ended_ns > *from) *from = c->job->ended_ns;
    return limit * SENDING_LIMITS;
}

void serve_http_check(ServeHttp *h) {
    const uint64_t now = qsf_now_ns();
    lock(h);
    for (Conn *c = h->conns; c != NULL; c = c->next) {
        uint64_t from;
        const uint64_t limit = limit_of(h, c, &from);
        if (limit > 0 && now > from && now - from > limit) (void)shutdown(c->fd, SHUT_RDWR);
    }
    unlock(h);
}

bool serve_http_unsent(ServeHttp *h, bool late) {
    bool unsent = false;
    lock(h);
    for (const Conn *c = h->conns; c != NULL && !unsent; c = c->next) {
        struct pollfd p = { .fd = c->fd, .events = POLLOUT };
        unsent = c->phase != PHASE_REQUEST && (!late || (poll(&p, 1, 0) == 1 && p.revents == POLLOUT));
    }
    unlock(h);
    return unsent;
}

void serve_http_stop(ServeHttp *h) {
    MHD_stop_daemon(h->daemon); /* closes the socket that listens, too */
    h->s->listen.fd = -1;
    free(h);
}
