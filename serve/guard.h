/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who may ask: the Host and Origin of a request, and its key. A page of a foreign site that a browser on this
 * machine shows must not reach a server on the loopback, neither by its address (Origin) nor by a name of its
 * own that it points there (Host, DNS rebinding). Pure functions; any thread. */
#ifndef QSF_SERVE_GUARD_H
#define QSF_SERVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define SERVE_KEY_MAX 512 /* bytes of a key */

typedef struct ServeGuard {
    const char *host;           /* that is listened on; "" = a socket, which no browser reaches */
    const char *const *hosts;   /* more of them; NULL-terminated, or NULL */
    const char *const *origins; /* NULL-terminated, or NULL */
    bool anywhere;              /* all addresses of the machine are listened on: its names are not known */
    size_t key_len;             /* 0 = no key is needed */
    char key[SERVE_KEY_MAX];    /* (key_len) */
} ServeGuard;

/* Reads the key: the first line of the file, without white space around it. QSF_E_USAGE: it cannot be read,
 * is empty, or too long, or has characters that a header cannot have; or every user may read the file. */
int serve_guard_read_key(ServeGuard *g, const char *path, QsfErr *err);

/* Is it a host that this server answers for, with any port? host: the header, NULL = none. */
bool serve_guard_host(const ServeGuard *g, const char *host);
/* May a page of this origin ask? origin: the header, NULL = none: not a page. Only allowed origins get
 * CORS headers. */
bool serve_guard_origin(const ServeGuard *g, const char *origin);
/* Is the header "Authorization" (NULL = none) "Bearer KEY"? Takes as long for every wrong key of a length. */
bool serve_guard_key(const ServeGuard *g, const char *authorization);

#endif
