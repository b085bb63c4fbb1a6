/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses and sockets: implements listen.h. */
#include "serve/listen.h"
#include "qsf_system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

/* Any of them. */
typedef union Address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
} Address;

static int not_an_address(const char *address, QsfErr *err) {
    return qsf_err_set(
        err, QSF_E_USAGE,
        "--listen %.200s: expected ADDRESS:PORT with a numeric address, such as 127.0.0.1:8080 or [::1]:0, "
        "or unix:PATH",
        address);
}

static bool parse_port(const char *text, unsigned short *out) {
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    *out = (unsigned short)n;
    return *text >= '0' && *text <= '9' && *end == '\0' && n <= 65535;
}

/* The path of "unix:PATH". */
static int parse_path(const char *path, const char *address, Address *a, socklen_t *len, QsfErr *err) {
    if (strlen(path) >= sizeof a->path.sun_path)
        return qsf_err_set(err, QSF_E_USAGE, "--listen %.200s: a path has at most %zu bytes", address,
                           sizeof a->path.sun_path - 1);
    if (*path == '\0') return not_an_address(address, err);
    a->path.sun_family = AF_UNIX;
    memcpy(a->path.sun_path, path, strlen(path) + 1);
    *len = sizeof a->path;
    return QSF_OK;
}

static int parse(const char *address, Address *a, socklen_t *len, QsfErr *err) {
    char host[64];
    unsigned short port;
    memset(a, 0, sizeof *a);
    if (strncmp(address, "unix:", 5) == 0) return parse_path(address + 5, address, a, len, err);
    const char *colon = strrchr(address, ':');
    const size_t n = colon != NULL ? (size_t)(colon - address) : 0;
    if (n == 0 || n >= sizeof host || !parse_port(colon + 1, &port)) return not_an_address(address, err);
    snprintf(host, sizeof host, "%.*s", (int)n, address);
    if (strcmp(host, "localhost") == 0) snprintf(host, sizeof host, "127.0.0.1");
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        *len = sizeof a->v4;
        return QSF_OK;
    }
    if (host[0] != '[' || host[n - 1] != ']') return not_an_address(address, err);
    host[n - 1] = '\0';
    if (inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) != 1) return not_an_address(address, err);
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons(port);
    *len = sizeof a->v6;
    return QSF_OK;
}

static bool is_local(const Address *a) {
    if (a->any.sa_family == AF_INET) return ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return a->any.sa_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

int serve_listen_check(const char *address, bool *local, QsfErr *err) {
    Address a;
    socklen_t len;
    const int rc = parse(address, &a, &len, err);
    *local = rc == QSF_OK && is_local(&a);
    return rc;
}

static int failed(const char *address, const char *what, QsfErr *err) {
    const int e = errno;
    return qsf_err_set(err, QSF_E_RUNTIME, "--listen %.200s: %s: %s", address, what, strerror(e));
}

/* Removes a socket that nothing listens on. */
static int remove_stale(const Address *a, const char *address, QsfErr *err) {
    const char *path = a->path.sun_path;
    struct stat st;
    if (lstat(path, &st) != 0) return QSF_OK; /* bind reports what is wrong */
    if (!S_ISSOCK(st.st_mode))
        return qsf_err_set(err, QSF_E_RUNTIME, "--listen %.200s: the file exists and is not a socket",
                           address);
    const int fd = qsf_stream_socket(AF_UNIX);
    if (fd < 0) return failed(address, "cannot make a socket", err);
    const bool refused = connect(fd, &a->any, sizeof a->path) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (!refused)
        return qsf_err_set(err, QSF_E_RUNTIME, "--listen %.200s: another program listens there", address);
    return unlink(path) == 0 || errno == ENOENT ? QSF_OK
                                                : failed(address, "cannot remove the old socket", err);
}

/* Permissions are set before anything can connect: a socket listens only afterwards. */
static int bind_it(int fd, const Address *a, socklen_t len, const char *address, QsfErr *err) {
    const int one = 1;
    const bool path = a->any.sa_family == AF_UNIX;
    if (!path) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->any.sa_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    const mode_t mask = path ? umask(0177) : 0;
    const int rc = bind(fd, &a->any, len);
    const int e = errno;
    if (path) umask(mask);
    errno = e;
    if (rc != 0) return failed(address, "cannot listen there", err);
    if (path && chmod(a->path.sun_path, 0600) != 0) return failed(address, "cannot set its permissions", err);
    return listen(fd, BACKLOG) == 0 ? QSF_OK : failed(address, "cannot listen there", err);
}

/* What was bound, as text. */
static void describe(ServeListen *l) {
    Address a;
    socklen_t len = sizeof a;
    char text[INET6_ADDRSTRLEN] = "";
    memset(&a, 0, sizeof a);
    if (getsockname(l->fd, &a.any, &len) != 0) return;
    l->local = is_local(&a);
    if (a.any.sa_family == AF_UNIX) {
        snprintf(l->path, sizeof l->path, "%s", a.path.sun_path);
        snprintf(l->url, sizeof l->url, "unix:%s", l->path);
        return;
    }
    const bool v4 = a.any.sa_family == AF_INET;
    inet_ntop(a.any.sa_family, v4 ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr, text, sizeof text);
    l->port = ntohs(v4 ? a.v4.sin_port : a.v6.sin6_port);
    snprintf(l->host, sizeof l->host, v4 ? "%s" : "[%s]", text);
    snprintf(l->url, sizeof l->url, "http://%s:%u", l->host, (unsigned)l->port);
}

int serve_listen_open(ServeListen *l, const char *address, QsfErr *err) {
    Address a;
    socklen_t len;
    *l = (ServeListen){ .fd = -1 };
    int rc = parse(address, &a, &len, err);
    if (rc == QSF_OK && a.any.sa_family == AF_UNIX) rc = remove_stale(&a, address, err);
    if (rc != QSF_OK) return rc;
    const int fd = qsf_stream_socket(a.any.sa_family);
    if (fd < 0) return failed(address, "cannot make a socket", err);
    rc = bind_it(fd, &a, len, address, err);
    if (rc != QSF_OK) {
        close(fd);
        return rc;
    }
    l->fd = fd;
    describe(l);
    return QSF_OK;
}

void serve_listen_close(ServeListen *l) {
    if (l->path[0] != '\0') (void)unlink(l->path);
    if (l->fd >= 0) close(l->fd);
    *l = (ServeListen){ .fd = -1 };
}
