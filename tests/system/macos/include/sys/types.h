/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_TYPES_H
#define STUB_SYS_TYPES_H
#include "../qsf_darwin.h"
typedef struct stub_fd_set {
    int32_t bits[32];
} fd_set;
typedef unsigned char u_char;
typedef unsigned int u_int;
#endif
