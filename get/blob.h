/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Downloads one file: resumed after a cut, checked, and under its name only when it is whole. One thread. */
#ifndef QSF_GET_BLOB_H
#define QSF_GET_BLOB_H

#include "get/cache.h"
#include "get/http.h"

typedef struct GetFile {
    char name[GET_WHAT_MAX];       /* for messages */
    char url[GET_URL_MAX];         /* of its bytes */
    char etag[GET_HEADER_MAX];     /* its checksum, if get_hash_known; "" = the server has none */
    int64_t bytes;                 /* -1 = unknown */
    char modified[GET_HEADER_MAX]; /* Last-Modified, "" = the server has none */
} GetFile;

/* What the server says of the file that is there. */
typedef enum GetFresh {
    GET_SAME,    /* it has not changed */
    GET_CHANGED, /* or there is none */
    GET_UNKNOWN  /* the server does not tell versions apart */
} GetFresh;

typedef struct GetWatch {
    void *arg;
    /* Bytes on the disk so far; total 0 = unknown. Often: the receiver limits how often it shows them. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void (*note)(void *arg, const char *text); /* a sentence: a retry, another program at the same file */
    /* May refuse the file by what is on the disk of it, a beginning of `done` bytes in fd; NULL = no check.
     * Not 0 with *err set ends the download. Called after 1, 4, 16 and 64 MiB, and at the end of a shorter
     * one. */
    int (*check)(void *arg, int fd, const char *name, uint64_t done, uint64_t total, QsfErr *err);
} GetWatch;

/* Fills url, etag and bytes from the headers of url, and *commit (GET_HEADER_MAX) with that of a hub, ""
 * elsewhere. QSF_E_RUNTIME, or QSF_E_MODEL if the server has no such file or wants a token. */
int get_blob_ask(GetHttp *h, GetFile *f, char *commit, QsfErr *err);
/* As get_blob_ask, for a file of a URL: whether it is still the one at the place, whose version is noted
 * beside it. */
int get_blob_ask_again(GetHttp *h, GetFile *f, const GetPlace *place, GetFresh *fresh, QsfErr *err);
/* Downloads f to its place, whose folders exist, unless it is there. *fetched (may be NULL): bytes that came
 * over the network. What has arrived stays as blob.incomplete, but for a file with a wrong checksum or one
 * that check refused. QSF_E_RUNTIME: the disk, the network after several tries; QSF_E_MODEL: the file is not
 * what the server announced, or not allowed; QSF_E_INTERRUPTED. */
int get_blob(GetHttp *h, GetFile *f, const GetPlace *place, const GetWatch *watch, uint64_t *fetched,
             QsfErr *err);

#endif
