/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_SYSCTL_H
#define STUB_SYS_SYSCTL_H
#include <stddef.h>
int sysctlbyname(const char *name, void *old, size_t *old_bytes, void *now, size_t now_bytes);
#endif
