/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "get/blob.h"
#include "get/check.h"
#include "get/program.h"

typedef struct Run {
    const GetOptions *o;
    GetReport *report;
    GetRef ref;
    GetCache cache;
    GetHttp *http; /* NULL until it is needed */
    GetList list;
    GetChoices choices;
    QsfErr *err;
} Run;

static int connect_hub(Run *r) {
    char token[2048];
    if (r->o->offline)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s is not on this machine, and --offline forbids downloading it", r->o->model);
    /* A token is for the hub, never for another server. */
    r->http = get_http_new(*r->ref.endpoint && get_token(token, sizeof token) ? token : NULL, r->err);
    return r->http ? QSF_OK : r->err->code;
}

static void progress(void *arg, uint64_t done, uint64_t total) {
    Run *r = arg;
    if (r->report->total == 0) r->report->total = total;
    get_report_progress(r->report, done);
}

static void note(void *arg, const char *text) { get_report_note(((Run *)arg)->report, text); }

static int check(void *arg, int fd, const char *name, uint64_t done, uint64_t total, QsfErr *err) {
    (void)arg;
    return get_check(fd, name, done, total, err);
}

/* whole: the file is a model by itself, which can be checked. */
static GetWatch watch(Run *r, bool whole) {
    return (GetWatch){ .arg = r, .progress = progress, .note = note, .check = whole ? check : NULL };
}

/* ---- a repository */

/* The choice among the files of this machine: what is there needs no network. */
static bool find_here(Run *r, char folder[QSF_PATH_MAX]) {
    QsfErr ignored = { 0 };
    if (!get_cache_snapshot(&r->cache, r->ref.revision, folder)) return false;
    if (get_list_folder(folder, &r->list, &ignored) == QSF_OK &&
        get_choose(&r->list, r->ref.what, r->o->room, &r->choices, &ignored) == QSF_OK)
        return true;
    get_choices_free(&r->choices);
    get_list_free(&r->list);
    return false;
}

/* A folder may lack files, after a download that was stopped: only the hub knows what belongs to it. */
static bool is_whole(const Run *r) { return r->o->offline || !r->choices.items[r->choices.chosen].folder; }

static int report_choice(Run *r, const char *folder) {
    char path[QSF_PATH_MAX];
    const GetChoice *c = &r->choices.items[r->choices.chosen];
    if (!qsf_path_join(path, folder, c->folder ? "" : "/", c->folder ? "" : r->list.items[c->parts[0]].path))
        return qsf_err_set(r->err, QSF_E_RUNTIME, "%s: the path is too long", folder);
    get_report_path(r->report, path);
    return QSF_OK;
}

/* A file that the engine opens by itself. */
static bool is_model(const char *path) {
    const size_t n = strcspn(path, "?#");
    return (n > 5 && strncasecmp(path + n - 5, ".gguf", 5) == 0) ||
           (n > 4 && strncasecmp(path + n - 4, ".qsf", 4) == 0);
}

/* Downloads one file of the repository. commit: that of the files before it, "" for the first. */
static int fetch_part(Run *r, const GetEntry *e, char *commit) {
    GetFile f = { .bytes = -1 };
    GetPlace place;
    char now[GET_HEADER_MAX];
    QsfStrbuf url = QSF_STRBUF_INIT;
    const GetWatch w = watch(r, r->choices.items[r->choices.chosen].n == 1 && is_model(e->path));
    qsf_strbuf_addf(&url, "%s/%s/%s/resolve/", r->ref.endpoint, r->ref.owner, r->ref.name);
    get_ref_put_revision(&url, *commit ? commit : r->ref.revision);
    qsf_strbuf_addc(&url, '/');
    get_http_put_path(&url, e->path);
    snprintf(f.url, sizeof f.url, "%s", qsf_strbuf_str(&url));
    snprintf(f.name, sizeof f.name, "%s", e->path);
    qsf_strbuf_free(&url);
    if (get_blob_ask(r->http, &f, now, r->err)) return r->err->code;
    if (!get_etag_is_name(f.etag) || !get_etag_is_name(now))
        return qsf_err_set(r->err, QSF_E_RUNTIME, "%s: the hub names neither checksum nor commit", e->path);
    if (f.bytes < 0) f.bytes = (int64_t)e->bytes;
    if (!*commit) snprintf(commit, GET_HEADER_MAX, "%s", now);
    if (get_cache_place(&r->cache, commit, e->path, f.etag, &place, r->err) || get_cache_make(&place, r->err))
        return r->err->code;
    const int rc = get_blob(r->http, &f, &place, &w, NULL, r->err);
    if (rc) return rc;
    r->report->before += (uint64_t)f.bytes;
    return get_cache_link(&place, r->err);
}

static int fetch_choice(Run *r) {
    char commit[GET_HEADER_MAX] = "", folder[QSF_PATH_MAX];
    const GetChoice *c = &r->choices.items[r->choices.chosen];
    r->report->total = c->bytes;
    for (size_t i = 0; i < c->n; i++)
        if (fetch_part(r, &r->list.items[c->parts[i]], commit)) return r->err->code;
    if (get_cache_set_ref(&r->cache, r->ref.revision, commit, r->err)) return r->err->code;
    if (!qsf_path_join(folder, r->cache.repo, "/snapshots/", commit))
        return qsf_err_set(r->err, QSF_E_RUNTIME, "%s: the path is too long", r->cache.repo);
    return report_choice(r, folder);
}

static int from_hub(Run *r) {
    char folder[QSF_PATH_MAX];
    if (get_cache_open(&r->cache, &r->ref, r->err)) return r->err->code;
    if (!r->o->list && find_here(r, folder)) {
        if (is_whole(r)) return report_choice(r, folder);
        get_choices_free(&r->choices);
        get_list_free(&r->list);
    }
    if (connect_hub(r) || get_list_hub(r->http, &r->ref, &r->list, r->err)) return r->err->code;
    if (get_choose(&r->list, r->ref.what, r->o->room, &r->choices, r->err)) {
        qsf_err_prefix(r->err, "%s", r->o->model);
        return r->err->code;
    }
    if (r->o->list || (!*r->ref.what && r->choices.n > 1))
        get_report_choices(r->report, &r->list, &r->choices, r->cache.hub, r->o->room);
    return r->o->list ? QSF_OK : fetch_choice(r);
}

/* ---- another URL */

__attribute__((format(printf, 2, 3))) static void say(Run *r, const char *fmt, ...) {
    char text[GET_URL_MAX + 400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    get_report_note(r->report, text);
}

/* Whether the file that is here is still that of the server, or the server cannot be asked. */
static int is_fresh(Run *r, GetFile *f, const GetPlace *place, bool *fresh) {
    GetFresh now = GET_CHANGED;
    QsfErr why = { 0 };
    const int rc = get_blob_ask_again(r->http, f, place, &now, &why);
    *fresh = rc != QSF_OK || now != GET_CHANGED;
    if (rc == QSF_E_INTERRUPTED) return qsf_err_pass(r->err, &why);
    if (rc != QSF_OK)
        say(r, "%s; the file that is here is used", why.msg);
    else if (now == GET_CHANGED)
        say(r, "%s has changed on the server: it is downloaded again", f->name);
    return QSF_OK;
}

static int from_url(Run *r) {
    GetFile f = { .bytes = -1 };
    GetPlace place;
    char commit[GET_HEADER_MAX];
    bool fresh = false;
    const GetWatch w = watch(r, is_model(r->ref.url));
    if (r->o->list) return qsf_err_set(r->err, QSF_E_USAGE, "--list is for repositories: hf:OWNER/NAME");
    if (get_cache_place_url(r->ref.url, &place, r->err)) return r->err->code;
    const bool here = access(place.blob, R_OK) == 0;
    if (here && r->o->offline) return get_report_path(r->report, place.blob), QSF_OK;
    snprintf(f.url, sizeof f.url, "%s", r->ref.url);
    snprintf(f.name, sizeof f.name, "%s", strrchr(place.blob, '/') + 1);
    if (connect_hub(r)) return r->err->code;
    if (here ? is_fresh(r, &f, &place, &fresh) : get_blob_ask(r->http, &f, commit, r->err))
        return r->err->code;
    if (!fresh && (get_cache_make(&place, r->err) || get_blob(r->http, &f, &place, &w, NULL, r->err))) {
        if (here) say(r, "the file of before is still there: --offline uses it");
        return r->err->code;
    }
    get_report_path(r->report, place.blob);
    return QSF_OK;
}

int get_run(const GetOptions *o, GetReport *report, QsfErr *err) {
    Run r = { .o = o, .report = report, .err = err };
    int rc = get_ref_parse(o->model, &r.ref, err);
    if (rc == QSF_OK) rc = *r.ref.url ? from_url(&r) : from_hub(&r);
    get_choices_free(&r.choices);
    get_list_free(&r.list);
    get_http_free(r.http);
    return rc;
}
