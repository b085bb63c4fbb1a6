/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a server is: "http://HOST:PORT", with "/v1" or without, with a path before it, also with that
 * of one of its functions after it ("/chat/completions"), or "unix:PATH". */
#ifndef QSF_REMOTE_URL_H
#define QSF_REMOTE_URL_H

#include "src/base/err.h"

#define QSF_REMOTE_URL_MAX 700

typedef struct QsfRemoteUrl {
    char base[QSF_REMOTE_URL_MAX];   /* "http://host:8080/v1": without a slash at the end */
    char root[QSF_REMOTE_URL_MAX];   /* without its last part: "http://host:8080" */
    char socket[QSF_REMOTE_URL_MAX]; /* path of a unix socket; "" = none */
    char name[QSF_REMOTE_URL_MAX];   /* as messages and sessions call it: base, or "unix:PATH" */
    bool loopback;                   /* the bytes do not leave this machine */
    bool encrypted;                  /* https */
} QsfRemoteUrl;

/* QSF_E_USAGE with what is wrong: another scheme, a user name or password, '?', '#', blanks or control
 * characters, no host, or too long. */
int qsf_remote_url_parse(const char *text, QsfRemoteUrl *out, QsfErr *err);
/* The URL of the server in the place that a redirect names, without the path of a function. */
void qsf_remote_url_base(const char *location, char *dst, size_t cap);
/* Are both on the same scheme, host and port, or the same socket? A key of one may be sent to the other. */
bool qsf_remote_url_same_origin(const QsfRemoteUrl *a, const QsfRemoteUrl *b);

#endif
