/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No SOCK_CLOEXEC, SOCK_NONBLOCK, accept4 or MSG_NOSIGNAL there. */
#ifndef STUB_SYS_SOCKET_H
#define STUB_SYS_SOCKET_H
#include "../qsf_darwin.h"
typedef uint32_t socklen_t;
typedef uint8_t sa_family_t;
#define AF_UNIX      1
#define AF_INET      2
#define AF_INET6     30
#define SOCK_STREAM  1
#define SOL_SOCKET   0xffff
#define SO_REUSEADDR 0x0004
#define SO_NOSIGPIPE 0x1022
#define SHUT_RD      0
#define SHUT_WR      1
#define SHUT_RDWR    2
#define MSG_PEEK     0x2
#define MSG_DONTWAIT 0x80
struct sockaddr {
    uint8_t sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
struct sockaddr_storage {
    uint8_t ss_len;
    sa_family_t ss_family;
    char ss_data[126];
};
int accept(int fd, struct sockaddr *a, socklen_t *bytes);
int bind(int fd, const struct sockaddr *a, socklen_t bytes);
int connect(int fd, const struct sockaddr *a, socklen_t bytes);
int getsockname(int fd, struct sockaddr *a, socklen_t *bytes);
int listen(int fd, int backlog);
ssize_t recv(int fd, void *p, size_t n, int flags);
ssize_t send(int fd, const void *p, size_t n, int flags);
int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int shutdown(int fd, int how);
int socket(int family, int type, int protocol);
#endif
