/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_LIMITS_H
#define STUB_LIMITS_H
#include_next <limits.h>
#define PATH_MAX          1024
#define NAME_MAX          255
#define PIPE_BUF          512
#define PTHREAD_STACK_MIN 16384
#define SSIZE_MAX         LONG_MAX
#define MB_LEN_MAX        6
#endif
