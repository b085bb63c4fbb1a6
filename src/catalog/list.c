/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of models: a thread for each place, as long as it answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/paths.h"
#include "src/base/platform.h"
#include "src/catalog/walk.h"
#include "src/file/dirhint.h"

#define STACK ((size_t)256 << 10)

/* ---- one place ---- */

typedef struct Job {
    QsfFound *found;
    QsfPlace place; /* owned */
    unsigned index;
} Job;

static void end_job(Job *j) {
    pthread_mutex_lock(&j->found->lock);
    j->found->running--;
    pthread_cond_signal(&j->found->changed);
    pthread_mutex_unlock(&j->found->lock);
    qsf_found_release(j->found);
    free(j->place.path);
    free(j);
}

static void *run_job(void *arg) {
    Job *j = arg;
    qsf_walk_place(j->found, &j->place, j->index);
    end_job(j);
    return NULL;
}

static bool start_job(QsfFound *f, const QsfPlace *place, unsigned index) {
    pthread_t thread;
    pthread_attr_t attr;
    Job *j = calloc(1, sizeof *j);
    if (j == NULL) return false;
    *j = (Job){ f, { place->kind, strdup(place->path) }, index };
    pthread_mutex_lock(&f->lock);
    f->users++;
    f->running++;
    pthread_mutex_unlock(&f->lock);
    bool ok = j->place.path != NULL && pthread_attr_init(&attr) == 0;
    if (ok) {
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, STACK);
        ok = pthread_create(&thread, &attr, run_job, j) == 0;
        pthread_attr_destroy(&attr);
    }
    if (!ok) end_job(j);
    return ok;
}

/* ---- all of them ---- */

/* By place, and there by name. */
static int by_place(const void *a, const void *b) {
    const QsfFoundItem *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    const int order = strcasecmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->path, y->path);
}

static bool is_again(const QsfFound *f, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (f->items[k].dev == f->items[i].dev && f->items[k].ino == f->items[i].ino) return true;
    return false;
}

/* Under the lock, when it is closed: the texts become those of the list. */
static bool take(QsfFound *f, const QsfPlaces *places, QSFModelList *out) {
    out->items = calloc(f->n + 1, sizeof *out->items);
    if (out->items == NULL) return false;
    if (f->n > 0) qsort(f->items, f->n, sizeof *f->items, by_place);
    for (size_t i = 0; i < f->n; i++) {
        QsfFoundItem *item = &f->items[i];
        if (is_again(f, i)) continue;
        out->items[out->n++] = (QSFModelEntry){ .name = item->name,
                                                .path = item->path,
                                                .place = qsf_place_name(places->items[item->place].kind),
                                                .problem = item->problem,
                                                .bytes = item->bytes };
        item->name = item->path = NULL;
    }
    out->cut = f->cut;
    out->silent = f->running;
    return true;
}

static bool wait_for(QsfFound *f, const QsfPlaces *places, double seconds, QSFModelList *out) {
    const uint64_t end = qsf_now_ns() + (uint64_t)(seconds * 1e9);
    pthread_mutex_lock(&f->lock);
    for (uint64_t now; f->running > 0 && (now = qsf_now_ns()) < end;)
        qsf_os_wait_for(&f->changed, &f->lock, end - now);
    f->closed = true;
    const bool ok = take(f, places, out);
    pthread_mutex_unlock(&f->lock);
    return ok;
}

/* A folder that the user names is read like one of the configuration. */
static bool find_places(QsfPlaces *p, const char *const *dirs, const char *only) {
    char *whole = only != NULL ? realpath(only, NULL) : NULL;
    const bool ok = only == NULL ? qsf_places_find(p, dirs)
                                 : whole == NULL || qsf_places_add(p, QSF_PLACE_FOLDER, whole);
    free(whole);
    return ok;
}

bool qsf_models_list(const char *const *dirs, const char *only, double seconds, QSFModelList *out) {
    QsfPlaces places = { 0 };
    *out = (QSFModelList){ 0 };
    QsfFound *f = find_places(&places, dirs, only) ? qsf_found_new(1) : NULL;
    bool ok = f != NULL;
    for (size_t i = 0; ok && i < places.n; i++) ok = start_job(f, &places.items[i], (unsigned)i);
    if (f != NULL) {
        ok = wait_for(f, &places, ok ? seconds : 0, out) && ok;
        qsf_found_release(f);
    }
    qsf_places_free(&places);
    if (!ok) qsf_models_free(out);
    return ok;
}

void qsf_models_free(QSFModelList *l) {
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].name);
        free(l->items[i].path);
    }
    free(l->items);
    *l = (QSFModelList){ 0 };
}

bool qsf_model_is_folder(const char *path) {
    static const char *const own[] = { "config.json", "tokenizer.json", "tokenizer.model" };
    if (!qsf_path_is_dir(path) || qsf_dir_has_weights(path)) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char file[QSF_PATH_MAX];
        if (qsf_path_join(file, path, "/", own[i]) && access(file, F_OK) == 0) return false;
    }
    return true;
}
