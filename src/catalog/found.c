/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements found.h. */
#include "src/catalog/found.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/platform.h"
#include "src/base/utf8.h"

QsfFound *qsf_found_new(unsigned users) {
    QsfFound *f = calloc(1, sizeof *f);
    if (f == NULL) return NULL;
    f->users = users;
    pthread_mutex_init(&f->lock, NULL);
    qsf_os_cond_init(&f->changed);
    return f;
}

void qsf_found_release(QsfFound *f) {
    pthread_mutex_lock(&f->lock);
    const bool last = --f->users == 0;
    pthread_mutex_unlock(&f->lock);
    if (!last) return;
    for (size_t i = 0; i < f->n; i++) {
        free(f->items[i].name);
        free(f->items[i].path);
    }
    free(f->items);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static bool grow(QsfFound *f) {
    const size_t cap = f->cap > 0 ? 2 * f->cap : 64;
    QsfFoundItem *more = realloc(f->items, cap * sizeof *more);
    if (more == NULL) return false;
    f->items = more;
    f->cap = cap;
    return true;
}

/* Under the lock. */
static bool put(QsfFound *f, const QsfFoundItem *item) {
    if (f->closed) return false;
    if (f->n == QSF_FOUND_MOST || (f->n == f->cap && !grow(f))) {
        f->cut = true;
        return false;
    }
    QsfFoundItem copy = *item;
    copy.name = strdup(item->name);
    copy.path = strdup(item->path);
    if (copy.name == NULL || copy.path == NULL) {
        free(copy.name);
        free(copy.path);
        return false;
    }
    copy.name[qsf_utf8_clean(copy.name, strlen(copy.name), false)] = '\0';
    f->items[f->n++] = copy;
    return true;
}

bool qsf_found_add(QsfFound *f, const QsfFoundItem *item) {
    pthread_mutex_lock(&f->lock);
    const bool more = put(f, item);
    pthread_mutex_unlock(&f->lock);
    return more;
}
