/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a request asks for, and whether it may: decided by its first line and its headers, before its body is
 * read. Pure functions; any thread. */
#ifndef QSF_SERVE_ROUTE_H
#define QSF_SERVE_ROUTE_H

#include "serve/guard.h"
#include "serve/reply.h"

typedef enum ServeTarget {
    SERVE_HEALTH,
    SERVE_METRICS,
    SERVE_MODELS,
    SERVE_MODEL, /* one of them; ServeRoute.rest is its name */
    SERVE_CHAT,
    SERVE_COMPLETION,
    SERVE_RESPONSE,
    SERVE_CONTROL,
    SERVE_PREFLIGHT, /* a browser asks whether a page may ask */
    SERVE_TARGETS
} ServeTarget;

/* Values of headers; NULL = absent. */
typedef struct ServeHeaders {
    const char *host, *origin, *authorization, *length;
    const char *coding;  /* of the transfer */
    const char *content; /* its coding */
    const char *expect;
    bool twice;     /* host, length or coding occurs twice */
    bool malformed; /* a name or value has characters that it cannot have */
} ServeHeaders;

/* Takes a header with this name, of any case, and value (NULL = none). */
void serve_headers_add(ServeHeaders *h, const char *name, const char *value);
/* Is a body announced that can be read to its end, at most max bytes as far as it is known? Clients that wait
 * for "100 Continue" do not send it if they are answered before. */
bool serve_headers_skippable(const ServeHeaders *h, uint64_t max);

typedef struct ServeRoute {
    ServeTarget target;
    const char *rest;  /* of the path */
    const char *allow; /* with status 405: the methods that are */
    bool has_body;
} ServeRoute;

/* Returns the path of a target. If it is a whole URL, as clients send it to proxies, its host replaces that
 * of the header, as RFC 9112 demands, and is written to host (cap bytes). */
const char *serve_route_path(const char *target, ServeHeaders *h, char *host, size_t cap);

/* Finds what is asked for; false with *e set: 400, 401, 403, 404, 405 or 413. */
bool serve_route(ServeRoute *r, const char *method, const char *path, const ServeHeaders *h,
                 const ServeGuard *g, uint64_t body_limit, ServeError *e);

#endif
