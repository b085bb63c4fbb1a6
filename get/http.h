/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only interface to libcurl. HTTP and HTTPS only; redirects never go from HTTPS to HTTP, and the token is
 * sent to the host of the first URL alone. Proxies are those of the environment. A transfer stops within
 * 100 ms when the thread is to stop (base/interrupt.h). One thread per connection. */
#ifndef QSF_GET_HTTP_H
#define QSF_GET_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

#define GET_HEADER_MAX 512 /* bytes kept of a header's value, with the NUL */

typedef struct GetHttp GetHttp;

typedef struct GetReply {
    bool permanent;       /* trying again gives the same error: a loop of redirects, a wrong certificate */
    long status;          /* 200, 404, ...; of the last one, after redirects */
    int64_t length;       /* Content-Length, -1 = not sent */
    int64_t first, total; /* Content-Range: first byte and whole length, -1 = not sent */
    int64_t linked_size;  /* X-Linked-Size, -1 = not sent */
    double retry_after;   /* seconds, 0 = not sent */
    char etag[GET_HEADER_MAX];         /* without quotes and W/; "" = not sent, as are the next ones */
    char modified[GET_HEADER_MAX];     /* Last-Modified */
    char linked_etag[GET_HEADER_MAX];  /* X-Linked-Etag, of any of the redirects */
    char commit[GET_HEADER_MAX];       /* X-Repo-Commit, of any of the redirects */
    char location[4 * GET_HEADER_MAX]; /* of a redirect that was not followed: the whole URL */
    char next[4 * GET_HEADER_MAX];     /* Link: <URL>; rel="next" */
    char type[GET_HEADER_MAX];         /* Content-Type */
    char server[GET_HEADER_MAX];       /* Server */
} GetReply;

/* Receives bytes of a body; false stops the transfer. reply has the status and the headers by then. */
typedef bool (*GetSink)(void *arg, const GetReply *reply, const void *bytes, size_t len);

/* token: for "Authorization: Bearer", NULL = none. NULL with *err set. */
GetHttp *get_http_new(const char *token, QsfErr *err);
void get_http_free(GetHttp *h);
bool get_http_has_token(const GetHttp *h);

/* Calls idle about every 100 ms during a transfer, whether bytes come or not; NULL ends that. */
void get_http_on_idle(GetHttp *h, void (*idle)(void *arg), void *arg);

/* get_http_head asks whether the file has changed since this version, which ETag or Last-Modified name; the
 * status of an unchanged one is 304. Waits for at most 5 seconds to be connected then. Both "": no condition.
 * */
void get_http_unless(GetHttp *h, const char *etag, const char *modified);
/* Asks for the headers; follows no redirect. Any status is a success. QSF_E_RUNTIME names the host and the
 * reason (no such host, refused, TLS, no bytes for a minute); QSF_E_INTERRUPTED. */
int get_http_head(GetHttp *h, const char *url, GetReply *reply, QsfErr *err);
/* Gets a text of at most max bytes, after redirects; b is cleared first. Any status is a success. Errors as
 * above, and QSF_E_RUNTIME if it is longer. */
int get_http_text(GetHttp *h, const char *url, size_t max, QsfStrbuf *b, GetReply *reply, QsfErr *err);
/* Gets the bytes from `first`, after redirects, and passes them to sink, whatever the status. Errors as
 * above; a connection that ends early is one. *stopped: sink has returned false, which is not an error. */
int get_http_body(GetHttp *h, const char *url, uint64_t first, GetSink sink, void *arg, GetReply *reply,
                  bool *stopped, QsfErr *err);

/* A request of another program (request.h). */
typedef struct GetRequest {
    const char *url;
    const char *socket; /* path of a unix socket that is used instead of the host of url; NULL = none */
    const void *body;   /* (len) bytes of JSON to post; NULL: a GET */
    size_t len;
    long stall_seconds; /* without a byte, from the first one that is sent on */
} GetRequest;
/* Sends it and passes the body of the reply to sink as it arrives, whatever the status. Follows no redirect:
 * neither the body nor the token reaches another host. Hosts of this machine are asked without a proxy.
 * sink returned false: not an error. Errors as above. */
int get_http_request(GetHttp *h, const GetRequest *r, GetSink sink, void *arg, GetReply *reply, QsfErr *err);

/* Appends a part of a path, with everything escaped that has a meaning in URLs but '/'. */
void get_http_put_path(QsfStrbuf *b, const char *path);

#endif
