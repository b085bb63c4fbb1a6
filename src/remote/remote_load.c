/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: which models a server has, and what it is. */
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/remote/remote_impl.h"

static void fail(QSFRemote *r, const QsfErr *err) {
    qsf_remote_server_free(&r->next);
    qsf_remote_fail(r, err);
}

/* "connect:URL#MODEL" */
static bool take_path(QsfRemoteServerState *s, const char *path, QsfErr *err) {
    const char *url = path + strlen("connect:"), *mark = strchr(url, '#');
    char *copy = strndup(url, mark ? (size_t)(mark - url) : strlen(url));
    s->model = strdup(mark ? mark + 1 : "");
    const bool ok = copy && s->model;
    if (!ok) qsf_err_memory(err, "the name of a server");
    const int rc = ok ? qsf_remote_url_parse(copy, &s->url, err) : QSF_E_RUNTIME;
    free(copy);
    return rc == QSF_OK;
}

uint64_t qsf_remote_load(QSFRemote *r, const char *path, const QSFSettings *s) {
    QsfErr err = { 0 };
    if (r->job != QSF_JOB_NONE || !qsf_connect_is(path)) return 0;
    qsf_remote_set(r, s);
    qsf_remote_server_free(&r->next);
    r->request++;
    r->wait_said = 0;
    r->job_begun = qsf_now_ns();
    if (!take_path(&r->next, path, &err) ||
        !qsf_remote_start(r, QSF_JOB_MODELS, &r->next.url, r->next.url.base, "/models", NULL, &err))
        fail(r, &err);
    return r->request;
}

/* What was refused stays refused by the same server. */
static void loaded(QSFRemote *r) {
    QsfRemoteServerState *s = &r->next;
    char why[200];
    s->path = qsf_connect_path(s->url.name, s->model, why, sizeof why);
    if (!s->path) {
        QsfErr err = { 0 };
        qsf_err_memory(&err, "the name of a model");
        fail(r, &err);
        return;
    }
    if (r->now.model && qsf_remote_url_same_origin(&r->now.url, &s->url)) {
        s->refused = r->now.refused;
        s->by_value = r->now.by_value;
    }
    qsf_remote_stop(r);
    qsf_remote_server_free(&r->now);
    r->now = r->next;
    r->next = (QsfRemoteServerState){ 0 };
    r->job = QSF_JOB_NONE;
    qsf_remote_answer_free(r);
    if (r->key && !qsf_remote_url_same_origin(&r->key_for, &r->now.url))
        qsf_remote_note(r, "no key is sent to %s: it was given for %s", r->now.url.name, r->key_for.name);
    qsf_remote_push(r, QSF_EVENT_LOADED, r->now.model, strlen(r->now.model));
}

/* Ollama names the owner of each model: any of its own tells what the server is. */
static QsfRemoteServer server_of(const QsfRemoteModels *all, const QsfRemoteModel *m, const char *header) {
    QsfRemoteServer found = qsf_kind_find(m->owned_by, m->id, header);
    for (size_t i = 0; i < all->n && found == QSF_SERVER_OTHER; i++)
        found = qsf_kind_find(all->items[i].owned_by, all->items[i].id, "");
    return found;
}

static bool take_model(QSFRemote *r, QsfErr *err) {
    QsfRemoteServerState *s = &r->next;
    if (s->models.bad_names > 0)
        qsf_remote_note(
            r, "some models of %s are left out: their names are empty, too long, or have control characters",
            s->url.name);
    const QsfRemoteModel *m = qsf_remote_models_find(&s->models, s->model, err);
    if (!m) {
        qsf_err_prefix(err, "%s", s->url.name);
        return false;
    }
    char *id = strdup(m->id);
    if (!id) return qsf_err_memory(err, "the name of a model"), false;
    free(s->model);
    s->model = id;
    s->server = server_of(&s->models, m, r->head.server);
    s->size = (QsfContextSize){ m->ctx, m->ctx_train };
    return true;
}

/* Some gateways list nothing: a model that was named is believed. */
static bool lists_nothing(const QSFRemote *r) {
    const long status = r->head.status;
    return (status == 404 || status == 405 || status == 501) && r->next.model[0] != '\0';
}

/* ---- the size of the context */

static QsfRemoteServerState *sized(QSFRemote *r) { return r->next.model ? &r->next : &r->now; }

/* Starts the next request for it; false: nothing is left to ask, or it is known. */
static bool ask_size(QSFRemote *r, unsigned from) {
    QsfRemoteServerState *s = sized(r);
    QsfStrbuf path = QSF_STRBUF_INIT, body = QSF_STRBUF_INIT;
    QsfErr ignored = { 0 };
    r->probe = from;
    const bool asks = qsf_context_request(s->server, from, s->model, &path, &body);
    const bool ok = asks && qsf_strbuf_ok(&path) && qsf_strbuf_ok(&body) &&
                    qsf_remote_start(r, QSF_JOB_CONTEXT, &s->url, s->url.root, qsf_strbuf_str(&path),
                                     body.len > 0 ? &body : NULL, &ignored);
    qsf_strbuf_free(&path);
    qsf_strbuf_free(&body);
    return ok;
}

bool qsf_remote_context_again(QSFRemote *r) {
    QsfRemoteServerState *s = &r->now;
    if (s->size.ctx > 0 || s->size_asked) return false;
    s->size_asked = true;
    return ask_size(r, 0);
}

void qsf_remote_context_end(QSFRemote *r) {
    QsfRemoteServerState *s = sized(r);
    if (r->headed && r->head.status == 200)
        qsf_context_read(s->server, r->probe, s->model, qsf_strbuf_str(&r->body), r->body.len, &s->size);
    const bool complete = s->size.ctx > 0 && (s->size.ctx_train > 0 || !r->next.model);
    if (!complete && ask_size(r, r->probe + 1)) return;
    if (r->next.model)
        loaded(r);
    else
        qsf_remote_answer_done(r);
}

/* ---- */

static void models_end(QSFRemote *r) {
    QsfRemoteServerState *s = &r->next;
    QsfErr err = { 0 };
    if (qsf_remote_waits(r, s->url.name)) {
        if (!qsf_remote_start(r, QSF_JOB_MODELS, &s->url, s->url.base, "/models", NULL, &err)) fail(r, &err);
        return;
    }
    if (lists_nothing(r)) {
        qsf_remote_note(r, "%s lists no models: %s is used as it is named", s->url.name, s->model);
        s->server = qsf_kind_find("", s->model, r->head.server);
        loaded(r);
        return;
    }
    if (r->head.status != 200 || qsf_reply_is(&r->head, "text/html")) {
        qsf_problem(&r->head, s->url.name, qsf_strbuf_str(&r->body), r->body.len, NULL, &err);
    } else if (qsf_remote_models_parse(&s->models, qsf_strbuf_str(&r->body), r->body.len, &err) != QSF_OK) {
        qsf_err_prefix(&err, "%s", s->url.name);
    } else if (take_model(r, &err)) {
        if (!ask_size(r, 0)) loaded(r);
        return;
    }
    fail(r, &err);
}

void qsf_remote_load_end(QSFRemote *r, const char *why, size_t len) {
    QsfErr err = { 0 };
    if (len > 0 || !r->headed) {
        qsf_err_set(&err, QSF_E_RUNTIME, "%s: not connected: %.*s; /retry connects again", r->next.url.name,
                    (int)len, why);
        fail(r, &err);
    } else {
        models_end(r);
    }
}
