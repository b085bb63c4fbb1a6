/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_SOCKET_H
#define STUB_SYS_SOCKET_H
#include "../qsf_darwin.h"
typedef uint32_t socklen_t;
typedef uint8_t sa_family_t;
struct sockaddr {
    uint8_t sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
#endif
