/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where models are on this machine. */
#ifndef QSF_CATALOG_PLACES_H
#define QSF_CATALOG_PLACES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum QsfPlaceKind {
    QSF_PLACE_FOLDER, /* named by the user */
    QSF_PLACE_HERE,   /* the current folder: not what is below it */
    QSF_PLACE_OLLAMA, /* manifests and blobs */
    QSF_PLACE_LM_STUDIO,
    QSF_PLACE_LLAMA_CPP,
    QSF_PLACE_HUGGING_FACE, /* models--OWNER--NAME/snapshots */
    QSF_PLACE_N
} QsfPlaceKind;

typedef struct QsfPlace {
    QsfPlaceKind kind;
    char *path; /* owned, absolute */
} QsfPlace;

typedef struct QsfPlaces {
    QsfPlace *items;
    size_t n, cap;
} QsfPlaces;

/* Adds the folders (NULL-terminated, or NULL; "~/" is the home directory), the current one and the caches
 * that environment and home directory name, each once. Nothing is looked up but the pointer file of LM
 * Studio. false without memory. */
bool qsf_places_find(QsfPlaces *p, const char *const *dirs);
/* Adds one. */
bool qsf_places_add(QsfPlaces *p, QsfPlaceKind kind, const char *path);
/* Frees the paths; p is empty. */
void qsf_places_free(QsfPlaces *p);
/* "Ollama"; static. */
const char *qsf_place_name(QsfPlaceKind kind);

#endif
