/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: what it is, and the replies of its child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_request.h"
#include "qsf_system.h"
#include "src/base/clock.h"
#include "src/remote/remote_impl.h"

#define FIRST_REQUEST ((uint64_t)1 << 32)
#define BURST         ((size_t)256 << 10)
#define LIST_SECONDS  30u /* for a list of models: a person waits */

static bool open_ready(QSFRemote *r) {
    if (!qsf_pipe(r->ready, false)) return false;
    return write(r->ready[1], "", 1) == 1;
}

QSFRemote *qsf_remote_new(const char *key, unsigned timeout) {
    QSFRemote *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->ready[0] = r->ready[1] = -1;
    r->timeout = timeout > 0 ? timeout : QSF_REMOTE_TIMEOUT;
    r->request = FIRST_REQUEST;
    qsf_settings_default(&r->settings);
    r->key = key ? strdup(key) : NULL;
    if ((!key || r->key) && open_ready(r)) return r;
    qsf_remote_free(r);
    return NULL;
}

void qsf_remote_server_free(QsfRemoteServerState *s) {
    free(s->model);
    free(s->path);
    qsf_token_texts_free(&s->tokens);
    qsf_remote_models_free(&s->models);
    *s = (QsfRemoteServerState){ 0 };
}

void qsf_remote_free(QSFRemote *r) {
    if (!r) return;
    qsf_remote_stop(r);
    qsf_remote_server_free(&r->now);
    qsf_remote_server_free(&r->next);
    qsf_remote_answer_free(r);
    qsf_remote_events_free(&r->events);
    qsf_strbuf_free(&r->current.data);
    for (int i = 0; i < 2; i++)
        if (r->ready[i] >= 0) close(r->ready[i]);
    free(r->key);
    free(r);
}

/* ---- requests */

/* The first server gets the key: others were not meant. */
static const char *key_for(QSFRemote *r, const QsfRemoteUrl *url) {
    if (!r->key) return NULL;
    if (!r->key_for.base[0]) r->key_for = *url;
    if (!qsf_remote_url_same_origin(&r->key_for, url)) return NULL;
    if (!url->encrypted && !url->loopback && !r->warned) {
        r->warned = true;
        qsf_remote_note(r, "the key and the messages are sent to %s unencrypted", url->name);
    }
    return r->key;
}

bool qsf_remote_start(QSFRemote *r, QsfRemoteJob job, const QsfRemoteUrl *url, const char *base,
                      const char *path, const QsfStrbuf *body, QsfErr *err) {
    char whole[QSF_REMOTE_URL_MAX + QSF_REMOTE_PATH_MAX];
    const unsigned most = job == QSF_JOB_ANSWER || r->timeout < LIST_SECONDS ? r->timeout : LIST_SECONDS;
    snprintf(whole, sizeof whole, "%s%s", base, path);
    qsf_remote_stop(r);
    const QsfChildRequest q = { whole, url->socket, key_for(r, url), body, most, r->delay_ms };
    r->delay_ms = 0;
    if (qsf_child_start(&r->child, &q, err) != QSF_OK) return false;
    r->job = job;
    return true;
}

bool qsf_remote_start_beside(QSFRemote *r, QsfChild *child, const char *path, const QsfStrbuf *body) {
    char whole[QSF_REMOTE_URL_MAX + QSF_REMOTE_PATH_MAX];
    QsfErr ignored = { 0 };
    const QsfRemoteUrl *url = &r->now.url;
    snprintf(whole, sizeof whole, "%s%s", url->base, path);
    const QsfChildRequest q = { whole, url->socket, key_for(r, url), body, LIST_SECONDS, 0 };
    return qsf_child_start(child, &q, &ignored) == QSF_OK;
}

void qsf_remote_stop(QSFRemote *r) {
    qsf_child_stop(&r->child);
    qsf_child_stop(&r->control);
    r->head = (QsfReplyHead){ 0 };
    r->headed = false;
    qsf_strbuf_free(&r->body);
}

/* ---- replies */

static void end_job(QSFRemote *r, const char *why, size_t len) {
    switch (r->job) {
    case QSF_JOB_ANSWER: qsf_remote_answer_end(r, why, len); break;
    case QSF_JOB_TOKENS: qsf_remote_tokens_end(r); break;
    case QSF_JOB_CONTEXT: qsf_remote_context_end(r); break;
    default: qsf_remote_load_end(r, why, len); break;
    }
}

static void too_long(QSFRemote *r, size_t most) {
    QsfErr err = { 0 };
    if (r->job == QSF_JOB_CONTEXT || r->job == QSF_JOB_TOKENS) { /* it can do without */
        qsf_strbuf_clear(&r->body);
        end_job(r, "", 0);
        return;
    }
    const char *name = r->next.model ? r->next.url.name : r->now.url.name;
    qsf_err_set(&err, QSF_E_RUNTIME, "%s: the reply has more than %zu MB: stopped", name, most >> 20);
    qsf_remote_server_free(&r->next);
    qsf_remote_fail(r, &err);
}

/* A page is an error, of which the beginning is enough. */
static void take_data(QSFRemote *r, const char *bytes, size_t len) {
    static const char data[] = "data:"; /* a stream that has another type */
    if (r->job == QSF_JOB_ANSWER && r->head.status == 200 && r->body.len == 0 && len > sizeof data &&
        memcmp(bytes, data, sizeof data - 1) == 0)
        r->answer.stream = true;
    const bool json = qsf_reply_is(&r->head, "application/json") || (r->body.len > 0 && *r->body.data == '{');
    const bool page = (r->head.status != 200 && !json) || qsf_reply_is(&r->head, "text/html");
    if (r->job == QSF_JOB_ANSWER && r->answer.stream) {
        qsf_remote_answer_data(r, bytes, len);
    } else if (page) {
        const size_t room = QSF_REMOTE_PAGE_MAX - r->body.len;
        qsf_strbuf_add(&r->body, bytes, len < room ? len : room);
        if (len >= room) end_job(r, "", 0);
    } else if (len > QSF_REMOTE_BODY_MAX - r->body.len) {
        too_long(r, QSF_REMOTE_BODY_MAX);
    } else {
        qsf_strbuf_add(&r->body, bytes, len);
    }
}

static void take_frame(QSFRemote *r, const QsfPipeFrame *f) {
    switch (f->kind) {
    case QSF_REPLY_HEAD:
        qsf_reply_head(&r->head, f->body, f->len);
        r->headed = true;
        r->answer.stream = r->head.status == 200 && qsf_reply_is(&r->head, "text/event-stream");
        break;
    case QSF_REPLY_DATA:
        r->burst += f->len;
        if (r->child.received > QSF_REMOTE_REPLY_MAX)
            too_long(r, QSF_REMOTE_REPLY_MAX);
        else
            take_data(r, f->body, f->len);
        break;
    default: end_job(r, f->body, f->len); break;
    }
}

static void gone(QSFRemote *r) {
    static const char why[] = "the process of the request (qsf-get) ended unexpectedly";
    end_job(r, why, sizeof why - 1);
}

static void out_of_memory(QSFRemote *r) {
    QsfErr err = { 0 };
    r->events.lost = false;
    qsf_err_memory(&err, "the reply of the server");
    qsf_remote_fail(r, &err);
}

bool qsf_remote_next(QSFRemote *r, QSFEvent *e) {
    QsfPipeFrame f;
    while (!qsf_remote_take(r, e)) {
        if (r->events.lost) out_of_memory(r);
        if (r->job == QSF_JOB_NONE || r->burst >= BURST) {
            r->burst = 0;
            return qsf_remote_take(r, e);
        }
        qsf_remote_close_tick(r);
        const QsfChildGot got = qsf_child_next(&r->child, &f);
        if (got == QSF_CHILD_FRAME)
            take_frame(r, &f);
        else if (got == QSF_CHILD_GONE)
            gone(r);
        else if (r->job == QSF_JOB_ANSWER)
            qsf_remote_answer_tick(r);
        if (got == QSF_CHILD_NOTHING && r->events.first == r->events.n) return false;
    }
    return true;
}

int qsf_remote_fd(QSFRemote *r) {
    if (r->events.first < r->events.n || r->events.lost) return r->ready[0];
    return r->job != QSF_JOB_NONE ? r->child.fd : -1;
}

/* An answer is complete, and only the size of the context is still asked for. */
static bool is_late(const QSFRemote *r) { return r->job == QSF_JOB_CONTEXT && !r->next.model; }

void qsf_remote_cancel(QSFRemote *r) {
    QsfErr err = { 0 };
    if (is_late(r)) qsf_remote_answer_done(r);
    if (r->job == QSF_JOB_ANSWER || r->job == QSF_JOB_TOKENS) qsf_remote_answer_cancel(r);
    if (r->job == QSF_JOB_NONE) return;
    qsf_err_set(&err, QSF_E_INTERRUPTED, "stopped: %s was not connected", r->next.url.name);
    qsf_remote_server_free(&r->next);
    qsf_remote_fail(r, &err);
}

/* ---- what is known */

void qsf_remote_set(QSFRemote *r, const QSFSettings *s) {
    const QsfFieldSet again = qsf_fields_changed(r->now.by_value, &r->settings, s);
    r->now.refused &= ~again;
    r->now.by_value &= ~again;
    r->settings = *s;
}

void qsf_remote_settings(const QSFRemote *r, QSFSettings *s) { *s = r->settings; }

bool qsf_remote_counted(const QSFRemote *r) {
    const QsfDeltaUsage *u = &r->answer.delta.usage;
    return (r->job != QSF_JOB_ANSWER || u->live) && u->completion >= 0;
}

QSFRemoteEffect qsf_remote_effect(const QSFRemote *r, const QSFSetting *row) {
    static const QSFRemoteEffect effects[] = { [QSF_FIELD_SENT] = QSF_REMOTE_SENT,
                                               [QSF_FIELD_UNSET] = QSF_REMOTE_OWN,
                                               [QSF_FIELD_REFUSED] = QSF_REMOTE_REFUSED,
                                               [QSF_FIELD_NONE] = QSF_REMOTE_NONE,
                                               [QSF_FIELD_LOCAL] = QSF_REMOTE_LOCAL };
    return effects[qsf_field_effect(&r->settings, row, r->now.server, r->now.refused)];
}

bool qsf_remote_model(const QSFRemote *r, size_t i, QSFRemoteModel *out) {
    const QsfRemoteModels *m = &r->now.models;
    if (i >= m->n) return false;
    const QsfRemoteModel *of = &m->items[i];
    *out = (QSFRemoteModel){ of->id, of->ctx > 0 ? of->ctx : of->ctx_train, of->bytes,
                             r->now.model && strcmp(of->id, r->now.model) == 0 };
    return true;
}

static void describe_model(const QSFRemote *r, QsfStrbuf *b) {
    const QsfRemoteServerState *s = &r->now;
    qsf_strbuf_addf(b, "model    %s\nserver   %s\nurl      %s\n", s->model, qsf_kind(s->server)->name,
                    s->url.name);
    qsf_strbuf_addf(b, "key      %s\n",
                    !r->key ? "none is sent"
                    : qsf_remote_url_same_origin(&r->key_for, &s->url)
                        ? "sent"
                        : "not sent: it was given for another server");
    if (s->size.ctx > 0) qsf_strbuf_addf(b, "context  %u tokens\n", s->size.ctx);
    if (s->size.ctx_train > 0) qsf_strbuf_addf(b, "trained  for %u tokens\n", s->size.ctx_train);
    if (s->refused) {
        qsf_strbuf_adds(b, "refused  ");
        qsf_fields_list(s->refused, b);
        qsf_strbuf_addc(b, '\n');
    }
}

char *qsf_remote_describe(QSFRemote *r, const char *what) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (!r->now.model) return NULL;
    if (strcmp(what, "model") == 0)
        describe_model(r, &b);
    else if (strcmp(what, "template") == 0)
        qsf_strbuf_adds(&b, "the server applies the chat template of its model\n");
    else
        return NULL;
    return qsf_strbuf_take(&b, NULL);
}

static QSFState state_of(const QSFRemote *r) {
    if (r->next.model) return QSF_STATE_LOADING;
    const bool reads = r->answer.first == 0 || (r->answer.closed && r->answer.pieces == 0);
    if (r->job != QSF_JOB_NONE) return reads ? QSF_STATE_PREFILL : QSF_STATE_DECODE;
    return r->now.model ? QSF_STATE_IDLE : QSF_STATE_EMPTY;
}

/* llama.cpp calls a model by the path of its file, unless it was given a name. */
static const char *shown_name(const char *id) {
    const char *slash = *id == '/' ? strrchr(id, '/') : NULL;
    return slash && slash[1] ? slash + 1 : id;
}

/* Tokens per second of a prompt that is read. */
static double read_tps(const QsfDeltaUsage *u) {
    const int64_t n = u->read - (u->read_before > 0 ? u->read_before : 0);
    return u->prompt_tps > 0         ? u->prompt_tps
           : n > 0 && u->read_ms > 0 ? (double)n * 1e3 / (double)u->read_ms
                                     : 0;
}

static void answer_stats(const QSFRemote *r, QSFStats *out) {
    const QsfRemoteAnswer *a = &r->answer;
    const QsfDeltaUsage *u = &a->delta.usage;
    out->out_tokens = qsf_remote_answer_tokens(r);
    out->max_tokens = (uint32_t)(r->settings.params.max_tokens > 0 ? r->settings.params.max_tokens : 0);
    out->decode_tps = qsf_remote_answer_tps(r);
    out->prefill_tps = read_tps(u);
    out->ttft_ms = a->first > a->asked ? (double)(a->first - a->asked) / 1e6 : 0;
    if (u->to_read > 0) {
        out->prefill_total = (uint32_t)u->to_read;
        out->prefill_done = (uint32_t)(u->read > 0 ? u->read : 0);
    }
    if (u->prompt >= 0)
        out->ctx_used = (uint32_t)u->prompt + out->out_tokens - a->spent;
    else if (a->closed)
        out->ctx_used = a->used; /* of its first request */
}

void qsf_remote_stats(QSFRemote *r, QSFStats *out) {
    const QsfRemoteServerState *s = &r->now;
    *out = (QSFStats){ .state = state_of(r), .quality = 1 };
    if (r->job != QSF_JOB_NONE) out->elapsed_ns = qsf_now_ns() - r->job_begun;
    if (!s->model) return;
    snprintf(out->model_name, sizeof out->model_name, "%.120s", shown_name(s->model));
    snprintf(out->model_path, sizeof out->model_path, "%s", s->path);
    snprintf(out->model_desc, sizeof out->model_desc, "%s at %.90s", qsf_kind(s->server)->name, s->url.name);
    snprintf(out->eviction, sizeof out->eviction, "none");
    out->ctx_size = s->size.ctx;
    out->ctx_train = s->size.ctx_train;
    answer_stats(r, out);
}
