/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where downloads go: the cache of huggingface/huggingface_hub, so that other programs find them
 * (models--OWNER--NAME with blobs/ETAG, snapshots/COMMIT/FILE and refs/REVISION), and for other URLs a folder
 * of our own. Names are checked before they get here (ref.h). One thread. */
#ifndef QSF_GET_CACHE_H
#define QSF_GET_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "get/ref.h"
#include "src/base/paths.h"

typedef struct GetCache {
    char hub[QSF_PATH_MAX];  /* $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub */
    char repo[QSF_PATH_MAX]; /* its folder for the repository */
} GetCache;

/* Where one file goes. */
typedef struct GetPlace {
    char blob[QSF_PATH_MAX];     /* the finished file; an unfinished one is blob.incomplete */
    char snapshot[QSF_PATH_MAX]; /* its name for users: a link to the blob; "" = the blob itself */
    char lock[QSF_PATH_MAX];     /* locked (flock) by the program that writes it */
} GetPlace;

/* Finds the folders of ref's repository; nothing is created. QSF_E_RUNTIME without a home directory. */
int get_cache_open(GetCache *c, const GetRef *ref, QsfErr *err);
/* The folder of the snapshot that refs/REVISION names, or of a revision that is a commit. false: there is
 * none. */
bool get_cache_snapshot(const GetCache *c, const char *revision, char out[QSF_PATH_MAX]);
/* The place of a file with this etag (letters and digits only), or of a URL. QSF_E_RUNTIME if the path is too
 * long. */
int get_cache_place(const GetCache *c, const char *commit, const char *file, const char *etag, GetPlace *out,
                    QsfErr *err);
int get_cache_place_url(const char *url, GetPlace *out, QsfErr *err);
/* Creates the folders of a place. QSF_E_RUNTIME. */
int get_cache_make(const GetPlace *p, QsfErr *err);
/* Waits until this process has the lock of the place; waiting is called once if another one has it. Returns
 * the descriptor to close, or -1 with *err set; QSF_E_INTERRUPTED. */
int get_cache_lock(const GetPlace *p, void (*waiting)(void *arg), void *arg, QsfErr *err);
/* Makes the snapshot's name for a finished blob: a relative link, or the file itself on a file system
 * without links. QSF_E_RUNTIME. */
int get_cache_link(const GetPlace *p, QsfErr *err);
/* Writes refs/REVISION. QSF_E_RUNTIME. */
int get_cache_set_ref(const GetCache *c, const char *revision, const char *commit, QsfErr *err);

/* Is text something to name a blob by: 1 to 100 letters, digits and '-'? */
bool get_etag_is_name(const char *text);
/* $HF_TOKEN, or the first line of $HF_TOKEN_PATH, $HF_HOME/token or ~/.cache/huggingface/token; false: none.
 * */
bool get_token(char *out, size_t cap);

#endif
