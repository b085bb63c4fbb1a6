/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SCHEME "http://"

static int refuse(QsfErr *err, const char *text, const char *why) {
    return qsf_err_set(err, QSF_E_USAGE, "%.200s: %s", *text ? text : "connect", why);
}

/* What no URL of a server has. */
static const char *wrong(const char *text) {
    if (!*text) return "expected the URL of a server, such as http://127.0.0.1:8080";
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f) return "a URL has no blanks or control characters";
    if (strpbrk(text, "?#")) return "expected a URL without ? and #, such as http://127.0.0.1:8080";
    if (strlen(text) + sizeof SCHEME + sizeof "/v1" > QSF_REMOTE_URL_MAX) return "the URL is too long";
    return NULL;
}

static bool is_version(const char *part) { return part[0] == 'v' && isdigit((unsigned char)part[1]); }

/* Does a part of the path name a version of the interface? */
static bool has_version(const char *path) {
    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
        if (is_version(p + 1)) return true;
    return false;
}

static bool is_loopback(const char *host, size_t len) {
    const char *v4 = "127.";
    return (len == 9 && strncasecmp(host, "localhost", 9) == 0) || (len == 5 && !memcmp(host, "[::1]", 5)) ||
           (len > 4 && memcmp(host, v4, 4) == 0 && strspn(host, "0123456789.") == len);
}

static int parse_socket(const char *text, QsfRemoteUrl *out, QsfErr *err) {
    const char *path = text + strlen("unix:");
    if (*path != '/') return refuse(err, text, "expected unix: and an absolute path");
    snprintf(out->socket, sizeof out->socket, "%s", path);
    snprintf(out->name, sizeof out->name, "%s", text);
    snprintf(out->root, sizeof out->root, "http://localhost");
    snprintf(out->base, sizeof out->base, "http://localhost/v1");
    out->loopback = true;
    return QSF_OK;
}

static void cut_slashes(char *url) {
    for (size_t n = strlen(url); n > sizeof SCHEME && url[n - 1] == '/';) url[--n] = '\0';
}

/* What other programs show as the URL of a server may be that of one of its functions. */
static void cut_function(char *url) {
    static const char *const functions[] = { "/chat/completions", "/completions", "/models" };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const size_t n = strlen(url), tail = strlen(functions[i]);
        if (n < tail + sizeof SCHEME || strcmp(url + n - tail, functions[i]) != 0) continue;
        url[n - tail] = '\0';
        cut_slashes(url);
        return;
    }
}

/* Without a scheme: "localhost:8080". */
static const char *with_scheme(const char *text, char *dst, size_t cap) {
    const char *colon = strstr(text, "://");
    snprintf(dst, cap, "%s%s", colon ? "" : SCHEME, text);
    cut_slashes(dst);
    cut_function(dst);
    return dst;
}

void qsf_remote_url_base(const char *location, char *dst, size_t cap) {
    snprintf(dst, cap, "%s", location);
    dst[strcspn(dst, "?#")] = '\0';
    cut_slashes(dst);
    cut_function(dst);
}

int qsf_remote_url_parse(const char *text, QsfRemoteUrl *out, QsfErr *err) {
    *out = (QsfRemoteUrl){ .encrypted = false };
    const char *why = wrong(text);
    if (why) return refuse(err, text, why);
    if (strncmp(text, "unix:", 5) == 0) return parse_socket(text, out, err);
    const char *url = with_scheme(text, out->base, sizeof out->base);
    out->encrypted = strncasecmp(url, "https://", 8) == 0;
    if (!out->encrypted && strncasecmp(url, SCHEME, 7) != 0)
        return refuse(err, text, "expected http://, https:// or unix:PATH");
    const char *host = strstr(url, "://") + 3;
    const size_t len = strcspn(host, "/");
    if (memchr(host, '@', len)) return refuse(err, text, "a key goes into --api-key-file, not into the URL");
    const size_t bare = *host == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/");
    if (bare == 0 || bare > len) return refuse(err, text, "the URL has no host");
    out->loopback = is_loopback(host, bare);
    if (!has_version(host)) strcat(out->base, "/v1"); /* wrong() has left room */
    snprintf(out->name, sizeof out->name, "%s", out->base);
    snprintf(out->root, sizeof out->root, "%s", out->base);
    *strrchr(out->root, '/') = '\0';
    return QSF_OK;
}

static size_t origin_length(const char *url) {
    const char *host = strstr(url, "://");
    return host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/") : 0;
}

bool qsf_remote_url_same_origin(const QsfRemoteUrl *a, const QsfRemoteUrl *b) {
    const size_t n = origin_length(a->base);
    if (strcmp(a->socket, b->socket) != 0) return false;
    return n == origin_length(b->base) && strncasecmp(a->base, b->base, n) == 0;
}
