/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one place with models: plain folders, the cache of Hugging Face, the store of Ollama. Depth, folders
 * and entries are limited, links may lead anywhere. */
#ifndef QSF_CATALOG_WALK_H
#define QSF_CATALOG_WALK_H

#include "src/base/paths.h"
#include "src/catalog/found.h"

#define QSF_WALK_DEPTH   8u
#define QSF_WALK_FOLDERS 4000u
#define QSF_WALK_ENTRIES 100000u

typedef struct QsfWalkId {
    dev_t dev;
    ino_t ino;
} QsfWalkId;

typedef struct QsfWalk {
    QsfFound *found;
    unsigned place;
    char path[QSF_PATH_MAX]; /* (len) where it is */
    size_t len;
    QsfWalkId above[QSF_WALK_DEPTH + 1]; /* (depth) the folders that contain it */
    unsigned depth;
    QsfWalkId *seen; /* (n_seen) folders whose models were added */
    size_t n_seen, cap_seen;
    unsigned folders, entries; /* that may still be read */
    const char *repo;          /* name of a directory that is a model; NULL: its own */
    bool stop;
} QsfWalk;

/* Reads a place; index is what its models are marked with. */
void qsf_walk_place(QsfFound *f, const QsfPlace *place, unsigned index);

/* ---- for the layouts ---- */

/* Adds the models of the folder w->path and, `below` folders deep, of those in it. */
void qsf_walk_folder(QsfWalk *w, unsigned below);
/* Calls fn with w->path being each folder, or with files each regular file, in the folder w->path, whose
 * names are visible and have no control characters. A folder that contains itself by a link is left out. */
void qsf_walk_each(QsfWalk *w, bool files, void (*fn)(QsfWalk *w, const char *name, void *arg), void *arg);
/* Appends "/name" to w->path; returns the length before, or 0 if it does not fit. */
size_t qsf_walk_enter(QsfWalk *w, const char *name);
/* Cuts w->path back to a length that enter returned. */
void qsf_walk_leave(QsfWalk *w, size_t len);
/* Adds the model at w->path, if that exists. problem: static, or NULL. */
void qsf_walk_add(QsfWalk *w, const char *name, const char *problem);

/* The two caches with a layout of their own; w->path is the place. */
void qsf_walk_hugging_face(QsfWalk *w);
void qsf_walk_ollama(QsfWalk *w);

#endif
