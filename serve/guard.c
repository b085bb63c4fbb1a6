/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hosts, origins and keys: implements guard.h. */
#include "serve/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of the loopback, which no name server answers for (RFC 6761). */
static const char *const local_hosts[] = { "localhost", "127.0.0.1", "[::1]" };

static bool key_char(char c) { return c > ' ' && c < 0x7f; }

/* The first line of text, without white space around it. */
static int take_key(ServeGuard *g, const char *path, const char *text, size_t len, QsfErr *err) {
    const char *end = memchr(text, '\n', len);
    if (end == NULL) end = text + len;
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
    const size_t n = (size_t)(end - text);
    if (n == 0) return qsf_err_set(err, QSF_E_USAGE, "--api-key-file %s: its first line is empty", path);
    if (n >= sizeof g->key)
        return qsf_err_set(err, QSF_E_USAGE, "--api-key-file %s: a key has at most %zu bytes", path,
                           sizeof g->key - 1);
    for (size_t i = 0; i < n; i++)
        if (!key_char(text[i]))
            return qsf_err_set(err, QSF_E_USAGE,
                               "--api-key-file %s: a key has printable ASCII characters and no blanks", path);
    memset(g->key, 0, sizeof g->key);
    memcpy(g->key, text, n);
    g->key_len = n;
    return QSF_OK;
}

int serve_guard_read_key(ServeGuard *g, const char *path, QsfErr *err) {
    char text[2 * SERVE_KEY_MAX];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    const int e = errno;
    const bool others = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 007) != 0;
    if (fd >= 0) close(fd);
    if (n < 0) return qsf_err_set(err, QSF_E_USAGE, "--api-key-file %s: %s", path, strerror(e));
    if (others)
        return qsf_err_set(err, QSF_E_USAGE, "--api-key-file %s: other users can read it: chmod 600 %s", path,
                           path);
    return take_key(g, path, text, (size_t)n, err);
}

/* Length of a host without its port; 0 if it is malformed. */
static size_t host_len(const char *host) {
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const size_t n = host[0] == '[' ? (end != NULL ? (size_t)(end - host) + 1 : 0) : strcspn(host, ":");
    const char *port = host + n;
    if (n == 0 || (*port != '\0' && *port != ':')) return 0;
    if (*port == ':') port++;
    return port[strspn(port, "0123456789")] == '\0' ? n : 0;
}

static bool is(const char *name, const char *host, size_t n) {
    return strlen(name) == n && strncasecmp(name, host, n) == 0;
}

bool serve_guard_host(const ServeGuard *g, const char *host) {
    const size_t n = host != NULL ? host_len(host) : 0;
    if (g->host[0] == '\0') return true;
    if (n == 0) return false;
    if (g->anywhere && g->hosts == NULL) return true; /* a key is required then */
    for (size_t i = 0; i < sizeof local_hosts / sizeof *local_hosts; i++)
        if (is(local_hosts[i], host, n)) return true;
    for (size_t i = 0; g->hosts != NULL && g->hosts[i] != NULL; i++)
        if (is(g->hosts[i], host, n)) return true;
    return is(g->host, host, n);
}

bool serve_guard_origin(const ServeGuard *g, const char *origin) {
    if (origin == NULL) return true;
    for (size_t i = 0; g->origins != NULL && g->origins[i] != NULL; i++)
        if (strcasecmp(g->origins[i], origin) == 0) return true;
    return false;
}

bool serve_guard_key(const ServeGuard *g, const char *authorization) {
    static const char scheme[] = "Bearer ";
    if (g->key_len == 0) return true;
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) return false;
    const char *given = authorization + sizeof scheme - 1;
    const size_t n = strlen(given);
    unsigned differs = n != g->key_len;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned)(unsigned char)given[i] ^ (unsigned)(unsigned char)g->key[i % sizeof g->key];
    return differs == 0;
}
