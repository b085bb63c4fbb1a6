/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots of the conversation of a worker: implements worker_snapshot.h. */
#include "src/engine/worker_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/quality/quality.h"

#define QUIT_NS 5000000000u /* that saving may take when the worker must stop */

static void set_path(QsfWorkerSnapshot *s, const char *path) {
    if (path != NULL && s->path != NULL && strcmp(path, s->path) == 0) return;
    free(s->path);
    s->path = path != NULL ? strdup(path) : NULL;
    s->reported = s->fresh = s->due = false;
}

static void report(QSFWorker *w, const char *text) {
    if (!w->snap.reported) qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
    w->snap.reported = true;
}

/* Snapshots of other models and settings are not worth a word: the chat changes both. */
static void refused(QSFWorker *w, QsfSnapKind kind, const QsfErr *err) {
    QsfErr note = { 0 };
    w->snap.fresh = kind == QSF_SNAP_DAMAGED;
    if (kind != QSF_SNAP_DAMAGED && kind != QSF_SNAP_ALIEN) return;
    qsf_err_set(&note, err->code, "%s; the conversation is evaluated again", err->msg);
    report(w, note.msg);
}

void qsf_worker_snapshot_load(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids) {
    QsfWorkerSnapshot *s = &w->snap;
    QsfErr err = { 0 };
    QsfSnapKind kind = QSF_SNAP_MISSING;
    QSFParams p;
    uint32_t loaded;
    set_path(s, r->snapshot);
    s->limit = r->snapshot_limit;
    if (s->path == NULL || ids->n == 0 || qsf_snapshot_key(&s->key, &w->rt, &err) != QSF_OK) return;
    qsf_worker_get_params(w, &p);
    if (qsf_quality_measures(&w->rt, &p)) return;
    int rc = qsf_snapshot_load(&w->timeline, s->path, &s->key, ids->data, ids->n, &loaded, &kind, &err);
    if (rc != QSF_OK) refused(w, kind, &err);
}

void qsf_worker_snapshot_due(QSFWorker *w) { w->snap.due = w->snap.path != NULL; }

typedef struct Saving {
    QSFWorker *w;
    uint64_t quit_ns; /* when the worker was told to stop; 0 = it was not */
    bool stopped;
} Saving;

/* Requests of other conversations, and loads, wait: afterwards there is nothing left to save. */
static bool must_stop(void *arg) {
    Saving *s = arg;
    QSFWorker *w = s->w;
    pthread_mutex_lock(&w->lock);
    const bool quit = w->quit;
    const QsfCommand *c = &w->command;
    s->stopped = w->replan.pending || (c->kind == QSF_COMMAND_SUBMIT && c->request->snapshot != NULL &&
                                       strcmp(c->request->snapshot, w->snap.path) == 0);
    pthread_mutex_unlock(&w->lock);
    if (quit && s->quit_ns == 0) s->quit_ns = qsf_now_ns();
    if (quit) s->stopped = qsf_now_ns() - s->quit_ns > QUIT_NS;
    return s->stopped;
}

void qsf_worker_snapshot_save(QSFWorker *w) {
    QsfWorkerSnapshot *s = &w->snap;
    Saving saving = { .w = w };
    QsfErr err = { 0 };
    if (!s->due || !w->loaded || w->stale != NULL) return;
    const uint64_t limit = s->limit > 0 ? s->limit : qsf_snapshot_default_limit(s->path);
    const QsfSnapSave o = {
        .fresh = s->fresh, .limit = limit, .prune = true, .stop = must_stop, .arg = &saving
    };
    int rc = qsf_snapshot_key(&s->key, &w->rt, &err);
    if (rc == QSF_OK) rc = qsf_snapshot_save(&w->timeline, s->path, &s->key, &o, &err);
    if (saving.stopped) return;
    s->due = false;
    if (rc == QSF_OK) s->fresh = false;
    if (rc == QSF_OK || qsf_forward_savable(w->rt.fwd, NULL) != QSF_OK) return; /* conversions are known */
    report(w, err.msg);
}

void qsf_worker_snapshot_drop(QSFWorker *w) {
    set_path(&w->snap, NULL);
    w->snap.key = (QsfSnapKey){ 0 };
}
