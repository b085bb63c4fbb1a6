/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the server listens: an address of this machine and a port, or the path of a socket. One thread. */
#ifndef QSF_SERVE_LISTEN_H
#define QSF_SERVE_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define SERVE_URL_MAX 320 /* bytes, with the NUL */

typedef struct ServeListen {
    int fd;                  /* listening, close-on-exec, not blocking; -1 = none */
    char url[SERVE_URL_MAX]; /* "http://127.0.0.1:8080", "unix:/run/qsf.sock" */
    char host[64];           /* the address alone, as in a Host header: "127.0.0.1", "[::1]"; "" = a path */
    unsigned short port;     /* that the kernel chose if it was 0; 0 = a path */
    bool local;              /* only this machine reaches it */
    char path[108];          /* of a socket, which serve_listen_close removes; "" = none */
} ServeListen;

/* Is this the address of a socket, or of a port that only this machine reaches? QSF_E_USAGE if it is not an
 * address: a number of IPv4, or of IPv6 in brackets, and a port; "localhost:PORT"; or "unix:PATH". */
int serve_listen_check(const char *address, bool *local, QsfErr *err);
/* Listens there. A socket has the permissions 0600; one that a program left when it ended is replaced,
 * anything else at its path is not. QSF_E_USAGE as above; QSF_E_RUNTIME: the address is in use, or not of
 * this machine, or the path cannot be used. */
int serve_listen_open(ServeListen *l, const char *address, QsfErr *err);
/* Stops listening and removes the socket. */
void serve_listen_close(ServeListen *l);

#endif
