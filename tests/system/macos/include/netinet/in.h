/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_NETINET_IN_H
#define STUB_NETINET_IN_H
#include <sys/socket.h>
#define IPPROTO_IPV6     41
#define IPV6_V6ONLY      27
#define INET_ADDRSTRLEN  16
#define INET6_ADDRSTRLEN 46
#define IN_LOOPBACKNET   127
#define INADDR_LOOPBACK  0x7f000001u
typedef uint16_t in_port_t;
typedef uint32_t in_addr_t;
struct in_addr {
    in_addr_t s_addr;
};
struct in6_addr {
    uint8_t s6_addr[16];
};
struct sockaddr_in {
    uint8_t sin_len;
    sa_family_t sin_family;
    in_port_t sin_port;
    struct in_addr sin_addr;
    char sin_zero[8];
};
struct sockaddr_in6 {
    uint8_t sin6_len;
    sa_family_t sin6_family;
    in_port_t sin6_port;
    uint32_t sin6_flowinfo;
    struct in6_addr sin6_addr;
    uint32_t sin6_scope_id;
};
#define IN6_IS_ADDR_LOOPBACK(a) ((a)->s6_addr[15] == 1)
#define htonl(v)                __builtin_bswap32(v)
#define htons(v)                __builtin_bswap16(v)
#define ntohl(v)                __builtin_bswap32(v)
#define ntohs(v)                __builtin_bswap16(v)
extern const struct in6_addr in6addr_loopback;
#endif
