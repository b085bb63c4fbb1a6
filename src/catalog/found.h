/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the threads that look for models put what they find. It lives until the last of them has let go of
 * it, because one that waits for a dead server is abandoned. */
#ifndef QSF_CATALOG_FOUND_H
#define QSF_CATALOG_FOUND_H

#include <pthread.h>
#include <sys/types.h>

#include "qsf_models.h"
#include "src/catalog/places.h"

#define QSF_FOUND_MOST 5000u /* models of all places */

typedef struct QsfFoundItem {
    char *name, *path; /* owned */
    const char *problem;
    uint64_t bytes;
    unsigned place; /* index */
    dev_t dev;
    ino_t ino;
} QsfFoundItem;

typedef struct QsfFound {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned users;   /* that have to let go of it */
    unsigned running; /* places that are being read */
    bool closed;      /* the list was made without the rest */
    bool cut;         /* something was left out */
    QsfFoundItem *items;
    size_t n, cap;
} QsfFound;

/* NULL without memory. The caller is one of `users`. */
QsfFound *qsf_found_new(unsigned users);
/* Frees it when the last user lets go. */
void qsf_found_release(QsfFound *f);
/* Adds a model; strings are copied, the name is made clean. false: stop looking. */
bool qsf_found_add(QsfFound *f, const QsfFoundItem *item);

#endif
