/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Paths, methods and headers: implements route.h. */
#include "serve/route.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *path;
    ServeTarget target;
    bool prefix;     /* more follows */
    bool post, open; /* open: without the key */
} routes[] = {
    { "/health", SERVE_HEALTH, false, false, true },
    { "/metrics", SERVE_METRICS, false, false, false },
    { "/v1/models", SERVE_MODELS, false, false, false },
    { "/v1/models/", SERVE_MODEL, true, false, false },
    { "/v1/chat/completions", SERVE_CHAT, false, true, false },
    { "/v1/completions", SERVE_COMPLETION, false, true, false },
    { "/v1/responses", SERVE_RESPONSE, false, true, false },
    { "/v1/chat/completions/control", SERVE_CONTROL, false, true, false },
};
#define ROUTES (sizeof routes / sizeof *routes)

static size_t find(const char *path) {
    for (size_t i = 0; i < ROUTES; i++) {
        const size_t n = strlen(routes[i].path);
        if (strncmp(path, routes[i].path, n) == 0 && (routes[i].prefix ? path[n] != '\0' : path[n] == '\0'))
            return i;
    }
    return ROUTES;
}

/* ---- headers ---- */

static bool is_token(const char *s) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    const char *p = s;
    while ((*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z') ||
           (*p != '\0' && strchr(others, *p) != NULL))
        p++;
    return p > s && *p == '\0';
}

static bool is_value(const char *s) {
    for (; *s != '\0'; s++)
        if (((unsigned char)*s < 32 && *s != '\t') || *s == 127) return false;
    return true;
}

void serve_headers_add(ServeHeaders *h, const char *name, const char *value) {
    static const struct {
        const char *name;
        size_t place;
        bool once; /* with two of them, programs do not agree on what the request is */
    } known[] = { { "Host", offsetof(ServeHeaders, host), true },
                  { "Content-Length", offsetof(ServeHeaders, length), true },
                  { "Transfer-Encoding", offsetof(ServeHeaders, coding), true },
                  { "Content-Encoding", offsetof(ServeHeaders, content), false },
                  { "Origin", offsetof(ServeHeaders, origin), true },
                  { "Authorization", offsetof(ServeHeaders, authorization), true },
                  { "Expect", offsetof(ServeHeaders, expect), false } };
    if (value == NULL) value = "";
    h->malformed = h->malformed || !is_token(name) || !is_value(value);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char **at = (const char **)(void *)((char *)h + known[i].place);
        if (strcasecmp(name, known[i].name) != 0) continue;
        h->twice = h->twice || (*at != NULL && known[i].once);
        *at = value;
    }
}

bool serve_headers_skippable(const ServeHeaders *h, uint64_t max) {
    if (h->twice || h->malformed || h->expect != NULL || (h->coding != NULL && h->length != NULL))
        return false;
    if (h->coding != NULL) return strcasecmp(h->coding, "chunked") == 0;
    return h->length != NULL && strtoull(h->length, NULL, 10) <= max;
}

/* Refuses headers that a proxy and this server could read differently. */
static bool check_form(const ServeHeaders *h, ServeError *e) {
    const char *why = NULL;
    if (h->malformed) why = "a header is malformed";
    if (h->twice) why = "a header that may occur once occurs twice";
    if (h->length != NULL && h->coding != NULL)
        why = "the headers Content-Length and Transfer-Encoding cannot be combined";
    if (why != NULL) return serve_error_set(e, 400, "bad_headers", NULL, "%s", why);
    if (h->coding != NULL && strcasecmp(h->coding, "chunked") != 0)
        return serve_error_set(e, 400, "bad_headers", NULL, "Transfer-Encoding %.100s is not supported",
                               h->coding);
    if (h->content != NULL && strcasecmp(h->content, "identity") != 0)
        return serve_error_set(e, 400, "bad_headers", NULL, "Content-Encoding %.100s is not supported",
                               h->content);
    return true;
}

static bool check_who(const ServeHeaders *h, const ServeGuard *g, ServeError *e) {
    if (h->host == NULL && !serve_guard_host(g, NULL))
        return serve_error_set(e, 403, "host_not_allowed", NULL, "the header Host is missing");
    if (!serve_guard_host(g, h->host))
        return serve_error_set(e, 403, "host_not_allowed", NULL,
                               "the host '%.100s' is not one of this server; see --allow-host", h->host);
    if (!serve_guard_origin(g, h->origin))
        return serve_error_set(e, 403, "origin_not_allowed", NULL,
                               "pages of '%.100s' may not use this server; see --allow-origin", h->origin);
    return true;
}

/* Checks the announced length of the body. */
static bool check_length(const ServeHeaders *h, uint64_t limit, ServeError *e) {
    if (h->length == NULL) return true;
    char *end;
    const unsigned long long n = strtoull(h->length, &end, 10);
    if (*h->length < '0' || *h->length > '9' || *end != '\0')
        return serve_error_set(e, 400, NULL, NULL, "the header Content-Length is not a number");
    if (n <= limit) return true;
    return serve_error_set(e, 413, "request_too_large", NULL,
                           "the request has %llu bytes, and at most %llu are accepted; see --body-limit", n,
                           (unsigned long long)limit);
}

const char *serve_route_path(const char *target, ServeHeaders *h, char *host, size_t cap) {
    static const char scheme[] = "http://";
    const size_t s = sizeof scheme - 1;
    if (strncasecmp(target, scheme, s) != 0) return target;
    const size_t n = strcspn(target + s, "/");
    if (target[s + n] == '\0' || n >= cap) return target;
    memcpy(host, target + s, n);
    host[n] = '\0';
    h->host = host;
    return target + s + n;
}

static bool is_get(const char *method) { return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0; }

bool serve_route(ServeRoute *r, const char *method, const char *path, const ServeHeaders *h,
                 const ServeGuard *g, uint64_t body_limit, ServeError *e) {
    *r = (ServeRoute){ .target = SERVE_PREFLIGHT, .rest = "" };
    if (!check_form(h, e) || !check_who(h, g, e)) return false;
    const size_t i = find(path);
    if (i < ROUTES && strcmp(method, "OPTIONS") == 0 && h->origin != NULL) return true; /* it has no key */
    if ((i == ROUTES || !routes[i].open) && !serve_guard_key(g, h->authorization))
        return serve_error_set(e, 401, "invalid_api_key", NULL, "the API key is missing or wrong");
    if (i == ROUTES) return serve_error_set(e, 404, "not_found", NULL, "there is no %.200s here", path);
    r->target = routes[i].target;
    r->rest = path + strlen(routes[i].path);
    r->has_body = routes[i].post;
    r->allow = routes[i].post ? "POST" : "GET, HEAD";
    if (routes[i].post ? strcmp(method, "POST") != 0 : !is_get(method))
        return serve_error_set(e, 405, "method_not_allowed", NULL, "%.200s takes %s, not %.20s", path,
                               r->allow, method);
    return !r->has_body || check_length(h, body_limit, e);
}
